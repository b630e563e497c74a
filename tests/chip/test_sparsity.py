"""Structured sparsity: the largest are kept, and no better choice exists."""

import itertools

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from utils.chip.sparsity import density, prune, relative_error

ROWS = arrays.arrays(np.float64, (3, 8), elements=st.floats(-9, 9, width=16))


@given(ROWS, st.integers(1, 4))
def test_no_other_choice_of_a_group_keeps_more(w: np.ndarray, keep: int) -> None:
    pruned = prune(w, keep, of=4)
    assert (np.count_nonzero(pruned.reshape(-1, 4), axis=-1) <= keep).all()
    assert np.all((pruned == w) | (pruned == 0))
    for group, kept in zip(w.reshape(-1, 4), pruned.reshape(-1, 4), strict=True):
        best = max(sum(group[list(those)] ** 2) for those in itertools.combinations(range(4), keep))
        assert np.isclose((kept**2).sum(), best)


@given(ROWS)
def test_pruned_weights_stay_as_they_are(w: np.ndarray) -> None:
    pruned = prune(w, 2, of=4)
    assert np.array_equal(prune(pruned, 2, of=4), pruned)
    assert np.array_equal(prune(w, 4, of=4), w), "keeping all of them changes nothing"


def test_of_equals_the_first_are_kept() -> None:
    assert prune(np.ones(8), keep=3, of=8).tolist() == [1, 1, 1, 0, 0, 0, 0, 0]
    long = prune(np.ones(64), keep=3, of=64)  # beyond what a sort does in order by chance
    assert long[:3].tolist() == [1, 1, 1] and not long[3:].any()


def test_groups_lie_along_the_rows() -> None:
    w = np.random.default_rng(0).standard_normal((32, 48)).astype(np.float32)
    pruned = prune(w)
    assert pruned.shape == w.shape and pruned.dtype == w.dtype and density(pruned) == 0.25
    assert (np.count_nonzero(pruned.reshape(32, 3, 16), axis=-1) == 4).all()


def test_the_input_stays_as_it_is() -> None:
    w = np.arange(16.0)
    prune(w)
    assert w.tolist() == list(range(16))


def test_what_is_lost_of_normal_weights() -> None:
    """A quarter kept at random would lose sqrt(3/4) of the norm; the largest of 16 lose less."""
    w = np.random.default_rng(1).standard_normal((256, 256))
    lost = relative_error(w, prune(w))
    # Of the expected squares of 16 ordered normal magnitudes the 12 smallest, over their sum; here
    # by drawing, in the group's own way and with other numbers.
    squares = np.sort(np.random.default_rng(2).standard_normal((100_000, 16)) ** 2, axis=1)
    expected = np.sqrt(squares[:, :12].sum() / squares.sum())
    assert abs(lost - expected) < 0.005 and lost < np.sqrt(0.75)


def test_nan_is_not_hidden_and_any_type_is_taken() -> None:
    result = prune(np.array([1, np.nan, 3, 2]), keep=2, of=4)
    assert np.isnan(result[1]) and result[[0, 2, 3]].tolist() == [0, 3, 0]
    assert prune(np.array([-128, 5, 127, 0], np.int8), 1, of=4).tolist() == [-128, 0, 0, 0]
    assert prune(np.array([1, 255], np.uint8), 1, of=2).tolist() == [0, 255]
    assert prune(np.array([1, -2], ml_dtypes.bfloat16), 1, of=2).dtype == ml_dtypes.bfloat16


def test_relative_error() -> None:
    assert relative_error(np.array([3.0, 4.0]), np.array([3.0, 4.0])) == 0
    assert relative_error(np.array([3.0, 4.0]), np.array([0.0, 0.0])) == 1
    assert relative_error(np.array([[3.0], [4.0]]), np.array([[3.0], [9.0]])) == 1


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: prune(np.ones(17)), r"rows of shape \(17,\) are no multiple of 16"),
        (lambda: prune(1.0), r"shape \(\) are no multiple"),
        (lambda: prune(np.ones(16), keep=17), "at most all 16 of a group, found keep=17"),
        (lambda: prune(np.ones(16), keep=0), "at least 1"),
        (lambda: relative_error(np.zeros(2), np.ones(2)), "not all zero"),
        (lambda: relative_error(np.ones(2), np.ones((2, 1))), r"shapes \(2,\) and \(2, 1\)"),
    ],
)
def test_bad_input_is_said(call, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()
