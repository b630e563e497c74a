"""What the loaders of this package are given must be: whole numbers, and seconds."""

import math
from numbers import Integral, Real


def whole(name: str, number: object, least: int) -> None:
    """
    >>> whole("workers", 2, least=0)

    Raises:
        ValueError: number is no whole number from `least` on.
    """
    if isinstance(number, bool) or not isinstance(number, Integral) or number < least:
        raise ValueError(f"{name} is {number!r}, and must be a whole number from {least} on")


def seconds(name: str, number: object) -> float:
    """The number as a float.

    >>> seconds("load_s", 1)
    1.0

    Raises:
        ValueError: it is no finite number of 0 or more.
    """
    if isinstance(number, bool) or not isinstance(number, Real) or not 0 <= number < math.inf:
        raise ValueError(f"{name} is {number!r}, and must be seconds, 0 or more")
    return float(number)
