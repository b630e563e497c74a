"""The threads that an answer starts: how many it leaves behind, and an end for those, and for
processes.
"""

import concurrent.futures.thread as pool
import multiprocessing
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from utils.labs.lab06.pipeline import ELSEWHERE
from utils.nki.interrupt import interrupt, settle

SLICE_S = 0.02
PATIENCE = 15
"""Slices of real time that threads get to end, when there is nothing left to do. They are counted,
so that a process that stands still for a second loses one of them."""
LESS = 2
PROCESS_S = 2.0


class Started:
    """The threads that were started in a block of `gather_threads`, and how many of them failed."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self._patience = PATIENCE

    def left(self) -> int:
        """How many are still there after a moment. From then on these no longer count."""
        alive = self._alive()
        for _ in range(self._patience):
            if not alive:
                break
            alive[0].join(SLICE_S)
            alive = self._alive()
        for thread in alive:
            _dismiss(thread)
        if alive:
            settle()
            self._patience = LESS
        self.threads.clear()
        return len(alive)

    def _alive(self) -> list[threading.Thread]:
        return [thread for thread in self.threads if thread.is_alive()]


@contextmanager
def gather_threads() -> Iterator[Started]:
    """Within the block every thread that starts is kept in mind. None of them can hold up the end
    of the process, and none prints what it raises. Processes end with the block: else a DataLoader
    that is no longer needed waits for its own in the middle of a later check.
    """
    result, before = Started(), set(multiprocessing.active_children())
    start, hook = threading.Thread.start, threading.excepthook

    def start_known(self: threading.Thread) -> None:
        self.daemon = True
        result.threads.append(self)
        start(self)

    threading.Thread.start = start_known  # type: ignore[method-assign]
    threading.excepthook = lambda _: None
    try:
        yield result
    finally:
        threading.Thread.start, threading.excepthook = start, hook  # type: ignore[method-assign]
        loader = False
        for process in set(multiprocessing.active_children()) - before:
            try:
                process.terminate()
                process.join(PROCESS_S)
            except RuntimeError:  # of a DataLoader, which hears here that its worker has ended
                process.join(PROCESS_S)
                loader = True
        if loader:
            raise RuntimeError(ELSEWHERE)


def _dismiss(thread: threading.Thread) -> None:
    """Nobody waits for the thread any more; it ends as soon as it runs a line of Python."""
    pool._threads_queues.pop(thread, None)  # type: ignore[attr-defined]
    if thread.ident is not None:
        interrupt(thread, SystemExit)
