"""The cases and the judgement of percentiles and their intervals, exercise 2 of lab 12."""

import operator
import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import all_right, among, not_of_the_form, row
from utils.labs.lab12 import draws
from utils.labs.values import near, right_values
from utils.labs.wrong_answers import Known, message_of

SAYS = says("lab12")

TOLERANCE = 1e-9
WEIGHTS = {"value": 1, "interval": 3, "too small": 2}
MERGED = 3

SETS = (
    (((9, 14), 50, 0.95), ((15, 30), 50, 0.9), ((4, 5), 50, 0.95), ((70, 90), 95, 0.95)),
    (
        *(((100, 190), 90, 0.99), ((40, 60), 90, 0.9), ((500, 700), 99, 0.95)),
        *(((150, 250), 99, 0.95), ((500, 800), 99.9, 0.95), ((25, 60), 25, 0.95)),
        *(((8, 12), 10, 0.9), ((600, 900), 95, 0.99), ((1, 1), 50, 0.95)),
    ),
)
"""For each set how many samples, which percentile, and at which level."""

CLEAR = 1e-6
"""By how much a probability has to lie from its limit: no order of sums may decide a rank."""


def percentile_cases(rng: random.Random) -> list[Facts]:
    """Few samples first. Each case has sets that are large enough, and some that are too small."""
    return [
        {
            "sets": [_set(rng, *set_) for set_ in sets],
            "fleets": [_fleet(rng, *fleet) for fleet in fleets],
        }
        for sets, fleets in zip(SETS, (((2, 50), (3, 90)), ((4, 99), (6, 95))), strict=True)
    ]


def _set(rng: random.Random, counts: tuple[int, int], p: float, level: float) -> Facts:
    from scipy.stats import binom  # takes a second to load

    while True:
        results: Facts = {
            "kind": rng.choice(draws.KINDS),
            "count": rng.randint(*counts),
            "seed": rng.randrange(10**9),
            "p": p,
            "level": level,
        }
        miss = (1 - level) / 2
        below = binom.cdf(np.arange(results["count"]), results["count"], p / 100)
        if min(abs(below - miss).min(), abs(1 - below - miss).min()) > CLEAR:
            return results


def _fleet(rng: random.Random, workers: int, p: float) -> Facts:
    """What each worker served and how many of its latencies it kept, and p."""
    while True:
        kept = [
            {
                "kind": rng.choice(draws.KINDS),
                "requests": rng.randint(100, 60_000),
                "count": rng.randint(20, 90),
                "seed": rng.randrange(10**9),
            }
            for _ in range(workers)
        ]
        if workers > 3:
            kept.insert(rng.randrange(workers), {**kept[0], "requests": 0, "count": 0})
        fleet = {"p": p, "workers": kept}
        if _clear(fleet) and merged(fleet) not in [merged(fleet, wrong) for wrong in WRONG_WEIGHTS]:
            return fleet


Weight = Callable[[float, float], float]
"""How much each sample of a worker counts: of the requests that it served, and the samples kept."""

WRONG_WEIGHTS: list[Weight] = [
    lambda requests, kept: 1,
    lambda requests, kept: requests,
    lambda requests, kept: kept / requests,
]
"""With each of them the percentile of a fleet is another sample than the right one."""


def _weighed(fleet: Facts, weight: Weight) -> tuple[list[float], np.ndarray]:
    """All samples in ascending order, and the share of all weight up to each of them."""
    pairs = sorted(
        (sample, weight(worker["requests"], len(worker["samples"])))
        for worker in draws.workers(fleet)
        for sample in worker["samples"]
    )
    reached = np.cumsum([weight for _, weight in pairs])
    return [sample for sample, _ in pairs], reached / reached[-1]


def _clear(fleet: Facts) -> bool:
    """Whether no rounding of sums decides which sample it is."""
    _, reached = _weighed(fleet, operator.truediv)
    return bool(abs(reached - fleet["p"] / 100).min() > CLEAR)


def merged(fleet: Facts, weight: Weight = operator.truediv) -> float:
    """The smallest sample in ms such that it and the smaller ones stand for p % of all requests."""
    ordered, reached = _weighed(fleet, weight)
    return ordered[int(np.searchsorted(reached, fleet["p"] / 100))]


def percentile_words(case: Facts) -> str:
    """What a card says of a case."""
    item = case["sets"][0]
    return (
        f"{len(case['sets'])} samples, the first of {item['count']} latencies at p ="
        f" {item['p']:g} and level = {item['level']:g}, and {len(case['fleets'])} fleets"
    )


def set_label(item: Facts) -> str:
    """A sample by its percentile and size, for messages."""
    count = item["count"]
    return (
        f"p{item['p']:g} of {count} sample{'s' * (count != 1)} ({item['kind']}), level"
        f" {item['level']:g}"
    )


def samples_of(item: Facts) -> list[float]:
    """The latencies of a sample in ms."""
    return draws.latencies(item["kind"], item["count"], item["seed"])


Ends = tuple[Any, Any]
"""Both ends of an interval: numbers, None, or what was returned instead."""


@cache
def _right(kind: str, count: int, seed: int, p: float, level: float) -> tuple[float, Ends]:
    """The percentile of a sample in ms, and both ends of its interval."""
    from utils.serving.bench.quantiles import interval, percentile  # takes a second to load

    samples = draws.latencies(kind, count, seed)
    return percentile(samples, p), interval(samples, p, level)


def judge_percentiles(case: Facts, facts: Facts) -> list[Criterion]:
    """Four criteria: percentiles, intervals, samples too small for one, and whole fleets."""
    response = facts["percentiles"]
    if odd := not_of_the_form(response, WEIGHTS, SAYS["no-ends"]):
        return [*odd, judge_merged(case, facts["merged"])]
    sets = case["sets"]
    numbers, right = zip(*(_right(**item) for item in sets), strict=True)
    small = [place for place, ends in enumerate(right) if None in ends]
    large = [place for place in range(len(sets)) if place not in small]
    values = right_values(
        "value",
        WEIGHTS["value"],
        ["None" if item["value"] is None else item["value"] for item in response],
        numbers,
        [set_label(item) for item in sets],
        Known("lab12.ex2", case, lambda facts: [item["value"] for item in facts["percentiles"]]),
        SAYS["nearest-rank"],
        TOLERANCE,
    )
    return [
        values,
        _judge_ends("interval", case, facts, right, large),
        _judge_ends("too small", case, facts, right, small),
        judge_merged(case, facts["merged"]),
    ]


def judge_merged(case: Facts, response: list[Any]) -> Criterion:
    """One criterion: the percentile of all requests of a fleet, from samples of its workers."""
    return right_values(
        "merged",
        MERGED,
        ["None" if item is None else item for item in response],
        [merged(fleet) for fleet in case["fleets"]],
        [f"p{fleet['p']:g} of {len(fleet['workers'])} workers" for fleet in case["fleets"]],
        Known("lab12.ex2", case, lambda facts: facts["merged"]),
        "sort all samples, and add up how many requests each stands for, until p % are reached",
        TOLERANCE,
    )


def _judge_ends(
    name: str, case: Facts, facts: Facts, right: Sequence[Ends], places: list[int]
) -> Criterion:
    """Whether both ends are right for the sets at these places."""
    response = _ends(facts)
    texts = [response[place] for place in places]
    wrong = [place for place in places if not _same(response[place], right[place])]
    rows = [
        row(f"{set_label(case['sets'][place])}, {side}", mine, end)
        for place in wrong
        for side, mine, end in zip(("low", "high"), response[place], right[place], strict=True)
        if not near(mine, end, TOLERANCE)
    ]
    message = _why(case, facts, right, wrong[0]) if wrong else ""
    off = [places.index(place) for place in wrong]
    item = all_right(name, WEIGHTS[name], off, len(places), message, "both ends", rows, texts)
    return among(item, places, range(len(response)))


def _ends(facts: Facts) -> list[Ends]:
    return [(item["low"], item["high"]) for item in facts["percentiles"]]


def _same(some: Ends, others: Ends) -> bool:
    return all(near(a, b, TOLERANCE) for a, b in zip(some, others, strict=True))


def _why(case: Facts, facts: Facts, right: Sequence[Ends], place: int) -> str:
    """What is wrong with the ends at a place."""
    item, ends, wanted = case["sets"][place], _ends(facts)[place], right[place]
    if strange := next((end for end in ends if isinstance(end, str)), ""):
        return f"an end is {strange}: return a number, or None"
    sides = list(zip(("lower", "upper"), ends, wanted, strict=True))
    for side, end, bound in sides:
        if end is None and bound is not None:
            return SAYS["none-for-both"].format(side=side)
    unbounded = [
        SAYS["the-largest-for-none"].format(side=side, end=end, count=item["count"])
        for side, end, bound in sides
        if end is not None and bound is None
    ]
    if unbounded and any(near(end, bound, TOLERANCE) for _, end, bound in sides):
        return unbounded[0]

    def alike(other: Facts) -> bool:
        return _same(ends, _ends(other)[place])

    advice = "the ends are samples at other ranks: what are P(B < rank) and P(B >= rank) there?"
    if not all(any(near(end, sample, 1e-9) for sample in samples_of(item)) for end in ends if end):
        advice = (
            "an end that holds for any distribution is one of the samples, at a rank that the"
            " binomial gives"
        )
    return message_of("lab12.ex2", case, alike, [*unbounded, advice][0], facts)
