"""Number formats of 4 to 32 bits: what they hold, their spacing, and rounding to them.

Everything about a format is computed from four things: exponent bits, mantissa bits, bias, and what
the highest codes mean. NumPy only; held bit for bit to ml_dtypes by tests.

    from utils.chip.formats import FORMATS, round_to
    FORMATS["bf16"].spacing(1.0)
    round_to(x, "e4m3", saturate=True)
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

__all__ = ["FORMATS", "MODES", "Format", "format_of", "round_to", "widen"]

MODES = ("nearest", "stochastic", "toward-zero")

# Fields of float64, in which every step here is exact: scaling by a power of two, whole numbers.
_MANTISSA_BITS, _BIAS, _EXPONENT = 52, 1023, 0x7FF

Specials = Literal["ieee", "fn", "none", "scale"]


@dataclass(frozen=True)
class Format:
    """Sign, exponent and mantissa, from the highest bit down: the value of a code is

        (-1)^sign x 2^(exponent - bias) x 1.mantissa          exponent > 0
        (-1)^sign x 2^(1 - bias)        x 0.mantissa          exponent = 0: subnormal

    specials says what the codes with the highest exponent are: "ieee" infinities and NaN; "fn"
    numbers, but for NaN where all bits are ones; "none" numbers. "scale" is the power of two of a
    Microscaling block: no sign, no mantissa, no subnormals, NaN where all bits are ones.
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    bias: int
    specials: Specials = "ieee"

    def __post_init__(self) -> None:
        if self.specials not in get_args(Specials):
            raise ValueError(f"specials is one of {get_args(Specials)}, found {self.specials!r}")
        if self.specials == "scale":
            possible = (self.exponent_bits, self.mantissa_bits) == (8, 0)
        else:
            possible = self.exponent_bits >= 2 and self.mantissa_bits >= 1
        if not possible:
            raise ValueError(
                "a format has 2 exponent bits and 1 mantissa bit or more, a scale 8 exponent bits"
                f" and nothing else; found {self.exponent_bits} and {self.mantissa_bits}"
            )
        lowest = self.min_exponent - self.mantissa_bits
        if self.mantissa_bits > 23 or lowest < -149 or self.max_exponent > 127:
            raise ValueError(f"{self.name} has values that FP32 has not: formats here fit into it")

    @property
    def signed(self) -> bool:
        """Whether it has a sign bit: all but scales."""
        return self.specials != "scale"

    @property
    def bits(self) -> int:
        """Of one value, with its sign."""
        return int(self.signed) + self.exponent_bits + self.mantissa_bits

    @property
    def min_exponent(self) -> int:
        """The exponent of the smallest normal number: 2**min_exponent."""
        return (1 if self.signed else 0) - self.bias

    @property
    def max_exponent(self) -> int:
        """The exponent of the largest number, the emax of OCP Microscaling."""
        return (1 << self.exponent_bits) - 1 - self.bias - (self.specials in ("ieee", "scale"))

    @property
    def max(self) -> float:
        """The largest finite value."""
        ones = (1 << self.mantissa_bits) - 1 - (self.specials == "fn")
        return 2.0**self.max_exponent * (1 + ones * self.epsilon)

    @property
    def min_normal(self) -> float:
        """The smallest value with the full number of mantissa bits."""
        return 2.0**self.min_exponent

    @property
    def min_subnormal(self) -> float:
        """The smallest value above zero."""
        return 2.0 ** (self.min_exponent - self.mantissa_bits)

    @property
    def epsilon(self) -> float:
        """The gap between 1 and the next value: 2**-mantissa_bits."""
        return 2.0**-self.mantissa_bits

    @property
    def overflow(self) -> float | None:
        """What a value beyond the range becomes; None: the format has neither infinity nor NaN."""
        return {"ieee": np.inf, "fn": np.nan, "scale": np.nan, "none": None}[self.specials]

    def spacing(self, x: Any) -> np.ndarray:
        """The gap from |x| to the next value above, shape as x; NaN beyond the range.

        >>> Format("bf16", 8, 7, 127).spacing([1.0, 256.0]).tolist()
        [0.0078125, 2.0]
        """
        wide, _ = widen(x)
        inside = np.abs(wide) <= self.max
        return np.where(inside, quantum(wide, self), np.nan)[()]

    def values(self) -> np.ndarray:
        """All finite values in order, zero once, float64: for formats of at most 16 bits."""
        if self.bits > 16:
            raise ValueError(f"{self.name} has 2**{self.bits} codes; values() lists up to 16 bits")
        every = self.decode(np.arange(1 << self.bits))
        return np.unique(every[np.isfinite(every)])

    def decode(self, codes: Any) -> np.ndarray:
        """The values of codes (integers from 0 to 2**bits - 1), float64, shape as codes."""
        codes = np.asarray(codes)
        if codes.dtype.kind not in "iu" or np.any((codes < 0) | (codes >= 1 << self.bits)):
            raise ValueError(
                f"codes of {self.name} are integers from 0 to {(1 << self.bits) - 1}"
                f" ({self.bits} bits), found {codes}"
            )
        codes = codes.astype(np.int64)
        mantissa = codes & ((1 << self.mantissa_bits) - 1)
        exponent = (codes >> self.mantissa_bits) & ((1 << self.exponent_bits) - 1)
        if not self.signed:
            return np.where(codes == 255, np.nan, np.ldexp(1.0, exponent - self.bias))[()]
        hidden = np.where(exponent > 0, 1 << self.mantissa_bits, 0)
        power = np.maximum(exponent, 1) - self.bias - self.mantissa_bits
        values = np.ldexp((hidden + mantissa).astype(np.float64), power)
        highest = exponent == (1 << self.exponent_bits) - 1
        if self.specials == "ieee":
            values = np.where(highest, np.where(mantissa > 0, np.nan, np.inf), values)
        elif self.specials == "fn":
            ones = (1 << self.mantissa_bits) - 1
            values = np.where(highest & (mantissa == ones), np.nan, values)
        sign = codes >> (self.bits - 1)
        return np.where(sign > 0, -values, values)[()]

    def encode(self, x: Any, saturate: bool = False) -> np.ndarray:
        """The codes of x rounded to nearest, unsigned integers, shape as x: see round_to.

        >>> hex(Format("bf16", 8, 7, 127).encode(-1.5))
        '0xbfc0'
        """
        wide, _ = widen(x)
        values = round_wide(wide, self, saturate=saturate)
        size = np.abs(values)
        finite = np.isfinite(size)
        size = np.where(finite, size, 0)
        gap = quantum(size, self)
        # Codes count the values upwards: steps of the gap, and 2**mantissa_bits for each doubling.
        doublings = np.frexp(gap / self.min_subnormal)[1] - 1
        codes = (doublings.astype(np.int64) << self.mantissa_bits) + (size / gap).astype(np.int64)
        if not self.signed:
            return np.where(finite, codes - 1, 255).astype(np.uint8)[()]
        infinity = ((1 << self.exponent_bits) - 1) << self.mantissa_bits
        # NaN: all ones, or the highest mantissa bit alone, as processors write it.
        ones = (1 << self.mantissa_bits) - 1
        nan = infinity | (ones if self.specials == "fn" else ones ^ ones >> 1)
        codes = np.where(finite, codes, np.where(np.isnan(values), nan, infinity))
        codes |= np.signbit(values).astype(np.int64) << (self.bits - 1)
        width = next(width for width in (8, 16, 32) if self.bits <= width)
        return codes.astype(f"uint{width}")[()]


FORMATS = {
    form.name: form
    for form in (
        Format("fp32", exponent_bits=8, mantissa_bits=23, bias=127),
        Format("tf32", exponent_bits=8, mantissa_bits=10, bias=127),
        Format("bf16", exponent_bits=8, mantissa_bits=7, bias=127),
        Format("fp16", exponent_bits=5, mantissa_bits=10, bias=15),
        Format("e5m2", exponent_bits=5, mantissa_bits=2, bias=15),
        # The same layout twice: with infinities as in IEEE 754 (the E4M3 of NeuronCores up to
        # Trainium2), and with their codes given to numbers (OCP 8-bit floating point, E4M3).
        Format("e4m3", exponent_bits=4, mantissa_bits=3, bias=7),
        Format("e4m3fn", exponent_bits=4, mantissa_bits=3, bias=7, specials="fn"),
        Format("e3m4", exponent_bits=3, mantissa_bits=4, bias=3),
        # The elements of OCP Microscaling blocks below 8 bits, and the scale of a block.
        Format("e3m2", exponent_bits=3, mantissa_bits=2, bias=3, specials="none"),
        Format("e2m3", exponent_bits=2, mantissa_bits=3, bias=1, specials="none"),
        Format("e2m1", exponent_bits=2, mantissa_bits=1, bias=1, specials="none"),
        Format("e8m0", exponent_bits=8, mantissa_bits=0, bias=127, specials="scale"),
    )
}


def format_of(fmt: str | Format) -> Format:
    """The format of that name; a Format is returned as it is."""
    form = FORMATS.get(fmt) if isinstance(fmt, str) else fmt
    if not isinstance(form, Format):
        raise ValueError(f"no format {fmt!r}; there are {', '.join(FORMATS)}")
    return form


def round_to(
    x: Any,
    fmt: str | Format,
    mode: str = "nearest",
    saturate: bool = False,
    rng: np.random.Generator | None = None,
) -> np.ndarray:
    """x with every value rounded once to a value of the format; shape as x.

    x: numbers of up to 64 bits. The result is float64 where x is float64 (or Python numbers, or
    integers of more than 16 bits), float32 otherwise; both hold every value of every format.

    mode: "nearest" (a tie goes to the even mantissa), "toward-zero" (cut off), or "stochastic": to
    one of the two neighbours, to each the more often the nearer it is, so that the mean of many
    roundings is x; it draws from rng.

    What is beyond the format's maximum after rounding becomes infinity, or NaN where the format has
    no infinity, or the maximum where it has neither; with saturate=True always the maximum,
    infinities too (the two conversions of the OCP specification of 8-bit floating point).
    NaN stays NaN; a format without NaN raises ValueError. A scale (e8m0) has no sign and no zero:
    these become NaN, and what is too small becomes the smallest scale.

    >>> round_to([1.00390625, 1.01171875], "bf16").tolist()
    [1.0, 1.015625]
    """
    wide, narrow = widen(x)
    return round_wide(wide, format_of(fmt), mode, saturate, rng).astype(narrow, copy=False)[()]


def widen(x: Any) -> tuple[np.ndarray, type]:
    """x as float64 without a change of value, and the type that its rounded values are given in."""
    array = np.asarray(x)
    if not np.can_cast(array.dtype, np.float64, "same_kind") or array.dtype.itemsize > 8:
        raise TypeError(f"cannot round {array.dtype}: give real numbers of up to 64 bits")
    wide = array.astype(np.float64, copy=False)
    if array.dtype.kind in "iu" and np.any(np.abs(wide) >= 2.0**53):
        raise ValueError("integers of 2**53 and more would be rounded twice, first to float64")
    narrow = np.float32 if np.can_cast(array.dtype, np.float32, "safe") else np.float64
    return wide, narrow


def quantum(wide: np.ndarray, fmt: Format) -> np.ndarray:
    """The gap between the format's values around each of wide (float64), were its range endless."""
    exponent = (wide.view(np.int64) >> _MANTISSA_BITS) & _EXPONENT
    lowest = np.maximum(exponent, fmt.min_exponent + _BIAS) - fmt.mantissa_bits
    return (lowest << _MANTISSA_BITS).view(np.float64)


def round_wide(
    wide: np.ndarray,
    fmt: Format,
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
    wide: np.ndarray, values: np.ndarray, fmt: Format, mode: str, saturate: bool
) -> np.ndarray:
    """The rounded values, with what the format says in place of those beyond its maximum."""
    if fmt.specials == "none" and np.isnan(values).any():
        raise ValueError(f"{fmt.name} has no NaN: all its codes are numbers")
    beyond = np.abs(values) > fmt.max
    if not beyond.any():
        return values
    instead: Any = fmt.max if saturate or fmt.overflow is None else fmt.overflow
    if mode == "toward-zero":  # cutting off a finite value never leads to infinity
        instead = np.where(np.isfinite(wide), fmt.max, instead)
    return np.where(beyond, np.copysign(instead, values), values)
