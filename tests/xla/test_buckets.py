"""Buckets: the optimum is the optimum, and nothing is cut off."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils.xla.buckets import best_buckets, bucket_of, padded_tokens, powers_of_two

LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=9)


@given(LENGTHS, st.integers(1, 4))
def test_no_choice_of_buckets_is_cheaper_than_the_best(lengths: list[int], count: int) -> None:
    different = sorted(set(lengths))
    best = min(
        padded_tokens(lengths, chosen)
        for size in range(1, count + 1)
        for chosen in itertools.combinations(different, size)
        if chosen[-1] == different[-1]
    )
    buckets = best_buckets(lengths, count)
    assert len(buckets) <= count and list(buckets) == sorted(set(buckets))
    assert padded_tokens(lengths, buckets) == best


@given(LENGTHS)
def test_with_a_bucket_per_length_nothing_is_padded(lengths: list[int]) -> None:
    assert padded_tokens(lengths, best_buckets(lengths, 40)) == sum(lengths)


@given(LENGTHS, st.integers(1, 16))
def test_powers_of_two_hold_every_length_and_at_most_double_it(lengths, shortest) -> None:
    buckets = powers_of_two(max(lengths), shortest)
    for length in lengths:
        bucket = bucket_of(length, buckets)
        assert length <= bucket and (bucket < 2 * length or bucket == shortest)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: bucket_of(9, (4, 8)), "9 tokens"),
        (lambda: padded_tokens([1, 9], ()), "too short"),
        (lambda: powers_of_two(0), "found 0"),
        (lambda: best_buckets([], 2), "need one bucket and one length"),
        (lambda: best_buckets([3], 0), "found 0, 1"),
    ],
)
def test_bad_input_is_said(call, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()
