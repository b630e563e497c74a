"""Percentiles and their intervals: known values, and as often right as they say.

The computing is NumPy's and SciPy's; here it is held to the definition.
"""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from utils.serving import bench

inner = st.floats(0.1, 99.9)
levels = st.sampled_from([0.8, 0.9, 0.95, 0.99])


def ranks(count: int, p: float, level: float = 0.95) -> tuple[int | None, int | None]:
    """The ranks, from 1, of the two samples that an interval gives: of 1 to count, the values."""
    low, high = bench.interval(range(1, count + 1), p, level)
    return low and int(low), high and int(high)


def test_percentiles_of_a_known_distribution() -> None:
    """Of the integers 0 to 1000 the p-th percentile is 10 p; of an exponential, -ln(1 - p)."""
    for p in (0, 50, 95, 99, 99.9, 100):
        assert bench.percentile(range(1001), p) == pytest.approx(10 * p)
    drawn = np.random.default_rng(0).exponential(size=200_000)
    for p in (50, 95, 99):
        assert bench.percentile(drawn, p) == pytest.approx(-math.log(1 - p / 100), rel=0.02)


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf]])
def test_what_is_no_sample_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="there are no samples|no finite number"):
        bench.percentile(values, 50)


@pytest.mark.parametrize("p", [-1, 100.5, math.nan])
def test_a_percentile_beyond_100_is_refused(p: float) -> None:
    with pytest.raises(ValueError, match="from 0 to 100"):
        bench.percentile([1.0], p)


@given(st.integers(1, 3000), inner, levels)
def test_ranks_are_the_closest_that_keep_the_level(count: int, p: float, level: float) -> None:
    """By the binomial distribution itself: each end misses at most its half, and the next rank
    would miss more."""
    low, high = ranks(count, p, level)
    below = stats.binom(count, p / 100)
    miss = (1 - level) / 2
    slack = 1e-9
    assert low is None or below.cdf(low - 1) <= miss + slack
    assert below.cdf(low or 0) >= miss - slack
    assert high is None or below.sf(high - 1) <= miss + slack
    assert below.sf((high or count + 1) - 2) >= miss - slack
    if low and high:
        assert below.cdf(high - 1) - below.cdf(low - 1) >= level - slack


def test_published_ranks_and_sizes() -> None:
    """The sign test's interval for a median of 10 (2nd to 9th, 97.9 %), and Wilks' 59 samples for a
    one-sided bound of the 95th percentile at 95 %, which is the upper end of a level of 90 %."""
    assert ranks(10, 50) == (2, 9)
    assert stats.binom(10, 0.5).cdf(8) - stats.binom(10, 0.5).cdf(1) == pytest.approx(
        0.979, abs=1e-3
    )
    assert bench.samples_needed(95, level=0.9) == 59


@settings(max_examples=60)
@given(st.floats(1, 99.9), levels)
def test_the_samples_needed_are_the_fewest_with_both_ends(p: float, level: float) -> None:
    enough = bench.samples_needed(p, level)
    assume(enough > 1)
    assert None not in ranks(enough, p, level)
    assert None in ranks(enough - 1, p, level)


DISTRIBUTIONS = {
    "exponential": (lambda random, size: random.exponential(size=size), lambda q: -np.log1p(-q)),
    "lognormal": (
        lambda random, size: random.lognormal(sigma=1.0, size=size),
        lambda q: np.exp(stats.norm.ppf(q)),
    ),
    "pareto": (
        lambda random, size: random.pareto(1.5, size=size),
        lambda q: (1 - q) ** (-1 / 1.5) - 1,
    ),
    "two modes": (
        lambda random, size: random.random(size) + 10 * (random.random(size) < 0.1),
        lambda q: q / 0.9 if q < 0.9 else 10 + (q - 0.9) / 0.1,
    ),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize(("p", "count"), [(50, 40), (95, 200), (99, 600)])
def test_intervals_hold_the_true_percentile_as_often_as_they_say(name, p, count) -> None:
    """4,000 samples with a fixed seed; four standard errors below 95 % would be 93.6 %."""
    draw, true = DISTRIBUTIONS[name]
    drawn = np.sort(draw(np.random.default_rng(7), (4000, count)), axis=1)
    low, high = ranks(count, p)
    held = (drawn[:, low - 1] <= true(p / 100)) & (true(p / 100) <= drawn[:, high - 1])
    assert held.mean() >= 0.936
    # Conservative by no more than the steps of a binomial force.
    assert held.mean() <= 0.995


def test_an_interval_of_few_samples_has_no_upper_end() -> None:
    assert bench.interval(range(100), 99)[1] is None
    assert bench.interval([5.0], 50) == (None, None)
    assert "to ? ms" in str(bench.summary([0.001] * 100).p99)


@pytest.mark.parametrize(("p", "level"), [(0, 0.95), (100, 0.95), (50, 0), (50, 1)])
def test_an_interval_that_cannot_be_is_refused(p: float, level: float) -> None:
    with pytest.raises(ValueError, match="above 0 and below 100|between 0 and 1"):
        bench.interval([1.0, 2.0], p, level)


def test_a_summary_has_all_percentiles_of_the_same_samples() -> None:
    seconds = [number / 1000 for number in range(1, 1001)]
    summary = bench.summary(reversed(seconds))
    assert (summary.count, summary.mean_s) == (1000, pytest.approx(0.5005))
    assert summary.p95.value_s == pytest.approx(0.95005)
    assert summary.p99.low_s < summary.p99.value_s < summary.p99.high_s
    assert str(summary).startswith("1000 samples, mean 500.5 ms\np50 500.5 ms")
