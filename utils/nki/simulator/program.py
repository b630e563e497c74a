"""What one call of a kernel leaves behind: its allocations and its instructions, core by core."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from utils.nki.simulator import errors
from utils.nki.simulator.dtypes import DType
from utils.nki.simulator.enums import MemoryRegion, engine
from utils.nki.simulator.errors import Line, refuse
from utils.nki.simulator.memory import Storage
from utils.nki.simulator.table import Checked
from utils.nki.simulator.target import Target


@dataclass(frozen=True, eq=False)
class Loop:
    """One run of a loop of the device, inside another one or None."""

    inside: "Loop | None" = None


def _encloses(outer: Loop | None, inner: Loop | None) -> bool:
    while inner is not None and inner is not outer:
        inner = inner.inside
    return inner is outer


@dataclass(eq=False, repr=False, slots=True)
class Instruction:
    """One recorded instruction: what the table said of it, its operands, and where it was written.

    `checked` is shared by all instructions with the same operand layout; `args` maps the names of
    the signature to tensors and numbers; `after` lists instructions it waits for by request;
    `wrote` is a fingerprint of what it wrote to memory that two cores share.
    """

    checked: Checked
    args: dict[str, Any]
    name: str | None
    line: Line
    index: int
    after: "tuple[Instruction, ...]" = field(default=(), init=False)
    loop: Loop | None = field(default=None, init=False)
    wrote: int = field(default=0, init=False)

    @property
    def engine(self) -> engine:
        """The engine that runs it."""
        return self.checked.engine

    def depends_on(self, *producers: "Instruction") -> "Instruction":
        """Run after `producers`. They come earlier in the program, so values do not change."""
        own = running("depends_on").instructions
        for producer in producers:
            if not isinstance(producer, Instruction) or producer.index >= self.index:
                raise self._no_order(f"it is told to run after {producer!r}")
            if own[producer.index] is not producer or own[self.index] is not self:
                raise self._no_order(f"it is told to run after {producer!r} of another core")
            if producer.loop is not self.loop and not _encloses(producer.loop, self.loop):
                raise self._no_order(f"it is told to run after {producer!r} across a loop's border")
        self.after += producers
        return self

    def _no_order(self, what: str) -> Exception:
        return refuse(
            f"depends_on of {self!r}: {what}.",
            "the wait is a semaphore that an earlier instruction of the same core and the same "
            "device loop (or one around it) signals.",
            "later.depends_on(earlier), with what two nisa calls of one core returned.",
        )

    def __repr__(self) -> str:
        return f"<{self.checked.spec.name} {self.index} on {self.engine.name}>"


@dataclass
class Program(errors.Call):
    """A kernel call: allocations, and one list of instructions for each core.

    values: whether tensors hold numbers; without them only shapes, rules and times are known.
    precise: round at every write; otherwise (NKI_PRECISE_FP=0) floats keep 32 bits.
    inputs: the storages of array arguments. fitting: shapes, types and memories that fit alone.
    constants: contents of storages that the kernel's text gives. returned: what the kernel
    returned; results: the same as arrays. meetings: where two cores wait for each other. turns:
    pairs of a core and how many instructions it had issued when it let the other one go on. world:
    the ranks of a simulation of several; rank: which of them this is.
    """

    target: Target
    values: bool = True
    precise: bool = True
    kernel: str = "kernel"
    storages: list[Storage] = field(default_factory=list)
    cores: list["Core"] = field(default_factory=list)
    shared: list[Storage] = field(default_factory=list)
    inputs: list[Storage] = field(default_factory=list)
    fitting: set[Any] = field(default_factory=set)
    returned: Any = None
    results: Any = None
    constants: dict[Storage, Any] = field(default_factory=dict)
    meetings: dict[Any, Any] = field(default_factory=dict)
    turns: list[tuple[int, int]] = field(default_factory=list)
    world: Any = None
    rank: int = 0

    def allocate(
        self, shape: tuple[int, ...], dtype: DType, buffer: MemoryRegion, **place: Any
    ) -> Storage:
        """A new allocation, whatever its size; place: name, line and address of `Storage`."""
        number = len(self.storages)
        how: dict[str, Any] = {"values": self.values, "precise": self.precise, **place}
        made = Storage(number, shape, dtype, buffer, **how)
        self.storages.append(made)
        return made

    @property
    def instructions(self) -> list[Instruction]:
        """Those of the first core, which is the only one unless the kernel was launched on two."""
        return self.cores[0].instructions

    def in_order(self) -> Iterator[tuple["Core", Instruction]]:
        """All instructions in the order in which they were executed, with their cores."""
        done = [0] * len(self.cores)
        ends = [(core.index, len(core.instructions)) for core in self.cores]
        for index, until in (*self.turns, *ends):
            core = self.cores[index]
            for instruction in core.instructions[done[index] : until]:
                yield core, instruction
            done[index] = max(done[index], until)

    def count(self, name: str) -> int:
        """How many instructions of this name all cores issued."""
        return sum(i.checked.spec.name == name for core in self.cores for i in core.instructions)


@dataclass
class Core:
    """One instance of the kernel: its place in the grid and its instruction stream.

    registers: what the accumulators of its engines hold. barriers, pipes: how often it met the
    other core. loop: the device loop that is running. loops: for loops of older dialects whose
    iterations are independent, inner ones first, where each iteration begins and the last one
    ends. switch: lets the other core run.
    """

    program: Program
    index: int = 0
    grid: int = 1
    instructions: list[Instruction] = field(default_factory=list)
    shared_made: int = 0
    fills: int = 0
    registers: dict[Any, Any] = field(default_factory=dict)
    barriers: int = 0
    pipes: dict[Any, int] = field(default_factory=dict)
    loop: Loop | None = None
    loops: list[list[int]] = field(default_factory=list)
    switch: Any = None


_active: Core | None = None


def active() -> Core | None:
    """The core whose kernel is running now, or None outside a kernel."""
    return _active


def running(doing: str) -> Core:
    """The core whose kernel is running; an error outside of one."""
    if _active is None:
        raise refuse(
            f"{doing}: no kernel is running.",
            "tensors and instructions exist only while a kernel runs on a core.",
            "put the code into a function decorated with @nki.jit, and call "
            "nki.simulate(kernel)(arrays).",
        )
    return _active


def activate(core: Core | None) -> Core | None:
    """Make `core` the running one; returns the one before."""
    global _active
    before, _active = _active, core
    errors.enter(None if core is None else core.program)
    return before


@contextmanager
def active_core(core: Core) -> Iterator[Core]:
    """While the block runs, `core` is the running one."""
    before = activate(core)
    try:
        yield core
    finally:
        activate(before)
