"""Cores, chips and instances as a few rates and sizes in SI units, made from the facts.

>>> machine("trainium2", "core").name
'Trainium2, one NeuronCore'
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from utils.facts import Figure, Unknown, figure, figures

DTYPES = ("fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "mxfp8", "mxfp4")
"""Data types of the rates. "fp8" is also what AWS's pages call cFP8."""

_SAME = {"cfp8": "fp8"}


@dataclass(frozen=True)
class Machine:
    """One core, chip or instance.

    key, level: what it is: "trainium2" and "core", "chip" or "instance". name: for people.
    chips, cores: how many; cores are physical NeuronCores, a GPU counts as one.
    flops: dense FLOP/s by dtype; a dtype that is missing has no published rate.
    hbm_bytes, hbm_bytes_per_s: device memory; a core has its share of the chip's.
    dma_bytes_per_s: DMA engines times the rate that one reaches in practice; None for GPUs.
    link_bytes_per_s: per chip, both directions together, as vendors print it; None if unknown.
    keys: the facts it was made from.
    """

    key: str
    level: str
    name: str
    chips: int
    cores: int
    flops: Mapping[str, float] = field(hash=False)
    hbm_bytes: float
    hbm_bytes_per_s: float
    dma_bytes_per_s: float | None
    link_bytes_per_s: float | None
    keys: tuple[str, ...]

    def rate(self, dtype: str) -> float:
        """Dense FLOP/s of a dtype. Raises Unknown, with those that are published."""
        if dtype not in self.flops:
            raise Unknown(
                f"no rate of {dtype!r} is published for {self.name}; there are"
                f" {', '.join(self.flops)}"
            )
        return self.flops[dtype]


def machine(key: str, level: str | None = None) -> Machine:
    """A core or chip ("trainium2", "h100") or an instance ("trn2.48xlarge") from the facts.

    level: "core", "chip" or "instance"; without it, a chip's key gives the chip and an instance's
    key the instance. A core has the documented rates of one NeuronCore and its share of the chip's
    memory; an instance is the sum of its chips, whose rates are less rounded than its own page.

    Raises:
        Unknown: a figure that is needed is published nowhere.
        ValueError: no such key or level.
    """
    result = _machine(key, level)
    return replace(result, flops=dict(result.flops))  # who changes it changes nobody else's


@cache
def _machine(key: str, level: str | None) -> Machine:
    if not _keys(key):
        known = [k.split(".")[0] for k in figures() if k.endswith(".hbm.capacity")]
        raise ValueError(f"no chip or instance {key!r} in the facts; chips are {', '.join(known)}")
    if any(item.startswith(f"{key}.accelerator") for item in _keys(key)):
        if level not in (None, "instance"):
            chip = figure(f"{key}.accelerator").value
            raise ValueError(f"{key} is an instance, not a {level}; its chips are {chip}")
        return _instance(key)
    if level not in (None, "chip", "core"):
        raise ValueError(f"{key} is a chip: level is 'chip' or 'core', found {level!r}")
    if level == "core":
        return _core(key)
    return _chip(key)


def _keys(prefix: str) -> tuple[str, ...]:
    return tuple(figures(f"{prefix}."))


class _Taken:
    """Reads figures and remembers which."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def figure(self, key: str) -> Figure:
        self.keys.append(key)
        return figure(key)

    def to(self, key: str, unit: str) -> float:
        try:
            result = figure(key)
        except KeyError:
            raise Unknown(f"{key} [{unit}] is in no source that this course knows") from None
        self.keys.append(key)
        return result.to(unit)

    def rates(self, prefix: str) -> Mapping[str, float]:
        """FLOP/s by dtype, in the order of DTYPES; integer rates are left out."""
        results = {}
        for key in figures(prefix):
            dtype = key.removeprefix(prefix)
            dtype = _SAME.get(dtype, dtype)
            if dtype in DTYPES and figure(key).value is not None:
                results[dtype] = self.to(key, "FLOPS")
        return {dtype: results[dtype] for dtype in DTYPES if dtype in results}


def _title(chip: str) -> str:
    return chip.capitalize() if chip.startswith(("trainium", "inferentia")) else chip.upper()


def _chip(key: str) -> Machine:
    taken = _Taken()
    there = _keys(key)
    cores = int(taken.figure(f"{key}.cores").number) if f"{key}.cores" in there else 1
    dma = link = None
    if f"{key}.dma.rate_per_engine" in there:
        dma = (
            taken.to(f"{key}.dma.rate_per_engine", "B/s") * taken.figure(f"{key}.dma.count").number
        )
    if f"{key}.link.bandwidth" in there:
        link = taken.to(f"{key}.link.bandwidth", "B/s")
    # A data sheet's capacity is rounded; where the board's own count is known, that can be filled.
    memory = "reported" if f"{key}.hbm.reported" in there else "capacity"
    return Machine(
        key=key,
        level="chip",
        name=_title(key),
        chips=1,
        cores=cores,
        flops=taken.rates(f"{key}.rate."),
        hbm_bytes=taken.to(f"{key}.hbm.{memory}", "B"),
        hbm_bytes_per_s=taken.to(f"{key}.hbm.bandwidth", "B/s"),
        dma_bytes_per_s=dma,
        link_bytes_per_s=link,
        keys=tuple(taken.keys),
    )


def _core(key: str) -> Machine:
    chip, taken = _chip(key), _Taken()
    rates = taken.rates(f"{key}.core_rate.")
    if not rates:
        raise ValueError(f"{chip.name} has no NeuronCores: level is 'chip'")
    dma = None
    if chip.dma_bytes_per_s is not None:
        per_core = taken.figure(f"{key}.dma.per_core").number
        dma = taken.to(f"{key}.dma.rate_per_engine", "B/s") * per_core
    needed = [item for item in chip.keys if ".rate." not in item]
    return Machine(
        key=key,
        level="core",
        name=f"{chip.name}, one NeuronCore",
        chips=1,
        cores=1,
        flops=rates,
        hbm_bytes=chip.hbm_bytes / chip.cores,
        hbm_bytes_per_s=chip.hbm_bytes_per_s / chip.cores,
        dma_bytes_per_s=dma,
        link_bytes_per_s=chip.link_bytes_per_s,
        keys=tuple(dict.fromkeys([*taken.keys, *needed])),
    )


def _instance(key: str) -> Machine:
    taken = _Taken()
    accelerator = taken.figure(f"{key}.accelerator").value
    # Some names say the memory too: a chip may exist with more or less than that of the facts.
    name, *memory = accelerator.split()
    chip_key = name.lower()
    capacity = figures(f"{chip_key}.hbm.").get(f"{chip_key}.hbm.capacity")
    if capacity is None or (memory and capacity.to(memory[1]) != float(memory[0])):
        raise Unknown(f"{key} has {accelerator}, of which the facts have no rates")
    chip = _chip(chip_key)
    chips = int(taken.figure(f"{key}.accelerators").number)
    link = chip.link_bytes_per_s
    if f"{key}.neuronlink.per_chip" in _keys(key):
        link = taken.to(f"{key}.neuronlink.per_chip", "B/s")
    return Machine(
        key=key,
        level="instance",
        name=f"{key} ({chips} x {chip.name})",
        chips=chips,
        cores=chips * chip.cores,
        flops={dtype: chips * rate for dtype, rate in chip.flops.items()},
        hbm_bytes=chips * chip.hbm_bytes,
        hbm_bytes_per_s=chips * chip.hbm_bytes_per_s,
        dma_bytes_per_s=None if chip.dma_bytes_per_s is None else chips * chip.dma_bytes_per_s,
        link_bytes_per_s=link,
        keys=tuple(dict.fromkeys([*taken.keys, *chip.keys])),
    )


@dataclass(frozen=True)
class Comparison:
    """What the documented rates of a core and a chip say of each other, in FLOP/s.

    cores: per chip. core_flops, chip_flops: as documented. clock_flops: of one core, from its clock
    and its array; None if no such formula is among the facts.
    """

    key: str
    dtype: str
    cores: int
    core_flops: float
    chip_flops: float
    clock_flops: float | None

    @property
    def sum_flops(self) -> float:
        """Of all cores, each at the documented rate of one."""
        return self.cores * self.core_flops

    @property
    def chip_excess(self) -> float:
        """How much more the chip's page claims than its cores add up to: 0.03 is 3 %."""
        return self.chip_flops / self.sum_flops - 1

    @property
    def clock_excess(self) -> float | None:
        """How much more clock times array gives than the documented rate of a core."""
        return None if self.clock_flops is None else self.clock_flops / self.core_flops - 1


def core_sum(key: str, dtype: str) -> Comparison:
    """Cores times the rate of one, against the chip; and that rate against clock times array.

    >>> core_sum("trainium1", "bf16").chip_excess > 0.03
    True

    Raises: Unknown if the dtype has no documented rate on the core or on the chip.
    """
    chip, core = machine(key), machine(key, "core")
    clock = [
        figure(item)
        for item in _keys(key)
        if item.endswith("_from_clock")
        and _SAME.get(name := item.rpartition(".")[2].removesuffix("_from_clock"), name) == dtype
    ]
    return Comparison(
        key=key,
        dtype=dtype,
        cores=chip.cores,
        core_flops=core.rate(dtype),
        chip_flops=chip.rate(dtype),
        clock_flops=clock[0].to("FLOPS") if clock else None,
    )
