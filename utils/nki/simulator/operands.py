"""What an instruction accepts for each operand, and how the operands of one call are checked."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from utils.nki.simulator.enums import HBM, ON_CHIP, MemoryRegion, engine
from utils.nki.simulator.errors import refuse
from utils.nki.simulator.target import Target
from utils.nki.simulator.tensor import Outside, Tensor

SBUF, PSUM = MemoryRegion.sbuf, MemoryRegion.psum
DMA_MEMORY = HBM | {SBUF}

Rule = Callable[["Use"], None]
"""A hardware rule: looks at the operands of a call and raises what `refuse` makes."""
Choice = engine | Callable[["Use"], engine]
"""The engine of an instruction, or what chooses it for a call."""
Cost = Callable[["Use"], float]
"""What a call takes, in cycles of its engine."""


WITH_INT64 = ("dma_copy", "scalar_load", "scalar_store")
"""The instructions that move numbers of 64 bits (AWS, NKI scalar values)."""


@dataclass(frozen=True)
class Operand:
    """One operand of an instruction.

    writes, reads: its direction; both for one that is updated.
    memory: where it may lie. column: one value for each partition, shape (P, 1).
    number: a Python number is allowed instead. optional: so is None.
    dtypes: the allowed types; empty for all. many: a list of tensors.
    anywhere: the row's own rules say at which partition it begins.
    """

    reads: bool = True
    writes: bool = False
    memory: frozenset[MemoryRegion] = ON_CHIP
    column: bool = False
    number: bool = False
    optional: bool = False
    dtypes: frozenset[str] = frozenset()
    many: bool = False
    anywhere: bool = False

    @property
    def places(self) -> str:
        """The memories in which it may lie, for messages and documentation."""
        hbm = "shared HBM" if self.memory & HBM == {MemoryRegion.shared_hbm} else "HBM"
        words = ((hbm, HBM), ("SBUF", {SBUF}), ("PSUM", {PSUM}))
        return " or ".join(word for word, regions in words if self.memory & regions)

    def describe(self) -> str:
        """What it may be, for the documentation of its instruction."""
        if self.reads and self.writes:
            text = "read and written"
        else:
            text = "read" if self.reads else "written"
        text += f", in {self.places}"
        if self.many:
            text += ", a list of tensors"
        if self.column:
            text += ", one value for each partition"
        if self.number:
            text += ", or a number"
        if self.optional:
            text += ", or None"
        if self.dtypes:
            text += f"; {', '.join(sorted(self.dtypes))}"
        return text

    def check(self, use: "Use", name: str, value: Any) -> None:
        """Raise unless `value` may be the operand `name` of a call."""
        if isinstance(value, Tensor):
            self._check_tensor(use, name, value)
        elif self.many and isinstance(value, (list, tuple)):
            for i, item in enumerate(value):
                self._check_one(use, f"{name}[{i}]", item)
        else:
            self._check_one(use, name, value)

    def _check_one(self, use: "Use", name: str, value: Any) -> None:
        if isinstance(value, Tensor):
            self._check_tensor(use, name, value)
        elif value is None and self.optional:
            return
        elif isinstance(value, (int, float, np.integer, np.floating)) and self.number:
            return
        else:
            self._refuse_value(use, name, value)

    def _refuse_value(self, use: "Use", name: str, value: Any) -> None:
        match_ = "a NumPy array" if isinstance(value, np.ndarray) else repr(value)
        wanted = "a tensor" + (" or a number" if self.number else "")
        raise refuse(
            f"{use.instruction}: {name} is {match_}, it takes {wanted}"
            f"{' or None' if self.optional else ''}.",
            "an engine works on tensors in the memories of the core; host arrays come in as the "
            "kernel's arguments.",
            f"pass the array to the kernel, nisa.dma_copy it to SBUF, and use that tile as {name}.",
        )

    def _check_tensor(self, use: "Use", name: str, tensor: Tensor) -> None:
        spec = use.instruction
        if isinstance(tensor, Outside):
            raise tensor.error
        if tensor.buffer not in self.memory:
            raise refuse(*_wrong_memory(use, name, tensor, self))
        if self.dtypes and tensor.dtype not in self.dtypes:
            raise refuse(
                f"{spec}: {name} is {tensor.dtype}; allowed: {', '.join(sorted(self.dtypes))}.",
                "the instruction has no other form of this operand.",
                f"allocate {name} with dtype=nl.{min(self.dtypes)}, or convert with "
                "nisa.tensor_copy.",
            )
        if tensor.dtype == "int64" and spec not in WITH_INT64:
            raise refuse(
                f"{spec}: {name} is int64; only {', '.join(WITH_INT64)} take it.",
                "the engines compute with 32 bits; a number of 64 bits is an address or a count.",
                f"use nl.int32 for {name}, or compute with nisa.scalar_load.",
            )
        if tensor.ndim > use.target.dimensions and tensor.buffer in ON_CHIP:
            raise refuse(
                f"{spec}: {name} has {tensor.ndim} dimensions, an access pattern has at most "
                f"{use.target.dimensions}.",
                "the partition and four free dimensions are what an instruction can encode.",
                "merge dimensions with reshape or flatten_dims, or loop over one.",
            )
        if tensor.buffer in ON_CHIP and use.declared is not engine.dma and not self.anywhere:
            _check_start(spec, name, tensor)
        if self.column:
            _check_column(use, name, tensor)


def _wrong_memory(use: "Use", name: str, tensor: Tensor, operand: Operand) -> tuple[str, str, str]:
    spec = use.instruction
    allowed = operand.places
    where = tensor.buffer.value.replace("_", " ").replace("hbm", "HBM")
    what = f"{spec}: {name} is in {where}, {spec} needs it in {allowed}."
    if tensor.buffer in HBM:
        return (
            what,
            "compute engines reach SBUF and PSUM only; HBM is reached by DMA.",
            f"nisa.dma_copy between HBM and an SBUF tile, and use the tile as {name}.",
        )
    if tensor.buffer is PSUM:
        why: dict[Choice, str] = {
            engine.dma: "the DMA engines cannot reach PSUM.",
            engine.tensor: "the Tensor Engine takes its operands from SBUF and only writes PSUM.",
            engine.gpsimd: "GpSimd has no path to PSUM.",
        }
        return (
            what,
            why.get(use.declared, f"here {spec} reaches {allowed} only."),
            "nisa.tensor_copy it to an SBUF tile first (Vector or Scalar Engine).",
        )
    fix = (
        f"allocate {name} with buffer=nl.psum, and nisa.tensor_copy the result to SBUF."
        if operand.writes
        else f"bring {name} into {allowed} first."
    )
    return what, f"here {spec} reaches {allowed} only.", fix


def _check_start(spec: str, name: str, tensor: Tensor) -> None:
    """Accesses begin at partition 0, 32, 64 or 96, and wide ones at 0 (or 64); none is skipped.

    Source: AWS, Trainium and Inferentia2 architecture, start partition.
    https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/guides/architecture/trainium_inferentia2_arch.html
    """
    start, count = tensor.partition, tensor.shape[0]
    if tensor.partition_step != 1:
        raise refuse(
            f"{spec}: {name} takes partitions in steps of {tensor.partition_step}; an engine takes "
            "consecutive ones, a step of 1.",
            "an access names its first partition and how many follow.",
            "use all the partitions, or gather the wanted ones with nisa.dma_copy.",
        )
    allowed = (0,) if count > 64 else (0, 64) if count > 32 else (0, 32, 64, 96)
    if start not in allowed:
        raise refuse(
            f"{spec}: {name} starts at partition {start} with {count} partitions; such an access "
            f"starts at {', '.join(map(str, allowed))}.",
            "engines read partitions in quadrants of 32.",
            "place the data at such a partition: move it with nisa.dma_copy or "
            "nisa.nc_stream_shuffle.",
        )


def _check_column(use: "Use", name: str, tensor: Tensor) -> None:
    data = use.main
    if tensor.elements == 1 and (data is None or tensor.shape[0] == data.shape[0]):
        return
    raise refuse(
        f"{use.instruction}: {name} must have one value per partition, shape "
        f"({data.shape[0] if data is not None else 'P'}, 1), got {tensor.shape[0]} partitions and "
        f"{tensor.elements} columns: {tensor.shape}.",
        "such an operand is read once for each partition and applied along the row.",
        "for a value per element use nisa.tensor_tensor; to spread one row over partitions use "
        "nisa.nc_stream_shuffle, a matmul with ones, or a DMA with stride 0.",
    )


@dataclass(eq=False, repr=False)
class Use:
    """The operands of one call, as rules and costs see them: `use.dst`, `use.op`, `use.target`.

    instruction: its name. operands, declared: what its row of the table says of its operands and
    its engine. engine: the engine chosen, known to rules and costs.
    """

    instruction: str
    operands: dict[str, Operand]
    declared: Choice
    args: dict[str, Any]
    target: Target
    engine: engine = field(default=engine.unknown, init=False)
    doubts: list[tuple[str, str, str]] = field(default_factory=list, init=False)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["args"][name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def main(self) -> Tensor | None:
        """The tensor that is processed: the first plain input, else the first operand."""
        tensors = [
            value
            for name, operand in self.operands.items()
            if isinstance(value := self.args[name], Tensor) and not operand.column
        ]
        read = [t for n, o in self.operands.items() if o.reads and (t := self.args[n]) in tensors]
        return (read or tensors or [None])[0]

    def refuse(self, what: str, why: str, fix: str) -> Exception:
        """The error of this instruction."""
        return refuse(f"{self.instruction}: {what}", why, fix)

    def doubt(self, what: str, why: str, fix: str) -> None:
        """A warning that belongs to the verdict: every kernel with such a call gets it."""
        self.doubts.append((f"{self.instruction}: {what}", why, fix))


def tile(**options: Any) -> Operand:
    """An operand that is read."""
    return Operand(**options)


def result(**options: Any) -> Operand:
    """An operand that is written."""
    return Operand(reads=False, writes=True, **options)


def update(**options: Any) -> Operand:
    """An operand that is read and written."""
    return Operand(writes=True, **options)


def column(**options: Any) -> Operand:
    """A number, or one value for each partition."""
    return Operand(column=True, number=True, **options)
