"""What the judges of lab 10 share: cases of which only the largest is timed."""

import ml_dtypes
import numpy as np

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion
from utils.labs.lab10.reading import over_least
from utils.labs.replayed import Replayed, replayed

SAYS = says("lab10")

LATER = "not at this size"
Argument = tuple[tuple[int, ...], str]


def case_of(*arguments: Argument | float, timed: bool = False) -> Facts:
    """A case: sizes of the arguments as plain data, and whether traffic and time count."""
    plain = [
        argument if isinstance(argument, float) else [list(argument[0]), argument[1]]
        for argument in arguments
    ]
    return {"arguments": plain, "timed": timed}


def words(case: Facts) -> str:
    """The sizes of a case.

    >>> words(case_of(((4, 8), "bfloat16"), 0.5))
    'arguments of [4, 8], 0.5'
    """
    text = [
        str(argument if isinstance(argument, float) else argument[0])
        for argument in case["arguments"]
    ]
    return f"arguments of {', '.join(text)}"


def drawn(rng: np.random.Generator, argument: list, scale: float = 1.0) -> np.ndarray:
    """Random numbers of the shape and type of an argument of a case."""
    shape, dtype = argument
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    return (scale * rng.standard_normal(shape, dtype=np.float32)).astype(kind)


def on_one_core(facts: Facts, inputs: tuple[np.ndarray, ...], answer: str) -> Replayed:
    """A record run again; one for two cores has a fault, since all bounds are those of one."""
    run = replayed(facts, inputs, answer)
    if not run.fault and len(run.program.cores) != 1:
        return Replayed(SAYS["two-cores"].format(answer=answer, len=len(run.program.cores)))
    return run


def traffic(run: Replayed, case: Facts, limit: float, weight: int, message: str) -> Criterion:
    """Whether at most `limit` times the least goes to and from HBM, where a case is timed."""
    target = f"at most {limit:g} times the least"
    if not case["timed"]:
        return criterion("HBM traffic", weight, True, LATER, target, "")
    result = over_least(run.program)
    measured = f"{result:.3g} times the least"
    return criterion("HBM traffic", weight, result <= limit, measured, target, message)


def at_least(
    name: str, case: Facts, value: float, limit: float, weight: int, text: str, message: str
) -> Criterion:
    """Whether a figure is at least its limit, where a case is timed. text: formats a figure."""
    target = f"at least {text.format(limit)}"
    if not case["timed"]:
        return criterion(name, weight, True, LATER, target, "")
    return criterion(name, weight, value >= limit, text.format(value), target, message)


def at_most(
    name: str, case: Facts, value: float, limit: float, weight: int, text: str, message: str
) -> Criterion:
    """Whether a figure is at most its limit, where a case is timed. text: formats a figure."""
    target = f"at most {text.format(limit)}"
    if not case["timed"]:
        return criterion(name, weight, True, LATER, target, "")
    return criterion(name, weight, value <= limit, text.format(value), target, message)
