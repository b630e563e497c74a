"""Parts of plain data for which nobody vouches: each is what it should be, or `BadProgram`."""

from typing import Any

MOST = 400_000
"""Most instructions, allocations or views of a program, each."""
LARGEST = 2**40
"""Largest number in a shape, a stride or an offset."""
TEXT = 200


class BadProgram(ValueError):
    """Plain data that is no program, or a program that cannot be plain data."""


def record(value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise BadProgram(f"a record is a {type(value).__name__}, not a dict")
    return value


def items(value: Any, most: int = MOST, what: str = "a list") -> list[Any]:
    if type(value) is not list or len(value) > most:
        raise BadProgram(f"{what} is {type(value).__name__} or longer than {most}")
    return value


def integer(value: Any, low: int = 0, high: int = LARGEST) -> int:
    """An int from low to high; true and false are none.

    >>> integer(3, high=7)
    3
    """
    if type(value) is not int or not low <= value <= high:
        raise BadProgram(f"{str(value)[:40]!r} is no integer from {low} to {high}")
    return value


def text(value: Any) -> str:
    if type(value) is not str or len(value) > TEXT:
        raise BadProgram(f"{str(value)[:40]!r} is no short text")
    return value
