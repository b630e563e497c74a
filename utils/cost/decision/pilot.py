"""A pilot that fills itself: what earlier results say about each of its steps and checks.

`pilot_of(decision, Results(progress=..., audit=...))` takes whatever there is already; what is not
given stays open. The progress record is that of `utils.course.progress.entries()`.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from utils.audit import Report
from utils.cost.checks import check_kind, is_number
from utils.cost.decision.findings import OWN, REPORT
from utils.cost.decision.plan import LISTS, Step, checklist, steps
from utils.cost.decision.verdict import Decision
from utils.cost.tco.comparison import Warned
from utils.course.catalog import CatalogError, exercise
from utils.facts.tables import markdown as table

OPEN, DONE, FAILED = "open", "done", "failed"
SYMBOLS = {OPEN: "○", DONE: "●", FAILED: "✕"}
Progress = Mapping[str, Mapping[str, Any]]


WARNED = {
    "work": "same-work",
    "quality": "same-quality",
    "precision": "same-quality",
    "region": "same-terms",
    "purchase": "same-terms",
    "price": "same-terms",
    "old price": "same-terms",
    "date": "same-terms",
    "peak for measured": "measured",
    "throughput of others": "measured",
    "generation": "measured",
    "vendor claim": "vendor",
}
"""Kind of a warning of `utils.cost.tco.comparison` -> the check of the benchmark list that it
fails."""

SILENT = frozenset(WARNED.values()) - {"same-quality"}
"""Checks that are done where no warning speaks against them. That both are held to one score, which
a scenario says, is an intention: only somebody who compared the scores can say that they reach it.
"""


class Parities(Protocol):
    """What is read of a result of `utils.xla.parity.compare`: the quantities outside tolerance."""

    @property
    def outside(self) -> tuple[str, ...]:
        """Names of the quantities outside tolerance."""


@dataclass(frozen=True)
class Throughput:
    """Units per second measured on a device, and those at which both options cost the same.

    Raises:
        ValueError: for numbers that are none, or a machine that is not the one to be bought.
    """

    measured: float
    needed: float
    unit: str
    machine: str

    def __post_init__(self) -> None:
        for name in ("measured", "needed"):
            value = getattr(self, name)
            if not is_number(value) or value <= 0:
                raise ValueError(f"{name}: {value!r} is not allowed; allowed: a number above 0")
        if not self.machine.strip() or self.machine.lower().startswith("cpu"):
            raise ValueError(
                f"machine: {self.machine!r} is not allowed; allowed: the instance measured, as the"
                " time of a CPU says nothing about Trainium"
            )


def doubts(warnings: Iterable[Warned]) -> dict[str, str]:
    """Check of the benchmark list -> what was warned of, at most twice in full."""
    by_check: dict[str, list[str]] = {}
    for warning in warnings:
        _check_keys("warnings", [warning.kind], WARNED)
        by_check.setdefault(WARNED[warning.kind], []).append(warning.text)
    return {
        key: "; ".join(texts[:2]) + (f"; {len(texts) - 2} more" if len(texts) > 2 else "")
        for key, texts in by_check.items()
    }


@dataclass(frozen=True)
class Item:
    """One line of the pilot. part: key of a step, or one of the lists. state: open, done, failed.

    result: what was found, with its number; for an open one what is known so far, or "".
    reason: why a check is on its list.
    """

    key: str
    part: str
    asks: str
    state: str
    result: str
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Results:
    """What is known of a pilot so far; all that is not given stays open.

    progress: the learner's record: exercise id to {"points", "state", ...}.
    audit, parity, throughput: results of the instruments; parity is that of XLA on the CPU.
    warnings: those of `utils.cost.tco.comparison.warnings`, for a comparison that was looked at:
        the checks that they are about fail, the others of `SILENT` are done.
    measured: key of a step to its number, measured where the step says.
    notes: key of a check to what was found, which makes it done. failures: the same, failed.

    Raises:
        TypeError: for what is no audit or no record.
        ValueError: for keys that name no step or check, one that is both done and failed, or an
            empty note.
    """

    progress: Progress | None = None
    audit: Report | None = None
    parity: Parities | None = None
    throughput: Throughput | None = None
    warnings: Iterable[Warned] | None = None
    measured: Mapping[str, float] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_kind(
            "progress", self.progress, Mapping | None, "utils.course.progress.entries(), or None"
        )
        check_kind("audit", self.audit, Report | None, REPORT)
        for key, value in self.measured.items():
            if not is_number(value) or value < 0:
                raise ValueError(
                    f"measured: {value!r} for {key!r} is not allowed; allowed: 0 or more"
                )
        checks = [check.key for name in LISTS for check in checklist(name)]
        _check_keys("measured", self.measured, steps())
        for name, texts in (("notes", self.notes), ("failures", self.failures)):
            _check_keys(name, texts, checks)
            if empty := [key for key, text in texts.items() if not str(text).strip()]:
                raise ValueError(
                    f"{name}: {empty[0]!r} is empty; allowed: what was found, in words"
                )
        if both := sorted(set(self.notes) & set(self.failures)):
            raise ValueError(f"notes and failures: {both[0]!r} is in both; allowed: one of them")

    @property
    def numbers(self) -> dict[str, float]:
        """Key of a step to its number: those measured, and those that the instruments give."""
        numbers = {key: float(value) for key, value in self.measured.items()}
        if self.throughput is not None:
            numbers.setdefault("measure", self.throughput.measured / self.throughput.needed)
        if self.audit is not None and not _own_kernels(self.audit) and not self.audit.broken:
            numbers.setdefault("audit", 0.0)
        return numbers

    @property
    def about(self) -> dict[str, str]:
        """What the instruments add to the number of their step."""
        about = {}
        if self.audit is not None:
            about["audit"] = (
                f"{_own_kernels(self.audit)} kernels of one's own, {self.audit.counts['error']}"
                f" errors and {self.audit.counts['warning']} warnings in {self.audit.files}"
                f" file{'s' * (self.audit.files != 1)},"
                f" {len(self.audit.broken)} unread"
            )
        if self.throughput is not None:
            about["measure"] = (
                f"{self.throughput.measured:,.6g} of {self.throughput.needed:,.6g}"
                f" {self.throughput.unit} on {self.throughput.machine}"
            )
        return about

    def checks(self) -> list["Item"]:
        """The checks of both lists, each with its state. A note overrules a warning."""
        notes, failures = dict(self.notes), dict(self.failures)
        if self.warnings is not None:
            against = doubts(self.warnings)
            notes = {key: "no warning" for key in SILENT if key not in against} | notes
            failures = {key: text for key, text in against.items() if key not in notes} | failures
            notes = {key: text for key, text in notes.items() if key not in failures}
        items = []
        for name in LISTS:
            for row in checklist(name):
                state = DONE if row.key in notes else FAILED if row.key in failures else OPEN
                text = notes.get(row.key) or failures.get(row.key) or ""
                items.append(Item(row.key, row.list, row.asks, state, text, row.reason))
        return items


@dataclass(frozen=True, repr=False)
class Pilot:
    """The plan of one workload: steps with their weeks, and every item with its state."""

    steps: tuple[Step, ...]
    weeks: Mapping[str, float]
    items: tuple[Item, ...]
    blocked: str = ""

    @property
    def total_weeks(self) -> float:
        """Weeks by the calendar of all steps."""
        return sum(self.weeks.values())

    def of(self, part: str) -> tuple[Item, ...]:
        """The items of a step or a list."""
        return tuple(item for item in self.items if item.part == part)

    def state(self, part: str) -> str:
        """Failed if one item failed, done if all are done, else open."""
        states = {item.state for item in self.of(part)}
        return FAILED if FAILED in states else DONE if states == {DONE} else OPEN

    @property
    def next(self) -> Step | None:
        """The first step that is not done; None if all are."""
        return next((step for step in self.steps if self.state(step.key) != DONE), None)

    @property
    def failed(self) -> tuple[Item, ...]:
        """The items that failed, in order."""
        return tuple(item for item in self.items if item.state == FAILED)

    def __repr__(self) -> str:
        lines = [self.blocked] if self.blocked else []
        for step in self.steps:
            state = self.state(step.key)
            weeks = self.weeks[step.key]
            lines.append(f"{SYMBOLS[state]} {step.title} ({weeks:.1f} weeks): {step.exit}")
            lines += [f"    {SYMBOLS[i.state]} {_asked_and_result(i)}" for i in self.of(step.key)]
        for name in LISTS:
            done = sum(item.state == DONE for item in self.of(name))
            lines.append(f"{SYMBOLS[self.state(name)]} {name}: {done} of {len(self.of(name))} done")
        return "\n".join(lines)

    def _repr_markdown_(self) -> str:
        listed = [
            (
                SYMBOLS[self.state(item.key)],
                item.title,
                f"{self.weeks[item.key]:.1f}",
                item.owner,
                item.exit,
                item.stop,
                item.done_by,
            )
            for item in self.steps
        ]
        head = ("", "step", "weeks", "who", "ends when", "stop if", "in this course")
        parts = [self.blocked, table(head, listed, right=(2,))]
        steps = {item.key: item for item in self.steps}
        for part in (*steps, *LISTS):
            if part in steps:
                step = steps[part]
                parts.append(f"**{step.title}.** Needs {step.enter}. Then {step.do}.")
            rows = [(SYMBOLS[i.state], i.asks, i.result, i.reason) for i in self.of(part)]
            parts.append(table((f"{part}: {self.state(part)}", "", "found", "why"), rows))
        return "\n\n".join(filter(None, parts))


def pilot_of(decision: Decision, results: Results | None = None) -> Pilot:
    """The pilot of a decision, as far as it is known.

    Raises:
        TypeError: for what is no decision or no record of results.
    """
    makes = "what utils.cost.decision.decide(answers, ...) returns"
    check_kind("decision", decision, Decision, makes)
    check_kind("results", results, Results | None, "utils.cost.decision.Results(...), or None")
    results = results or Results()
    plan, numbers, about, checks = steps(), results.numbers, results.about, results.checks()
    contract = [check for check in checks if check.part == "contract"]
    states = {check.state for check in contract}
    if FAILED in states or OPEN not in states:
        numbers["sign"] = sum(check.state != DONE for check in contract)
    items: list[Item] = []
    for key, step in plan.items():
        items += [_practice(step, name, results.progress) for name in step.practice]
        if key == "sign":
            items.append(_again(decision, "measure" in numbers))
        if key == "parity":
            items.append(_here(results.parity))
        items.append(_number(step, numbers.get(key), about.get(key, "")))
    weeks = {key: step.weeks for key, step in plan.items()} | {"port": decision.port_weeks}
    return Pilot(tuple(plan.values()), weeks, (*items, *checks), _blocking_reason(decision))


def _asked_and_result(item: Item) -> str:
    return f"{item.asks} -> {item.result}" if item.result else item.asks


def _check_keys(name: str, given: Iterable[str], known: Iterable[str]) -> None:
    if wrong := [key for key in given if key not in known]:
        raise ValueError(f"{name}: {wrong[0]!r} is not allowed; allowed: {', '.join(known)}")


def _own_kernels(audit: Report) -> int:
    return sum(finding.rule in OWN for finding in audit.at_least("warning"))


def _number(step: Step, value: float | None, text: str) -> Item:
    """The number that ends a step."""
    if value is None:
        return Item("exit", step.key, step.exit, OPEN, text)
    result = f"{value:.3g}" + (f" ({text})" if text else "")
    return Item("exit", step.key, step.exit, DONE if step.met(value) else FAILED, result)


def _here(parity: Parities | None) -> Item:
    """The comparison that needs no device. It does not end the step: a device rounds by itself."""
    asks = "the same values on XLA's CPU device, before any Trainium is paid for"
    if parity is None:
        return Item("here", "parity", asks, OPEN, "")
    outside = ", ".join(parity.outside)
    return Item("here", "parity", asks, FAILED if outside else DONE, outside or "all within")


def _practice(step: Step, name: str, progress: Progress | None) -> Item:
    """Whether the exercise that trains for a step is passed; one that was tried stays open."""
    asks = f"practised in {name}"
    entry = (progress or {}).get(name)
    if not entry:
        return Item(name, step.key, asks, OPEN, "")
    try:
        whole = exercise(name).points
    except CatalogError:  # a learner may have deleted the lab
        whole = math.inf if entry.get("state") != "passed" else entry["points"]
    state = DONE if entry["points"] >= whole else OPEN
    of = f" of {whole:g}" if math.isfinite(whole) else ""
    return Item(name, step.key, asks, state, f"{entry['points']:g}{of} points")


def _again(decision: Decision, measured: bool) -> Item:
    """The decision of the last step. An "either" from before the device was measured is what the
    pilot is for, and has not failed.
    """
    asks = "the decision, with an audit and a cost comparison, is Trainium"
    result = f"{decision.verdict}, confidence {decision.confidence}"
    undecided = decision.verdict == "either" and not measured
    if decision.saving is None or not decision.audited.files or undecided:
        return Item("decision", "sign", asks, OPEN, result)
    return Item(
        "decision", "sign", asks, DONE if decision.verdict == "trainium" else FAILED, result
    )


def _blocking_reason(decision: Decision) -> str:
    if decision.verdict in ("gpu", "neither"):
        return f"No pilot now. {decision.headline}; these are the steps if that changes"
    late = decision.port_weeks + decision.pilot_weeks - decision.used.deadline_weeks
    return f"The plan ends {late:.0f} weeks after the deadline" if late > 0 else ""
