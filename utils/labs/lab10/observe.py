"""What the kernels of lab 10 do, recorded without numbers. Judges nothing."""

from typing import Any

from utils.labs import Answer, Facts, Observer
from utils.labs.forbidden import forbid
from utils.labs.kernels import record
from utils.labs.plain import describe

LANGUAGE = "utils.nki.simulator.language"
PRODUCT = f"{LANGUAGE}.transfer.matmul"
"""What would be a whole answer; it refuses to be called while one runs."""
NORMS = ("utils.labs.lab10.given", f"{LANGUAGE}.reductions.rms_norm")
TRUTHS = "utils.labs.lab10.advice"
LONGEST = 20
"""Characters of an advice that are kept: the longest of the list has half of that."""


def sizes_of(case: Facts) -> list[tuple[tuple[int, ...], str] | float]:
    """The arguments of a case: shape and type of arrays, or a number."""
    return [
        argument if isinstance(argument, int | float) else (tuple(argument[0]), argument[1])
        for argument in case["arguments"]
    ]


def _kernel(exercise: str, answer: str, *also_closed: str) -> Observer:
    """An observer that records the program of a kernel."""
    return Observer(
        answer,
        lambda kernel, case: record(
            f"lab10.{exercise}", kernel, *sizes_of(case), also_closed=also_closed
        ),
    )


def observe_advice(answer: Answer, case: Facts) -> Facts:
    """What an answer says to profiles; it sees the numbers only."""
    with forbid("lab10.ex5", TRUTHS):
        text: Any = answer([dict(profile) for profile in case["profiles"]])
    if not isinstance(text, list | tuple):
        return {"kind": describe(text), "response": None}
    words = [
        item[:LONGEST] if isinstance(item, str) else describe(item)
        for item in text[: len(case["profiles"]) + 1]
    ]
    return {"kind": describe(text), "response": words}


OBSERVERS = {
    "ex1": _kernel("ex1", "matmul", PRODUCT),
    "ex2": _kernel("ex2", "fast_matmul", PRODUCT),
    "ex3": _kernel("ex3", "fused_norm", *NORMS),
    "ex4": _kernel("ex4", "conv_pool"),
    "ex5": Observer("advise", observe_advice),
    "ex6": _kernel("ex6", "attention", f"{LANGUAGE}.reductions.softmax"),
}
