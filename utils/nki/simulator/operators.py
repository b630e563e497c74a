"""Operators: `nl.add` and its like, at once a token for instructions and a function on tiles.

The functions of the Scalar Engine are among them: their meaning, where they are valid, and their
tables. The engine approximates each with piecewise polynomials. Here the exact function is computed
in FP64 and rounded once to FP32; outside the valid range only what `sin` does is known, and
imitated (AWS, NKI ISA common fields, table of activation functions:
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/api/nki.api.shared.html).
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Function = Callable[[np.ndarray], np.ndarray]

# ---- erf without SciPy: a table of exp(z * z) * erfc(z), continued by its Taylor polynomial ------

_STEP = 1 / 512
_LAST = 26
_ORDER = 4
_FLAT = 2 / math.sqrt(math.pi)


@functools.cache
def _scaled_table() -> np.ndarray:
    """Taylor coefficients of y = exp(z^2) erfc(z) at multiples of the step; (order + 1, nodes).

    y' = 2 z y - 2 / sqrt(pi), and from there each derivative follows from the two before it.
    """
    nodes = np.arange(int(_LAST / _STEP) + 1) * _STEP
    y = np.array([math.exp(z * z) * math.erfc(z) for z in nodes])
    derivatives = [y, 2 * nodes * y - _FLAT]
    for n in range(1, _ORDER):
        derivatives.append(2 * nodes * derivatives[n] + 2 * n * derivatives[n - 1])
    return np.stack([d / math.factorial(n) for n, d in enumerate(derivatives)])


def erfc(x: np.ndarray) -> np.ndarray:
    """1 - erf(x) in FP64; also the small values of large x are exact to about 12 digits."""
    z = np.clip(np.abs(x), 0, _LAST)
    with np.errstate(invalid="ignore"):
        node = np.minimum((z / _STEP + 0.5).astype(np.uint32), int(_LAST / _STEP))
    h = z - node * _STEP
    table = _scaled_table()
    y = table[_ORDER][node]
    for coefficients in reversed(table[:_ORDER]):
        y = y * h + coefficients[node]
    upper = y * np.exp(-z * z)
    return np.where(x < 0, 2 - upper, upper)


def erf(x: np.ndarray) -> np.ndarray:
    """The error function, in FP64."""
    made = np.sign(x) * (1 - erfc(np.abs(x)))
    near = np.abs(x) < 0.5  # where 1 - erfc loses digits, the power series
    small = x[near]
    series = np.zeros_like(small)
    for n in range(12, -1, -1):
        series = series * -(small * small) + 1 / (math.factorial(n) * (2 * n + 1))
    made[near] = _FLAT * small * series
    return made


# ---- the functions, in FP64 ----------------------------------------------------------------------


def _finite(x: np.ndarray) -> np.ndarray:
    """x with minus infinity made finite, so that x times a vanishing factor is 0."""
    return np.maximum(x, -1e30)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


def _normal_cdf(x: np.ndarray) -> np.ndarray:
    return 0.5 * erfc(-x / math.sqrt(2))


def gelu(x: np.ndarray) -> np.ndarray:
    """x times the normal distribution function."""
    return _finite(x) * _normal_cdf(x)


def gelu_dx(x: np.ndarray) -> np.ndarray:
    """The derivative of `gelu`."""
    density = np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    return _normal_cdf(x) + np.clip(x, -1e30, 1e30) * density


def gelu_apprx_tanh(x: np.ndarray) -> np.ndarray:
    """`gelu` by the tanh approximation."""
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return _finite(x) * sigmoid(2 * inner)


_GELU_SLOPE = 1.702


def gelu_apprx_sigmoid(x: np.ndarray) -> np.ndarray:
    """x * sigmoid(1.702 x)."""
    return _finite(x) * sigmoid(_GELU_SLOPE * x)


def gelu_apprx_sigmoid_dx(x: np.ndarray) -> np.ndarray:
    """The derivative of `gelu_apprx_sigmoid`."""
    return _times_sigmoid_dx(x, _GELU_SLOPE)


def silu(x: np.ndarray) -> np.ndarray:
    """x * sigmoid(x)."""
    return _finite(x) * sigmoid(x)


def silu_dx(x: np.ndarray) -> np.ndarray:
    """The derivative of `silu`."""
    return _times_sigmoid_dx(x, 1.0)


def _times_sigmoid_dx(x: np.ndarray, slope: float) -> np.ndarray:
    """Derivative of x * sigmoid(slope * x)."""
    s = sigmoid(slope * x)
    return s + slope * np.clip(x, -1e30, 1e30) * s * sigmoid(-slope * x)


def softplus(x: np.ndarray) -> np.ndarray:
    """log(1 + exp(x))."""
    return np.logaddexp(0.0, x)


def mish(x: np.ndarray) -> np.ndarray:
    """x * tanh(softplus(x))."""
    return _finite(x) * np.tanh(softplus(x))


def erf_dx(x: np.ndarray) -> np.ndarray:
    """The derivative of `erf`."""
    return _FLAT * np.exp(-x * x)


def sin(x: np.ndarray) -> np.ndarray:
    """Sine up to pi on both sides; beyond, the cubic of the last piece goes on, as on the engine.

    >>> round(float(sin(np.array(9.0))), 2)
    27.65
    """
    beyond = np.abs(x) - math.pi
    continued = np.sign(x) * (beyond**3 / 6 - beyond)
    return np.where(beyond > 0, continued, np.sin(x))


def prelu(x: np.ndarray, slope: np.ndarray | float = 0.0) -> np.ndarray:
    """x, and slope * x where x is negative."""
    return np.where(x < 0, x * slope, x)


def in_fp64(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """The function on FP32 arrays: computed in FP64, rounded once."""

    def meaning(x: np.ndarray, *more: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            wide = [np.asarray(item, np.float64) for item in (x, *more)]
            return function(*wide).astype(np.float32)

    return meaning


def quiet(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """The function without NumPy's warnings: infinities and NaN are ordinary values here."""

    def meaning(*operands: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return function(*operands)

    return meaning


# ---- where they are valid, and which table they load ---------------------------------------------


@dataclass(frozen=True)
class Domain:
    """Inputs for which the engine's polynomials hold. magnitude: of |x|, so of both signs."""

    low: float
    high: float
    text: str
    magnitude: bool = False

    def outside(self, x: np.ndarray) -> np.ndarray:
        """Where x is outside; NaN is not: it is not the function's fault."""
        value = np.abs(x) if self.magnitude else x
        return (value < self.low) | (value > self.high)


_PI32 = float(np.float32(math.pi))
"""The FP32 number next to pi counts as inside."""
_HALF_PI32 = float(np.float32(math.pi / 2))

DOMAINS = {
    "log": Domain(2.0**-64, 2.0**64, "[2^-64, 2^64]"),
    "sin": Domain(-_PI32, _PI32, "[-pi, pi]"),
    "arctan": Domain(-_HALF_PI32, _HALF_PI32, "[-pi/2, pi/2]"),
    "sqrt": Domain(2.0**-116, 2.0**118, "[2^-116, 2^118]"),
    "rsqrt": Domain(2.0**-87, 2.0**97, "[2^-87, 2^97]"),
    "reciprocal": Domain(2.0**-42, 2.0**42, "+-[2^-42, 2^42]", magnitude=True),
}

# AWS names four sets of function tables (NEFF files, Activation.json:
# https://awsdocs-neuron.readthedocs-hosted.com/en/latest/neuron-runtime/explore/work-with-neff-files.html):
# reciprocal_sqrt_and_small, natural_log_exp_and_others, reciprocal_and_small, gelu_and_others.
# Taken from them: log and exp share a set; rsqrt, reciprocal and gelu have one each. Assumptions:
# the "small" functions, a few straight lines or one product, are in every set and load nothing; a
# derivative and an approximation share the set of their function; everything else has its own.
RESIDENT = ""
TABLES = {
    **dict.fromkeys(("copy", "square", "relu", "prelu", "abs", "sign"), RESIDENT),
    **dict.fromkeys(("exp", "log"), "natural_log_exp"),
    "rsqrt": "reciprocal_sqrt",
    "reciprocal": "reciprocal",
    **dict.fromkeys(
        ("gelu", "gelu_dx", "gelu_apprx_tanh", "gelu_apprx_sigmoid", "gelu_apprx_sigmoid_dx"),
        "gelu",
    ),
    **dict.fromkeys(("silu", "silu_dx"), "silu"),
    **dict.fromkeys(("erf", "erf_dx"), "erf"),
}

MEANINGS: dict[str, Callable[..., np.ndarray]] = {
    "copy": np.positive,
    "square": quiet(np.square),
    "relu": lambda x: np.maximum(x, np.float32(0)),
    "prelu": in_fp64(prelu),
    "abs": np.abs,
    "sign": np.sign,
    "sqrt": quiet(np.sqrt),
    "reciprocal": quiet(np.reciprocal),
    "rsqrt": in_fp64(lambda x: 1 / np.sqrt(x)),
    **{name: in_fp64(getattr(np, name)) for name in ("tanh", "exp", "log", "arctan")},
    **{
        function.__name__: in_fp64(function)
        for function in (
            sigmoid, sin, erf, erf_dx, softplus, mish, silu, silu_dx, gelu, gelu_dx,
            gelu_apprx_tanh, gelu_apprx_sigmoid, gelu_apprx_sigmoid_dx,
        )
    },
}  # fmt: skip
"""All functions that `nisa.activation` takes, on FP32 arrays."""


Meaning = Callable[..., np.ndarray]
FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""What `nl.name(x, ...)` does on tiles; filled by `language`."""


@dataclass(eq=False, repr=False, slots=True)
class Operator:
    """A named operation with its meaning on FP32 arrays.

    kind: "arithmetic" (two operands), "bitwise" (on bit patterns of integers; `invert` takes one
    operand, the others two), "unary" (one operand; in tensor_scalar and on the Scalar Engine),
    "activation" (one operand, Scalar Engine only), "bypass" (no operation, activate2 only),
    "partition" (tensor_partition_reduce only) or "language" (no token of an instruction).
    reduced: reduces the last axis, or None; identity: what its reduction begins with.
    domain: where an activation is valid, or None for everywhere.
    table: the set of function tables an activation needs; "" needs none (see `activations`).
    """

    name: str
    kind: str
    meaning: Meaning
    reduced: Meaning | None = None
    identity: float = 0.0
    domain: Domain | None = None
    table: str = ""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function on tiles; `language` has filled `FUNCTIONS`."""
        return FUNCTIONS[self.name](*args, **kwargs)

    def __repr__(self) -> str:
        return f"nl.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return of_name, (self.name,)  # a copy or a pickle is the same token

    @property
    def is_bitwise(self) -> bool:
        """Whether it works on bit patterns."""
        return self.kind == "bitwise"

    @property
    def is_activation(self) -> bool:
        """Whether the Scalar Engine takes it as a function."""
        return self.kind in ("unary", "activation")

    @property
    def is_unary(self) -> bool:
        """Whether it takes one operand."""
        return self.is_activation or self.name == "invert"

    @property
    def reduces(self) -> bool:
        """Whether tensor_reduce takes it."""
        return self.reduced is not None


OPERATORS: dict[str, Operator] = {}


def of_name(name: str) -> Operator:
    """The operator of that name."""
    return OPERATORS[name]


def _add(name: str, kind: str, meaning: Meaning, **options: Any) -> None:
    OPERATORS[name] = Operator(name, kind, meaning, **options)


# ---- meanings --------------------------------------------------------------------------------


def _truth(compare: Meaning) -> Meaning:
    return lambda a, b: compare(a, b).astype(np.float32)


def _logical(combine: Meaning) -> Meaning:
    return lambda a, b: combine(a != 0, b != 0).astype(np.float32)


def _over_truth(combine: np.ufunc) -> Meaning:
    return lambda x: combine.reduce(x != 0, axis=-1).astype(np.float32)


def _over(combine: np.ufunc) -> Meaning:
    return quiet(lambda x: combine.reduce(x, axis=-1))


def abs_max(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The operand of larger magnitude, with its sign; b if they are equal."""
    return np.where(np.abs(a) > np.abs(b), a, b)


def abs_min(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The operand of smaller magnitude, with its sign; b if they are equal."""
    return np.where(np.abs(a) < np.abs(b), a, b)


def fold(meaning: Meaning) -> Meaning:
    """Reduction of the last axis, one element after the other."""

    def reduced(x: np.ndarray) -> np.ndarray:
        kept = x[..., 0]
        for i in range(1, x.shape[-1]):
            kept = meaning(kept, x[..., i])
        return kept

    return reduced


def power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a to the power b, computed in FP64 and rounded once to the type of the operands."""
    with np.errstate(all="ignore"):
        made = np.power(np.asarray(a, np.float64), np.asarray(b, np.float64))
    if np.result_type(a, b).kind == "f":
        return made.astype(np.float32)
    whole = np.rint(np.nan_to_num(made))
    return np.clip(whole, -(2.0**62), 2.0**62).astype(np.int64)


def _shift(shift: np.ufunc) -> Meaning:
    """A shift of unsigned words; by as many bits as a word has, or more, it leaves 0."""

    def meaning(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        bits = 8 * np.asarray(a).dtype.itemsize
        fits = np.asarray(b) < bits
        return np.where(fits, shift(a, np.where(fits, b, 0).astype(a.dtype)), 0).astype(a.dtype)

    return meaning


INF = float("inf")
for _name, _identity in (
    ("add", 0.0), ("subtract", 0.0), ("multiply", 1.0), ("maximum", -INF), ("minimum", INF),
):  # fmt: skip
    _ufunc = getattr(np, _name)
    _add(_name, "arithmetic", quiet(_ufunc), reduced=_over(_ufunc), identity=_identity)
for _name in ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal"):
    _add(_name, "arithmetic", _truth(getattr(np, _name)))
for _name, _identity in (("logical_and", 1.0), ("logical_or", 0.0), ("logical_xor", 0.0)):
    _ufunc = getattr(np, _name)
    _add(_name, "arithmetic", _logical(_ufunc), reduced=_over_truth(_ufunc), identity=_identity)
_add("power", "arithmetic", power)
_add("abs_max", "arithmetic", abs_max, identity=0.0)
_add("abs_min", "arithmetic", abs_min, identity=INF)
_add("divide", "arithmetic", quiet(np.true_divide))
_add("mod", "arithmetic", quiet(np.mod))
_add("fmod", "arithmetic", quiet(np.fmod))

for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    _ufunc = getattr(np, _name)
    _add(_name, "bitwise", _ufunc, reduced=_over(_ufunc))
_add("left_shift", "bitwise", _shift(np.left_shift))
_add("right_shift", "bitwise", _shift(np.right_shift))
_add("invert", "bitwise", np.invert)

for _name, _function in MEANINGS.items():
    _add(
        _name,
        "unary" if _name in ("abs", "square", "relu", "rsqrt", "reciprocal") else "activation",
        _function,
        domain=DOMAINS.get(_name),
        table=TABLES.get(_name, _name),
    )
_add("bypass", "bypass", lambda a, b: a)
_add("average", "partition", np.add)

NOT_COMPILED = frozenset(("divide", "mod", "fmod"))
"""Known to fail in the compiler of NKI 0.3 to 0.6, although they simulate."""
