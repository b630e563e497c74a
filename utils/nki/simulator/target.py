"""What a kernel is simulated for: the limits and clocks of one NeuronCore, from the facts."""

import functools
import os
from dataclasses import dataclass

from utils.facts import figure
from utils.nki.simulator.enums import engine, nc_version

VARIABLE = "NEURON_PLATFORM_TARGET_OVERRIDE"
DEFAULT = "trn2"
FP32_BYTES = 4
NAMES = {
    "trn1": "trn1", "inf2": "trn1", "gen2": "trn1",
    "trn2": "trn2", "gen3": "trn2",
    "trn3": "trn3", "gen4": "trn3",
}  # fmt: skip


@dataclass(frozen=True)
class Target:
    """One NeuronCore. Sizes in bytes per partition, clocks in Hz, rates in bytes per second."""

    name: str
    chip: str
    version: nc_version
    partitions: int
    sbuf_bytes: int
    psum_banks: int
    psum_bank_bytes: int
    clocks: dict[engine, float]
    dma_engines: int
    dma_bytes_per_s: float
    stationary_columns: int
    dimensions: int = 5  # the partition and four free ones; AWS, NKI access patterns

    @property
    def generation(self) -> int:
        """2, 3 or 4, for Trainium1 to Trainium3."""
        return self.version.value

    @property
    def moving_columns(self) -> int:
        """Of one product: its rows of FP32 sums fill a bank of PSUM."""
        return self.psum_bank_bytes // FP32_BYTES

    @property
    def psum_bytes(self) -> int:
        """Bytes per partition."""
        return self.psum_banks * self.psum_bank_bytes

    def __hash__(self) -> int:
        return hash(self.name)


@functools.cache
def target(name: str) -> Target:
    """The target of a name that NKI accepts.

    >>> target("trn2").psum_banks
    8
    """
    if name not in NAMES:
        allowed = ", ".join(NAMES)
        raise ValueError(f"{name!r} is no target: {VARIABLE} and target= know {allowed}.")
    name = NAMES[name]
    chip = "trainium" + name[-1]

    def of(key: str, unit: str) -> float:
        return figure(f"{chip}.{key}").to(unit)

    clocks = {
        which: of(f"engines.{which.name}.clock", "Hz")
        for which in (engine.tensor, engine.vector, engine.scalar, engine.gpsimd)
    }
    return Target(
        name=name,
        chip=chip,
        version=nc_version(int(name[-1]) + 1),
        partitions=int(of("on_chip.partitions", "partitions")),
        sbuf_bytes=int(of("on_chip.sbuf_per_partition", "B")),
        psum_banks=int(of("on_chip.psum_banks", "banks")),
        psum_bank_bytes=int(of("on_chip.psum_bank", "B")),
        clocks=clocks,
        dma_engines=int(of("dma.per_core", "engines")),
        dma_bytes_per_s=of("dma.rate_per_engine", "B/s"),
        stationary_columns=int(of("engines.tensor.columns", "columns")),
    )


def choose(name: str | None = None) -> Target:
    """The target asked for: by argument, else by the environment variable, else Trainium2."""
    return target(name or os.environ.get(VARIABLE) or DEFAULT)
