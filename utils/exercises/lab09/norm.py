"""The cases and the judgement of RMSNorm, exercise 4 of lab 09."""

import random

import numpy as np

from utils.exercises import Criterion, Facts
from utils.exercises.criteria import criterion
from utils.exercises.lab09.rows import TILE, TOLERANCE, drawn, sizes
from utils.exercises.replayed import (
    Replayed,
    few_bytes,
    generator,
    nothing,
    replayed,
    right_values,
)

NORM_WEIGHTS = {"values": 5, "HBM traffic": 2, "weight loads": 1}


def norm_sizes(rng: random.Random) -> list[Facts]:
    return [case | {"epsilon": rng.choice((1e-5, 1e-3, 0.1))} for case in sizes(rng)]


def rms_norm(x: np.ndarray, weight: np.ndarray, epsilon: float) -> np.ndarray:
    """In float64."""
    wide = x.astype(np.float64)
    return wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + epsilon) * weight


def judge_norm(case: Facts, facts: Facts) -> list[Criterion]:
    rng = generator(facts)
    x = drawn(rng, case, 0.5)
    weight = rng.uniform(0.5, 1.5, case["columns"]).astype(np.float32)
    run = replayed(facts, (x, weight), "rms_norm")
    if run.fault:
        return nothing(NORM_WEIGHTS, run.fault)
    right = rms_norm(x, weight, case["epsilon"])
    advice = _norm_advice(run, x, weight, case["epsilon"])
    values = right_values(run, right, case["dtype"], TOLERANCE, 5, advice)
    loads = run.bytes_read_of(1) / weight.nbytes
    return [
        values,
        few_bytes(
            run,
            1.25 + _spread(case),
            2,
            "x is loaded more than once, or something is stored on "
            "the way: one load and one store for each tile",
        ),
        criterion(
            "weight loads",
            1,
            loads <= TILE,
            f"{loads:g} rows",
            f"at most {TILE} rows",
            "the weight is loaded again for every tile: load it once, before the loop",
        ),
    ]


def _spread(case: Facts) -> float:
    """What it costs to write the weight into all partitions by DMA, relative to x in and out."""
    item = 2 if case["dtype"] == "bfloat16" else 4
    return TILE * 4 / (2 * item * case["rows"])


def _norm_advice(run: Replayed, x: np.ndarray, weight: np.ndarray, epsilon: float) -> str:
    found = run.outputs[0].astype(np.float64)
    general = "x / sqrt(mean of the row's squares + epsilon) * weight"
    if found.shape != x.shape or not np.isfinite(found).all():
        return general
    wide, close = x.astype(np.float64), {"atol": 0.02 * float(abs(found).max() or 1)}
    if np.allclose(found, rms_norm(x, np.ones_like(weight), epsilon), **close):
        return "the weight is not in the result"
    if np.allclose(found, rms_norm(x, weight, 0.0), **close):
        return "epsilon is missing: it is added to the mean, under the root"
    total = wide / np.sqrt((wide**2).sum(axis=1, keepdims=True) + epsilon) * weight
    if np.allclose(found, total, atol=0.02 * float(abs(total).max())):
        return "this divides by the root of the sum of squares: take their mean"
    centred = wide - wide.mean(axis=1, keepdims=True)
    layer = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + epsilon) * weight
    if np.allclose(found, layer, **close) and not np.allclose(
        layer, rms_norm(x, weight, epsilon), **close
    ):
        return "this subtracts the mean, as LayerNorm does: RMSNorm does not"
    return general
