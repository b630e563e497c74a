"""The nine recipes, and what a training under one of them gives."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Recipe:
    """Where a training rounds.

    weights: the format in which they stay between two steps, "fp32" or "bf16"; the forward pass
        computes in it too, unless `products` says otherwise.
    products: what the matrix products take: "bf16" or "fp16" by autocast; "fp8" or "fp8 delayed" by
        quantise-dequantise with the present or with past largest values; None: as the weights are.
    update: how a new weight, computed in FP32, gets into its format: "nearest"; "stochastic"; or
        "master", to nearest from an FP32 copy which is kept and takes the updates instead.
    loss_scale: what the loss is multiplied by before backward, and the gradients divided by after.
    """

    weights: str = "fp32"
    products: str | None = None
    update: str = "nearest"
    loss_scale: float = 1.0


RECIPES = {
    "FP32": Recipe(),
    "BF16 autocast": Recipe(products="bf16"),
    "pure BF16": Recipe(weights="bf16"),
    "BF16, stochastic": Recipe(weights="bf16", update="stochastic"),
    "BF16, FP32 master": Recipe(weights="bf16", update="master"),
    "FP16": Recipe(products="fp16"),
    "FP16, scaled loss": Recipe(products="fp16", loss_scale=2.0**16),
    "FP8": Recipe(products="fp8"),
    "FP8, delayed": Recipe(products="fp8 delayed"),
}


@dataclass(frozen=True)
class Update:
    """One update of all weights, each array float32 [weights].

    before: the stored weights. step: what was to be subtracted. after: the stored weights then.
    """

    before: "np.ndarray"
    step: "np.ndarray"
    after: "np.ndarray"


@dataclass(frozen=True)
class Curve:
    """What one training gave; the sequences have one value per step.

    losses: nats per character. changed: share of the stored weights that the step changed.
    zero_gradients: share of the weights' gradients that are exactly zero.
    update: the last update.
    saturated: how many values FP8 formats cut off in the whole training.
    """

    losses: tuple[float, ...]
    changed: tuple[float, ...]
    zero_gradients: tuple[float, ...]
    update: Update
    saturated: int = 0

    @property
    def last(self) -> float:
        """The mean loss of the last 20 steps: the batches differ, one loss says little."""
        return mean(self.losses[-20:])

    @property
    def fall(self) -> float:
        """How far the loss fell: the mean of the first ten steps less that of the last 20."""
        return mean(self.losses[:10]) - self.last


def mean(values: Sequence[float]) -> float:
    """
    >>> mean([1.0, 2.0])
    1.5
    """
    return sum(values) / len(values)
