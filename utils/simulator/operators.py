"""Operators: `nl.add` and its like, at once a token for instructions and a function on tiles."""

from collections.abc import Callable
from typing import Any

import numpy as np

Meaning = Callable[..., np.ndarray]
FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""What `nl.name(x, ...)` does on tiles; filled by `language`."""


class Operator:
    """A named operation with its meaning on FP32 arrays.

    kind: "arithmetic" (two operands), "bitwise" (two, integers), "unary" (one, also allowed in
    tensor_scalar), "activation" (one, Scalar Engine only) or "language" (no token of an
    instruction).
    reduces: whether tensor_reduce takes it. domain: where an activation is valid.
    """

    __slots__ = ("domain", "kind", "meaning", "name", "reduces", "table")

    def __init__(
        self,
        name: str,
        kind: str,
        meaning: Meaning,
        reduces: bool = False,
        domain: tuple[float, float] = (-np.inf, np.inf),
        table: str = "",
    ) -> None:
        self.name, self.kind, self.meaning = name, kind, meaning
        self.reduces, self.domain, self.table = reduces, domain, table or name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from utils.simulator import language  # noqa: F401 (fills FUNCTIONS)

        return FUNCTIONS[self.name](*args, **kwargs)

    def __repr__(self) -> str:
        return f"nl.{self.name}"

    @property
    def is_bitwise(self) -> bool:
        return self.kind == "bitwise"


def _truth(compare: Meaning) -> Meaning:
    return lambda a, b: compare(a, b).astype(np.float32)


def _logical(combine: Meaning) -> Meaning:
    return lambda a, b: combine(a != 0, b != 0).astype(np.float32)


OPERATORS: dict[str, Operator] = {}


def _add(name: str, kind: str, meaning: Meaning, **options: Any) -> Operator:
    made = OPERATORS[name] = Operator(name, kind, meaning, **options)
    return made


for _name, _meaning, _reduces in (
    ("add", np.add, True),
    ("subtract", np.subtract, True),
    ("multiply", np.multiply, True),
    ("maximum", np.maximum, True),
    ("minimum", np.minimum, True),
    ("power", np.power, False),
    ("divide", np.divide, False),
    ("equal", _truth(np.equal), False),
    ("not_equal", _truth(np.not_equal), False),
    ("greater", _truth(np.greater), False),
    ("greater_equal", _truth(np.greater_equal), False),
    ("less", _truth(np.less), False),
    ("less_equal", _truth(np.less_equal), False),
    ("logical_and", _logical(np.logical_and), True),
    ("logical_or", _logical(np.logical_or), True),
    ("logical_xor", _logical(np.logical_xor), True),
    ("abs_max", lambda a, b: np.maximum(np.abs(a), np.abs(b)), False),
    ("abs_min", lambda a, b: np.minimum(np.abs(a), np.abs(b)), False),
):
    _add(_name, "arithmetic", _meaning, reduces=_reduces)

for _name, _meaning, _reduces in (
    ("bitwise_and", np.bitwise_and, True),
    ("bitwise_or", np.bitwise_or, True),
    ("bitwise_xor", np.bitwise_xor, True),
    ("left_shift", np.left_shift, False),
    ("right_shift", np.right_shift, False),
):
    _add(_name, "bitwise", _meaning, reduces=_reduces)
