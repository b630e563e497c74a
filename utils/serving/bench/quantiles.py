"""Percentiles of measured times, and what a sample of that size can say about them.

An interval here assumes nothing of the distribution, which for latencies is never the normal one:
of n independent samples, the number below the true percentile is binomial, so the ranks between
which it lies are known. It does assume that the samples are independent; times of one process after
the other seldom are quite (see `utils.serving.bench.comparison`).
"""

import math
from collections.abc import Iterable
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

    >>> percentile([30, 10, 20, 40], 50)
    25.0
    >>> percentile(range(1, 101), 99)  # between the 99th and the 100th of 100
    99.01
    """
    if not 0 <= p <= 100:
        raise ValueError(f"percentile {p} does not exist: give one from 0 to 100")
    return float(np.percentile(_checked(samples), p))


def interval(
    samples: Iterable[float], p: float, level: float = LEVEL
) -> tuple[float | None, float | None]:
    """Where the true p-th percentile lies, by order statistics: two of the samples.

    They are those of `scipy.stats.quantile_test`: the rank low is the largest with P(B < low) <=
    (1 - level) / 2, and high the smallest with P(B >= high) at most that, where B is the binomial
    number of samples below the percentile.

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
    from scipy.stats import quantile_test  # takes a second to load

    _check(p, level)
    test = quantile_test(_checked(samples), q=0, p=p / 100)
    low, high = test.confidence_interval(level)
    return None if math.isnan(low) else float(low), None if math.isnan(high) else float(high)


def samples_needed(p: float, level: float = LEVEL) -> int:
    """The smallest sample whose `interval` for the p-th percentile has both ends.

    Above the percentile lies no sample of n with probability (p / 100)**n, below it none with
    (1 - p / 100)**n; neither may be larger than (1 - level) / 2.

    >>> samples_needed(50), samples_needed(99), samples_needed(99.9)
    (6, 368, 3688)
    """
    _check(p, level)
    return math.ceil(math.log((1 - level) / 2) / math.log(max(p / 100, 1 - p / 100)))


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
        low, high = _ms(self.low_s), _ms(self.high_s)
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
    seconds = np.sort(_checked(samples))  # a mean depends on the order in its last digit
    quantiles = (Quantile(p, percentile(seconds, p), *interval(seconds, p)) for p in PERCENTS)
    return Summary(len(seconds), float(np.mean(seconds)), *quantiles)


def _ms(seconds: float | None) -> str:
    return "?" if seconds is None else f"{seconds * 1e3:.4g}"


def _checked(samples: Iterable[float]) -> np.ndarray:
    seconds = np.asarray(list(samples), dtype=float)
    if not seconds.size:
        raise ValueError("there are no samples: measure at least one")
    if not np.isfinite(seconds).all():
        raise ValueError(
            f"{int((~np.isfinite(seconds)).sum())} of {seconds.size} samples are no finite number:"
            " a request that failed has no latency, count it apart"
        )
    return seconds


def _check(p: float, level: float) -> None:
    if not 0 < p < 100:
        raise ValueError(f"no sample bounds percentile {p}: give one above 0 and below 100")
    if not 0 < level < 1:
        raise ValueError(f"level is {level}: give a probability between 0 and 1, such as 0.95")
