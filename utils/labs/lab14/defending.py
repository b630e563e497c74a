"""The judgement of flips, exercise 2 of lab 14: every one is tried by deciding again."""

from functools import cache
from typing import Any

from utils.cost.decision import VERDICTS, AnswerError, judged
from utils.cost.decision.case import Case
from utils.cost.decision.findings import NOTHING
from utils.cost.decision.flips import decided, money_flips
from utils.cost.decision.questions import QUESTIONS
from utils.cost.decision.rules import outcome
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion
from utils.labs.lab14.deciding import CASES, decision, right, saving

WORKLOAD = ("task", "architecture", "framework", "runs_per_year", "spend_per_year")
"""Fields that say what the workload is: with another answer it is another workload."""
PLACE = "region"
NEAR = 0.05
"""How far beyond the flip a number may lie, relative to it."""
MARGIN = 0.005
"""How far the middle saving may lie from the one at which the verdict changes."""


@cache
def money(name: str) -> float | None:
    """The middle saving nearest to the present one at which the verdict changes."""
    found = list(money_flips(right(name), saving(name), NOTHING, judged()))
    middle = saving(name).middle
    return min((each.to for each in found), key=lambda to: abs(to - middle), default=None)


def judge_flips(case: Facts, facts: Facts) -> list[Criterion]:
    said = facts["cases"]
    if not facts["kind"].startswith("a dict") or not any(name in said for name in CASES):
        message = f'`flips` returned {facts["kind"]}: return {{"ferry": {{"field": ...}}, ...}}'
        return [
            criterion("answers", 2, False, "", "", message),
            criterion("savings", 2, False, "", "", ""),
        ]
    parts = []
    for part, about in (("answers", _about_flip), ("savings", _about_money)):
        texts = [about(name, said.get(name)) for name in CASES]
        good = sum(not text for text in texts)
        first = next(filter(None, texts), "")
        parts.append(criterion(part, 2, not first, f"{good} of {len(CASES)}", "all", first))
    return parts


def _about_flip(name: str, said: Facts | None) -> str:
    if said is None:
        return f'no case "{name}": add it, with "field", "to", "verdict" and "saving"'
    field, to, verdict = said["field"], said["to"], said["verdict"]
    if field not in QUESTIONS:
        return f"{name}: {field} is no answer of the form; allowed: {', '.join(QUESTIONS)}"
    if field in WORKLOAD:
        return (
            f"{name}: with another {field} it is another workload: change what somebody can bring"
            " about, or may hear tomorrow"
        )
    if field == PLACE:
        return f"{name}: where the data lie is not open: change what can be had there"
    now, present = getattr(right(name), field), decision(name).verdict
    if to == now:
        return f"{name}: {field} is {now!r} already: a flip changes it"
    new = _verdict(name, field, to)
    if isinstance(new, AnswerError):
        return f"{name}: {new}"
    if new == present:
        return f"{name}: with {field} {to!r} the verdict is still {present}"
    if closed_to_all(name, field, to):
        return (
            f"{name}: with {field} {to!r} nobody could choose any machine, whatever the case: that"
            " says nothing of this one. What moves it from one machine to the other?"
        )
    if verdict not in VERDICTS or new != verdict:
        return f"{name}: with {field} {to!r} the verdict is not {verdict}: decide again"
    if not QUESTIONS[field].allowed and not _nearest(name, field, now, to):
        return (
            f"{name}: {field} {to:g} flips the verdict, but so does less: give the value at which"
            f" it flips, within {NEAR:.0%} or to the whole number"
        )
    return ""


def _verdict(name: str, field: str, to: Any) -> str | AnswerError:
    try:
        answers = right(name).changed(**{field: to})
    except AnswerError as error:
        return error
    return decided(answers, saving(name), NOTHING, judged())


def closed_to_all(name: str, field: str, to: Any) -> bool:
    """Whether a change leaves no machine to choose by a row that looks at nothing else."""
    case = Case(right(name).changed(**{field: to}), saving(name), judged())
    before = Case(right(name), saving(name), judged())
    rows = [row for row in outcome(case).rows if len(row.closes) > 1 and not row.holds(before)]
    return bool(rows)


def _nearest(name: str, field: str, now: float, to: float) -> bool:
    """Whether the verdict is still the present one a little before the value: a step of one before
    a whole number, for who thinks in whole weeks.
    """
    steps = [1.0] if float(to).is_integer() else []
    if not QUESTIONS[field].whole:
        steps.append(NEAR * abs(to))
    far = max(steps)
    before: float = max(to - far, now) if to > now else min(to + far, now)
    if QUESTIONS[field].whole:
        before = round(before)
    return _verdict(name, field, before) == decision(name).verdict


def _about_money(name: str, said: Facts | None) -> str:
    if said is None:
        return f'no case "{name}": add it'
    at, expected = said["saving"], money(name)
    if at == "nothing":
        return f'{name}: no "saving": give the middle saving at which the verdict changes, or None'
    if expected is None:
        if at is None:
            return ""
        row = decision(name).decisive[0].rule
        return (
            f"{name}: at no saving does the verdict change, as the veto {row!r} asks for no price"
        )
    if at is None:
        return f"{name}: there is a saving at which the verdict changes: move it, and decide again"
    if isinstance(at, str):
        return f"{name}: {at}: give a number, or None"
    if abs(at - expected) <= MARGIN:
        return ""
    middle = saving(name).middle
    others = [each.to for each in money_flips(right(name), saving(name), NOTHING, judged())]
    if any(abs(at - other) <= MARGIN for other in others):
        return (
            f"{name}: there the verdict changes too, but the other side is nearer to {middle:.0%}"
        )
    if any(abs(at - (other - middle)) <= MARGIN for other in others):
        return f"{name}: that is how far the saving moves: give the saving itself"
    if any(abs(at - 100 * other) <= 100 * MARGIN for other in others):
        return f"{name}: as a fraction, not in per cent"
    if abs(at) <= MARGIN:
        return f"{name}: at equal costs the chance is even, and the verdict changes elsewhere"
    return f"{name}: the verdict does not change there: find the edge, to within {MARGIN:g}"
