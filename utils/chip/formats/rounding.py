"""Rounding to a format: in units of the gap at each value, exactly, and once."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from utils.chip.formats.layout import Format

MODES = ("nearest", "stochastic", "toward-zero")

# Fields of float64, in which every step here is exact: scaling by a power of two, whole numbers.
_MANTISSA_BITS, _BIAS, _EXPONENT = 52, 1023, 0x7FF


def widened(x: Any) -> tuple[np.ndarray, type]:
    """x as float64 without a change of value, and the type that its rounded values are given in."""
    array = np.asarray(x)
    if not np.can_cast(array.dtype, np.float64, "same_kind") or array.dtype.itemsize > 8:
        raise TypeError(f"cannot round {array.dtype}: give real numbers of up to 64 bits")
    wide = array.astype(np.float64, copy=False)
    if array.dtype.kind in "iu" and np.any(np.abs(wide) >= 2.0**53):
        raise ValueError("integers of 2**53 and more would be rounded twice, first to float64")
    narrow = np.float32 if np.can_cast(array.dtype, np.float32, "safe") else np.float64
    return wide, narrow


def quantum(wide: np.ndarray, fmt: "Format") -> np.ndarray:
    """The gap between the format's values around each of wide (float64), were its range endless."""
    exponent = (wide.view(np.int64) >> _MANTISSA_BITS) & _EXPONENT
    lowest = np.maximum(exponent, fmt.min_exponent + _BIAS) - fmt.mantissa_bits
    return (lowest << _MANTISSA_BITS).view(np.float64)


def rounded(
    wide: np.ndarray,
    fmt: "Format",
    mode: str = "nearest",
    saturate: bool = False,
    rng: np.random.Generator | None = None,
) -> np.ndarray:
    """wide (float64) rounded to the format, float64: what round_to does."""
    gap = quantum(wide, fmt)
    with np.errstate(over="ignore", invalid="ignore"):
        steps = wide / gap
        if mode == "nearest":
            steps = np.rint(steps)
        elif mode == "toward-zero":
            steps = np.trunc(steps)
        elif mode == "stochastic":
            if rng is None:
                raise ValueError('mode="stochastic" needs rng=numpy.random.default_rng(seed)')
            below = np.floor(steps)
            steps = below + (rng.random(steps.shape) < steps - below)
        else:
            raise ValueError(f"mode is one of {', '.join(MODES)}, found {mode!r}")
        values = np.copysign(steps * gap, wide)
    if not fmt.signed:
        values = np.where(wide > 0, np.maximum(values, fmt.min_subnormal), np.nan)
    return _in_range(wide, values, fmt, mode, saturate)


def _in_range(
    wide: np.ndarray, values: np.ndarray, fmt: "Format", mode: str, saturate: bool
) -> np.ndarray:
    """The rounded values, with what the format says in place of those beyond its maximum."""
    if fmt.specials == "none" and np.isnan(values).any():
        raise ValueError(f"{fmt.name} has no NaN: all its codes are numbers")
    beyond = np.abs(values) > fmt.max
    if not beyond.any():
        return values
    instead = fmt.max if saturate or fmt.overflow is None else fmt.overflow
    if mode == "toward-zero":  # cutting off a finite value never leads to infinity
        instead = np.where(np.isfinite(wide), fmt.max, instead)
    return np.where(beyond, np.copysign(instead, values), values)
