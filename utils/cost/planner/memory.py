"""Memory of a rank by part: weights, gradients, optimizer, activations, logits, buffers.

16-bit activations, and one forward and one backward pass in turn (1F1B): the first stage of a
pipeline holds activations of as many micro-batches as there are stages, the last stage those of one
and the logits. Where layers do not divide evenly, a stage between them has one more. What is given
is the fullest of the three. With a zero-bubble schedule every stage holds as many micro-batches as
the first (Qi et al., table 2), since gradients of weights wait.
"""

from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np

from utils.chip.training_memory import RECIPES
from utils.cost.planner.architecture import Architecture
from utils.cost.planner.layouts import RECOMPUTE, SCHEDULES, Layouts
from utils.cost.planner.settings import Settings

PARTS = ("weights", "gradients", "optimizer", "activations", "logits", "buffers")
VALUE = 2
"""Bytes of an activation."""
LOGIT = 4 + 2
"""A logit in FP32 for the loss, and its gradient in 16 bits."""


def activations_per_token(
    architecture: Architecture,
    length: int,
    tensor: np.ndarray,
    sequence_parallel: np.ndarray,
    fused_attention: bool,
    load: Any = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """Bytes of a layer for one token on one tensor rank: (without scores, of the scores).

    Kept are the inputs of what needs them again: both norms, the matrices, attention, the
    activation function, and the masks of dropout, one byte each. For a GPT with dropout these are
    the 34 and the 5 heads length / width of Korthikanti et al., MLSys 2023, section 4.1. A mixture
    of experts keeps each row that it sends to an expert, and each that comes back for its weight.
    """
    a = architecture
    keys = np.ceil(a.key_value_heads / tensor)
    kept = 2 * VALUE * a.width + VALUE * 2 * a.width  # inputs and outputs of two norms
    whole = kept + a.dropout * 2 * a.width
    attention = VALUE * (2 * a.heads / tensor + 2 * keys) * a.head_width  # q, result, k, v
    rows = a.active_experts * load
    perceptron = VALUE * rows * (2 + a.gated) * a.feed_forward / tensor
    whole = whole + (a.experts > 1) * 2 * VALUE * rows * a.width
    scores = (2 * VALUE + 1 if a.dropout else VALUE) * a.heads * length / tensor
    if fused_attention:
        attention = attention + 4 * a.heads / tensor  # the logarithm of each sum, FP32
        scores = 0.0 * scores
    shared = np.where(sequence_parallel, tensor, 1)
    return whole / shared + attention + perceptron, scores


def stage_layers(layers: int, pipeline: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Layers of the first, the fullest and the last stage. Those that have one layer less are the
    last, which has the head, and the first ones, which wait longest.
    """
    most = -(-layers // pipeline)
    missing = most * pipeline - layers
    return most - (missing > 1), most, most - (missing > 0)


def share_on(
    a: Architecture, x: Layouts, layers: Any, ends: Any = 0
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Parameters of a rank as (how many, ranks with the same, distance of these): all, or those
    outside the experts and then the experts. ends: parameters besides its layers.
    """
    if a.experts == 1:
        return [(layers * a.layer_on(x.tensor) + ends, x.replicas, x.tensor)]
    experts = layers * a.experts / x.expert * a.expert_on(x.tensor)
    return [
        (layers * a.shared_on(x.tensor) + ends, x.replicas, x.tensor),
        (experts, x.replicas // x.expert, x.tensor * x.expert),
    ]


def memory(
    architecture: Architecture, layouts: Layouts, length: int, sequences: int, settings: Settings
) -> Mapping[str, np.ndarray]:
    """Bytes on the fullest rank, by part, one value per layout."""
    a, x = architecture, layouts
    first, most, last = stage_layers(a.layers, x.pipeline)
    missing = most * x.pipeline - a.layers
    rows = a.vocabulary_on(x.tensor) * a.width
    norm = a.norm_vectors * a.width
    alone = x.pipeline == 1
    ends = rows + a.positions * a.width
    # A tied head is a second copy where the embedding is on another stage.
    head = np.where(alone & a.tied, 0, rows)
    steps = sequences // (x.data * x.micro_batch)
    first_holds = np.where(x.schedule == SCHEDULES.index("zb-h2"), 2 * x.pipeline - 1, x.pipeline)
    waiting = np.minimum(first_holds, steps)
    later = np.minimum(x.pipeline - np.maximum(missing - 1, 0), steps)
    later, end = np.where(x.schedule > 0, waiting, (later, np.ones_like(later)))
    stages = (
        _stage(a, x, first, ends + alone * (head + norm), waiting, alone, length, settings),
        _stage(a, x, most, 0 * rows, later, False, length, settings),
        _stage(a, x, last, head + norm + alone * ends, end, True, length, settings),
    )
    fullest = np.argmax([reduce(np.add, stage.values()) for stage in stages], axis=0)
    return {part: np.choose(fullest, [stage[part] for stage in stages]) for part in PARTS}


def _stage(
    a: Architecture,
    x: Layouts,
    layers: np.ndarray,
    ends: np.ndarray,
    waiting: np.ndarray,
    logits: np.ndarray | bool,
    length: int,
    settings: Settings,
) -> dict[str, np.ndarray]:
    """One stage. ends: parameters besides its layers. waiting: micro-batches whose backward pass is
    still to come. logits: whether it has them.
    """
    recipe = RECIPES[settings.recipe]
    here = share_on(a, x, layers, ends)
    tokens = x.micro_batch * length / x.context
    load = settings.load(a, x.expert)
    # Interleaved chunks keep a little more than one per stage (Korthikanti, section 4.2.3).
    more = np.where((x.chunks > 1) & (x.pipeline > 1),
                    1 + (x.pipeline - 1) / (x.pipeline * x.chunks), 1)  # fmt: skip
    rest, scores = activations_per_token(
        a, length, x.tensor, x.sequence_parallel, settings.fused_attention, load
    )
    shared = np.where(x.sequence_parallel, x.tensor, 1)
    full = RECOMPUTE.index("full")
    kept = np.where(x.recompute == full, VALUE * a.width / shared,
                    rest + np.where(x.recompute == 0, scores, 0))  # fmt: skip
    # One layer is in full while it is gone through backward, if it was not kept.
    again = np.where(x.recompute == full, rest, 0) + np.where(x.recompute > 0, scores, 0)
    activations = tokens * (layers * waiting * more * kept + again)

    def held(size: int, sharded_from: int) -> np.ndarray:
        parts = [n / np.where(x.zero >= sharded_from, same, 1) for n, same, _ in here]
        return size * reduce(np.add, parts)

    layer = a.layer_on(x.tensor, x.expert)
    # While gradients are divided, those of one layer are whole until they are summed; weights are
    # gathered one layer ahead of the one that computes.
    gathered = np.where(x.zero == 3, 2 * recipe.weights * layer, 0)
    gathered = gathered + np.where(x.zero >= 2, recipe.gradients * layer, 0)
    # The gradient of the widest intermediate result, rows to and from experts, the gathered input
    # of a layer, and one message each way between stages.
    rows = a.active_experts * load
    passing = VALUE * (rows * (1 + a.gated) * a.feed_forward / x.tensor
                       + np.where(x.expert > 1, 2 * rows * a.width / shared, 0)
                       + np.where(x.tensor > 1, a.width, 0)
                       + np.where(x.pipeline > 1, 2 * a.width / shared, 0))  # fmt: skip
    rows = a.vocabulary_on(x.tensor)
    return {
        "weights": held(recipe.weights, 3),
        "gradients": held(recipe.gradients, 2),
        "optimizer": held(recipe.master + recipe.moments, 1),
        "activations": activations,
        "logits": np.where(logits, tokens * (LOGIT * rows + 2 * VALUE * a.width / shared), 0.0),
        "buffers": gathered + tokens * passing,
    }
