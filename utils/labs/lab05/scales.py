"""The cases and the judgement of scales for FP8, exercise 5 of lab 05."""

import math
import random

import numpy as np

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_asked_for, not_judged, times
from utils.labs.lab05.inputs import tensors
from utils.labs.wrong_answers import message_of

SAYS = says("lab05")

LARGEST = 240.0
"""Of e4m3 with infinities: exponents of all ones are taken, so it is 1.875 * 2**7."""

NEAR = 1.10
"""Error of a choice that is called near, relative to the best power of two."""

_EXPONENTS = range(-60, 61)
_SMALLEST, _LARGEST = 2.0**-126, 2.0**128 * (1 - 2.0**-24)  # normal numbers of float32
_SATURATES = "nothing saturates"
WEIGHTS = {_SATURATES: 2, "error": 4}

# Ranges of the largest value's significand: where a scale for 448, one rounded to the nearest power
# of two, and one from the exponent alone are too large. None lies where rounding decides.
_SIGNIFICANDS = {"nearest": (1.05, 1.30), "448": (1.45, 1.72), "exponent": (1.95, 1.99)}


def scale_cases(rng: random.Random) -> list[Facts]:
    """Two lists of tensors; the second has a negative extreme and a tensor of zeros."""
    return [
        _case(rng, [(kind, 1) for kind in ("nearest", "448")], zeros=0),
        _case(rng, [("exponent", -1), ("nearest", -1), ("448", 1)], zeros=1),
    ]


def _case(rng: random.Random, kinds: list[tuple[str, int]], zeros: int) -> Facts:
    drawn = []
    for kind, sign in kinds:
        largest = sign * rng.uniform(*_SIGNIFICANDS[kind]) * 2.0 ** rng.randint(-22, 12)
        drawn.append({"largest": largest, "octaves": rng.randint(16, 18), "count": 2048})
    drawn += [{"largest": 0.0, "octaves": 1, "count": 64}] * zeros
    rng.shuffle(drawn)
    return {"tensors": drawn, "seed": rng.randrange(2**31)}


def scale_words(case: Facts) -> str:
    """What a card says of a case."""
    largest = [float(f"{tensor['largest']:.4g}") for tensor in case["tensors"]]
    return f"{times(len(largest), 'tensor')}, the extremes {largest}"


def quantise(x: np.ndarray, scale: float) -> np.ndarray:
    """x * scale rounded to e4m3 with infinities, over the scale: float64, shape as x."""
    import ml_dtypes

    with np.errstate(over="ignore"):
        codes = (x * np.float32(scale)).astype(np.float32).astype(ml_dtypes.float8_e4m3)
    return codes.astype(np.float64) / scale


def saturates(x: np.ndarray, scale: float) -> int:
    """Values whose product with the scale is beyond the largest of e4m3; a product rounded in
    float32 does not count.
    """
    return int((abs(x.astype(np.float64)) * scale > LARGEST * (1 + 1e-6)).sum())


def mean_error(x: np.ndarray, scale: float) -> float:
    """Mean of |stored - x| / |x| over what is not zero; 0 if all is zero."""
    some = x[x != 0]
    if not some.size:
        return 0.0
    error = abs(quantise(some, scale) - some) / abs(some.astype(np.float64))
    return float(error.mean())


def best_error(x: np.ndarray) -> float:
    """The smallest mean error over all powers of two with which nothing saturates."""
    fitting = [2.0**k for k in _EXPONENTS if not saturates(x, 2.0**k)]
    return min(mean_error(x, scale) for scale in fitting)


def judge_scales(case: Facts, facts: Facts) -> list[Criterion]:
    """Two criteria: no value saturates, and the error is near the best."""
    xs = tensors(case)
    if fault := _fault(len(xs), facts):
        return not_asked_for(WEIGHTS, fault)
    pairs = list(zip(xs, facts["returned"]["items"], strict=True))
    beyond = sum(saturates(x, scale) for x, scale in pairs)
    text = _known(case, pairs, SAYS["the-mean-magnitude"]) if beyond else ""
    measured = times(beyond, "value")
    none = criterion(_SATURATES, WEIGHTS[_SATURATES], not beyond, measured, "0", text)
    ratios = [
        mean_error(x, scale) / best if (best := best_error(x)) else 1.0
        for x, scale in pairs
        if not saturates(x, scale)
    ]
    worst = max(ratios, default=math.inf)
    measured = f"{worst:.3g} × the best" if ratios else "not judged"
    target, passed = f"at most {NEAR:.2f} × the best", not beyond and worst <= NEAR
    text = SAYS["a-power-of-two-too-small" if worst < 3 else "no-scaling"]
    text = text if passed or beyond else _known(case, pairs, text)
    near = criterion("error", WEIGHTS["error"], passed, measured, target, text)
    if beyond:
        return [none, not_judged(near)]
    # A scale of nearly 0 saturates nothing either.
    return [none if worst < 1.5 else not_judged(none), near]


def _fault(count: int, facts: Facts) -> str:
    items, kind = facts["returned"]["items"], facts["returned"]["kind"]
    if facts["stopped"]:
        return "the check stopped the answer after some seconds: the largest magnitude is enough"
    if items is None or len(items) != count:
        return SAYS["zeros-left-out"].format(kind=kind, count=count)
    if strange := [item for item in items if isinstance(item, str)]:
        endless = strange[0] in ("inf", "-inf", "nan")
        zeros = " A tensor of zeros has no largest value to divide by" * endless
        return f"{strange[0]} is among the scales: a scale is a finite float.{zeros}"
    if min(items) < _SMALLEST or max(items) > _LARGEST:
        bad = min(items) if min(items) < _SMALLEST else max(items)
        return SAYS["a-tensor-of-zeros-forgotten"].format(bad=bad)
    return ""


Pairs = list[tuple[np.ndarray, float]]


def _known(case: Facts, pairs: Pairs, otherwise: str) -> str:
    """What made these scales, if it is recorded."""

    def alike(facts: Facts) -> bool:
        others = facts["returned"]["items"]
        both = zip(others, pairs, strict=True)
        return all(math.isclose(o, s, rel_tol=1e-3) for o, (x, s) in both if x.any())

    return message_of("lab05.ex5", case, alike, otherwise)
