"""Ways to divide a training step over ranks: data, tensor, pipeline, and shards of the state."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from utils.chip.collectives import Fabric, spread
from utils.cost.planner.architecture import Architecture

RECOMPUTE = ("none", "selective", "full")
MICRO_BATCHES = (1, 2, 4, 8)


@dataclass(frozen=True)
class Layout:
    """data x tensor x pipeline ranks; ranks of a tensor group are neighbours, then come those of a
    data group, and stages of a pipeline are farthest apart.

    zero: 0 to 3, what the data ranks share instead of holding a copy: nothing, the optimizer, also
        gradients, also weights (FSDP). micro_batch: sequences at a time. recompute: "none",
        "selective" (scores of attention), "full" (all but the input of each layer).
    chunks: of layers that each pipeline rank holds (interleaving). sequence_parallel: the tensor
        ranks share what lies between the matrices, too.
    """

    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    zero: int = 0
    micro_batch: int = 1
    recompute: str = "none"
    chunks: int = 1
    sequence_parallel: bool = True

    @property
    def ranks(self) -> int:
        """Of all groups together."""
        return self.data * self.tensor * self.pipeline

    def __str__(self) -> str:
        parts = [f"data {self.data}", f"tensor {self.tensor}", f"pipeline {self.pipeline}"]
        parts += [f"ZeRO {self.zero}"] * (self.zero > 0) + [f"micro-batch {self.micro_batch}"]
        parts += [f"recompute {self.recompute}"] * (self.recompute != "none")
        parts += [f"{self.chunks} chunks"] * (self.chunks > 1)
        return ", ".join(parts)


class Layouts:
    """Many layouts as arrays of the same length, one per field; `recompute` as its place in
    RECOMPUTE.
    """

    def __init__(self, layouts: Sequence[Layout]) -> None:
        self.all = tuple(layouts)
        rows = [
            (
                x.data,
                x.tensor,
                x.pipeline,
                x.zero,
                x.micro_batch,
                RECOMPUTE.index(x.recompute),
                x.chunks,
                x.sequence_parallel,
            )
            for x in self.all
        ]
        columns = np.array(rows, dtype=np.int64).reshape(-1, 8).T
        (self.data, self.tensor, self.pipeline, self.zero, self.micro_batch, self.recompute,
         self.chunks, self.sequence_parallel) = columns  # fmt: skip

    def __len__(self) -> int:
        return len(self.all)


def check(
    layout: Layout, architecture: Architecture, fabric: Fabric, ranks: int, sequences: int
) -> None:
    """Raises ValueError, with what was found, what is allowed and what to do, if a layout cannot
    divide this architecture, this batch and these ranks.
    """
    sizes = (layout.data, layout.tensor, layout.pipeline, layout.micro_batch, layout.chunks)
    if min(sizes) < 1:
        raise ValueError(f"{layout}: every degree and the micro-batch is 1 or more")
    if layout.zero not in (0, 1, 2, 3) or layout.recompute not in RECOMPUTE:
        raise ValueError(
            f"{layout}: zero is a stage of 0 to 3, recompute one of {', '.join(RECOMPUTE)}"
        )
    if layout.ranks != ranks:
        raise ValueError(
            f"{layout}: {layout.data} x {layout.tensor} x {layout.pipeline} is {layout.ranks}, and"
            f" the cluster has {ranks} ranks: the product must be that"
        )
    for name in ("heads", "feed_forward"):
        if (size := getattr(architecture, name)) % layout.tensor:
            raise ValueError(
                f"{layout}: {name} {size} of {architecture.name} is not a multiple of"
                f" {layout.tensor} tensor ranks: take a divisor of {size}"
            )
    item = -(-architecture.layers // layout.pipeline)
    if layout.pipeline > architecture.layers or layout.chunks > item:
        raise ValueError(
            f"{layout}: {architecture.layers} layers leave some of {layout.pipeline} stages of"
            f" {layout.chunks} chunks empty: take fewer stages or chunks"
        )
    if sequences % (layout.data * layout.micro_batch):
        raise ValueError(
            f"{layout}: {sequences} sequences per step cannot be given to {layout.data} data ranks,"
            f" {layout.micro_batch} at a time: change tokens_per_step to a multiple of"
            f" {layout.data * layout.micro_batch} sequences"
        )
    rounds = sequences // (layout.data * layout.micro_batch)
    if layout.chunks > 1 and rounds % layout.pipeline:
        raise ValueError(
            f"{layout}: {rounds} micro-batches are not a multiple of {layout.pipeline} stages, and"
            " chunks that interleave need that: take 1 chunk, or another number of sequences"
        )
    if not even(layout, fabric):
        raise ValueError(
            f"{layout}: its groups fill chips or nodes of {fabric.name} in part: take degrees that"
            f" divide {', '.join(str(tier.ranks) for tier in fabric.tiers)} and their products"
        )


def even(layout: Layout, fabric: Fabric) -> bool:
    """Whether every chip and node that a group touches has as many of its members."""
    strides = (1, layout.tensor, layout.tensor * layout.data)
    groups = zip((layout.tensor, layout.data, layout.pipeline), strides, strict=True)
    return all(ranks == 1 or _spreads(fabric, ranks, stride) for ranks, stride in groups)


def _spreads(fabric: Fabric, ranks: int, stride: int) -> bool:
    try:
        members = spread(fabric, ranks, stride)
    except ValueError:
        return False
    tiers = zip(fabric.tiers, members, strict=True)
    return all(n == 1 or tier.part(n) is not None for tier, n in tiers)


def divisors(number: int) -> list[int]:
    """
    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


def possible(
    architecture: Architecture,
    fabric: Fabric,
    ranks: int,
    sequences: int,
    fused_attention: bool = True,
) -> list[Layout]:
    """Every layout that divides the architecture, the batch and the ranks without remainder.

    Selective recomputation is left out where fused attention keeps no scores, and ZeRO where there
    is one data rank.
    """
    recompute = [item for item in RECOMPUTE if not (fused_attention and item == "selective")]
    results = []
    for tensor in divisors(math.gcd(ranks, architecture.heads)):
        if architecture.feed_forward % tensor:
            continue
        for pipeline in divisors(ranks // tensor):
            data = ranks // tensor // pipeline
            degrees = Layout(data, tensor, pipeline)
            if pipeline > architecture.layers or sequences % data or not even(degrees, fabric):
                continue
            results += [
                Layout(data, tensor, pipeline, zero, size, what)
                for zero in range(4 if data > 1 else 1)
                for size in MICRO_BATCHES
                if sequences // data % size == 0
                for what in recompute
            ]
    return results
