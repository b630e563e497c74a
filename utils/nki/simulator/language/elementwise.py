"""Functions of tiles, element by element: `nl.add(x, y)`, `nl.exp(x)`, `nl.floor(x)`.

Each is the convenience form of an operator (`operators`) or a short sequence of instructions.
"""

import math
from collections.abc import Callable
from typing import Any

from utils.nki.simulator.enums import engine
from utils.nki.simulator.errors import doubt, refuse
from utils.nki.simulator.instructions import nisa
from utils.nki.simulator.language.allocation import tile_like
from utils.nki.simulator.language.transfer import copy, where
from utils.nki.simulator.operators import FUNCTIONS, OPERATORS, Operator
from utils.nki.simulator.surface import explain_keywords
from utils.nki.simulator.tensor import Tensor

ROUNDER = 1.5 * 2.0**23
"""Added to an FP32 number and taken away again, it leaves the nearest whole number ..."""
WHOLE_FROM = 2.0**22
"""... of numbers below this; from 2^23 on all are whole."""


def binary(operator: Operator) -> Callable[..., Tensor]:
    """`nl.name(x, y)`: two tiles of one shape, or a tile and a number."""

    def function(x: Any, y: Any, dtype: Any = None) -> Tensor:
        if isinstance(x, Tensor) and isinstance(y, Tensor):
            made = tile_like(x, dtype)
            nisa.tensor_tensor(dst=made, data1=x, data2=y, op=operator)
            return made
        tile, number, reverse = (x, y, False) if isinstance(x, Tensor) else (y, x, True)
        if not isinstance(tile, Tensor):
            raise refuse(
                f"nl.{operator.name}: {x!r} and {y!r} are no tiles.",
                "at least one operand is a tile; numbers are combined by Python itself.",
                "nl.load the array first, or use Python's operators on numbers.",
            )
        if operator.name == "power":
            doubt(
                "nl.power: the exponent or base is a number.",
                "the release notes of NKI 0.3 to 0.6 say that only two tiles compile.",
                "use nisa.tensor_scalar(op0=nl.power), or nl.square for squares.",
            )
        made = tile_like(tile, dtype)
        nisa.tensor_scalar(dst=made, data=tile, op0=operator, operand0=number, reverse0=reverse)
        return made

    function.__doc__ = f"A new tile with {operator.name} of two tiles, or of a tile and a number."
    return function


def activation(operator: Operator) -> Callable[..., Tensor]:
    """`nl.name(x)` by the Scalar Engine."""

    def function(x: Tensor, dtype: Any = None) -> Tensor:
        made = tile_like(x, dtype)
        nisa.activation(dst=made, op=operator, data=x)
        return made

    function.__doc__ = f"A new tile with {operator.name} of each element, on the Scalar Engine."
    return function


def reciprocal(x: Tensor, dtype: Any = None) -> Tensor:
    """A new tile with 1 / x, on the Vector Engine."""
    made = tile_like(x, dtype)
    nisa.reciprocal(dst=made, data=x)
    return made


def rsqrt(x: Tensor, dtype: Any = None) -> Tensor:
    """A new tile with 1 / sqrt(x), on the GpSimd Engine; `x` is in SBUF."""
    made = tile_like(x, dtype)
    nisa.tensor_scalar(dst=made, data=x, op0=OPERATORS["rsqrt"], operand0=0.0, engine=engine.gpsimd)
    return made


def _scalar(
    x: Tensor, op: str, number: float, dtype: Any = None, then: str | None = None,
    again: float = 0.0,
) -> Tensor:  # fmt: skip
    """A new tile with (x op number), and then again another operator and number."""
    made = tile_like(x, dtype)
    more = {"op1": OPERATORS[then], "operand1": again} if then else {}
    nisa.tensor_scalar(dst=made, data=x, op0=OPERATORS[op], operand0=number, **more)
    return made


def negative(x: Tensor, dtype: Any = None) -> Tensor:
    """A new tile with -x."""
    return _scalar(x, "multiply", -1.0, dtype)


def logical_not(x: Tensor, dtype: Any = None) -> Tensor:
    """A new tile with 1 where x is 0, else 0."""
    return _scalar(x, "equal", 0.0, dtype)


def invert(x: Tensor, dtype: Any = None) -> Tensor:
    """A new tile with all bits of integers turned over."""
    made = tile_like(x, dtype)
    ones = -1 if x.dtype.startswith("int") else 2 ** (8 * x.itemsize) - 1
    nisa.tensor_scalar(dst=made, data=x, op0=OPERATORS["bitwise_xor"], operand0=ones)
    return made


def absolute(x: Tensor, dtype: Any = None) -> Tensor:
    """A new tile with the absolute values."""
    return _scalar(x, "abs", 0.0, dtype)


def floor(x: Tensor, dtype: Any = None) -> Tensor:
    """A new tile with the largest whole numbers that are at most x."""
    near = _nearest(x)
    above = FUNCTIONS["greater"](near, x, dtype="float32")
    return FUNCTIONS["subtract"](near, above, dtype=dtype or x.dtype)


def ceil(x: Tensor, dtype: Any = None) -> Tensor:
    """A new tile with the smallest whole numbers that are at least x."""
    near = _nearest(x)
    below = FUNCTIONS["less"](near, x, dtype="float32")
    return FUNCTIONS["add"](near, below, dtype=dtype or x.dtype)


def trunc(x: Tensor, dtype: Any = None) -> Tensor:
    """A new tile with x without its fraction."""
    down, up = floor(x, "float32"), ceil(x, "float32")
    return where(_scalar(x, "less", 0.0, "float32"), up, down, dtype or x.dtype)


def _nearest(x: Tensor) -> Tensor:
    """Whole numbers near x in FP32; numbers too large to have a fraction as they are."""
    small = _scalar(x, "add", ROUNDER, "float32", "subtract", ROUNDER)
    is_small = _scalar(absolute(x, "float32"), "less", WHOLE_FROM)
    return where(is_small, small, x, "float32")


def sin(x: Tensor, dtype: Any = None) -> Tensor:
    """A new tile with the sine; brought to [-pi, pi] first, where nisa.activation is valid."""
    return _wave(x, 0.0, dtype)


def cos(x: Tensor, dtype: Any = None) -> Tensor:
    """A new tile with the cosine, as a sine a quarter of a period later."""
    return _wave(x, math.pi / 2, dtype)


def _wave(x: Tensor, shift: float, dtype: Any) -> Tensor:
    shifted = _scalar(x, "add", shift, "float32")
    turns = _nearest(_scalar(shifted, "multiply", 1 / (2 * math.pi)))
    whole = _scalar(turns, "multiply", 2 * math.pi)
    reduced = FUNCTIONS["subtract"](shifted, whole)
    inside = _scalar(reduced, "minimum", math.pi, None, "maximum", -math.pi)
    made = tile_like(x, dtype)
    nisa.activation(dst=made, op=OPERATORS["sin"], data=inside)
    return made


def tan(x: Tensor, dtype: Any = None) -> Tensor:
    """A new tile with the tangent, the sine over the cosine."""
    over = reciprocal(cos(x, "float32"))
    return FUNCTIONS["multiply"](sin(x, "float32"), over, dtype=dtype or x.dtype)


COMPOSED: dict[str, Callable[..., Tensor]] = {
    "abs": absolute, "ceil": ceil, "copy": copy, "cos": cos, "floor": floor, "invert": invert,
    "logical_not": logical_not, "negative": negative, "reciprocal": reciprocal, "rsqrt": rsqrt,
    "sin": sin, "tan": tan, "trunc": trunc,
}  # fmt: skip


def token_only(operator: Operator) -> Callable[..., Tensor]:
    """An operator that instructions take and that has no form as a function."""

    def function(*_: Any, **__: Any) -> Tensor:
        raise refuse(
            f"nl.{operator.name}(...) is no function of tiles.",
            "it names an operation to an instruction.",
            f"pass op=nl.{operator.name} to an instruction of nisa that takes it.",
        )

    return function


FORMS = {"arithmetic": binary, "bitwise": binary, "unary": activation, "activation": activation}


def fill() -> None:
    """Give every operator its function on tiles."""
    for name, operator in OPERATORS.items():
        made = COMPOSED.get(name) or FORMS.get(operator.kind, token_only)(operator)
        FUNCTIONS[name] = explain_keywords("nki.language", name, made)


fill()
