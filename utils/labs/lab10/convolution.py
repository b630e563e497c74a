"""The cases and the judgement of the convolution with pooling, exercise 4 of lab 10."""

import random
from collections.abc import Iterator

import numpy as np

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.kernel_replay import Replay, generator, nothing, recognise, right_values
from utils.labs.lab10 import timed
from utils.labs.lab10.timed import case_of, draw, on_one_core, why

SAYS = says("lab10")

WEIGHTS = {"values": 4, "HBM traffic": 2, "over the bound": 2}
TOLERANCE = 1e-5
"""Relative to the largest value, beyond one rounding to BF16; FP32 sums of 9 x 128 products in any
order stay below 2e-6, one more rounding to BF16 is off by 1e-3."""
TRAFFIC = 1.55
"""Of the least. For 130 x 130, in pieces of four rows with two more around them 1.36, all at once
1.0; in pieces of two rows, or with the unpooled result in HBM 1.74; anew for each tap 6.9."""
SLOWER = 1.75
"""Times the bound of the FLOP at the Tensor Engine's peak. For 130 x 130 and 128 channels, measured
on 21 November: in pieces 1.20, whichever engine pools; all of x first 1.38, and nine loads of
weights 1.46; shifted copies in SBUF 1.51. Sums outside of PSUM have 3.1, loads for each tap 3.0."""


def sizes(rng: random.Random) -> list[Facts]:
    """Three images for the values, and one of 130 by 130 that is timed."""

    def case(inputs: int, outputs: int, high: int, wide: int, is_timed: bool = False) -> Facts:
        return case_of(
            ((inputs, high, wide), "bfloat16"),
            ((3, 3, inputs, outputs), "bfloat16"),
            ((outputs,), "float32"),
            timed=is_timed,
        )

    return [
        case(32, 32, 6, 6),
        case(rng.choice((48, 96)), rng.choice((64, 96)), 12, 2 * rng.choice((9, 13))),
        case(128, rng.choice((64, 128)), 2 * rng.choice((15, 16)), 66),
        case(128, 128, 130, 130, True),
    ]


def judge(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: values, HBM traffic and time over the bound."""
    rng = generator(facts)
    x, w, bias = (draw(rng, argument) for argument in case["arguments"])
    run = on_one_core(facts, (x, w, bias), "conv_pool")
    if run.fault:
        return nothing(WEIGHTS, run.fault, run.detail)
    sums = convolve(x, w)
    right = pool(sums) + bias[:, None, None]
    values = right_values(run, right, "bfloat16", TOLERANCE, 4, _advice(run, x, w, bias, sums))
    slower, reason = float("inf"), ""
    if case["timed"] and values.passed:
        slower = run.profile.seconds / bound(case)
        reason = why(run) if slower > SLOWER else ""
    rest = [
        timed.traffic(run, case, TRAFFIC, 2, SAYS["a-load-for-each-tap"]),
        timed.at_most("over the bound", case, slower, SLOWER, 2, timed.OVER, reason),
    ]
    return [values, *timed.if_right(values.passed, rest)]


def bound(case: Facts) -> float:
    """Seconds of the convolution's FLOP at the Tensor Engine's peak."""
    from utils.chip.hardware import machine

    (_, high, wide), (_, _, inputs, outputs), _ = (argument[0] for argument in case["arguments"])
    flop = 2.0 * 9 * inputs * outputs * (high - 2) * (wide - 2)
    return flop / machine("trainium2", "core").rate("bf16")


def convolve(x: np.ndarray, w: np.ndarray, flip: bool = False) -> np.ndarray:
    """The sum over channels and taps, (outputs, height - 2, width - 2). flip: taps reversed."""
    data, (inputs, high, wide) = x.astype(np.float32), x.shape
    weights = w.astype(np.float32)[::-1, ::-1] if flip else w.astype(np.float32)
    total = np.zeros((w.shape[3], (high - 2) * (wide - 2)), np.float32)
    for i in range(3):
        for j in range(3):
            window = data[:, i : i + high - 2, j : j + wide - 2].reshape(inputs, -1)
            total += weights[i, j].T @ window
    return total.reshape(-1, high - 2, wide - 2)


def pool(sums: np.ndarray) -> np.ndarray:
    """The largest of each square of 2 x 2."""
    outputs, high, wide = sums.shape
    return sums.reshape(outputs, high // 2, 2, wide // 2, 2).max(axis=(2, 4))


def _advice(run: Replay, x: np.ndarray, w: np.ndarray, bias: np.ndarray, sums: np.ndarray) -> str:
    general = (
        "sum over i, j and channels of x[c, y + i, z + j] * w[i, j, c, o], plus bias[o]; then the "
        "largest of each 2 x 2"
    )
    result, column = run.outputs[0].astype(np.float64), bias[:, None, None]
    if result.shape == sums.shape:
        return "the result is not pooled: each square of 2 x 2 becomes its largest value"
    if result.shape != pool(sums).shape or not np.isfinite(result).all():
        return general
    return recognise(result, _ways(x, w, column, sums), 0.02, general)


def _ways(
    x: np.ndarray, w: np.ndarray, column: np.ndarray, sums: np.ndarray
) -> Iterator[tuple[str, np.ndarray]]:
    """What is computed by mistake, with the words for it."""
    outputs, high, wide = sums.shape
    best, squares = pool(sums), sums.reshape(outputs, high // 2, 2, wide // 2, 2)
    yield SAYS["maxima-in-bf16"], best + column
    yield SAYS["no-bias"], best
    yield SAYS["the-mean"], squares.mean(axis=(2, 4)) + column
    first = "this takes the first of each square: take the largest of the four"
    yield first, squares[:, :, 0, :, 0] + column
    yield SAYS["pooled-over-rows-only"], squares[:, :, :, :, 0].max(axis=2) + column
    columns = "only the columns of each square are compared: compare the rows too"
    yield columns, squares[:, :, 0].max(axis=3) + column
    yield SAYS["the-courses-own-kernel"], pool(convolve(x, w, flip=True)) + column
    turned = pool(convolve(x, w.transpose(1, 0, 2, 3)))
    yield SAYS["rows-and-columns-of-the-taps-exchanged"], turned + column
    yield SAYS["the-smallest"], -pool(-sums) + column
    yield SAYS["a-relu-that-nobody-asked-for"], np.maximum(best + column, 0)
    last = w[2, 2].astype(np.float32).T @ x[:, 2:, 2:].astype(np.float32).reshape(len(x), -1)
    yield SAYS["a-new-psum-tile-for-each-tap"], pool(last.reshape(sums.shape)) + column
