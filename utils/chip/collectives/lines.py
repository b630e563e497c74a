"""All ways to do a collective on a fabric, each as a straight line of time against size."""

import itertools
import math
from dataclasses import dataclass
from functools import cache, reduce

from utils.chip.collectives.fabric import Fabric, Tier
from utils.chip.collectives.terms import ALGORITHMS, KINDS, terms

FLAT = "flat ring"
HIERARCHICAL = "hierarchical"
"""Algorithms of several tiers: one ring through all ranks, or one tier after another."""


@dataclass(frozen=True)
class Line:
    """Time as a straight line in the size: latency_s + size x seconds_per_byte."""

    algorithm: str
    latency_s: float
    seconds_per_byte: float
    steps: float
    sent: float

    def __add__(self, other: "Line") -> "Line":
        return Line(
            HIERARCHICAL,
            self.latency_s + other.latency_s,
            self.seconds_per_byte + other.seconds_per_byte,
            self.steps + other.steps,
            self.sent + other.sent,
        )

    def of(self, share: float) -> "Line":
        """The line for messages of which only a share is sent."""
        return Line(
            self.algorithm,
            self.latency_s,
            self.seconds_per_byte * share,
            self.steps,
            self.sent * share,
        )


def spread(fabric: Fabric, ranks: int, stride: int = 1) -> tuple[int, ...]:
    """How many members a group has in each tier, from the inside out.

    Args:
        ranks: members, the first of them rank 0. stride: of their numbers.

    >>> from utils.chip.collectives import fabric
    >>> spread(fabric("trn2.48xlarge", nodes=8), ranks=16, stride=32)
    (1, 2, 8)

    Raises ValueError if the group is larger than the fabric, or uneven: not every chip or node that
    it touches has as many members.
    """
    if ranks < 1 or stride < 1 or ranks * stride > fabric.ranks:
        raise ValueError(
            f"{ranks} ranks with stride {stride} in {fabric.name}, which has {fabric.ranks} ranks"
        )
    members, inside, found = 1, 1, []
    for tier in fabric.tiers:
        inside *= tier.ranks
        together = min(max(inside // stride, 1), ranks)
        if together % members or ranks % together or (stride < inside and inside % stride):
            raise ValueError(
                f"a group of {ranks} ranks with stride {stride} is uneven in {fabric.name}: it"
                f" fills {tier.name} of {inside} ranks in part; take ranks and strides that divide"
                f" {', '.join(str(each.ranks) for each in fabric.tiers)} and their products"
            )
        found.append(together // members)
        members = together
    return tuple(found)


def _tier_lines(kind: str, tier: Tier, ranks: int) -> list[Line]:
    """One line per algorithm that runs on `ranks` members of a tier."""
    fit = tier.part(ranks)
    if fit is None:
        raise ValueError(
            f"no group of {ranks} ranks in {tier.name}, {tier.wiring} of"
            f" {' x '.join(map(str, tier.sizes))}: take a product of divisors of these"
        )
    found = []
    for name in ALGORITHMS:
        cost = terms(kind, name, tier.wiring, *fit)
        if cost is None or (name in tier.without and kind not in ("all-to-all", "permute")):
            continue
        load = cost.load / tier.bytes_per_s
        found.append(Line(name, cost.steps * tier.latency_s, load, cost.steps, cost.sent))
    return found


def _best_lines(lines: list[Line]) -> list[Line]:
    """Without those that another beats in latency and in bandwidth."""
    lines = sorted(lines, key=lambda line: (line.latency_s, line.seconds_per_byte))
    found: list[Line] = []
    for line in lines:
        if not found or line.seconds_per_byte < found[-1].seconds_per_byte:
            found.append(line)
    return found


@cache
def lines(
    kind: str,
    fabric: Fabric | Tier,
    ranks: int | tuple[int, ...] | None = None,
    stride: int = 1,
) -> tuple[Line, ...]:
    """All ways to do a collective, each a `Line`. Arguments as of `seconds`, no arrays."""
    if kind not in KINDS:
        raise ValueError(f"no collective {kind!r}; there are {', '.join(KINDS)}")
    whole = Fabric(fabric.name, (fabric,)) if isinstance(fabric, Tier) else fabric
    if isinstance(ranks, tuple):
        members = ranks
        most = tuple(tier.ranks for tier in whole.tiers)
        if len(members) != len(most) or any(
            not 1 <= n <= top for n, top in zip(members, most, strict=True)
        ):
            raise ValueError(f"members {members} of tiers with {most} ranks: one number for each")
    else:
        members = spread(whole, whole.ranks if ranks is None else ranks, stride)
    used = [(tier, n) for tier, n in zip(whole.tiers, members, strict=True) if n > 1]
    if not used:
        return (Line("none", 0.0, 0.0, 0, 0.0),)
    if kind == "permute":
        used = used[-1:]  # all send at once, and the way to another node is the longest
    if len(used) == 1:
        return tuple(_tier_lines(kind, *used[0]))
    return (*_hierarchical(kind, used), *_flat(kind, used))


def _hierarchical(kind: str, used: list[tuple[Tier, int]]) -> list[Line]:
    """One tier after another. A reduce-scatter inside leaves a part of S for the tiers outside, an
    all-gather afterwards brings it back.
    """
    stages, left = [], 1.0
    for place, (tier, ranks) in enumerate(used):
        outermost = place == len(used) - 1
        if kind in ("all-reduce", "broadcast") and not outermost:
            stage = [line + line for line in _tier_lines("reduce-scatter", tier, ranks)]
        else:
            stage = _tier_lines(kind, tier, ranks)
        stages.append(_best_lines([line.of(left) for line in stage]))
        if kind != "all-to-all":
            left /= ranks
    return [reduce(Line.__add__, choice) for choice in itertools.product(*stages)]


def _flat(kind: str, used: list[tuple[Tier, int]]) -> list[Line]:
    """All ranks at once, without regard to tiers."""
    total = math.prod(ranks for _, ranks in used)
    latency_s = max(tier.latency_s for tier, _ in used)
    if kind == "all-to-all":
        found, inside = [], 1
        for tier, ranks in used:
            inside *= ranks
            (line,) = (x for x in _tier_lines(kind, tier, ranks) if x.algorithm == "direct")
            found.append(line.of(inside / total).seconds_per_byte)
        return [Line("direct", latency_s, max(found), 1, (total - 1) / total)]
    # The ring leaves a group of inner tiers once: its links are pooled for that one hop.
    rates, inside = [], 1
    for tier, ranks in used:
        _, shares = tier.part(ranks)
        rates.append(tier.bytes_per_s * sum(shares) * inside)
        inside *= ranks
    ways = 2 if kind in ("all-reduce", "broadcast") else 1
    sent = ways * (total - 1) / total
    steps = ways * (total - 1)
    return [Line(FLAT, steps * latency_s, sent / min(rates), steps, sent)]
