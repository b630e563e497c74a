"""Formats: bit for bit what ml_dtypes and NumPy do, and what the definition says of every tie."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from utils.chip.formats import FORMATS, Format, format_of, round_to

# The same formats in the libraries that are the reference here.
LIBRARY = {
    "bf16": ml_dtypes.bfloat16,
    "fp16": np.float16,
    "e5m2": ml_dtypes.float8_e5m2,
    "e4m3": ml_dtypes.float8_e4m3,
    "e4m3fn": ml_dtypes.float8_e4m3fn,
    "e3m4": ml_dtypes.float8_e3m4,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
    "e8m0": ml_dtypes.float8_e8m0fnu,
}
SMALL = [name for name in LIBRARY if FORMATS[name].bits <= 8]
every_format = pytest.mark.parametrize("name", FORMATS)
every_library_format = pytest.mark.parametrize("name", LIBRARY)


def library_codes(x: np.ndarray, name: str) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        values = x.astype(LIBRARY[name])
    return values.view(f"uint{8 * values.itemsize}")


def same(result, wanted) -> bool:
    """Equal values, signs of zeros included, NaN equal to NaN."""
    with np.errstate(invalid="ignore"):
        result, wanted = np.asarray(result, np.float64), np.asarray(wanted, np.float64)
    number = ~np.isnan(wanted)
    return np.array_equal(result, wanted, equal_nan=True) and np.array_equal(
        np.signbit(result)[number], np.signbit(wanted)[number]
    )


def every_kind_of_float32(count: int = 1_000_000) -> np.ndarray:
    """Half of them any bit pattern, half of the sizes that occur; NaN left out."""
    draw = np.random.default_rng(2026)
    patterns = draw.integers(0, 2**32, count // 2, dtype=np.uint32).view(np.float32)
    usual = draw.standard_normal(count - count // 2) * np.exp2(draw.uniform(-24, 16, count // 2))
    x = np.concatenate([patterns, usual.astype(np.float32)])
    return np.where(np.isnan(x), np.float32(1.1), x)


@every_library_format
def test_every_code_is_the_value_that_the_library_says(name: str) -> None:
    codes = np.arange(1 << FORMATS[name].bits)
    values = codes.astype("uint16" if FORMATS[name].bits == 16 else "uint8").view(LIBRARY[name])
    assert same(FORMATS[name].decode(codes), values)


@every_library_format
def test_every_value_has_its_code(name: str) -> None:
    codes = np.arange(1 << FORMATS[name].bits)
    values = FORMATS[name].decode(codes)
    number = ~np.isnan(values)
    assert np.array_equal(FORMATS[name].encode(values[number]), codes[number])


@every_library_format
def test_a_million_values_are_rounded_to_the_same_bits(name: str) -> None:
    x = every_kind_of_float32()
    if name == "e8m0":
        # ml_dtypes 0.5 rounds everything between the two smallest scales up, even 1.01 of the
        # smallest; see the ties below.
        x = x[(np.abs(x) >= 2.0**-126) | (np.abs(x) <= 2.0**-127)]
    assert np.array_equal(FORMATS[name].encode(x), library_codes(x, name))


@every_library_format
def test_every_tie_and_its_neighbours_are_rounded_to_the_same_bits(name: str) -> None:
    values = FORMATS[name].values()
    ties = ((values[1:] + values[:-1]) / 2).astype(np.float32)
    x = np.concatenate([ties, np.nextafter(ties, np.float32(np.inf)), np.nextafter(ties, ties * 0)])
    if name == "e8m0":
        x = x[x >= 2.0**-126]
    assert np.array_equal(FORMATS[name].encode(x), library_codes(x, name))


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in ("fp32", "e8m0")])
def test_float64_is_rounded_once(name: str) -> None:
    # Just above a tie, by less than FP32 can say: rounded to FP32 first it would be the tie.
    tie = 1 + FORMATS[name].epsilon / 2
    assert round_to(tie, name) == 1
    assert round_to(tie + 2.0**-40, name) == 1 + FORMATS[name].epsilon


@pytest.mark.parametrize("name", [name for name in LIBRARY if FORMATS[name].specials != "none"])
def test_what_is_no_number_gets_the_code_that_the_library_writes(name: str) -> None:
    x = np.array([np.nan, -np.nan, np.inf, -np.inf], np.float32)
    assert np.array_equal(FORMATS[name].encode(x), library_codes(x, name))


def tf32_by_integers(x: np.ndarray) -> np.ndarray:
    """FP32 to 10 mantissa bits by adding half a step to the bits: another way than the course's."""
    bits = x.view(np.uint32)
    kept = (bits + np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))) >> np.uint32(13)
    return (kept << np.uint32(13)).view(np.float32)


def test_tf32_is_fp32_with_13_bits_less() -> None:
    x = every_kind_of_float32()
    x = x[np.isfinite(x)]
    result = round_to(x, "tf32")
    assert result.dtype == np.float32 and same(result, tf32_by_integers(x))
    codes = FORMATS["tf32"].encode(x)
    assert np.array_equal(codes, tf32_by_integers(x).view(np.uint32) >> 13)
    assert same(FORMATS["tf32"].decode(codes), result)


def test_fp32_from_float64_is_what_the_processor_does() -> None:
    draw = np.random.default_rng(5)
    x = draw.standard_normal(200_000) * np.exp2(draw.uniform(-160, 130, 200_000))
    with np.errstate(over="ignore"):
        wanted = x.astype(np.float32)
    assert same(round_to(x, "fp32"), wanted)
    assert np.array_equal(FORMATS["fp32"].encode(x), wanted.view(np.uint32))
    assert same(FORMATS["fp32"].decode(wanted.view(np.uint32)), wanted)


ANY = st.floats(width=32, allow_nan=False) | st.floats(-500, 500, width=32)


@pytest.mark.parametrize("name", [name for name in SMALL if name != "e8m0"])
@settings(max_examples=60)
@given(x=ANY)
@example(x=-0.0)
@example(x=464.0)  # half way from the largest e4m3fn to the next step
@example(x=float(np.nextafter(np.float32(464), np.float32(500))))
@example(x=248.0)  # the same for the e4m3 of the hardware
@example(x=61440.0)  # and for e5m2
@example(x=2.0**-150)
def test_the_nearest_value_is_found_by_looking_at_all_of_them(name: str, x: float) -> None:
    """The definition, in whole fractions: the nearest value, of two the one with the even code."""
    form = FORMATS[name]
    codes = np.arange(1 << (form.bits - 1))
    finite = [
        (code, value)
        for code, value in zip(codes, form.decode(codes), strict=True)
        if np.isfinite(value)
    ]
    # The value that would come next, were there one more code.
    after = (len(finite), 2.0**form.max_exponent * (2 - (form.specials == "fn") * form.epsilon))
    if np.isinf(x):
        nearest = after[1]
    else:
        size = Fraction(abs(x))
        _, nearest = min(
            [*finite, after], key=lambda pair: (abs(Fraction(pair[1]) - size), pair[0] % 2)
        )
    for saturate in (False, True):
        limit = form.max if saturate or form.overflow is None else form.overflow
        wanted = limit if nearest > form.max else nearest
        assert same(round_to(x, name, saturate=saturate), np.copysign(wanted, x))


@every_format
@settings(max_examples=60)
@given(x=st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_rounding_keeps_values_order_and_sign(name: str, x: float) -> None:
    form = FORMATS[name]
    rounded = round_to(x, form)
    assert same(round_to(rounded, form), rounded), "a value of the format stays"
    if form.signed:
        assert same(round_to(-x, form), -rounded)
        cut = round_to(x, form, "toward-zero")
        assert abs(cut) <= abs(x) and np.signbit(cut) == np.signbit(x)
        if abs(x) <= form.max:
            assert abs(x) - abs(cut) < form.spacing(x)
            assert abs(rounded - x) <= form.spacing(x) / 2
            assert rounded in (cut, cut + np.copysign(form.spacing(x), x))
        else:
            assert abs(cut) == form.max


@pytest.mark.parametrize("name", ["bf16", "tf32", "fp16", "e4m3", "e5m2", "e2m1"])
def test_stochastic_rounding_goes_to_a_neighbour_and_is_right_on_average(name: str) -> None:
    form, count, draw = FORMATS[name], 40_000, np.random.default_rng(11)
    low = form.min_subnormal * 3  # among the subnormals, at 1, and at the largest value
    for x in (low * 1.1, -low * 1.37, 1 + 0.3 * form.epsilon, -(1 + 0.9 * form.epsilon),
              form.max - 0.25 * form.spacing(form.max)):  # fmt: skip
        result = round_to(np.full(count, x), form, "stochastic", rng=draw)
        below = round_to(x, form, "toward-zero")
        gap = form.spacing(x)
        assert set(np.unique(result)) == {below, below + np.copysign(gap, x)}
        share = abs(x - below) / gap
        # Five standard deviations: one run in 1.7 million would be called wrong wrongly, and the
        # seed is fixed.
        slack = 5 * np.sqrt(share * (1 - share) / count)
        assert abs(np.mean(result != below) - share) <= slack


@pytest.mark.parametrize("name", ["bf16", "e4m3", "e4m3fn", "e2m1"])
def test_stochastic_rounding_leaves_values_alone(name: str) -> None:
    values = FORMATS[name].values()
    values = np.concatenate([values, [-0.0]])
    assert same(round_to(values, name, "stochastic", rng=np.random.default_rng(0)), values)


def test_stochastic_rounding_is_the_generators() -> None:
    x = np.random.default_rng(1).standard_normal(1000)
    a, b = (round_to(x, "bf16", "stochastic", rng=np.random.default_rng(3)) for _ in "ab")
    assert np.array_equal(a, b)
    assert not np.array_equal(a, round_to(x, "bf16", "stochastic", rng=np.random.default_rng(4)))


def test_a_tiny_sum_moves_on_with_stochastic_rounding_only() -> None:
    stuck, moving, draw = 1.0, 1.0, np.random.default_rng(7)
    for _ in range(4096):
        stuck = round_to(stuck + 2.0**-12, "bf16")
        moving = round_to(moving + 2.0**-12, "bf16", "stochastic", rng=draw)
    assert stuck == 1 and 1.7 < moving < 2.3


# Exponent bias, largest value, smallest normal, smallest: from the tables of the OCP specifications
# (8-bit floating point 1.0, table 1; Microscaling 1.0, tables 3 to 5) and of IEEE 754.
PUBLISHED = {
    "e4m3fn": (7, 448, 2**-6, 2**-9),
    "e5m2": (15, 57344, 2**-14, 2**-16),
    "e3m2": (3, 28, 0.25, 0.0625),
    "e2m3": (1, 7.5, 1, 0.125),
    "e2m1": (1, 6, 1, 0.5),
    "e4m3": (7, 240, 2**-6, 2**-9),
    "e3m4": (3, 15.5, 0.25, 2**-6),
    "fp16": (15, 65504, 2**-14, 2**-24),
    "bf16": (127, (2 - 2**-7) * 2.0**127, 2.0**-126, 2.0**-133),
    "tf32": (127, (2 - 2**-10) * 2.0**127, 2.0**-126, 2.0**-136),
    "fp32": (127, float(np.finfo(np.float32).max), 2.0**-126, 2.0**-149),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_limits_are_the_published_ones(name: str) -> None:
    form = FORMATS[name]
    assert (form.bias, form.max, form.min_normal, form.min_subnormal) == PUBLISHED[name]


@pytest.mark.parametrize("name", LIBRARY)
def test_the_limits_are_the_librarys(name: str) -> None:
    form, info = FORMATS[name], ml_dtypes.finfo(LIBRARY[name])
    assert form.max == float(info.max) and form.min_normal == float(info.smallest_normal)
    assert form.bits == info.bits and form.mantissa_bits == info.nmant
    if form.signed:
        assert form.epsilon == float(info.eps)
        assert form.min_subnormal == float(info.smallest_subnormal)


@every_library_format
def test_values_are_all_values_in_order_and_the_gaps_between_them(name: str) -> None:
    form = FORMATS[name]
    values = form.values()
    assert np.array_equal(values, np.unique(values)) and np.isfinite(values).all()
    assert values[-1] == form.max
    finite = np.isfinite(form.decode(np.arange(1 << form.bits))).sum()
    assert len(values) == finite - form.signed, "both signs, and zero once"
    above = values[values > 0]
    assert above[0] == form.min_subnormal
    assert np.array_equal(form.spacing(above[:-1]), np.diff(above))


def test_a_scale_is_a_power_of_two_and_never_zero() -> None:
    smallest = 2.0**-127
    x = [1.49, 1.5, 3.0, 6.1, 1.4 * smallest, 0.1 * smallest, 2.0**127, 0.0, -1.0, np.inf]
    nan = np.nan
    wanted = [1, 2, 4, 8, smallest, smallest, 2.0**127, nan, nan, nan]
    assert same(round_to(x, "e8m0"), wanted)
    assert FORMATS["e8m0"].encode(x).tolist() == [127, 128, 129, 130, 0, 0, 254, 255, 255, 255]
    assert same(round_to([3.0, 3e38], "e8m0", "toward-zero"), [2, 2.0**127])


def test_spacing_beyond_the_range_is_unknown() -> None:
    assert np.isnan(FORMATS["e4m3"].spacing([240.1, np.inf, np.nan])).all()
    assert FORMATS["fp32"].spacing(1.0) == np.spacing(np.float32(1))


@pytest.mark.parametrize(
    ("given", "gives"),
    [
        (np.float32, np.float32), (np.float16, np.float32), (ml_dtypes.bfloat16, np.float32),
        (ml_dtypes.float8_e4m3fn, np.float32), (np.int8, np.float32), (np.float64, np.float64),
        (np.int32, np.float64), (np.uint64, np.float64),
    ],
)  # fmt: skip
def test_the_result_is_as_wide_as_what_came(given: type, gives: type) -> None:
    x = np.array([[1, 2, 3], [4, 5, 6]]).astype(given)
    result = round_to(x, "e2m1")
    assert result.dtype == gives and result.tolist() == [[1, 2, 3], [4, 4, 6]]
    assert round_to(x[::-1, ::2].T, "e2m1").tolist() == [[4, 1], [6, 3]], "any strides"


def test_shapes_without_axes_or_values_and_what_came_stays_as_it_is() -> None:
    assert isinstance(round_to(1.1, "bf16"), np.float64)
    assert isinstance(round_to(np.float32(1.1), "bf16"), np.float32)
    assert round_to(np.zeros((0, 3), np.float32), "bf16").shape == (0, 3)
    x = np.array([1.1, np.inf], np.float32)
    round_to(x, "e4m3", saturate=True)
    assert x.tolist() == [np.float32(1.1), np.inf]


def test_cutting_off_stops_at_the_largest_value_but_infinity_stays() -> None:
    x = np.float32([1e9, -1e9, np.inf, -np.inf])
    assert same(round_to(x, "e5m2", "toward-zero"), [57344, -57344, np.inf, -np.inf])
    assert same(round_to(x, "e4m3fn", "toward-zero"), [448, -448, np.nan, np.nan])
    assert same(round_to(x, "e2m1", "toward-zero"), [6, -6, 6, -6])
    assert same(round_to(x, "e5m2", "toward-zero", saturate=True), 57344 * np.sign(x))


def test_rounding_warns_of_nothing() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 1e308, -0.0, 5e-324])
    with np.errstate(all="raise", under="ignore"):
        for mode in ("nearest", "toward-zero", "stochastic"):
            round_to(x, "bf16", mode, rng=np.random.default_rng(0))
        FORMATS["e4m3"].encode(x)
        FORMATS["e4m3"].spacing(x)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: round_to(1.0, "bf17"), "no format 'bf17'; there are fp32, tf32"),
        (lambda: format_of(None), "no format None"),
        (lambda: format_of(["bf16"]), r"no format \['bf16'\]"),
        (lambda: round_to(1.0, "bf16", "up"), "nearest, stochastic, toward-zero, found 'up'"),
        (lambda: round_to(1.0, "bf16", "stochastic"), "needs rng=numpy.random.default_rng"),
        (lambda: round_to([1.0, np.nan], "e2m1"), "e2m1 has no NaN"),
        (lambda: round_to([2**53 + 1], "bf16"), "rounded twice"),
        (lambda: FORMATS["fp32"].values(), r"fp32 has 2\*\*32 codes"),
        (lambda: FORMATS["e2m1"].decode([3, 16]), r"from 0 to 15 \(4 bits\), found \[ 3 16\]"),
        (lambda: FORMATS["e2m1"].decode([-1]), "from 0 to 15"),
        (lambda: FORMATS["e2m1"].decode([1.0]), "are integers"),
        (lambda: Format("x", 4, 3, 7, "odd"), "specials is one of"),
        (lambda: Format("x", 4, 0, 7), "found 4 and 0"),
        (lambda: Format("x", 1, 3, 0), "found 1 and 3"),
        (lambda: Format("x", 8, 1, 127, "scale"), "found 8 and 1"),
        (lambda: Format("x", 11, 52, 1023), "FP32 has not"),
        (lambda: Format("x", 8, 7, 127, "none"), "FP32 has not"),
    ],
)  # fmt: skip
def test_bad_input_is_said(call, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()


@pytest.mark.parametrize("x", [1j, "1.5", None, np.longdouble(1), [[1], [2, 3]]])
def test_what_is_no_real_number_is_refused(x: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        round_to(x, "bf16")


def test_a_format_of_ones_own() -> None:
    e3m3 = Format("e3m3", exponent_bits=3, mantissa_bits=3, bias=3)
    assert (e3m3.bits, e3m3.max, e3m3.epsilon) == (7, 15.0, 0.125)
    codes = np.arange(128)
    number = ~np.isnan(e3m3.decode(codes))
    assert np.array_equal(e3m3.encode(e3m3.decode(codes)[number]), codes[number])
