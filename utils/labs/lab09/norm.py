"""The cases and the judgement of RMSNorm, exercise 4 of lab 09."""

import random
from collections.abc import Iterator

import numpy as np

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import costs_of, criterion
from utils.labs.lab09.rows import CLOSE, ONCE, TILE, TOLERANCE, drawn, sizes
from utils.labs.replayed import (
    Replayed,
    close_to,
    farthest,
    generator,
    nothing,
    replayed,
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
    x = drawn(rng, case, 0.5)
    weight = np.asarray(rng.uniform(0.5, 1.5, case["columns"]), dtype=np.float32)
    run = replayed(facts, (x, weight), "rms_norm")
    if run.fault:
        return nothing(NORM_WEIGHTS, run.fault, run.detail)
    right = rms_norm(x, weight, case["epsilon"])
    advice = _norm_advice(run, x, weight, case["epsilon"])
    values = right_values(run, right, case["dtype"], TOLERANCE, 5, advice)
    loads = run.bytes_read_of(1) / weight.nbytes
    traffic = (run.hbm_bytes - run.bytes_read_of(1)) / (x.nbytes + run.outputs[0].nbytes)
    costs = [
        criterion(
            "HBM traffic",
            2,
            traffic <= ONCE,
            f"{traffic:.3g} times the least, without the weight",
            f"at most {ONCE:g} times the least",
            SAYS["x-loaded-twice"],
        ),
        criterion(
            "weight loads",
            1,
            loads <= TILE,
            f"{loads:g} rows",
            f"at most {TILE} rows",
            SAYS["the-weight-for-every-tile"],
        ),
    ]
    return [values, *costs_of(not (values.passed or values.share), *costs)]


def _norm_advice(run: Replayed, x: np.ndarray, weight: np.ndarray, epsilon: float) -> str:
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
