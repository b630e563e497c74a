"""What the ranks send each other in one step: volume, and time if nothing hid it.

Tensor groups sum activations in every layer, data groups sum gradients or gather shards of weights,
stages of a pipeline hand activations on. Times are those of `utils.chip.collectives`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np

from utils.chip.collectives import Fabric, seconds, spread
from utils.chip.training_memory import RECIPES
from utils.cost.planner.architecture import Architecture
from utils.cost.planner.layouts import RECOMPUTE, Layouts
from utils.cost.planner.memory import VALUE, stage_layers
from utils.cost.planner.settings import Settings

PARTS = ("tensor", "data", "pipeline")


@dataclass(frozen=True)
class Traffic:
    """Of one part, one value per layout: what a rank sends, bytes and seconds per step, and the
    latter without the collectives that wait for nothing but the end of the step.
    """

    bytes: np.ndarray
    seconds: np.ndarray


def traffic(
    architecture: Architecture,
    layouts: Layouts,
    fabric: Fabric,
    length: int,
    sequences: int,
    settings: Settings,
) -> Mapping[str, Traffic]:
    """Traffic by part, of the busiest stage."""
    a, x = architecture, layouts
    steps = sequences // (x.data * x.micro_batch)
    state = VALUE * x.micro_batch * length * a.width  # the hidden states of a micro-batch
    _, layers, _ = stage_layers(a.layers, x.pipeline)

    # A sum over the ranks after attention and after the perceptron, forward and backward; with
    # sequence parallelism a reduce-scatter and an all-gather, which is the same volume. Inputs that
    # were kept in shares are gathered once more, behind a product (Korthikanti, section 4.2.2).
    passes = 2 * (2 + (x.recompute == RECOMPUTE.index("full")))
    tensor = _of("all-reduce", state, fabric, x.tensor, 1, passes * layers * steps)

    recipe = RECIPES[settings.recipe]
    here = layers * a.layer_on(x.tensor) + a.vocabulary_on(x.tensor) * a.width * np.where(
        x.pipeline == 1, 1 if a.tied else 2, 1
    )
    gradients, weights = recipe.gradients * here, recipe.weights * here
    # What is divided travels layer by layer, so that no rank ever has more than a few whole ones.
    scattered, gathered = (np.where(x.zero >= stage, layers, 1) for stage in (2, 3))
    data = _sum(
        _of("all-reduce", gradients, fabric, x.data, x.tensor, x.zero == 0),
        # Divided gradients cannot wait for the last micro-batch, nor can gathered weights.
        _of(
            "reduce-scatter",
            gradients / scattered,
            fabric,
            x.data,
            x.tensor,
            scattered * np.select([x.zero == 1, x.zero > 1], [1, steps], 0),
        ),  # fmt: skip
        _of(
            "all-gather",
            weights / gathered,
            fabric,
            x.data,
            x.tensor,
            gathered * np.select([x.zero == 0, x.zero == 3], [0, 2 * steps], 1),
        ),  # fmt: skip
    )

    # Each tensor rank sends its share (Narayanan et al., SC 2021, section 4.1), activations on and
    # gradients back; of two stages each is an end, from which one of the two goes nowhere.
    sent = state / x.tensor
    hops = steps * (2 * x.chunks - (x.pipeline == 2)) * (x.pipeline > 1)
    pipeline = _of("permute", sent, fabric, x.pipeline, x.tensor * x.data, hops)
    return {"tensor": tensor, "data": data, "pipeline": pipeline}


def _of(
    kind: str, size: np.ndarray, fabric: Fabric, ranks: np.ndarray, stride: np.ndarray | int,
    times: np.ndarray,
) -> Traffic:  # fmt: skip
    item = seconds(kind, np.asarray(size, float), fabric, ranks=ranks, stride=stride)
    return Traffic(item.bytes_sent_per_rank * times, item.seconds * times)


def _sum(*parts: Traffic) -> Traffic:
    return Traffic(
        reduce(np.add, (part.bytes for part in parts)),
        reduce(np.add, (part.seconds for part in parts)),
    )


def reach(fabric: Fabric, ranks: int, stride: int) -> str:
    """The outermost tier that a group has to cross: "cores of a chip", "nodes, EFA", or "alone"."""
    if ranks == 1:
        return "alone"
    members = spread(fabric, ranks, stride)
    return [tier.name for tier, n in zip(fabric.tiers, members, strict=True) if n > 1][-1]
