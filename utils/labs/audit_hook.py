"""Notices what an answer does to the process that observes it, by the events that Python itself
raises for auditors (PEP 578): no cell can take such a hook away.

Two things are noticed. One is what leads to the observer: frames of callers, objects that the
collector knows, tracing, raw memory, and, while it is called, the course's source files. The other
is code of the course that runs once more: loaded under another name, executed as text, reloaded or
copied from a function. A copy whose text was changed before is not known again. Nor is what raises
no event, such as `__closure__`: `utils.labs.grading.scan` looks for its name.
"""

import bdb
import ctypes
import inspect
import os
import sys
import sysconfig
import threading
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

_REACHES = frozenset(
    "sys._getframe sys._current_frames sys._current_exceptions sys.settrace sys.setprofile"
    " sys.addaudithook gc.get_objects gc.get_referrers gc.get_referents".split()
)
_FRAMES = frozenset({"tb_frame", "gi_frame", "cr_frame", "ag_frame"})
_COURSE = str(Path(__file__).resolve().parents[1])
_STANDARD = sysconfig.get_paths()["stdlib"]
_INSTALLED = tuple({sys.prefix, sys.base_prefix, _COURSE, "<frozen "})
_ASKED_FOR = frozenset(filter(None, (m.__file__ for m in (bdb, ctypes, inspect))))
"""Modules of which a call is as if the caller had done it."""
_SHORTEST = 60
"""Bytes of code below which two functions are the same by chance."""

Notice = Callable[[str], None]


def _nobody(what: Any) -> None:
    """In a notebook nobody watches."""


compare: Callable[[Iterable[FunctionType]], None] = _nobody
"""Called with functions that are closed to an answer, as they are: notices copies of them."""
tell: Notice = _nobody
"""Called with what was noticed in another process, which ran the answer for this one."""


class Watch:
    """From now on tells `notice` at once, and once, what is noticed in this process; it lasts as
    long as the process.

    called: to be true while an answer is called. In a process that the watched one forks, `notice`
    is called too.
    """

    def __init__(self, notice: Notice, called: bool = False):
        global compare, tell
        self.called = called
        copies: set[int] = set()
        messages: set[str] = set()
        busy: set[int] = set()
        loaded = {name for name in sys.modules if name.partition(".")[0] == "utils"}
        # Bound here: a cell may put something else in their place.
        thread, frame_at, bottom = threading.get_ident, sys._getframe, sys._getframe(1)

        def say(what: str) -> None:
            if what not in messages:
                messages.add(what)
                notice(what)

        def look(event: str, details: tuple[Any, ...]) -> None:
            if event == "exec" or event == "function.__new__":
                code = details[0]
            elif event == "object.__getattr__":
                if details[1] not in _FRAMES:
                    return
            elif event == "object.__setattr__":
                if details[1] != "__code__":
                    return
            elif event == "open":
                if not (self.called and str(details[0]).startswith(_COURSE)):
                    return
            elif event not in _REACHES and not event.startswith("ctypes."):
                return
            if thread() in busy:  # asking for a frame is such an event
                return
            busy.add(thread())
            try:
                caller = frame_at(1)
                if event == "exec":
                    if not (_is_typed(caller, bottom) or _is_first_import(code, caller, loaded)):
                        copies.update(_keys(code))
                elif event == "function.__new__":
                    copies.update(_keys(code))
                elif event == "object.__setattr__":
                    if _is_foreign(caller):
                        copies.update(_keys(details[2]))
                elif event == "open":
                    while caller.f_back and caller.f_code.co_filename.startswith(_STANDARD):
                        caller = caller.f_back
                    if _is_foreign(caller):
                        say("the course's source files")
                elif _is_foreign(_asking(caller)):
                    say(details[1] if event == "object.__getattr__" else event)
            finally:
                busy.discard(thread())

        def compared(functions: Iterable[FunctionType]) -> None:
            for function in functions if copies else ():
                if _key(function.__code__) in copies:
                    say(f"a copy of {function.__module__}.{function.__qualname__}")

        compare, tell = compared, say
        sys.addaudithook(look)


def _key(code: CodeType) -> int | None:
    """The same for code under another name, with other names of variables and another docstring;
    None for what is too short, and for comprehensions, which look alike everywhere.
    """
    if code.co_name.startswith("<") or len(code.co_code) < _SHORTEST:
        return None
    plain = [c for c in code.co_consts if not isinstance(c, CodeType)]
    if plain and isinstance(plain[0], str):
        del plain[0]
    return hash((code.co_code, code.co_names, tuple(plain)))


def _keys(code: CodeType) -> set[int]:
    """Of a piece of code and the functions in it."""
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    own = {key for key in (_key(code),) if key is not None}
    return own.union(*map(_keys, inner))


def _is_foreign(frame: FrameType | None) -> bool:
    """Whether code of the submission runs in a frame: neither installed nor the course's."""
    return frame is not None and not frame.f_code.co_filename.startswith(_INSTALLED)


def _asking(frame: FrameType) -> FrameType | None:
    """The frame that wants to know: of these modules, the one that called them."""
    asking: FrameType | None = frame
    if frame.f_code.co_filename == traceback.__file__:
        return frame.f_back  # what prints an exception goes further down
    while asking is not None and asking.f_code.co_filename in _ASKED_FOR:
        asking = asking.f_back
    return asking


def _is_typed(frame: FrameType | None, bottom: FrameType) -> bool:
    """Whether a cell itself is begun: nothing of the submission is among its callers."""
    while frame is not None and frame is not bottom:
        if _is_foreign(frame):
            return False
        frame = frame.f_back
    return frame is bottom


def _is_first_import(code: CodeType, caller: FrameType, loaded: set[str]) -> bool:
    """Whether this is a module of the course under its own name, for the first time; noted."""
    if caller.f_code.co_filename != "<frozen importlib._bootstrap>":
        return False
    space = caller.f_locals.get("args", (None, {}))[1]
    name = space.get("__name__")
    module = sys.modules.get(name) if isinstance(name, str) else None
    stem = os.path.join(os.path.dirname(_COURSE), *str(name).split("."))
    if name in loaded or module is None or vars(module) is not space:
        return False
    if code.co_filename not in (f"{stem}.py", os.path.join(stem, "__init__.py")):
        return False
    loaded.add(str(name))
    return True
