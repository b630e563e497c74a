"""The cases and the judgement of what a waiting client omits, exercise 3 of lab 12."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import all_right, among, not_asked_for, row
from utils.labs.lab12 import draws
from utils.labs.lab12.loops import WAYS, filled, open_loop, sent
from utils.labs.values import near

SAYS = says("lab12")

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


def label(each: Facts) -> str:
    """A log by its load, for messages."""
    slots = "1 slot" if each["slots"] == 1 else f"{each['slots']} slots"
    return f"of {each['count']} requests, one every {each['every_ms']} ms, {slots}"


def _p99(latencies: list[float]) -> float:
    return float(np.percentile(latencies, 99))


def judge_open_loops(case: Facts, facts: Facts) -> list[Criterion]:
    """Four criteria: p99 of either loop, and the latencies with one slot and with several."""
    response = facts["said"]
    if strange := next((item for item in response if isinstance(item, str)), None):
        message = (
            f"`open_loop` returned {strange}: return {{'open_ms': [...], 'open_p99_ms': ...,"
            " 'closed_p99_ms': ...}"
        )
        return not_asked_for(WEIGHTS, message, "not judged", others="not judged")
    asked = [(draws.closed_log(log), log, s) for log, s in zip(case["logs"], response, strict=True)]
    one = [item for item in asked if item[1]["slots"] == 1]
    several = [item for item in asked if item[1]["slots"] > 1]
    return [
        _closed(asked),
        among(_queue("one slot", one), one, asked),
        among(_queue("several slots", several), several, asked),
        _open(asked),
    ]


Asked = list[tuple[Facts, Facts, Facts]]
"""The log, how it is drawn, and what was said of it."""


def _closed(asked: Asked) -> Criterion:
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
    said = [s[key] for *_, s in asked]
    return all_right(name, WEIGHTS[name], wrong, len(asked), text, "p99 exact", rows, said)


def _same(items: Any, right: list[float]) -> bool:
    if items is None or len(items) != len(right):
        return False
    pairs = zip(items, right, strict=True)
    return all(isinstance(a, int | float) and abs(a - b) < 1e-6 for a, b in pairs)


def _queue(name: str, asked: Asked) -> Criterion:
    said = [s["open"]["items"] for *_, s in asked]
    wrong = [p for p, (log, *_) in enumerate(asked) if not _same(said[p], open_loop(log))]
    message, rows = "", []
    if wrong:
        log, drawn, response = asked[wrong[0]]
        message = f"{label(drawn)}: {_why(log, response['open'])}"
        pairs = zip(said[wrong[0]] or [], open_loop(log), strict=False)
        rows = [row(f"request {n}", a, b) for n, (a, b) in enumerate(pairs) if a != b]
    return all_right(name, WEIGHTS[name], wrong, len(asked), message, "every latency", rows, said)


def _why(log: Facts, said: Facts) -> str:
    items, right = said["items"], open_loop(log)
    if items is None:
        return f"open_ms is {said['kind']}: return a list, a latency for every due time"
    if text := next((text for text, way in WAYS if _same(items, way(log))), ""):
        return text
    if len(items) != len(right):
        return f"open_ms is {said['kind']}: {len(right)} requests are due, each has a latency"
    if strange := next((item for item in items if not isinstance(item, int | float)), ""):
        return f"a latency is {strange}: return numbers, in milliseconds"
    if _same(sorted(items), sorted(right)):
        return SAYS["sorted"]
    place = next(n for n, (a, b) in enumerate(zip(items, right, strict=True)) if abs(a - b) > 1e-6)
    return (
        f"the latency of request {place} is the first that is wrong: when is it due, when is a slot"
        " free, how long does it take?"
    )
