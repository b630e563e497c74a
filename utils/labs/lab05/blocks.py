"""The cases and the judgement of Microscaling blocks, exercise 6 of lab 05."""

import math
import random
from typing import Any

import numpy as np

from utils.chip.mx import quantise
from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_asked_for, not_judged
from utils.labs.lab05.inputs import blocks
from utils.labs.wrong_answers import message_of

SAYS = says("lab05")

BLOCK = 32


LARGEST = {"e4m3fn": 448.0, "e2m1": 6.0}
"""Of the elements."""

WEIGHTS = {"scales": 2, "elements": 3, "cut off": 1, "zeros and tiny": 1}
_EVERY = ("plain", "wide", "power", "cut off", "edge", "zeros", "tiny")


def block_cases(rng: random.Random) -> list[Facts]:
    """Few rows of two blocks, two longer rows, and as many rows as a block has values."""
    first, second = rng.sample(sorted(LARGEST), 2)
    few, more = ([*rng.sample(_EVERY, len(_EVERY)), rng.choice(_EVERY)] for _ in range(2))
    column = [*_EVERY, *rng.choices(_EVERY, k=BLOCK - len(_EVERY))]
    return [
        _case(rng, first, [few[:2], few[2:4], few[4:6], few[6:]]),
        _case(rng, second, [more[:4], more[4:]]),
        # As many rows as a block has values: no shape says along which axis the blocks lie.
        _case(rng, first, [[kind] for kind in rng.sample(column, BLOCK)]),
    ]


def _case(rng: random.Random, element: str, kinds: list[list[str]]) -> Facts:
    return {"element": element, "kinds": kinds, "seed": rng.randrange(2**31)}


def block_words(case: Facts) -> str:
    """What a card says of a case."""
    rows, across = len(case["kinds"]), len(case["kinds"][0])
    return f"{case['element']}, x of {rows} × {BLOCK * across}"


def judge_blocks(case: Facts, facts: Facts) -> list[Criterion]:
    """Four criteria: scales, elements, what a scale cuts off, and zeros and tiny values."""
    x, largest = blocks(case), LARGEST[case["element"]]
    right = quantise(x, case["element"], block=BLOCK)
    codes = np.asarray(right.scale_codes, int)
    if fault := _fault(x, codes, facts):
        return not_asked_for(WEIGHTS, fault)
    given_codes, given = _pair(facts, codes)
    kinds = np.array(case["kinds"])
    other_scale = given_codes != codes
    other = (given != _by_block(right.elements, codes)).any(axis=2)
    emax = math.floor(math.log2(largest))
    rule = SAYS["emax-one-too-large"].format(emax, largest)

    def judge_part(name: str, own: np.ndarray, bad: np.ndarray, advice: str) -> Criterion:
        equal, total = int((own & ~bad).sum()), int(own.sum())

        def alike(known: Facts) -> int:
            """Blocks that an answer has as this one, if it has all that are wrong here."""
            known_codes, elements = _pair(known, codes)
            same = known_codes == given_codes
            if name != "scales":
                same &= ((elements == given) | (np.isnan(elements) & np.isnan(given))).all(axis=2)
            return int(same.sum()) if same[own & bad].all() else 0

        fields = {"emax": emax, "largest": largest, "format": rule}
        passed = equal == total
        message = "" if passed else message_of("lab05.ex6", case, alike, advice, **fields)
        return criterion(name, WEIGHTS[name], passed, f"{equal} of {total}", "equal", message)

    plain = np.isin(kinds, ("plain", "wide", "power"))
    text = (
        "the exponent of a scale is floor(log2(largest magnitude of the block)) - emax, where"
        f" emax = {emax} is the exponent of the element's largest value"
    )
    scales = judge_part("scales", plain, other_scale, text)
    text = (
        "an element is x over its block's scale, rounded to the nearest value of the format, ties"
        " to even, subnormal values included"
    )
    elements = judge_part("elements", plain, other, text)
    if not scales.passed:
        # Elements of another scale are others, and say nothing by themselves.
        elements = not_judged(elements)
    text = (
        f"with the scale of the specification a block's largest values may lie beyond {largest:g}:"
        f" they become {largest:g}, others stay as they are"
    )
    cut = judge_part("cut off", np.isin(kinds, ("cut off", "edge")), other | other_scale, text)
    small = np.isin(kinds, ("zeros", "tiny"))
    tiny = judge_part("zeros and tiny", small, other | other_scale, SAYS["codes-that-wrap-around"])
    if not (scales.passed and elements.passed):
        cut, tiny = not_judged(cut), not_judged(tiny)
    return [scales, elements, cut, tiny]


def _by_block(elements: Any, codes: np.ndarray) -> np.ndarray:
    return np.asarray(elements, np.float64).reshape(*codes.shape, BLOCK)


def _pair(facts: Facts, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes [rows, blocks] and elements [rows, blocks, 32] of an answer; nan for what is none."""
    numbers = [math.nan if isinstance(item, str) else item for item in facts["elements"]]
    return np.reshape(facts["codes"], codes.shape), _by_block(numbers, codes)


def _fault(x: np.ndarray, codes: np.ndarray, facts: Facts) -> str:
    if facts["stopped"]:
        return "the check stopped the answer after some seconds: work on all blocks at once"
    if facts["codes"] is None:
        return SAYS["does-nothing-4"].format(kind=facts["kind"])
    if [facts["codes_shape"], facts["elements_shape"]] == [list(x.shape), list(codes.shape)]:
        return SAYS["codes-and-elements-exchanged"]
    if facts["codes_shape"] != list(codes.shape):
        return (
            f"the codes have the shape {facts['codes_shape']}, not {list(codes.shape)}: one scale"
            f" for each {BLOCK} neighbours of a row"
        )
    if facts["elements_shape"] != list(x.shape):
        return f"the elements have the shape {facts['elements_shape']}, not {list(x.shape)}"
    if strange := [code for code in facts["codes"] if not isinstance(code, int)]:
        response = f"{strange[0]} is among the codes: a code is the exponent plus 127, an int"
        return response + SAYS["a-logarithm-of-zero"] * (strange[0] in ("-inf", "nan"))
    if min(facts["codes"]) < 0 or max(facts["codes"]) > 254:
        return SAYS["no-bias"]
    return ""
