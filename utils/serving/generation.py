"""Least times of generating text on a machine: the first token and each one after it.

A roofline of one forward pass, on `utils.chip.roofline`: weights are read once for the whole
batch, keys and values once for each sequence. Perfect overlap, nothing recomputed: no machine is
faster, and how much slower it is only a measurement says. Communication between ranks is in
`tensor_parallel` only.
"""

import math
from dataclasses import dataclass

from utils.chip import collectives
from utils.chip.hardware import Machine
from utils.chip.roofline import Estimate, Work, bound, width_bytes
from utils.cost.planner.architecture import Architecture


def weight_bytes(model: Architecture, dtype: str = "bf16") -> float:
    """Bytes of weights that a forward pass reads: all but the table of tokens, of which it reads a
    row for each token. A tied table is also the head, and is read.
    """
    table = 0 if model.tied else (model.vocabulary + model.positions) * model.width
    return (model.parameters - table) * width_bytes(dtype)


def cache_bytes(model: Architecture, tokens: int, dtype: str = "bf16") -> float:
    """Bytes of the keys and values of `tokens` tokens, in all layers."""
    row = 2 * model.layers * model.key_value_heads * model.head_width
    return tokens * row * width_bytes(dtype)


def _flops(model: Architecture, new: int, seen: float) -> float:
    """FLOP of `new` tokens that attend to `seen` tokens each, on average; the head is not in."""
    products, _ = model.layer_flops(0)
    scores = 4 * seen * model.heads * model.head_width
    return new * model.layers * (products + scores)


def prefill(
    model: Architecture,
    machine: Machine,
    tokens: int,
    batch: int = 1,
    dtype: str = "bf16",
    start: int = 0,
) -> Estimate:
    """The first token: a forward pass over prompts of `tokens` tokens, `batch` of them.

    start: tokens before them whose keys and values are known, as before a later piece of a prompt.
    Causal attention is counted as done, half of the scores. The head is needed for the last token
    of each prompt only.
    """
    _check(tokens=tokens, batch=batch)
    head = 2 * model.vocabulary * model.width
    flops = batch * (_flops(model, tokens, start + tokens / 2) + head)
    moved = weight_bytes(model, dtype) + batch * cache_bytes(model, start + tokens, dtype)
    return bound(Work(f"prefill {batch} x {tokens} of {model.name}", flops, moved), machine, dtype)


def decode(
    model: Architecture, machine: Machine, context: int, batch: int = 1, dtype: str = "bf16"
) -> Estimate:
    """One more token for each of `batch` sequences that are `context` tokens long."""
    _check(context=context, batch=batch)
    head = 2 * model.vocabulary * model.width
    flops = batch * (_flops(model, 1, context) + head)
    moved = weight_bytes(model, dtype) + batch * cache_bytes(model, context, dtype)
    return bound(Work(f"decode {batch} at {context} of {model.name}", flops, moved), machine, dtype)


def largest_batch(model: Architecture, machine: Machine, context: int, dtype: str = "bf16") -> int:
    """Sequences whose keys and values fit beside the weights in device memory; 0 if not even the
    weights do. Buffers of the software come on top.
    """
    _check(context=context)
    free = machine.hbm_bytes - model.parameters * width_bytes(dtype)
    return max(0, math.floor(free / cache_bytes(model, context, dtype)))


@dataclass(frozen=True)
class Parallel:
    """One decode step over several ranks. compute_s: of a rank's share, a bound. messages: sums
    over all ranks, one after the other, of message_bytes each. sent_bytes: by one rank, in all of
    them. send_s: modelled, not overlapped, without the start of the software.
    """

    ranks: int
    compute_s: float
    messages: int
    message_bytes: float
    sent_bytes: float
    send_s: float

    @property
    def seconds(self) -> float:
        """Of the step: a sum is needed before the next product can begin."""
        return self.compute_s + self.send_s


def tensor_parallel(
    model: Architecture,
    machine: Machine,
    fabric: collectives.Fabric,
    ranks: int,
    context: int,
    batch: int = 1,
    dtype: str = "bf16",
) -> Parallel:
    """A decode step whose matrices are divided over the first `ranks` of a fabric.

    machine: all ranks of the fabric together. Each layer sums twice, behind attention and behind
    the perceptron: [batch, width] in that dtype. Gathering the logits is left out.
    """
    _check(ranks=ranks)
    whole = decode(model, machine, context, batch, dtype)
    size = batch * model.width * width_bytes(dtype)
    messages = 2 * model.layers if ranks > 1 else 0
    item = collectives.seconds("all-reduce", size, fabric, ranks)
    return Parallel(
        ranks, whole.seconds * fabric.ranks / ranks, messages, size,
        messages * float(item.bytes_sent_per_rank), messages * float(item.seconds),
    )  # fmt: skip


def _check(**counts: int) -> None:
    for name, count in counts.items():
        if count < 1:
            raise ValueError(f"{name} is 1 or more, found {count!r}")
