"""The cases and the judgement of percentiles and their intervals, exercise 2 of lab 12."""

import random
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import all_right, among, not_asked_for, row
from utils.labs.lab12 import draws, intervals
from utils.labs.lab12.intervals import TOLERANCE, Ends, ends, set_label
from utils.labs.lab12.merging import judge_merged, worker_cases
from utils.labs.values import near, right_values

SAYS = says("lab12")

CLEAR = 1e-6
"""By how much a probability has to lie from its limit: no order of sums may decide a rank."""

WEIGHTS = {"value": 1, "interval": 3, "too small": 2}

SETS = (
    (((9, 14), 50, 0.95), ((15, 30), 50, 0.9), ((4, 5), 50, 0.95), ((70, 90), 95, 0.95)),
    (
        *(((100, 190), 90, 0.99), ((40, 60), 90, 0.9), ((500, 700), 99, 0.95)),
        *(((150, 250), 99, 0.95), ((500, 800), 99.9, 0.95), ((25, 60), 25, 0.95)),
        *(((8, 12), 10, 0.9), ((600, 900), 95, 0.99), ((1, 1), 50, 0.95)),
    ),
)
"""For each set how many samples, which percentile, and at which level."""


def percentile_cases(rng: random.Random) -> list[Facts]:
    """Few samples first. Each case has sets that are large enough, and some that are too small."""
    return [
        {
            "sets": [_set(rng, *set_) for set_ in sets],
            "fleets": [worker_cases(rng, *fleet) for fleet in fleets],
        }
        for sets, fleets in zip(SETS, (((2, 50), (3, 90)), ((4, 99), (6, 95))), strict=True)
    ]


def _set(rng: random.Random, counts: tuple[int, int], p: float, level: float) -> Facts:
    while True:
        results = {
            "kind": rng.choice(draws.KINDS),
            "count": rng.randint(*counts),
            "seed": rng.randrange(10**9),
            "p": p,
            "level": level,
        }
        miss = (1 - level) / 2
        tails = intervals.below(results["count"], p)
        if all(abs(tail - miss) > CLEAR and abs(1 - tail - miss) > CLEAR for tail in tails):
            return results


def percentile_words(case: Facts) -> str:
    """What a card says of a case."""
    item = case["sets"][0]
    return (
        f"{len(case['sets'])} samples, the first of {item['count']} latencies at p ="
        f" {item['p']:g} and level = {item['level']:g}, and {len(case['fleets'])} fleets"
    )


def judge_percentiles(case: Facts, facts: Facts) -> list[Criterion]:
    """Four criteria: percentiles, intervals, samples too small for one, and whole fleets."""
    response = facts["percentiles"]
    if strange := next((item for item in response if isinstance(item, str)), None):
        message = SAYS["no-ends"].format(strange=strange)
        own = {name: WEIGHTS[name] for name in ("value", "interval", "too small")}
        rows = not_asked_for(own, message, "not judged", others="not judged")
        return [*rows, judge_merged(case, facts["merged"])]
    pairs = list(zip(case["sets"], response, strict=True))
    large = [(s, e) for s, e in pairs if None not in ends(s)]
    small = [(s, e) for s, e in pairs if None in ends(s)]
    values = ["None" if item["value"] is None else item["value"] for item in response]
    right = [intervals.value(set_) for set_ in case["sets"]]
    labels = [set_label(set_) for set_ in case["sets"]]
    ways, advice = [intervals.value_ways(set_) for set_ in case["sets"]], intervals.LINEAR
    return [
        right_values("value", WEIGHTS["value"], values, right, labels, ways, advice, TOLERANCE),
        among(_judge_ends("interval", large), [s for s, _ in large], case["sets"]),
        among(_judge_ends("too small", small), [s for s, _ in small], case["sets"]),
        judge_merged(case, facts["merged"]),
    ]


def _judge_ends(name: str, pairs: list[tuple[Facts, Facts]]) -> Criterion:
    said = [(e["low"], e["high"]) for _, e in pairs]
    wrong = [p for p, (s, _) in enumerate(pairs) if not _same(said[p], s)]
    message = _why_ends([(pairs[p][0], said[p]) for p in wrong]) if wrong else ""
    rows = [
        row(f"{set_label(pairs[p][0])}, {side}", mine, right)
        for p in wrong
        for side, mine, right in zip(("low", "high"), said[p], ends(pairs[p][0]), strict=True)
        if not near(mine, right, TOLERANCE)
    ]
    return all_right(name, WEIGHTS[name], wrong, len(pairs), message, "both ends", rows, said)


def _same(said: tuple[Any, Any], each: Facts, right: Ends | None = None) -> bool:
    return all(near(a, b, TOLERANCE) for a, b in zip(said, right or ends(each), strict=True))


def _why_ends(wrong: list[tuple[Facts, tuple[Any, Any]]]) -> str:
    item, (low, high) = wrong[0]
    right = ends(item)
    if strange := next((end for end in (low, high) if isinstance(end, str)), ""):
        return f"an end is {strange}: return a number, or None"
    for side, result, wanted, other in (
        ("lower", low, right[0], near(high, right[1], TOLERANCE)),
        ("upper", high, right[1], near(low, right[0], TOLERANCE)),
    ):
        if result is None and wanted is not None:
            return SAYS["none-for-both"].format(side=side)
        if result is not None and wanted is None and other:
            return _UNBOUNDED.format(side=side, found=result, count=item["count"])
    known = [
        (sum(_same(response, some, way(some)) for some, response in wrong), text)
        for text, way in intervals.END_WAYS
        if _same((low, high), item, way(item))
    ]
    if known:
        return max(known, key=lambda counted: counted[0])[1]
    for side, result, wanted in zip(("lower", "upper"), (low, high), right, strict=True):
        if result is not None and wanted is None:
            return _UNBOUNDED.format(side=side, found=result, count=item["count"])
    ordered = intervals.samples_of(item)
    if not all(any(near(end, sample, 1e-9) for sample in ordered) for end in (low, high) if end):
        return (
            "an end that holds for any distribution is one of the samples, at a rank that the"
            " binomial gives"
        )
    return "the ends are samples at other ranks: what are P(B < rank) and P(B >= rank) there?"


_UNBOUNDED = SAYS["the-largest-for-none"]
