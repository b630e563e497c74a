"""Scalars of NKI 0.7: what they compute, how wide they are, what may be done with them."""

import json

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.nki.nki_bench import empty, issued, placed, refused
from utils.nki.simulator import launch, plain, profile, replay
from utils.nki.simulator.arrays import Shape
from utils.nki.simulator.errors import NkiValidationError
from utils.nki.simulator.registers import NkiScalar

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)


@given(INT32, INT32, INT64, INT64)
def test_arithmetic_is_that_of_numpy_at_its_width(a, b, c, d) -> None:
    for dtype, x, y in (("int32", a, b), ("int64", c, d)):
        one, two = NkiScalar(dtype, x), NkiScalar(dtype, y)
        p, q = np.array([x], dtype), np.array([y], dtype)
        with np.errstate(over="ignore"):
            expected = [p + q, p - q, p * q, -p, p * 4 + 1, 3 - p]
        made = [one + two, one - two, one * two, -one, one * 4 + 1, 3 - one]
        assert [s.value for s in made] == [int(e[0]) for e in expected]


def gather(x, index):
    """Row 2 * index + 1 of x, and the number of that row."""
    out = nl.ndarray((1, x.shape[1]), dtype=x.dtype, buffer=nl.shared_hbm)
    where = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.shared_hbm)
    row = nisa.scalar_load(index) * 2 + 1
    tile, number = empty((1, x.shape[1]), "float32"), empty((1, 1), "int32")
    nisa.dma_copy(tile, x.ap([[x.shape[1], 1], [1, x.shape[1]]], scalar_offset=row))
    nisa.dma_copy(out, tile)
    nisa.scalar_store(number, row)
    nisa.dma_copy(where, number)
    return out, where


X = np.arange(64, dtype=np.float32).reshape(16, 4)


def test_a_scalar_moves_an_access_pattern_also_in_a_replay() -> None:
    row, number = nki.simulate(gather)(X, np.array([[3]], np.int32))
    np.testing.assert_array_equal(row, X[7:8])
    assert number.tolist() == [[7]]
    recorded = launch.run(gather, (Shape((16, 4)), Shape((1, 1), "int32")), {})
    again = plain.from_plain(json.loads(json.dumps(plain.to_plain(recorded))), "trn2")
    for index in (0, 5):
        row, number = replay.replay(again, [X, np.array([[index]], np.int32)])
        np.testing.assert_array_equal(row, X[2 * index + 1 : 2 * index + 2])
        assert number.tolist() == [[2 * index + 1]]


def test_what_uses_a_scalar_waits_until_it_is_loaded() -> None:
    result = profile.profile(gather)(Shape((16, 4)), Shape((1, 1), "int32"))
    events = {event.name: event for event in reversed(result.intervals)}
    assert events["scalar_load"].end <= events["scalar_store"].start


def test_a_scalar_of_64_bits_keeps_them() -> None:
    def kernel(x):
        out = nl.ndarray((1, 1), dtype=nl.int64, buffer=nl.shared_hbm)
        nisa.scalar_store(out, nisa.scalar_load(x) + 1)
        return out

    large = np.array([[2**40]], np.int64)
    assert nki.simulate(kernel)(large).tolist() == [[2**40 + 1]]
    with pytest.raises(NkiValidationError, match="x.astype"):
        nki.simulate(kernel)(np.zeros((2, 2), np.int64))


@pytest.mark.parametrize("bound", [0, 1])
def test_a_loop_counts_to_a_scalar_and_its_index_has_arithmetic(bound) -> None:
    seen = []

    def call():
        lower, upper = nisa.scalar_load(placed([[2]], "int32")), 5
        bounds = (lower, upper) if bound == 0 else (0, lower)
        nl.fori_loop(*bounds, lambda i: seen.append((i * 10).value))

    issued(call)
    assert seen == ([20, 30, 40] if bound == 0 else [0, 10])


def test_what_a_scalar_cannot_do_is_said() -> None:
    def loaded(dtype="int32", value=1):
        return nisa.scalar_load(placed([[value]], "int32")) if dtype == "int32" else wide()

    def wide():
        return NkiScalar("int64", 1)

    refused(lambda: loaded() < 3, "comparison", "nl.fori_loop")
    refused(lambda: loaded() == wide(), "comparison")
    refused(lambda: loaded() + wide(), "int32", "nothing widens it")
    refused(lambda: loaded() + 1.5, "which is no integer")
    refused(lambda: loaded() // 2, "//")
    refused(lambda: range(loaded()), "range()")
    refused(lambda: bool(loaded()) and None, "an if or a while")
    refused(lambda: nl.fori_loop(0, wide(), print), "32 bits")
    refused(lambda: nisa.scalar_store(empty((1, 1), "int32"), 3), "nisa.memset(dst, value)")
    refused(lambda: nisa.scalar_store(empty((1, 1), "int32"), wide()), "its own width")
    refused(lambda: placed(np.zeros((1, 8)), "int32").select(1, wide()), "refused rather than cut")
    refused(lambda: nisa.scalar_load(placed([[1, 2]], "int32")), "one element")
    refused(lambda: nisa.scalar_load(placed([[1]], "uint32")), "allowed: int32, int64")
    refused(lambda: nisa.memset(empty((1, 1), "int64"), 0), "int64", "32 bits")
