"""Numbers of an answer against the right ones, and wrong ways recognised by theirs."""

import math
from collections.abc import Sequence

from utils.labs import Criterion
from utils.labs.criteria import all_right, row

TOLERANCE = 1e-3
"""How far a number may lie from the right one, relative to it, where a judge gives no other limit.

These are formulas with a few operations: a right answer in float64 is off by 1e-15, one that rounds
along the way to four digits by less than this. Every recorded wrong answer lies farther away for
some value of a check.
"""

Number = float | str | None
"""What was returned for one value: a number, or what it is instead."""

Ways = Sequence[tuple[str, float]]
"""What wrong ways give for one value: the message to each, and the number. The most telling first:
of two that explain as much, it is named.
"""


def near(text: Number, right: float | None, tolerance: float = TOLERANCE) -> bool:
    """
    >>> near(1.0005, 1.0), near(1.1, 1.0), near("nan", 1.0), near(None, None)
    (True, False, False, True)
    """
    if text is None or right is None:
        return text is right
    if isinstance(text, str):
        return False
    return abs(text - right) <= tolerance * abs(right)


def recognise(
    output: Sequence[Number],
    right: Sequence[float | None],
    ways: Sequence[Ways],
    tolerance: float = TOLERANCE,
) -> tuple[int, str]:
    """The wrong way that gives most of the numbers, a wrong one among them: the first wrong number
    that it gives, and its message; "" if no way gives any.
    """
    wrong = [p for p, entry in enumerate(right) if not near(output[p], entry, tolerance)]
    results: dict[str, list[int]] = {}
    for place in range(len(right)):
        texts = {
            text: None for text, number in ways[place] if near(output[place], number, tolerance)
        }
        for text in texts:
            results.setdefault(text, []).append(place)
    first = {text: min(set(places) & set(wrong), default=-1) for text, places in results.items()}
    telling = [text for text, place in first.items() if place >= 0]
    if not telling:
        return wrong[0], ""
    text = max(telling, key=lambda entry: len(results[entry]))
    return first[text], text


def are_rounded(pairs: Sequence[tuple[Number, Number]]) -> bool:
    """Whether all numbers are the right ones, rounded or cut to the same few digits.

    >>> are_rounded([(0.13, 0.1278), (230, 230.4)]), are_rounded([(0, 0.1278), (230, 230.4)])
    (False, True)
    """
    numbers = [
        (response, right)
        for response, right in pairs
        if isinstance(response, int | float) and isinstance(right, int | float)
    ]
    if len(numbers) < len(pairs) or not any(response for response, _ in numbers):
        return False
    return any(
        all(
            response in (round(right, digits), math.trunc(right * 10**digits) / 10**digits)
            for response, right in numbers
        )
        for digits in range(10)
    )


def right_or_none(
    name: str,
    weight: int,
    output: Sequence[Number],
    right: Sequence[float | None],
    labels: Sequence[str],
    ways: Sequence[Ways],
    advice: str,
    tolerance: float,
    texts: tuple[str, str],
) -> Criterion:
    """As `right_values`, where None is right for some; texts: what is wrong with None where there
    is a number, and with a number where there is None.
    """
    odd = [p for p, item in enumerate(right) if (output[p] is None) != (item is None)]
    if not odd:
        return right_values(name, weight, output, right, labels, ways, advice, tolerance)
    off = [p for p, item in enumerate(right) if not near(output[p], item, tolerance)]
    off = [odd[0], *(place for place in off if place != odd[0])]
    rows = [row(labels[p], output[p], right[p]) for p in off]
    text = texts[output[odd[0]] is not None]
    return all_right(name, weight, off, len(right), text, rows=rows, response=output)


def right_values(
    name: str,
    weight: int,
    text: Sequence[Number],
    right: Sequence[float | None],
    labels: Sequence[str],
    ways: Sequence[Ways],
    advice: str,
    tolerance: float = TOLERANCE,
) -> Criterion:
    """Whether every number is right.

    response, right, labels: one per value, in the same order; a label says which value it is.
    ways: for each value what wrong ways give for it. advice: the message otherwise. tolerance: how
    far a number may lie from the right one, relative to it.
    """
    off = [p for p, item in enumerate(right) if not near(text[p], item, tolerance)]
    target = (
        f"all, to {tolerance:.1%}"
        if tolerance >= 1e-3
        else f"all, to 1 in 10^{-math.log10(tolerance):.0f}"
    )
    message = ""
    if strange := [place for place in off if isinstance(text[place], str)]:
        place, message = strange[0], f"found {text[strange[0]]}, return a number"
    elif off:
        place, message = recognise(text, right, ways, tolerance)
        if are_rounded([(text[item], right[item]) for item in off]):
            place, message = off[0], "this is rounded too far: return the number without rounding"
    if off:
        off = [place, *(item for item in off if item != place)]
    rows = [row(labels[p], text[p], right[p]) for p in off]
    return all_right(name, weight, off, len(right), message or advice, target, rows, text)
