"""Accumulation: step by step what other arithmetic says, and within the bounds of the textbooks."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils.chip.accumulate import ORDERS, dot, exact_dot, sum_in
from utils.chip.formats import FORMATS

NUMBERS = st.lists(st.floats(-(2.0**20), 2.0**20, width=32), min_size=1, max_size=40)


@given(NUMBERS)
def test_fp32_forward_and_backward_are_numpys_running_sum(numbers: list[float]) -> None:
    values = np.float32(numbers)
    assert sum_in(values, "fp32") == np.add.accumulate(values)[-1]
    assert sum_in(values, "fp32", "backward") == np.add.accumulate(values[::-1])[-1]


@pytest.mark.parametrize(
    ("name", "number"),
    [("bf16", ml_dtypes.bfloat16), ("fp16", np.float16), ("e4m3", ml_dtypes.float8_e4m3)],
)
def test_every_step_is_rounded_as_the_library_does(name: str, number: type) -> None:
    values = np.random.default_rng(1).standard_normal((5, 200)).astype(np.float32)
    for row in values:
        total = row[0].astype(number)
        for value in row[1:]:
            total = (total.astype(np.float32) + value).astype(number)
        assert sum_in(row, name) == total.astype(np.float32)
    assert sum_in(values, name).tolist() == [sum_in(row, name) for row in values]


def halves(values: list[np.float32]) -> np.float32:
    """Pairwise summation as it is defined: of a power of two many, the sum of the two halves."""
    if len(values) == 1:
        return values[0]
    middle = len(values) // 2
    return np.float32(halves(values[:middle]) + halves(values[middle:]))


@pytest.mark.parametrize("count", [1, 2, 64, 1024])
def test_pairwise_is_the_sum_of_the_halves(count: int) -> None:
    values = np.random.default_rng(2).standard_normal(count).astype(np.float32)
    assert sum_in(values, "fp32", "pairwise") == halves(list(values))


def test_only_what_is_written_is_rounded() -> None:
    """1 + 2**-8 is no BF16 number: whether it is written before it is added can be seen."""
    values = np.float32([1 + 2.0**-8, 2.0**-8])
    assert sum_in(values, "bf16", "pairwise") == 1 + 2.0**-7, "a pair is added as it is"
    assert sum_in(values, "bf16", "forward") == 1, "the first one is written before the second"
    assert sum_in(values[:1], "bf16", "pairwise") == 1, "and what is left alone in the end as well"


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=70), st.sampled_from(ORDERS))
def test_whole_numbers_that_fit_are_added_without_loss(numbers: list[int], order: str) -> None:
    for name in ("fp32", "fp16"):  # at most 630, and fp16 holds every whole number up to 2048
        assert sum_in(np.array(numbers), name, order) == sum(numbers)


@given(NUMBERS, st.sampled_from(("fp32", "tf32", "bf16")), st.sampled_from(ORDERS))
def test_errors_stay_within_the_bounds(numbers: list[float], name: str, order: str) -> None:
    """Higham, Accuracy and Stability of Numerical Algorithms, section 4.2: n - 1 roundings in a
    row, or log2(n) of them, each off by at most half a gap."""
    n, unit = len(numbers), FORMATS[name].epsilon / 2
    steps = math.ceil(math.log2(n)) if order == "pairwise" else n - 1
    # One rounding more where a single value is written, and FP32's own below that of the format.
    steps = (steps + 1) * (1 + 2.0**-10)
    bound = steps * unit / max(1 - steps * unit, 1e-9) * math.fsum(map(abs, numbers))
    result = float(sum_in(np.float32(numbers), name, order))
    assert abs(result - math.fsum(numbers)) <= bound + n * FORMATS[name].min_subnormal


@pytest.mark.parametrize(("name", "stops"), [("bf16", 256), ("fp16", 2048), ("tf32", 2048)])
def test_ones_stop_counting_where_the_gap_is_two(name: str, stops: int) -> None:
    ones = np.ones(5000)
    assert sum_in(ones, name) == stops and FORMATS[name].spacing(stops) == 2
    assert sum_in(ones, name, "pairwise") == pytest.approx(5000, rel=FORMATS[name].epsilon)


@pytest.mark.parametrize("partial", ["fp32", "bf16"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("tile", [1, 3, 128, 500])
def test_a_product_is_its_pieces(partial: str, order: str, tile: int) -> None:
    a, b = np.random.default_rng(3).standard_normal((2, 300)).astype(np.float32)
    pieces = [np.add.accumulate(a[k : k + tile] * b[k : k + tile])[-1] for k in range(0, 300, tile)]
    assert dot(a, b, partial, tile, order) == sum_in(np.array(pieces), partial, order)


def test_matrices_are_products_of_rows_and_columns() -> None:
    draw = np.random.default_rng(4)
    a, b = draw.standard_normal((6, 256)), draw.standard_normal((256, 5))
    result = dot(a[:, None, :], b.T[None], "bf16")
    assert result.shape == (6, 5) and result.dtype == np.float32
    assert result[2, 3] == dot(a[2], b[:, 3], "bf16")
    assert np.allclose(result, a @ b, rtol=0.05, atol=0.2)


def test_what_a_long_product_loses() -> None:
    """K = 4096 of positive numbers, as the lesson has it: FP32 to 1e-6, BF16 not to 1e-3."""
    a, b = np.random.default_rng(5).uniform(0, 1, (2, 4096)).astype(np.float32)
    exact = exact_dot(a, b)
    assert abs(float(np.dot(a.astype(np.float64), b.astype(np.float64))) / exact - 1) < 1e-14

    def error(*how) -> float:
        return abs(float(dot(a, b, *how)) / exact - 1)

    assert all(error("fp32", 128, order) < 1e-6 for order in ORDERS)
    assert error("bf16", 1) > 0.5, "stalls long before the end"
    assert 1e-3 < error("bf16", 128) < 0.05
    assert error("bf16", 1, "pairwise") < error("bf16", 128)


def test_the_order_decides_whether_small_numbers_are_lost() -> None:
    values = np.array([256.0] + 256 * [1.0])
    assert [float(sum_in(values, "bf16", order)) for order in ORDERS] == [256, 512, 512]


@given(
    st.lists(st.tuples(*2 * [st.floats(-(2.0**60), 2.0**60, width=32)]), min_size=1, max_size=30)
)
def test_the_reference_is_exact(pairs: list[tuple[float, float]]) -> None:
    a, b = np.float32(pairs).T
    exact = sum(Fraction(x) * Fraction(y) for x, y in pairs)
    assert exact_dot(a, b) == float(exact)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: sum_in(np.ones(3), "bf16", "random"), "forward, backward, pairwise, found 'ran"),
        (lambda: sum_in(np.ones((2, 0)), "bf16"), r"at least one value, found shape \(2, 0\)"),
        (lambda: sum_in(np.float32(1), "bf16"), r"found shape \(\)"),
        (lambda: sum_in(np.ones(3), "bf15"), "no format 'bf15'"),
        (
            lambda: dot(np.ones(3), np.ones(4)),
            r"same length, 1 or more, found shapes \(3,\) and \(4,\)",
        ),
        (lambda: dot(np.ones((2, 3)), np.ones(1)), "same length"),
        (lambda: dot(np.ones(0), np.ones(0)), "1 or more"),
        (lambda: dot(np.ones(3), np.ones(3), tile=0), "found tile=0"),
        (lambda: exact_dot(np.ones(3), np.ones(1)), "same length"),
    ],
)
def test_bad_input_is_said(call, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()
