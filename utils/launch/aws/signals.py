"""Signals while something runs: the first one ends the run, and none cuts the ending short."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
    if hasattr(signal, name)
)


class Told(BaseException):
    """A signal told the program to end. No `except Exception` stops it."""


class Once:
    """Raises `Told` at the first signal and only takes note of later ones."""

    def __init__(self) -> None:
        self.told: list[int] = []
        self.armed = True

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.told.append(number)
        if self.armed:
            self.armed = False
            raise Told(f"signal {signal.Signals(number).name}")


@contextmanager
def caught() -> Iterator[Once]:
    """Within, signals go to one `Once`; afterwards the former handlers are back."""
    once = Once()
    former = {number: signal.signal(number, once) for number in SIGNALS}
    try:
        yield once
    finally:
        once.armed = False
        for number, handler in former.items():
            signal.signal(number, handler)
