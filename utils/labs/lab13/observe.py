"""What the answers of lab 13 return, as plain values. Judges nothing.

The course's own cost model is closed while an answer runs.
"""

from collections.abc import Set
from itertools import islice
from typing import Any

from utils.labs import Answer, Facts, Observer, invoke, plain
from utils.labs.lab13.models import MODELS
from utils.labs.plain import describe, entries, number, numbers, text, to_list

_MOST = 40
"""Items that are kept: more is wrong in any case."""

FACTOR = 7
"""By which a check multiplies prices and pay, as in another currency."""


def _each(exercise: str, answer: Answer, calls: list[tuple[Any, ...]]) -> list[Any]:
    """What an answer returns at each call, without the course's own models."""
    response = invoke.responses(f"lab13.{exercise}", answer, calls, ("utils.cost.tco",))
    return [to_list(item, _MOST) for item in response]


def _number(value: Any) -> Any:
    return number(to_list(value, _MOST))


def observe_jobs(answer: Answer, case: Facts) -> Facts:
    """The costs of each job as given, and with changed utilisation, runs and currency."""
    jobs = case["jobs"]
    money = ("price_per_server_hour", "pay_per_week")
    asked = {
        "response": jobs,
        "busier": [{**job, "utilisation": 2 * job["utilisation"]} for job in jobs],
        "longer": [{**job, "good_runs": 2 * job["good_runs"]} for job in jobs],
        "exchanged": [{**job, **{name: FACTOR * job[name] for name in money}} for job in jobs],
    }
    calls = [(job,) for some in asked.values() for job in some]
    parts = []
    for item in _each("ex1", answer, calls):
        given = entries(item, "compute", "engineering", "total")
        parts.append(
            given if isinstance(given, str) else {n: _number(value) for n, value in given.items()}
        )
    return {
        name: parts[place * len(jobs) : (place + 1) * len(jobs)] for place, name in enumerate(asked)
    }


def observe_flips(answer: Answer, case: Facts) -> Facts:
    """The break-even of each question, and the cheaper option below and above it."""
    names = ("task", "first", "second", "what")
    calls = [tuple(question[n] for n in names) for question in case["questions"]]
    results: list[Any] = []
    for item in _each("ex2", answer, calls):
        given = entries(item, "at", "below", "above")
        if isinstance(given, dict):
            sides = {name: text(given[name]) for name in ("below", "above")}
            given = {"at": plain.maybe(given["at"], _MOST), **sides}
        results.append(given)
    return {"response": results}


_SEVERAL = list | tuple | Set
"""What may hold names: also a set, or the keys of a dict."""


def observe_errors(answer: Answer, case: Facts) -> Facts:
    """The errors that were named in each comparison, sorted."""
    response = _each("ex3", answer, [(comparison,) for comparison in case["comparisons"]])
    return {
        "response": [
            sorted({text(name) for name in islice(item, _MOST)})
            if isinstance(item, _SEVERAL)
            else describe(item)
            for item in response
        ]
    }


def observe_saving(answer: Answer, case: Facts) -> Facts:
    """The costs of the intervals and the best one; both None if the response has not both."""
    (response,) = _each("ex4", answer, [(case["run"], case["intervals"])])
    given = entries(response, "costs", "best")
    if isinstance(given, str):
        return {"kind": given, "costs": None, "best": None}
    costs = numbers(to_list(given["costs"], _MOST))
    items = costs["items"] and costs["items"][:_MOST]
    return {"kind": costs["kind"], "costs": items, "best": _number(given["best"])}


def _place(value: Any, names: list[str]) -> int | str:
    """The place of a name among those that came in: a report may show numbers, but no text."""
    name = text(value)
    return names.index(name) if name in names else name


def observe_influence(answer: Answer, case: Facts) -> Facts:
    """Pairs of an input, by its place in the case, and its swing; None if it is no list."""
    cost, names = MODELS[case["model"]], list(case["ranges"])
    (response,) = _each("ex5", answer, [(cost, case["ranges"])])
    items = None
    if isinstance(response, list | tuple):
        items = [
            [_place(item[0], names), _number(item[1])]
            if isinstance(item, list | tuple) and len(item) == 2
            else describe(item)
            for item in response[:_MOST]
        ]
    return {"kind": describe(response), "items": items}


def observe_fleets(answer: Answer, case: Facts) -> Facts:
    """The servers of each service, and the cost of a million items."""
    response = _each("ex6", answer, [(service,) for service in case["services"]])
    names = ("servers", "cost_per_million")
    return {"response": [plain.maybe_entries(item, *names, most=_MOST) for item in response]}


OBSERVERS = {
    "ex1": Observer("cost_per_million", observe_jobs),
    "ex2": Observer("break_even", observe_flips),
    "ex3": Observer("errors", observe_errors),
    "ex4": Observer("price_checkpoints", observe_saving),
    "ex5": Observer("influence", observe_influence),
    "ex6": Observer("fleet", observe_fleets),
}
