"""One number format: its codes, the values behind them, and the gaps between the values."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from utils.chip.formats.rounding import quantum, rounded, widened

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
        return self.specials != "scale"

    @property
    def bits(self) -> int:
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
        wide, _ = widened(x)
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
        wide, _ = widened(x)
        values = rounded(wide, self, saturate=saturate)
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
