"""Where in the grid a kernel runs, ranges to loop over, and classes that kernels may use."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from types import FunctionType
from typing import Any

from utils.nki.simulator.errors import refuse
from utils.nki.simulator.program import running


def program_id(axis: int = 0) -> int:
    """Which core of the grid this is."""
    return running("nl.program_id").index


def num_programs(axes: Any = 0) -> int:
    """How many cores run the kernel."""
    return running("nl.num_programs").grid


def program_ndim() -> int:
    """Dimensions of the grid: 1 where the kernel was launched on several cores, else 0."""
    return int(running("nl.program_ndim").grid > 1)


def ds(start: Any, size: int) -> slice:
    """`size` elements from `start`, as an index.

    >>> ds(128, 64)
    slice(128, 192, None)
    """
    return slice(start, start + size)


def affine_range(start: int, stop: int | None = None, step: int = 1) -> range:
    """Python's range. Since NKI 0.3 `affine_range`, `sequential_range` and `static_range` are its
    names of the past: all are unrolled when the kernel is compiled.

    >>> list(affine_range(3))
    [0, 1, 2]
    """
    try:
        return range(start) if stop is None else range(start, stop, step)
    except TypeError:
        raise refuse(
            f"a range from {start!r} to {stop!r} in steps of {step!r}.",
            "a loop is unrolled when the kernel is compiled, so its bounds are Python integers.",
            "use sizes of arguments, or nl.fori_loop(start, stop, body) for bounds in registers.",
        ) from None


sequential_range = static_range = affine_range


@contextmanager
def no_reorder() -> Iterator[None]:
    """Each instruction inside waits for the one before it."""
    core = running("nl.no_reorder")
    first = len(core.instructions)
    core.registers[no_reorder] = core.registers.get(no_reorder, 0) + 1
    try:
        yield
    finally:
        core.registers[no_reorder] -= 1
    for earlier, later in pairwise(core.instructions[first:]):
        later.depends_on(earlier)


def refuse_loop_in_order(loop: str) -> None:
    """Device loops are not compiled inside nl.no_reorder()."""
    if running(loop).registers.get(no_reorder, 0):
        raise refuse(
            f"{loop} inside nl.no_reorder().",
            "the compiler does not keep the order across the iterations of a device loop.",
            "put nl.no_reorder() into the body of the loop.",
        )


class NKIObject:
    """Base of the classes that a kernel may use. Without an __init__ of its own, a class takes its
    annotated fields in order, with defaults from the class or None, and then calls __post_init__.
    Where a class annotates nothing, all its plain attributes are fields. @dataclass changes nothing
    of this (AWS, NKI language guide, class support).

    >>> class Size(NKIObject):
    ...     rows: int
    ...     columns: int = 512
    >>> Size(128).columns, Size(rows=64, columns=1).rows
    (512, 64)
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not vars(cls).get("__annotations__"):
            no_fields = (FunctionType, property, classmethod, staticmethod, list, dict, set)
            cls.__annotations__ = {
                name: Any
                for name, value in vars(cls).items()
                if not name.startswith("_") and not isinstance(value, no_fields)
            }
        for name in cls.__annotations__:
            if not hasattr(cls, name):
                setattr(cls, name, None)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        classes = reversed(type(self).__mro__)
        fields = [name for each in classes for name in vars(each).get("__annotations__", ())]
        given = dict(zip(fields, args, strict=False)) | kwargs
        if len(args) > len(fields):
            raise TypeError(f"{type(self).__name__} has the fields {', '.join(fields) or 'none'}")
        for name in fields:
            setattr(self, name, given.pop(name, getattr(type(self), name, None)))
        for name, value in given.items():
            setattr(self, name, value)
        self.__post_init__()

    def __post_init__(self) -> None:
        """Called after the fields are set; for subclasses."""
