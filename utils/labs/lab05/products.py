"""The cases and the judgement of the product in K-tiles, exercise 3 of lab 05."""

import random

import numpy as np

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_asked_for, not_judged
from utils.labs.lab05.engine import DEPTH
from utils.labs.lab05.inputs import operands
from utils.labs.wrong_answers import message_of

SAYS = says("lab05")

WORDS = "[{m}, {k}] @ [{k}, {n}], {spread}"

TOLERANCE = 1e-6
"""Relative error of the product, in the Frobenius norm.

Derivation: of tiles that are each rounded once to FP32, sums in FP32 in any order lie below 2e-7
for k = 4096 in both kinds of data; partial sums in FP16 lie above 1e-4, those in BF16 above 1e-3.
The tests measure all of them.
"""

WEIGHTS = {"products by the engine": 2, "error": 4, "partial sums": 1}


def product_cases(rng: random.Random) -> list[Facts]:
    """Three products; K fits no whole number of tiles in the first two, or is 4096."""
    depths = (rng.choice((200, 300, 420)), rng.choice((1000, 1500, 2222)), 4096)
    spreads = (rng.choice(("both signs", "positive")), "both signs", "positive")
    return [
        {"m": rng.randint(3, 8), "k": k, "n": rng.randint(9, 14), "spread": spread}
        | {"seed": rng.randrange(2**31)}
        for k, spread in zip(depths, spreads, strict=True)
    ]


def exact_product(case: Facts) -> np.ndarray:
    """The product in float64."""
    a, b = (operand.astype(np.float64) for operand in operands(case))
    return a @ b


def relative_error(c: np.ndarray, exact: np.ndarray) -> float:
    """The Frobenius norm of the error over that of the exact product."""
    return float(np.linalg.norm(c - exact) / np.linalg.norm(exact))


def judge_product(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: products by the engine, the error, and the dtypes of the sums."""
    needed = case["m"] * case["k"] * case["n"]
    if fault := _fault(case, facts):
        return not_asked_for(WEIGHTS, fault, at="error")
    made, of, name = facts["products"], WEIGHTS, "products by the engine"
    text = _products_message(case, made, needed)
    engine = criterion(name, of[name], made == needed, str(made), str(needed), text)
    c = np.array(facts["values"]).reshape(case["m"], case["n"])
    off = relative_error(c, exact_product(case))
    close, target = off <= TOLERANCE, f"at most {TOLERANCE:g}"
    measured = target if close else f"{off:.2g}"
    text = "" if close else _error_message(case, c)
    error = criterion("error", of["error"], close, measured, target, text)
    other = sorted(set(facts["sums"]) - {"float32"})
    dtype = [*other, "float32"][0]
    text, passed = SAYS["sums-in-float64"].format(value=dtype), not other and close
    sums = criterion("partial sums", of["partial sums"], passed, dtype, "float32", text)
    if (made < needed and close) or (made > needed and not close):
        # A right number that the engine did not make, or a wrong one of other products.
        error = not_judged(error)
    if not error.passed and not other:
        sums = not_judged(sums)
    return [engine, error, sums]


def _fault(case: Facts, facts: Facts) -> str:
    shape = [case["m"], case["n"]]
    if facts["stopped"]:
        return "the check stopped the answer after some seconds: there are few tiles"
    if facts["kind"] != "a ndarray":
        return SAYS["a-list-of-tiles"].format(kind=facts["kind"])
    if facts["shape"] != shape:
        return SAYS["transposed"].format(shape=shape)
    if facts["dtype"] != "float32":
        return SAYS["np-zeros-in-float64"].format(
            dtype=facts["dtype"]
        ) + " np.zeros makes float64 unless you name another type" * (facts["dtype"] == "float64")
    if facts["values"] is None:
        return "the result holds nan or infinity: are all tiles in it, and begins the sum at zero?"
    return ""


def _products_message(case: Facts, made: int, needed: int) -> str:
    if not made:
        return SAYS["without-the-engine"]
    if made < needed:
        return "some products of the result never came from the engine"
    if made == case["m"] * case["n"] * -(-case["k"] // DEPTH) * DEPTH:
        return SAYS["the-last-tile-filled-up-with-zeros"]
    return SAYS["overlapping-tiles"]


def _error_message(case: Facts, c: np.ndarray) -> str:
    exact = exact_product(case)
    times, beside = float((c * exact).sum() / (exact**2).sum()), c - exact
    if abs(times - 1) > 0.001 and relative_error(c, times * exact) <= TOLERANCE:
        return SAYS["the-mean-of-the-tiles"].format(times=times)
    if np.ptp(beside) < 0.01 * abs(beside.mean()):
        return SAYS["a-sum-that-begins-at-one"].format(mean=beside.mean())

    def alike(known: Facts) -> bool:
        others = np.reshape(known["values"], c.shape)
        return known["dtype"] == "float32" and relative_error(c, others) <= TOLERANCE

    near = relative_error(c, exact) < 0.3
    text = "not this product: which rows of b belong to which columns of a?"
    text = SAYS["partial-sums-in-fp16"] if near else text
    return message_of("lab05.ex3", case, alike, text, value=case["k"] % DEPTH)
