"""A device and a clock in pure Python, on which a benchmark can be judged exactly.

The device is asynchronous, as an accelerator is: a call enqueues work and returns; only a sync
waits for it.
"""

import math
import re
from typing import Any

TICK_S = 2.0**-20
"""One tick of the fake clock in seconds: a power of two, so that no sum of ticks is rounded."""


class FakeDevice:
    """A queue of work and the time of the host, both in ticks.

    case: "warmup" and "repeats", which limit the calls; "pending_ticks", work in the queue from
    before; "enqueue_ticks", what a call costs the host; "compile_ticks", what each of the first
    calls costs on top of that; "work_ticks", what each call costs the device, used in turn.
    """

    def __init__(self, case: dict[str, Any]) -> None:
        self._case = case
        self._now = 0
        self._idle_at = case["pending_ticks"]
        self._calls = 0
        self._most_events = 10 * (case["warmup"] + case["repeats"]) + 100
        self.log = ""
        """Everything that was asked of the device, a letter each: f(n), s(ync), c(lock)."""

    def fn(self) -> None:
        """Enqueue one call; does not wait for it."""
        self._note("f")
        self._now += call_ticks(self._case, self._calls, work=False)
        self._idle_at = max(self._now, self._idle_at) + _work(self._case, self._calls)
        self._calls += 1

    def sync(self) -> None:
        """Wait until the queue is empty."""
        self._note("s")
        self._now = max(self._now, self._idle_at)

    def clock(self) -> float:
        """The time in seconds."""
        self._note("c")
        return self._now * TICK_S

    def _note(self, event: str) -> None:
        if len(self.log) >= self._most_events:
            raise RuntimeError(
                f"bench called fn, sync and clock {len(self.log)} times in all, far more than"
                f" warmup={self._case['warmup']} and repeats={self._case['repeats']} need:"
                " does its loop end?"
            )
        self.log += event


def _work(case: dict[str, Any], call: int) -> int:
    return case["work_ticks"][call % len(case["work_ticks"])]


def call_ticks(case: dict[str, Any], call: int, work: bool = True) -> int:
    """What call number `call` (from 0) takes on an empty queue, with or without its work."""
    compiles = case["compile_ticks"]
    host = case["enqueue_ticks"] + (compiles[call] if call < len(compiles) else 0)
    return host + (_work(case, call) if work else 0)


def percentile(samples: list[Any], percent: int) -> Any:
    """The nearest-rank percentile: the sample of rank ceil(percent / 100 · n), counted from 1.

    >>> percentile([30, 10, 20, 40], 50), percentile([30, 10, 20, 40], 99)
    (20, 40)
    """
    return sorted(samples)[math.ceil(percent * len(samples) / 100) - 1]


def split_log(log: str, warmup: int) -> tuple[str, str]:
    """What happened before the first call to be timed, and from there on.

    >>> split_log("fscfsc", 1)
    ('fsc', 'fsc')
    """
    calls = [place for place, event in enumerate(log) if event == "f"]
    start = calls[warmup] if len(calls) > warmup else len(log)
    return log[:start], log[start:]


def starts_idle(before: str) -> bool:
    """Whether a sync, and after it a reading of the clock, come last before the timed calls.

    >>> starts_idle("fsc"), starts_idle("fc"), starts_idle("cs")
    (True, False, False)
    """
    return re.search(r"sc+$", before) is not None


def samples_in(timed: str) -> int | None:
    """The number of samples, if each is a call, then one sync, then a reading of the clock.

    >>> samples_in("fsccfsc"), samples_in("fcs"), samples_in("fssc")
    (2, None, None)
    """
    return timed.count("f") if re.fullmatch(r"(fc*sc+)*", timed) else None
