"""How all answers of lab 17 are judged: each incident knows what is right, and what each known
misconception would have said instead.
"""

from collections import Counter
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import all_right, not_of_the_form, row

SAYS = says("lab17")


def judged(case: Facts, facts: Facts, weights: dict[str, int], form: str) -> list[Criterion]:
    """A criterion for each entry of an answer, over all incidents of the case.

    An incident has `right`, entry to value, and `lures`, entry to {misconception: what it says}.
    Of the misconceptions that explain a wrong value, the one is named that explains the most.
    form: what to return, for an answer of another form.
    """
    response, incidents = facts["response"], case["incidents"]
    if odd := not_of_the_form(response, weights, form):
        return odd
    criteria = []
    for name, weight in weights.items():
        values = [item[name] for item in response]
        right = [incident["right"][name] for incident in incidents]
        wrong = [p for p, value in enumerate(values) if value != right[p]]
        lures = [incident["lures"][name] for incident in incidents]
        explained = Counter(
            lure
            for p in wrong
            for lure, value in lures[p].items()
            if value != right[p] and _says(values[p], value)
        )
        likely = next((lure for lure, _ in explained.most_common(1)), f"otherwise-{name}")
        first = [p for p in wrong if _says(values[p], lures[p].get(likely))] or wrong
        wrong = first[:1] + [p for p in wrong if p not in first[:1]]
        message = ""
        if wrong:
            at = wrong[0]
            words = incidents[at].get("words", {})
            message = SAYS[likely].format(response=_short(values[at]), right=right[at], **words)
        rows = [row(f"incident {p + 1}", _short(values[p]), _short(right[p])) for p in wrong]
        criteria.append(
            all_right(name, weight, wrong, len(values), message, rows=rows, response=values)
        )
    return criteria


def _says(value: Any, lure: Any) -> bool:
    """Whether a value is what a misconception says. A list without repeated values may be said in
    any order and more than once.
    """
    if isinstance(value, list) and isinstance(lure, list) and len({*lure}) == len(lure):
        return {*map(str, value)} == {*map(str, lure)}
    return value == lure


def _short(value: Any) -> str:
    return str(value) if len(str(value)) < 60 else f"{str(value)[:60]} ..."
