"""What the shares of draws that went up say of how they were drawn, for the judge of exercise 2."""

from collections.abc import Callable
from typing import NamedTuple

from utils.course.misconceptions import says

SAYS = says("lab05")


class Share(NamedTuple):
    """Of one value: the share of draws that went to the neighbour of higher magnitude, the
    probability of that, and the step there, negative for a negative value.
    """

    up: float
    p: float
    step: float


_NOT_RANDOM = SAYS["half-up-in-the-mantissa"]
_WIDE = (
    "numbers are moved up too often: the noise may be one step wide in all, and what is added"
    " may not be rounded up again"
)
_AROUND = "the noise is half a step wide around zero: numbers near a neighbour never leave it"
_WAYS: tuple[tuple[Callable[[float], float], str], ...] = (
    (lambda p: 0.0, SAYS["truncation-2"].format(NOT_RANDOM=_NOT_RANDOM)),
    (lambda p: 1.0, f"every draw went away from zero: {_NOT_RANDOM}"),
    (lambda p: (1 + (p > 0.5) - (p < 0.5)) / 2, SAYS["to-nearest"].format(NOT_RANDOM=_NOT_RANDOM)),
    (lambda p: 0.5, SAYS["a-coin"]),
    (lambda p: 1 - p, SAYS["neighbours-exchanged"]),
    (lambda p: max(0.0, 2 * p - 1), SAYS["noise-half-as-wide"]),
    (lambda p: min(1.0, 2 * p), _WIDE),
    (lambda p: min(1.0, max(0.0, 2 * p - 0.5)), _AROUND),
)


def _near(some: float, other: float) -> bool:
    return abs(some - other) < 0.03


def why_biased(shares: list[Share], random_at_all: bool) -> str:
    """What shares that are not those of the probabilities look like.

    random_at_all: whether another seed gave another result.
    """
    same_way = all(share.up in (0.0, 1.0) for share in shares)
    if random_at_all and same_way:
        return SAYS["one-draw-for-all-numbers"]
    if not same_way and all(_near(s.up, min(1.0, s.p * abs(s.step))) for s in shares):
        return SAYS["the-distance-not-in-steps"]
    for rule, text in _WAYS:
        telling = [s for s in shares if s.p != 0.5 or rule(0.5) != 0.5] or shares
        if all(_near(s.up, rule(s.p)) for s in telling):
            return text
    wrong = {s.step > 0 for s in shares if not _near(s.up, s.p)}
    if len(wrong) == 1 and len({s.step > 0 for s in shares}) == 2:
        (positive,) = wrong
        return (
            f"only {'positive' if positive else 'negative'} numbers go wrong: the distance to the"
            " neighbour nearer zero is no negative number, and counts alike for both signs"
        )
    lean = sum(s.up - s.p for s in shares) / len(shares)
    if all((s.up - s.p) * lean > 0 for s in shares):
        away = "away from" if lean > 0 else "towards"
        return SAYS["a-small-lean"].format(away=away)
    return SAYS["normal-noise"]
