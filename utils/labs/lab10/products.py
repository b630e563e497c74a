"""The cases and the judgement of products, exercises 1 and 2 of lab 10."""

import random

import numpy as np

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.kernel_replay import Replay, generator, nothing, recognise, right_values
from utils.labs.lab10 import timed
from utils.labs.lab10.reading import over_least
from utils.labs.lab10.timed import case_of, draw, on_one_core, why

SAYS = says("lab10")

BF16 = "bfloat16"
TOLERANCE = 1e-5
"""Relative to the largest element, beyond one rounding to BF16: FP32 sums of 2048 products in any
order stay below 2e-6; sums that were rounded to BF16 on the way are off by 1e-3. The tests measure
both."""
TRAFFIC, LEAST_TRAFFIC = 1.40, 1.05
"""Of the least. At 1024 x 1024 x 1024: reloading for each tile 3.67, for each row of tiles 3.33,
for two rows 2.0, for four rows or for each column of tiles 1.33, everything once 1.0."""
SOME_MFU, GOOD_MFU = 0.52, 0.75
"""At 2048 x 2048 x 2048, measured on 21 November. With traffic 1.0: all of the left matrix before
the first product 0.57, panels of 128 columns 0.65, two accumulators of a whole row 0.82, all of
both matrices before the first product 0.84, K in blocks with sums in SBUF 0.91, panels of 512
columns 0.90, sums of four tiles in PSUM while K passes by 0.92. With more traffic: blocks of 8 x 2
tiles 0.70, of 2 x 2 0.46, the textbook's loops 0.18."""
WEIGHTS = {"values": 3, "HBM traffic": 2}
FAST_WEIGHTS = {"values": 3, "HBM traffic": 2, "MFU, some": 2, "MFU, good": 2}


def shapes(depth: int, rows: int, columns: int, is_timed: bool = False) -> Facts:
    """A case with lhs_t (depth, rows) and rhs (depth, columns)."""
    return case_of(((depth, rows), BF16), ((depth, columns), BF16), timed=is_timed)


def sizes(rng: random.Random) -> list[Facts]:
    """Two shapes for the values, and two whose HBM traffic counts."""
    return [
        shapes(128, 512, 512),
        shapes(128 * rng.choice((2, 3)), 512, 512 * rng.choice((2, 3))),
        shapes(1024, 1024, 1024, True),
        shapes(128 * rng.choice((3, 4)), 1536, 1024, True),
    ]


def fast_sizes(rng: random.Random) -> list[Facts]:
    """One shape for the values, and 2048 by 2048 by 2048, which is timed."""
    return [shapes(256 * rng.choice((1, 2)), 512, 1024), shapes(2048, 2048, 2048, True)]


def judge_traffic(case: Facts, facts: Facts) -> list[Criterion]:
    """Two criteria: values and HBM traffic."""
    run, values = _run(case, facts, "matmul")
    if run.fault:
        return nothing(WEIGHTS, run.fault, run.detail)
    assert values is not None
    result = timed.traffic(run, case, TRAFFIC, 2, _traffic_advice(run, case))
    return [values, *timed.if_right(values.passed, [result])]


def judge_fast(case: Facts, facts: Facts) -> list[Criterion]:
    """Four criteria: values, HBM traffic, and two levels of MFU."""
    run, values = _run(case, facts, "fast_matmul")
    if run.fault:
        return nothing(FAST_WEIGHTS, run.fault, run.detail)
    assert values is not None
    reached, reason = 0.0, ""
    if case["timed"] and values.passed:
        reached = mfu(case, run)
        reason = why(run) if reached < GOOD_MFU else ""
    more = reason * (reached >= SOME_MFU)
    rest = [
        timed.traffic(run, case, LEAST_TRAFFIC, 2, _traffic_advice(run, case)),
        timed.at_least("MFU, some", case, reached, SOME_MFU, 2, "{:.2f}", reason),
        timed.at_least("MFU, good", case, reached, GOOD_MFU, 2, "{:.2f}", more),
    ]
    return [values, *timed.if_right(values.passed, rest)]


def mfu(case: Facts, run: Replay) -> float:
    """Share of the Tensor Engine's peak, by the FLOP that the product needs."""
    from utils.chip.hardware import machine

    (depth, rows), (_, columns) = (argument[0] for argument in case["arguments"])
    flop = 2.0 * depth * rows * columns
    return flop / machine("trainium2", "core").rate("bf16") / run.profile.seconds


def _run(case: Facts, facts: Facts, answer: str) -> tuple[Replay, Criterion | None]:
    rng = generator(facts)
    a, b = (draw(rng, argument) for argument in case["arguments"])
    run = on_one_core(facts, (a, b), answer)
    if run.fault:
        return run, None
    right = a.astype(np.float32).T @ b.astype(np.float32)
    return run, right_values(run, right, BF16, TOLERANCE, 3, _advice(run, a, b, right))


def _traffic_advice(run: Replay, case: Facts) -> str:
    """Which matrix comes how often."""
    if not case["timed"]:
        return ""
    results = [
        run.bytes_read_of(place) / run.inputs[place].nbytes for place in range(len(run.inputs))
    ]
    text = f"lhs_t is loaded {results[0]:.3g} times and rhs {results[1]:.3g} times"
    if max(results) < 1.01 < over_least(run.program):
        return f"{text}: what is too much goes out of SBUF and back, partial sums for example"
    if min(results) > 1.01:
        return SAYS["three-loops"].format(answer=text)
    return SAYS["two-rows-of-tiles-at-a-time"].format(answer=text)


def _advice(run: Replay, a: np.ndarray, b: np.ndarray, right: np.ndarray) -> str:
    general = SAYS["tiles-in-the-wrong-place"]
    result = run.outputs[0]
    if result.shape != right.shape:
        return general
    first, last = a[:128].astype(np.float32), a[-128:].astype(np.float32)
    ways = [(SAYS["sums-in-bf16"], right)]
    if len(a) > 128:
        of_last, of_first = (
            last.T @ b[-128:].astype(np.float32),
            first.T @ b[:128].astype(np.float32),
        )
        ways += [(SAYS["a-new-psum-tile-for-each-tile-of-k"], of_last)]
        ways += [(SAYS["the-first-tile-of-k-only"], of_first)]
    return recognise(result.astype(np.float32), ways, 0.02, general)
