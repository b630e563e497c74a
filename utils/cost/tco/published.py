"""What others published: costs of Trainium or Inferentia beside those of GPUs, as data."""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from utils.cost.tco.fields import InputError, nearest
from utils.facts.records import content


@dataclass(frozen=True)
class Side:
    """One side of a case. price: USD/h of an instance. throughput: units/s of an instance. hours:
    of one run, instead. stated_cost: USD for `per` units. None is what is not given.
    """

    instance: str
    purchase: str | None = None
    price: float | None = None
    throughput: float | None = None
    hours: float | None = None
    instances: float = 1
    stated_cost: float | None = None


@dataclass(frozen=True)
class Case:
    """A published comparison; see `utils/facts/data/tco_cases.yaml` for what each entry means.

    saving: lowest and highest saving stated, as shares of the baseline's cost; None if none is. An
    "up to" is its high end alone. source: an address.
    """

    name: str
    about: str
    work: str
    subject: Side
    baseline: Side
    saving: tuple[float, float] | None
    up_to: bool
    unit: str
    per: float
    differs: tuple[str, ...]
    missing: tuple[str, ...]
    source: str
    status: str
    date: datetime.date
    note: str

    @property
    def stated(self) -> str:
        """The cost of the subject over the baseline's, as stated, in words."""
        if self.saving is None:
            return "-"
        low, high = (1 - each for each in reversed(self.saving))
        if self.up_to:
            return f"down to {low:.2f}"
        return f"{low:.2f}" if low == high else f"{low:.2f} to {high:.2f}"


@cache
def cases() -> Mapping[str, Case]:
    """All published cases, by name."""
    known = content("tco_cases.yaml")
    return MappingProxyType(
        {name: _case(name, entry, known["sources"]) for name, entry in known["cases"].items()}
    )


def case(name: str) -> Case:
    """The case of that name. Raises InputError with the nearest names."""
    if name not in cases():
        raise InputError("case", repr(name), nearest(name, cases()))
    return cases()[name]


def _case(name: str, entry: Mapping[str, Any], sources: Mapping[str, Any]) -> Case:
    low, high = entry["stated_low"], entry["stated_high"]
    return Case(
        name=name,
        subject=Side(**entry["subject"]),
        baseline=Side(**entry["baseline"]),
        saving=None if high is None else (high if low is None else low, high),
        up_to=low is None and high is not None,
        unit=entry.get("unit", "run"),
        per=float(entry.get("per", 1)),
        differs=tuple(entry["differs"]),
        missing=tuple(entry["missing"]),
        source=sources[entry["source"]]["url"],
        **{key: entry[key] for key in ("about", "work", "status", "date", "note")},
    )
