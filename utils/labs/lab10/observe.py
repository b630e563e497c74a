"""What the kernels of lab 10 do, recorded without numbers. Judges nothing."""

from typing import Any

from utils.labs import Answer, Facts, Observer
from utils.labs.closed import closed
from utils.labs.kernels import recorded
from utils.labs.plain import describe

LANGUAGE = "utils.nki.simulator.language"
PRODUCT = (f"{LANGUAGE}.transfer.matmul",)
NORMS = ("utils.labs.lab10.given", f"{LANGUAGE}.reductions.rms_norm")
TRUTHS = ("utils.labs.lab10.advice",)
SOFTMAX = (f"{LANGUAGE}.reductions.softmax",)
"""What would be a whole answer; it refuses to be called while one runs."""
LONGEST = 20
"""Characters of an advice that are kept: the longest of the list has half of that."""


def sizes_of(case: Facts) -> list[tuple[tuple[int, ...], str] | float]:
    """The arguments of a case: shape and type of arrays, or a number."""
    return [
        argument if isinstance(argument, int | float) else (tuple(argument[0]), argument[1])
        for argument in case["arguments"]
    ]


def observe_product(answer: Answer, case: Facts) -> Facts:
    """The recorded program of the product, exercise 1."""
    return recorded("lab10.ex1", answer, *sizes_of(case), also_closed=PRODUCT)


def observe_fast_product(answer: Answer, case: Facts) -> Facts:
    """The recorded program of the fast product, exercise 2."""
    return recorded("lab10.ex2", answer, *sizes_of(case), also_closed=PRODUCT)


def observe_norm(answer: Answer, case: Facts) -> Facts:
    """The recorded program of the fused norm, exercise 3."""
    return recorded("lab10.ex3", answer, *sizes_of(case), also_closed=NORMS)


def observe_convolution(answer: Answer, case: Facts) -> Facts:
    """The recorded program of the convolution with pooling, exercise 4."""
    return recorded("lab10.ex4", answer, *sizes_of(case))


def observe_advice(answer: Answer, case: Facts) -> Facts:
    """What an answer says to profiles; it sees the numbers only."""
    with closed("lab10.ex5", *TRUTHS):
        text: Any = answer([dict(profile) for profile in case["profiles"]])
    if not isinstance(text, list | tuple):
        return {"kind": describe(text), "said": None}
    words = [
        item[:LONGEST] if isinstance(item, str) else describe(item)
        for item in text[: len(case["profiles"]) + 1]
    ]
    return {"kind": describe(text), "said": words}


def observe_attention(answer: Answer, case: Facts) -> Facts:
    """The recorded program of attention, exercise 6."""
    return recorded("lab10.ex6", answer, *sizes_of(case), also_closed=SOFTMAX)


OBSERVERS = {
    "ex1": Observer("matmul", observe_product),
    "ex2": Observer("fast_matmul", observe_fast_product),
    "ex3": Observer("fused_norm", observe_norm),
    "ex4": Observer("conv_pool", observe_convolution),
    "ex5": Observer("advise", observe_advice),
    "ex6": Observer("attention", observe_attention),
}
