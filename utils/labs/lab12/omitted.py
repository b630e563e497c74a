"""The cases and the judgement of what a waiting client omits, exercise 3 of lab 12."""

import random
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import all_right, among, not_of_the_form, row
from utils.labs.lab12 import draws
from utils.labs.values import near

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


def _all_latencies(log: Facts) -> list[float]:
    took = log["took_ms"]
    return [a for a, item in zip(open_loop(log), took, strict=True) if item is not None]


def _subtract(log: Facts) -> list[float]:
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
    (_ALL, _all_latencies),
    (SAYS["no-queue"], filled),
    (SAYS["unsent-are-nothing"], lambda log: open_loop(log, filled(log, lambda _: 0.0))),
    (SAYS["the-mean-for-none"], lambda log: open_loop(log, filled(log, statistics.fmean))),
    (SAYS["the-longest-for-none"], lambda log: open_loop(log, filled(log, max))),
    (SAYS["waits-are-not-passed-on"], _neighbour),
    (SAYS["one-slot"], lambda log: open_loop(log, slots=1)),
    (SAYS["in-turn"], _round_robin),
    (SAYS["the-wait"], _waits_only),
    (SAYS["moments"], _ends),
    (SAYS["a-histograms-repair"], _subtract),
    (SAYS["seconds-in-the-open-loop"], lambda log: [x / 1e3 for x in open_loop(log)]),
]


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


def _p99(latencies: list[float]) -> float:
    return float(np.percentile(latencies, 99))


def judge_open_loops(case: Facts, facts: Facts) -> list[Criterion]:
    """Four criteria: p99 of either loop, and the latencies with one slot and with several."""
    response = facts["response"]
    form = "{{'open_ms': [...], 'open_p99_ms': ..., 'closed_p99_ms': ...}}"
    if odd := not_of_the_form(response, WEIGHTS, "`open_loop` returned {strange}: return " + form):
        return odd
    asked = [(draws.closed_log(log), log, s) for log, s in zip(case["logs"], response, strict=True)]
    one = [item for item in asked if item[1]["slots"] == 1]
    several = [item for item in asked if item[1]["slots"] > 1]
    return [
        _close(asked),
        among(_queue("one slot", one), one, asked),
        among(_queue("several slots", several), several, asked),
        _open(asked),
    ]


Asked = list[tuple[Facts, Facts, Facts]]
"""The log, how it is drawn, and what was said of it."""


def _close(asked: Asked) -> Criterion:
    ways = (
        (SAYS["the-open-p99-for-both"], lambda log: _p99(open_loop(log))),
        (SAYS["zeros-in-the-closed-loop"], lambda log: _p99([t or 0.0 for t in log["took_ms"]])),
        ("this is the median: p99 is asked for", lambda log: float(np.percentile(sent(log), 50))),
        (SAYS["the-longest"], lambda log: max(sent(log))),
        ("what the client saw is what it sent, nothing filled in", lambda log: _p99(filled(log))),
    )
    return _percentile(
        "closed loop", "closed_p99", asked, lambda log: _p99(sent(log)), ways,
        "p99 of took_ms, of those that were sent",
    )  # fmt: skip


def _open(asked: Asked) -> Criterion:
    ways = (
        (SAYS["the-closed-p99-for-both"], lambda log: _p99(sent(log))),
        ("this is the median: p99 is asked for",
         lambda log: float(np.percentile(open_loop(log), 50))),
        (SAYS["the-longest"], lambda log: max(open_loop(log))),
        *((text, lambda log, way=way: _p99(way(log))) for text, way in WAYS),
    )  # fmt: skip
    return _percentile(
        "open loop", "open_p99", asked, lambda log: _p99(open_loop(log)), ways,
        "p99 of all latencies of the open loop",
    )  # fmt: skip


def _percentile(
    name: str, key: str, asked: Asked, right: Callable[[Facts], float], ways: Any, advice: str
) -> Criterion:
    wrong = [p for p, (log, _, s) in enumerate(asked) if not near(s[key], right(log), TOLERANCE)]
    if not wrong:
        return all_right(name, WEIGHTS[name], [], len(asked), "", "p99 exact")
    log, response = asked[wrong[0]][0], asked[wrong[0]][2][key]
    if not isinstance(response, int | float):
        text = f"found {response}, return a number"
    else:
        text = next((t for t, way in ways if near(response, way(log), TOLERANCE)), advice)
    rows = [row(label(asked[p][1]), asked[p][2][key], right(asked[p][0])) for p in wrong]
    texts = [s[key] for *_, s in asked]
    return all_right(name, WEIGHTS[name], wrong, len(asked), text, "p99 exact", rows, texts)


def _same(items: Any, right: list[float]) -> bool:
    if items is None or len(items) != len(right):
        return False
    pairs = zip(items, right, strict=True)
    return all(isinstance(a, int | float) and abs(a - b) < 1e-6 for a, b in pairs)


def _queue(name: str, asked: Asked) -> Criterion:
    texts = [s["open"]["items"] for *_, s in asked]
    wrong = [p for p, (log, *_) in enumerate(asked) if not _same(texts[p], open_loop(log))]
    message, rows = "", []
    if wrong:
        log, drawn, response = asked[wrong[0]]
        message = f"{label(drawn)}: {_why(log, response['open'])}"
        pairs = zip(texts[wrong[0]] or [], open_loop(log), strict=False)
        rows = [row(f"request {n}", a, b) for n, (a, b) in enumerate(pairs) if a != b]
    return all_right(name, WEIGHTS[name], wrong, len(asked), message, "every latency", rows, texts)


def _why(log: Facts, response: Facts) -> str:
    items, right = response["items"], open_loop(log)
    if items is None:
        return f"open_ms is {response['kind']}: return a list, a latency for every due time"
    if text := next((text for text, way in WAYS if _same(items, way(log))), ""):
        return text
    if len(items) != len(right):
        return f"open_ms is {response['kind']}: {len(right)} requests are due, each has a latency"
    if strange := next((item for item in items if not isinstance(item, int | float)), ""):
        return f"a latency is {strange}: return numbers, in milliseconds"
    if _same(sorted(items), sorted(right)):
        return SAYS["sorted"]
    place = next(n for n, (a, b) in enumerate(zip(items, right, strict=True)) if abs(a - b) > 1e-6)
    return (
        f"the latency of request {place} is the first that is wrong: when is it due, when is a slot"
        " free, how long does it take?"
    )
