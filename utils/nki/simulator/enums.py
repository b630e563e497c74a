"""The named choices of the NKI language: engines, memories, modes. Numbers are those of NKI 0.6."""

from enum import Enum, IntEnum


class Choice(Enum):
    """An Enum that is hashed as fast as any object: `Enum` does it in Python, by the name.

    It prints as kernels write it, because messages and signatures quote it.
    """

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"nisa.{type(self).__name__}.{self.name}"


class engine(Choice):  # noqa: N801 (NKI's own spelling, as for all of this module)
    """The engines of a NeuronCore; `unknown` leaves the choice to the table."""

    unknown = 0
    tensor = 1
    scalar = 2
    gpsimd = 3
    dma = 4
    vector = 5
    sync = 6


class reduce_cmd(Choice):  # noqa: N801
    """What an instruction does with its engine's accumulator registers."""

    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4


class dge_mode(Choice):  # noqa: N801
    """Who writes the descriptors of a DMA transfer."""

    unknown = 0
    swdge = 1
    hwdge = 2
    none = 3


class oob_mode(Choice):  # noqa: N801
    """What an index outside the tensor does."""

    error = 0
    skip = 1


class matmul_perf_mode(Choice):  # noqa: N801
    """`double_row` packs two FP8 rows into one of the array."""

    none = "none"
    double_row = "double_row"


class nc_version(IntEnum):  # noqa: N801
    """Generations of NeuronCore: Trn1/Inf2, Trn2, Trn3. Kernels ask for `>= nc_version.gen3`."""

    gen2 = 2
    gen3 = 3
    gen4 = 4


class dma_engine(Choice):  # noqa: N801
    """Which DMA engines move a tile between two cores."""

    dma = 1
    gpsimd_dma = 2


class MemoryRegion(Choice):
    """Where a tensor lives."""

    sbuf = "sbuf"
    psum = "psum"
    hbm = "hbm"
    private_hbm = "private_hbm"
    shared_hbm = "shared_hbm"

    def __repr__(self) -> str:
        return f"nl.{self.value}"


ON_CHIP = frozenset((MemoryRegion.sbuf, MemoryRegion.psum))
HBM = frozenset((MemoryRegion.hbm, MemoryRegion.private_hbm, MemoryRegion.shared_hbm))
CHOICES = {
    kind.__name__: kind
    for kind in (dge_mode, dma_engine, engine, matmul_perf_mode, nc_version, oob_mode, reduce_cmd)
}
"""The choices of nki.isa by name."""
ENGINE_NAMES = {
    engine.tensor: "Tensor Engine", engine.vector: "Vector Engine",
    engine.scalar: "Scalar Engine", engine.gpsimd: "GpSimd Engine", engine.dma: "DMA engines",
    engine.sync: "Sync Engine",
}  # fmt: skip
"""What AWS's documentation calls them."""
