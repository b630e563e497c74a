"""An open loop from the log of a waiting client, exercise 3 of lab 12: what is right, and what
wrong ways give.

A log is what `draws.closed_log` gives.
"""

import statistics
from collections.abc import Callable

from utils.course.misconceptions import says
from utils.labs import Facts

SAYS = says("lab12")


def sent(log: Facts) -> list[float]:
    """The latencies of the requests that were sent, in ms."""
    return [item for item in log["took_ms"] if item is not None]


def filled(log: Facts, instead: Callable[[list[float]], float] = statistics.median) -> list[float]:
    """How long each request takes in a slot; those never sent as usual."""
    usual = instead(sent(log))
    return [usual if item is None else item for item in log["took_ms"]]


def open_loop(log: Facts, took: list[float] | None = None, slots: int = 0) -> list[float]:
    """The latency of every request, from when it was due, if all of them are sent then."""
    free = [0.0] * (slots or log["slots"])
    results = []
    for due, item in zip(log["due_ms"], took or filled(log), strict=True):
        place = free.index(min(free))
        free[place] = max(due, free[place]) + item
        results.append(free[place] - due)
    return results


# What wrong ways give: a list of latencies each


def _round_robin(log: Facts) -> list[float]:
    free, result = [0.0] * log["slots"], []
    for number, (due, item) in enumerate(zip(log["due_ms"], filled(log), strict=True)):
        place = number % log["slots"]
        free[place] = max(due, free[place]) + item
        result.append(free[place] - due)
    return result


def _neighbour(log: Facts) -> list[float]:
    """Each waits for what is left of the one before, which itself has not waited."""
    took, result, end = filled(log), [], 0.0
    for due, item in zip(log["due_ms"], took, strict=True):
        result.append(max(0.0, end - due) + item)
        end = due + item
    return result


def _waits_only(log: Facts) -> list[float]:
    return [a - b for a, b in zip(open_loop(log), filled(log), strict=True)]


def _ends(log: Facts) -> list[float]:
    return [a + due for a, due in zip(open_loop(log), log["due_ms"], strict=True)]


def _sent_of_all(log: Facts) -> list[float]:
    took = log["took_ms"]
    return [a for a, item in zip(open_loop(log), took, strict=True) if item is not None]


def _subtracted(log: Facts) -> list[float]:
    """The repair of a histogram: for one that took t, others of t less one interval, two, …"""
    results = []
    gap = log["due_ms"][1] - log["due_ms"][0]
    for item in sent(log):
        while item > 0:
            results.append(item)
            item -= gap
    return results


_ALL = SAYS["only-the-sent"]

WAYS: list[tuple[str, Callable[[Facts], list[float]]]] = [
    (_ALL, sent),
    (_ALL, _sent_of_all),
    (SAYS["no-queue"], filled),
    (SAYS["unsent-are-nothing"], lambda log: open_loop(log, filled(log, lambda _: 0.0))),
    (SAYS["the-mean-for-none"], lambda log: open_loop(log, filled(log, statistics.fmean))),
    (SAYS["the-longest-for-none"], lambda log: open_loop(log, filled(log, max))),
    (SAYS["waits-are-not-passed-on"], _neighbour),
    (SAYS["one-slot"], lambda log: open_loop(log, slots=1)),
    (SAYS["in-turn"], _round_robin),
    (SAYS["the-wait"], _waits_only),
    (SAYS["moments"], _ends),
    (SAYS["a-histograms-repair"], _subtracted),
    (SAYS["seconds-in-the-open-loop"], lambda log: [x / 1e3 for x in open_loop(log)]),
]
