"""Ends an answer that searches for ever, so that the check can say so.

One call into C that never returns, such as sum(itertools.repeat(0)), is not ended: Python handles
no signal in it, and no interrupt of a notebook either. Grading ends it with its process.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SECONDS = 8.0
"""A thousand times what the answers that are asked for take; a search through all combinations
takes minutes. So a busy machine does not decide."""

SHARE = 1.0
"""How much of every limit an answer gets: less where tests try one that never ends."""


class _TooLong(BaseException):
    """Not an Exception, so that no answer catches it by the way."""


def within(call: Callable[[], Any], seconds: float = SECONDS) -> tuple[Any, bool]:
    """What a call returns, and whether it was stopped after `seconds`; then it returned None."""
    try:
        with _alarm(seconds):
            return call(), False
    except _TooLong:
        return None, True


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Signals reach the main thread only; elsewhere there is no limit."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: Any) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SHARE * seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
