"""The cases and the judgement of percentiles and their intervals, exercise 2 of lab 12."""

import math
import random
import statistics
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import all_right, among, not_of_the_form, row
from utils.labs.lab12 import draws
from utils.labs.values import Ways, near, right_values

SAYS = says("lab12")

TOLERANCE = 1e-9
WEIGHT = 3


def worker_cases(rng: random.Random, workers: int, p: float) -> Facts:
    """One fleet: what each worker served and how many of its latencies it kept, and p."""
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
        results = {"p": p, "workers": kept}
        right = merged(results)
        if _clear(results) and not any(near(item, right, 1e-3) for _, item in merged_ways(results)):
            return results


def merged(fleet: Facts) -> float:
    """The smallest sample such that it and the smaller ones stand for p % of all requests."""
    return _by(_weigh(fleet), fleet["p"])


def _weigh(fleet: Facts) -> list[tuple[float, float]]:
    """Every sample that was kept, and how many requests it stands for."""
    return [
        (sample, worker["requests"] / len(worker["samples"]))
        for worker in draws.workers(fleet)
        for sample in worker["samples"]
    ]


def _by(weighed: list[tuple[float, float]], p: float) -> float:
    """The smallest value such that it and the smaller ones have p % of all weight."""
    ordered = sorted(weighed)
    reached = np.cumsum([weight for _, weight in ordered])
    return ordered[int(np.searchsorted(reached, reached[-1] * p / 100))][0]


def _clear(fleet: Facts) -> bool:
    """Whether no rounding of sums decides which sample it is."""
    reached = np.cumsum([weight for _, weight in sorted(_weigh(fleet))])
    return bool(abs(reached / reached[-1] - fleet["p"] / 100).min() > 1e-6)


def merged_ways(fleet: Facts) -> Ways:
    """What wrong ways give for the percentile of a fleet, in ms."""
    workers = [worker for worker in draws.workers(fleet) if worker["samples"]]
    own = [float(np.percentile(worker["samples"], fleet["p"])) for worker in workers]
    nearest = [
        sorted(worker["samples"])[math.ceil(fleet["p"] / 100 * len(worker["samples"])) - 1]
        for worker in workers
    ]
    served = [worker["requests"] for worker in workers]
    pooled = sorted(sample for worker in workers for sample in worker["samples"])
    mean = SAYS["mean-of-percentiles"]
    weighed = mean + SAYS["weighed-mean"]
    return [
        *((mean, statistics.fmean(item)) for item in (own, nearest)),
        *((weighed, float(np.average(item, weights=served))) for item in (own, nearest)),
        ("this is the median of the workers' percentiles: merge the samples, then take one",
         statistics.median(own)),
        (SAYS["the-slowest-worker"], max(own)),
        (SAYS["the-slowest-worker"], max(nearest)),
        (_POOLED, float(np.percentile(pooled, fleet["p"]))),
        (_POOLED, pooled[math.ceil(fleet["p"] / 100 * len(pooled)) - 1]),
        ("this is the percentile of the busiest worker alone",
         nearest[served.index(max(served))]),
        (SAYS["requests-as-weights"],
         _by([(s, w["requests"]) for w in workers for s in w["samples"]], fleet["p"])),
        ("the weight of a sample is requests / samples kept, not the other way round",
         _by([(s, len(worker["samples"]) / worker["requests"])
              for worker in workers for s in worker["samples"]], fleet["p"])),
    ]  # fmt: skip


_POOLED = SAYS["pooled"]


def judge_merged(case: Facts, response: list[Any]) -> Criterion:
    """One criterion: the percentile of all requests of a fleet, from samples of its workers."""
    return right_values(
        "merged",
        WEIGHT,
        ["None" if item is None else item for item in response],
        [merged(fleet) for fleet in case["fleets"]],
        [f"p{fleet['p']:g} of {len(fleet['workers'])} workers" for fleet in case["fleets"]],
        [merged_ways(fleet) for fleet in case["fleets"]],
        "sort all samples, and add up how many requests each stands for, until p % are reached",
        TOLERANCE,
    )


Ends = tuple[float | None, float | None]


def set_label(item: Facts) -> str:
    """A sample by its percentile and size, for messages."""
    count = item["count"]
    return (
        f"p{item['p']:g} of {count} sample{'s' * (count != 1)} ({item['kind']}), level"
        f" {item['level']:g}"
    )


def samples_of(item: Facts) -> tuple[float, ...]:
    """The latencies of a sample in ms, in ascending order."""
    return _order(item["kind"], item["count"], item["seed"])


@cache
def _order(kind: str, count: int, seed: int) -> tuple[float, ...]:
    return tuple(sorted(draws.latencies(kind, count, seed)))


@cache
def below(count: int, p: float) -> tuple[float, ...]:
    """P(B < rank), for every rank from 1 to count, B binomial with count and p / 100."""
    from scipy.stats import binom

    return tuple(float(item) for item in binom.cdf(np.arange(count), count, p / 100))


def ranks(count: int, p: float, miss: float) -> tuple[int | None, int | None]:
    """The ranks of both ends, from 1; None where no sample bounds the percentile.

    miss: how likely the percentile may lie beyond each end.
    """
    chances = below(count, p)
    low = sum(chance <= miss for chance in chances) or None
    # P(B >= rank) is 1 - P(B < rank).
    high = next((rank for rank, item in enumerate(chances, 1) if 1 - item <= miss), None)
    return low, high


def ends(item: Facts, result: tuple[int | None, int | None] | None = None) -> Ends:
    """The samples at these ranks, or at the right ones."""
    ordered, count = samples_of(item), item["count"]
    low, high = result or ranks(count, item["p"], (1 - item["level"]) / 2)
    return (
        ordered[low - 1] if low and 1 <= low <= count else None,
        ordered[high - 1] if high and 1 <= high <= count else None,
    )


def value(item: Facts) -> float:
    """The percentile of a sample in ms, as NumPy interpolates it."""
    return float(np.percentile(samples_of(item), item["p"]))


# What wrong ways give


def value_ways(item: Facts) -> Ways:
    """What wrong ways give for a percentile, in ms."""
    ordered, p = samples_of(item), item["p"]
    rank = math.ceil(p / 100 * len(ordered))
    results = [
        (SAYS["a-mean-for-a-percentile"], statistics.fmean(ordered)),
        ("this is the median: p says which percentile", statistics.median(ordered)),
        (SAYS["p-as-a-share"], float(np.percentile(ordered, p / 100))),
        (LINEAR, ordered[max(rank, 1) - 1]),
        (LINEAR, ordered[min(int(p / 100 * len(ordered)), len(ordered) - 1)]),
        (LINEAR, ordered[round(p / 100 * (len(ordered) - 1))]),
        *((LINEAR, float(np.percentile(ordered, p, method=name)))
          for name in ("lower", "higher", "weibull", "hazen", "median_unbiased")),
        (SAYS["not-sorted"], _percentile_of_unsorted(item)),
        ("these are seconds: the samples are in ms, and so is the percentile", value(item) / 1e3),
    ]  # fmt: skip
    return [way for way in results if not near(way[1], value(item), TOLERANCE)]


LINEAR = SAYS["nearest-rank"]


def _percentile_of_unsorted(item: Facts) -> float:
    drawn = draws.latencies(item["kind"], item["count"], item["seed"])
    position = item["p"] / 100 * (len(drawn) - 1)
    low = int(position)
    high = min(low + 1, len(drawn) - 1)
    return drawn[low] + (drawn[high] - drawn[low]) * (position - low)


def _miss(item: Facts) -> float:
    return (1 - item["level"]) / 2


def _right_ranks(item: Facts) -> tuple[int, int]:
    """As `ranks`, with 0 and count + 1 in place of None."""
    low, high = ranks(item["count"], item["p"], _miss(item))
    return low or 0, high or item["count"] + 1


def _shift(low: int, high: int) -> Callable[[Facts], Ends]:
    """The ends at ranks so far from the right ones."""

    def way(item: Facts) -> Ends:
        ranks = _right_ranks(item)
        return ends(item, (ranks[0] + low, ranks[1] + high))

    return way


def _of_mean(item: Facts) -> Ends:
    ordered = samples_of(item)
    if len(ordered) < 2:
        return None, None
    off = statistics.NormalDist().inv_cdf(1 - _miss(item)) * statistics.stdev(ordered)
    mean = statistics.fmean(ordered)
    return mean - off / math.sqrt(len(ordered)), mean + off / math.sqrt(len(ordered))


def _spread(item: Facts) -> Ends:
    ordered = samples_of(item)
    miss = 100 * _miss(item)
    return float(np.percentile(ordered, miss)), float(np.percentile(ordered, 100 - miss))


def _normal(item: Facts) -> Ends:
    count, share = item["count"], item["p"] / 100
    off = statistics.NormalDist().inv_cdf(1 - _miss(item)) * math.sqrt(count * share * (1 - share))
    return ends(item, (math.floor(count * share - off), math.ceil(count * share + off)))


END_WAYS: list[tuple[str, Callable[[Facts], Ends]]] = [
    (SAYS["one-side"], lambda item: ends(item, ranks(item["count"], item["p"], 2 * _miss(item)))),
    (SAYS["ranks-from-0"], _shift(1, 1)),
    (SAYS["at-most-in-place-of-below"], _shift(-1, -1)),
    (SAYS["the-upper-end-short"], _shift(0, -1)),
    ("the lower end is one sample too high: P(B < rank) has to be small, P(B <= rank) is more",
     _shift(1, 0)),
    ("the interval is wider than it need be: take the largest low rank and the smallest high",
     _shift(-1, 1)),
    (SAYS["of-the-mean"], _of_mean),
    (SAYS["spread-of-the-samples"], _spread),
    (SAYS["a-normal-curve"], _normal),
    (SAYS["the-range"], lambda item: (samples_of(item)[0], samples_of(item)[-1])),
]  # fmt: skip


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
        tails = below(results["count"], p)
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
    if odd := not_of_the_form(response, WEIGHTS, SAYS["no-ends"]):
        return [*odd, judge_merged(case, facts["merged"])]
    pairs = list(zip(case["sets"], response, strict=True))
    large = [(s, e) for s, e in pairs if None not in ends(s)]
    small = [(s, e) for s, e in pairs if None in ends(s)]
    values = ["None" if item["value"] is None else item["value"] for item in response]
    right = [value(set_) for set_ in case["sets"]]
    labels = [set_label(set_) for set_ in case["sets"]]
    ways, advice = [value_ways(set_) for set_ in case["sets"]], LINEAR
    return [
        right_values("value", WEIGHTS["value"], values, right, labels, ways, advice, TOLERANCE),
        among(_judge_ends("interval", large), [s for s, _ in large], case["sets"]),
        among(_judge_ends("too small", small), [s for s, _ in small], case["sets"]),
        judge_merged(case, facts["merged"]),
    ]


def _judge_ends(name: str, pairs: list[tuple[Facts, Facts]]) -> Criterion:
    texts = [(e["low"], e["high"]) for _, e in pairs]
    wrong = [p for p, (s, _) in enumerate(pairs) if not _same(texts[p], s)]
    message = _why_ends([(pairs[p][0], texts[p]) for p in wrong]) if wrong else ""
    rows = [
        row(f"{set_label(pairs[p][0])}, {side}", mine, right)
        for p in wrong
        for side, mine, right in zip(("low", "high"), texts[p], ends(pairs[p][0]), strict=True)
        if not near(mine, right, TOLERANCE)
    ]
    return all_right(name, WEIGHTS[name], wrong, len(pairs), message, "both ends", rows, texts)


def _same(response: tuple[Any, Any], item: Facts, right: Ends | None = None) -> bool:
    return all(near(a, b, TOLERANCE) for a, b in zip(response, right or ends(item), strict=True))


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
            return _UNBOUNDED.format(side=side, end=result, count=item["count"])
    known = [
        (sum(_same(response, some, way(some)) for some, response in wrong), text)
        for text, way in END_WAYS
        if _same((low, high), item, way(item))
    ]
    if known:
        return max(known, key=lambda counted: counted[0])[1]
    for side, result, wanted in zip(("lower", "upper"), (low, high), right, strict=True):
        if result is not None and wanted is None:
            return _UNBOUNDED.format(side=side, end=result, count=item["count"])
    ordered = samples_of(item)
    if not all(any(near(end, sample, 1e-9) for sample in ordered) for end in (low, high) if end):
        return (
            "an end that holds for any distribution is one of the samples, at a rank that the"
            " binomial gives"
        )
    return "the ends are samples at other ranks: what are P(B < rank) and P(B >= rank) there?"


_UNBOUNDED = SAYS["the-largest-for-none"]
