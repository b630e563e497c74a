"""What the answers of lab 01 return, as plain values. Judges nothing.

What the course has for an exercise is closed while its answer runs.
"""

from collections.abc import Set
from typing import Any

from utils.labs import Answer, Facts, Observer, invoke
from utils.labs.plain import describe, number, numbers, text, to_list

_MOST = 30
"""Names of a list that are kept: more is wrong in any case."""

MODELS = (
    "utils.chip.roofline",
    "utils.chip.topology",
    "utils.chip.collectives",
    "utils.chip.training_memory",
    "utils.chip.hardware",
)


def _response(exercise: str, answer: Answer, *inputs: Any) -> Any:
    """What an answer returns."""
    return _each(exercise, answer, [inputs])[0]


def _each(exercise: str, answer: Answer, calls: list[tuple[Any, ...]]) -> list[Any]:
    """What an answer returns at each call, without the course's own models."""
    response = invoke.responses(f"lab01.{exercise}", answer, calls, MODELS)
    return [_join_names(item) for item in response]


def _join_names(value: Any) -> Any:
    return to_list(value, _MOST)


def observe_gemm_times(answer: Answer, case: Facts) -> Facts:
    """Pairs of seconds and bound, one per GEMM; "items" is None if it is no list."""
    response = _response("ex1", answer, case["sheet"], case["gemms"])
    is_list = isinstance(response, list | tuple)
    items = [_seconds_and_bound(item) for item in response[:_MOST]] if is_list else None
    return {"kind": describe(response), "items": items}


def _seconds_and_bound(item: Any) -> list[Any] | str:
    if not isinstance(item, list | tuple) or len(item) != 2:
        return describe(item)
    return [number(_join_names(item[0])), text(item[1])]


def observe_ridges(answer: Answer, case: Facts) -> Facts:
    """The ridge of every query; None where the answer says that there is none."""
    response = _each("ex2", answer, [(case["sheet"], *query) for query in case["queries"]])
    return {"response": [None if item is None else number(item) for item in response]}


def observe_fit(answer: Answer, case: Facts) -> Facts:
    """The bytes at every stage, and the stage that was chosen."""
    response = _response("ex3", answer, case)
    given = response if isinstance(response, dict) else {}
    return {
        "kind": describe(response),
        "items": numbers(_join_names(given.get("bytes")))["items"],
        "stage": _stage(given),
    }


def _stage(given: dict[Any, Any]) -> Any:
    if "stage" not in given:
        return "nothing"
    stage = _join_names(given["stage"])
    return None if stage is None else number(stage)


def observe_wrong_row(answer: Answer, case: Facts) -> Facts:
    """The table and the row that the answer takes for wrong; None if it is no pair."""
    response = _response("ex4", answer, case["tables"])
    pair = isinstance(response, list | tuple) and len(response) == 2
    table, row = (text(item) for item in response) if pair else (None, None)
    return {"kind": describe(response), "table": table, "row": row}


def observe_choice(answer: Answer, case: Facts) -> Facts:
    """The instance, its price, whom to ask, and what was rejected for which reason."""
    response = _response("ex5", answer, case["job"], case["offers"])
    given = response if isinstance(response, dict) else {}
    ask, rejected = given.get("ask"), given.get("rejected")
    instance, price = given.get("instance"), given.get("usd_per_hour")
    return {
        "kind": describe(response),
        "instance": None if instance is None else text(instance),
        "price": None if price is None else number(price),
        "ask": [text(e) for e in list(ask)[:_MOST]] if isinstance(ask, _SEVERAL) else None,
        "ask_kind": describe(ask) if "ask" in given else "nothing",
        "rejected": _names(rejected) if isinstance(rejected, dict) else None,
        "rejected_kind": describe(rejected) if "rejected" in given else "nothing",
    }


_SEVERAL = list | tuple | Set
"""What may hold the names to ask about: also a set, or the keys of a dict."""


def _names(given: dict[Any, Any]) -> dict[str, str]:
    return {text(key): text(value) for key, value in list(given.items())[:_MOST]}


def observe_all_reduce(answer: Answer, case: Facts) -> Facts:
    """Seconds of the all-reduce on every fabric of a case."""
    calls = [(case["elements"], case["dtype"], fabric) for fabric in case["fabrics"]]
    response = _each("ex6", answer, calls)
    return {"response": [number(item) for item in response]}


OBSERVERS = {
    "ex1": Observer("gemm_times", observe_gemm_times),
    "ex2": Observer("ridge", observe_ridges),
    "ex3": Observer("fit", observe_fit),
    "ex4": Observer("wrong_row", observe_wrong_row),
    "ex5": Observer("choose", observe_choice),
    "ex6": Observer("all_reduce_seconds", observe_all_reduce),
}
