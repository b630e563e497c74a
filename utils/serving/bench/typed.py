"""Frozen dataclasses as plain JSON and back, each value held to the type that its field declares.

Nothing is converted in silence: a text where a number belongs, a field too many or too few is an
error that says where. Numbers that JSON does not have are written as "inf", "-inf" and "nan".
"""

import dataclasses
import math
import types
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

Made = TypeVar("Made")
_NO_NUMBERS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


class Malformed(ValueError):
    """A value does not have the declared type. The message says where, what, and what belongs."""


def to_plain(value: Any) -> Any:
    """Dataclasses and tuples as the objects and lists of JSON.

    >>> to_plain((1.5, float("inf"), {"a": None}))
    [1.5, 'inf', {'a': None}]
    """
    if dataclasses.is_dataclass(value):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [to_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: to_plain(each) for name, each in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def from_plain(kind: type[Made], value: Any, path: str = "record") -> Made:
    """What `to_plain` made, as `kind`: a dataclass of dataclasses, tuples, dicts and plain values.

    Raises: Malformed.

    >>> from_plain(tuple[int, ...], [1, "2"])
    Traceback (most recent call last):
    utils.serving.bench.typed.Malformed: record[1] is '2', but a whole number belongs there
    """
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _either(inside, value, path)
    if kind is types.NoneType:
        _sure(value is None, value, "null", path)
        return None
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, value, path)
    if origin is tuple:
        _sure(isinstance(value, list), value, "a list", path)
        return tuple(from_plain(inside[0], v, f"{path}[{i}]") for i, v in enumerate(value))
    if origin is dict:
        _sure(isinstance(value, dict), value, "an object", path)
        return {name: from_plain(inside[1], v, f"{path}.{name}") for name, v in value.items()}
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if kind is float and isinstance(value, str):
        _sure(value in _NO_NUMBERS, value, _WORDS[float], path)
        return _NO_NUMBERS[value]
    _sure(type(value) is kind, value, _WORDS[kind], path)
    return value


def _either(kinds: tuple[type, ...], value: Any, path: str) -> Any:
    """The first kind that fits; the error is that of the last one that is not None."""
    # A dict that may hold 1 and 1.0 keeps each as it is: the exact type is tried first.
    error = None
    for kind in sorted(kinds, key=lambda each: each is not type(value)):
        try:
            return from_plain(kind, value, path)
        except Malformed as found:
            error = error if kind is types.NoneType and error else found
    raise error


def _dataclass(kind: type[Made], value: Any, path: str) -> Made:
    _sure(isinstance(value, dict), value, "an object", path)
    hints = get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]
    if missing := [name for name in names if name not in value]:
        raise Malformed(f"{path} has no {missing[0]!r}; it needs {', '.join(names)}")
    if strange := [name for name in value if name not in names]:
        raise Malformed(f"{path} has a {strange[0]!r}, which is unknown; known: {', '.join(names)}")
    parts = {name: from_plain(hints[name], value[name], f"{path}.{name}") for name in names}
    try:
        return kind(**parts)
    except ValueError as error:
        raise Malformed(f"{path}: {error}") from None


def _sure(good: bool, value: Any, wanted: str, path: str) -> None:
    if not good:
        shown = repr(value) if len(repr(value)) <= 40 else f"{repr(value)[:37]}..."
        raise Malformed(f"{path} is {shown}, but {wanted} belongs there")
