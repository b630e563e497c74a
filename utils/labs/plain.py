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
    # Another thread may be importing torch now.
    tensor: Any = getattr(sys.modules.get("torch"), "Tensor", ())
    if isinstance(value, tensor):
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


def to_list(value: Any, most: int) -> Any:
    """A NumPy array of at most so many items as a list or a number, because it says the same;
    anything else as it is.
    """
    numpy = sys.modules.get("numpy")
    if type(value) is getattr(numpy, "ndarray", None) and value.size <= most:
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


def maybe(value: Any, most: int = 1) -> float | str | None:
    """A number, None, or what else it is; most: items of an array that are looked at."""
    return None if value is None else number(to_list(value, most))


def pair(value: Any) -> list[float | str] | str:
    """A pair of numbers, each as `number` has it; anything else as its description.

    >>> pair((1, 2.5)), pair([1])
    ([1, 2.5], 'a list of 1')
    """
    is_pair = isinstance(value, list | tuple) and len(value) == 2
    return [number(item) for item in value] if is_pair else describe(value)


def entries(value: Any, *names: str) -> dict[str, Any] | str:
    """The named entries of a dict; otherwise what was returned, and which entry is missing.

    >>> entries({"at": 1, "to": 2}, "at"), entries({"at": 1}, "to"), entries(3, "at")
    ({'at': 1}, "a dict of 1 without 'to'", 'an int')
    """
    if not isinstance(value, dict):
        return describe(value)
    missing = [name for name in names if name not in value]
    return f"{describe(value)} without {missing[0]!r}" if missing else {n: value[n] for n in names}


def maybe_entries(value: Any, *names: str, most: int = 1) -> dict[str, Any] | str:
    """The named entries of a dict, each a number, None or what else it is; otherwise as `entries`.

    >>> maybe_entries({"at": 1, "to": None}, "at", "to"), maybe_entries({}, "at")
    ({'at': 1, 'to': None}, "a dict of 0 without 'at'")
    """
    given = entries(value, *names)
    return given if isinstance(given, str) else {n: maybe(given[n], most) for n in names}


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
