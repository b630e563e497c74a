"""The cases and the judgement of Microscaling blocks, exercise 6 of lab 05.

The reference follows section 6.3 of the OCP Microscaling Formats specification, version 1.0, with
the elements rounded by ml_dtypes.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_asked_for, not_judged
from utils.labs.lab05.inputs import blocks

SAYS = says("lab05")

BLOCK = 32


@dataclass(frozen=True)
class Element:
    """dtype: its name in ml_dtypes. emax: exponent of its largest value, `largest`."""

    dtype: str
    emax: int
    largest: float


ELEMENTS = {"e4m3fn": Element("float8_e4m3fn", 8, 448.0), "e2m1": Element("float4_e2m1fn", 2, 6.0)}

WEIGHTS = {"scales": 2, "elements": 3, "cut off": 1, "zeros and tiny": 1}
_EVERY = ("plain", "wide", "power", "cut off", "edge", "zeros", "tiny")


def block_cases(rng: random.Random) -> list[Facts]:
    """Few rows of two blocks, two longer rows, and as many rows as a block has values."""
    first, second = rng.sample(sorted(ELEMENTS), 2)
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


def rounded(x: np.ndarray, element: Element) -> np.ndarray:
    """Nearest element, ties to even, at most the largest."""
    import ml_dtypes

    limited = np.clip(x.astype(np.float64), -element.largest, element.largest)
    return limited.astype(getattr(ml_dtypes, element.dtype)).astype(np.float64)


def reference(
    x: np.ndarray, element: Element, exponent=None, to_element=rounded
) -> tuple[np.ndarray, np.ndarray]:
    """Scale codes, one per block, and elements, shape as x.

    exponent: of the largest magnitude of a block, if not its floor; to_element: the rounding.
    """
    exponent = exponent or (lambda size: math.frexp(size)[1] - 1)
    parts = x.astype(np.float64).reshape(len(x), -1, BLOCK)
    sizes = abs(parts).max(axis=2)
    shared = [
        [max(exponent(size) - element.emax, -127) if size else -127 for size in row]
        for row in sizes
    ]
    scaled = parts / np.exp2(np.array(shared, np.float64))[:, :, None]
    return np.array(shared) + 127, to_element(scaled, element).reshape(x.shape)


def judge_blocks(case: Facts, facts: Facts) -> list[Criterion]:
    """Four criteria: scales, elements, what a scale cuts off, and zeros and tiny values."""
    x, element = blocks(case), ELEMENTS[case["element"]]
    codes, right = reference(x, element)
    if fault := _fault(x, codes, facts):
        return not_asked_for(WEIGHTS, fault)
    given_codes = np.array(facts["codes"]).reshape(codes.shape)
    given = np.array([math.nan if isinstance(v, str) else v for v in facts["elements"]])
    given = given.reshape(x.shape)
    kinds = np.array(case["kinds"])
    plain = np.isin(kinds, ("plain", "wide", "power"))
    other_scale = given_codes != codes
    other = (given != right).reshape(*codes.shape, BLOCK).any(axis=2)

    def judged(name: str, own: np.ndarray, bad: np.ndarray, message: str) -> Criterion:
        equal, total = int((own & ~bad).sum()), int(own.sum())
        measured, passed = f"{equal} of {total}", equal == total
        return criterion(name, WEIGHTS[name], passed, measured, "equal", message)

    text = _scale_message(x, element, codes, given_codes)
    scales = judged("scales", plain, other_scale, text)
    elements = judged("elements", plain, other, _element_message(x, element, given, codes))
    if not scales.passed:
        # Elements of another scale are others, and say nothing by themselves.
        elements = not_judged(elements)
    large = np.isin(kinds, ("cut off", "edge"))
    larger = {kind for kind in ("cut off", "edge") if (other_scale & (kinds == kind)).any()}
    cut = judged("cut off", large, other | other_scale, _cut_message(larger, given, element))
    small = np.isin(kinds, ("zeros", "tiny"))
    wrong_small = (other | other_scale) & small
    zeros = (wrong_small & (kinds == "zeros")).any()
    text = SAYS["zeros-with-a-scale-of-one" if zeros else "codes-that-wrap-around"]
    tiny = judged("zeros and tiny", small, wrong_small, text)
    if not (scales.passed and elements.passed):
        cut, tiny = not_judged(cut), not_judged(tiny)
    return [scales, elements, cut, tiny]


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


def _ceiling(size: float) -> int:
    fraction, power = math.frexp(size)
    return power - 1 + (fraction > 0.5)


def _scale_message(x: np.ndarray, element: Element, codes: np.ndarray, given: np.ndarray) -> str:
    own = (codes > 0) & (codes < 254)

    def is_like(other: np.ndarray) -> bool:
        return bool((np.clip(other, 0, 254) == given)[own].all())

    def codes_by(exponent: Callable[[float], int]) -> np.ndarray:
        return reference(x, element, exponent)[0]

    def quotient(size: float) -> int:
        return math.floor(math.log2(size / element.largest)) + element.emax

    rule = SAYS["emax-one-too-large"].format(element.emax, element.largest)
    nearest = codes_by(lambda size: round(math.log2(size)))
    ways = (
        (254 - codes, SAYS["reciprocal-scales"]),
        (codes - 127, "a code is the exponent plus 127"),
        (codes + element.emax, SAYS["without-emax"].format(emax=element.emax)),
        (codes_by(_ceiling), SAYS["exponent-rounded-up"]),
        (nearest, SAYS["exponent-rounded-to-nearest"]),
        (codes + 1, SAYS["a-bias-of-128"].format(format=rule)),
        (codes - 1, f"every code is one too small: {rule}"),
        (codes_by(quotient), SAYS["floor-of-the-quotient"]),
    )
    for other, text in ways:
        if is_like(other):
            return text
    if len(np.unique(given)) == 1 and given.size > 2:
        return SAYS["one-scale-for-all"]
    apart = np.swapaxes(x.reshape(len(x), BLOCK, -1), 1, 2).reshape(x.shape)
    if is_like(reference(apart, element)[0]):
        return SAYS["numbers-that-lie-apart"]
    if x.shape[0] == x.shape[1] and is_like(reference(x.T.copy(), element)[0]):
        return SAYS["blocks-along-columns"]
    sizes = np.array([abs(row).max() for row in x])
    if is_like(np.array([[math.frexp(s)[1] - 1 - element.emax + 127] for s in sizes]) + 0 * codes):
        return "all blocks of a row have one scale: each block of 32 needs its own"
    signed = x.reshape(len(x), -1, BLOCK).max(axis=2)
    largest = np.array([[math.frexp(s)[1] - 1 if s > 0 else -127 for s in row] for row in signed])
    if is_like(largest - element.emax + 127):
        return SAYS["the-largest-value-not-magnitude"]
    return (
        "the exponent of a scale is floor(log2(largest magnitude of the block)) - emax, where"
        f" emax = {element.emax} is the exponent of the element's largest value"
    )


def _element_message(x: np.ndarray, element: Element, given: np.ndarray, codes: np.ndarray) -> str:
    scales = np.repeat(np.exp2(codes - 127.0), BLOCK, axis=1)
    right = reference(x, element)[1]
    normal = 2.0 ** (-6 if element.emax == 8 else 0)
    step = np.exp2(np.floor(np.log2(np.maximum(abs(x / scales), normal))))
    step = step * (2.0**-3 if element.emax == 8 else 2.0**-1)
    cut = np.trunc(x / scales / step) * step
    away = np.copysign(np.floor(abs(x / scales) / step + 0.5) * step, x)

    def is_like(other: np.ndarray) -> bool:
        return bool((np.clip(other, -element.largest, element.largest) == given).all())

    unlimited = (given == right) | (abs(right) == element.largest)
    ways = (
        (right * scales, SAYS["dequantised"]),
        (cut, SAYS["truncation"]),
        (away, "a value in the middle goes to the even element, not away from zero"),
        (np.where(abs(x / scales) < normal, 0, right), SAYS["no-subnormal-elements"]),
        (x / scales, SAYS["not-rounded"]),
        (rounded(x * scales, element), SAYS["multiplied-by-the-scale"]),
    )
    for other, text in ways:
        if is_like(other) or bool((other == given)[unlimited | (given != right)].all()):
            return text
    if np.isnan(given).any():
        return "some elements are nan: what lies beyond the largest element becomes the largest"
    if element.largest == 448 and abs(given).max() == 240:
        return SAYS["limited-to-240"]
    return (
        "an element is x over its block's scale, rounded to the nearest value of the format, ties"
        " to even, subnormal values included"
    )


def _cut_message(other_scales: set[str], given: np.ndarray, element: Element) -> str:
    """other_scales: the kinds of blocks that have another scale than the reference."""
    if "cut off" in other_scales:
        return SAYS["so-that-nothing-is-cut-off"]
    if other_scales:
        return SAYS["a-logarithm-in-float32"]
    if np.isnan(given).any():
        return SAYS["not-limited"].format(largest=element.largest)
    if (abs(given) > element.largest).any():
        return f"an element beyond the largest, {element.largest:g}: it has no code"
    return (
        f"with the scale of the specification a block's largest values may lie beyond"
        f" {element.largest:g}: they become {element.largest:g}, others stay as they are"
    )
