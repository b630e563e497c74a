"""The cases of lab 17 and what is right for them. The sandbox does not see it."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts, Judge
from utils.labs.criteria import all_right, not_of_the_form, row
from utils.labs.lab17 import cores, monitor, ranks, tasks
from utils.labs.wrong_answers import replies

SAYS = says("lab17")


def judge_incidents(
    exercise: str, weights: dict[str, int], form: str, case: Facts, facts: Facts
) -> list[Criterion]:
    """A criterion for each entry of an answer, over all incidents of the case.

    An incident has `right`, entry to value, and `words`, which the sentences leave open. The
    recorded wrong answer is named that gives most of the wrong values.
    form: what to return, for an answer of another form.
    """
    response, incidents = facts["response"], case["incidents"]
    if odd := not_of_the_form(response, weights, form):
        return odd
    rights = [incident["right"] for incident in incidents]
    known = [] if response == rights else list(_known(exercise, case, facts))
    criteria = []
    for name, weight in weights.items():
        values, right = ([item[name] for item in items] for items in (response, rights))
        sentence = SAYS[f"otherwise-{name}"]
        wrong = [p for p, value in enumerate(values) if value != right[p]]
        telling: list[int] = []
        for text, entry, others in known:
            equal = [p for p in wrong if others[p] != right[p] and _is_same(values[p], others[p])]
            if entry == name and len(equal) > len(telling):
                telling, sentence = equal, text
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


def _known(exercise: str, case: Facts, like: Facts) -> Iterator[tuple[str, str, list[Any]]]:
    """The sentence of each recorded wrong answer, the entry that it is about, and what it gives for
    that; first those that have most in common with the facts `like`. It is about the first entry
    that it has wrong: others follow from that.
    """
    rights = [incident["right"] for incident in case["incidents"]]
    for sentence, facts in replies(f"lab17.{exercise}", case, like):
        for name in rights[0]:
            values = [item[name] for item in facts["response"]]
            if values != [right[name] for right in rights]:
                yield sentence, name, values
                break


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
