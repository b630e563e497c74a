"""Time of a training step by part.

Matrix products at a share of the peak rate, what lies between them at the rate of memory, then
collectives, the wait of a pipeline that fills and drains, and the optimizer. An estimate: it knows
no launch overheads, no stragglers and no congestion.
"""

from collections.abc import Mapping

import numpy as np

from utils.chip.collectives import overlap
from utils.chip.training_memory import RECIPES
from utils.cost.planner.architecture import Architecture
from utils.cost.planner.cluster import Cluster
from utils.cost.planner.communication import Traffic
from utils.cost.planner.layouts import RECOMPUTE, Layouts
from utils.cost.planner.memory import VALUE, share_on, stage_layers
from utils.cost.planner.settings import Settings

PARTS = ("products", "between", "tensor", "data", "pipeline", "bubble", "optimizer", "context",
         "experts")  # fmt: skip
SAID = {
    "products": "matrix products",
    "between": "work bound by memory",
    "tensor": "sums over tensor ranks",
    "data": "traffic between data ranks",
    "pipeline": "messages between stages",
    "bubble": "the bubble of the pipeline",
    "optimizer": "the update of the weights",
    "context": "keys and values between context ranks",
    "experts": "rows between expert ranks",
}


def step_seconds(
    architecture: Architecture,
    layouts: Layouts,
    cluster: Cluster,
    length: int,
    sequences: int,
    settings: Settings,
    sent: Mapping[str, Traffic],
) -> Mapping[str, np.ndarray]:
    """Seconds by part, as far as nothing hides them; their sum is the step. One per layout."""
    a, x = architecture, layouts
    tokens = x.micro_batch * length / x.context
    steps = sequences // (x.data * x.micro_batch)
    rate = cluster.flops * settings.kernel_efficiency
    products, between = _micro_batch(a, x, tokens, length, settings)
    products = steps * products / rate
    between = steps * between / cluster.hbm_bytes_per_s
    layers = stage_layers(a.layers, x.pipeline)[1]
    with_weights, scores = a.layer_flops(length, x.tensor, settings.load(a, x.expert))

    tensor = (1 - settings.tensor_overlap) * sent["tensor"].seconds
    experts = (1 - settings.tensor_overlap) * sent["experts"].seconds
    # Keys and values travel while scores of those that came before are computed.
    attention = steps * layers * tokens * 3 * scores / rate
    context = overlap(attention, sent["context"].seconds, settings.context_overlap) - attention
    busy = products + between + tensor + context + experts
    # Weights and divided gradients travel in every micro-batch, whole gradients during the last
    # backward pass, two thirds of the work.
    window = np.where(x.zero > 1, busy, 2 / 3 * busy / steps)
    data = overlap(window, sent["data"].seconds, settings.data_overlap) - window
    work = busy + sent["pipeline"].seconds
    recipe = RECIPES[settings.recipe]
    here = sum(n / np.where(x.zero > 0, same, 1) for n, same, _ in share_on(a, x, layers))
    # Gradients of weights wait for no other stage: zb-h1 computes two times those of a micro-batch
    # in each wait, zb-h2 three times (Qi et al., table 2).
    of_weights = steps * layers * tokens * with_weights / rate
    filled = np.choose(x.schedule, (0, 2, 3)) * of_weights
    updated = 2 * (recipe.total - recipe.gradients) + recipe.gradients  # read and written
    return {
        "products": products,
        "between": between,
        "tensor": tensor,
        "data": data,
        "pipeline": sent["pipeline"].seconds,
        # Narayanan et al., SC 2021, section 2.2.
        "bubble": np.maximum(work - filled, 0) * (x.pipeline - 1) / (steps * x.chunks),
        "optimizer": updated * here / cluster.hbm_bytes_per_s,
        "context": context,
        "experts": experts,
    }


def _micro_batch(
    a: Architecture, x: Layouts, tokens: np.ndarray, length: int, settings: Settings
) -> tuple[np.ndarray, np.ndarray]:
    """FLOP, and bytes to and from memory between them, of the busiest stage for a micro-batch."""
    with_weights, scores = a.layer_flops(length, x.tensor, settings.load(a, x.expert))
    first, middle, last = stage_layers(a.layers, x.pipeline)
    head = 2 * a.vocabulary_on(x.tensor) * a.width
    again = x.recompute == RECOMPUTE.index("full")
    layer = (3 + again) * (with_weights + scores) + np.where(x.recompute == 1, scores, 0)
    alone = x.pipeline == 1
    flops = tokens * np.maximum(
        np.where(alone, first, middle) * layer + alone * 3 * head, last * layer + 3 * head
    )
    moved = _moved(a, x, length, settings) * (1 + again / 3)
    # The loss reads the logits, and writes and reads their gradient.
    loss = (2 * VALUE + 2 * 4) * a.vocabulary_on(x.tensor)
    return flops, tokens * np.maximum(middle * moved, last * moved + loss)


def _moved(a: Architecture, x: Layouts, length: int, settings: Settings) -> np.ndarray:
    """Bytes of a layer and token through memory, forward and backward, between the products.

    Values: a norm reads and writes, and backward reads two and writes one, 5 of the width each;
    adding to the residual stream 3 forward and 3 backward, twice; an activation function 2 forward
    and 3 backward of its width (gated 3 and 5); rotating queries and keys 2 and 2; rows are put in
    the order of experts and back, 2 and 2 of the width each. Without fused
    attention, the scores pass 10 times: scaled, masked and normalised in one go, and dropped out.
    """
    shared = np.where(x.sequence_parallel, x.tensor, 1)
    keys = np.ceil(a.key_value_heads / x.tensor)
    whole = (2 * 5 + 2 * 6) * a.width / shared
    whole = whole + a.dropout * 4 * a.width / shared
    rows = a.active_experts * settings.load(a, x.expert)
    whole = whole + (a.experts > 1) * 8 * rows * a.width / shared
    perceptron = (8 if a.gated else 5) * rows * a.feed_forward / x.tensor
    rotated = 0 if a.positions else 4 * (a.heads / x.tensor + keys) * a.head_width
    scores = 0 if settings.fused_attention else 10 * a.heads * length / x.tensor
    return VALUE * (whole + perceptron + rotated + scores)
