"""Calling kernels: `nki.jit`, `nki.simulate`, grids of two cores, arrays in and out."""

import functools
import inspect
import os
import warnings
import weakref
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

import numpy as np

from utils.nki.simulator import accumulation, capacity, cores, progress, schedules, sentinels
from utils.nki.simulator.arrays import Arrays, any_shape, apart
from utils.nki.simulator.errors import refuse
from utils.nki.simulator.program import Core, Program, active
from utils.nki.simulator.schedules import Edges
from utils.nki.simulator.target import chosen

MOST_CORES = 2
KEPT_BYTES = 2**23
"""The C library keeps freed memory for what comes next up to the largest block that was freed. An
untouched one of this size, freed at once, saves temporary results the way back to the system."""


class Kernel:
    """A function decorated with `nki.jit`, and how many cores it is launched on.

    Called inside another kernel it is part of that kernel. Called with arrays on a machine without
    a device it is simulated, and says so once.
    """

    def __init__(self, function: Callable[..., Any], grid: int = 1, edges: Edges = ()) -> None:
        self.function = function
        self.grid = grid
        self.edges = edges
        functools.update_wrapper(self, function)

    def __getitem__(self, grid: Any) -> "Kernel":
        size = grid[0] if isinstance(grid, tuple) and len(grid) == 1 else grid
        if not isinstance(size, int) or not 1 <= size <= MOST_CORES:
            raise refuse(
                f"kernel[{grid!r}]: a grid of {grid!r} cores; allowed are 1 and {MOST_CORES}.",
                "a logical core consists of one or two physical cores (LNC 1 or 2).",
                "launch kernel[2](...), and loop over more work inside the kernel.",
            )
        return Kernel(self.function, size, self.edges)

    def with_schedule(self, schedule: Iterable[tuple[str, Any]]) -> "Kernel":
        """The kernel with more order between its named instructions: [(later, earlier), ...]."""
        return Kernel(self.function, self.grid, schedules.edges_of(schedule))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if active() is not None:
            return self.function(*args, **kwargs)
        if os.environ.get("NKI_SIMULATOR", "0") in ("", "0"):
            _announce()
        return simulate(self)(*args, **kwargs)


@functools.cache
def _announce() -> None:
    warnings.warn(
        "There is no Neuron device here: kernels run in the course's simulator "
        f"(target {chosen().name}). nki.simulate(kernel)(...) says so in the code.",
        stacklevel=3,
    )


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Make a kernel of a function. Options of the compiler are accepted and have no effect here."""
    if function is None:
        return functools.partial(jit, **options)
    if isinstance(function, Kernel):
        return function
    return Kernel(function)


def simulate(kernel: Any) -> Callable[..., Any]:
    """Run a kernel with numbers: NumPy or torch arrays in, the same kind out.

    Arrays that the kernel writes to are updated in place.
    """
    launched = jit(kernel)

    def simulated(*args: Any, **kwargs: Any) -> Any:
        program = run(launched, args, kwargs)
        program.cores.clear()  # cores and program hold each other: so memory is free at once
        return program.results

    return simulated


_linted: weakref.WeakSet[Callable[..., Any]] = weakref.WeakSet()


def _lint_once(function: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Warn, at the first call of a kernel, of what may not compile."""
    if isinstance(function, FunctionType) and function not in _linted:
        from utils.nki.simulator import lint

        _linted.add(function)
        lint.warn(function, arguments)


def run(
    kernel: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    values: bool = True,
    target: str | None = None,
) -> Program:
    """One call of a kernel: its program, with `results` as arrays where there are values.

    values: compute numbers; otherwise arrays give only shape and type, and `nki.Shape` may stand
    for them.
    """
    if active() is not None:
        raise refuse(
            "nki.simulate: called inside a kernel.",
            "a core runs one kernel; a function of a kernel is part of it.",
            "call the other kernel directly: y = other(x).",
        )
    launched = jit(kernel)
    given = _bound(launched.function, args, kwargs)
    _lint_once(launched.function, given.arguments)
    arrays = Arrays()
    np.empty(KEPT_BYTES, np.uint8)
    program = Program(
        chosen(target),
        values=values and not any_shape((given.args, given.kwargs)),
        precise=os.environ.get("NKI_PRECISE_FP", "1") != "0",
        kernel=launched.function.__name__,
    )
    program.cores = [Core(program, index, launched.grid) for index in range(launched.grid)]
    given_to_all = apart((given.args, given.kwargs))
    arrays.taken(program, given_to_all)

    def body() -> Any:  # each core gets containers of its own, of the same tensors
        taken, named = arrays.taken(program, given_to_all)
        return launched.function(*taken, **named)

    with progress.shown(program):
        program.returned = cores.run_all(program, body)
    schedules.apply(program, launched.edges)
    accumulation.warn(program)
    capacity.check(program)
    program.results = arrays.given_back(program, program.returned)
    if program.values:
        sentinels.warn(program)
    return program


def _bound(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> inspect.BoundArguments:
    """The arguments by the kernel's signature, with defaults."""
    try:
        given = inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        name = getattr(function, "__name__", "kernel")
        raise TypeError(f"{name}{inspect.signature(function)}: {error}") from None
    given.apply_defaults()
    return given
