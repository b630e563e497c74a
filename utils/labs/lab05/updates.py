"""The cases and the judgement of the stalled BF16 training, exercise 4 of lab 05."""

import random

import numpy as np

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_judged
from utils.labs.lab05.inputs import training

SAYS = says("lab05")

WORDS = "{steps} steps of {rows} rows, lr = {lr}"

TOLERANCE = 0.1
"""How far the last loss may lie from that of the same training in float64, in first losses.

Derivation: over 80 problems, trainings with FP32 master weights, or with the lost part of each
update kept, ended within 0.005, and those with stochastic rounding, whose weights go on moving by a
step, within 0.035; the limit is three times this. The stalled training ends 0.67 or more away, one
without the bias 0.11 or more, one with the double learning rate 0.17 or more. The tests measure
them.
"""


def update_cases(rng: random.Random) -> list[Facts]:
    """A shorter training with a higher learning rate, and a longer one with a lower."""
    return [
        {"steps": steps, "rows": 32, "lr": lr, "seed": rng.randrange(2**31)}
        for steps, lr in ((160, 0.015), (240, 0.0125))
    ]


def mean_loss(case: Facts, weights: list[np.ndarray]) -> float:
    """The loss over all rows of all batches, float64."""
    w, b = (np.asarray(weight, np.float64) for weight in weights)
    return float(np.mean([((x @ w + b - y) ** 2).mean() for x, y in _batches(case)]))


def _batches(case: Facts) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(x.astype(np.float64), y.astype(np.float64)) for x, y in training(case)[1]]


def train(case: Facts, lr: float, kept_in_bf16: bool = False) -> list[np.ndarray]:
    """The weights after the training in float64, or with every sum rounded to BF16."""
    start, _ = training(case)
    dtype = start[0].dtype if kept_in_bf16 else np.dtype(np.float64)
    w, b = (item.astype(np.float64) for item in start)
    for x, y in _batches(case):
        d = (x @ w + b - y) * 2 / y.size
        w = (w - lr * x.T @ d).astype(dtype).astype(np.float64)
        b = (b - lr * d.sum(0)).astype(dtype).astype(np.float64)
    return [w, b]


def judge_update(case: Facts, facts: Facts) -> list[Criterion]:
    """Two criteria: the last loss, and weights that stay in BF16."""
    start, _ = training(case)
    first = mean_loss(case, start)
    right = mean_loss(case, train(case, case["lr"])) / first
    share, message = _share(case, facts, start, first)
    if share is not None and not message and abs(share - right) > TOLERANCE:
        moved = any((s != w.ravel()).any() for s, w in zip(facts["weights"], start, strict=True))
        unmoved = SAYS["sums-in-fp32-nothing-kept"]
        message = _loss_message(case, share, right, first) if moved else unmoved
    measured = "" if share is None else f"{share:.3g} of the first"
    target = f"{right:.3g} ± {TOLERANCE:g} of the first"
    loss = criterion("last loss", 5, not message, measured, target, message)
    strange = sorted(set(facts["dtypes"]) - {"bfloat16"})
    dtype = [*strange, "bfloat16"][0]
    text = SAYS["fp32-weights-in-the-forward-pass"].format(strange=", ".join(strange))
    kept = criterion("weights in BF16", 2, not strange, dtype, "bfloat16", text)
    if strange:
        # A training in FP32 is no cure for one in BF16.
        return [not_judged(loss), kept]
    return [loss, kept if loss.passed else not_judged(kept)]


def _share(
    case: Facts, facts: Facts, start: list[np.ndarray], first: float
) -> tuple[float | None, str]:
    """The last loss relative to the first, and what keeps it from being computed."""
    if facts["stopped"]:
        return None, "the check stopped the training after some seconds: an update is a few sums"
    if facts["steps"] != case["steps"]:
        return None, f"the training ended after {facts['steps']} of {case['steps']} steps"
    values = facts["weights"]
    if values is None or [len(value) for value in values] != [item.size for item in start]:
        return None, "the weights have changed their number or shapes: change them in place"
    if any(isinstance(item, str) for some in values for item in some):
        return None, "the weights are no finite numbers any more: subtract lr times the gradient"
    shaped = [np.reshape(some, item.shape) for some, item in zip(values, start, strict=True)]
    return mean_loss(case, shaped) / first, ""


def _loss_message(case: Facts, share: float, right: float, first: float) -> str:
    stalled = mean_loss(case, train(case, case["lr"], kept_in_bf16=True)) / first
    if share > 1.05:
        return SAYS["the-wrong-direction"]
    if share > stalled - 0.1:
        return SAYS["the-stalled-update"]
    if share > right:
        return SAYS["noise-half-as-wide-2"]
    return SAYS["a-larger-learning-rate"]
