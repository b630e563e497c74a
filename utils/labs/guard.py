"""Put back what a submission replaced in the code that an observation rests on.

It works in the submission's own process: it catches what was done before an answer is called, and
what a call left behind, not what the answer does meanwhile.
"""

import builtins
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from utils.xla.late import Late

# _XLAC is the part of torch_xla in C++, where its counters are read.
_PACKAGES = ("utils", "torch_xla", "_XLAC", "json", "cloudpickle", "multiprocessing")
# Others of the standard library are replaced by libraries when they are imported.
_STANDARD = ("copy", "itertools", "math", "os", "random", "re", "time")
_WITH_METHODS = ("utils", "cloudpickle", "multiprocessing")
_PARTS = ("__code__", "__defaults__", "__kwdefaults__")


class Originals:
    """The functions, classes, modules and tables of the guarded packages, as they are now."""

    def __init__(self) -> None:
        self._members = list(_members())
        functions = {id(value): (name, value) for _, name, value in self._members}.values()
        self._functions = [
            (name, value, [getattr(value, part) for part in _PARTS], _closure(value))
            for name, value in functions
            if isinstance(value, FunctionType)
        ]
        self._tables = [(name, table, dict(table)) for name, table in _tables()]

    def put_back(self) -> list[str]:
        """Undo all replacements; returns the names of what was replaced."""
        replaced = set()
        for owner, name, value in self._members:
            space = owner if isinstance(owner, dict) else vars(owner)
            if space.get(name) is not value:
                replaced.add(name if isinstance(owner, dict) else f"{owner.__name__}.{name}")
                if isinstance(owner, dict):
                    owner[name] = value
                else:
                    setattr(owner, name, value)
        for name, function, parts, closure in self._functions:
            for part, value in zip(_PARTS, parts, strict=True):
                if getattr(function, part) is not value:
                    replaced.add(name)
                    setattr(function, part, value)
            for cell, content in closure:
                if cell.cell_contents is not content:
                    replaced.add(name)
                    cell.cell_contents = content
        for name, table, copy in self._tables:
            if _differs(table, copy):
                replaced.add(name)
                table.clear()
                table.update(copy)
        return sorted(replaced)


def _guard() -> list[ModuleType]:
    modules = sys.modules.items()
    return [m for n, m in modules if n.partition(".")[0] in _PACKAGES and not isinstance(m, Late)]


def _members() -> Iterator[tuple[Any, str, Any]]:
    """(owner, name, value) of all functions, classes and modules that an observation rests on."""
    guarded = _guard()
    for owner in [*guarded, builtins, *(sys.modules[n] for n in _STANDARD if n in sys.modules)]:
        for name, value in list(vars(owner).items()):
            if isinstance(value, Late):  # becomes the module itself at its first use
                continue
            if callable(value) or isinstance(value, ModuleType):
                yield owner, name, value
            if isinstance(value, type) and value.__module__.partition(".")[0] in _WITH_METHODS:
                for member, function in list(vars(value).items()):
                    if callable(function) and not member.startswith("__weakref"):
                        yield value, member, function
    for name, module in list(sys.modules.items()):
        if module in guarded:
            yield sys.modules, name, module


def _closure(function: FunctionType) -> list[tuple[Any, Any]]:
    """The variables of a closure that hold functions; others may change in use."""
    cells = function.__closure__ or ()
    return [(c, c.cell_contents) for c in cells if _holds_function(c)]


def _holds_function(cell: Any) -> bool:
    try:
        return callable(cell.cell_contents)
    except ValueError:  # not set yet
        return False


def _tables() -> Iterator[tuple[str, dict]]:
    """The constant tables of the course's modules, and the attributes of what they hold."""
    for module in _guard():
        if module.__name__.partition(".")[0] != "utils":
            continue
        for name, value in list(vars(module).items()):
            if name.strip("_").isupper() and isinstance(value, dict):
                label = f"{module.__name__}.{name}"
                yield label, value
                for key, entry in value.items():
                    if isinstance(getattr(entry, "__dict__", None), dict):
                        yield f"{label}[{key!r}]", entry.__dict__


def _differs(table: dict, copy: dict) -> bool:
    return table.keys() != copy.keys() or any(table[key] is not copy[key] for key in copy)
