"""What the answers of lab 14 return, as plain values. Judges nothing.

What the course has for an exercise is closed while its answer runs; the rule itself is open in
exercises 1 and 2, which are about its answers.
"""

import datetime
from collections.abc import Callable, Iterable, Set
from itertools import islice
from typing import Any

from utils.labs import Answer, Facts, Observer, invoke
from utils.labs.plain import describe, number, text

_MOST, _CHARS = 30, 60
"""Items that are kept, and characters of a name: more is wrong in any case."""

CALLS = 500
"""Calls of an unknown rule that an answer may make: a search by halves takes less than half."""


class TooManyCalls(RuntimeError):
    """An answer asks an unknown rule without end."""


def _each(exercise: str, answer: Answer, calls: list[tuple[Any, ...]], *shut: str) -> list[Any]:
    return invoke.responses(f"lab14.{exercise}", answer, calls, shut)


def _text(value: Any) -> str:
    return text(value, _CHARS)


def _word(value: Any) -> Any:
    """A text, a number, or what else it is."""
    return _text(value) if isinstance(value, str) else number(value)


def _dict(response: Any) -> dict[str, Any]:
    """The entries of a dict that have a name, and only so many."""
    if not isinstance(response, dict):
        return {}
    # By the methods of dict itself, whatever a class of the answer makes of them.
    named = [(_text(key), item) for key, item in dict.items(response) if isinstance(key, str)]
    return dict(named[:_MOST])


def _names(value: Any) -> list[str] | str:
    """Names in any kind of collection, sorted; otherwise what was given."""
    if isinstance(value, list | tuple | Set):
        return sorted({_text(item) for item in _first(value)})
    return describe(value)


def _first(values: Iterable[Any]) -> list[Any]:
    """As many as are kept: what an answer returns may iterate without end."""
    return list(islice(values, _MOST))


Reader = Callable[[Any], Any]


def _read(value: Any, /, **readers: Reader) -> Facts:
    """What a value is, and its named entries as the readers see them; None for one that is not
    there.
    """
    given = _dict(value)
    return {"kind": describe(value), **{n: read(given.get(n)) for n, read in readers.items()}}


def _each_of(read: Reader) -> Callable[[Any], dict[str, Any]]:
    """Reads all entries of a dict in one way."""
    return lambda value: {name: read(item) for name, item in _dict(value).items()}


def _form(value: Any) -> Facts:
    given = _dict(value)
    read = _read(value, answers=_each_of(_word), verdict=_text, because=_text)
    return {**read, "kind": describe(given.get("answers"))}


def observe_decisions(answer: Answer, case: Facts) -> Facts:
    """The form, the verdict and the reason of each case."""
    (response,) = _each("ex1", answer, [()])
    return {"kind": describe(response), "cases": _each_of(_form)(response)}


def _flip(value: Any) -> Facts:
    saving = _dict(value).get("saving", "nothing")
    read = _read(value, field=_text, to=_word, verdict=_text)
    return {**read, "saving": None if saving is None else _word(saving)}


def observe_flips(answer: Answer, case: Facts) -> Facts:
    """What changes the verdict of each case: a field, its value, the new verdict and the saving."""
    (response,) = _each("ex2", answer, [()])
    return {"kind": describe(response), "cases": _each_of(_flip)(response)}


def observe_nearest(answer: Answer, case: Facts) -> Facts:
    """The nearest edge of each rule and the verdict beyond it, or that it was asked too often."""
    results: list[Facts] = []
    for rule in case["rules"]:
        verdict_at, _ = unknown_rule(rule)
        try:
            (response,) = _each(
                "ex3",
                lambda *inputs, ask=verdict_at: answer(ask, *inputs),
                [(rule["now"], rule["low"], rule["high"])],
                "utils.cost.decision.flips",
            )
        except TooManyCalls:
            results.append({"response": "too many calls"})
            continue
        pair = isinstance(response, list | tuple) and len(response) == 2
        value = [number(response[0]), _text(response[1])] if pair else describe(response)
        results.append({"response": None if response is None else value})
    return {"rules": results}


def unknown_rule(rule: Facts) -> tuple[Callable[[float], str], list[float]]:
    """A verdict for every value from low to high, which changes at each of the edges; and the
    values that it was asked for. A function, with no attribute that tells an edge.

    It raises ValueError outside of what is allowed, TooManyCalls after `CALLS` calls.
    """
    low, high, asked = rule["low"], rule["high"], []

    def verdict_at(value: float) -> str:
        asked.append(value)
        if len(asked) > CALLS:
            raise TooManyCalls(f"more than {CALLS} calls")
        if not low <= value <= high:
            raise ValueError(f"value: {value!r} is not allowed; allowed: {low:g} to {high:g}")
        return rule["verdicts"][sum(value >= edge for edge in rule["edges"])]

    return verdict_at, asked


def observe_contradictions(answer: Answer, case: Facts) -> Facts:
    """The answers used in each project, and those overruled and doubted."""
    calls = [
        (project["answers"], project["audit"], project["thresholds"])
        for project in case["projects"]
    ]
    response = _each("ex4", answer, calls, "utils.cost.decision")
    readers = {"used": _each_of(_text), "overruled": _names, "doubted": _names}
    return {"projects": [_read(item, **readers) for item in response]}


def observe_pilot(answer: Answer, case: Facts) -> Facts:
    """The choice now and after each result, the value of each pilot, and whether to run it."""
    calls = [(item["draws"], item["price"]) for item in case["pilots"]]
    readers = {"now": _text, "after": _each_of(_text), "value": number, "pilot": _truth}
    response = _each("ex5", answer, calls, "utils.cost.tco")
    return {"pilots": [_read(item, **readers) for item in response]}


def _truth(value: Any) -> bool | str:
    """A bool, NumPy's too, which says the same; of anything else what it is."""
    return bool(value) if type(value).__name__ in ("bool", "bool_") else describe(value)


def observe_plan(answer: Answer, case: Facts) -> Facts:
    """The steps of the plan, and the terms of its benchmark."""
    (response,) = _each(
        "ex6", answer, [()], "utils.cost.decision.pilot", "utils.cost.decision.plan"
    )
    steps = _dict(response).get("steps")
    listed = _first(steps) if isinstance(steps, list | tuple) else []
    read = _read(response, benchmark=_each_of(_each_of(_plain)))
    return {**read, "steps_kind": describe(steps), "steps": [_step(item) for item in listed]}


def _plain(value: Any) -> Any:
    """A text, a date as text, a number or a bool; None if it is anything else."""
    if isinstance(value, datetime.date):
        return datetime.date.isoformat(value)
    known = isinstance(value, bool | str) or not isinstance(number(value), str)
    return (value if isinstance(value, bool) else _word(value)) if known else None


def _step(response: Any) -> Facts:
    numbers = dict.fromkeys(("weeks", "engineers", "server_weeks", "at_most_weeks"), number)
    return _read(response, step=_text, **numbers, exit=_conditions, stop=_conditions)


def _conditions(response: Any) -> list[Any] | str:
    """Triples of quantity, comparison and limit."""
    if not isinstance(response, list | tuple):
        return describe(response)
    return [
        [_text(item[0]), _text(item[1]), _word(item[2])]
        if isinstance(item, list | tuple) and len(item) == 3
        else describe(item)
        for item in _first(response)
    ]


def observe_checklist(answer: Answer, case: Facts) -> Facts:
    """The state of each item of each project."""
    names = ("items", "record", "today", "code")
    calls = [tuple(project[name] for name in names) for project in case["projects"]]
    response = _each("ex7", answer, calls, "utils.cost.decision")
    states = _each_of(_text)
    return {"projects": [{"kind": describe(item), "states": states(item)} for item in response]}


OBSERVERS = {
    "ex1": Observer("decisions", observe_decisions),
    "ex2": Observer("flips", observe_flips),
    "ex3": Observer("nearest_flip", observe_nearest),
    "ex4": Observer("contradictions", observe_contradictions),
    "ex5": Observer("worth_of_pilot", observe_pilot),
    "ex6": Observer("plan", observe_plan),
    "ex7": Observer("checklist", observe_checklist),
}
