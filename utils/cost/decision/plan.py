"""The pilot as data: six steps, and the lists for a benchmark and a contract."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from utils.cost.decision.evidence import Evidence, evidence
from utils.facts.records import content

LISTS = ("benchmark", "contract")


@dataclass(frozen=True)
class Step:
    """One step of the pilot.

    enter: what must be there before. measure: the number that ends it, which may be `at_most` or
    must be `at_least`, in `unit`. weeks: planned, by the calendar; 0 for the port, whose weeks
    are estimated from the answers. stop: when to give up. done_by: lesson and instrument of this
    course. practice: its exercises that train for the step.
    """

    key: str
    title: str
    enter: str
    do: str
    measure: str
    unit: str
    owner: str
    weeks: float
    stop: str
    done_by: str
    practice: tuple[str, ...]
    source: Evidence
    at_most: float | None = None
    at_least: float | None = None

    @property
    def exit(self) -> str:
        """
        >>> steps()["port"].exit
        'graphs compiled after the warm-up: at most 0 graphs'
        """
        limit = (
            f"at most {self.at_most:g}" if self.at_least is None else f"at least {self.at_least:g}"
        )
        return f"{self.measure}: {limit} {self.unit}".rstrip()

    def met(self, value: float) -> bool:
        """Whether a measured number ends the step; not a number never does."""
        if self.at_most is not None:
            return value <= self.at_most
        return self.at_least is not None and value >= self.at_least


@dataclass(frozen=True)
class Check:
    """One line of a checklist. list: one of `LISTS`. reason: why it is on it."""

    key: str
    list: str
    asks: str
    reason: str
    source: Evidence


@cache
def _data() -> Mapping[str, Mapping[str, dict]]:
    return content("pilot.yaml")


@cache
def steps() -> Mapping[str, Step]:
    """The six steps, in order."""
    results = {}
    for key, row in _data()["steps"].items():
        fixed = {"source": evidence(row["source"]), "practice": tuple(row["practice"])}
        results[key] = Step(key=key, **(row | fixed | {"weeks": row["weeks"] or 0.0}))
    return MappingProxyType(results)


@cache
def checklist(name: str) -> tuple[Check, ...]:
    """The lines of one of `LISTS`. Raises KeyError for another name."""
    if name not in LISTS:
        raise KeyError(f"no list {name!r}; there are {', '.join(LISTS)}")
    return tuple(
        Check(key, name, row["asks"], row["reason"], evidence(row["source"]))
        for key, row in _data()[name].items()
    )
