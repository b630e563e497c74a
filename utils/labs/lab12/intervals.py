"""One percentile and its interval, exercise 2 of lab 12: what is right, what wrong ways give.

A set is one sample as a case describes it: "kind", "count" and "seed" of `draws.latencies`, "p" and
"level".
"""

import math
import statistics
from collections.abc import Callable
from functools import cache

import numpy as np

from utils.course.misconceptions import says
from utils.labs import Facts
from utils.labs.lab12 import draws
from utils.labs.values import Ways, near

SAYS = says("lab12")

TOLERANCE = 1e-9
Ends = tuple[float | None, float | None]


def set_label(each: Facts) -> str:
    """A sample by its percentile and size, for messages."""
    count = each["count"]
    return (
        f"p{each['p']:g} of {count} sample{'s' * (count != 1)} ({each['kind']}), level"
        f" {each['level']:g}"
    )


def samples_of(each: Facts) -> tuple[float, ...]:
    """The latencies of a sample in ms, in ascending order."""
    return _ordered(each["kind"], each["count"], each["seed"])


@cache
def _ordered(kind: str, count: int, seed: int) -> tuple[float, ...]:
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


def ends(each: Facts, found: tuple[int | None, int | None] | None = None) -> Ends:
    """The samples at these ranks, or at the right ones."""
    ordered, count = samples_of(each), each["count"]
    low, high = found or ranks(count, each["p"], (1 - each["level"]) / 2)
    return (
        ordered[low - 1] if low and 1 <= low <= count else None,
        ordered[high - 1] if high and 1 <= high <= count else None,
    )


def value(each: Facts) -> float:
    """The percentile of a sample in ms, as NumPy interpolates it."""
    return float(np.percentile(samples_of(each), each["p"]))


# What wrong ways give


def value_ways(each: Facts) -> Ways:
    """What wrong ways give for a percentile, in ms."""
    ordered, p = samples_of(each), each["p"]
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
        (SAYS["not-sorted"], _unsorted(each)),
        ("these are seconds: the samples are in ms, and so is the percentile", value(each) / 1e3),
    ]  # fmt: skip
    return [way for way in results if not near(way[1], value(each), TOLERANCE)]


LINEAR = SAYS["nearest-rank"]


def _unsorted(each: Facts) -> float:
    drawn = draws.latencies(each["kind"], each["count"], each["seed"])
    position = each["p"] / 100 * (len(drawn) - 1)
    low = int(position)
    high = min(low + 1, len(drawn) - 1)
    return drawn[low] + (drawn[high] - drawn[low]) * (position - low)


def _miss(each: Facts) -> float:
    return (1 - each["level"]) / 2


def _right_ranks(each: Facts) -> tuple[int, int]:
    """As `ranks`, with 0 and count + 1 in place of None."""
    low, high = ranks(each["count"], each["p"], _miss(each))
    return low or 0, high or each["count"] + 1


def _both_at_once(each: Facts) -> Ends:
    return ends(each, ranks(each["count"], each["p"], 2 * _miss(each)))


def _one_up(each: Facts) -> Ends:
    low, high = _right_ranks(each)
    return ends(each, (low + 1, high + 1))


def _one_down(each: Facts) -> Ends:
    low, high = _right_ranks(each)
    return ends(each, (low - 1, high - 1))


def _high_short(each: Facts) -> Ends:
    low, high = _right_ranks(each)
    return ends(each, (low, high - 1))


def _low_short(each: Facts) -> Ends:
    low, high = _right_ranks(each)
    return ends(each, (low + 1, high))


def _wide(each: Facts) -> Ends:
    low, high = _right_ranks(each)
    return ends(each, (low - 1, high + 1))


def _of_mean(each: Facts) -> Ends:
    ordered = samples_of(each)
    if len(ordered) < 2:
        return None, None
    off = statistics.NormalDist().inv_cdf(1 - _miss(each)) * statistics.stdev(ordered)
    mean = statistics.fmean(ordered)
    return mean - off / math.sqrt(len(ordered)), mean + off / math.sqrt(len(ordered))


def _spread(each: Facts) -> Ends:
    ordered = samples_of(each)
    miss = 100 * _miss(each)
    return float(np.percentile(ordered, miss)), float(np.percentile(ordered, 100 - miss))


def _normal(each: Facts) -> Ends:
    count, share = each["count"], each["p"] / 100
    off = statistics.NormalDist().inv_cdf(1 - _miss(each)) * math.sqrt(count * share * (1 - share))
    return ends(each, (math.floor(count * share - off), math.ceil(count * share + off)))


def _range(each: Facts) -> Ends:
    ordered = samples_of(each)
    return ordered[0], ordered[-1]


END_WAYS: list[tuple[str, Callable[[Facts], Ends]]] = [
    (SAYS["one-side"], _both_at_once),
    (SAYS["ranks-from-0"], _one_up),
    (SAYS["at-most-in-place-of-below"], _one_down),
    (SAYS["the-upper-end-short"], _high_short),
    (
        "the lower end is one sample too high: P(B < rank) has to be small, P(B <= rank) is more",
        _low_short,
    ),
    (
        "the interval is wider than it need be: take the largest low rank and the smallest high",
        _wide,
    ),
    (SAYS["of-the-mean"], _of_mean),
    (SAYS["spread-of-the-samples"], _spread),
    (SAYS["a-normal-curve"], _normal),
    (SAYS["the-range"], _range),
]
