"""The cases of lab 17 and what is right for them. The sandbox does not see it."""

from functools import partial
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts, Judge
from utils.labs.criteria import all_right, not_of_the_form, row
from utils.labs.lab17 import cores, monitor, ranks, tasks
from utils.labs.recorded import given

SAYS = says("lab17")


def judge_incidents(
    exercise: str, weights: dict[str, int], form: str, case: Facts, facts: Facts
) -> list[Criterion]:
    """A criterion for each entry of an answer, over all incidents of the case.

    An incident has `right`, entry to value, and `words`, which the sentences leave open. The
    recorded wrong answer is named that gives most of the wrong values, and most of all values.
    form: what to return, for an answer of another form.
    """
    response, incidents = facts["response"], case["incidents"]
    if odd := not_of_the_form(response, weights, form):
        return odd
    rights = [incident["right"] for incident in incidents]
    known = [
        (_first_wrong_entry(item["response"], rights), sentence, item["response"])
        for sentence, item in given(f"lab17.{exercise}", case)
    ]
    criteria = []
    for name, weight in weights.items():
        values, right = ([item[name] for item in items] for items in (response, rights))
        wrong = [p for p, value in enumerate(values) if value != right[p]]
        likely, sentence, telling = (0, 0), SAYS[f"otherwise-{name}"], list[int]()
        for entry, text, items in known:
            others = [item[name] for item in items] if entry == name else right
            alike = [p for p, other in enumerate(others) if _is_same(values[p], other)]
            told = [p for p in wrong if p in alike and others[p] != right[p]]
            if told and (len(told), len(alike)) > likely:
                likely, sentence, telling = (len(told), len(alike)), text, told
        wrong.sort(key=lambda p: p not in telling)
        message = ""
        if wrong:
            at = wrong[0]
            words = incidents[at].get("words", {})
            message = sentence.format(response=_short(values[at]), right=right[at], **words)
        rows = [row(f"incident {p + 1}", _short(values[p]), _short(right[p])) for p in wrong]
        criteria.append(
            all_right(name, weight, wrong, len(values), message, rows=rows, response=values)
        )
    return criteria


def _first_wrong_entry(response: list[Facts], rights: list[Facts]) -> str:
    """The entry that a misconception is about: what is wrong after it follows from it. "" if it
    shows in none.
    """
    pairs = list(zip(response, rights, strict=True))
    return next((name for name in rights[0] if any(a[name] != b[name] for a, b in pairs)), "")


def _is_same(value: Any, known: Any) -> bool:
    """Whether a value is that of a wrong answer. A list without repeated values may come in any
    order and more than once.
    """
    if isinstance(value, list) and isinstance(known, list) and len({*known}) == len(known):
        return {*map(str, value)} == {*map(str, known)}
    return value == known


def _short(value: Any) -> str:
    return str(value) if len(str(value)) < 60 else f"{str(value)[:60]} ..."


JUDGES = {
    exercise: Judge(cases, partial(judge_incidents, exercise, part.WEIGHTS, part.FORM), words)
    for exercise, part, cases, words in (
        ("ex1", cores, cores.core_cases, cores.core_words),
        ("ex2", ranks, ranks.rank_cases, ranks.rank_words),
        ("ex3", monitor, monitor.monitor_cases, monitor.monitor_words),
        ("ex4", tasks, tasks.task_cases, tasks.task_words),
    )
}
