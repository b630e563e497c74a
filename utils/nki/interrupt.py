"""An exception for another thread, and the flag that CPython keeps for it."""

import ctypes
import threading


class _Met(BaseException):
    """What `settle` raises and catches."""


def interrupt(thread: threading.Thread, kind: type[BaseException]) -> None:
    """Leave an exception for a thread that was started: it meets it at its next line of Python."""
    _leave(thread.ident or 0, kind)


def settle() -> None:
    """To be called after `interrupt`, when nobody waits for the threads any more.

    CPython has one flag for all threads, and lowers it when one of them meets its exception. A
    thread that is blocked or has ended never does, and with the flag up a call under sys.setprofile
    or sys.settrace never ends in CPython 3.11. So this thread meets one in their place. A blocked
    thread still has its own for when it wakes.
    """
    try:
        _leave(threading.get_ident(), _Met)
        while True:
            pass
    except _Met:
        pass


def _leave(ident: int, kind: type[BaseException]) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(kind))
