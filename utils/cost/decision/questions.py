"""The questionnaire: what has to be known of a workload before anyone can choose machines for it.

`QUESTIONS` is the one table; `Answers` holds one answer to each of its rows and checks itself.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from dataclasses import replace as replace_fields
from functools import cache
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from utils.cost.checks import is_number
from utils.facts import figure
from utils.facts.records import content, read_as

Kind = TypeVar("Kind")


class AnswerError(ValueError):
    """An answer that is none: which field, what was given and what is allowed."""


ANY, ELSEWHERE = "any", "elsewhere"
OFFERED = ("trn1.32xlarge", "trn2.3xlarge", "trn2.48xlarge")
"""Instances whose Capacity Block regions are known."""


@cache
def offers() -> Mapping[str, frozenset[str]]:
    """Region -> the generations of Trainium of which Capacity Blocks are listed there.

    >>> sorted(offers()["us-east-2"])
    ['trn1', 'trn2']
    """
    results: dict[str, set[str]] = {}
    for name in OFFERED:
        for region in re.findall(
            r"[a-z]{2}-[a-z]+-\d", figure(f"{name}.price.capacity_block").note
        ):
            results.setdefault(region, set()).add(name.partition(".")[0])
    return MappingProxyType({region: frozenset(results[region]) for region in sorted(results)})


@cache
def _data() -> Mapping[str, Any]:
    return content("decision_rule.yaml")


def read_rows(kind: type[Kind], section: str, key: str = "name") -> Mapping[str, Kind]:
    """The rows of a section of the rule's file by name, which stands in the field `key` too.

    Raises:
        ValueError: for a row that is not of that kind: what was found and what is allowed.
    """
    return MappingProxyType(
        {
            name: read_as(kind, {key: name, **row}, f"decision_rule.yaml, {section}, {name}")
            for name, row in _data()[section].items()
        }
    )


def read_list(kind: type[Kind], section: str) -> tuple[Kind, ...]:
    """The rows of a section of the rule's file that have no names. Raises ValueError."""
    where = f"decision_rule.yaml, {section}"
    return tuple(read_as(kind, row, where) for row in _data()[section])


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of the questionnaire.

    topic: rows of one topic are asked as one question. allowed: the answers, or () for a number
    from `low` to `high` in `unit`. why: why it matters. sources: keys of facts, ids of claims.
    """

    field: str
    topic: str
    asks: str
    why: str
    sources: tuple[str, ...]
    allowed: tuple[str, ...] = ()
    low: int | float = 0
    high: int | float = math.inf
    unit: str = ""
    whole: bool = False

    def says_allowed(self) -> str:
        """What is allowed, in words."""
        if self.allowed:
            return ", ".join(map(repr, self.allowed))
        kind = "a whole number" if self.whole else "a number"
        return f"{kind} from {self.low:g} to {self.high:,.10g} {self.unit}"

    def check(self, value: object) -> None:
        """Raises AnswerError with the field, the value and what is allowed."""
        if self.allowed:
            good = isinstance(value, str) and value in self.allowed
        else:
            good = is_number(value) and self.low <= value <= self.high
            good = good and not (self.whole and isinstance(value, float))
        if not good:
            raise AnswerError(
                f"{self.field}: {value!r} is not an answer; allowed: {self.says_allowed()}"
            )


TRAINING = ("pre-training", "fine-tuning")
INFERENCE = ("batch inference", "online inference")

QUESTIONS: Mapping[str, Question] = MappingProxyType(
    {
        name: replace(row, allowed=(ANY, *offers(), ELSEWHERE)) if name == "region" else row
        for name, row in read_rows(Question, "questions", "field").items()
    }
)
KERNELS, SHAPES = QUESTIONS["kernels"].allowed, QUESTIONS["shapes"].allowed
"""Kernels and shapes stand in the order of the work they make."""
UNSURE = {"capacity": "not asked yet", "managed": "not tried", "gate": "by hand"}
"""Answers that leave something to find out."""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """One answer to each row of `QUESTIONS`.

    Raises:
        AnswerError: for an answer that is not allowed, or two that contradict each other.
    """

    task: str
    architecture: str
    framework: str
    kernels: str
    shapes: str
    runs_per_year: float
    spend_per_year: float
    deadline_weeks: float
    engineers: int
    experience: str
    region: str
    capacity: str
    gate: str
    managed: str

    def __post_init__(self) -> None:
        for name, row in QUESTIONS.items():
            row.check(getattr(self, name))
        if self.framework == "vLLM" and self.training:
            raise AnswerError(
                f"framework: 'vLLM' serves models and does not train them; allowed for the task"
                f" {self.task!r}: any other framework, or another task: {', '.join(INFERENCE)}"
            )

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> "Answers":
        """Answers from a file or a form. Raises AnswerError for names that lack or are unknown."""
        known = [field.name for field in fields(cls)]
        if unknown := [name for name in given if name not in known]:
            raise AnswerError(f"{unknown[0]}: no such question; allowed: {', '.join(known)}")
        if missing := [name for name in known if name not in given]:
            raise AnswerError(
                f"{missing[0]}: no answer; allowed: {QUESTIONS[missing[0]].says_allowed()}"
            )
        return cls(**given)

    @property
    def training(self) -> bool:
        """Whether it trains a model; otherwise it runs one."""
        return self.task in TRAINING

    @property
    def generations(self) -> frozenset[str]:
        """Generations of Trainium listed in the region, as Capacity Blocks."""
        if self.region == ANY:
            return frozenset().union(*offers().values())
        return offers().get(self.region, frozenset())

    def changed(self, **given: Any) -> "Answers":
        """The same with other answers. Raises AnswerError."""
        if unknown := [name for name in given if name not in QUESTIONS]:
            raise AnswerError(f"{unknown[0]}: no such question; allowed: {', '.join(QUESTIONS)}")
        return replace_fields(self, **given)

    def others(self) -> Iterator[tuple[str, str]]:
        """Every single change to another allowed word: field and value, without impossible ones."""
        for name, row in QUESTIONS.items():
            for value in row.allowed:
                if value != getattr(self, name):
                    try:
                        self.changed(**{name: value})
                    except AnswerError:
                        continue
                    yield name, value
