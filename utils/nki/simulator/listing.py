"""A kernel's instructions as text: what a reader checks a prediction against.

>>> import numpy as np
>>> from utils.nki import simulator
>>> _ = simulator.use()
>>> import nki, nki.isa as nisa, nki.language as nl
>>> @nki.jit
... def copy(x):
...     out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
...     nisa.dma_copy(dst=out, src=x)
...     return out
>>> print(list_instructions(copy, np.ones((2, 3), np.float32)))
engine  instruction  writes             reads
dma     dma_copy     shared_hbm (2, 3)  hbm (2, 3)
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from utils.course.shown import columns
from utils.nki.simulator.launch import run
from utils.nki.simulator.program import Instruction, Program
from utils.nki.simulator.tensor import Tensor

LINES = 24


@dataclass(frozen=True)
class Listing:
    """One call of a kernel. Its text has a line for each instruction of the first core, in the
    order of the program; equal neighbours share a line.
    """

    program: Program

    @property
    def results(self) -> Any:
        """What the kernel returned, as arrays."""
        return self.program.results

    def __len__(self) -> int:
        return len(self.program.instructions)

    def count(self, name: str) -> int:
        """How many instructions have this name, such as "nc_matmul"."""
        return self.program.count(name)

    def cycles(self, engine: str) -> float:
        """Cycles that the instructions of an engine, such as "vector", take: the cost model's."""
        return sum(i.checked.cycles for i in self.program.instructions if i.engine.name == engine)

    def __str__(self) -> str:
        return self.head(LINES)

    def head(self, lines: int) -> str:
        """The text up to so many lines of instructions."""
        rows: list[tuple[str, ...]] = [("engine", "instruction", "writes", "reads")]
        result = itertools.groupby(map(_row, self.program.instructions))
        for (engine, name, *rest), same in result:
            times = len(list(same))
            rows.append((engine, name + (f" x {times}" if times > 1 else ""), *rest))
        left = len(rows) - 1 - lines
        text = "\n".join(columns(rows[: lines + 1], indent=""))
        return text + (f"\n... and {left} lines more" if left > 0 else "")

    __repr__ = __str__


def list_instructions(kernel: Callable[..., Any], *arguments: Any, **named: Any) -> Listing:
    """Run a kernel with numbers, like `nki.simulate(kernel)(...)`, and keep its instructions."""
    return Listing(run(kernel, arguments, named))


def _row(instruction: Instruction) -> tuple[str, str, str, str]:
    spec, args = instruction.checked.spec, instruction.args
    # What an instruction may leave of its output, as a shuffle does, is not a tile that it reads.
    sources = [name for name in spec.inputs if name not in spec.outputs]
    writes, reads = (
        ", ".join(_label(args[name]) for name in names if isinstance(args[name], Tensor))
        for names in (spec.outputs, sources)
    )
    return instruction.engine.name, spec.name, writes, reads


def _label(tensor: Tensor) -> str:
    return f"{tensor.buffer.value} {tensor.shape}"
