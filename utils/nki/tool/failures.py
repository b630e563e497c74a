"""Errors of the command in words, each with its exit status, and a limit on time."""

import os
import signal
import threading
import traceback
from argparse import ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from utils.nki.simulator.errors import NkiValidationError, NotInSubset, ours

FINE, FOUND, WRONG = 0, 1, 2
"""Exit statuses: all is well; a finding or a kernel that fails; nothing to work on."""
OURS = tuple(
    str(Path(__file__).parents[2] / room) for room in ("nki/tool", "chip", "facts", "course")
)
LIBRARIES = (os.path.dirname(os.__file__), "site-packages")


class Refused(ArgumentTypeError, ValueError):
    """The command line, or what it names, cannot be used: what was found, and what to do.

    argparse shows the text of an ArgumentTypeError; of a plain ValueError it shows its own.
    """


class KernelFailed(Exception):
    """A kernel raised, or took longer than it may."""


class TimeUp(BaseException):
    """Not an Exception, so that no kernel handles it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises KernelFailed if the block takes longer; only in the main thread, which has signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(signum: int, frame: FrameType | None) -> None:
        raise TimeUp

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except TimeUp as late:
        raise KernelFailed(
            f"the kernel had not ended after {seconds:g} s{_at(late)}. Look for a loop without "
            "end; --limit SECONDS gives it longer."
        ) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def author_errors() -> Iterator[None]:
    """What a kernel raises becomes KernelFailed, with its place in the author's source."""
    try:
        yield
    except (NkiValidationError, NotInSubset) as error:
        raise KernelFailed(str(error)) from error
    except (Exception, SystemExit) as error:
        kind = type(error).__name__
        missing = isinstance(error, TypeError) and "missing a required argument" in str(error)
        fix = "; --shape gives an array, --arg NAME=VALUE anything else" if missing else ""
        raise KernelFailed(f"the kernel raised {kind}: {error}{_at(error)}{fix}") from error


def _at(error: BaseException) -> str:
    """The innermost line of the author's; "" if there is none."""
    steps = traceback.extract_tb(error.__traceback__)
    theirs = [
        step
        for step in steps
        if not ours(step.filename)
        and not step.filename.startswith((*OURS, "<"))
        and not any(library in step.filename for library in LIBRARIES)
    ]
    return f" (at {theirs[-1].filename}:{theirs[-1].lineno})" if theirs else ""
