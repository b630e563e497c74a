"""Two clocks with the same face: one that runs, and one that moves only when told."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Clock(Protocol):
    """What code that takes time needs: `now()` in seconds, and `sleep(seconds)`."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class RealClock:
    """The clock of this machine; `now` counts from an arbitrary moment."""

    def now(self) -> float:
        return time.perf_counter()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class FakeClock:
    """A clock that moves only when somebody sleeps on it.

    >>> clock = FakeClock()
    >>> clock.sleep(0.25)
    >>> clock.now()
    0.25
    """

    def __init__(self, start_s: float = 0.0) -> None:
        self._now = start_s

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        if not seconds >= 0:
            raise ValueError(f"cannot sleep for {seconds} s: give 0 or more")
        self._now += seconds

    def until(self, moment_s: float) -> None:
        """Sleep until that moment; nothing happens if it has passed."""
        self._now = max(self._now, moment_s)

    @contextmanager
    def elsewhere(self, start_s: float) -> Iterator[None]:
        """Within the block it is `start_s`, for work that somebody else does meanwhile.

        After it, the time is what it was before: read `now()` inside to learn when the work ended.
        """
        here, self._now = self._now, start_s
        try:
            yield
        finally:
            self._now = here
