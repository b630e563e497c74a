"""What the ranks send each other in one step: volume, and time if nothing hid it.

Tensor groups sum activations in every layer, data groups sum gradients or gather shards of weights,
stages of a pipeline hand activations on, ranks of a context pass keys and values round, and each
token goes to the ranks of its experts and back. Times are those of `utils.chip.collectives`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np

from utils.chip.collectives import Fabric, seconds, tier_sizes
from utils.chip.training_memory import RECIPES, Recipe
from utils.cost.planner.architecture import Architecture
from utils.cost.planner.layouts import RECOMPUTE, Layouts
from utils.cost.planner.memory import VALUE, share_on, stage_layers
from utils.cost.planner.settings import Settings

PARTS = ("tensor", "data", "pipeline", "context", "experts")


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
    tokens = x.micro_batch * length / x.context
    state = VALUE * tokens * a.width  # the hidden states of a micro-batch
    rows = a.active_experts * settings.load(a, x.expert)
    again = x.recompute == RECOMPUTE.index("full")
    _, layers, _ = stage_layers(a.layers, x.pipeline)

    # A sum over the ranks after attention and after the perceptron, forward and backward; with
    # sequence parallelism a reduce-scatter and an all-gather, which is the same volume. Inputs that
    # were kept in shares are gathered once more, behind a product (Korthikanti, section 4.2.2).
    # Of rows that came to experts on other ranks, all are summed.
    passes = (2 + again) * (1 + np.where(x.expert > 1, rows, 1))
    tensor = _of("all-reduce", state, fabric, x.tensor, 1, passes * layers * steps)

    # A ring (Liu et al., "Ring Attention with Blockwise Transformers", 2023): the keys and values
    # of a rank go round, backward also their gradients.
    keys = np.ceil(a.key_value_heads / x.tensor)
    block = VALUE * 2 * keys * a.head_width * tokens
    turns = (x.context - 1) * (3 + again) * layers * steps
    context = _of("permute", block, fabric, x.context, x.tensor, turns)

    # To the experts and back, forward and backward; each tensor rank sends its share.
    hops = 2 * (2 + again) * layers * steps
    experts = _of("all-to-all", state * rows / x.tensor, fabric, x.expert, x.tensor, hops)

    rows_of_ends = a.vocabulary_on(x.tensor) * a.width
    ends = rows_of_ends * np.where(x.pipeline == 1, 1 if a.tied else 2, 1)
    data = _sum(
        *(_gradients(n, same, stride, x, fabric, layers, steps, RECIPES[settings.recipe])
          for n, same, stride in share_on(a, x, layers, ends))
    )  # fmt: skip

    # Each tensor rank sends its share (Narayanan et al., SC 2021, section 4.1), activations on and
    # gradients back; of two stages each is an end, from which one of the two goes nowhere.
    sent = state / x.tensor
    hops = steps * (2 * x.chunks - (x.pipeline == 2)) * (x.pipeline > 1)
    pipeline = _of("permute", sent, fabric, x.pipeline, x.tensor * x.replicas, hops)
    return dict(zip(PARTS, (tensor, data, pipeline, context, experts), strict=True))


def _gradients(
    here: np.ndarray, same: np.ndarray, stride: np.ndarray, x: Layouts, fabric: Fabric,
    layers: np.ndarray, steps: np.ndarray, recipe: Recipe,
) -> Traffic:  # fmt: skip
    """Between `same` ranks that hold the same parameters `here`, as the ZeRO stage says."""
    gradients, weights = recipe.gradients * here, recipe.weights * here
    # What is divided travels layer by layer, so that no rank ever has more than a few whole ones.
    scattered, gathered = (np.where(x.zero >= stage, layers, 1) for stage in (2, 3))
    # Divided gradients cannot wait for the last micro-batch, nor can gathered weights.
    scatters = scattered * np.select([x.zero == 1, x.zero > 1], [1, steps], 0)
    gathers = gathered * np.select([x.zero == 0, x.zero == 3], [0, 2 * steps], 1)
    return _sum(
        _of("all-reduce", gradients, fabric, same, stride, x.zero == 0),
        _of("reduce-scatter", gradients / scattered, fabric, same, stride, scatters),
        _of("all-gather", weights / gathered, fabric, same, stride, gathers),
    )


def _of(
    kind: str, size: np.ndarray, fabric: Fabric, ranks: np.ndarray, stride: np.ndarray | int,
    times: np.ndarray,
) -> Traffic:  # fmt: skip
    size, ranks, stride, times = np.broadcast_arrays(size, ranks, stride, times)
    sent, spent = np.zeros((2, len(ranks)))
    if len(some := np.flatnonzero((ranks > 1) & (times > 0))):
        item = seconds(kind, size[some].astype(float), fabric, ranks[some], stride=stride[some])
        sent[some] = item.bytes_sent_per_rank * times[some]
        spent[some] = item.seconds * times[some]
    return Traffic(sent, spent)


def _sum(*parts: Traffic) -> Traffic:
    return Traffic(
        reduce(np.add, (part.bytes for part in parts)),
        reduce(np.add, (part.seconds for part in parts)),
    )


def reach(fabric: Fabric, ranks: int, stride: int) -> str:
    """The outermost tier that a group has to cross: "cores of a chip", "nodes, EFA", or "alone"."""
    if ranks == 1:
        return "alone"
    members = tier_sizes(fabric, ranks, stride)
    return [tier.name for tier, n in zip(fabric.tiers, members, strict=True) if n > 1][-1]
