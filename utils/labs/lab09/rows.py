"""The cases and the judgement of the kernels that go over rows, exercises 1 to 4 of lab 09."""

import random
from collections.abc import Iterator

import ml_dtypes
import numpy as np

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import at_most, costs_of, criterion, not_judged
from utils.labs.kernel_replay import (
    Replay,
    close_to,
    farthest,
    few_bytes,
    generator,
    nothing,
    replay,
    right_values,
)

SAYS = says("lab09")

NORM_WEIGHTS = {"values": 5, "HBM traffic": 2, "weight loads": 1}


def norm_sizes(rng: random.Random) -> list[Facts]:
    """The sizes of `sizes`, each with an epsilon."""
    return [case | {"epsilon": rng.choice((1e-5, 1e-3, 0.1))} for case in sizes(rng)]


def rms_norm(x: np.ndarray, weight: np.ndarray, epsilon: float) -> np.ndarray:
    """In float64."""
    wide = x.astype(np.float64)
    return wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + epsilon) * weight


def judge_norm(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: values, HBM traffic and weight loads."""
    rng = generator(facts)
    x = draw_numbers(rng, case, 0.5)
    weight = np.asarray(rng.uniform(0.5, 1.5, case["columns"]), dtype=np.float32)
    run = replay(facts, (x, weight), "rms_norm")
    if run.fault:
        return nothing(NORM_WEIGHTS, run.fault, run.detail)
    right = rms_norm(x, weight, case["epsilon"])
    advice = _norm_advice(run, x, weight, case["epsilon"])
    values = right_values(run, right, case["dtype"], TOLERANCE, 5, advice)
    loads = run.bytes_read_of(1) / weight.nbytes
    traffic = (run.hbm_bytes - run.bytes_read_of(1)) / (x.nbytes + run.outputs[0].nbytes)
    measured = f"{traffic:.3g} times the least, without the weight"
    target = f"at most {ONCE:g} times the least"
    costs = [
        criterion("HBM traffic", 2, traffic <= ONCE, measured, target, SAYS["x-loaded-twice"]),
        at_most("weight loads", 1, loads, TILE, SAYS["the-weight-for-every-tile"], "{:g} rows"),
    ]
    return [values, *_costs(values, *costs)]


def _norm_advice(run: Replay, x: np.ndarray, weight: np.ndarray, epsilon: float) -> str:
    result = run.outputs[0].astype(np.float64)
    general = "x / sqrt(mean of the row's squares + epsilon) * weight"
    if result.shape != x.shape or not np.isfinite(result).all():
        return general
    right = rms_norm(x, weight, epsilon)
    short = run.outputs[0].dtype != np.float32
    off = {what: farthest(result, one, short) for what, one in _known(x, weight, epsilon)}
    nearest = min(off, key=lambda what: off[what])
    if off[nearest] <= 0.3 * farthest(result, right, short) and off[nearest] <= 0.02:
        return nearest
    return CLOSE if close_to(result, right) else general


def _known(x: np.ndarray, weight: np.ndarray, epsilon: float) -> Iterator[tuple[str, np.ndarray]]:
    """What is computed by mistake, with the words for it."""
    wide = x.astype(np.float64)
    square = (wide**2).mean(axis=1, keepdims=True)
    centred = wide - wide.mean(axis=1, keepdims=True)
    variance = (centred**2).mean(axis=1, keepdims=True)
    yield SAYS["no-weight"], rms_norm(x, np.ones_like(weight), epsilon)
    yield SAYS["no-epsilon"], rms_norm(x, weight, 0.0)
    outside = SAYS["the-courses-own-kernel"]
    yield outside, wide / (np.sqrt(square) + epsilon) * weight
    yield outside, wide * (1 / np.sqrt(square) + epsilon) * weight
    yield (SAYS["epsilon-in-the-sum"], rms_norm(x, weight, epsilon / x.shape[1]))
    yield (SAYS["sum-of-squares"], wide / np.sqrt(square * x.shape[1] + epsilon) * weight)
    yield (
        "this subtracts the mean, as LayerNorm does: RMSNorm does not",
        centred / np.sqrt(variance + epsilon) * weight,
    )
    yield (SAYS["the-variance"], wide / np.sqrt(variance + epsilon) * weight)
    yield SAYS["multiplied-by-the-root"], wide * np.sqrt(square + epsilon) * weight


ONCE = 1.0
"""Every byte of the operands moved once."""

TOLERANCE = 2e-6
"""How far a value may lie from the one in float64, relative to the largest; a BF16 result may be
off by one rounding besides.

Derivation: in FP32, sums of 2,048 terms, exp and reciprocal stay below 1e-6 in any order of the
sum; one step in BF16 on the way is off by more than 1e-4. The tests measure both.
"""

CLOSE = SAYS["tiles-in-bf16"]
TILE = 128


def sizes(rng: random.Random) -> list[Facts]:
    """One tile, several with a rest, BF16 with a rest."""
    return [
        {"rows": TILE, "columns": rng.choice((64, 96, 160)), "dtype": "float32"},
        {
            "rows": rng.choice((2, 3)) * TILE + rng.randrange(8, 120, 8),
            "columns": rng.choice((200, 320)),
            "dtype": "float32",
        },
        {"rows": TILE + rng.randrange(8, 120, 8), "columns": 256, "dtype": "bfloat16"},
    ]


def words(case: Facts) -> str:
    """What a card says of a case."""
    return f"[{case['rows']}, {case['columns']}] {case['dtype']}"


def draw_numbers(rng: np.random.Generator, case: Facts, scale: float = 1.0) -> np.ndarray:
    """Standard normal numbers, times `scale`, in the type of the case."""
    dtype = ml_dtypes.bfloat16 if case["dtype"] == "bfloat16" else np.float32
    return (scale * rng.standard_normal((case["rows"], case["columns"]))).astype(dtype)


def _costs(values: Criterion, *costs: Criterion) -> list[Criterion]:
    """What a kernel costs, which is no merit of one that has no value right."""
    return costs_of(not (values.passed or values.share), *costs)


# Exercise 1: add

ADD_WEIGHTS = {"values": 4, "HBM traffic": 2}


def judge_add(case: Facts, facts: Facts) -> list[Criterion]:
    """Two criteria: values and HBM traffic."""
    rng = generator(facts)
    a, b = draw_numbers(rng, case), draw_numbers(rng, case)
    run = replay(facts, (a, b), "add_rows")
    if run.fault:
        return nothing(ADD_WEIGHTS, run.fault, run.detail)
    right = a.astype(np.float64) + b.astype(np.float64)
    values = right_values(run, right, case["dtype"], TOLERANCE, 4, _add_advice(run, a, b))
    return [values, *_costs(values, few_bytes(run, ONCE, 2, SAYS["loads-for-nothing"]))]


def _add_advice(run: Replay, a: np.ndarray, b: np.ndarray) -> str:
    result, right = run.outputs[0], a.astype(np.float64) + b.astype(np.float64)
    if result.shape != right.shape:
        return ""
    if close_to(result, right):
        return CLOSE
    rows = len(right) // TILE * TILE
    near = abs(result.astype(np.float64) - right).max(axis=1) <= 2**-6 * abs(right).max()
    if near[:TILE].all() and not near[TILE:].any() and len(right) > TILE:
        return SAYS["one-tile-only"].format(TILE=TILE)
    if near[:rows].all() and rows < len(right) and not near[rows:].any():
        return SAYS["whole-tiles-only"].format(value=len(right) - rows)
    for name, one in (("a", a), ("b", b)):
        if np.allclose(result.astype(np.float64), one.astype(np.float64), atol=1e-3):
            return SAYS["stored-before-it-is-added"].format(name=name)
    return (
        "is it the sum of a and b, stored after it was computed, and which rows of a, b and the "
        "result does one turn of the loop belong to?"
    )


# Exercise 2: transpose

TRANSPOSE_WEIGHTS = {"values": 4, "descriptors": 2}
SMALLEST_RUN = 64
"""Bytes of the shortest contiguous run that a transfer of this exercise may be made of. Rows of a
tile have 16 times as many and more; single elements have 2 or 4."""


def transpose_sizes(rng: random.Random) -> list[Facts]:
    """One tile, whole tiles in BF16, tiles with a rest."""
    return [
        {"rows": TILE, "columns": TILE, "dtype": "float32"},
        {"rows": 2 * TILE, "columns": 3 * TILE, "dtype": "bfloat16"},
        {
            "rows": TILE + rng.choice((32, 64, 96)),
            "columns": 2 * TILE + rng.choice((32, 64, 96)),
            "dtype": "float32",
        },
    ]


def judge_transpose(case: Facts, facts: Facts) -> list[Criterion]:
    """Two criteria: values and the length of the runs that descriptors move."""
    x = draw_numbers(generator(facts), case)
    run = replay(facts, (x,), "transpose")
    if run.fault:
        return nothing(TRANSPOSE_WEIGHTS, run.fault, run.detail)
    right = x.T.astype(np.float64)
    advice = SAYS["blocks-stay-in-place"]
    result = run.outputs[0]
    if result.shape == right.shape:
        if close_to(result, right):
            advice = CLOSE
        elif case["rows"] > TILE and _blocks_in_place(result, x):
            advice = "each block is transposed where it was: block (i, j) goes to place (j, i)"
    values = right_values(run, right, case["dtype"], 0.0, 4, advice)
    shortest = run.shortest_run
    target, text = f"runs of {SMALLEST_RUN} bytes or more", SAYS["one-descriptor-for-each-element"]
    passed, measured = shortest >= SMALLEST_RUN, f"runs of {shortest} bytes"
    runs = criterion("descriptors", 2, passed, measured, target, text)
    return [values, *_costs(values, runs)]


def _blocks_in_place(result: np.ndarray, x: np.ndarray) -> bool:
    """Whether the first block is right and the second along a row is where x had it."""
    first = np.array_equal(result[:TILE, :TILE], x[:TILE, :TILE].T)
    return first and np.array_equal(result[:TILE, TILE : 2 * TILE], x[:TILE, TILE : 2 * TILE].T)


# Exercise 3: softmax

SOFTMAX_WEIGHTS = {"values": 4, "large inputs": 2, "HBM traffic": 1, "passes": 1}
PASSES = 3.5
"""Times that engines may go over a tile: maximum, exponential with its sum, product. A fourth pass
is one too many; columns, one value for each row, count next to nothing."""


def judge_softmax(case: Facts, facts: Facts) -> list[Criterion]:
    """Four criteria: values, large inputs, HBM traffic and passes of the engines."""
    x = draw_numbers(generator(facts), case, 2.0)
    run = replay(facts, (x,), "softmax")
    if run.fault:
        return nothing(SOFTMAX_WEIGHTS, run.fault, run.detail)
    right = softmax(x)
    values = right_values(run, right, case["dtype"], TOLERANCE, 4, _softmax_advice(run, x))
    high = large_inputs(x)
    moved = replay(facts, (high,), "softmax")
    result = right_values(moved, softmax(high), case["dtype"], TOLERANCE, 2, "")
    finite = np.isfinite(moved.outputs[0].astype(np.float64)).all()
    advice = SAYS["the-logarithm-of-the-sum-in-the-exponent" if finite else "no-maximum"]
    large = criterion("large inputs", 2, result.passed, result.measured, result.target, advice)
    passes = engine_passes(run, case)
    return [
        values,
        large if values.passed else not_judged(large),
        *_costs(
            values,
            few_bytes(run, ONCE, 1, SAYS["stored-and-loaded-on-the-way"]),
            at_most("passes", 1, passes, PASSES, SAYS["a-separate-subtraction"], "{:.2g}"),
        ),
    ]


def large_inputs(x: np.ndarray) -> np.ndarray:
    """Of each row some elements near 300 and some near -300: whatever is subtracted, if it is not
    the maximum, the exponential of one of them, or of all, is not finite or 0."""
    near = 0.5 * x.astype(np.float32) + 300
    near[:, ::3] -= 600
    return near.astype(x.dtype)


def softmax(x: np.ndarray) -> np.ndarray:
    """Along the rows, in float64."""
    wide = x.astype(np.float64)
    e = np.exp(wide - wide.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def engine_passes(run: Replay, case: Facts) -> float:
    """Elements that the compute engines wrote or reduced, over the elements of x."""
    from utils.nki.simulator.enums import engine
    from utils.nki.simulator.tensor import Tensor

    work = 0
    for instruction in run.program.instructions:
        if instruction.engine is not engine.dma:
            work += max(
                (t.size for t in instruction.args.values() if isinstance(t, Tensor)), default=0
            )
    return work / (case["rows"] * case["columns"])


def _softmax_advice(run: Replay, x: np.ndarray) -> str:
    result, wide = run.outputs[0].astype(np.float64), x.astype(np.float64)
    if result.shape != wide.shape or not np.isfinite(result).all():
        return "exp of x minus the row's maximum, over the sum of the row"
    right = softmax(x)
    if close_to(result, right):
        return SAYS["exponentials-in-the-type-of-x"]
    if np.allclose(result / result.sum(axis=1, keepdims=True), right, atol=0.01):
        return SAYS["not-divided"]
    if np.allclose(result, np.exp(wide) / np.exp(wide).sum(), atol=1e-4):
        return "the whole array sums to 1, each row has to"
    return "exp of x minus the row's maximum, over the sum of the row"
