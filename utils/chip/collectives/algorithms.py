"""Steps and loads of the algorithms: what the alpha-beta model counts, and nothing else.

A message of s bytes takes alpha + s / beta: a latency, and a bandwidth. Every algorithm here is a
number of steps, each with one latency, and a load: how many seconds its busiest link works for each
byte of the message. Both depend on the number of ranks only, so that time is a straight line in the
size of the message. Congestion by others, protocol, and the additions themselves are left out.

The size S of a message is that of the larger side: what each rank holds before and after an
all-reduce, has in the end of an all-gather, had before a reduce-scatter, sends and keeps in an
all-to-all, has to pass on in a broadcast or a permute.

Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC
69(2), 2009 (ring); Chan, Heimlich, Purkayastha and van de Geijn, "Collective communication: theory,
practice, and experience", Concurrency and Computation 19(13), 2007 (torus, scatter and all-gather);
Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 8(11), 1997 (halving for any number of ranks);
Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
Parallel Computing 35(12), 2009 (double tree).
"""

import math
from dataclasses import dataclass

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "permute")
WIRINGS = ("ring", "torus", "switched")


@dataclass(frozen=True)
class Terms:
    """What an algorithm costs on one tier.

    steps: latencies paid one after the other.
    load: bytes that go through the busiest links of a rank, over S and relative to all the links
        that the rank has: bandwidth time is load x S / bytes_per_s.
    sent: bytes that the busiest rank sends, over S; less than `load` where links wait or where
        messages pass through others.
    """

    steps: float
    load: float
    sent: float

    def __add__(self, other: "Terms") -> "Terms":
        return Terms(self.steps + other.steps, self.load + other.load, self.sent + other.sent)


def neighbours(size: int) -> int:
    """Links of one rank along an axis of `size` ranks that is closed to a ring."""
    return min(size - 1, 2)


def degree(sizes: tuple[int, ...]) -> int:
    """Links of one rank of a torus. Two ranks on an axis are joined by one link, not by two."""
    return sum(map(neighbours, sizes))


def shares(sizes: tuple[int, ...]) -> tuple[float, ...]:
    """Of what a rank sends over all its links, what goes along each axis if links are alike."""
    return tuple(neighbours(size) / max(degree(sizes), 1) for size in sizes)


def rounds(ranks: int) -> int:
    """Steps in which everything can double until all ranks have it: the logarithm, rounded up."""
    return (ranks - 1).bit_length()


def _ring(ranks: int, rate: float) -> Terms:
    """Reduce-scatter or all-gather from neighbour to neighbour, n - 1 steps of S / n."""
    part = (ranks - 1) / ranks
    return Terms(ranks - 1, part / rate, part)


def _torus(sizes: tuple[int, ...], rates: tuple[float, ...]) -> Terms:
    """The ring along one axis after another, each on what the axes before have left of S."""
    steps, load, left = 0, 0.0, 1.0
    for size, rate in zip(sizes, rates, strict=True):
        if size > 1:
            left /= size
            steps += size - 1
            load += (size - 1) * left / rate
    return Terms(steps, load, 1 - 1 / math.prod(sizes))


def _halving(ranks: int) -> Terms:
    """Recursive halving (or doubling): partners at half the distance in every step."""
    part = (ranks - 1) / ranks
    return Terms(rounds(ranks), part, part)


def _direct(wiring: str, sizes: tuple[int, ...], rates: tuple[float, ...]) -> Terms:
    """A piece for every other rank at once, in one step.

    Through a switch the rank's own link is the busiest. On a torus a piece passes through the links
    of others, shortest way: floor(a^2 / 4) hops along an axis of a, summed over its ranks.
    """
    ranks = math.prod(sizes)
    part = (ranks - 1) / ranks
    if wiring == "switched":
        return Terms(1, part, part)
    axes = zip(sizes, rates, strict=True)
    return Terms(1, max(size**2 // 4 / size / rate for size, rate in axes if size > 1), part)


def _phase(
    algorithm: str, wiring: str, sizes: tuple[int, ...], rates: tuple[float, ...]
) -> Terms | None:
    """One reduce-scatter, or one all-gather: both take the same messages, turned round."""
    ranks = math.prod(sizes)
    match algorithm:
        case "ring":
            return _ring(ranks, sum(rates))
        case "torus" if wiring == "torus":
            return _torus(sizes, rates)
        case "direct":
            return _direct(wiring, sizes, rates)
        case "halving" if wiring == "switched":
            return _halving(ranks)
    return None


def terms(
    kind: str,
    algorithm: str,
    wiring: str,
    sizes: tuple[int, ...],
    rates: tuple[float, ...] | None = None,
) -> Terms | None:
    """What an algorithm of a collective costs; None if it does not run on that wiring.

    Args:
        kind: one of `KINDS`. algorithm: one of `ALGORITHMS`. wiring: one of `WIRINGS`.
        sizes: ranks along each axis of a torus, the number of ranks in other wirings.
        rates: what one rank sends along each axis, over what it sends in all; by default by links.

    >>> terms("all-reduce", "ring", "ring", (4,))
    Terms(steps=6, load=1.5, sent=1.5)
    """
    used = [axis for axis, size in enumerate(sizes) if size > 1]
    if not used:
        return Terms(0, 0.0, 0.0)
    rates = rates or (shares(sizes) if wiring == "torus" else (1.0,) * len(sizes))
    sizes, rates = tuple(sizes[axis] for axis in used), tuple(rates[axis] for axis in used)
    ranks = math.prod(sizes)
    phase = _phase(algorithm, wiring, sizes, rates)
    match kind, algorithm:
        case "permute", "direct":
            return Terms(1, 1 / _link(wiring, sizes, rates), 1.0)
        case "permute", _:
            return None
        case (("all-gather" | "reduce-scatter"), _):
            return phase
        case "all-to-all", "ring":
            # Every piece goes the shorter way round, step by step.
            hops = ranks**2 // 4 / ranks
            return Terms(ranks // 2, hops / sum(rates), hops)
        case "all-to-all", "direct":
            return phase
        case "all-reduce", "one-shot":
            whole = _direct(wiring, sizes, rates)
            return Terms(1, ranks * whole.load, ranks * whole.sent)
        case (("all-reduce" | "broadcast"), "tree"):
            return _tree(kind, ranks) if wiring == "switched" else None
        case "all-reduce", "double tree":
            return _double_tree(ranks) if wiring == "switched" else None
        case (("all-reduce" | "broadcast"), _) if phase is not None:
            return phase + phase  # reduce-scatter or scatter, then all-gather
    return None


def _link(wiring: str, sizes: tuple[int, ...], rates: tuple[float, ...]) -> float:
    """What goes over the one link to a neighbour, over what a rank sends in all."""
    if wiring == "switched":
        return 1.0
    return max(rate / neighbours(size) for size, rate in zip(sizes, rates, strict=True))


def _tree(kind: str, ranks: int) -> Terms:
    """Reduce to a root, then broadcast from it, along a binomial tree: whole messages."""
    steps = (2 if kind == "all-reduce" else 1) * rounds(ranks)
    return Terms(steps, float(steps), float(rounds(ranks)))


def _double_tree(ranks: int) -> Terms:
    """Two binary trees reduce and broadcast half of S each.

    Every rank is an inner node of at most one of them, with two below it: it sends 3/2 of S there
    and 1/2 as a leaf of the other. The load is that of very many pieces in a pipeline, which feels
    no latency but the first: a bound from below.
    """
    load = min(ranks / 2, 2.0)
    return Terms(2 * rounds(ranks), load, load)


ALGORITHMS = ("ring", "torus", "direct", "halving", "tree", "double tree", "one-shot")
"""Of one tier. AWS calls "direct" mesh, "one-shot" single-step mesh, and "halving" RDH."""
