"""Loops, ranges and the place in the grid, and classes that kernels may use.

Ranges are unrolled when the kernel is compiled. Loops that run on the device may have counts in
registers, and their bodies are not unrolled there; here the body runs once for each iteration, so
that the program has the real instructions.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from types import FunctionType
from typing import Any

from utils.nki.simulator.errors import doubt, is_whole, refuse
from utils.nki.simulator.program import Core, Loop, running
from utils.nki.simulator.registers import NkiScalar, VirtualRegister, whole_number


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
        fields = [name for class_ in classes for name in vars(class_).get("__annotations__", ())]
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


MOST_ITERATIONS = 1_000_000
"""After so many iterations a loop counts as endless."""


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any], Any], step: int = 1) -> None:
    """Call `body_fun(i)` for i = lower, lower + step, ... below `upper`, on the device.

    lower, upper: ints, registers or scalars of int32. step: an int of 1 or more. The body gets a
    register, or a scalar where a bound is one; state is carried in SBUF or HBM. Returns None.
    """
    core = _allow("fori_loop")
    if not callable(body_fun):
        raise _no_body("fori_loop", body_fun)
    scalar = any(isinstance(bound, NkiScalar) for bound in (lower, upper))
    for value in _counts("fori_loop", lower, upper, step):
        with _iteration(core):
            body_fun(NkiScalar("int32", value) if scalar else VirtualRegister(value, loop=True))


def while_loop(init: Any, body_fun: Callable[[Any], Any]) -> None:
    """While a register is not 0: register = body_fun(register), on the device.

    The condition is looked at before each iteration. The body gets the present condition and
    returns the register of the next; other state is carried in SBUF or HBM. Returns None.
    """
    core = _allow("while_loop")
    if not callable(body_fun):
        raise _no_body("while_loop", body_fun)
    condition = init
    for iteration in range(MOST_ITERATIONS):
        if not isinstance(condition, VirtualRegister):
            raise refuse(
                f"while_loop: {'init' if iteration == 0 else 'the body returned'} {condition!r}; "
                "a register is needed.",
                "the sequencer looks at a register before each iteration.",
                "init = nisa.register_alloc(1); in the body nisa.register_load(r, tile), and "
                "return r.",
            )
        value = condition.read("while_loop")
        if value == 0:
            return
        with _iteration(core):
            condition = body_fun(VirtualRegister(value))
    raise refuse(
        f"while_loop: still not 0 after {MOST_ITERATIONS} iterations.",
        "the body returns the same condition again and again.",
        "compute the next condition in a tile, nisa.register_load it into r, and return r.",
    )


def dynamic_range(start: Any, stop: Any = None, step: int = 1) -> Iterator[VirtualRegister]:
    """Registers that count from `start` to below `stop`, for a loop that is not unrolled.

    Bounds are ints or registers; with one, it is the end. Deprecated in NKI 0.6, gone in 0.7:
    `fori_loop`.
    """
    core = _allow("dynamic_range")
    doubt(
        "nl.dynamic_range: deprecated since NKI 0.6.",
        "the compiler that traces kernels knows device loops by their bodies.",
        "def body(i): ..., then nl.fori_loop(start, stop, body).",
    )
    lower, upper = (0, start) if stop is None else (start, stop)
    return _dynamic(core, _counts("dynamic_range", lower, upper, step))


def _dynamic(core: Core, counts: range) -> Iterator[VirtualRegister]:
    for value in counts:
        with _iteration(core):
            yield VirtualRegister(value, loop=True)


@contextmanager
def _iteration(core: Core) -> Iterator[None]:
    """Marks the instructions of one iteration."""
    before, first = core.loop, len(core.instructions)
    core.loop = Loop(before)
    try:
        yield
    finally:
        for instruction in core.instructions[first:]:
            instruction.loop = instruction.loop or core.loop
        core.loop = before


def _allow(name: str) -> Core:
    core = running(f"nl.{name}")
    refuse_loop_in_order(f"nl.{name}")
    return core


def _counts(name: str, lower: Any, upper: Any, step: Any) -> range:
    if not is_whole(step) or step < 1:
        raise refuse(
            f"{name}: step is {step!r}; it is a Python int of 1 or more.",
            "the step is part of the loop instruction.",
            "scale the counter: loop with step 1 over tiles.",
        )
    for bound in (lower, upper):
        if isinstance(bound, NkiScalar) and bound.dtype != "int32":
            raise refuse(
                f"{name}: the bound {bound!r}.",
                "the loop compares its count in 32 bits.",
                "load the bound from a tile of nl.int32.",
            )
    first, last = (
        end.read(f"{name}: {what}")
        if isinstance(end, VirtualRegister)
        else whole_number(end, f"{name}: {what}")
        for what, end in (("the lower bound", lower), ("the upper bound", upper))
    )
    counts = range(first, last, int(step))
    if len(counts) > MOST_ITERATIONS:
        raise refuse(
            f"{name}: {len(counts)} iterations, at most {MOST_ITERATIONS} are simulated.",
            "every iteration is executed here.",
            "is the bound right? simulate a smaller problem.",
        )
    return counts


def _no_body(name: str, body: Any) -> Exception:
    return refuse(
        f"{name}: body_fun is {body!r}.",
        "the loop calls its body once for each iteration.",
        "def body(i): ...; then nl." + name + "(..., body).",
    )
