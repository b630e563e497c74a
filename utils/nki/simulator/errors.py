"""What a learner reads when a kernel breaks a rule: what, numbers, why, fix, and the line."""

import functools
import linecache
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

HERE = tuple({str(Path(__file__).parent), str(Path(__file__).resolve().parent)})
"""Where the simulator's own code lies. Notebooks import it by a path with `..` in it, which code
objects keep."""

PACKAGES = ("utils.nki.simulator", "nki", "importlib")
"""Modules that learners' calls pass through, also where code has no file."""

Line = tuple[CodeType, int]
"""A place in the learner's source: code object and line number."""


def is_whole(value: Any) -> bool:
    """Whether it is an integer of Python or NumPy; True and False are none."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


class NkiValidationError(AssertionError):
    """A kernel asked for something that the hardware or the language does not allow.

    A subclass of AssertionError, because that is what the official simulator raises.
    """


class NotInSubset(NotImplementedError):
    """A part of NKI that exists, and that this simulator does not have."""


class DoubtfulKernel(UserWarning):
    """Legal, but probably not meant."""


def refuse(what: str, why: str, fix: str, line: Line | None = None) -> NkiValidationError:
    """The error for a broken rule, in four parts; `what` holds the numbers found and allowed.

    line: where, if not where the learner's code is now.

    >>> print(refuse("dma_copy: src has 8 elements, dst has 4.", "A DMA moves as many elements "
    ...     "as it reads.", "slice src to 4 elements.").args[0])  # doctest: +ELLIPSIS
    dma_copy: src has 8 elements, dst has 4.
    Why: A DMA moves as many elements as it reads.
    Fix: slice src to 4 elements.
    At: ...
    """
    line = line or learner_line()
    at = f"\nAt: {show_line(line)}" if line else ""
    return NkiValidationError(f"{what}\nWhy: {why}\nFix: {fix}{at}")


@dataclass
class Call:
    """One call of a kernel, as far as warnings care: what has been said in it."""

    warned: set[Any] = field(default_factory=set, kw_only=True)

    def first(self, what: Any) -> bool:
        """Whether this is said for the first time in this call."""
        if what in self.warned:
            return False
        self.warned.add(what)
        return True


_call: Call | None = None


def enter(call: Call | None) -> None:
    """From now on doubts belong to this call; `program.activate` says so."""
    global _call
    _call = call


def doubt(what: str, why: str, fix: str, line: Line | None = None) -> None:
    """Warn of something legal but doubtful, once for each line of a kernel call."""
    line = line or learner_line()
    if _call is not None and not _call.first((what.partition(":")[0], why, line)):
        return
    at = f"\nAt: {show_line(line)}" if line else ""
    warnings.warn(f"{what}\nWhy: {why}\nFix: {fix}{at}", DoubtfulKernel, stacklevel=3)


def learner_line() -> Line | None:
    """The innermost line on the stack that is not the simulator's own."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (ours(frame.f_code.co_filename) or _is_generated(frame)):
        frame = frame.f_back
    return None if frame is None else line_of(frame)


def _is_generated(frame: FrameType) -> bool:
    """Whether Python wrote the code, for a class of the simulator or for an import.

    What a learner types into a shell has no file either, but a module of its own.
    """
    module = frame.f_globals.get("__name__", "")
    return frame.f_code.co_filename.startswith("<") and module.startswith(PACKAGES)


def repeats() -> bool:
    """Whether the learner's line is a `while`, which would never end on what is always true."""
    line = learner_line()
    if line is None:
        return False
    code, number = line
    return linecache.getline(code.co_filename, number).lstrip().startswith("while ")


@functools.cache
def ours(file: str) -> bool:
    """Whether a file is a part of the simulator."""
    return file.startswith(HERE)


_lines: dict[tuple[int, int], Line] = {}


def line_of(frame: FrameType) -> Line:
    """Where a frame is. Kept, because Python counts lines from the beginning of a function."""
    code = frame.f_code
    place = id(code), frame.f_lasti
    line = _lines.get(place)
    if line is None:
        line = _lines[place] = code, frame.f_lineno
    return line


def show_line(line: Line) -> str:
    """A place in the source, for messages."""
    code, number = line
    return place(code.co_filename, number)


def place(path: str, number: int) -> str:
    """`file:line`; in a notebook the cell by its number, as IPython's own traceback has it."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    cell = shell.compile.format_code_name(path) if shell else None
    return f"{' '.join(cell)}, line {number}" if cell else f"{path}:{number}"


def at_line(error: NkiValidationError, line: Line) -> NkiValidationError:
    """The same error, about another place than the one on the stack: that of a recorded line."""
    what = str(error).partition("\nAt: ")[0]
    return NkiValidationError(f"{what}\nAt: {show_line(line)}")


# ---- Python's operators on things that have no number while a kernel is compiled ----------------

OPERATORS = {
    "+": ("add", "radd"), "-": ("sub", "rsub", "neg"), "*": ("mul", "rmul"),
    "@": ("matmul", "rmatmul"), "/": ("truediv", "rtruediv"), "//": ("floordiv", "rfloordiv"),
    "%": ("mod", "rmod"), "**": ("pow", "rpow"), "<": ("lt",), "<=": ("le",), ">": ("gt",),
    ">=": ("ge",), "&": ("and", "rand"), "|": ("or", "ror"), "^": ("xor", "rxor"),
    "<<": ("lshift",), ">>": ("rshift",),
}  # fmt: skip


def refuse_operators(kind: type, error: Callable[[Any, str], Exception]) -> None:
    """Make every operator on objects of `kind` raise what `error(object, symbol)` makes."""
    for symbol, names in OPERATORS.items():
        for name in names:
            setattr(kind, f"__{name}__", _refuse(symbol, error))


def _refuse(symbol: str, error: Callable[[Any, str], Exception]) -> Callable[..., Any]:
    def method(self: Any, *others: Any) -> Any:
        raise error(self, symbol)

    return method
