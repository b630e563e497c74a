"""While an answer runs, what the course already has for its exercise refuses to be called.

Importing stays possible, because a notebook may have imported it before: the functions themselves
refuse, however they were reached. What a cache of theirs holds already still comes back.
"""

import importlib.util
import inspect
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, cached_property
from types import CodeType, FunctionType, ModuleType
from typing import Any

from utils.labs import audit_hook

trusted: ContextVar[bool] = ContextVar("trusted", default=False)
"""Whether the course's own record of an answer runs. Nothing is closed to it, because in another
thread of a grader a judge may need the same function.
"""


@contextmanager
def forbid(exercise_id: str, *names: str) -> Iterator[None]:
    """Within the block every function that `names` name raises RuntimeError, which says to write it
    oneself.

    exercise_id: such as "lab01.ex1", for the message.
    names: a module or package with all of its functions and methods ("utils.chip.roofline"), or one
        function, class or method ("utils.chip.hardware.core_sum",
        "utils.chip.formats.Format.encode"). Raises ValueError if there is no such thing.

    >>> from utils.chip.topology import ring
    >>> with forbid("lab01.ex6", "utils.chip.topology"):
    ...     ring(4)
    Traceback (most recent call last):
    RuntimeError: ring belongs to the course: write this one yourself, it is lab 01, exercise 6
    """
    if trusted.get():
        yield
        return
    lab, _, number = exercise_id.partition(".")
    place = f"lab {lab.removeprefix('lab')}, exercise {number.removeprefix('ex')}"
    # A sandbox does not hold the modules that judge: what is not there is closed already.
    in_sandbox = importlib.util.find_spec(f"utils.labs.{lab}.judge") is None
    there = [n for n in names if not (in_sandbox and n.startswith("utils.labs.") and _absent(n))]
    functions = {id(f): f for name in there for f in _functions_of(name)}.values()
    before = [(function, function.__code__) for function in functions]
    audit_hook.compare(functions)
    try:
        for function, code in before:
            function.__code__ = _refusal(function.__name__, place, code.co_freevars)
        yield
    finally:
        for function, code in reversed(before):
            function.__code__ = code
        audit_hook.compare(functions)  # copies that were made meanwhile


def _functions_of(name: str) -> tuple[FunctionType, ...]:
    """The functions that a name stands for; a module's anew when more of it has been imported."""
    thing = _loaded(name) or _thing(name)
    known, count, functions = _known.get(name, (None, 0, ()))
    if known is not thing or count != len(sys.modules):
        functions = tuple(_functions(thing))
        _known[name] = thing, len(sys.modules), functions
    return functions


_known: dict[str, tuple[Any, int, tuple[FunctionType, ...]]] = {}


def _loaded(name: str) -> Any:
    """What a dotted name stands for, if its module is imported already; else None."""
    module, _, last = name.rpartition(".")
    if name in sys.modules or module not in sys.modules:
        return sys.modules.get(name)
    return inspect.getattr_static(sys.modules[module], last, None)


def _absent(name: str) -> bool:
    """Whether there is no module of that name."""
    return importlib.util.find_spec(name) is None


@cache
def _refusal(name: str, place: str, free: tuple[str, ...]) -> CodeType:
    """Code that raises, with the free variables of a function: without them it would not fit."""
    message = f"{name} belongs to the course: write this one yourself, it is {place}"
    made: dict[str, Any] = {}
    exec(f"def refuse(*_, **__):\n    raise RuntimeError({message!r})", made)
    return made["refuse"].__code__.replace(co_freevars=free)


def _thing(name: str) -> Any:
    """What a dotted name stands for: its longest part that is a module, and attributes of it."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        try:
            result: Any = importlib.import_module(module)
        except ModuleNotFoundError as error:
            # The module is there, and something that it needs is not.
            if error.name is None or not f"{module}.".startswith(f"{error.name}."):
                raise
            continue
        try:
            for part in parts[length:]:
                result = inspect.getattr_static(result, part)
        except AttributeError:
            break
        return result
    raise ValueError(f"{name!r} is no module, function or class of the course")


def _functions(thing: Any) -> Iterable[FunctionType]:
    """The plain functions behind a function, property, class or module, with all modules in it."""
    if isinstance(thing, ModuleType):
        inside = f"{thing.__name__}."
        modules = [m for n, m in list(sys.modules.items()) if m and f"{n}.".startswith(inside)]
        for member in [var for module in modules for var in vars(module).values()]:
            if f"{getattr(member, '__module__', None)}.".startswith(inside):
                yield from _functions(member)
    elif isinstance(thing, type):
        for name, member in vars(thing).items():
            # Classes may refer to each other in a circle: only those written inside count.
            elsewhere = isinstance(member, type) and not member.__qualname__.startswith(
                f"{thing.__qualname__}."
            )
            if not name.startswith("__") and not elsewhere:
                yield from _functions(member)
    elif isinstance(thing, property):
        yield from _functions(thing.fget)
    elif isinstance(thing, cached_property):
        yield from _functions(thing.func)
    elif isinstance(thing, staticmethod | classmethod):
        yield from _functions(thing.__func__)
    elif callable(thing):
        function = inspect.unwrap(thing)
        if isinstance(function, FunctionType):
            yield function
