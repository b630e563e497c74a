"""Published comparisons of Trainium or Inferentia with GPUs, computed again from their own inputs.

What a case gives is taken as it stands; a throughput is one measurement, which another day would
not repeat exactly; a price that is left out is looked up as of the case's day, with the range that
it had since. Nothing else is added: published costs are those of machines at work all the time,
without people, failures or compiling. What no price list has is lacking, by name, and not guessed.
"""

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from utils.cost.tco.fields import FIELDS, NEEDS, InputError, nearest
from utils.cost.tco.inputs import Input
from utils.cost.tco.scenario import Context, Option, Scenario
from utils.cost.tco.uncertainty import Comparison, compare
from utils.facts import figure, figures
from utils.facts.records import content
from utils.facts.tables import columns, markdown

SPREAD = 0.05
"""Share by which a throughput may differ when it is measured again: an assumption."""
ROUNDED = 0.005
"""Savings are published in whole percents."""
FOLLOWS, DIFFERS, LACKS, SILENT = (
    "follows", "does not follow", "cannot be computed", "nothing is stated",
)  # fmt: skip
SIDES = ("subject", "baseline")


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
        low, high = (1 - item for item in reversed(self.saving))
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


@dataclass(frozen=True, repr=False)
class Checked:
    """A case beside what the model computes from its inputs.

    lacking: inputs that neither the case nor a price list gives. looked_up: those that the case
    leaves out and a price list has. comparison: None if an input is lacking. otherwise: sides whose
    stated cost is not what their price and throughput give.
    """

    case: Case
    lacking: tuple[str, ...]
    looked_up: tuple[str, ...]
    comparison: Comparison | None
    otherwise: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """Whether the stated saving follows from the inputs: one of four verdicts."""
        if self.comparison is None:
            return LACKS
        if self.case.saving is None:
            return SILENT
        low, high = self.comparison.interval()
        stated_low, stated_high = self.case.saving
        meet = low <= stated_high + ROUNDED and stated_low - ROUNDED <= high
        return FOLLOWS if meet else DIFFERS

    @property
    def why(self) -> str:
        """The verdict, with what is lacking, looked up, or otherwise in the source."""
        results = [self.verdict]
        if self.lacking:
            results.append("lacks " + ", ".join(self.lacking))
        if self.comparison and self.looked_up:
            results.append("looked up: " + ", ".join(self.looked_up))
        if self.otherwise:
            results.append("stated cost is another: " + ", ".join(self.otherwise))
        return "; ".join(results)

    @property
    def computed(self) -> str:
        """The cost of the subject over the baseline's, as computed, in words."""
        if self.comparison is None:
            return "-"
        low, high = (1 - item for item in reversed(self.comparison.interval()))
        spread = "" if high - low < ROUNDED else f" ({low:.2f} to {high:.2f})"
        return f"{self.comparison.ratio:.2f}{spread}"

    def __repr__(self) -> str:
        return f"{self.case.name}: stated {self.case.stated}, computed {self.computed}: {self.why}"


HEAD = ("case", "stated", "computed", "verdict", "says", "source")


@dataclass(frozen=True)
class Table:
    """Cases beside what the model computes: cost of the subject over that of the baseline."""

    rows: tuple[Checked, ...]

    def _cells(self) -> Iterable[tuple[str, ...]]:
        for row in self.rows:
            case = row.case
            yield case.name, case.stated, row.computed, row.why, case.status, case.source

    def __repr__(self) -> str:
        return "\n".join(columns([HEAD, *self._cells()], indent=""))

    def _repr_markdown_(self) -> str:
        cells = ((*line[:-1], f"[read]({line[-1]})") for line in self._cells())
        return markdown(HEAD, cells, right=(1, 2))


def scenario(item: Case) -> Scenario:
    """The case as a scenario of two options, "subject" and "baseline".

    Raises: InputError that names the inputs that are lacking.
    """
    if lacking := _lacking(item):
        raise InputError(", ".join(lacking), "nothing", "what the source would have to give")
    # Counts and shares are one, all else is none.
    one = {name for name, field in FIELDS.items() if field.least == 1 or field.above is not None}
    plain = NEEDS["job"] - {"work", "price", "instances"}
    shared = {name: _as_it_is(name, float(name in one)) for name in sorted(plain)}
    shared["work"] = _as_it_is("work", item.per)
    return Scenario(
        name=item.name,
        title=item.name,
        about=item.about,
        kind="job",
        unit=item.unit,
        shared=shared,
        options={name: _option(item, getattr(item, name)) for name in SIDES},
    )


def check(item: Case) -> Checked:
    """What the model computes from the inputs of a case, beside what the case states."""
    lacking = _lacking(item)
    looked_up = tuple(
        f"{name}.price" for name in SIDES
        if getattr(item, name).price is None and f"{name}.price" not in lacking
    )  # fmt: skip
    if lacking:
        return Checked(item, lacking, looked_up, None, ())
    result = compare(scenario(item), *SIDES)
    stated = {name: getattr(item, name).stated_cost for name in SIDES}
    otherwise = tuple(
        name for name, cost in stated.items()
        if cost and not 0.9 < cost / result.best[name].total < 1.1
    )  # fmt: skip
    return Checked(item, (), looked_up, result, otherwise)


def table(*names: str) -> Table:
    """Cases by name, or all, beside what the model computes from their inputs."""
    return Table(tuple(check(case(name)) for name in names or cases()))


def _lacking(item: Case) -> tuple[str, ...]:
    results = []
    for name in SIDES:
        side = getattr(item, name)
        if side.throughput is None and side.hours is None:
            results.append(f"{name}.throughput")
        if _price(item, side) is None:
            results.append(f"{name}.price")
    return tuple(results)


def _as_it_is(name: str, value: float) -> Input:
    note = "published costs are of the machines alone, at work all the time"
    return Input(value, value, value, FIELDS[name].unit, note=note)


def _speed(item: Case, side: Side) -> float:
    """Units per second of one instance."""
    if side.throughput:
        return side.throughput
    assert side.hours is not None, "what is lacking was refused before"
    return item.per / (side.hours * 3600 * side.instances)


def _option(item: Case, side: Side) -> Option:
    platform = "trainium" if side.instance.startswith(("trn", "inf")) else "gpu"
    # Hours that are the unit itself are no measurement.
    spread = 0.0 if item.unit == "hour" else SPREAD
    speed, price = _speed(item, side), _price(item, side)
    assert price is not None, "what is lacking was refused before"
    return Option(
        Context(platform, side.instance, "", side.purchase or "", "", ""),
        {
            "price": price,
            "units_per_second": Input(
                speed, speed * (1 - spread), speed * (1 + spread), "1/s", item.source, item.status,
                item.date, "measured once; the spread is assumed",
            ),
            "instances": _as_it_is("instances", float(side.instances)),
        },
    )  # fmt: skip


def _price(item: Case, side: Side) -> Input | None:
    """As the case gives it; else from the price list, of the day nearest to the case's, with the
    range of all days known; else from another case; else None.
    """
    if side.price is not None:
        return Input(side.price, side.price, side.price, "USD/h", item.source, item.status,
                     item.date, "as the case gives it")  # fmt: skip
    purchase = side.purchase or "on_demand"
    for key in (f"{side.instance}.price.{purchase}", f"{purchase}.{side.instance}.price"):
        if key in figures() and figure(key).value is not None:
            known = [figure(key), *figure(key).history]
            then = min(known, key=lambda one: abs(one.date - item.date))
            values = [float(one.number) for one in known]
            return Input(float(then.number), min(values), max(values), "USD/h", key, then.status,
                         then.date, f"not given; looked up, {purchase}")  # fmt: skip
    others = [
        Input(one.price, one.price, one.price, "USD/h", other.source, other.status, other.date,
              f"not given; as in {other.name}")
        for other in cases().values() for one in (other.subject, other.baseline)
        if (one.instance, one.purchase) == (side.instance, purchase) and one.price is not None
    ]  # fmt: skip
    return others[0] if others else None
