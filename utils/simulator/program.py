"""What one call of a kernel leaves behind: its allocations and its instructions, core by core."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from utils.simulator.enums import engine
from utils.simulator.errors import Line
from utils.simulator.target import Target

if TYPE_CHECKING:
    from utils.simulator.instruction import Checked
    from utils.simulator.memory import Storage


class Instruction:
    """One recorded instruction: what the table said of it, its operands, and where it was written.

    `checked` is shared by all instructions with the same operand layout; `args` maps the names of
    the signature to tensors and numbers; `after` lists instructions it waits for by request.
    """

    __slots__ = ("after", "args", "checked", "index", "line", "name")

    def __init__(
        self, checked: "Checked", args: dict[str, Any], name: str | None, line: Line, index: int
    ) -> None:
        self.checked = checked
        self.args = args
        self.name = name
        self.line = line
        self.index = index
        self.after: tuple[Instruction, ...] = ()

    @property
    def engine(self) -> engine:
        return self.checked.engine

    def depends_on(self, *producers: "Instruction") -> "Instruction":
        """Run after `producers`. They come earlier in the program, so values do not change."""
        self.after += producers
        return self

    def __repr__(self) -> str:
        return f"<{self.checked.spec.name} {self.index} on {self.engine.name}>"


@dataclass
class Program:
    """A kernel call: allocations, and one list of instructions for each core.

    values: whether tensors hold numbers; without them only shapes, rules and times are known.
    precise: round at every write; otherwise (NKI_PRECISE_FP=0) floats keep 32 bits.
    """

    target: Target
    values: bool = True
    precise: bool = True
    kernel: str = "kernel"
    storages: list["Storage"] = field(default_factory=list)
    cores: list["Core"] = field(default_factory=list)
    shared: list["Storage"] = field(default_factory=list)
    inputs: list["Storage"] = field(default_factory=list)
    results: Any = None
    warned: set[Any] = field(default_factory=set)

    def first(self, what: Any) -> bool:
        """Whether this is said for the first time in this call."""
        if what in self.warned:
            return False
        self.warned.add(what)
        return True

    @property
    def instructions(self) -> list[Instruction]:
        """Those of the first core, which is the only one unless the kernel was launched on two."""
        return self.cores[0].instructions

    def count(self, name: str) -> int:
        """How many instructions of this name all cores issued."""
        return sum(i.checked.spec.name == name for core in self.cores for i in core.instructions)


@dataclass
class Core:
    """One instance of the kernel: its place in the grid and its instruction stream."""

    program: Program
    index: int = 0
    grid: int = 1
    instructions: list[Instruction] = field(default_factory=list)
    shared_made: int = 0
    fills: int = 0
    registers: dict[Any, Any] = field(default_factory=dict)
    switch: Any = None


_active: Core | None = None


def active() -> Core | None:
    """The core whose kernel is running now, or None outside a kernel."""
    return _active


def running(doing: str) -> Core:
    """The core whose kernel is running; an error outside of one."""
    if _active is None:
        from utils.simulator.errors import refuse

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
    return before


@contextmanager
def activated(core: Core) -> Iterator[Core]:
    before = activate(core)
    try:
        yield core
    finally:
        activate(before)
