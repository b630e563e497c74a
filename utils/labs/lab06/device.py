"""An asynchronous, lazy device and a clock in pure Python, on which a benchmark is judged exactly.

It behaves as lesson 03 measured of torch_xla: a step only records. What is recorded runs when the
device is told to settle, if somebody still holds its result; what nobody holds never runs. The
first runs compile. Reading a pending result with `.item()` runs it, keeps nothing, and it runs
again later.
"""

import weakref
from collections.abc import Callable
from typing import Any

TICK_S = 2.0**-20
"""One tick of the fake clock in seconds: a power of two, so that no sum of ticks is rounded."""


class Result:
    """What a step returns: a lazy scalar on the device. It can be kept, dropped or read.

    read: gives the value, at the price of a run if it is pending. A result knows nothing else of
    its device, for that knows what is to be measured.
    """

    def __init__(self, read: Callable[[], float]) -> None:
        self.item = self.tolist = read

    def __float__(self) -> float:
        return self.item()

    def __bool__(self) -> bool:
        return bool(self.item())


class LazyDevice:
    """case: "pending_ticks", work in the queue from before; "record_ticks", what a step costs the
    host; "compile_ticks", what the runs of each call cost in compiling; "work_ticks", what each
    costs the device.
    """

    def __init__(self, case: dict[str, Any]) -> None:
        self._case = case
        self._now, self._idle_at = 0, case["pending_ticks"]
        self._results: dict[int, weakref.ref[Result]] = {}
        self._compiled: set[int] = set()
        self._computed: set[int] = set()
        self._most_events = 20 * len(case["work_ticks"]) + 100
        self.calls = 0
        self.runs = [0] * len(case["work_ticks"])
        """How often the work of each call ran."""
        self.most_alive = 0
        self.log = ""
        """What was asked of the device, a letter each: f a step, s settle, i a read, c clock."""

    def step(self) -> Result:
        """Record one step; runs nothing."""
        self._note("f")
        if self.calls == len(self.runs):
            self.runs.append(0)  # one that nobody asked for
        call = self.calls
        result = Result(lambda: self.read(call))
        self._results[call] = weakref.ref(result)
        self.calls += 1
        self.most_alive = max(
            self.most_alive, sum(item() is not None for item in self._results.values())
        )
        self._now += self._case["record_ticks"]
        return result

    def settle(self) -> None:
        """Run what is recorded and still held by somebody, and wait until it is done."""
        self._note("s")
        for call, result in self._results.items():
            if result() is not None and call not in self._computed:
                self._run(call)
        self._computed = set(self._results)  # or dropped: either way nothing is pending
        self._now = max(self._now, self._idle_at)

    def read(self, call: int) -> float:
        """What `.item()` of a result does."""
        self._note("i")
        if call not in self._computed:
            self._run(call)
        self._now = max(self._now, self._idle_at)
        return 1.0 / (1 + call)

    def clock(self) -> float:
        """The time in seconds."""
        self._note("c")
        return self._now * TICK_S

    def _run(self, call: int) -> None:
        if call not in self._compiled:
            self._compiled.add(call)
            self._now += self._ticks("compile_ticks", call)
        self.runs[call] += 1
        self._idle_at = max(self._now, self._idle_at) + self._ticks("work_ticks", call)

    def _ticks(self, name: str, call: int) -> int:
        return self._case[name][min(call, len(self._case[name]) - 1)]

    def _note(self, event: str) -> None:
        if len(self.log) >= self._most_events:
            raise RuntimeError(
                f"bench used step, settle and clock {len(self.log)} times: does its loop end?"
            )
        self.log += event


def call_ticks(case: dict[str, Any], call: int) -> int:
    """What call number `call` (from 0) takes on an idle device, until it is done."""
    return case["record_ticks"] + case["compile_ticks"][call] + case["work_ticks"][call]
