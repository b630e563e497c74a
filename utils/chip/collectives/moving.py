"""The algorithms themselves: pieces of real arrays are passed on, and steps and values counted.

Slow and small, to see what is sent when, and to hold the formulas of `algorithms` to it.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

Groups = Sequence[Sequence[int]]
Message = tuple[int, int, np.ndarray]


@dataclass
class Wire:
    """Counts what is passed on. sent: values that each rank sent. log: (from, to) of each step."""

    ranks: int
    steps: int = 0
    sent: np.ndarray = field(init=False)
    log: list[list[tuple[int, int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sent = np.zeros(self.ranks)

    def step(self, messages: list[Message]) -> list[Message]:
        """All messages at once; they arrive as they were when the step began."""
        self.steps += 1
        self.log.append([(a, b) for a, b, _ in messages])
        for a, _, what in messages:
            self.sent[a] += what.size
        return [(a, b, what.copy()) for a, b, what in messages]


Pieces = list[dict[int, np.ndarray]]
"""Of each rank, the pieces that it holds, by the place in its group that they belong to."""


def pieces(values: Sequence[np.ndarray], groups: Groups) -> Pieces:
    """Each rank's vector, cut into as many pieces as its group has ranks."""
    result: Pieces = [{} for _ in values]
    for group in groups:
        for rank in group:
            result[rank] = dict(enumerate(np.array_split(values[rank].astype(float), len(group))))
    return result


def whole(held: dict[int, np.ndarray]) -> np.ndarray:
    """The pieces that a rank holds, joined in their order."""
    return np.concatenate([held[place] for place in sorted(held)])


def ring_reduce_scatter(wire: Wire, held: Pieces, groups: Groups) -> Pieces:
    """A piece starts behind the rank that it belongs to, and ends there."""
    for turn in range(max(map(len, groups)) - 1):
        messages, places = [], []
        for group in groups:
            n = len(group)
            for at, rank in enumerate(group):
                place = (at - 1 - turn) % n
                messages.append((rank, group[(at + 1) % n], held[rank][place]))
                places.append(place)
        for (_, to, what), place in zip(wire.step(messages), places, strict=True):
            held[to][place] = held[to][place] + what
    return [{at: held[rank][at]} for rank, at in _places(groups, len(held))]


def ring_all_gather(wire: Wire, held: Pieces, groups: Groups) -> Pieces:
    """Every rank passes on what it received last."""
    for turn in range(max(map(len, groups)) - 1):
        messages, places = [], []
        for group in groups:
            n = len(group)
            for at, rank in enumerate(group):
                place = (at - turn) % n
                messages.append((rank, group[(at + 1) % n], held[rank][place]))
                places.append(place)
        for (_, to, what), place in zip(wire.step(messages), places, strict=True):
            held[to][place] = what
    return held


def halving_reduce_scatter(wire: Wire, held: Pieces, groups: Groups) -> Pieces:
    """The far half of what a rank still holds goes to the partner nearer to it."""
    n = len(groups[0])
    for power in reversed(range((n - 1).bit_length())):
        distance = 2**power
        count = min(distance, n - distance)
        _to_partners(wire, held, groups, distance, range(distance, distance + count), add=True)
    return [{at: held[rank][at]} for rank, at in _places(groups, len(held))]


def halving_all_gather(wire: Wire, held: Pieces, groups: Groups) -> Pieces:
    """What a rank has goes to the partner, so that both have twice as much."""
    n = len(groups[0])
    for power in range((n - 1).bit_length()):
        distance = 2**power
        count = min(distance, n - distance)
        _to_partners(wire, held, groups, -distance, range(count), add=False)
    return held


def _to_partners(
    wire: Wire, held: Pieces, groups: Groups, distance: int, ahead: range, add: bool
) -> None:
    messages, sizes = [], []
    for group in groups:
        n = len(group)
        for at, rank in enumerate(group):
            places = [(at + step) % n for step in ahead]
            messages.append(
                (rank, group[(at + distance) % n], np.concatenate([held[rank][p] for p in places]))
            )
            sizes.append({place: held[rank][place].size for place in places})
    for (_, to, what), size_of in zip(wire.step(messages), sizes, strict=True):
        ends = np.cumsum(list(size_of.values()))[:-1]
        for place, part in zip(size_of, np.split(what, ends), strict=True):
            held[to][place] = held[to][place] + part if add else part


def direct_reduce_scatter(wire: Wire, held: Pieces, groups: Groups) -> Pieces:
    """Every piece goes straight to the rank that it belongs to."""
    messages, places = [], []
    for group in groups:
        for rank, (at, to) in itertools.product(group, enumerate(group)):
            if rank != to:
                messages.append((rank, to, held[rank][at]))
                places.append(at)
    for (_, to, what), place in zip(wire.step(messages), places, strict=True):
        held[to][place] = held[to][place] + what
    return [{at: held[rank][at]} for rank, at in _places(groups, len(held))]


def direct_all_gather(wire: Wire, held: Pieces, groups: Groups) -> Pieces:
    """Every rank sends its piece to all others."""
    messages, places = [], []
    for group in groups:
        for (at, rank), to in itertools.product(enumerate(group), group):
            if rank != to:
                messages.append((rank, to, held[rank][at]))
                places.append(at)
    for (_, to, what), place in zip(wire.step(messages), places, strict=True):
        held[to][place] = what
    return held


PHASES: dict[str, tuple[Callable[..., Pieces], Callable[..., Pieces]]] = {
    "ring": (ring_reduce_scatter, ring_all_gather),
    "halving": (halving_reduce_scatter, halving_all_gather),
    "direct": (direct_reduce_scatter, direct_all_gather),
}
"""Algorithm to reduce-scatter and all-gather."""


def _places(groups: Groups, ranks: int) -> list[tuple[int, int]]:
    """(rank, its place in its group), by rank."""
    where = {rank: at for group in groups for at, rank in enumerate(group)}
    return [(rank, where[rank]) for rank in range(ranks)]


def all_reduce(
    values: Sequence[np.ndarray], *stages: tuple[str, Groups]
) -> tuple[list[np.ndarray], Wire]:
    """Reduce-scatters from the first stage to the last, then all-gathers back.

    Args:
        values: a vector for each rank; lengths are a multiple of the number of ranks.
        stages: algorithm of `PHASES` and groups. One stage with a single group is a flat
            all-reduce; several are a torus or a hierarchy.

    >>> sums, wire = all_reduce([np.arange(4), np.ones(4)], ("ring", [(0, 1)]))
    >>> sums[0], wire.steps, float(wire.sent.max())
    (array([1., 2., 3., 4.]), 2, 4.0)
    """
    wire = Wire(len(values))
    parts = [np.asarray(value, float) for value in values]
    for algorithm, groups in stages:
        held = PHASES[algorithm][0](wire, pieces(parts, groups), groups)
        parts = [whole(item) for item in held]
    for algorithm, groups in reversed(stages):
        held = [{at: parts[rank]} for rank, at in _places(groups, len(parts))]
        parts = [whole(phase) for phase in PHASES[algorithm][1](wire, held, groups)]
    return parts, wire


def tree_all_reduce(values: Sequence[np.ndarray]) -> tuple[list[np.ndarray], Wire]:
    """Along a binomial tree to rank 0, and back: the whole vector in every step."""
    n, wire = len(values), Wire(len(values))
    parts = [np.asarray(value, float) for value in values]
    distances = [2**power for power in range((n - 1).bit_length())]
    for distance in distances:
        senders = range(distance, n, 2 * distance)
        for _, to, what in wire.step([(r, r - distance, parts[r]) for r in senders]):
            parts[to] = parts[to] + what
    for distance in reversed(distances):
        senders = range(0, n - distance, 2 * distance)
        for _, to, what in wire.step([(r, r + distance, parts[r]) for r in senders]):
            parts[to] = what
    return parts, wire
