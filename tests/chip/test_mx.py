"""Microscaling: the specification's words in fractions, ml_dtypes, and its authors' own results."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from utils.chip.formats import FORMATS
from utils.chip.mx import ELEMENTS, MX, NAN_SCALE, quantise, quantise_tile
from utils.chip.sparsity import relative_error

LIBRARY = {
    "e4m3fn": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
}
every_element = pytest.mark.parametrize("element", ELEMENTS)


def by_the_words(block: list[float], element: str, doublings: int = 0) -> tuple[int, list[float]]:
    """Section 6.3 of the specification, word by word, with whole fractions for the scale.

    1. The scale is the largest power of two that is not above the largest magnitude, divided by the
       largest power of two of the element format. 2. The elements are the values over the scale, in
       the element format, what exceeds its largest number set to that number.
    """
    info = ml_dtypes.finfo(LIBRARY[element])
    largest = max(Fraction(abs(value)) for value in block)
    exponent = -127
    if largest:
        below = -1100
        while Fraction(2) ** (below + 1) <= largest:
            below += 1
        top = 0
        while 2.0 ** (top + 1) <= float(info.max):
            top += 1
        exponent = max(below - top + doublings, -127)
    scaled = [float(Fraction(value) / Fraction(2) ** exponent) for value in block]
    clipped = np.clip(scaled, -float(info.max), float(info.max))
    return exponent, clipped.astype(LIBRARY[element]).astype(np.float64).tolist()


VALUES = st.floats(-(2.0**100), 2.0**100, width=32) | st.floats(-8, 8, width=32)


@every_element
@settings(max_examples=80)
@given(block=st.lists(VALUES, min_size=4, max_size=4), doublings=st.integers(0, 1))
def test_a_block_is_what_the_specification_says(element, block, doublings) -> None:
    exponent, elements = by_the_words(block, element, doublings)
    result = quantise(np.float32(block), element, block=4, headroom=doublings)
    assert result.scales.tolist() == [exponent]
    assert result.elements.tolist() == elements
    assert np.array_equal(np.signbit(result.elements), np.signbit(np.float32(block)))


# What the emulation library of the specification's authors (github.com/microsoft/microxcaling,
# commit 7bc4195, PyTorch path, block_size=32, scale_bits=8) makes of the 64 numbers below: all of
# it for e2m1, the sum and the sum of the squares for every element format. Many are ties, and
# round is "even", which the specification asks for: the library's own "nearest" rounds them up.
NUMBERS = ((np.arange(64) * 37 % 64) - 31.5) / 8 * 2.0 ** (np.arange(64) * 7 % 9 - 4)
E2M1 = [
    0, 4, -4, 0, 0, 48, 0, -4, 0, 0, 16, -4, 0, 0, -48, 4, 0, 0, 0, 32, 0, 0, 0, -24, 12, 0, 0, 0,
    -16, 4, 0, 0, 0, -12, 0, 0, 0, -8, 8, 0, 0, 24, -8, 4, 0, 0, 8, -4, 0, 0, 48, 0, -4, 0, 0, 16,
    0, 0, 0, -48, 8, 0, 0, 0,
]  # fmt: skip
SUMS = {
    "e2m1": (52.0, 12912.0),
    "e2m3": (64.0, 14666.0),
    "e3m2": (68.625, 14397.296875),
    "e4m3fn": (63.04296875, 14670.911911010742),
    "e5m2": (68.59375, 14397.440063476562),
}


@every_element
def test_the_authors_library_says_the_same(element: str) -> None:
    result = quantise(np.float32(NUMBERS), element).dequantise()
    assert (result.sum(), (result**2).sum()) == SUMS[element]
    if element == "e2m1":
        assert result.tolist() == E2M1


def test_a_largest_value_above_three_quarters_is_cut_off_and_headroom_prevents_it() -> None:
    """The worked case: over 4 is at most 7.99, and the largest number of e2m1 is 6."""
    assert quantise([3.0, 1, 0, 0], "e2m1", block=4).dequantise()[0] == 3
    assert quantise([3.5, 1, 0, 0], "e2m1", block=4).dequantise()[0] == 3
    assert quantise([3.5, 1, 0, 0], "e2m1", block=4, headroom=1).dequantise()[0] == 4
    draw = np.random.default_rng(4)
    x = draw.standard_normal((1000, 32))
    for element in ELEMENTS:
        largest = FORMATS[element].max
        cut_off = [np.abs(x) > largest * np.repeat(2.0**q.scales, 32, axis=1)
                   for q in (quantise(x, element), quantise(x, element, headroom=1))]  # fmt: skip
        assert cut_off[0].any() and not cut_off[1].any()


@every_element
def test_codes_are_the_stored_bytes(element: str) -> None:
    x = np.random.default_rng(1).standard_normal((8, 64)).astype(np.float32)
    q = quantise(x, element)
    elements = q.element_codes.view(LIBRARY[element]).astype(np.float64)
    scales = q.scale_codes.view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    assert np.array_equal(elements * np.repeat(scales, 32, axis=1), q.dequantise())
    assert q.bits_per_value == FORMATS[element].bits + 0.25


@every_element
@settings(max_examples=60)
@given(x=arrays.arrays(np.float32, (2, 8), elements=st.floats(-(2.0**60), 2.0**60, width=32)))
def test_what_came_out_goes_in_again_unchanged(element: str, x: np.ndarray) -> None:
    once = quantise(x, element, block=8).dequantise()
    assert np.array_equal(quantise(once, element, block=8).dequantise(), once)
    shifted = quantise(x * np.float32(0.25), element, block=8).dequantise()
    usual = (np.abs(x).max(axis=1) > 2.0**-60) | (np.abs(x).max(axis=1) == 0)
    assert np.array_equal(shifted[usual], once[usual] / 4), "a power of two changes the scale alone"


def test_blocks_lie_along_the_rows() -> None:
    x = np.random.default_rng(2).standard_normal((64, 96))
    q = quantise(x, "e4m3fn")
    assert q.elements.shape == x.shape and q.scales.shape == (64, 3)
    alone = quantise(x[5, 32:64], "e4m3fn").dequantise()
    assert np.array_equal(q.dequantise()[5, 32:64], alone)


@pytest.mark.parametrize("headroom", [0, 1])
def test_a_tile_has_blocks_of_8_partitions_by_4_neighbours(headroom: int) -> None:
    x = np.random.default_rng(3).standard_normal((128, 64))
    q = quantise_tile(x, "e5m2", headroom=headroom)
    assert q.scales.shape == (16, 16) and q.elements.shape == x.shape
    for row, column in ((0, 0), (3, 9), (15, 15)):
        part = slice(8 * row, 8 * row + 8), slice(4 * column, 4 * column + 4)
        alone = quantise(x[part].ravel(), "e5m2", headroom=headroom)
        assert alone.scales[0] == q.scales[row, column]
        assert np.array_equal(alone.elements.reshape(8, 4), q.elements[part])
    assert np.array_equal(quantise_tile(x, "e5m2").scales, q.scales + 1 - headroom)


def test_zeros_and_what_is_too_small() -> None:
    zeros = quantise(np.zeros(32))
    assert zeros.scales.tolist() == [-127] and zeros.scale_codes.tolist() == [0]
    assert not zeros.dequantise().any()
    tiny = quantise(np.full(32, 2.0**-149, np.float32))
    assert tiny.scales.tolist() == [-127] and not tiny.elements.any()
    # The scale cannot be smaller, so small blocks lose what the elements cannot hold: with 2**-127
    # an e4m3fn reaches down to 2**-136, and 2**-133 is a number of FP32 without a normal exponent.
    assert quantise(np.full(32, 2.0**-133, np.float32)).dequantise()[0] == 2.0**-133


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 2.0**200])
def test_a_block_that_no_scale_holds_is_nan_and_its_neighbour_is_not(bad: float) -> None:
    x = np.ones((2, 64))
    x[0, 5] = bad
    q = quantise(x)
    assert q.scales.tolist() == [[NAN_SCALE, -8], [-8, -8]] and q.scale_codes[0, 0] == 255
    assert np.isnan(q.dequantise()[0, :32]).all()
    assert (q.dequantise()[0, 32:] == 1).all() and (q.dequantise()[1] == 1).all()


def test_shared_scales_follow_blocks_where_one_scale_for_all_cannot() -> None:
    """Rows of very different sizes: e4m3fn with one scale loses the small ones, blocks do not."""
    draw = np.random.default_rng(6)
    x = draw.standard_normal((16, 128)) * 2.0 ** -np.arange(0, 32, 2)[:, None]
    whole = quantise(x.reshape(1, -1), "e4m3fn", block=x.size).dequantise().reshape(x.shape)
    blocks = quantise(x, "e4m3fn").dequantise()
    assert relative_error(x[-1], whole[-1]) == 1 and relative_error(x[-1], blocks[-1]) < 0.03
    errors = [
        relative_error(x, quantise(x, name).dequantise()) for name in ("e4m3fn", "e5m2", "e2m1")
    ]
    assert errors == sorted(errors), "mantissa bits decide, once blocks have their scale"


def test_nothing_is_changed_and_lists_are_taken() -> None:
    x = np.float32([1.1, 2.2, -3.3, 4.4])
    quantise(x, block=2)
    assert x.tolist() == np.float32([1.1, 2.2, -3.3, 4.4]).tolist()
    assert quantise(np.ones((0, 32))).dequantise().shape == (0, 32)
    result = quantise([[1, 2], [3, 4]], FORMATS["e2m1"], block=2)
    assert isinstance(result, MX) and result.element == FORMATS["e2m1"]
    assert result.dequantise().tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: quantise(np.ones(33)), r"shape \(33,\) does not divide into blocks of \(32,\)"),
        (lambda: quantise(np.ones(32), block=0), "does not divide"),
        (lambda: quantise(1.0), "one number is no block"),
        (lambda: quantise(np.ones(32), "e4m3"), "are e4m3fn, e5m2, e3m2, e2m3, e2m1, found e4m3"),
        (lambda: quantise(np.ones(32), "fp4"), "no format 'fp4'"),
        (lambda: quantise_tile(np.ones(32)), r"partitions and a free axis, found shape \(32,\)"),
        (lambda: quantise_tile(np.ones((12, 4))), r"blocks of \(8, 4\)"),
    ],
)
def test_bad_input_is_said(call, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()
