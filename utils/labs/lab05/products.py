"""The cases and the judgement of the product in K-tiles, exercise 3 of lab 05."""

import random

import numpy as np

from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_judged
from utils.labs.lab05.engine import DEPTH
from utils.labs.lab05.inputs import operands

TOLERANCE = 1e-6
"""Relative error of the product, in the Frobenius norm.

Derivation: of tiles that are each rounded once to FP32, sums in FP32 in any order lie below 2e-7
for k = 4096 in both kinds of data; partial sums in FP16 lie above 1e-4, those in BF16 above 1e-3.
The tests measure all of them.
"""

_WEIGHTS = {"products by the engine": 2, "error": 4, "partial sums": 1}


def product_cases(rng: random.Random) -> list[Facts]:
    depths = (rng.choice((200, 300, 420)), rng.choice((1000, 1500, 2222)), 4096)
    spreads = (rng.choice(("both signs", "positive")), "both signs", "positive")
    return [
        {"m": rng.randint(3, 8), "k": k, "n": rng.randint(9, 14), "spread": spread}
        | {"seed": rng.randrange(2**31)}
        for k, spread in zip(depths, spreads, strict=True)
    ]


def product_words(case: Facts) -> str:
    return f"[{case['m']}, {case['k']}] @ [{case['k']}, {case['n']}], {case['spread']}"


def exact_product(case: Facts, last: int | None = None, first: int = 0) -> np.ndarray:
    """The product in float64 of the columns `first` to `last` of a."""
    a, b = (each.astype(np.float64) for each in operands(case))
    return a[:, first:last] @ b[first:last]


def relative_error(c: np.ndarray, exact: np.ndarray) -> float:
    return float(np.linalg.norm(c - exact) / np.linalg.norm(exact))


def judge_product(case: Facts, facts: Facts) -> list[Criterion]:
    needed = case["m"] * case["k"] * case["n"]
    fault = _fault(case, facts)
    if fault:
        return [
            criterion(name, weight, False, "", "", fault if name == "error" else "")
            for name, weight in _WEIGHTS.items()
        ]
    engine = criterion(
        "products by the engine",
        _WEIGHTS["products by the engine"],
        facts["products"] == needed,
        str(facts["products"]),
        str(needed),
        _products_message(case, facts["products"], needed),
    )
    c = np.array(facts["values"]).reshape(case["m"], case["n"])
    off = relative_error(c, exact_product(case))
    error = criterion(
        "error",
        _WEIGHTS["error"],
        off <= TOLERANCE,
        f"at most {TOLERANCE:g}" if off <= TOLERANCE else f"{off:.2g}",
        f"at most {TOLERANCE:g}",
        _error_message(case, c),
    )
    other = sorted(set(facts["sums"]) - {"float32"})
    sums = criterion(
        "partial sums",
        _WEIGHTS["partial sums"],
        not other and error.passed,
        other[0] if other else "float32",
        "float32",
        f"partial sums were added in {other[0] if other else ''}: PSUM adds in FP32. np.zeros makes"
        " float64 unless it is told otherwise",
    )
    if facts["products"] < needed and error.passed:
        # A right number that the engine did not make.
        error = not_judged(error)
    if facts["products"] > needed and not error.passed:
        error = not_judged(error)
    if not error.passed and not other:
        sums = not_judged(sums)
    return [engine, error, sums]


def _fault(case: Facts, facts: Facts) -> str:
    shape = [case["m"], case["n"]]
    if facts["stopped"]:
        return "the check stopped the answer after some seconds: there are few tiles"
    if facts["kind"] != "a ndarray":
        return f"`tiled_product` returned {facts['kind']}: return an array [m, n]"
    if facts["shape"] != shape:
        return f"the result has another shape than [m, n] = {shape}"
    if facts["dtype"] != "float32":
        return (
            f"the result is {facts['dtype']}: return the sum in float32, as PSUM holds it."
            + " np.zeros makes float64 unless it is told otherwise" * (facts["dtype"] == "float64")
        )
    if facts["values"] is None:
        return "the result holds nan or infinity: are all tiles in it, and begins the sum at zero?"
    return ""


def _products_message(case: Facts, made: int, needed: int) -> str:
    if not made:
        return (
            "the engine multiplied nothing: it alone has BF16 multipliers. Hand it tiles of `a` and"
            " `b`, and add what it returns"
        )
    if made < needed:
        return "some products of the result never came from the engine"
    if made == case["m"] * case["n"] * -(-case["k"] // DEPTH) * DEPTH:
        return (
            "the engine multiplied zeros that fill up the last tile: a tile may be shorter than"
            " `engine.depth`, so leave them out"
        )
    return "the engine made products that the result does not need: each pair of tiles once"


def _error_message(case: Facts, c: np.ndarray) -> str:
    k, tile = case["k"], DEPTH
    whole = k // tile * tile
    if whole < k and relative_error(c, exact_product(case, whole)) <= TOLERANCE:
        return f"the last {k - whole} of k are missing: the last tile may be shorter"
    if relative_error(c, exact_product(case, first=(k - 1) // tile * tile)) <= TOLERANCE:
        return "only the last tile is in the result: add each to those before it"
    if relative_error(c, exact_product(case, tile)) <= TOLERANCE:
        return "only the first tile is in the result: add the others to it"
    exact = exact_product(case)
    off, times = relative_error(c, exact), float((c * exact).sum() / (exact**2).sum())
    if abs(times - 1) > 0.001 and relative_error(c, times * exact) <= TOLERANCE:
        if abs(times - 2) < 0.001:
            return "every tile is counted twice"
        return f"this is {times:.3g} times the product: tiles are added, once each, not averaged"
    if np.array_equal(c, _upper_bits(c)):
        return (
            "every number of the result is a BF16 value: each rounding of a partial sum to BF16"
            " loses what is below its step. Keep the sum in FP32"
        )
    beside = c - exact
    if np.ptp(beside) < 0.01 * abs(beside.mean()):
        return f"every number is off by {beside.mean():.3g}: the sum begins at zero"
    if off < 0.3:
        return (
            "close, but more is lost than FP32 loses: is a partial sum, or a tile, rounded to a"
            " shorter format on the way, or a tile left out?"
        )
    return "not this product: which rows of b belong to which columns of a?"


def _upper_bits(c: np.ndarray) -> np.ndarray:
    return (c.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
