"""When two results are equal: tolerances that follow from the data type and the size.

A number of a type with unit roundoff u is off by up to u of its size; a sum of n terms in FP32, as
PSUM makes it, drifts like a random walk, by about u32 sqrt(n / 2) of its own size (Higham and Mary,
"A new approach to probabilistic rounding error analysis", SIAM J. Sci. Comput. 41(5), 2019). Of N
elements with such errors the largest is about sqrt(2 ln N) of them. Tiles between are rounded too,
and sums cancel: so what counts is the larger of an element and of the root mean square of all.
"""

import math
from typing import Any

import ml_dtypes
import numpy as np

from utils.nki.simulator.dtypes import DType, dtype_of

SPARE = 2.0
"""For what is rounded on the way: tiles between, inputs, functions."""


def tolerance(dtype: Any, size: int, terms: int = 1) -> float:
    """The largest error to expect among `size` elements, relative to their size; 0 for integers.

    >>> tolerance("int32", 100), round(tolerance("bfloat16", 1), 4)
    (0.0, 0.0092)
    """
    kind = dtype_of(dtype)
    if kind.kind != "float":
        return 0.0
    single = float(np.finfo(np.float32).eps) / 2
    unit = math.hypot(_roundoff(kind), single * math.sqrt(terms / 2))
    return SPARE * unit * math.sqrt(2 * math.log(max(size, 2)))


def _roundoff(dtype: DType) -> float:
    if dtype == "tfloat32":
        return 2.0**-11
    return float(ml_dtypes.finfo(dtype.numpy).eps) / 2


def differences(actual: Any, expected: Any, dtype: Any = None, terms: int | None = None) -> str:
    """What is wrong with a result, in words; "" if it is as close as its type allows.

    actual, expected: arrays of one shape; nothing is broadcast. dtype: of the result, by default
    that of `actual`. terms: how many products or numbers each element sums, by default as many as
    a row has elements.
    """
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape:
        return f"shape {actual.shape}, expected {expected.shape}"
    kind = actual.dtype if dtype is None else dtype
    row = expected.shape[-1] if expected.ndim else 1
    relative = tolerance(kind, expected.size, row if terms is None else terms)
    real, right = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(right)
    scale = math.sqrt(np.mean(np.square(right[finite]))) if finite.any() else 0.0
    allowed = relative * np.maximum(np.abs(right), scale)
    with np.errstate(invalid="ignore"):
        same = (real == right) | (np.isnan(real) & np.isnan(right))
        wrong = ~(same | (np.isfinite(real) & finite & (np.abs(real - right) <= allowed)))
    if not wrong.any():
        return ""
    with np.errstate(invalid="ignore"):
        off = np.where(wrong, np.nan_to_num(np.abs(real - right), nan=np.inf), -1.0)
    worst = tuple(map(int, np.unravel_index(int(np.argmax(off)), off.shape)))
    return (
        f"{int(wrong.sum()):,} of {wrong.size:,} elements are off; the worst at {list(worst)}: "
        f"{real[worst]:.6g}, expected {right[worst]:.6g}, allowed is {allowed[worst]:.2g} either "
        f"way (relative {relative:.2g}, from {dtype_of(kind)} and {expected.size:,} elements)"
    )


def nki_close(actual: Any, expected: Any, dtype: Any = None, terms: int | None = None) -> None:
    """Asserts that two arrays are equal up to what their type allows; see `differences`."""
    __tracebackhide__ = True
    problem = differences(actual, expected, dtype, terms)
    if problem:
        raise AssertionError(problem)
