"""The decision rule: one table, `ROWS`, read from top to bottom, and the risks of its verdict.

First the vetoes: each closes Trainium, the GPU or both, whatever else is said. Then the money and
then the preferences: each row that holds is a number of votes for Trainium (+) or for the GPU (-).
The votes and the thresholds are judgements: `JUDGEMENTS` explains them, `adjust()` changes them.

The rows stand in `utils/facts/data/decision_rule.yaml`, each with the condition under which it
holds: values of a `Case`, compared by `holds`.
"""

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from utils.cost.decision.effort import price_of_trying, roughly, weeks_needed
from utils.cost.decision.evidence import Evidence, evidence
from utils.cost.decision.findings import NOTHING, Seen
from utils.cost.decision.judgements import Values
from utils.cost.decision.questions import QUESTIONS, Answers, read_list, read_rows
from utils.cost.decision.saving import Saving
from utils.facts import figure

TRAINIUM, GPU = "trainium", "gpu"
BOTH = frozenset({TRAINIUM, GPU})
TRANSFORMERS = ("dense transformer", "mixture of experts")
NO_PATH = ("TensorFlow", "other")
NATIVE = ("PyTorch eager", "torch.compile")
KINDS = ("capacity", "lock-in", "support", "skills", "price drift")
"""Kinds of risks."""


@dataclass(frozen=True)
class Case:
    """What the rows look at: answers as the audit leaves them, and the saving if one is known."""

    answers: Answers
    saving: Saving | None
    values: Values
    audited: Seen = NOTHING

    def value_of(self, name: str) -> Any:
        """The judgement, the answer or the property of that name."""
        if name in self.values:
            return self.values[name]
        return getattr(self.answers if name in QUESTIONS else self, name)

    @cached_property
    def weeks(self) -> float:
        """Weeks by the calendar of port and pilot."""
        return weeks_needed(self.answers, self.values, self.audited)

    @cached_property
    def price(self) -> float:
        """Money that port and pilot cost in pay."""
        return price_of_trying(self.answers, self.values, self.audited)

    @property
    def weeks_with_slack(self) -> float:
        """Weeks of port and pilot with some room for a slip."""
        return self.values["slack"] * self.weeks

    @property
    def price_text(self) -> str:
        """The price in two digits."""
        return roughly(self.price)

    @property
    def weeks_text(self) -> str:
        """The weeks in two digits."""
        return roughly(self.weeks)

    @property
    def hoped(self) -> float:
        """The most that volume and the vendor's best figure let one hope to save in the time."""
        share = self.values["best_saving"] * self.values["payback_years"]
        return share * self.answers.spend_per_year

    @property
    def worth(self) -> bool:
        """Whether the saving is large enough to keep a second platform for."""
        return (
            self.saving is not None
            and self.saving.middle >= self.values["least_saving"]
            and self.saving.amount >= self.values["least_amount"]
        )

    @property
    def shown(self) -> str:
        """What is known of the saving, in words."""
        if self.saving is None:
            return "no cost comparison was given"
        return (
            f"{self.saving.middle:.0%} in the middle, and above zero in"
            f" {self.saving.probability:.0%} of the draws"
        )

    @property
    def compared(self) -> bool:
        """Whether costs were compared."""
        return self.saving is not None

    @property
    def probability(self) -> float | None:
        """That Trainium is the cheaper one; None if costs were not compared."""
        return self.saving.probability if self.saving else None

    @property
    def probability_of_gpu(self) -> float | None:
        """That the GPU is the cheaper one; None if costs were not compared."""
        return 1 - self.saving.probability if self.saving else None

    @property
    def saving_shown(self) -> bool:
        """Whether Trainium is probably cheaper, by enough to pay for a second platform."""
        likely = Limit(at_least="leaning_probability")
        return likely.allows(self.probability, self) and self.worth

    @property
    def clearly_dearer(self) -> bool:
        """Whether money is clear against Trainium: by its chance, or by its size where it leans and
        a GPU can be had instead.
        """
        if self.saving is None:
            return False
        if self.saving.probability <= 1 - self.values["clear_probability"]:
            return True
        likely = self.saving.probability <= 1 - self.values["leaning_probability"]
        much = self.saving.middle <= -self.values["least_saving"]
        return likely and much and self.answers.capacity != "Trainium only"

    @property
    def path(self) -> str:
        """The software that runs it from here on; PyTorch/XLA is ported to TorchNeuron."""
        return {"vLLM": "vLLM Neuron", "JAX": "JAX on Neuron"}.get(
            self.answers.framework, "TorchNeuron"
        )

    @property
    def only_older(self) -> bool:
        """Whether the region lists Trainium, but no generation on which `path` runs."""
        listed, framework = self.answers.generations, self.answers.framework
        return bool(listed) and "trn2" not in listed and framework not in (*NO_PATH, "JAX")

    @property
    def generations(self) -> frozenset[str]:
        """Generations of Trainium on which the code runs today, or its port will."""
        older = self.answers.framework == "JAX" or (
            self.answers.framework == "PyTorch/XLA" and not self.answers.training
        )
        return frozenset({"trn1", "trn2"} if older else {"trn2"})

    @property
    def runs_in_region(self) -> bool:
        """Whether the region lists a generation on which it runs."""
        return bool(self.answers.generations & self.generations)

    @property
    def recipe(self) -> bool:
        """Whether the vendor keeps recipes for this kind of work."""
        if self.answers.architecture not in TRANSFORMERS:
            return False
        trains = self.answers.task == "pre-training" and self.answers.framework in NATIVE
        return trains or self.answers.framework == "vLLM"


class Limit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"other_than": "not"}):
    """What a value of a case may be: other than some, or within the values of that name: a
    judgement, an answer or a property of the case. What is not known is within no limit.
    """

    other_than: str | list[str] | None = None
    at_least: str | None = None
    at_most: str | None = None
    above: str | None = None
    below: str | None = None

    def allows(self, value: Any, case: Case) -> bool:
        """Whether a value of the case is within."""
        if self.other_than is not None:
            return not _is_one_of(value, self.other_than)
        limits = (
            (operator.ge, self.at_least),
            (operator.le, self.at_most),
            (operator.gt, self.above),
            (operator.lt, self.below),
        )
        return value is not None and all(
            compare(value, case.value_of(name)) for compare, name in limits if name is not None
        )


Condition = Mapping[str, Limit | list[str] | str | int | bool]
"""Name of a value of the case -> the value that it has, one of several, or a limit. All must hold;
an empty condition always holds.
"""


def holds(when: Condition, case: Case) -> bool:
    """Whether a condition holds for a case."""
    for name, wanted in when.items():  # a loop: a search for flips asks some hundred thousand times
        value = case.value_of(name)
        if isinstance(wanted, Limit):
            if not wanted.allows(value, case):
                return False
        elif not _is_one_of(value, wanted):
            return False
    return True


def _is_one_of(value: Any, wanted: list[str] | str | int | bool) -> bool:
    return value in wanted if isinstance(wanted, list) else value == wanted


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule. closes: what it rules out (a veto). votes: for Trainium (+) or the GPU (-).
    holds_back: with it, two machines that can both be had are at most "either", not "trainium".

    stage: "veto", "money" or "preference". when: under which condition it holds. says: the reason,
    with fields of the case. sources: keys of `evidence`. judged: whether it holds by a threshold or
    an estimate of ours rather than by a fact or an answer alone.
    """

    name: str
    stage: str
    when: dict[str, Limit | list[str] | str | int | bool]
    says: str
    sources: tuple[str, ...]
    closes: frozenset[str] = frozenset()
    votes: int = 0
    holds_back: bool = False

    @property
    def speaks(self) -> str:
        """What it does, in words: "closes both", "+2", "at most either"."""
        if self.closes:
            return f"closes {'both' if len(self.closes) > 1 else ''.join(self.closes)}"
        return "at most either" if self.holds_back else f"{self.votes:+d}"

    @property
    def judged(self) -> bool:
        """Whether a number of ours stands behind it."""
        return self.stage != "veto" or any(key.startswith("judgement:") for key in self.sources)

    def reason(self, case: Case) -> str:
        """What it says of a case for which it holds."""
        return self.says.format(case=case, answers=case.answers, saving=case.saving)


ROWS: tuple[Row, ...] = tuple(read_rows(Row, "rules").values())


@dataclass(frozen=True)
class Outcome:
    """What the rows give: the verdict, the rows that hold, what is still open, and the votes."""

    verdict: str
    rows: tuple[Row, ...]
    open: frozenset[str]
    votes: int


def outcome(case: Case, rows: tuple[Row, ...] = ROWS) -> Outcome:
    """Read the table.

    What no veto closes is open. Two open: the votes decide, and without a lead it is either. One
    open: it is that one; but where only Trainium is, and the votes speak against it, neither.
    A row that holds back turns "trainium" into "either" as long as both are open.
    """
    holding = tuple(row for row in rows if holds(row.when, case))
    left = BOTH.difference(*(row.closes for row in holding))
    votes, lead = sum(row.votes for row in holding), case.values["lead"]
    match sorted(left):
        case []:
            verdict = "neither"
        case [only] if only == GPU:
            verdict = GPU
        case [_]:
            verdict = TRAINIUM if votes > -lead else "neither"
        case _:
            back = any(row.holds_back for row in holding)
            ahead = "either" if back else TRAINIUM
            verdict = ahead if votes >= lead else GPU if votes <= -lead else "either"
    return Outcome(verdict, holding, left, votes)


@dataclass(frozen=True)
class Risk:
    """One risk. kind: one of `KINDS`. source: the evidence for it, with its date."""

    kind: str
    text: str
    mitigation: str
    source: Evidence


class _RiskRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: str
    verdicts: tuple[str, ...]
    text: str
    mitigation: str
    source: str
    when: dict[str, Limit | list[str] | str | int | bool] = {}


_RISKS = read_list(_RiskRow, "risks")


def growth(instance: str) -> float:
    """The newest Capacity Block price over the oldest known one of the same year.

    >>> growth("trn2.48xlarge")
    1.0
    """
    now = figure(f"{instance}.price.capacity_block")
    before = [price for price in now.history if price.date.year == now.date.year]
    first = min(before, key=lambda price: price.date) if before else now
    return now.number / first.number


def risks(case: Case, verdict: str) -> tuple[Risk, ...]:
    """The risks that go with a verdict."""
    block = figure("p6-b200.48xlarge.price.capacity_block")
    first = min(price.date for price in (*block.history, block))
    words = {
        "months": round((block.date - first).days / 30.44),
        "month": f"{block.date:%B %Y}",
        "b200": growth("p6-b200.48xlarge") - 1,
        "trn2": growth("trn2.48xlarge") - 1,
    }
    return tuple(
        Risk(row.kind, row.text.format(**words), row.mitigation, evidence(row.source))
        for row in _RISKS
        if verdict in row.verdicts and holds(row.when, case)
    )
