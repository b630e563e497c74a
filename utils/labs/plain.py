"""What an answer returned, as plain JSON values.

Observing an answer must neither fail on a wrong type nor run anything on the device, so a tensor
is named, never read.
"""

import math
import sys
from numbers import Real
from typing import Any

# A longer list is wrong in any exercise of the course, and must not fill the report.
_MOST_ITEMS = 1000


def describe(value: Any) -> str:
    """What a value is, for a message.

    >>> describe([1, 2]), describe(None), describe(0.5), describe("a")
    ('a list of 2', 'None', 'a float', 'a str')
    """
    if value is None:
        return "None"
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return f"a tensor on {value.device}"
    name = type(value).__name__[:40]
    text = f"an {name}" if name[:1] in tuple("aeiouAEIOU") else f"a {name}"
    return f"{text} of {len(value)}" if isinstance(value, list | tuple | dict) else text


def text(value: Any, most: int = 40) -> str:
    """The beginning of a text; of anything else, what it is.

    >>> text("spot"), text(None)
    ('spot', 'None')
    """
    return str.__str__(value)[:most] if isinstance(value, str) else describe(value)


def listed(value: Any, most: int) -> Any:
    """A NumPy array of at most so many items as a list or a number, because it says the same;
    anything else as it is.
    """
    numpy = sys.modules.get("numpy")
    if numpy is not None and type(value) is numpy.ndarray and value.size <= most:
        return value.tolist()
    return value


def number(value: Any) -> float | str:
    """A finite real number as it is; anything else as its description.

    >>> number(2), number(0.5), number(float("nan")), number(True), number("2")
    (2, 0.5, 'nan', 'a bool', 'a str')
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        return describe(value)
    try:
        real = float(value)
    except OverflowError:
        return "inf"
    if not math.isfinite(real):
        return str(real)
    return int(real) if real.is_integer() and abs(real) < 2**53 else real


def numbers(value: Any) -> dict[str, Any]:
    """What was returned in place of a list of numbers.

    Returns {"kind": description, "items": [number or description, ...]}; items is None if it is
    neither a list nor a tuple.

    >>> numbers((1.5, None))
    {'kind': 'a tuple of 2', 'items': [1.5, 'None']}
    >>> numbers(1.5)
    {'kind': 'a float', 'items': None}
    """
    is_list = isinstance(value, list | tuple)
    items = [number(item) for item in value[:_MOST_ITEMS]] if is_list else None
    return {"kind": describe(value), "items": items}
