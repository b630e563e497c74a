"""Reductions along free axes, and the two normalisations that are made of them."""

import math
from typing import Any

from utils.nki.simulator.enums import reduce_cmd
from utils.nki.simulator.errors import refuse
from utils.nki.simulator.instructions import nisa
from utils.nki.simulator.language.allocation import ndarray, tile_like
from utils.nki.simulator.language.transfer import broadcast_to, cast
from utils.nki.simulator.operators import OPERATORS
from utils.nki.simulator.tensor import Tensor


def _axes(doing: str, x: Tensor, axis: Any) -> tuple[int, ...]:
    """The reduced axes counted from the front; they are the last ones, without the partition."""
    given = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(sorted(item + x.ndim if item < 0 else item for item in given))
    if axes != tuple(range(x.ndim - len(axes), x.ndim)) or axes[0] < 1:
        raise refuse(
            f"{doing}: axis {axis} of a tile {x.shape}.",
            "an engine reduces the last free axes of a tile; axis 0 is the partition dimension, "
            "whose rows are separate memories.",
            "for axis 0 transpose first, or nisa.nc_matmul with a column of ones; for others "
            "permute the free axes.",
        )
    return axes


def _reduce(
    doing: str, op: str, x: Tensor, axis: Any, dtype: Any, keepdims: bool, **more: Any
) -> Tensor:
    axes = _axes(doing, x, axis)
    first, ones = x.shape[: axes[0]], (1,) * len(axes)
    column = len(first) == 1  # a tile keeps two dimensions
    made = ndarray((*first, *(ones if keepdims else ones[:1] if column else ())), dtype or x.dtype)
    nisa.tensor_reduce(dst=made, op=OPERATORS[op], data=x, axis=axes, keepdims=keepdims, **more)
    return made


def sum(x: Tensor, axis: Any, dtype: Any = None, keepdims: bool = False) -> Tensor:  # noqa: A001
    """A new tile with sums along the last axes, accumulated in FP32."""
    return _reduce("nl.sum", "add", x, axis, dtype, keepdims)


def max(x: Tensor, axis: Any, dtype: Any = None, keepdims: bool = False) -> Tensor:  # noqa: A001
    """A new tile with the largest elements along the last axes."""
    return _reduce("nl.max", "maximum", x, axis, dtype, keepdims)


def min(x: Tensor, axis: Any, dtype: Any = None, keepdims: bool = False) -> Tensor:  # noqa: A001
    """A new tile with the smallest elements along the last axes."""
    return _reduce("nl.min", "minimum", x, axis, dtype, keepdims)


def prod(x: Tensor, axis: Any, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """A new tile with products along the last axes."""
    return _reduce("nl.prod", "multiply", x, axis, dtype, keepdims)


def all(x: Tensor, axis: Any, dtype: Any = None) -> Tensor:  # noqa: A001
    """A new tile with 1 where no element along the last axes is 0, else 0."""
    true = tile_like(x, "float32")
    nisa.tensor_scalar(dst=true, data=x, op0=OPERATORS["not_equal"], operand0=0.0)
    return _reduce("nl.all", "minimum", true, axis, dtype or x.dtype, keepdims=False)


def mean(x: Tensor, axis: Any, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """A new tile with means along the last axes, computed in FP32."""
    total = _reduce("nl.mean", "add", x, axis, "float32", keepdims)
    count = math.prod(x.shape[item] for item in _axes("nl.mean", x, axis))
    made = tile_like(total, dtype or x.dtype)
    nisa.tensor_scalar(dst=made, data=total, op0=OPERATORS["multiply"], operand0=1.0 / count)
    return made


def var(x: Tensor, axis: Any, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """A new tile with variances along the last axes, which stay as size 1 as in NKI."""
    _axes("nl.var", x, axis)
    off = _minus(x, mean(x, axis, "float32", keepdims=True))
    squares = tile_like(off)
    nisa.tensor_tensor(dst=squares, data1=off, data2=off, op=OPERATORS["multiply"])
    return mean(squares, axis, dtype or x.dtype, keepdims=True)


def _spread(column: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A view in which the reduced axes, of size 1, are repeated."""
    for dimension in range(1, len(shape)):
        if column.shape[dimension] != shape[dimension]:
            column = column.broadcast(dimension, shape[dimension])
    return column


def _minus(x: Tensor, column: Tensor) -> Tensor:
    made = tile_like(x, "float32")
    nisa.tensor_tensor(dst=made, data1=x, data2=_spread(column, x.shape), op=OPERATORS["subtract"])
    return made


def softmax(x: Tensor, axis: Any = -1, dtype: Any = None) -> Tensor:
    """A new tile with exp(x - max) / sum of it along the last axes."""
    axes = _axes("nl.softmax", x, axis)
    made = tile_like(x, dtype)
    if axes[0] > 1:
        shifted = _minus(x, max(x, axis, "float32", keepdims=True))
        nisa.activation(dst=shifted, op=OPERATORS["exp"], data=shifted)
        total = sum(shifted, axis, keepdims=True)
        nisa.reciprocal(dst=total, data=total)
        over = _spread(total, x.shape)
        nisa.tensor_tensor(dst=made, data1=shifted, data2=over, op=OPERATORS["multiply"])
        return made
    below = _reduce("nl.softmax", "maximum", x, axis, "float32", False, negate=True)
    powers, total = tile_like(x, "float32"), tile_like(below)
    nisa.activation(
        dst=powers, op=OPERATORS["exp"], data=x, bias=below, reduce_op=OPERATORS["add"],
        reduce_res=total, reduce_cmd=reduce_cmd.reset_reduce,
    )  # fmt: skip
    nisa.reciprocal(dst=total, data=total)
    nisa.tensor_scalar(dst=made, data=powers, op0=OPERATORS["multiply"], operand0=total)
    return made


def rms_norm(
    x: Tensor, w: Tensor, axis: Any, n: int, epsilon: float = 1e-06, dtype: Any = None,
    compute_dtype: Any = None,
) -> Tensor:  # fmt: skip
    """A new tile with x / sqrt(sum(x * x) / n + epsilon) * w along the last axes.

    w: a tile of the shape of x, or one row for all partitions.
    """
    axes = _axes("nl.rms_norm", x, axis)
    if axes[0] > 1:
        raise refuse(
            f"nl.rms_norm: axis {axis} of a tile {x.shape}.",
            "here the norm takes all free axes of a row.",
            "reshape so that each row is one partition.",
        )
    squares, total = tile_like(x, compute_dtype or "float32"), ndarray((x.shape[0], 1), "float32")
    nisa.tensor_tensor(dst=squares, data1=x, data2=x, op=OPERATORS["multiply"])
    nisa.tensor_reduce(dst=total, op=OPERATORS["add"], data=squares, axis=axes)
    nisa.tensor_scalar(
        dst=total, data=total, op0=OPERATORS["multiply"], operand0=1.0 / n, op1=OPERATORS["add"],
        operand1=epsilon,
    )  # fmt: skip
    nisa.activation(dst=total, op=OPERATORS["rsqrt"], data=total)
    made = tile_like(x, dtype)
    nisa.scalar_tensor_tensor(
        dst=made, data=x, op0=OPERATORS["multiply"], operand0=total, op1=OPERATORS["multiply"],
        operand1=cast(broadcast_to(w, x.shape), None),
    )  # fmt: skip
    return made
