"""Inputs of lab 12 from a seed, because they are too long for a case: latencies, logs, arrivals.

The observation draws what an answer gets, the judgement draws the same.
"""

import itertools
import random
from typing import Any

KINDS = ("uniform", "exponential", "lognormal", "two kinds", "heavy tail")
"""Distributions of latencies, in milliseconds."""


def latencies(kind: str, count: int, seed: int) -> list[float]:
    """Independent latencies in ms, in no order, each with three decimals.

    >>> latencies("uniform", 2, 0)
    [20.649, 23.63]
    """
    rng = random.Random(f"{kind}.{seed}")
    draw = {
        "uniform": lambda: rng.uniform(10, 30),
        "exponential": lambda: 5 + rng.expovariate(1 / 20),
        "lognormal": lambda: rng.lognormvariate(3, 0.7),
        "two kinds": lambda: rng.gauss(8, 1) if rng.random() < 0.7 else rng.gauss(60, 8),
        "heavy tail": lambda: 10 * rng.paretovariate(1.5),
    }[kind]
    return [round(abs(draw()), 3) for _ in range(count)]


def workers(fleet: dict[str, Any]) -> list[dict[str, Any]]:
    """What each worker kept: {"requests": how many it served, "samples": some of them, in ms}."""
    return [
        {"requests": worker["requests"], "samples": latencies(*(worker[n] for n in _DRAWN))}
        for worker in fleet["workers"]
    ]


_DRAWN = ("kind", "count", "seed")


def arrivals(case: dict[str, Any]) -> list[float]:
    """When each of "count" requests arrives, in ms, ascending and all different.

    "every_ms" apart on average; in a burst, of which there are "bursts" of "burst" requests each,
    half a millisecond.

    >>> arrivals({"seed": 1, "count": 3, "every_ms": 10.0, "bursts": 0, "burst": 0, "steady": True})
    [10.0, 20.0, 30.0]
    """
    rng = random.Random(f"arrivals.{case['seed']}")
    gaps = [
        case["every_ms"] if case["steady"] else rng.expovariate(1 / case["every_ms"])
        for _ in range(case["count"])
    ]
    for begin in _spread(rng, case["count"], case["bursts"], case["burst"]):
        gaps[begin : begin + case["burst"]] = [0.5] * case["burst"]
    results = [round(item, 3) for item in itertools.accumulate(gaps)]
    # Two at the same moment would leave open which is the first.
    for place in range(1, len(results)):
        results[place] = round(max(results[place], results[place - 1] + 0.001), 3)
    return results


def _spread(rng: random.Random, count: int, parts: int, length: int) -> list[int]:
    """The begin of so many stretches, one in each equal part of `count`."""
    if not parts:
        return []
    item = count // parts
    return [part * item + rng.randint(0, item - length) for part in range(parts)]


def closed_log(case: dict[str, Any]) -> dict[str, Any]:
    """What a client wrote down that sends on time, if it is not still waiting for an answer.

    "due_ms": when each request was due. "took_ms": how long it took; None if it was never sent.
    """
    rng = random.Random(f"log.{case['seed']}")
    due = arrivals(case)
    stalls = set(rng.sample(range(case["count"] // 4, 3 * case["count"] // 4), case["stalls"]))
    usual = [round(case["took_ms"] * rng.uniform(0.6, 1.4), 3) for _ in due]
    took: list[float | None] = []
    free = 0.0
    stalled = False
    for number, moment in enumerate(due):
        stalled = stalled or number in stalls
        if moment < free:
            took.append(None)
            continue
        item = round(case["stall_ms"] * rng.uniform(0.8, 1.2), 3) if stalled else usual[number]
        stalled = False
        took.append(item)
        free = moment + item
    return {"slots": case["slots"], "due_ms": due, "took_ms": took}
