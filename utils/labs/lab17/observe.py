"""What the answers of lab 17 return, as plain values. Judges nothing."""

from typing import Any

from utils.labs import Answer, Facts, Observer, invoke
from utils.labs.plain import describe, entries, maybe, number, text

_MOST = 20
"""Processes that are kept: more is wrong in any case."""


def observe_holders(answer: Answer, case: Facts) -> Facts:
    """The PIDs and the range of each incident."""

    def plain(item: Any) -> Any:
        given = entries(item, "pids", "cores")
        if not isinstance(given, dict):
            return given
        pids, cores = given["pids"], given["cores"]
        if not isinstance(pids, list | tuple):
            return "a dict without a list of 'pids'"
        return {
            "pids": [number(pid) for pid in list(pids)[:_MOST]],
            "cores": None if cores is None else text(cores),
        }

    return {"response": [plain(item) for item in _responses("ex1", answer, case, "listing", "log")]}


def observe_ranks(answer: Answer, case: Facts) -> Facts:
    """What is said of each run."""

    def plain(item: Any) -> Any:
        given = entries(item, "rank", "cause", "action")
        if not isinstance(given, dict):
            return given
        words = {name: text(given[name]) for name in ("cause", "action")}
        return {"rank": maybe(given["rank"]), **words}

    return {"response": [plain(item) for item in _responses("ex2", answer, case, "logs")]}


def observe_slow(answer: Answer, case: Facts) -> Facts:
    """What is said of each run."""

    def plain(item: Any) -> Any:
        given = entries(item, "cause", "since")
        if not isinstance(given, dict):
            return given
        return {"cause": text(given["cause"]), "since": maybe(given["since"])}

    return {"response": [plain(item) for item in _responses("ex3", answer, case, "reports")]}


def observe_pending(answer: Answer, case: Facts) -> Facts:
    """The cause that is named for each task."""
    items = _responses("ex4", answer, case, "job", "cluster")
    return {
        "response": [
            {"cause": text(item)} if isinstance(item, str) else describe(item) for item in items
        ]
    }


def _responses(exercise: str, answer: Answer, case: Facts, *inputs: str) -> list[Any]:
    calls = [tuple(incident[name] for name in inputs) for incident in case["incidents"]]
    return invoke.responses(f"lab17.{exercise}", answer, calls, ())


OBSERVERS = {
    "ex1": Observer("holders", observe_holders),
    "ex2": Observer("first_failure", observe_ranks),
    "ex3": Observer("slow", observe_slow),
    "ex4": Observer("pending", observe_pending),
}
