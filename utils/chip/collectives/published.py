"""The model against what others measured: `compare()`, a ratio and an error for every point.

Nothing is fitted to the points that are compared: the model is built on facts. What software takes
to start a collective is not in the model and differs between programs by a factor of a thousand.
Where a series begins with a small message, that one stands for it: the point is left out, and to
the model of the others the start is added.
"""

import datetime
import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from utils.chip.collectives.cost import seconds
from utils.chip.collectives.fabrics import Fabric, Tier, fabric
from utils.facts.records import content

STATUSES = ("primary", "third-party")
SMALL_BYTES = 2**20
"""A message of this size or less takes mostly the time of its start."""


@dataclass(frozen=True)
class Series:
    """One measured collective on one group of ranks; see `utils/facts/data/collectives.yaml`.

    points: (bytes, seconds), ascending. members: of the group in each tier of the fabric.
    value: (bytes, number as published) of each point, in `quantity`. calibrates: a fact of the
    model comes from it.
    """

    name: str
    kind: str
    fabric: Fabric
    members: tuple[int, ...]
    points: tuple[tuple[float, float], ...]
    quantity: str
    value: tuple[tuple[float, float], ...]
    source: str
    url: str
    status: str
    date: datetime.date
    where: str
    inferred: str = ""
    note: str = ""
    calibrates: bool = False

    @property
    def ranks(self) -> int:
        """Members of the group in all tiers together."""
        return math.prod(self.members)


@dataclass(frozen=True)
class Compared:
    """A measured point beside the model.

    measured_s, modelled_s: seconds. started_s: modelled, with the start of the series' software
        where that is known, None for the point it was taken from. algorithm: that of the model.
    """

    series: Series
    size_bytes: float
    measured_s: float
    modelled_s: float
    started_s: float | None
    algorithm: str

    @property
    def ratio(self) -> float:
        """Modelled over measured: below 1 where reality is slower."""
        return self.modelled_s / self.measured_s

    @property
    def ratio_started(self) -> float | None:
        """The same with the start of the software; None for the point that this was taken from."""
        return None if self.started_s is None else self.started_s / self.measured_s


@cache
def series() -> Mapping[str, Series]:
    """All series by name."""
    read = content("collectives.yaml")
    return {entry["id"]: _series(entry, read["sources"]) for entry in read["series"]}


def _series(entry: Mapping[str, Any], sources: Mapping[str, Any]) -> Series:
    members = tuple(entry["members"])
    value = tuple((float(size), float(number)) for size, number in entry["points"])
    if "fabric" in entry:
        wiring = fabric(entry["fabric"], entry["nodes"])
    else:
        wiring = Fabric(entry["tiers"][0]["name"], tuple(map(_tier, entry["tiers"])))
    ranks = math.prod(members)
    return Series(
        name=entry["id"],
        kind=entry["kind"],
        fabric=wiring,
        members=members,
        points=tuple((size, _seconds(entry, size, number, ranks)) for size, number in value),
        quantity=entry["quantity"],
        value=value,
        url=sources[entry["source"]]["url"],
        date=sources[entry["source"]]["date"],
        **{key: entry[key] for key in ("source", "status", "where")},
        **{key: entry[key] for key in ("inferred", "note", "calibrates") if key in entry},
    )


def _tier(entry: Mapping[str, Any]) -> Tier:
    return Tier(
        entry["name"], entry["ranks"], entry["latency_us"] / 1e6, entry["gb_per_s"] * 1e9,
        entry["wiring"],
    )  # fmt: skip


def _seconds(entry: Mapping[str, Any], size: float, number: float, ranks: int) -> float:
    match entry["quantity"], entry["kind"]:
        case "us", _:
            return number / 1e6
        case "algbw", _:
            return size / (number * 1e9)
        case "busbw", "all-reduce":
            return 2 * (ranks - 1) / ranks * size / (number * 1e9)
    raise ValueError(
        f"{entry['id']}: {entry['quantity']} of {entry['kind']} is not a known measure"
    )


def compare(which: Iterable[Series] | None = None) -> tuple[Compared, ...]:
    """Every point beside the model. which: series, by default all but those that calibrate it."""
    results = []
    if which is None:
        which = (entry for entry in series().values() if not entry.calibrates)
    for item in which:
        taken = len(item.points) > 1 and item.points[0][0] <= SMALL_BYTES
        start = 0.0
        for place, (size, measured) in enumerate(item.points):
            model = seconds(item.kind, size, item.fabric, item.members)
            if place == 0 and taken:
                start = max(measured - model.seconds, 0.0)
            started = None if place == 0 and taken else model.seconds + start
            results.append(Compared(item, size, measured, model.seconds, started, model.algorithm))
    return tuple(results)


def error(ratio: float) -> float:
    """How far apart model and measurement are, as a factor of 1 or more, whichever is larger.

    >>> error(0.5), error(2.0)
    (2.0, 2.0)
    """
    return max(ratio, 1 / ratio)


@dataclass(frozen=True)
class Quality:
    """How good the model is for some points: number, median ratio, median and worst factor."""

    points: int
    ratio: float
    median: float
    worst: float


def quality(ratios: Iterable[float]) -> Quality:
    """Of modelled over measured."""
    known = sorted(ratios)
    return Quality(
        len(known),
        statistics.median(known),
        statistics.median(map(error, known)),
        max(map(error, known)),
    )
