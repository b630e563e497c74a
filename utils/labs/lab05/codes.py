"""The code of a number in any small IEEE-like format: for the judge of exercise 1 of lab 05."""

import math
from bisect import bisect_right
from fractions import Fraction


def value_of(magnitude: int, exponent_bits: int, mantissa_bits: int) -> Fraction:
    """The value of a code without sign; of infinity, what would come next without it.

    >>> [float(value_of(code, 4, 3)) for code in (1, 8, 56, 119, 120)]
    [0.001953125, 0.015625, 1.0, 240.0, 256.0]
    """
    exponent, mantissa = divmod(magnitude, 2**mantissa_bits)
    steps = mantissa + (2**mantissa_bits if exponent else 0)
    bias = 2 ** (exponent_bits - 1) - 1
    return steps * Fraction(2) ** (max(exponent, 1) - bias - mantissa_bits)


def code_of(x: float, exponent_bits: int, mantissa_bits: int) -> int:
    """The code nearest to x, ties to the even code, infinity beyond the largest.

    >>> [hex(code_of(x, 4, 3)) for x in (1.0, 1.0625, 1.1875, -1e-9, 500.0)]
    ['0x38', '0x38', '0x3a', '0x80', '0x78']
    """
    infinity = (2**exponent_bits - 1) << mantissa_bits
    size = Fraction(abs(x))
    above = bisect_right(
        range(infinity + 1), size, key=lambda code: value_of(code, exponent_bits, mantissa_bits)
    )
    low, high = above - 1, min(above, infinity)
    to_low = size - value_of(low, exponent_bits, mantissa_bits)
    to_high = value_of(high, exponent_bits, mantissa_bits) - size
    up = to_high < to_low or (to_high == to_low and high % 2 == 0)
    return (math.copysign(1, x) < 0) << (exponent_bits + mantissa_bits) | (high if up else low)
