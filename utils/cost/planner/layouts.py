"""Ways to divide a training step over ranks: data, tensor, pipeline, context, experts, and shards
of the state.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from utils.chip.collectives import Fabric, tier_sizes
from utils.cost.planner.architecture import Architecture

RECOMPUTE = ("none", "selective", "full")
MICRO_BATCHES = (1, 2, 4, 8)
SCHEDULES = ("1f1b", "zb-h1", "zb-h2")
"""Of a pipeline. The last two are those of Qi et al., "Zero Bubble Pipeline Parallelism"
(arXiv:2401.10241), table 2: gradients of weights are computed when a stage would wait.
"""


@dataclass(frozen=True)
class Layout:
    """data x tensor x pipeline x context ranks; ranks of a tensor group are neighbours, then come
    those of a context and of a data group, and stages of a pipeline are farthest apart.

    zero: 0 to 3, what the data ranks share instead of holding a copy: nothing, the optimizer, also
        gradients, also weights (FSDP). micro_batch: sequences at a time. recompute: "none",
        "selective" (scores of attention), "full" (all but the input of each layer).
    chunks: of layers that each pipeline rank holds (interleaving). sequence_parallel: the tensor
        ranks share what lies between the matrices, too.
    context: ranks that divide each sequence, among them keys and values go round (ring attention).
    expert: of the data x context ranks, how many divide the experts. schedule: of SCHEDULES.
    """

    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    zero: int = 0
    micro_batch: int = 1
    recompute: str = "none"
    chunks: int = 1
    sequence_parallel: bool = True
    context: int = 1
    expert: int = 1
    schedule: str = "1f1b"

    @property
    def replicas(self) -> int:
        """Ranks with the same weights outside the experts."""
        return self.data * self.context

    @property
    def ranks(self) -> int:
        """Of all groups together."""
        return self.replicas * self.tensor * self.pipeline

    def __str__(self) -> str:
        parts = [f"data {self.data}", f"tensor {self.tensor}", f"pipeline {self.pipeline}"]
        parts += [f"ZeRO {self.zero}"] * (self.zero > 0) + [f"micro-batch {self.micro_batch}"]
        parts += [f"recompute {self.recompute}"] * (self.recompute != "none")
        parts += [f"{self.chunks} chunks"] * (self.chunks > 1)
        return ", ".join(parts) + self.further

    @property
    def further(self) -> str:
        """Context, experts and schedule in words, where they are not the usual ones."""
        parts = [f", context {self.context}"] * (self.context > 1)
        parts += [f", experts {self.expert}"] * (self.expert > 1)
        return "".join(parts + [f", {self.schedule}"] * (self.schedule != "1f1b"))


class Layouts:
    """Many layouts as arrays of the same length, one per field; `recompute` and `schedule` as their
    places in RECOMPUTE and SCHEDULES.
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
                x.context,
                x.expert,
                SCHEDULES.index(x.schedule),
            )
            for x in self.all
        ]
        columns = np.array(rows, dtype=np.int64).reshape(-1, 11).T
        (self.data, self.tensor, self.pipeline, self.zero, self.micro_batch, self.recompute,
         self.chunks, self.sequence_parallel, self.context, self.expert,
         self.schedule) = columns  # fmt: skip
        self.replicas = self.data * self.context

    def __len__(self) -> int:
        return len(self.all)


def check(
    layout: Layout, architecture: Architecture, fabric: Fabric, ranks: int, sequences: int
) -> None:
    """Raises ValueError, with what was found, what is allowed and what to do, if a layout cannot
    divide this architecture, this batch and these ranks.
    """
    sizes = (layout.data, layout.tensor, layout.pipeline, layout.micro_batch, layout.chunks,
             layout.context, layout.expert)  # fmt: skip
    if min(sizes) < 1:
        raise ValueError(f"{layout}: every degree and the micro-batch is 1 or more")
    if layout.zero not in (0, 1, 2, 3) or layout.recompute not in RECOMPUTE:
        raise ValueError(
            f"{layout}: zero is a stage of 0 to 3, recompute one of {', '.join(RECOMPUTE)}"
        )
    if layout.schedule not in SCHEDULES:
        raise ValueError(f"no schedule {layout.schedule!r}; there are {', '.join(SCHEDULES)}")
    if layout.ranks != ranks:
        raise ValueError(
            f"{layout}: {layout.data} x {layout.tensor} x {layout.pipeline}"
            f"{f' x {layout.context}' * (layout.context > 1)} is {layout.ranks}, and the"
            f" cluster has {ranks} ranks: the product must be that"
        )
    for name in ("heads", "feed_forward"):
        if (size := getattr(architecture, name)) % layout.tensor:
            raise ValueError(
                f"{layout}: {name} {size} of {architecture.name} is not a multiple of"
                f" {layout.tensor} tensor ranks: take a divisor of {size}"
            )
    if architecture.experts % layout.expert or layout.replicas % layout.expert:
        raise ValueError(
            f"{layout}: {layout.expert} expert ranks have to divide the {architecture.experts}"
            f" experts of {architecture.name} and the {layout.replicas} ranks of data x context:"
            f" take a divisor of {math.gcd(architecture.experts, layout.replicas)}"
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
    wanted = in_flight(layout.schedule, layout.pipeline)
    if layout.schedule != "1f1b" and (layout.chunks > 1 or layout.pipeline < 2 or rounds < wanted):
        raise ValueError(
            f"{layout}: {layout.schedule} takes 2 stages or more of 1 chunk, and here at least"
            f" {wanted} micro-batches, found {layout.pipeline} stages of {layout.chunks} chunks"
            f" and {rounds} micro-batches: take 1f1b, or more sequences"
        )
    if not even(layout, fabric):
        raise ValueError(
            f"{layout}: its groups fill chips or nodes of {fabric.name} in part: take degrees that"
            f" divide {', '.join(str(tier.ranks) for tier in fabric.tiers)} and their products"
        )


def in_flight(schedule: str, pipeline: int) -> int:
    """Micro-batches that wait for their backward pass on the first stage, if there are as many."""
    return 2 * pipeline - 1 if schedule == "zb-h2" else pipeline


def even(layout: Layout, fabric: Fabric) -> bool:
    """Whether every chip and node that a group touches has as many of its members."""
    return all(n == 1 or _spreads(fabric, n, stride) for n, stride in groups(layout).values())


def groups(layout: Layout) -> dict[str, tuple[int, int]]:
    """(ranks, distance of neighbours) by what they have in common; of "data" those that sum the
    gradients outside the experts.
    """
    x = layout
    return {
        "tensor": (x.tensor, 1),
        "context": (x.context, x.tensor),
        "data": (x.replicas, x.tensor),
        "experts": (x.expert, x.tensor),
        "same experts": (x.replicas // x.expert, x.tensor * x.expert),
        "pipeline": (x.pipeline, x.tensor * x.replicas),
    }


def _spreads(fabric: Fabric, ranks: int, stride: int) -> bool:
    try:
        members = tier_sizes(fabric, ranks, stride)
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
    contexts: Sequence[int] = (1,),
    schedules: Sequence[str] = SCHEDULES[:1],
) -> list[Layout]:
    """Every layout that divides the architecture, the batch and the ranks without remainder.

    Selective recomputation is left out where fused attention keeps no scores, and ZeRO where there
    is one data rank. Degrees of context, and schedules, are those that are asked for. Raises
    ValueError for those that there are not.
    """
    unknown = [*(set(schedules) - set(SCHEDULES)), *(str(n) for n in contexts if n < 1)]
    if unknown:
        raise ValueError(
            f"no schedule or degree of context {', '.join(unknown)}: schedules are"
            f" {', '.join(SCHEDULES)}, a degree is 1 or more"
        )
    recompute = [item for item in RECOMPUTE if not (fused_attention and item == "selective")]
    results = []
    for tensor in divisors(math.gcd(ranks, architecture.heads)):
        if architecture.feed_forward % tensor:
            continue
        for context, expert in itertools.product(contexts, divisors(architecture.experts)):
            if ranks // tensor % context:
                continue
            for pipeline in divisors(ranks // tensor // context):
                data = ranks // tensor // context // pipeline
                degrees = Layout(data, tensor, pipeline, context=context, expert=expert)
                if (
                    pipeline > architecture.layers
                    or sequences % data
                    or degrees.replicas % expert
                    or not even(degrees, fabric)
                ):
                    continue
                results += [
                    Layout(data, tensor, pipeline, zero, size, what, 1, True, context, expert, kind)
                    for zero in range(4 if degrees.replicas > 1 else 1)
                    for size in MICRO_BATCHES
                    if sequences // data % size == 0
                    for kind in schedules
                    if kind == "1f1b"
                    or 1 < pipeline
                    and in_flight(kind, pipeline) <= sequences // data // size
                    for what in recompute
                ]
    return results
