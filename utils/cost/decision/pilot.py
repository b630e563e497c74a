"""A pilot that fills itself: what earlier results say about each of its steps and checks.

`pilot_of(decision, progress=..., audit=..., parity=...)` takes whatever there is already; what is
not given stays open. The progress record is that of `utils.course.progress.entries()`.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from utils.audit import Report
from utils.cost.decision.findings import OWN
from utils.cost.decision.plan import LISTS, Check, Step, checklist, steps
from utils.cost.decision.results import SILENT, Parities, Throughput, doubts
from utils.cost.decision.rule import Decision
from utils.cost.tco.comparison import Warned
from utils.course.catalog import CatalogError, exercise
from utils.facts.tables import markdown as table

OPEN, DONE, FAILED = "open", "done", "failed"
SYMBOLS = {OPEN: "○", DONE: "●", FAILED: "✕"}
Progress = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Item:
    """One line of the pilot. part: key of a step, or one of the lists. state: open, done, failed.

    found: what was found, with its number; for an open one what is known so far, or "". reason: why
    a check is on its list.
    """

    key: str
    part: str
    asks: str
    state: str
    found: str
    reason: str = ""


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
        return tuple(each for each in self.items if each.part == part)

    def state(self, part: str) -> str:
        """Failed if one item failed, done if all are done, else open."""
        states = {each.state for each in self.of(part)}
        return FAILED if FAILED in states else DONE if states == {DONE} else OPEN

    @property
    def next(self) -> Step | None:
        """The first step that is not done; None if all are."""
        return next((each for each in self.steps if self.state(each.key) != DONE), None)

    @property
    def failed(self) -> tuple[Item, ...]:
        """The items that failed, in order."""
        return tuple(each for each in self.items if each.state == FAILED)

    def __repr__(self) -> str:
        lines = [self.blocked] if self.blocked else []
        for each in self.steps:
            state = self.state(each.key)
            weeks = self.weeks[each.key]
            lines.append(f"{SYMBOLS[state]} {each.title} ({weeks:.1f} weeks): {each.exit}")
            lines += [f"    {SYMBOLS[i.state]} {_said_of(i)}" for i in self.of(each.key)]
        for name in LISTS:
            done = sum(each.state == DONE for each in self.of(name))
            lines.append(f"{SYMBOLS[self.state(name)]} {name}: {done} of {len(self.of(name))} done")
        return "\n".join(lines)

    def _repr_markdown_(self) -> str:
        rows = [
            (
                SYMBOLS[self.state(each.key)],
                each.title,
                f"{self.weeks[each.key]:.1f}",
                each.owner,
                each.exit,
                each.stop,
                each.done_by,
            )
            for each in self.steps
        ]
        head = ("", "step", "weeks", "who", "ends when", "stop if", "in this course")
        parts = [self.blocked, table(head, rows, right=(2,))]
        steps = {each.key: each for each in self.steps}
        for part in (*steps, *LISTS):
            if part in steps:
                step = steps[part]
                parts.append(f"**{step.title}.** Needs {step.enter}. Then {step.do}.")
            rows = [(SYMBOLS[i.state], i.asks, i.found, i.reason) for i in self.of(part)]
            parts.append(table((f"{part}: {self.state(part)}", "", "found", "why"), rows))
        return "\n\n".join(filter(None, parts))


def pilot_of(
    decision: Decision,
    progress: Progress | None = None,
    audit: Report | None = None,
    parity: Parities | None = None,
    throughput: Throughput | None = None,
    warnings: Iterable[Warned] | None = None,
    measured: Mapping[str, float] | None = None,
    notes: Mapping[str, str] | None = None,
    failures: Mapping[str, str] | None = None,
) -> Pilot:
    """The pilot of a decision, as far as it is known.

    Args:
        progress: the learner's record: exercise id to {"points", "state", ...}.
        audit, parity, throughput: results of the instruments; parity is that of XLA on the CPU.
        warnings: those of `utils.cost.tco.comparison.warned`, for a comparison that was looked at:
            the checks that they are about fail, the others of `SILENT` are done.
        measured: key of a step to its number, measured where the step says.
        notes: key of a check to what was found, which makes it done. failures: the same, failed.

    Raises:
        TypeError: for what is no decision, no audit or no record.
        ValueError: for keys that name no step or check, one that is both done and failed, or an
            empty note.
    """
    _kinds(decision, progress, audit)
    plan = steps()
    given = {key: _finite(key, value) for key, value in (measured or {}).items()}
    notes, failures = dict(notes or {}), dict(failures or {})
    known = [each.key for name in LISTS for each in checklist(name)]
    _keys("measured", given, plan)
    _keys("notes", notes, known)
    _keys("failures", failures, known)
    for name, texts in (("notes", notes), ("failures", failures)):
        if empty := [key for key, text in texts.items() if not str(text).strip()]:
            raise ValueError(f"{name}: {empty[0]!r} is empty; allowed: what was found, in words")
    if both := sorted(set(notes) & set(failures)):
        raise ValueError(f"notes and failures: {both[0]!r} is in both; allowed: one of them")
    if throughput is not None:
        given.setdefault("measure", throughput.measured / throughput.needed)
    if audit is not None and not _own(audit) and not audit.broken:
        given.setdefault("audit", 0.0)
    said = _said(audit, throughput)
    if warnings is not None:
        against = doubts(warnings)
        notes = {key: "no warning" for key in SILENT if key not in against} | notes
        failures = {key: text for key, text in against.items() if key not in notes} | failures
        notes = {key: text for key, text in notes.items() if key not in failures}
    checks = [_check(each, notes, failures) for name in LISTS for each in checklist(name)]
    contract = [each for each in checks if each.part == "contract"]
    states = {each.state for each in contract}
    if FAILED in states or OPEN not in states:
        given["sign"] = sum(each.state != DONE for each in contract)
    items: list[Item] = []
    for key, step in plan.items():
        items += [_practice(step, name, progress) for name in step.practice]
        if key == "sign":
            items.append(_again(decision, "measure" in given))
        if key == "parity":
            items.append(_here(parity))
        items.append(_number(step, given.get(key), said.get(key, "")))
    weeks = {key: step.weeks for key, step in plan.items()} | {"port": decision.port_weeks}
    return Pilot(tuple(plan.values()), weeks, (*items, *checks), _blocked(decision))


def _said_of(item: Item) -> str:
    return f"{item.asks} -> {item.found}" if item.found else item.asks


def _kinds(decision: object, progress: object, audit: object) -> None:
    for name, value, kind, says in (
        ("decision", decision, Decision, "what utils.cost.decision.decide(answers, ...) returns"),
        ("progress", progress, Mapping | None, "utils.course.progress.entries(), or None"),
        ("audit", audit, Report | None, "the report of utils.audit.audit(path), or None"),
    ):
        if not isinstance(value, kind):
            raise TypeError(f"{name}: {type(value).__name__} is not allowed; allowed: {says}")


def _keys(name: str, given: Iterable[str], known: Iterable[str]) -> None:
    if wrong := [key for key in given if key not in known]:
        raise ValueError(f"{name}: {wrong[0]!r} is not allowed; allowed: {', '.join(known)}")


def _own(audit: Report) -> int:
    return sum(each.rule in OWN for each in audit.at_least("warning"))


def _finite(key: str, value: float) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < 0:
        raise ValueError(f"measured: {value!r} for {key!r} is not allowed; allowed: 0 or more")
    return float(value)


def _said(audit: Report | None, throughput: Throughput | None) -> dict[str, str]:
    """What the instruments add to the number of their step."""
    said = {}
    if audit is not None:
        said["audit"] = (
            f"{_own(audit)} kernels of one's own, {audit.counts['error']} errors and"
            f" {audit.counts['warning']} warnings in {audit.files} files,"
            f" {len(audit.broken)} unread"
        )
    if throughput is not None:
        said["measure"] = (
            f"{throughput.measured:,.6g} of {throughput.needed:,.6g} {throughput.unit} on"
            f" {throughput.machine}"
        )
    return said


def _number(step: Step, value: float | None, said: str) -> Item:
    """The number that ends a step."""
    if value is None:
        return Item("exit", step.key, step.exit, OPEN, said)
    found = f"{value:.3g}" + (f" ({said})" if said else "")
    return Item("exit", step.key, step.exit, DONE if step.met(value) else FAILED, found)


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
    found = f"{decision.verdict}, confidence {decision.confidence}"
    undecided = decision.verdict == "either" and not measured
    if decision.saving is None or not decision.found.files or undecided:
        return Item("decision", "sign", asks, OPEN, found)
    return Item("decision", "sign", asks, DONE if decision.verdict == "trainium" else FAILED, found)


def _check(row: Check, notes: Mapping[str, str], failures: Mapping[str, str]) -> Item:
    state = DONE if row.key in notes else FAILED if row.key in failures else OPEN
    found = notes.get(row.key) or failures.get(row.key) or ""
    return Item(row.key, row.list, row.asks, state, found, row.reason)


def _blocked(decision: Decision) -> str:
    if decision.verdict in ("gpu", "neither"):
        return f"No pilot now. {decision.headline}; these are the steps if that changes"
    late = decision.port_weeks + decision.pilot_weeks - decision.used.deadline_weeks
    return f"The plan ends {late:.0f} weeks after the deadline" if late > 0 else ""
