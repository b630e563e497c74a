"""Entries of WRONG, as most labs write them: the right answer with a change, or another one."""

from collections.abc import Callable
from functools import partial

from tests.labs.cells import changed
from utils.labs import observer

Entry = tuple[str, str, str, str]
"""Exercise id, what is wrong, source of the answer cell, text that the card must contain."""


def of(lab: str, right: dict[str, str]) -> tuple[Callable[..., Entry], Callable[..., Entry]]:
    """What makes an entry by a change, and what makes one by a body, for one lab."""
    return partial(_change, lab, right), partial(_write, lab)


def _change(
    lab: str,
    right: dict[str, str],
    exercise: str,
    name: str,
    said: str,
    *changes: tuple[str, str],
) -> Entry:
    """The right answer with some changes."""
    return f"{lab}.{exercise}", name, changed(right[exercise], *changes), said


def _write(lab: str, exercise: str, name: str, said: str, body: str) -> Entry:
    """An answer that takes whatever it is given, as `it`."""
    exercise_id = f"{lab}.{exercise}"
    return exercise_id, name, f"def {observer(exercise_id).answer}(*it):\n    {body}", said
