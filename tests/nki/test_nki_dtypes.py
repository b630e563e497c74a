"""The one rounding of every write, against the course's own formats: every value, every tie."""

import copy
import pickle

import nki.isa as nisa
import numpy as np
import pytest
from hypothesis import given, settings

from tests.nki.nki_bench import (
    FORMAT,
    NUMPY,
    draw,
    empty,
    issue,
    layouts,
    put,
    result_of,
    rounds,
    same,
    seeds,
    shapes,
    types,
)
from utils.chip.formats import FORMATS, round_to
from utils.nki.simulator import dtypes
from utils.nki.simulator.errors import NkiValidationError

NARROW = ("bfloat16", "float16", "float8_e4m3", "float8_e4m3fn", "float8_e5m2")


def every_value(name: str) -> np.ndarray:
    """All finite values of a format of at most 16 bits, in FP64, sorted."""
    numpy = np.dtype(NUMPY[name])
    codes = np.arange(2 ** (8 * numpy.itemsize), dtype=f"u{numpy.itemsize}")
    with np.errstate(invalid="ignore"):  # signalling NaN
        values = codes.view(numpy).astype(np.float64)
    return np.unique(values[np.isfinite(values)])


def around(values: np.ndarray) -> np.ndarray:
    """Every value, every midpoint, one step beyond the ends, and the FP32 neighbours of all."""
    ends = np.array([values[0] * 2 - values[1], values[-1] * 2 - values[-2]])
    wide = np.sort(np.concatenate([values, ends]))
    with np.errstate(over="ignore"):
        points = np.concatenate([wide, (wide[1:] + wide[:-1]) / 2]).astype(np.float32)
    inf = np.float32(np.inf)
    return np.concatenate(
        [points, np.nextafter(points, inf), np.nextafter(points, -inf), [inf, -inf, np.nan]]
    ).astype(np.float32)


@pytest.mark.parametrize("name", NARROW)
def test_every_value_and_every_tie_is_rounded_as_the_format_says(name: str) -> None:
    dtype = dtypes.dtype_of(name)
    x = around(every_value(name))
    result = dtypes.narrow(x, dtype, dtype.numpy).astype(np.float32)
    same(result, round_to(x, FORMAT[name]))
    np.testing.assert_array_equal(np.signbit(result[result == 0]), np.signbit(x[result == 0]))


def test_tf32_keeps_ten_bits_at_every_mantissa() -> None:
    mantissas = np.arange(2**23, dtype=np.uint32)
    for exponent in (0, 1, 127, 254):
        x = (mantissas | np.uint32(exponent << 23)).view(np.float32)
        result = dtypes.narrow(x, dtypes.tfloat32, np.dtype(np.float32))
        same(result, round_to(x, "tf32"))


def test_scales_are_powers_of_two() -> None:
    x = (2.0 ** np.arange(-126, 128)).astype(np.float32)
    dtype = dtypes.float8_e8m0fnu
    same(dtypes.narrow(x, dtype, dtype.numpy).astype(np.float32), x)


def test_fp8_e4m3_is_the_hardware_variant() -> None:
    highest = {"float8_e4m3": 240.0, "float8_e4m3fn": 448.0}
    for name, value in highest.items():
        assert every_value(name)[-1] == value == FORMATS[FORMAT[name]].max
    beyond = np.array([260.0], np.float32)
    dtype = dtypes.float8_e4m3
    assert np.isinf(dtypes.narrow(beyond, dtype, dtype.numpy).astype(np.float32))[0]


@pytest.mark.parametrize("name", [n for n in NUMPY if n not in FORMAT])
def test_floats_become_integers_to_nearest_even_and_saturate(name: str) -> None:
    limits = np.iinfo(name)
    dtype = dtypes.dtype_of(name)
    x = np.array(
        [0.5, 1.5, 2.5, -0.5, -1.5, 2.4999998, 1e30, -1e30, np.inf, -np.inf, np.nan,
         limits.max, limits.min, 100.5, 101.5],
        np.float32,
    )  # fmt: skip
    exact = [int(min(max(round(float(v)), limits.min), limits.max)) for v in x if np.isfinite(v)]
    result = dtypes.narrow(x, dtype, dtype.numpy)
    assert result[np.isfinite(x)].tolist() == exact
    assert result[8:11].tolist() == [limits.max, limits.min, 0]


@settings(max_examples=60)
@given(shapes, types, types, layouts, layouts, seeds)
def test_a_copy_rounds_once(shape, from_, to, here, there, seed) -> None:
    x = draw(seed, shape, from_)
    result = result_of(nisa.tensor_copy, (shape, to, there), src=(x, from_, here))
    same(result, x if from_ == to else rounds(x, to))


@pytest.mark.parametrize("engine", ("vector", "scalar", "gpsimd"))
@pytest.mark.parametrize("name", ("int32", "uint32", "float32", "bfloat16", "float8_e4m3"))
def test_copies_of_one_type_keep_every_bit(engine: str, name: str) -> None:
    numpy = np.dtype(NUMPY[name])
    bits = np.random.default_rng(1).integers(0, 256, (128, 64 * numpy.itemsize), np.uint8)
    x = bits.view(numpy)

    def copied():
        dst = empty(x.shape, name)
        nisa.tensor_copy(dst=dst, src=put(x, name), engine=nisa.engine[engine])
        return dst

    _, dst = issue(copied)
    np.testing.assert_array_equal(dst.array().view(np.uint8), bits)


def test_integers_beyond_24_bits_lose_their_low_bits_on_the_way_to_another_type() -> None:
    x = np.array([[2**24 + 1, 2**31 - 1, -(2**31)]], np.int32)
    result = result_of(nisa.tensor_copy, (x.shape, "uint32"), src=(x, "int32"))
    assert result.tolist() == [[2**24, 2**31, 0]]


@pytest.mark.parametrize("name", ("uint8", "int16", "uint16", "uint32", "int32", "float32"))
def test_a_type_of_numpy_is_the_plain_type_of_that_name(name: str) -> None:
    """Packed and shortened types are stored in arrays of the same NumPy types."""
    assert dtypes.dtype_of(getattr(np, name)) is dtypes.ALL[name]


def test_without_exact_rounding_floats_keep_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NKI_PRECISE_FP", "0")
    for name in ("bfloat16", "float16", "float8_e4m3", "tfloat32"):
        result = result_of(nisa.memset, ((1, 1), name), value=1 / 3)
        assert float(result[0, 0]) == float(np.float32(1 / 3)), name


def test_types_are_names_that_can_be_copied() -> None:
    for dtype in dtypes.ALL.values():
        assert copy.deepcopy(dtype) is dtype and pickle.loads(pickle.dumps(dtype)) is dtype
        assert repr(dtype) == f"nl.{dtype}" and {dtype: 1}[str(dtype)] == 1


@pytest.mark.parametrize("wide", ("float64", "int64"))
def test_types_of_64_bits_are_refused_with_the_conversion(wide: str) -> None:
    with pytest.raises(NkiValidationError, match=f"astype.np.{wide[:-2]}32"):
        dtypes.dtype_of(np.dtype(wide))
