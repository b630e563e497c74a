"""Calling kernels: `nki.jit`, `nki.simulate`, grids of two cores, arrays in and out.

A kernel may ask for more order than its data do (`with_schedule`), and somebody who looks at a long
simulation sees a line that says how far it is.
"""

import functools
import inspect
import os
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import numpy as np

from utils.nki.simulator import accumulation, capacity, cores, lint, races, sentinels
from utils.nki.simulator.arrays import Arrays, any_shape, is_array, map_values, separate_shapes
from utils.nki.simulator.errors import refuse
from utils.nki.simulator.instructions.collectives import World
from utils.nki.simulator.program import Core, Instruction, Program, active, active_core
from utils.nki.simulator.surface import since
from utils.nki.simulator.target import choose

# ---- order that a kernel asks for ----------------------------------------------------------------

Edges = tuple[tuple[str, tuple[str, ...]], ...]
"""Names of instructions, each with the names of those that it waits for."""


def edges_of(schedule: Iterable[tuple[str, Any]]) -> Edges:
    """A schedule as `with_schedule` takes it: pairs of a name and a name, or a list of names.

    >>> edges_of([("plus", "recip"), ("store", ["plus", "recip"])])
    (('plus', ('recip',)), ('store', ('plus', 'recip')))
    """
    return tuple(
        (name, (before,) if isinstance(before, str) else tuple(before)) for name, before in schedule
    )


def _order(program: Program, edges: Edges) -> None:
    """Make the named instructions of each core wait for each other."""
    for core in program.cores if edges else ():
        named: dict[str, list[Instruction]] = {}
        for instruction in core.instructions:
            if instruction.name:
                named.setdefault(instruction.name, []).append(instruction)
        with active_core(core):
            for name, producers in edges:
                for later in _those(named, name):
                    later.depends_on(*_earlier(later, named, producers))


def _those(named: dict[str, list[Instruction]], name: str) -> list[Instruction]:
    if name not in named:
        raise refuse(
            f"with_schedule: no instruction has the name {name!r}; there are "
            f"{', '.join(sorted(named)) or 'none'}.",
            "edges are between instructions that were given a name.",
            f"pass name={name!r} to the instruction.",
        )
    return named[name]


def _earlier(
    later: Instruction, named: dict[str, list[Instruction]], producers: Iterable[str]
) -> list[Instruction]:
    results = [entry for name in producers for entry in _those(named, name)]
    for item in results:
        if item.index >= later.index:
            raise refuse(
                f"with_schedule: {later.name!r} waits for {item.name!r}, which comes after it in "
                "the kernel.",
                "the simulator issues instructions in the order of the source.",
                f"write {item.name!r} before {later.name!r}.",
            )
    return results


# ---- how far a long simulation is ----------------------------------------------------------------

SILENT_S = 2.0
"""Simulations that take less say nothing."""
EVERY_S = 0.5


@contextmanager
def _progress(program: Program) -> Iterator[None]:
    """While the block runs, a line of stderr after two seconds; it is wiped when the block ends."""
    if not _is_watched():
        yield
        return
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(program, ended), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _is_watched() -> bool:
    """A terminal, or a notebook that is not run by the course's own commands."""
    if os.environ.get("COURSE_STRICT") == "1":
        return False
    try:
        return sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel")
    except (AttributeError, ValueError):
        return False


def progress_line(program: Program, seconds: float) -> str:
    """What is shown: so many instructions after so long.

    >>> from utils.nki.simulator.target import target
    >>> progress_line(Program(target("trn2"), kernel="mm"), 3.21)
    'simulating mm: 0 instructions in 3 s'
    """
    done = sum(len(core.instructions) for core in program.cores)
    return f"simulating {program.kernel}: {done:,} instructions in {seconds:.0f} s"


def _watch(program: Program, ended: threading.Event) -> None:
    begun, width = time.monotonic(), 0
    while not ended.wait(EVERY_S if width else SILENT_S):
        text = progress_line(program, time.monotonic() - begun)
        sys.stderr.write("\r" + text.ljust(width))
        sys.stderr.flush()
        width = max(width, len(text))
    if width:
        sys.stderr.write("\r" + " " * width + "\r")
        sys.stderr.flush()


# ---- calls ---------------------------------------------------------------------------------------

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
        return Kernel(self.function, self.grid, edges_of(schedule))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Part of the kernel that runs, or a simulation of its own."""
        if active() is not None:
            return self.function(*args, **kwargs)
        if os.environ.get("NKI_SIMULATOR", "0") in ("", "0"):
            _announce()
        return simulate(self)(*args, **kwargs)


@functools.cache
def _announce() -> None:
    warnings.warn(
        "There is no Neuron device here: kernels run in the course's simulator "
        f"(target {choose().name}). nki.simulate(kernel)(...) says so in the code.",
        stacklevel=3,
    )


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Make a kernel of a function. Options of the compiler are accepted and have no effect here."""
    if function is None:
        return functools.partial(jit, **options)
    if isinstance(function, Kernel):
        return function
    return Kernel(function)


def simulate(kernel: Any, ranks: int | None = None) -> Callable[..., Any]:
    """Run a kernel with numbers: NumPy or torch arrays in, the same kind out.

    Arrays that the kernel writes to are updated in place. ranks: run it on so many ranks that meet
    in `nki.collectives`; then each array has one row for each rank, other arguments are the same
    for all, and a list has the result of each rank.
    """
    launched = jit(kernel)

    def simulated(*args: Any, **kwargs: Any) -> Any:
        if ranks is not None:
            return [program.results for program in run_ranks(launched, args, kwargs, ranks)]
        program = run(launched, args, kwargs)
        program.cores.clear()  # cores and program hold each other: so memory is free at once
        return program.results

    return simulated


_linted: weakref.WeakSet[Callable[..., Any]] = weakref.WeakSet()


def _lint_once(function: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Warn, at the first call of a kernel, of what may not compile."""
    if isinstance(function, FunctionType) and function not in _linted:
        _linted.add(function)
        lint.warn(function, arguments)


def run(
    kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, values: bool = True,
    target: str | None = None, world: World | None = None,
) -> Program:  # fmt: skip
    """One call of a kernel: its program, with `results` as arrays where there are values.

    values: compute numbers; otherwise arrays give only shape and type, and `nki.Shape` may stand
    for them. world: the ranks that this one, the first, is one of.
    """
    call = _Call(kernel, args, kwargs, values, target)
    call.program.world = world
    with _progress(call.program):
        (returned,) = cores.run_all([(call.program, call.body)])
    return call.ended(returned)


def run_ranks(
    kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any], ranks: int
) -> list[Program]:
    """One call of a kernel on several ranks, which meet in collectives: the program of each.

    Each array has a row for each rank. Raises ValueError where one has not.
    """
    if isinstance(ranks, bool) or not isinstance(ranks, int) or ranks < 1:
        raise ValueError(f"ranks is {ranks!r}; it is 1 or more")
    world = World(ranks)
    calls = []
    for rank in range(ranks):
        own = map_values((args, kwargs), lambda array: _row(array, rank, ranks), is_array)  # noqa: B023
        call = _Call(kernel, own[0], own[1], True, None)
        call.program.world, call.program.rank = world, rank
        calls.append(call)
    with _progress(calls[0].program):
        returned = cores.run_all([(call.program, call.body) for call in calls])
    return [call.ended(result) for call, result in zip(calls, returned, strict=True)]


def _row(array: Any, rank: int, ranks: int) -> Any:
    if not array.shape or array.shape[0] != ranks:
        raise ValueError(
            f"an array of shape {tuple(array.shape)} for {ranks} ranks; its first dimension counts "
            f"the ranks, so it is {ranks}"
        )
    return array[rank]


class _Call:
    """A call of a kernel, before it runs and when it has run."""

    def __init__(
        self, kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any], values: bool,
        target: str | None,
    ) -> None:  # fmt: skip
        if active() is not None:
            raise refuse(
                "nki.simulate: called inside a kernel.",
                "a core runs one kernel; a function of a kernel is part of it.",
                "call the other kernel directly: y = other(x).",
            )
        self.launched = launched = jit(kernel)
        _check_cores(launched.grid)
        given = _bound(launched.function, args, kwargs)
        _lint_once(launched.function, given.arguments)
        self.arrays = Arrays()
        np.empty(KEPT_BYTES, np.uint8)
        self.program = program = Program(
            choose(target),
            values=values and not any_shape((given.args, given.kwargs)),
            precise=os.environ.get("NKI_PRECISE_FP", "1") != "0",
            kernel=launched.function.__name__,
        )
        program.cores = [Core(program, index, launched.grid) for index in range(launched.grid)]
        self.given = separate_shapes((given.args, given.kwargs))
        self.arrays.take(program, self.given)

    def body(self) -> Any:
        """The kernel on one core, which gets containers of its own, of the same tensors."""
        taken, named = self.arrays.take(self.program, self.given)
        return self.launched.function(*taken, **named)

    def ended(self, returned: Any) -> Program:
        """The program with all that is said and known when the kernel has ended."""
        program = self.program
        program.returned = returned
        _order(program, self.launched.edges)
        accumulation.warn(program)
        races.warn(program)
        capacity.check(program)
        program.results = self.arrays.give_back(program, returned)
        if program.values:
            sentinels.warn(program)
        return program


CORES = "NEURON_LOGICAL_NC_CONFIG"


def _check_cores(grid: int) -> None:
    """The compiler of NKI 0.7 refuses a kernel for another number of cores than its own."""
    asked = os.environ.get(CORES)
    if asked and asked != str(grid) and since("0.7"):
        raise refuse(
            f"the kernel is launched on {grid} core{'s' if grid > 1 else ''}, and {CORES} is "
            f"{asked}.",
            "kernel and compiler agree on how many physical cores make a logical one.",
            f"launch kernel[{asked}](...), or set {CORES}={grid}.",
        )


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
