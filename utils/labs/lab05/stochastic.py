"""The cases and the judgement of stochastic rounding, exercise 2 of lab 05, with its test.

The test is made so that a right answer fails it at most once in 10**9 checks. For one value, the
number of draws that went up is binomial with the known probability p; by Chernoff's bound a share q
or one farther out has a probability of at most exp(-n KL(q, p)) on either side. For the sums over
all values Hoeffding's bound says 2 exp(-2 n t**2). FALSE_ALARM is shared out evenly among all these
tests of a check. A lean of all probabilities by 0.01 is found nearly always; a noise of 2**16 - 1
in place of 2**16 steps is not.
"""

import math
import random
import struct
from typing import Any, NamedTuple

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, first_of, not_asked_for, not_judged
from utils.labs.wrong_answers import message_of

SAYS = says("lab05")

FALSE_ALARM = 1e-9
"""How often a check refuses a right answer, at most."""

_STEPS = 2**16
"""Values of FP32 from one value of BF16 to the next."""


class Value(NamedTuple):
    """Neighbours in BF16, the lower magnitude first, and the probability of the higher one."""

    low: float
    high: float
    p: float


def neighbours(x: float) -> Value:
    """
    >>> neighbours(-1.001953125)
    Value(low=-1.0, high=-1.0078125, p=0.25)
    """
    (bits,) = struct.unpack("<I", struct.pack("<f", x))
    start = bits & -_STEPS
    low, high = struct.unpack("<2f", struct.pack("<2I", start, start + _STEPS))
    return Value(low, high, (bits % _STEPS) / _STEPS)


def stochastic_cases(rng: random.Random) -> list[Facts]:
    """Few values in one dimension, and all sixteenths of a step in rows."""
    few, many = (3, 5, 8, 12, 14), range(1, 16)
    return [
        _case(rng, rng.sample(few, 3), exact=3, draws=4096, columns=0),
        _case(rng, rng.sample(many, 15), exact=3, draws=32768, columns=256),
    ]


def _case(rng: random.Random, sixteenths: list[int], exact: int, draws: int, columns: int) -> Facts:
    """Values between two of BF16 by so many sixteenths of a step, and some that are BF16 values:
    zero, powers of two (below which the steps are half as wide) and others.
    """

    def number(steps: float) -> float:
        return rng.choice((1, -1)) * steps * 2.0 ** rng.randint(-20, 20)

    values = [number(128 + rng.randrange(128) + sixteenth / 16) for sixteenth in sixteenths]
    values[0] = number(255 + sixteenths[0] / 16)  # the higher neighbour is a power of two
    values[1] = math.copysign(values[1], -values[0])
    values += [0.0, number(128), *(number(128 + rng.randrange(1, 128)) for _ in range(exact - 2))]
    rng.shuffle(values)
    return {"values": values, "draws": draws, "columns": columns, "seed": rng.randrange(2**31)}


def stochastic_words(case: Facts) -> str:
    """What a card says of a case."""
    shape = f"rows of {case['columns']}" if case["columns"] else "one dimension"
    return f"{len(case['values'])} values, each {case['draws']} times, in {shape}"


# The test


def tests_in_a_check(cases: list[Facts]) -> int:
    """One per value between two neighbours, and two sums, per case."""
    return sum(2 + sum(neighbours(x).p > 0 for x in case["values"]) for case in cases)


_TESTS = 22
"""`tests_in_a_check` of the cases above; held by a test."""


def divergence(q: float, p: float) -> float:
    """KL divergence of coins that show heads with probability q and p, 0 < p < 1.

    >>> divergence(0.5, 0.5), round(divergence(0.0, 0.5), 6)
    (0.0, 0.693147)
    """
    parts = ((q, p), (1 - q, 1 - p))
    return sum(a * math.log(a / b) for a, b in parts if a > 0)


def too_far(ups: int, draws: int, p: float) -> bool:
    """Whether so many draws that go up are less likely than this test's share of FALSE_ALARM."""
    return draws * divergence(ups / draws, p) > math.log(2 * _TESTS / FALSE_ALARM)


def lean_limit(draws: int) -> float:
    """How far the mean of so many draws, of any probabilities, may lie from what is expected."""
    return math.sqrt(math.log(2 * _TESTS / FALSE_ALARM) / (2 * draws))


# The judgement

WEIGHTS = {"neighbours": 2, "exact values": 1, "unbiased": 3, "generator": 1}


def judge_stochastic(case: Facts, facts: Facts) -> list[Criterion]:
    """Four criteria: neighbours, exact values, no bias, and the generator given."""
    if fault := _fault(facts):
        return not_asked_for(WEIGHTS, fault)
    values = [neighbours(x) for x in case["values"]]
    between = [(v, s) for v, s in zip(values, facts["seen"], strict=True) if v.p > 0]
    exact = [(v, s) for v, s in zip(values, facts["seen"], strict=True) if v.p == 0]
    apart, idle = _neighbours(between), all(len(seen) == 1 for _, seen in between)
    unmoved, fair = _exact(exact), _bias_criterion(case, facts)
    own = _generator(facts)
    if not apart.passed:
        unmoved, fair = not_judged(unmoved), not_judged(fair)
    elif idle:
        # Rounding that is not random has neighbours and exact values for nothing.
        apart, unmoved, own = not_judged(apart), not_judged(unmoved), not_judged(own)
    return [apart, unmoved, fair, own]


def _fault(facts: Facts) -> str:
    kind, dtype = facts["kind"], facts["dtype"]
    slow = "the check stopped the answer after some seconds: round all numbers at once"
    other = f"the result is {dtype}: return float32 that holds values of BF16"
    shape = "the result has another shape than x: return one number for each"
    return first_of(
        (facts["stopped"], slow),
        (kind != "a ndarray", SAYS["does-nothing-2"].format(kind=kind)),
        (dtype != "float32", other),
        (not facts["same_shape"], shape),
        (facts["input_changed"], SAYS["works-on-x-itself"]),
    )


def _ups(value: Value, seen: list[list[Any]]) -> int:
    return sum(count for x, count in seen if x == value.high)


def _neighbours(between: list[tuple[Value, list[list[float]]]]) -> Criterion:
    bad = [
        (value, x) for value, seen in between for x, _ in seen if x not in (value.low, value.high)
    ]
    message = ""
    if bad:
        value, x = bad[0]
        step = abs(value.high - value.low)
        message = f"between {value.low!r} and {value.high!r} came {x!r}: "
        if isinstance(x, str):
            message += "only finite numbers are asked for"
        elif min(abs(value.low), abs(value.high)) < abs(x) < max(abs(value.low), abs(value.high)):
            message += SAYS["nothing-cut-off"]
        elif x * value.low < 0 and abs(x) > step:
            message += "the sign is lost"
        elif abs(x) < abs(value.low) / 4:
            message += SAYS["the-lower-bits-kept"]
        else:
            message += SAYS["noise-twice-as-wide"]
    measured = f"{len(bad)} others"
    return criterion("neighbours", WEIGHTS["neighbours"], not bad, measured, "none other", message)


def _exact(exact: list[tuple[Value, list[list[float]]]]) -> Criterion:
    moved = [value.low for value, seen in exact if [x for x, _ in seen] != [value.low]]
    message = ""
    if moved:
        message = f"{moved[0]!r} is a value of BF16 and did not always stay: "
        power = moved[0] and math.frexp(moved[0])[0] in (0.5, -0.5)
        message += SAYS["below-a-power-of-two"] if power else SAYS["an-end-that-is-included"]
    weight, measured = WEIGHTS["exact values"], f"{len(moved)} of {len(exact)} not equal"
    return criterion("exact values", weight, not moved, measured, "equal", message)


def _bias(case: Facts, facts: Facts) -> tuple[int, int, float, float]:
    """How many values are too far, of how many, how far the mean is off, and how far it may be."""
    pairs = [(neighbours(x), s) for x, s in zip(case["values"], facts["seen"], strict=True)]
    ups, draws = [(_ups(v, seen), v) for v, seen in pairs if v.p > 0], case["draws"]
    off = [count - draws * value.p for count, value in ups]
    signed = [math.copysign(1, v.low) * item for (_, v), item in zip(ups, off, strict=True)]
    total = draws * len(ups)
    far = sum(too_far(count, draws, value.p) for count, value in ups)
    return far, len(ups), max(abs(sum(off)), abs(sum(signed))) / total, lean_limit(total)


def _bias_criterion(case: Facts, facts: Facts) -> Criterion:
    far, count, lean, most = _bias(case, facts)
    passed = not far and lean <= most
    message = "" if passed else _why_biased(case, facts)
    measured = f"{far} of {count} too far, mean off by {lean:.2g}"
    target = f"none, mean off by at most {most:.2g}"
    return criterion("unbiased", WEIGHTS["unbiased"], passed, measured, target, message)


def _shares(case: Facts, facts: Facts) -> list[tuple[float, float]]:
    """Of each value between two neighbours, but halfway, the share of its draws that went to the
    higher magnitude, and the probability of that.
    """
    pairs = [(neighbours(x), s) for x, s in zip(case["values"], facts["seen"], strict=True)]
    return [(_ups(v, seen) / case["draws"], v.p) for v, seen in pairs if v.p not in (0, 0.5)]


def _why_biased(case: Facts, facts: Facts) -> str:
    """What shares that are not those of the probabilities look like."""
    shares = _shares(case, facts)
    if facts["differs"] and all(up in (0.0, 1.0) for up, _ in shares):
        return SAYS["one-draw-for-all-numbers"]

    def alike(known: Facts) -> float:
        far, _, lean, most = _bias(case, known)
        pairs = zip(_shares(case, known), shares, strict=True)
        apart = [abs(a - b) for (a, _), (b, _) in pairs]
        near = max(apart) < 0.03 and (far or lean > most)
        return 1 / (1e-9 + sum(apart)) if near else 0

    lean = sum(up - p for up, p in shares)
    fields = {"away": "away from" if lean > 0 else "towards"}
    fields["NOT_RANDOM"] = SAYS["half-up-in-the-mantissa"]
    leans = all((up - p) * lean > 0 for up, p in shares)
    text = SAYS["a-small-lean" if leans else "normal-noise"].format(**fields)
    return message_of("lab05.ex2", case, alike, text, **fields)


def _generator(facts: Facts) -> Criterion:
    measured, message = "", ""
    if not facts["repeats"]:
        measured, message = "not equal", SAYS["the-global-generator"]
    elif not facts["differs"]:
        measured, message = "equal for other seeds", SAYS["a-generator-of-its-own"]
    passed, target = not message, "one result per seed"
    return criterion("generator", WEIGHTS["generator"], passed, measured, target, message)
