"""The judgement of flips, exercise 2 of lab 14: every one is tried by deciding again."""

from functools import cache
from typing import Any

from utils.cost.decision import VERDICTS, AnswerError, adjust
from utils.cost.decision.findings import NOTHING
from utils.cost.decision.flips import money_flips, verdict_for
from utils.cost.decision.questions import QUESTIONS
from utils.cost.decision.rules import Case, holds, outcome
from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import about_all, not_asked_for
from utils.labs.lab14.deciding import CASES, decision, right, saving

SAYS = says("lab14")

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
    middle = saving(name).middle
    return min(_edges(name), key=lambda to: abs(to - middle), default=None)


def _edges(name: str) -> list[float]:
    """The middle savings at which the verdict changes."""
    flips = money_flips(right(name), saving(name), NOTHING, adjust())
    return [flip.to for flip in flips if isinstance(flip.to, int | float)]


def judge_flips(case: Facts, facts: Facts) -> list[Criterion]:
    """Two criteria: the answers that change a verdict, and the savings that do."""
    response = facts["cases"]
    if not facts["kind"].startswith("a dict") or not any(name in response for name in CASES):
        message = SAYS["flips-as-a-list"].format(kind=facts["kind"])
        return not_asked_for({"answers": 2, "savings": 2}, message)
    return [
        about_all(part, 2, [about(name, response.get(name)) for name in CASES])
        for part, about in (("answers", _about_flip), ("savings", _about_money))
    ]


def _about_flip(name: str, response: Facts | None) -> str:
    if response is None:
        return f'no case "{name}": add it, with "field", "to", "verdict" and "saving"'
    field, to, verdict = response["field"], response["to"], response["verdict"]
    if field not in QUESTIONS:
        return SAYS["no-answer-of-the-form"].format(
            name=name, field=field, QUESTIONS=", ".join(QUESTIONS)
        )
    if field in WORKLOAD:
        return SAYS["another-framework"].format(name=name, field=field)
    if field == PLACE:
        return SAYS["against-the-law"].format(name=name)
    now, present = getattr(right(name), field), decision(name).verdict
    if to == now:
        return f"{name}: {field} is {now!r} already: a flip changes it"
    new = _verdict(name, field, to)
    if isinstance(new, AnswerError):
        return f"{name}: {new}"
    if new == present:
        return SAYS["not-far-enough"].format(name=name, field=field, to=to, present=present)
    if closed_to_all(name, field, to):
        return SAYS["true-of-every-case"].format(name=name, field=field, to=to)
    if verdict not in VERDICTS or new != verdict:
        return SAYS["another-verdict-follows"].format(
            name=name, field=field, to=to, verdict=verdict
        )
    if not QUESTIONS[field].allowed and not _nearest(name, field, now, to):
        return SAYS["far-beyond"].format(name=name, field=field, to=to, NEAR=NEAR)
    return ""


def _verdict(name: str, field: str, to: Any) -> str | AnswerError:
    try:
        answers = right(name).changed(**{field: to})
    except AnswerError as error:
        return error
    return verdict_for(answers, saving(name), NOTHING, adjust())


def closed_to_all(name: str, field: str, to: Any) -> bool:
    """Whether a change leaves no machine to choose by a row that looks at nothing else."""
    case = Case(right(name).changed(**{field: to}), saving(name), adjust())
    before = Case(right(name), saving(name), adjust())
    return any(len(row.closes) > 1 and not holds(row.when, before) for row in outcome(case).rows)


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


def _about_money(name: str, response: Facts | None) -> str:
    if response is None:
        return f'no case "{name}": add it'
    at, expected = response["saving"], money(name)
    if at == "nothing":
        return SAYS["no-saving-at-all"].format(name=name)
    if expected is None:
        if at is None:
            return ""
        row = decision(name).decisive[0].rule
        return (
            f"{name}: at no saving does the verdict change, as the veto {row!r} asks for no price"
        )
    if at is None:
        return SAYS["no-price-where-votes-decide"].format(name=name)
    if isinstance(at, str):
        return SAYS["a-word-as-the-saving"].format(name=name, at=at)
    if abs(at - expected) <= MARGIN:
        return ""
    middle = saving(name).middle
    others = _edges(name)
    if any(abs(at - other) <= MARGIN for other in others):
        return SAYS["the-farther-side"].format(name=name, middle=middle)
    if any(abs(at - (other - middle)) <= MARGIN for other in others):
        return SAYS["the-distance"].format(name=name)
    if any(abs(at - 100 * other) <= 100 * MARGIN for other in others):
        return SAYS["in-per-cent"].format(name=name)
    if abs(at) <= MARGIN:
        return SAYS["equal-costs"].format(name=name)
    return SAYS["a-guess"].format(name=name, MARGIN=MARGIN)
