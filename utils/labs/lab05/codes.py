"""The code of a number in any small IEEE-like format, and what wrong ways make of it: for the judge
of exercise 1 of lab 05.
"""

import math
from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction

from utils.course.misconceptions import says

SAYS = says("lab05")


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
    return _sign(x, exponent_bits, mantissa_bits) | (high if up else low)


def _sign(x: float, exponent_bits: int, mantissa_bits: int) -> int:
    return (math.copysign(1, x) < 0) << (exponent_bits + mantissa_bits)


# Wrong ways that are recognised by their codes


def _lower(x: float, e: int, m: int) -> int:
    """The code of the largest magnitude that is not above |x|."""
    code = code_of(x, e, m)
    magnitude = code & ~_sign(x, e, m)
    return code - (value_of(magnitude, e, m) > abs(x))


def _exact(x: float, e: int, m: int) -> bool:
    return value_of(code_of(x, e, m) & ~_sign(x, e, m), e, m) == abs(x)


def _down(x: float, e: int, m: int) -> int:
    return _lower(x, e, m) + (x < 0 and not _exact(x, e, m))


def _up(x: float, e: int, m: int) -> int:
    return _lower(x, e, m) + (x > 0 and not _exact(x, e, m))


def _middle(low: int, e: int, m: int) -> Fraction:
    """Between the magnitudes of a code and the next."""
    magnitude = low & ~(1 << (e + m))
    return (value_of(magnitude, e, m) + value_of(magnitude + 1, e, m)) / 2


def _away(x: float, e: int, m: int) -> int:
    low = _lower(x, e, m)
    return low + (abs(x) >= _middle(low, e, m))


def _half_to_zero(x: float, e: int, m: int) -> int:
    low = _lower(x, e, m)
    return low + (abs(x) > _middle(low, e, m))


def _without_carry(x: float, e: int, m: int) -> int:
    code, low = code_of(x, e, m), _lower(x, e, m)
    return code if code >> m == low >> m else low >> m << m


def _flushed(x: float, e: int, m: int) -> int:
    small = abs(x) < value_of(2**m, e, m)
    return _sign(x, e, m) if small else code_of(x, e, m)


def _hidden_bit_in_subnormals(x: float, e: int, m: int) -> int:
    """With the exponent 0 for 1.xxx times 2 to the power of -bias."""
    if not x or abs(x) >= value_of(2**m, e, m):
        return code_of(x, e, m)
    _, exponent = math.frexp(abs(x))
    exponent -= 1
    steps = round(math.ldexp(abs(x), m - exponent)) - 2**m
    return _sign(x, e, m) | (max(0, exponent + 2 ** (e - 1) - 1) << m) + steps


def _saturated(x: float, e: int, m: int) -> int:
    largest = ((2**e - 1) << m) - 1
    code = code_of(x, e, m)
    return code - (code & ~_sign(x, e, m) > largest)


def _infinity_at_once(x: float, e: int, m: int) -> int:
    infinity = (2**e - 1) << m
    beyond = abs(x) > value_of(infinity - 1, e, m)
    return _sign(x, e, m) | infinity if beyond else code_of(x, e, m)


def _twice(x: float, e: int, m: int) -> int:
    """Rounded to two bits more first."""
    if not x:
        return code_of(x, e, m)
    _, exponent = math.frexp(abs(x))
    quantum = max(exponent - 1, 2 - 2 ** (e - 1)) - m - 2
    once = math.ldexp(round(math.ldexp(abs(x), -quantum)), quantum)
    return code_of(math.copysign(once, x), e, m)


def _exponent_of_frexp(x: float, e: int, m: int) -> int:
    """With the exponent that belongs to a mantissa from 0.5 to 1."""
    bias = 2 ** (e - 1) - 1
    exponent = max(math.frexp(x)[1], 1 - bias)
    code = ((exponent + bias - 1) << m) + round(math.ldexp(abs(x), m - exponent))
    return _sign(x, e, m) | min(code, (2**e - 1) << m)


def _complement(x: float, e: int, m: int) -> int:
    code = code_of(abs(x), e, m)
    return -code % 2 ** (1 + e + m) if x < 0 else code


def _infinite(x: float, e: int, m: int) -> int:
    return _sign(x, e, m) | (2**e - 1) << m


def _unsigned(x: float, e: int, m: int) -> int:
    return code_of(abs(x), e, m)


def _unsigned_zero(x: float, e: int, m: int) -> int:
    code = code_of(x, e, m)
    return 0 if code == _sign(x, e, m) else code


def _bias_off(by: int) -> Callable[[float, int, int], int]:
    return lambda x, e, m: code_of(x, e, m) + by * 2**m


KNOWN: tuple[tuple[str, Callable[[float, int, int], int]], ...] = (
    (SAYS["sign-forgotten"], _unsigned),
    (SAYS["no-sign-for-a-zero"], _unsigned_zero),
    (SAYS["bias-too-large-by-one"], _bias_off(1)),
    (SAYS["bias-too-large-by-one"], _bias_off(-1)),
    (SAYS["the-bias-of-fp32"], _infinite),
    (SAYS["frexp-taken-for-the-exponent-of-1-xxx"], _exponent_of_frexp),
    (SAYS["twos-complement"], _complement),
    ("the bits that do not fit are cut off: the nearest value is asked for", _lower),
    (SAYS["rounded-down"], _down),
    ("rounded up, towards infinity: the nearest value is asked for", _up),
    (SAYS["ties-away-from-zero"], _away),
    (SAYS["ties-towards-zero"], _half_to_zero),
    (SAYS["carry-lost"], _without_carry),
    (SAYS["no-subnormals"], _flushed),
    (SAYS["a-hidden-one-in-subnormals"], _hidden_bit_in_subnormals),
    (SAYS["saturates"], _saturated),
    (SAYS["infinity-at-once"], _infinity_at_once),
    (SAYS["rounded-twice"], _twice),
)
