"""`plans(architecture, cluster, length, tokens_per_step)`: every layout, ranked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from utils.cost.planner.architecture import Architecture
from utils.cost.planner.cluster import Cluster
from utils.cost.planner.communication import reach, traffic
from utils.cost.planner.layouts import SCHEDULES, Layout, Layouts, check, groups, possible
from utils.cost.planner.memory import memory
from utils.cost.planner.settings import Settings
from utils.cost.planner.settings import settings as guesses
from utils.cost.planner.steps import step_seconds


@dataclass(frozen=True)
class Plan:
    """One layout, evaluated. An estimate; see `utils.cost.planner.published` for how good it is.

    memory: bytes of the fullest rank by part; usable_bytes: what a rank has, less the reserve.
    seconds: of a step, by part, as far as nothing hides them. sent_bytes: by one rank in a step.
    reach: the outermost wiring that its groups cross, by what a group has in common.
    mfu: model FLOPs, without recomputation, by time and peak rate.
    """

    layout: Layout
    memory: Mapping[str, float]
    usable_bytes: float
    seconds: Mapping[str, float]
    sent_bytes: Mapping[str, float]
    reach: Mapping[str, str]
    mfu: float

    @property
    def memory_bytes(self) -> float:
        """Of the fullest rank."""
        return sum(self.memory.values())

    @property
    def fits(self) -> bool:
        """Whether the fullest rank has room for it."""
        return self.memory_bytes <= self.usable_bytes

    @property
    def step_seconds(self) -> float:
        """Time of one step."""
        return sum(self.seconds.values())


@dataclass(frozen=True)
class Plans(Sequence[Plan]):
    """All layouts of a job, best first: those that fit by the time of a step, then those that do
    not by the memory that they need. A sequence of `Plan`, made when they are asked for.
    """

    architecture: Architecture
    cluster: Cluster
    length: int
    tokens_per_step: int
    settings: Settings
    layouts: Layouts
    memory: Mapping[str, np.ndarray]
    seconds: Mapping[str, np.ndarray]
    sent: Mapping[str, np.ndarray]

    @cached_property
    def usable_bytes(self) -> float:
        """Memory of a rank, less the reserve."""
        return self.cluster.hbm_bytes * (1 - self.settings.reserve)

    @cached_property
    def _memory_bytes(self) -> np.ndarray:
        return reduce(np.add, self.memory.values())

    @cached_property
    def fitting(self) -> int:
        """How many layouts fit."""
        return int(np.count_nonzero(self._memory_bytes <= self.usable_bytes))

    @cached_property
    def order(self) -> np.ndarray:
        """Places of the layouts, best first."""
        needed = self._memory_bytes
        too_much = needed > self.usable_bytes
        # Among equals the layout with fewer tensor ranks and stages first, which is simpler.
        simple = self.layouts.tensor * self.layouts.pipeline
        time = np.where(too_much, needed, reduce(np.add, self.seconds.values()))
        return np.lexsort((simple, time, too_much))

    def __len__(self) -> int:
        return len(self.layouts)

    def __getitem__(self, place: int) -> Plan:  # type: ignore[override]
        i = int(self.order[place])
        x = self.layouts.all[i]
        seconds = {part: float(values[i]) for part, values in self.seconds.items()}
        useful = self.tokens_per_step * self.architecture.flops_per_token(self.length)
        peak = self.cluster.ranks * self.cluster.flops
        return Plan(
            layout=x,
            memory={part: float(values[i]) for part, values in self.memory.items()},
            usable_bytes=self.usable_bytes,
            seconds=seconds,
            sent_bytes={part: float(values[i]) for part, values in self.sent.items()},
            reach={
                part: reach(self.cluster.fabric, ranks, stride)
                for part, (ranks, stride) in groups(x).items()
            },
            mfu=useful / (sum(seconds.values()) * peak),
        )

    @property
    def best(self) -> Plan:
        """Raises ValueError if no layout fits, with the one that needs least."""
        first = self[0]
        if not first.fits:
            raise ValueError(
                f"no layout of {self.architecture.name} fits on {self.cluster.name}: the smallest,"
                f" {first.layout}, needs {first.memory_bytes / 2**30:.1f} GiB of"
                f" {first.usable_bytes / 2**30:.1f} per rank; take more chips, or shorter sequences"
            )
        return first

    def families(self) -> list[Plan]:
        """The best of each combination of degrees, schedule and ZeRO stage."""
        seen, result = set(), []
        for place, i in enumerate(self.order):
            x = self.layouts.all[int(i)]
            key = (x.data, x.tensor, x.pipeline, x.zero, x.further)
            if key not in seen:
                seen.add(key)
                result.append(self[place])
        return result


def plans(
    architecture: Architecture,
    cluster: Cluster,
    length: int,
    tokens_per_step: int,
    layouts: Sequence[Layout] | None = None,
    settings: Settings | None = None,
    contexts: Sequence[int] = (1,),
    schedules: Sequence[str] = SCHEDULES[:1],
) -> Plans:
    """Evaluate and rank layouts.

    Args:
        length: tokens of a sequence. tokens_per_step: of all ranks together, whole sequences.
        layouts: by default all that divide everything without remainder.
        settings: guesses, by default those of `utils.cost.planner.settings.inputs`.
        contexts, schedules: which degrees of context and which of SCHEDULES to look at, if no
            layouts are given; expert ranks are tried wherever the architecture has experts.

    >>> from utils.cost.planner import architecture, cluster
    >>> plan = plans(architecture("llama-3.1-8b"), cluster("trn2.48xlarge", 16), 8192, 2**20)
    >>> plan.best.fits, plan.best.layout.ranks
    (True, 64)

    Raises ValueError, with what is allowed, for sizes that cannot be divided.
    """
    chosen = settings or guesses()
    if length < 1 or 0 < architecture.positions < length:
        most = f" to {architecture.positions}" * (architecture.positions > 0)
        raise ValueError(f"length {length}: {architecture.name} takes 1{most or ' or more'} tokens")
    if tokens_per_step < length or tokens_per_step % length:
        raise ValueError(
            f"tokens_per_step {tokens_per_step} is no whole number of sequences of {length}: take"
            f" a multiple of {length}"
        )
    sequences = tokens_per_step // length
    if layouts is None:
        layouts = possible(
            architecture, cluster.fabric, cluster.ranks, sequences, chosen.fused_attention,
            contexts, schedules,
        )  # fmt: skip
        if not layouts:
            raise ValueError(
                f"no layout divides {cluster.ranks} ranks, {architecture.heads} heads and"
                f" {sequences} sequences without remainder: take a number of sequences that shares"
                f" more factors with {cluster.ranks}"
            )
    elif not layouts:
        raise ValueError("no layouts were given: leave them out to look at all")
    else:
        for layout in layouts:
            check(layout, architecture, cluster.fabric, cluster.ranks, sequences)
    for context in {layout.context for layout in layouts} - {1}:
        if length % (2 * context):
            raise ValueError(
                f"sequences of {length} tokens do not divide into {2 * context} pieces: each of"
                f" {context} context ranks takes an early and a late one, so that the causal mask"
                f" leaves all as much to do; take a multiple of {2 * context}"
            )
    x = Layouts(layouts)
    sent = traffic(architecture, x, cluster.fabric, length, sequences, chosen)
    return Plans(
        architecture,
        cluster,
        length,
        tokens_per_step,
        chosen,
        x,
        memory(architecture, x, length, sequences, chosen),
        step_seconds(architecture, x, cluster, length, sequences, chosen, sent),
        {part: item.bytes for part, item in sent.items()},
    )
