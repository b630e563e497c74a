"""An inference service and its clock in pure Python, on which a benchmark is judged exactly.

It has up to three traits that real ones have. It is asynchronous: `run` returns before the answer
is there. It compiles a program for each length that is new. It remembers requests, and answers the
same one again from a cache.
"""

import random
from dataclasses import dataclass
from typing import Any

TICK_S = 2.0**-20
"""One tick of the clock in seconds: a power of two, so that no sum of ticks is rounded."""

TRAITS = ("asynchronous", "compiles", "remembers")
_LONGEST, _MOST_TEXTS = 4096, 10**6


@dataclass(frozen=True)
class Request:
    """A text of `length` tokens. number: which one; equal numbers are the same text."""

    length: int
    number: int


@dataclass(frozen=True)
class Call:
    """What one call of `run` was. ticks: from then until it is done, on an idle service."""

    request: Request
    compiled: bool
    remembered: bool
    ticks: int


class Service:
    """case: "traits", "salt", and in ticks "send", "per_token", "compile" and "lookup"."""

    def __init__(self, case: dict[str, Any], most_events: int = 20_000) -> None:
        self._case, self._most_events = case, most_events
        self._now = self._idle_at = 0
        self._lengths: set[int] = set()
        self._answered: set[Request] = set()
        self.calls: list[Call] = []
        self.log: list[str] = []
        """What was asked of it: c the clock, w wait, r16:3 text 3 of 16 tokens."""

    def run(self, request: Request) -> None:
        """Hand a request over; an asynchronous service returns before it is answered."""
        length, number = getattr(request, "length", None), getattr(request, "number", None)
        if type(length) is not int or not 1 <= length <= _LONGEST:
            raise ValueError(f"run got {_name(length)} as length: give Request(length, number),"
                             f" with 1 to {_LONGEST} tokens")  # fmt: skip
        if type(number) is not int or not 0 <= number < _MOST_TEXTS:
            raise ValueError(f"run got {_name(number)} as number: it is an int from 0 on, and says"
                             " which text")  # fmt: skip
        self._note(f"r{length}:{number}")
        call = self._call(Request(length, number))
        self.calls.append(call)
        send = self._case["send"]
        self._now += send
        self._idle_at = max(self._now, self._idle_at) + call.ticks - send
        if "asynchronous" not in self._case["traits"]:
            self._now = self._idle_at

    def wait(self) -> None:
        """Return when everything that was handed over is answered."""
        self._note("w")
        self._now = max(self._now, self._idle_at)

    def clock(self) -> float:
        """The time in seconds."""
        self._note("c")
        return self._now * TICK_S

    def _call(self, request: Request) -> Call:
        traits, ticks = self._case["traits"], self._case
        remembered = "remembers" in traits and request in self._answered
        compiled = "compiles" in traits and request.length not in self._lengths
        self._lengths.add(request.length)
        self._answered.add(request)
        work = ticks["lookup"] if remembered else self._work(request)
        return Call(
            request, compiled, remembered, ticks["send"] + compiled * ticks["compile"] + work
        )

    def _work(self, request: Request) -> int:
        """Ticks to answer a text: every one its own number, and few of them many more."""
        drawn = random.Random(f"{self._case['salt']}.{request.length}.{request.number}")
        slow = 3.0 if drawn.random() < 0.05 else 1.0
        return round(request.length * self._case["per_token"] * drawn.uniform(0.8, 1.2) * slow)

    def _note(self, event: str) -> None:
        if len(self.log) >= self._most_events:
            raise RuntimeError(
                f"the service was used {self._most_events} times: does the loop end?"
            )
        self.log.append(event)


class Front:
    """What an answer gets of a service: its three functions, and nothing that tells its traits."""

    __slots__ = ("clock", "run", "wait")

    def __init__(self, service: Service) -> None:
        self.run = lambda request: service.run(request)
        self.wait = lambda: service.wait()
        self.clock = lambda: service.clock()


def _name(value: Any) -> str:
    return str(value)[:20] if isinstance(value, int | float) else type(value).__name__[:20]


def replayed(case: dict[str, Any], log: str) -> tuple[Service, list[int]]:
    """A service of the same kind after the same events: what it was asked, from its log alone.

    Returns it with the ticks between the readings of the clock around each call: the last one
    before it, and the last one before the next; 0 if there is none.

    Raises: ValueError if that is no log.

    >>> case = {"traits": [], "salt": 1, "send": 5, "per_token": 0, "compile": 0, "lookup": 0}
    >>> replayed(case, " ".join(("c", "r16:0", "c", "r16:1", "w", "c")))[1]
    [5, 5]
    """
    service = Service(case)
    begun: list[int | None] = []
    ended: list[int | None] = []
    now = None
    for event in log.split():
        if event == "c":
            now = round(service.clock() / TICK_S)
            ended[-1:] = [now] * len(ended[-1:])
        elif event == "w":
            service.wait()
        else:
            length, _, number = event.removeprefix("r").partition(":")
            service.run(Request(int(length), int(number)))
            begun.append(now)
            ended.append(None)
    pairs = zip(begun, ended, strict=True)
    return service, [0 if a is None or b is None else b - a for a, b in pairs]
