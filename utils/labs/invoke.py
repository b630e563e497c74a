"""Calls of an answer to which a few formulas are enough: on copies of its inputs, without the
course's own models, and not for ever.
"""

import copy
from typing import Any

from utils.labs import Answer, limit
from utils.labs.forbidden import forbid

SECONDS = 4.0
"""A thousand times what these formulas take, with what an answer may import."""

ENDLESS = "the check stopped the answer after some seconds: a right answer takes much less time"


def responses(
    exercise_id: str, answer: Answer, calls: list[tuple[Any, ...]], shut: tuple[str, ...]
) -> list[Any]:
    """What an answer returns at each call, with the modules of `shut` closed to it.

    Each call gets copies, so that an answer that changes its inputs spoils nothing but its own.

    Raises: RuntimeError if all calls together take for ever.
    """
    copies = [copy.deepcopy(inputs) for inputs in calls]
    with forbid(exercise_id, *shut):
        response, stopped = limit.within(lambda: [answer(*inputs) for inputs in copies], SECONDS)
    if stopped:
        raise RuntimeError(ENDLESS)
    return response
