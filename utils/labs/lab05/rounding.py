"""The cases and the judgement of rounding by hand, exercise 1 of lab 05.

Codes are those of an IEEE-like format: sign, exponent, mantissa; the exponent of all ones holds
infinity (mantissa 0), the exponent 0 holds the subnormal numbers.
"""

import random

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import all_right, not_asked_for, row, times
from utils.labs.lab05.codes import code_of
from utils.labs.wrong_answers import message_of

SAYS = says("lab05")

ODD_FORMATS = ((3, 5), (4, 4), (5, 4), (5, 6), (6, 5), (6, 8))
"""Exponent and mantissa bits of formats that no library rounds to."""

_WEIGHTS = dict.fromkeys(
    ("between two values", "ties", "next to a tie", "carry", "subnormal", "overflow"), 1
) | {"ties": 2, "subnormal": 2}


def rounding_cases(rng: random.Random) -> list[Facts]:
    """E4M3, BF16 and two unusual formats."""
    formats = ((4, 3), (8, 7), *rng.sample(ODD_FORMATS, 2))
    return [_case(rng, *bits, place % 2 == 0) for place, bits in enumerate(formats)]


def _case(rng: random.Random, exponent_bits: int, mantissa_bits: int, extreme: bool) -> Facts:
    """Ten numbers, each exact in float32.

    extreme: one is far beyond the largest value, and one half the smallest, negative; otherwise
    both are the ties nearest to infinity and above the smallest.
    """
    bias = 2 ** (exponent_bits - 1) - 1
    full = 2**mantissa_bits
    least = 2.0 ** (1 - bias - mantissa_bits)
    largest = (2 * full - 1) * 2.0 ** (bias - mantissa_bits)
    step = 2.0 ** (bias - mantissa_bits)
    eps = 2.0 ** (mantissa_bits - 20)

    def normal(steps: float) -> float:
        """A number of so many steps within a binade that is neither the lowest nor the highest."""
        exponent = rng.randint(max(1 - bias, -12) + 1, min(bias, 12) - 1)
        return steps * 2.0 ** (exponent - mantissa_bits)

    def even() -> int:
        return full + 2 * rng.randrange(full // 2)

    sixteenth = 1 / 16
    drawn = [
        ("between two values", normal(even() + rng.randint(3, 7) * sixteenth)),
        ("between two values", normal(even() + rng.randint(9, 13) * sixteenth)),
        ("ties", normal(even() + 0.5)),
        ("ties", normal(full + 2 * rng.randrange(full // 2 - 1) + 1.5)),
        ("next to a tie", normal(even() + rng.choice((0.5 + eps, 1.5 - eps)))),
        ("carry", normal(2 * full - 1 + rng.randint(9, 14) * sixteenth)),
        ("subnormal", least * (rng.randrange(1, full) + rng.choice((5, 11)) * sixteenth)),
        ("subnormal", least * (-0.5 if extreme else rng.choice((1.5, 2.5)))),
        ("overflow", largest + step * rng.randint(4, 7) * sixteenth),
        ("overflow", largest * rng.choice((1.3125, 1.5625)) if extreme else largest + step / 2),
    ]
    # Of each two one is negative, so that rounding down and cutting off differ.
    signs = [sign for _ in range(5) for sign in rng.sample((1, -1), 2)]
    signed = [
        (kind, sign * x if x > 0 else x) for (kind, x), sign in zip(drawn, signs, strict=True)
    ]
    rng.shuffle(signed)
    return {
        "exponent_bits": exponent_bits,
        "mantissa_bits": mantissa_bits,
        "kinds": [kind for kind, _ in signed],
        "numbers": [x for _, x in signed],
    }


def rounding_words(case: Facts) -> str:
    """What a card says of a case."""
    return (
        f"{case['exponent_bits']} bits of exponent, {case['mantissa_bits']} of mantissa,"
        f" {len(case['numbers'])} numbers from {min(map(abs, case['numbers'])):.2g} to"
        f" {max(map(abs, case['numbers'])):.2g} in size"
    )


_ADVICE = {
    "between two values": "which two values of the format lie around the number, and which of them"
    " is nearer? Write sign, exponent and mantissa for 1.0 by hand first",
    "ties": "exactly in the middle: the value with the even mantissa is asked for",
    "next to a tie": "a number close to the middle is no tie: compare the exact numbers",
    "carry": "rounding up may reach the next power of two: then the exponent grows by one and the"
    " mantissa is zero",
    "subnormal": "below the smallest normal value the steps stay as they are: the exponent field is"
    " 0 and there is no hidden one",
    "overflow": SAYS["the-ocp-formats-codes"],
}


def judge_rounding(case: Facts, facts: Facts) -> list[Criterion]:
    """One criterion per kind of number in _WEIGHTS."""
    items, kind = facts["returned"]["items"], facts["returned"]["kind"]
    count, fault = len(case["numbers"]), ""
    if items is None or len(items) != count:
        fault = f"`round_by_hand` returned {kind}: return a list of {count} codes, one per number"
    elif strange := [item for item in items if not isinstance(item, int)]:
        fault = SAYS["values-in-place-of-codes"].format(value=strange[0])
    if fault:
        return not_asked_for(_WEIGHTS, fault)
    return [_judge_kind(name, case, items) for name in _WEIGHTS]


def _out_of_range(x: float, code: int, bits: int) -> str:
    most = 2 ** (1 + bits) - 1
    if 0 <= code <= most:
        return ""
    response = f"{x!r} became {code}: with sign, exponent and mantissa a code is 0 to {most}"
    if code >= 0:
        return response
    name = "negative-codes" if x < 0 else "subnormals-one-exponent-too-low"
    return SAYS[name].format(answer=response)


def _judge_kind(kind: str, case: Facts, items: list[int]) -> Criterion:
    bits = case["exponent_bits"], case["mantissa_bits"]
    pairs = zip(case["kinds"], case["numbers"], items, strict=True)
    own = [(x, code) for item, x, code in pairs if item == kind]
    wrong = [(x, code) for x, code in own if code != code_of(x, *bits)]
    message = ""
    if wrong:
        x, code = wrong[0]

        def alike(facts: Facts) -> int:
            # What explains all of this kind and does the ordinary ones alike.
            same = [a == b for a, b in zip(facts["returned"]["items"], items, strict=True)]
            some = zip(case["kinds"], same, strict=True)
            return all(s for name, s in some if name in (kind, "between two values")) * sum(same)

        message = _out_of_range(x, code, sum(bits))
        message = message or message_of("lab05.ex1", case, alike, _ADVICE[kind])
    off = [place for place, pair in enumerate(own) if pair in wrong]
    rows = [row(repr(x), f"{code:#x}", f"{code_of(x, *bits):#x}") for x, code in wrong]
    target = times(len(own), "number")
    return all_right(kind, _WEIGHTS[kind], off, len(own), message, target, rows)
