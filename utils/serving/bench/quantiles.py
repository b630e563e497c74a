"""Percentiles of measured times, and what a sample of that size can say about them.

An interval here assumes nothing of the distribution, which for latencies is never the normal one:
of n independent samples, the number below the true percentile is binomial, so the ranks between
which it lies are known. It does assume that the samples are independent; times of one process after
the other seldom are quite (see `utils.serving.bench.comparison`).
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

LEVEL = 0.95
PERCENTS = (50.0, 95.0, 99.0)


def percentile(samples: Iterable[float], p: float) -> float:
    """The p-th percentile, by linear interpolation between the two samples that enclose it.

    Args:
        samples: at least one finite number, in any order.
        p: 0 to 100.

    Raises: ValueError for no samples, one that is no finite number, or another p.

    It is what `numpy.percentile` returns by default.

    >>> percentile([30, 10, 20, 40], 50)
    25.0
    >>> percentile(range(1, 101), 99)  # between the 99th and the 100th of 100
    99.01
    """
    place, ordered = _place(p), _ordered(samples)
    position = place * (len(ordered) - 1)
    below = min(math.floor(position), len(ordered) - 1)
    low, high = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
    share, step = position - below, high - low
    # From the nearer end, so that rounding cannot push the result beyond it.
    return float(low + step * share if share < 0.5 else high - step * (1 - share))


def interval(
    samples: Iterable[float], p: float, level: float = LEVEL
) -> tuple[float | None, float | None]:
    """Where the true p-th percentile lies, by order statistics: two of the samples.

    Args:
        samples: independent ones, at least one.
        p: above 0 and below 100.
        level: the probability that the interval holds the percentile, at least; each end is missed
            with probability (1 - level) / 2 at most.

    Returns: (low, high); None for an end that no sample of this size can bound: there is no largest
    time that was not seen. `samples_needed` says how many would do.

    Raises: ValueError as `percentile`, and for a level that is not between 0 and 1.

    >>> interval(range(1, 11), 50)  # the 2nd and the 9th of ten
    (2.0, 9.0)
    >>> interval(range(1, 101), 99)
    (97.0, None)
    """
    ordered = _ordered(samples)
    low, high = ranks(len(ordered), p, level)
    return (
        None if low is None else float(ordered[low - 1]),
        None if high is None else float(ordered[high - 1]),
    )


def ranks(count: int, p: float, level: float = LEVEL) -> tuple[int | None, int | None]:
    """The ranks, from 1, of the two samples of `interval`.

    The rank low is the largest with P(B < low) <= (1 - level) / 2, and high the smallest with
    P(B >= high) at most that, where B is the binomial number of samples below the percentile.
    """
    from scipy.stats import binom

    share, miss = _inner(p), _miss(level)
    low = int(binom.ppf(miss, count, share))
    high = int(binom.isf(miss, count, share)) + 1
    return low if low >= 1 else None, high if high <= count else None


def samples_needed(p: float, level: float = LEVEL) -> int:
    """The smallest sample whose `interval` for the p-th percentile has both ends.

    Above the percentile lies no sample of n with probability (p / 100)**n, below it none with
    (1 - p / 100)**n; neither may be larger than (1 - level) / 2.

    >>> samples_needed(50), samples_needed(99), samples_needed(99.9)
    (6, 368, 3688)
    """
    share = _inner(p)
    return math.ceil(math.log(_miss(level)) / math.log(max(share, 1 - share)))


@dataclass(frozen=True)
class Quantile:
    """One percentile of a sample, in seconds, with its `interval`."""

    p: float
    value_s: float
    low_s: float | None
    high_s: float | None

    def __str__(self) -> str:
        """
        >>> print(Quantile(99, 0.012, 0.011, None))
        p99 12 ms, 95 % interval 11 to ? ms
        """
        low, high = (_ms(each) for each in (self.low_s, self.high_s))
        return f"p{self.p:g} {_ms(self.value_s)} ms, 95 % interval {low} to {high} ms"


@dataclass(frozen=True)
class Summary:
    """Percentiles of a sample of times. count: of the samples; mean_s: in seconds."""

    count: int
    mean_s: float
    p50: Quantile
    p95: Quantile
    p99: Quantile

    def __str__(self) -> str:
        lines = [f"{self.count} samples, mean {_ms(self.mean_s)} ms"]
        return "\n".join([*lines, *map(str, (self.p50, self.p95, self.p99))])


def summary(samples: Iterable[float]) -> Summary:
    """p50, p95 and p99 of times in seconds, each with its 95 % interval.

    >>> summary([0.1, 0.2, 0.3]).p50.value_s
    0.2
    """
    seconds = _ordered(samples)
    found = (Quantile(p, percentile(seconds, p), *interval(seconds, p)) for p in PERCENTS)
    return Summary(len(seconds), float(np.mean(seconds)), *found)


def _ms(seconds: float | None) -> str:
    return "?" if seconds is None else f"{seconds * 1e3:.4g}"


def _ordered(samples: Iterable[float]) -> Sequence[float]:
    found = np.sort(np.asarray(list(samples), dtype=float))
    if not found.size:
        raise ValueError("there are no samples: measure at least one")
    if not np.isfinite(found).all():
        raise ValueError(
            f"{int((~np.isfinite(found)).sum())} of {found.size} samples are no finite number: a"
            " request that failed has no latency, count it apart"
        )
    return found


def _place(p: float) -> float:
    if not 0 <= p <= 100:
        raise ValueError(f"percentile {p} does not exist: give one from 0 to 100")
    return p / 100


def _inner(p: float) -> float:
    if not 0 < p < 100:
        raise ValueError(f"no sample bounds percentile {p}: give one above 0 and below 100")
    return p / 100


def _miss(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"level is {level}: give a probability between 0 and 1, such as 0.95")
    return (1 - level) / 2
