"""The arrays that the exercises of lab 05 work with, drawn from the seed of a case."""

from typing import Any

import numpy as np

Case = dict[str, Any]


def rounding_values(case: Case) -> np.ndarray:
    """What is rounded at random, exercise 2: float32 [values * draws].

    Each of the case's values stands in one row after another until it is there `draws` times; a
    value is whole steps of BF16 and sixteenths of a step.
    """
    return np.repeat(np.array(case["values"], np.float32), case["draws"])


def operands(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """The factors of a product, exercise 3: BF16 [m, k] and [k, n].

    spread: "both signs", where the sums grow like the root of k, or "positive", where they grow
    like k.
    """
    import ml_dtypes

    rng = np.random.default_rng(case["seed"])
    m, k, n = case["m"], case["k"], case["n"]
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    if case["spread"] == "positive":
        a, b = abs(a), abs(b)
    return a.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16)


def tensors(case: Case) -> list[np.ndarray]:
    """What is to be stored in FP8, exercise 5: float32 tensors whose magnitudes spread evenly, on
    a logarithmic scale, over `octaves` powers of two below the largest, `largest`.

    A tensor with largest 0 is all zeros. In one with negative extreme, every positive value is
    smaller by 4 or more.
    """
    rng = np.random.default_rng(case["seed"])
    results = []
    for tensor in case["tensors"]:
        count = tensor["count"]
        x = abs(tensor["largest"]) * 2.0 ** -rng.uniform(0, tensor["octaves"], count)
        x *= rng.choice((-1.0, 1.0), count)
        if tensor["largest"] < 0:
            x[x > 0] /= 4
        x[rng.integers(count)] = tensor["largest"]
        results.append(x.astype(np.float32))
    return results


def blocks(case: Case) -> np.ndarray:
    """What is to be stored in MX blocks, exercise 6: float32 [rows, 32 * blocks].

    kinds: of each block of a row what it holds; see the branches.
    """
    rng = np.random.default_rng(case["seed"])
    rows = []
    for kinds in case["kinds"]:
        row = [_block(rng, kind, case["element"]) for kind in kinds]
        rows.append(np.concatenate(row))
    return np.array(rows, np.float32)


def _block(rng: np.random.Generator, kind: str, element: str) -> np.ndarray:
    """32 numbers whose largest magnitude is 1.25 or 1.45 times a power of two, unless `kind` says
    otherwise; some lie exactly between two values of the element.
    """
    if kind == "zeros":
        return np.zeros(32)
    power: float = 2.0 ** rng.integers(-9, 10)
    x = rng.uniform(-0.9, 0.9, 32) * 2.0 ** -rng.integers(0, 5, 32)
    # Exactly between two elements, once the right scale is taken off.
    ties = (0.53125, 0.59375, 0.65625) if element == "e4m3fn" else (0.0625, 0.3125, 0.625, 0.875)
    x[: 2 * len(ties)] = (*ties, *(-tie for tie in ties))
    x[31] = -1.45 if kind == "plain" else -1.25
    if kind == "cut off":  # above the largest element, with the scale of the specification
        x[7], x[31] = 1.96, -1.9
    if kind == "edge":  # just below a power of two, where a logarithm in float32 rounds up
        x[31] = np.nextafter(np.float32(2), np.float32(0))
    if kind == "power":  # a ceiling leaves a power of two as it is
        x[31] = -1
    if kind == "wide":  # most are subnormal elements, or nothing at all
        x[:30] *= 2.0 ** -rng.integers(2, 12, 30)
    if kind == "tiny":  # the scale can go no lower
        power = 2.0**-126
    return rng.permutation(x * power)


FEATURES, OUTPUTS = 16, 8


def training(case: Case) -> tuple[list[np.ndarray], list[tuple[np.ndarray, np.ndarray]]]:
    """A linear model's first weights, BF16 [features, outputs] and [outputs], and its batches, each
    x float32 [rows, features] and y float32 [rows, outputs], exercise 4.

    The weights begin a tenth to a fifth above or below those that made y.
    """
    import ml_dtypes

    rng = np.random.default_rng(case["seed"])
    shapes = ((FEATURES, OUTPUTS), (OUTPUTS,))
    targets = [rng.uniform(0.5, 1.5, shapes[0]), rng.uniform(1.5, 3, shapes[1])]
    off = [
        rng.choice((-1, 1), target.shape) * rng.uniform(0.1, 0.2, target.shape)
        for target in targets
    ]
    weights = [
        (item * (1 + some)).astype(ml_dtypes.bfloat16)
        for item, some in zip(targets, off, strict=True)
    ]
    batches = []
    for _ in range(case["steps"]):
        x = rng.standard_normal((case["rows"], FEATURES)).astype(np.float32)
        batches.append((x, (x @ targets[0] + targets[1]).astype(np.float32)))
    return weights, batches
