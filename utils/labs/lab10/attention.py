"""The cases and the judgement of attention, exercise 6 of lab 10."""

import random
from collections.abc import Iterator

import numpy as np

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion
from utils.labs.kernel_replay import Replay, generator, nothing, recognise, right_values
from utils.labs.lab10 import timed
from utils.labs.lab10.bounds import DEPTH, SIZE, attention_sizes, over_bound
from utils.labs.lab10.timed import case_of, draw, on_one_core, why

SAYS = says("lab10")

STEPS = {"on the chip": (6.8, 1), "overlapped": (4.4, 2)}
"""Name to times the bound and weight. At 2048 positions, measured on 21 November: scores and
probabilities through HBM in long rows 5.9; a row of scores at once 4.8 to 5.5; in blocks with a
running maximum 4.0, the scores computed twice 3.7, keys on the partitions with an exact shift 3.3
to 3.6."""
WEIGHTS = {
    "values": 1, "large inputs": 1, "HBM traffic": 1, **{n: w for n, (_, w) in STEPS.items()},
}  # fmt: skip
TOLERANCE = 1e-2
"""Relative to the largest value, beyond one rounding. With BF16 probabilities 3e-3; scores that are
rounded to BF16 before the exponential are off by 3e-2 and more where they are large."""
TRAFFIC = 1.25
"""Of the least. On the chip 1.0; with keys that come anew for each 128 queries 4 and more."""
LARGE = 300.0
"""What scores reach in the second run, above and below 0."""
COMMON = 8.0
"""The element that all keys share there."""


def sizes(rng: random.Random) -> list[Facts]:
    """Two short sequences for the values, one of `SIZE` that is timed."""
    return [
        case_of(*attention_sizes(512)),
        case_of(*attention_sizes(512 * rng.choice((2, 3)))),
        case_of(*attention_sizes(SIZE), timed=True),
    ]


def judge(case: Facts, facts: Facts) -> list[Criterion]:
    """Values, large inputs, HBM traffic, and one criterion for each step towards the bound."""
    rng = generator(facts)
    q, k, v = (draw(rng, argument) for argument in case["arguments"])
    run = on_one_core(facts, (q, k, v), "attention")
    if run.fault:
        return nothing(WEIGHTS, run.fault, run.detail)
    right = softmax_v(q, k, v)
    values = right_values(run, right, "bfloat16", TOLERANCE, 1, _advice(run, q, k, v))
    large = _large(case, facts, (q, k, v), values)
    ratio, reason = float("inf"), ""
    good = values.passed and large.passed
    if case["timed"] and good:
        ratio = over_bound(run.profile.seconds)
        reason = why(run)
    rest = [timed.traffic(run, case, TRAFFIC, 1, SAYS["scores-through-hbm"])]
    for name, (limit, weight) in STEPS.items():
        rest.append(timed.at_most(name, case, ratio, limit, weight, timed.OVER, reason))
        # One reason for the first step that is not reached is enough.
        reason = reason * (ratio <= limit)
    return [values, large, *timed.if_right(good, rest)]


def softmax_v(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """softmax(q.T k / sqrt(d)) v, (n, d), the sums in float64."""
    scores = (q.astype(np.float32).T @ k.astype(np.float32)).astype(np.float64) / DEPTH**0.5
    power = np.exp(scores - scores.max(axis=1, keepdims=True)).astype(np.float32)
    return (power @ v.astype(np.float32)) / power.sum(axis=1, keepdims=True, dtype=np.float64)


def uneven(q: np.ndarray, k: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Queries and keys whose scores reach `LARGE`, and only a query's own maximum tells its shift.

    Half of the queries, anywhere, lie along one key each: its score is farther above all others
    than exp has room for. All keys share their first element, with which a query moves all of its
    scores up or down, and hardly changes their order. So neither some of the keys, nor lengths, nor
    other queries tell how large a maximum is.
    """
    dtype, (depth, size) = q.dtype, q.shape
    q, k = q.astype(np.float32), k.astype(np.float32)
    largest = np.float32(LARGE * depth**0.5)  # before the division by the root
    q[0], k[0] = 0.0, 0.0
    alone = rng.permutation(size)[: size // 2]
    along = k[:, rng.integers(0, size, alone.size)]
    high = rng.uniform(0.9, 1.0, alone.size).astype(np.float32)
    q[:, alone] = along * (high * largest / (along * along).sum(axis=0))
    moved = rng.choice((-0.9, 0.0, 0.9), size).astype(np.float32)
    moved[alone] = np.minimum(moved[alone], 0.0)
    k[0] = COMMON
    q[0] = moved * largest / COMMON
    return q.astype(dtype), k.astype(dtype)


def _large(
    case: Facts, facts: Facts, inputs: tuple[np.ndarray, ...], values: Criterion
) -> Criterion:
    q, k, v = inputs
    q, k = uneven(q, k, generator(facts))
    run = on_one_core(facts, (q, k, v), "attention")
    result = right_values(run, softmax_v(q, k, v), "bfloat16", TOLERANCE, 1, "")
    message = SAYS["no-maximum"]
    passed, message = result.passed and values.passed, message if values.passed else ""
    return criterion("large inputs", 1, passed, result.measured, result.target, message)


def _advice(run: Replay, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> str:
    general = SAYS["three-loops-2"]
    result = run.outputs[0].astype(np.float64)
    if result.shape != v.shape or not np.isfinite(result).all():
        return general
    return recognise(result, _ways(q, k, v), 0.05, general)


def _ways(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """What is computed by mistake, with the words for it."""
    wide, root = v.astype(np.float32), np.float32(DEPTH**0.5)
    scores = (q.astype(np.float32).T @ k.astype(np.float32)) / root
    below = scores - scores.max(axis=1, keepdims=True)
    power = np.exp(below)

    def mean(weights: np.ndarray) -> np.ndarray:
        return (weights @ wide) / weights.sum(axis=1, keepdims=True)

    yield "close: keep scores, their maximum, the sum and the result in FP32", softmax_v(q, k, v)
    yield SAYS["not-divided"], power @ wide
    yield SAYS["moving-and-stationary-exchanged"], mean(np.exp(below * root))
    over_queries = "the sum is over the queries: each query's weights, over all keys, sum to 1"
    yield over_queries, power / power.sum(axis=0, keepdims=True) @ wide
    yield SAYS["queries-and-keys-exchanged"], mean(np.exp(scores.T - scores.max(axis=0)[:, None]))
    yield SAYS["divided-by-d"], mean(np.exp(below / root))
