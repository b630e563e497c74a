"""Operators and activation functions: against closed formulas in FP64, and against torch."""

import copy
import math
import operator
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from utils.nki.simulator import operators
from utils.nki.simulator.operators import OPERATORS

X = np.concatenate(
    [np.linspace(-12, 12, 4001), np.geomspace(1e-30, 1e4, 500), -np.geomspace(1e-30, 1e4, 500)]
).astype(np.float32)
LESS = 2.0**-24
"""Half a unit in the last place: what one rounding may add."""


def wide(function, x: np.ndarray) -> np.ndarray:
    """A function of Python's math on every element, in FP64; what overflows is infinite."""

    def one(value: float) -> float:
        try:
            return function(value)
        except OverflowError:
            return math.inf

    return np.array([one(float(value)) for value in x])


def sigmoid(v: float) -> float:
    return 1 / (1 + math.exp(-v)) if v > 0 else math.exp(v) / (1 + math.exp(v))


def cdf(v: float) -> float:
    return 0.5 * math.erfc(-v / math.sqrt(2))


def softplus(v: float) -> float:
    return max(v, 0) + math.log1p(math.exp(-abs(v)))


def near(result: np.ndarray, wanted: np.ndarray, more: np.ndarray | float = 0.0) -> None:
    """Within one rounding to FP32, plus what the reference itself may be off."""
    assert result.dtype == np.float32
    with np.errstate(invalid="ignore", over="ignore"):
        allowed = np.abs(wanted) * LESS * 1.001 + 2.0**-150 + more
        overflown = np.abs(wanted) >= 2.0**128 * (1 - LESS / 2)
        ok = (np.abs(result - wanted) <= allowed) | (overflown & np.isinf(result))
        ok |= np.isnan(wanted) & np.isnan(result)
    assert ok.all(), list(zip(X[~ok][:5], result[~ok][:5], wanted[~ok][:5], strict=False))


CLOSED = {
    "exp": math.exp,
    "tanh": math.tanh,
    "sigmoid": sigmoid,
    "silu": lambda v: v * sigmoid(v),
    "gelu": lambda v: v * cdf(v),
    "gelu_apprx_sigmoid": lambda v: v * sigmoid(1.702 * v),
    "gelu_apprx_tanh": lambda v: (
        v * sigmoid(2 * math.sqrt(2 / math.pi) * (v + 0.044715 * v * v * v))
    ),
    "softplus": softplus,
    "mish": lambda v: v * math.tanh(softplus(v)),
    "erf": math.erf,
    "erf_dx": lambda v: 2 / math.sqrt(math.pi) * math.exp(-v * v),
    "arctan": math.atan,
    "square": lambda v: v * v,
    "abs": abs,
    "relu": lambda v: max(v, 0.0),
    "copy": lambda v: v,
    "sign": lambda v: math.copysign(1.0, v) if v else 0.0,
    "reciprocal": lambda v: 1 / v if v else math.copysign(math.inf, v),
}


@pytest.mark.parametrize("name", CLOSED)
def test_functions_are_rounded_once(name: str) -> None:
    wanted = wide(CLOSED[name], X)
    near(OPERATORS[name].meaning(X), wanted, np.abs(wanted) * 1e-11)


@pytest.mark.parametrize(
    "name,function", [("sqrt", math.sqrt), ("log", math.log), ("rsqrt", lambda v: 1 / math.sqrt(v))]
)
def test_functions_of_positive_numbers(name, function) -> None:
    x = X[X > 0]
    near(OPERATORS[name].meaning(x), wide(function, x), np.abs(wide(function, x)) * 1e-11)
    assert np.isnan(OPERATORS[name].meaning(np.array([-1.0], np.float32)))[0]


@pytest.mark.parametrize("of", ("gelu", "gelu_apprx_sigmoid", "silu", "erf"))
def test_derivatives_are_slopes(of: str) -> None:
    """The difference quotient over 2 h in FP64 is off by h^2 / 6 times the third derivative."""
    x, h, function = np.linspace(-8, 8, 1601), 1e-4, getattr(operators, of)
    slope = (function(x + h) - function(x - h)) / (2 * h)
    assert np.abs(OPERATORS[f"{of}_dx"].meaning(x.astype(np.float32)) - slope).max() < 1e-6


@pytest.mark.parametrize("name,torch_name,options", [
    ("gelu", "gelu", {}), ("gelu_apprx_tanh", "gelu", {"approximate": "tanh"}),
    ("silu", "silu", {}), ("mish", "mish", {}), ("softplus", "softplus", {"threshold": 1e3}),
])  # fmt: skip
def test_functions_agree_with_torch(name: str, torch_name: str, options: dict) -> None:
    import torch

    x = X[np.abs(X) < 100].astype(np.float64)
    wanted = getattr(torch.nn.functional, torch_name)(torch.from_numpy(x), **options).numpy()
    result = OPERATORS[name].meaning(x.astype(np.float32))
    np.testing.assert_allclose(result, wanted, rtol=1e-6, atol=1e-14)


def test_erf_is_as_good_as_the_library_of_c() -> None:
    x = np.linspace(-9, 9, 200_001)
    wanted = np.array([math.erf(v) for v in x])
    assert np.abs(operators.erf(x) - wanted).max() < 4e-16
    x = np.linspace(-6, 26, 200_001)
    wanted = np.array([math.erfc(v) for v in x])
    assert (np.abs(operators.erfc(x) - wanted) / wanted).max() < 1e-12


@pytest.mark.parametrize("name", [o.name for o in OPERATORS.values() if o.is_activation])
def test_infinities_have_limits_and_nan_stays(name: str) -> None:
    ends = OPERATORS[name].meaning(np.array([-np.inf, np.inf, np.nan], np.float32))
    assert np.isnan(ends[2])
    if OPERATORS[name].domain is None and name != "prelu":
        assert not np.isnan(ends[:2]).any()


def test_sine_is_the_cubic_of_the_last_piece_outside_of_pi() -> None:
    sin = OPERATORS["sin"].meaning
    assert round(float(sin(np.array([9.0], np.float32))[0]), 2) == 27.65
    inside = X[np.abs(X) <= 3.1415]
    near(sin(inside), wide(math.sin, inside), 1e-16)
    np.testing.assert_allclose(sin(-X), -sin(X))


def test_slopes_of_prelu() -> None:
    x = np.array([[-2.0, 3.0], [-4.0, 5.0]], np.float32)
    slopes = np.array([[0.5], [0.25]], np.float32)
    assert OPERATORS["prelu"].meaning(x, slopes).tolist() == [[-1, 3], [-1, 5]]


@pytest.mark.parametrize("name,inside,outside", [
    ("log", (2.0**-64, 2.0**64), (0.0, 2.0**65, -1.0)),
    ("sin", (-3.1415, 3.1415), (3.1417, -4.0)),
    ("arctan", (-1.57, 1.57), (1.58, -2.0)),
    ("sqrt", (2.0**-116, 2.0**118), (0.0, 2.0**119)),
    ("rsqrt", (2.0**-87, 2.0**97), (0.0, 2.0**98)),
    ("reciprocal", (2.0**-42, -(2.0**-42), 2.0**42), (0.0, 2.0**43, -(2.0**43))),
])  # fmt: skip
def test_domains_are_the_documented_ones(name, inside, outside) -> None:
    domain = OPERATORS[name].domain
    assert not domain.outside(np.array([*inside, np.nan], np.float32)).any()
    assert domain.outside(np.array(outside, np.float32)).all()


EXACT = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul,
    "divide": operator.truediv, "maximum": max, "minimum": min, "fmod": math.fmod,
    "power": lambda a, b: abs(a) ** b, "mod": lambda a, b: a - b * math.floor(a / b),
    "equal": operator.eq, "not_equal": operator.ne, "greater": operator.gt,
    "greater_equal": operator.ge, "less": operator.lt, "less_equal": operator.le,
    "logical_and": lambda a, b: bool(a) and bool(b), "logical_or": lambda a, b: bool(a) or bool(b),
    "logical_xor": lambda a, b: bool(a) != bool(b),
    "abs_max": lambda a, b: a if abs(a) > abs(b) else b,
    "abs_min": lambda a, b: a if abs(a) < abs(b) else b,
}  # fmt: skip
numbers = st.floats(-100, 100, width=32).filter(lambda v: v == 0 or abs(v) > 1e-3)


@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=60)
@given(numbers, numbers)
def test_operators_of_two_numbers(name: str, a: float, b: float) -> None:
    if name in ("divide", "mod", "fmod") and b == 0:
        return
    if name == "power":
        a, b = abs(a) + 1, b / 20
    with np.errstate(all="ignore"):
        result = OPERATORS[name].meaning(np.array([a], np.float32), np.array([b], np.float32))
        wanted = EXACT[name](float(np.float32(a)), float(np.float32(b)))
    tolerance = 1e-4 if name == "mod" else 1e-7 * abs(wanted)
    assert abs(float(result[0]) - wanted) <= tolerance, (a, b)


words = st.integers(0, 255)


@settings(max_examples=60)
@given(words, words)
def test_operators_on_bits(a: int, b: int) -> None:
    x, y = np.array([a], np.uint8), np.array([b], np.uint8)
    wanted = {"bitwise_and": a & b, "bitwise_or": a | b, "bitwise_xor": a ^ b,
              "left_shift": (a << b) & 255, "right_shift": a >> b}  # fmt: skip
    for name, value in wanted.items():
        assert OPERATORS[name].meaning(x, y)[0] == value, name
    assert OPERATORS["invert"].meaning(x)[0] == 255 - a


REDUCTIONS = {
    "add": np.sum, "multiply": np.prod, "maximum": np.max, "minimum": np.min,
    "logical_and": lambda x, axis: np.all(x, axis).astype(float),
    "logical_or": lambda x, axis: np.any(x, axis).astype(float),
    "logical_xor": lambda x, axis: (np.count_nonzero(x, axis) % 2).astype(float),
    "subtract": lambda x, axis: 2 * x[..., 0] - np.sum(x, axis),
}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_the_last_axis(name: str) -> None:
    x = np.random.default_rng(0).integers(-2, 3, (4, 3, 9)).astype(np.float32)
    result = OPERATORS[name].reduced(x)
    np.testing.assert_array_equal(result, REDUCTIONS[name](x.astype(np.float64), axis=-1))
    joined = OPERATORS[name].meaning(np.float32(OPERATORS[name].identity), result)
    if name != "subtract" and not name.startswith("logical"):
        np.testing.assert_array_equal(joined, result)


def test_the_documented_reductions_and_no_others() -> None:
    assert {o.name for o in OPERATORS.values() if o.reduces} == {
        *REDUCTIONS, "bitwise_and", "bitwise_or", "bitwise_xor",
    }  # fmt: skip


def test_tokens_can_be_keys_and_copies_are_the_same() -> None:
    table = {token: token.name for token in OPERATORS.values()}
    for name, token in OPERATORS.items():
        assert repr(token) == f"nl.{name}" and table[token] == name
        assert copy.deepcopy(token) is token and pickle.loads(pickle.dumps(token)) is token


def test_small_functions_need_no_table_and_published_sets_are_shared() -> None:
    table = {name: OPERATORS[name].table for name in operators.MEANINGS}
    assert {n for n, t in table.items() if not t} == {
        "copy", "square", "relu", "prelu", "abs", "sign",
    }  # fmt: skip
    assert table["exp"] == table["log"] != table["rsqrt"] != table["reciprocal"]
    assert table["gelu"] == table["gelu_apprx_tanh"] != table["tanh"]
