"""The constants of the model for one target, in nanoseconds: from
`utils/facts/data/nki_timing.yaml` and the facts of the chip. No other module of `timing` holds a
number about hardware.
"""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from utils.facts import figure
from utils.nki.simulator.enums import engine
from utils.nki.simulator.target import Target, target

FILE = Path(__file__).parents[3] / "facts" / "data" / "nki_timing.yaml"
GIGA = 1e9
"""Nanoseconds of a second; a rate in B/s over it is one in B/ns."""


@functools.cache
def table() -> dict[str, dict[str, Any]]:
    """All entries of the file by name: value, unit, tag, source, note."""
    content = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return {
        name: {**entry, "url": content["sources"][entry["source"]]["url"]}
        for name, entry in content["constants"].items()
    }


@dataclass(frozen=True)
class Constants:
    """What the model needs to know of a target. Times in ns, rates in B/ns.

    clock: cycles per ns of each engine. latency: from the end of an instruction on an engine until
    its result can be read. semaphore: more of it where the reader, which counts, is another engine.
    vector_access: what the Vector Engine needs to begin to read a second tile, where AWS publishes
    the time of an access (trn1 only); the first one's is hidden.
    """

    clock: dict[engine, float]
    latency: dict[engine, float]
    semaphore: dict[engine, float]
    vector_access: float
    fast_weight_load: float
    weight_gap: float
    fp32_loads: float
    table_load: float
    warm_up: float
    cold_rate: float
    cold_below: float
    dma_engines: int
    dma_rate: float
    descriptor: float
    hardware_descriptors: float
    software_descriptors: float
    runtime_descriptors: float
    dma_start: float
    dma_stagger: float
    dma_done: float
    dma_transpose_from_hbm: float
    dma_transpose_on_chip: float
    barrier: float
    window: int
    has_generators: bool
    shared_ports: bool


@functools.cache
def constants(name: str) -> Constants:
    """The constants of a target.

    >>> constants("trn2").dma_engines
    16
    """
    on: Target = target(name)

    access = figure(f"{on.chip}.on_chip.sbuf_latency_cycles")

    def value(key: str) -> float:
        result = table()[key]["value"]
        return result[on.name] if isinstance(result, dict) else result

    clock = {which: hz / GIGA for which, hz in on.clocks.items()}
    clock[engine.sync] = clock[engine.dma] = clock[engine.scalar]
    cycles = {
        which: value(f"{which.name}_latency")
        for which in (engine.tensor, engine.vector, engine.scalar, engine.gpsimd)
    }
    latency = {which: count / clock[which] for which, count in cycles.items()}
    latency[engine.sync] = latency[engine.dma] = 0.0
    has_generators = on.generation > 2
    start = value("dma_start") if has_generators else figure(f"{on.chip}.dma.latency").to("ns")
    same = (
        "fast_weight_load", "table_load", "warm_up", "cold_rate", "cold_below", "descriptor",
        "hardware_descriptors", "software_descriptors", "runtime_descriptors", "dma_stagger",
        "dma_done", "dma_transpose_from_hbm", "dma_transpose_on_chip",
    )  # fmt: skip
    return Constants(
        clock=clock,
        latency=latency,
        semaphore={which: value("semaphore") / rate for which, rate in clock.items()},
        dma_engines=on.dma_engines,
        dma_rate=on.dma_bytes_per_s / GIGA,
        dma_start=start,
        barrier=value("barrier") / clock[engine.gpsimd],
        window=int(value("window")),
        vector_access=(access.value or 0) / clock[engine.vector],
        weight_gap=value("weight_gap") / clock[engine.tensor],
        fp32_loads=value("fp32_loads"),
        has_generators=has_generators,
        shared_ports=not has_generators,
        **{key: value(key) for key in same},
    )
