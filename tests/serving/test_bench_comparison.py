"""Two records compared: known differences are found, equal programs seldom differ, unlike ones
are refused. Everything is drawn with fixed seeds; no clock is read.
"""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal, stats

from tests.serving.test_bench_records import record
from utils.serving import bench
from utils.serving.bench import comparison


def times(random: np.random.Generator, count: int, memory: float = 0.0, of_s: float = 0.01):
    """Latencies with a long tail. memory: the correlation of one call with the next."""
    noise = random.standard_normal(count + 200)
    return of_s * np.exp(0.3 * signal.lfilter([1], [1, -memory], noise)[200:])


def rounds(seed: int, number: int, calls: int = 40, of_s: float = 0.01, spread: float = 0.05):
    """Each process has its own luck beside the noise of its calls."""
    random = np.random.default_rng(seed)
    luck = np.exp(spread * random.standard_normal(number))
    return tuple(tuple(times(random, calls, of_s=of_s * item).tolist()) for item in luck)


def kept(series, **changes) -> bench.Record:
    return record(rounds=tuple(tuple(map(float, item)) for item in series), **changes)


def test_a_faster_program_is_called_faster_and_the_ratio_is_found() -> None:
    result = bench.compare(kept(rounds(1, 8)), kept(rounds(2, 8, of_s=0.008)))
    assert result.verdict == "faster"
    assert result.low < 0.8 < result.high < 1
    assert (result.unit, result.units, result.notes) == ("a round", (8, 8), ())
    assert str(result).startswith("faster: ")


def test_the_other_way_round_it_is_slower_by_the_inverse() -> None:
    a, b = kept(rounds(1, 8)), kept(rounds(2, 8, of_s=0.008))
    there, back = bench.compare(a, b), bench.compare(b, a)
    assert back.verdict == "slower"
    assert back.ratio == pytest.approx(1 / there.ratio)
    assert back.p_value == pytest.approx(there.p_value)


def test_one_round_with_luck_of_its_own_is_no_faster_program() -> None:
    """Single calls would be called different at once: all calls of a process share its luck."""
    before, after = rounds(1, 6, calls=200, spread=0.2), rounds(3, 6, calls=200, spread=0.2)
    single = stats.mannwhitneyu(np.ravel(before), np.ravel(after)).pvalue
    assert single < 1e-4
    assert bench.compare(kept(before), kept(after)).verdict == "no difference shown"


def test_a_tail_that_grew_is_seen_in_p95_and_not_in_the_median() -> None:
    before, after = rounds(1, 8, calls=100), rounds(2, 8, calls=100)
    after = tuple(tuple(3 * one if i % 10 == 0 else one for i, one in enumerate(item))
                  for item in after)  # fmt: skip
    assert bench.compare(kept(before), kept(after)).verdict == "no difference shown"
    result = bench.compare(kept(before), kept(after), p=95)
    assert result.verdict == "slower" and "the p95 of a round" in str(result)
    with pytest.raises(ValueError, match="p95 can be compared between rounds only: .* has 1"):
        bench.compare(kept(before[:1]), kept(after[:1]), p=95)
    with pytest.raises(ValueError, match="100 calls says nothing of p99.9: measure 1000 calls"):
        bench.compare(kept(before), kept(after), p=99.9)


@pytest.mark.parametrize("p", [-5, 0, 100, 150, math.nan])
def test_a_percentile_that_is_none_is_refused(p: float) -> None:
    with pytest.raises(ValueError, match="above 0 and below 100"):
        bench.compare(kept(rounds(1, 5)), kept(rounds(2, 5)), p=p)


@pytest.mark.parametrize(("p", "calls"), [(99, 100), (95, 20), (1, 100), (99.9, 1000), (90, 10)])
def test_a_round_needs_a_call_beyond_its_percentile(p: float, calls: int) -> None:
    comparison.check_percentile(p, 5, calls)
    with pytest.raises(ValueError, match=f"measure {calls} calls or more"):
        comparison.check_percentile(p, 5, calls - 1)


@pytest.mark.parametrize("number", [5, 6, 10])
def test_equal_programs_differ_in_5_of_100_comparisons_of_rounds_at_most(number: int) -> None:
    """600 pairs; 0.05 and three standard errors are 0.077."""
    random = np.random.default_rng(number)
    pairs = np.exp(random.standard_normal((600, 2, number)))
    wrong = [stats.mannwhitneyu(*pair).pvalue < 0.05 for pair in pairs]
    assert np.mean(wrong) <= 0.077


@pytest.mark.parametrize(("memory", "calls"), [(0.0, 200), (0.3, 200), (0.7, 400)])
def test_equal_programs_seldom_differ_however_their_calls_hang_together(memory, calls) -> None:
    """400 pairs. Blocks stay near 5 of 100; single calls are called different far more often."""
    random = np.random.default_rng(5)
    blocks = singles = 0
    for _ in range(400):
        pair = [[times(random, calls, memory)] for _ in range(2)]
        _, units = comparison.samples_of(*pair)
        blocks += stats.mannwhitneyu(*units).pvalue < 0.05
        singles += stats.mannwhitneyu(pair[0][0], pair[1][0]).pvalue < 0.05
    assert blocks / 400 <= 0.09
    assert memory == 0 or singles / 400 > 0.12


@pytest.mark.parametrize("count", [5, 8, 20])
def test_the_interval_holds_the_true_ratio_as_often_as_it_says(count: int) -> None:
    """300 pairs; 0.95 less three standard errors is 0.912."""
    random = np.random.default_rng(count)
    held = 0
    for _ in range(300):
        before, after = np.exp(0.2 * random.standard_normal((2, count)))
        low, high = comparison.ratio_interval(before, 0.8 * after)
        held += low <= 0.8 <= high
    assert held / 300 >= 0.912


def test_one_value_has_no_spread() -> None:
    assert comparison.ratio_interval(np.array([2.0]), np.array([3.0])) == (1.5, 1.5)


def test_a_block_is_longer_where_calls_remember_each_other() -> None:
    """The autocorrelation time of such noise is (1 + r) / (1 - r)."""
    random = np.random.default_rng(0)
    for correlation, expected in ((0.5, 3.0), (0.8, 9.0)):
        result = comparison.memory(times(random, 20_000, correlation))
        assert result == pytest.approx(expected, rel=0.35)
    assert comparison.memory(times(random, 20_000)) <= 2
    assert comparison.memory([0.1] * 50) == comparison.memory([0.1, 0.2]) == 1


@given(st.lists(st.lists(st.floats(0.001, 1), min_size=1, max_size=30), min_size=1, max_size=4),
       st.integers(1, 12))  # fmt: skip
def test_blocks_never_cross_rounds_and_never_use_a_call_twice(series, length: int) -> None:
    result = comparison.blocks(series, length)
    assert len(result) == sum(len(item) // length for item in series)
    if length == 1:
        assert result.tolist() == [one for item in series for one in item]


def test_a_run_that_is_still_warming_up_gets_no_verdict() -> None:
    random = np.random.default_rng(2)
    warming = times(random, 400) * (1 + 2 * np.exp(-np.arange(400) / 100))
    result = bench.compare(kept([times(random, 400)]), kept([warming]))
    assert result.verdict == "no difference shown"
    assert "the times after drift from the first call to the last: warm up longer" in str(result)


def test_few_calls_get_no_verdict_and_are_told_how_many() -> None:
    result = bench.compare(kept([[1.0, 1.1, 1.2]]), kept([[2.0, 2.1, 2.2]]))
    assert result.verdict == "no difference shown"
    assert result.notes == (
        "only 3 independent blocks in one record, 8 are needed: measure more calls",
    )


def test_a_single_process_with_many_independent_calls_gets_a_verdict() -> None:
    random = np.random.default_rng(4)
    result = bench.compare(kept([times(random, 200)]), kept([times(random, 200, of_s=0.013)]))
    assert result.verdict == "slower"
    assert result.unit == "a block of 1 call" and result.units == (200, 200)
    assert "the luck of a process is not in this test" in str(result)
    assert "repeat both, in turns" in str(result)


def test_the_same_record_twice_shows_no_difference() -> None:
    same = kept(rounds(1, 6))
    result = bench.compare(same, same)
    assert (result.ratio, result.verdict) == (1, "no difference shown")
    assert "the luck of a process" not in str(result) and "in turns" not in str(result)
    assert result.p_value > 0.9


def test_equal_seconds_everywhere_are_no_difference() -> None:
    same = kept([[0.1] * 20])
    assert bench.compare(same, same).verdict == "no difference shown"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"what": "cnn"}, "what 'mlp' and 'cnn'"),
        ({"settings": {"batch": 2}}, "setting batch 1 and 2"),
        ({"settings": {"batch": 1, "dtype": "bfloat16"}}, "setting dtype None and 'bfloat16'"),
        ({"kind": "xla"}, "kind 'cpu' and 'xla'"),
        ({"device": "another"}, "device 'cpu' and 'another'"),
        ({"cpu": "another CPU"}, "cpu 'a CPU' and 'another CPU'"),
        ({"threads": 2}, "threads 1 and 2"),
    ],
)
def test_unlike_records_are_refused_by_what_differs(changes, says) -> None:
    where = record().environment
    inside = {name: value for name, value in changes.items() if hasattr(where, name)}
    outside = {name: value for name, value in changes.items() if name not in inside}
    other = record(**outside, environment=dataclasses.replace(where, **inside))
    with pytest.raises(bench.Unlike, match=f"cannot be compared: {says}. Measure both"):
        bench.compare(record(), other)


def test_a_record_of_a_busy_machine_is_told_and_forbids_no_verdict() -> None:
    busy = dataclasses.replace(record().environment, load=9.0, cores=2)
    calm = dataclasses.replace(record().environment, load=0.5, cores=2)
    pair = record(environment=busy), record(environment=calm)
    result = bench.compare(*pair)
    messages = [note for note in result.notes if "CAUTION" in note]
    assert len(messages) == 1 and messages[0].startswith(
        "before: CAUTION: other programs were at work"
    )
    assert result.verdict == bench.compare(record(), record()).verdict


def test_versions_and_variables_may_differ_and_are_told() -> None:
    where = dataclasses.replace(
        record().environment,
        versions={"python": "3.11.7", "torch": "2.9.1"},
        variables={"XLA_FLAGS": "--xla_a=1"},
        revision="abc",
    )
    result = bench.compare(record(), record(environment=where))
    assert result.changed == {
        "torch": ("none", "2.9.1"),
        "XLA_FLAGS": ("none", "--xla_a=1"),
        "revision": ("none", "abc"),
    }
    assert "torch: none before, 2.9.1 after" in str(result)
