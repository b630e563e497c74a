"""A line that says how far a long simulation is, where somebody is looking."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from utils.nki.simulator.program import Program

SILENT_S = 2.0
"""Simulations that take less say nothing."""
EVERY_S = 0.5


@contextmanager
def shown(program: Program) -> Iterator[None]:
    """While the block runs, a line of stderr after two seconds; it is wiped when the block ends."""
    if not _looked_at():
        yield
        return
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(program, ended), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _looked_at() -> bool:
    """A terminal, or a notebook that is not run by the course's own commands."""
    if os.environ.get("COURSE_STRICT") == "1":
        return False
    try:
        return sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel")
    except (AttributeError, ValueError):
        return False


def line(program: Program, seconds: float) -> str:
    """What is shown: so many instructions after so long.

    >>> from utils.nki.simulator.target import target
    >>> line(Program(target("trn2"), kernel="mm"), 3.21)
    'simulating mm: 0 instructions in 3 s'
    """
    done = sum(len(core.instructions) for core in program.cores)
    return f"simulating {program.kernel}: {done:,} instructions in {seconds:.0f} s"


def _watch(program: Program, ended: threading.Event) -> None:
    begun, width = time.monotonic(), 0
    while not ended.wait(EVERY_S if width else SILENT_S):
        text = line(program, time.monotonic() - begun)
        sys.stderr.write("\r" + text.ljust(width))
        sys.stderr.flush()
        width = max(width, len(text))
    if width:
        sys.stderr.write("\r" + " " * width + "\r")
        sys.stderr.flush()
