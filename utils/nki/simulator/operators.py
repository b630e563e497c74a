"""Operators: `nl.add` and its like, at once a token for instructions and a function on tiles."""

from collections.abc import Callable
from typing import Any

import numpy as np

from utils.nki.simulator.activations import DOMAINS, MEANINGS, TABLES, Domain, quiet

Meaning = Callable[..., np.ndarray]
FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""What `nl.name(x, ...)` does on tiles; filled by `language`."""


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

    __slots__ = ("domain", "identity", "kind", "meaning", "name", "reduced", "table")

    def __init__(
        self,
        name: str,
        kind: str,
        meaning: Meaning,
        reduced: Meaning | None = None,
        identity: float = 0.0,
        domain: Domain | None = None,
        table: str = "",
    ) -> None:
        self.name, self.kind, self.meaning = name, kind, meaning
        self.reduced, self.identity = reduced, identity
        self.domain, self.table = domain, table

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from utils.nki.simulator import language  # noqa: F401 (fills FUNCTIONS)

        return FUNCTIONS[self.name](*args, **kwargs)

    def __repr__(self) -> str:
        return f"nl.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return of_name, (self.name,)  # a copy or a pickle is the same token

    @property
    def is_bitwise(self) -> bool:
        return self.kind == "bitwise"

    @property
    def is_activation(self) -> bool:
        return self.kind in ("unary", "activation")

    @property
    def is_unary(self) -> bool:
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


def folded(meaning: Meaning) -> Meaning:
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


def _shifted(shift: np.ufunc) -> Meaning:
    """A shift of unsigned words; by as many bits as a word has, or more, it leaves 0."""

    def meaning(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        bits = 8 * np.asarray(a).dtype.itemsize
        fits = np.asarray(b) < bits
        return np.where(fits, shift(a, np.where(fits, b, 0).astype(a.dtype)), 0).astype(a.dtype)

    return meaning


INF = float("inf")
for _name, _ufunc, _identity in (
    ("add", np.add, 0.0),
    ("subtract", np.subtract, 0.0),
    ("multiply", np.multiply, 1.0),
    ("maximum", np.maximum, -INF),
    ("minimum", np.minimum, INF),
):
    _add(_name, "arithmetic", quiet(_ufunc), reduced=_over(_ufunc), identity=_identity)
for _name in ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal"):
    _add(_name, "arithmetic", _truth(getattr(np, _name)))
for _name, _identity in (("logical_and", 1.0), ("logical_or", 0.0), ("logical_xor", 0.0)):
    _ufunc = getattr(np, _name)
    _add(
        _name,
        "arithmetic",
        _logical(_ufunc),
        reduced=_over_truth(_ufunc),
        identity=_identity,
    )
_add("power", "arithmetic", power)
_add("abs_max", "arithmetic", abs_max, identity=0.0)
_add("abs_min", "arithmetic", abs_min, identity=INF)
_add("divide", "arithmetic", quiet(np.true_divide))
_add("mod", "arithmetic", quiet(np.mod))
_add("fmod", "arithmetic", quiet(np.fmod))

for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    _ufunc = getattr(np, _name)
    _add(_name, "bitwise", _ufunc, reduced=_over(_ufunc))
_add("left_shift", "bitwise", _shifted(np.left_shift))
_add("right_shift", "bitwise", _shifted(np.right_shift))
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
