"""Sums with rounded partial sums: what the format of an accumulator and the order cost.

As the engines of a NeuronCore compute: an addition is done in FP32, and its result is rounded once
when it is written in the accumulator's format.
"""

import math
from collections.abc import Callable

import numpy as np

from utils.chip.formats import Format, format_of, round_to

ORDERS = ("forward", "backward", "pairwise")


def sum_in(values: np.ndarray, fmt: str | Format, order: str = "forward") -> np.ndarray:
    """The sum over the last axis with every partial sum written in fmt; values (..., n) -> (...).

    order: "forward" (one after the other onto zero), "backward" (the same from the last one),
    "pairwise" (neighbours first, then neighbours of the sums). The values are read as FP32:
    round_to them first if they are to be stored in fmt too.

    >>> float(sum_in(np.full(1000, 1.0), "bf16"))
    256.0
    """
    values = np.asarray(values, np.float32)
    if values.ndim == 0 or values.shape[-1] == 0:
        raise ValueError(f"a sum needs at least one value, found shape {values.shape}")
    form = format_of(fmt)

    def written(sums: np.ndarray) -> np.ndarray:
        return sums if form.name == "fp32" else round_to(sums, form)

    if order == "pairwise":
        return written(_pairwise(values, written))
    if order not in ORDERS:
        raise ValueError(f"order is one of {', '.join(ORDERS)}, found {order!r}")
    step = 1 if order == "forward" else -1
    first, *others = np.moveaxis(values, -1, 0)[::step]
    total = written(first)
    for value in others:
        total = written(total + value)
    return total


def _pairwise(values: np.ndarray, written: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    while (n := values.shape[-1]) > 1:
        sums = written(values[..., 0 : n - 1 : 2] + values[..., 1::2])
        values = np.concatenate([sums, values[..., n - 1 :]], axis=-1) if n % 2 else sums
    return values[..., 0]


def dot(
    a: np.ndarray,
    b: np.ndarray,
    partial: str | Format = "fp32",
    tile: int = 128,
    order: str = "forward",
) -> np.ndarray:
    """The product over the last axis of a and b (..., K), which broadcast; result (...), float32.

    For matrices (M, K) and (K, N): dot(a[:, None], b.T), which holds all M x N x K products.

    K is cut into pieces of `tile`, one pass of the Tensor Engine each. Within a piece everything is
    FP32; the sums of the pieces are added in that order, every partial sum written in `partial`.
    With tile=1 every single product is added to an accumulator in that format.
    """
    if tile < 1:
        raise ValueError(f"a piece has at least one product, found tile={tile}")
    a, b = _of_equal_length(a, b)
    products = a * b
    pieces = range(0, products.shape[-1], tile)
    sums = [sum_in(products[..., k : k + tile], "fp32") for k in pieces]
    return sum_in(np.stack(sums, axis=-1), partial, order)


def exact_dot(a: np.ndarray, b: np.ndarray) -> float:
    """The product of two FP32 vectors, rounded once at the end: the reference.

    A product of two FP32 numbers is exact in float64, and math.fsum adds without loss.
    """
    a, b = _of_equal_length(a, b)
    return math.fsum(a.astype(np.float64) * b.astype(np.float64))


def _of_equal_length(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both in FP32; numpy alone would repeat an axis of length 1."""
    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    if not a.ndim or not b.ndim or a.shape[-1] != b.shape[-1] or not a.shape[-1]:
        raise ValueError(
            "a product needs last axes of the same length, 1 or more, found shapes"
            f" {a.shape} and {b.shape}"
        )
    return a, b
