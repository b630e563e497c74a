"""What is right for the six described cases, and the judgement of exercise 1 of lab 14."""

import random
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from utils.cost.decision import VERDICTS, AnswerError, Answers, Decision, Saving, adjust, decide
from utils.cost.decision.findings import NOTHING
from utils.cost.decision.flips import verdict_for
from utils.cost.decision.questions import QUESTIONS
from utils.cost.decision.rules import ROWS
from utils.course.misconceptions import says
from utils.facts.records import read_yaml
from utils.labs import Criterion, Facts
from utils.labs.criteria import about_all, criterion, not_asked_for, not_judged
from utils.labs.lab14.examples import COSTS, GIVEN

SAYS = says("lab14")

Right = tuple[tuple[Any, ...], str]
"""What is accepted as an answer, the first of it best; and the words of the text that say it. Of
numbers, two: from and to.
"""

ASKED = (
    "framework", "kernels", "shapes", "deadline_weeks", "experience", "region", "capacity", "gate",
    "managed",
)  # fmt: skip
"""Fields that are left to the learner."""

FORMS: Mapping[str, Mapping[str, Right]] = {
    name: {
        field: (tuple(known["right"]), SAYS.get(known["text"], known["text"]))
        for field, known in form.items()
    }
    for name, form in read_yaml(Path(__file__).with_name("forms.yaml")).items()
}
"""Case to field to what is right."""

CASES = tuple(FORMS)
ROW_NAMES = tuple(row.name for row in ROWS)


def case_list(rng: random.Random) -> list[Facts]:
    """One case: the six are the same for everybody."""
    return [{"cases": len(CASES)}]


def case_words(case: Facts) -> str:
    """What a card says of a case."""
    return f"the {case['cases']} described cases"


def is_right(name: str, field: str, response: Any) -> bool:
    """Whether an answer is right for a field of a case."""
    values, _ = FORMS[name][field]
    if isinstance(values[0], str):
        return response in values
    number = isinstance(response, int | float) and not isinstance(response, bool)
    return number and values[0] <= response <= values[1]


@cache
def right(name: str) -> Answers:
    """The form of a case, filled in as its text says."""
    return Answers(**GIVEN[name], **{field: FORMS[name][field][0][0] for field in ASKED})


@cache
def saving(name: str) -> Saving:
    """The comparison of costs of a case."""
    return Saving(*COSTS[name])


@cache
def decision(name: str) -> Decision:
    """What the rule decides for a case whose form is right."""
    return decide(right(name), comparison=saving(name))


def judge_decisions(case: Facts, facts: Facts) -> list[Criterion]:
    """One criterion per form, one for the verdicts and one for the reasons."""
    response = facts["cases"]
    if not facts["kind"].startswith("a dict") or not any(name in response for name in CASES):
        message = SAYS["decisions-as-a-list"].format(kind=facts["kind"])
        weights = {f"form {name}": 1 for name in CASES} | {"verdicts": 3, "reasons": 3}
        return not_asked_for(weights, message)
    forms = [_judge_form(name, response.get(name)) for name in CASES]
    return [*forms, _judge_verdicts(response), _judge_reasons(response)]


def _judge_form(name: str, response: Facts | None) -> Criterion:
    given = response["answers"] if response else {}
    wrong = [field for field in ASKED if not is_right(name, field, given.get(field))]
    extra = [field for field in given if field not in ASKED]
    message = _about_form(name, response, wrong, extra)
    measured = f"{len(ASKED) - len(wrong)} of {len(ASKED)}"
    return criterion(f"form {name}", 1, not message, measured, "all", message)


def _about_form(name: str, response: Facts | None, wrong: list[str], extra: list[str]) -> str:
    if response is None:
        return f'no case "{name}": add it, with "answers", "verdict" and "because"'
    given = response["answers"]
    if not given:
        return SAYS["verdicts-without-forms"].format(kind=response["kind"])
    if unknown := [field for field in extra if field not in QUESTIONS]:
        return SAYS["an-answer-too-many"].format(value=unknown[0], ASKED=", ".join(ASKED))
    if extra:
        # Given fields may stand there again, as they were given.
        field = extra[0]
        if given[field] != GIVEN[name][field]:
            return SAYS["the-colleague-knows-better"].format(field=field, value=GIVEN[name][field])
    if not wrong:
        return ""
    field = wrong[0]
    more = f" ({len(wrong) - 1} more to look at)" if len(wrong) > 1 else ""
    if field not in given:
        return f"{field}: no answer{more}; allowed: {QUESTIONS[field].says_allowed()}"
    try:
        QUESTIONS[field].check(given[field])
    except AnswerError as error:
        return f"{error}{more}"
    return f'{field}: you answer {given[field]!r}, the text says "{FORMS[name][field][1]}"{more}'


def _verdict(name: str, response: Facts) -> str | None:
    """The rule's verdict on the learner's answers; None if they are none."""
    try:
        answers = Answers(**GIVEN[name], **{item: response["answers"].get(item) for item in ASKED})
    except AnswerError:
        return None
    return verdict_for(answers, saving(name), NOTHING, adjust())


def _judge_verdicts(response: Facts) -> Criterion:
    verdicts = [response.get(name, {}).get("verdict", "nothing") for name in CASES]
    pairs = zip(CASES, verdicts, strict=True)
    return about_all("verdicts", 3, [_about_verdict(n, v, response.get(n)) for n, v in pairs])


def _about_verdict(name: str, verdict: str, response: Facts | None) -> str:
    if verdict not in VERDICTS:
        return SAYS["no-verdict"].format(name=name, verdict=verdict, VERDICTS=", ".join(VERDICTS))
    own = _verdict(name, response) if response else None
    if own is None:
        return f"{name}: the form is not complete, so nothing can be decided on it"
    if own != verdict:
        return f"{name}: you say {verdict}; on your own answers the rule says otherwise"
    if decision(name).verdict != verdict:
        return SAYS["a-verdict-follows-from-a-wrong-form"].format(name=name, verdict=verdict)
    return ""


def _judge_reasons(response: Facts) -> Criterion:
    texts = [_about_reason(n, response.get(n, {}).get("because", "nothing")) for n in CASES]
    result = about_all("reasons", 3, texts)
    # A name alone, beside no form at all, would be a guess.
    return result if any(response.get(n, {}).get("answers") for n in CASES) else not_judged(result)


def _about_reason(name: str, reason: str) -> str:
    of = decision(name)
    if reason in [item.rule for item in of.decisive]:
        return ""
    if reason not in ROW_NAMES:
        return SAYS["a-sentence-as-the-reason"].format(name=name, reason=reason, value=ROW_NAMES[0])
    holding = {item.rule: item for item in of.reasons}
    if reason not in holding:
        return SAYS["a-row-that-does-not-hold"].format(name=name, reason=reason)
    return SAYS["the-largest-row"].format(name=name, reason=reason, speaks=holding[reason].speaks)
