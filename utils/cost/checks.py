"""Checks that the inputs of this room share: what a number is, and what is said of a wrong kind."""

import math
from typing import Any, TypeGuard


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a finite number of Python; neither a text nor True, which counts as 1.

    >>> is_number(2), is_number(True), is_number("2"), is_number(float("nan"))
    (True, False, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value)


def check_kind(name: str, value: object, kind: Any, allowed: str) -> None:
    """Raise TypeError, with what is allowed, unless the value is of that type or union.

    >>> check_kind("audit", "src/", int | None, "a report, or None")
    Traceback (most recent call last):
    TypeError: audit: str is not allowed; allowed: a report, or None
    """
    if not isinstance(value, kind):
        raise TypeError(f"{name}: {type(value).__name__} is not allowed; allowed: {allowed}")
