"""What the answers of lab 01 return, as plain values. Judges nothing.

What the course has for an exercise is closed while its answer runs.
"""

from collections.abc import Callable
from typing import Any

from utils.exercises import Facts, Observer, limit
from utils.exercises.closed import closed
from utils.exercises.plain import describe, number, numbers

Answer = Callable[..., Any]

_MOST, _CHARS = 30, 40
"""Names of a list, and characters of a name, that are kept: more is wrong in any case."""

ENDLESS = "the check stopped the answer after some seconds: a few formulas are asked for"

MODELS = (
    "utils.roofline",
    "utils.topology",
    "utils.training_memory",
    "utils.hardware",
)


def _said(exercise: str, answer: Answer, *inputs: Any) -> Any:
    """What an answer returns."""
    return _each(exercise, answer, [inputs])[0]


def _each(exercise: str, answer: Answer, calls: list[tuple[Any, ...]]) -> list[Any]:
    """What an answer returns at each call, without the course's own models. Raises RuntimeError if
    it takes for ever.
    """
    with closed(f"lab01.{exercise}", *MODELS):
        said, stopped = limit.within(lambda: [answer(*inputs) for inputs in calls])
    if stopped:
        raise RuntimeError(ENDLESS)
    return said


def _name(value: Any) -> str:
    return str.__str__(value)[:_CHARS] if isinstance(value, str) else describe(value)


def observe_gemm_times(answer: Answer, case: Facts) -> Facts:
    said = _said("ex1", answer, case["sheet"], case["gemms"])
    items = None
    if isinstance(said, list | tuple):
        items = [
            [number(each[0]), _name(each[1])]
            if isinstance(each, list | tuple) and len(each) == 2
            else describe(each)
            for each in said[:_MOST]
        ]
    return {"kind": describe(said), "items": items}


def observe_ridges(answer: Answer, case: Facts) -> Facts:
    said = _each("ex2", answer, [(case["sheet"], *query) for query in case["queries"]])
    return {"said": [None if each is None else number(each) for each in said]}


def observe_fit(answer: Answer, case: Facts) -> Facts:
    said = _said("ex3", answer, {**case, "dtypes": dict(case["dtypes"])})
    given = said if isinstance(said, dict) else {}
    stage = given.get("stage", "nothing")
    return {
        "kind": describe(said),
        "items": numbers(given.get("bytes"))["items"],
        "stage": None if stage is None else number(stage),
    }


def observe_wrong_row(answer: Answer, case: Facts) -> Facts:
    said = _said("ex4", answer, {name: dict(rows) for name, rows in case["tables"].items()})
    pair = isinstance(said, list | tuple) and len(said) == 2
    table, row = (_name(each) for each in said) if pair else (None, None)
    return {"kind": describe(said), "table": table, "row": row}


def observe_choice(answer: Answer, case: Facts) -> Facts:
    said = _said("ex5", answer, case["job"], [dict(each) for each in case["offers"]])
    given = said if isinstance(said, dict) else {}
    ask, rejected = given.get("ask"), given.get("rejected")
    instance, price = given.get("instance"), given.get("usd_per_hour")
    return {
        "kind": describe(said),
        "instance": None if instance is None else _name(instance),
        "price": None if price is None else number(price),
        "ask": [_name(e) for e in ask[:_MOST]] if isinstance(ask, list | tuple) else None,
        "rejected": _names(rejected) if isinstance(rejected, dict) else None,
    }


def _names(given: dict[Any, Any]) -> dict[str, str]:
    return {_name(key): _name(value) for key, value in list(given.items())[:_MOST]}


def observe_all_reduce(answer: Answer, case: Facts) -> Facts:
    calls = [(case["elements"], case["dtype"], dict(fabric)) for fabric in case["fabrics"]]
    said = _each("ex6", answer, calls)
    return {"said": [number(each) for each in said]}


OBSERVERS = {
    "ex1": Observer("gemm_times", observe_gemm_times),
    "ex2": Observer("ridge", observe_ridges),
    "ex3": Observer("fit", observe_fit),
    "ex4": Observer("wrong_row", observe_wrong_row),
    "ex5": Observer("choose", observe_choice),
    "ex6": Observer("all_reduce_seconds", observe_all_reduce),
}
