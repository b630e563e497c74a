"""The cases and the judgement of what a waiting client omits, exercise 3 of lab 12."""

import random
import statistics
from typing import Any

import numpy as np

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import all_right, among, not_of_the_form, row
from utils.labs.lab12 import draws
from utils.labs.values import right_values
from utils.labs.wrong_answers import Known, column, message_of

SAYS = says("lab12")


def sent(log: Facts) -> list[float]:
    """The latencies of the requests that were sent, in ms."""
    return [item for item in log["took_ms"] if item is not None]


def filled(log: Facts) -> list[float]:
    """How long each request takes in a slot; those never sent as usual."""
    usual = statistics.median(sent(log))
    return [usual if item is None else item for item in log["took_ms"]]


def open_loop(log: Facts) -> list[float]:
    """The latency of every request, from when it was due, if all of them are sent then."""
    free = [0.0] * log["slots"]
    results = []
    for due, item in zip(log["due_ms"], filled(log), strict=True):
        place = free.index(min(free))
        free[place] = max(due, free[place]) + item
        results.append(free[place] - due)
    return results


TOLERANCE = 1e-9
WEIGHTS = {"closed loop": 1, "one slot": 3, "several slots": 2, "open loop": 1}


def log_cases(rng: random.Random) -> list[Facts]:
    """Short logs with one slot, then longer ones, also with several."""
    short, long = ((12, 1), (24, 1), (20, 2)), ((90, 1), (120, 1), (90, 2), (150, 3), (120, 4))
    return [
        {"logs": [_log(rng, count, slots, sizes is short) for count, slots in sizes]}
        for sizes in (short, long)
    ]


def _log(rng: random.Random, count: int, slots: int, steady: bool) -> Facts:
    while True:
        every = rng.randint(10, 30)
        results = {
            "seed": rng.randrange(10**9),
            "count": count,
            "slots": slots,
            "steady": steady,
            "every_ms": every,
            "bursts": 0 if steady else rng.randint(1, 2),
            "burst": 0 if steady else rng.randint(4, 8),
            "took_ms": round(every * rng.uniform(0.5, 0.8), 1),
            "stall_ms": every * rng.randint(5, 9) * slots,
            "stalls": 1 if count < 50 else rng.randint(2, 3),
        }
        log = draws.closed_log(results)
        skipped = sum(item is None for item in log["took_ms"])
        # Some have to wait for a slot, and the median has to be told from the mean.
        waited = sum(a > b + 1e-9 for a, b in zip(open_loop(log), filled(log), strict=True))
        if count / 8 < skipped < count * 2 / 3 and waited > max(2, slots):
            return results


def log_words(case: Facts) -> str:
    """What a card says of a case."""
    item = case["logs"][0]
    return f"{len(case['logs'])} logs, the first {label(item)}"


def label(item: Facts) -> str:
    """A log by its load, for messages."""
    slots = "1 slot" if item["slots"] == 1 else f"{item['slots']} slots"
    return f"of {item['count']} requests, one every {item['every_ms']} ms, {slots}"


def judge_open_loops(case: Facts, facts: Facts) -> list[Criterion]:
    """Four criteria: p99 of either loop, and the latencies with one slot and with several."""
    response = facts["response"]
    form = "{{'open_ms': [...], 'open_p99_ms': ..., 'closed_p99_ms': ...}}"
    if odd := not_of_the_form(response, WEIGHTS, "`open_loop` returned {strange}: return " + form):
        return odd
    logs = [draws.closed_log(log) for log in case["logs"]]
    one = [place for place, log in enumerate(logs) if log["slots"] == 1]
    several = [place for place in range(len(logs)) if place not in one]
    latencies = [open_loop(log) for log in logs]
    return [
        _percentile("closed loop", case, facts, [sent(log) for log in logs]),
        _queue("one slot", case, facts, latencies, one),
        _queue("several slots", case, facts, latencies, several),
        _percentile("open loop", case, facts, latencies),
    ]


_P99 = {
    "closed loop": ("closed_p99", "p99 of took_ms, of those that were sent"),
    "open loop": ("open_p99", "p99 of all latencies of the open loop"),
}
"""What is returned for a loop, and the advice otherwise."""


def _percentile(name: str, case: Facts, facts: Facts, latencies: list[list[float]]) -> Criterion:
    key, advice = _P99[name]
    numbers = column(key)
    return right_values(
        name,
        WEIGHTS[name],
        ["None" if item is None else item for item in numbers(facts)],
        [float(np.percentile(some, 99)) for some in latencies],
        [label(log) for log in case["logs"]],
        Known("lab12.ex3", case, numbers, facts),
        advice,
        TOLERANCE,
    )


def _same(items: Any, others: Any) -> bool:
    if items is None or others is None or len(items) != len(others):
        return False
    return all(map(_close, items, others))


def _close(some: Any, other: Any) -> bool:
    numbers = isinstance(some, int | float) and isinstance(other, int | float)
    return numbers and abs(some - other) < 1e-6


def _queue(
    name: str, case: Facts, facts: Facts, right: list[list[float]], places: list[int]
) -> Criterion:
    """Whether every latency is right in the logs at these places."""
    texts = _latencies(facts)
    wrong = [place for place in places if not _same(texts[place], right[place])]
    message, rows = "", []
    if wrong:
        first = wrong[0]

        def alike(other: Facts) -> bool:
            return _same(texts[first], _latencies(other)[first])

        advice = _advice(facts["response"][first]["open"], right[first])
        text = message_of("lab12.ex3", case, alike, advice, facts)
        message = f"{label(case['logs'][first])}: {text}"
        pairs = zip(texts[first] or [], right[first], strict=False)
        rows = [row(f"request {n}", a, b) for n, (a, b) in enumerate(pairs) if a != b]
    off = [places.index(place) for place in wrong]
    some = [texts[place] for place in places]
    item = all_right(name, WEIGHTS[name], off, len(places), message, "every latency", rows, some)
    return among(item, places, range(len(texts)))


def _latencies(facts: Facts) -> list[Any]:
    return [item["open"]["items"] for item in facts["response"]]


def _advice(response: Facts, right: list[float]) -> str:
    items = response["items"]
    if items is None:
        return f"open_ms is {response['kind']}: return a list, a latency for every due time"
    if len(items) != len(right):
        return f"open_ms is {response['kind']}: {len(right)} requests are due, each has a latency"
    if strange := next((item for item in items if not isinstance(item, int | float)), ""):
        return f"a latency is {strange}: return numbers, in milliseconds"
    place = next(n for n, (a, b) in enumerate(zip(items, right, strict=True)) if not _close(a, b))
    return (
        f"the latency of request {place} is the first that is wrong: when is it due, when is a slot"
        " free, how long does it take?"
    )
