"""What counts as a number in the inputs of this room: one rule for all of its checks."""

import math
from typing import TypeGuard


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a finite number of Python; neither a text nor True, which counts as 1.

    >>> is_number(2), is_number(True), is_number("2"), is_number(float("nan"))
    (True, False, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value)
