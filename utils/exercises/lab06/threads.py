"""The threads that an answer starts: how many it leaves behind, and an end for those."""

import concurrent.futures.thread as pool
import ctypes
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE_S = 0.4
"""Real seconds that threads get to end, when there is nothing left to do."""
LESS_S = 0.05


class Started:
    """The threads that were started in a block of `gathered`, and how many of them failed."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self._patience_s = PATIENCE_S

    def left(self) -> int:
        """How many are still there after a moment. From then on these no longer count."""
        end = time.monotonic() + self._patience_s
        for thread in self.threads:
            thread.join(max(0.0, end - time.monotonic()))
        alive = [thread for thread in self.threads if thread.is_alive()]
        for thread in alive:
            _dismiss(thread)
        if alive:
            self._patience_s = LESS_S
        self.threads.clear()
        return len(alive)


@contextmanager
def gathered() -> Iterator[Started]:
    """Within the block every thread that starts is kept in mind. None of them can hold up the end
    of the process, and none prints what it raises.
    """
    found = Started()
    start, hook = threading.Thread.start, threading.excepthook

    def start_known(self: threading.Thread) -> None:
        self.daemon = True
        found.threads.append(self)
        start(self)

    threading.Thread.start = start_known  # type: ignore[method-assign]
    threading.excepthook = lambda _: None
    try:
        yield found
    finally:
        threading.Thread.start, threading.excepthook = start, hook  # type: ignore[method-assign]


def _dismiss(thread: threading.Thread) -> None:
    """Nobody waits for the thread any more; it ends as soon as it runs a line of Python."""
    pool._threads_queues.pop(thread, None)  # type: ignore[attr-defined]
    if thread.ident is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit)
        )
