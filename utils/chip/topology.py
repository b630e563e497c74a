"""How chips are wired, and how long an all-reduce takes on that wiring by the alpha-beta model.

The formulas are those of `utils.chip.collectives.algorithms`; other collectives, and tiers of
several wirings, are in `utils.chip.collectives`.
"""

import math
from dataclasses import dataclass

from utils.chip.collectives.algorithms import terms


@dataclass(frozen=True)
class Topology:
    """Chips and what joins them.

    kind: "ring", "torus" or "switched". sizes: chips along each axis.
    """

    kind: str
    sizes: tuple[int, ...]

    @property
    def chips(self) -> int:
        """How many, without the switch."""
        return math.prod(self.sizes)

    @property
    def diameter(self) -> int:
        """Links between the two chips that are farthest apart; through a switch, 2."""
        if self.kind == "switched":
            return 2 if self.chips > 1 else 0
        return sum(size // 2 for size in self.sizes)


def torus(*sizes: int) -> Topology:
    """A grid whose rows and columns are closed to rings: torus(4, 4), torus(4, 4, 4).

    >>> torus(4, 4).diameter
    4
    """
    if not sizes or any(not isinstance(size, int) or size < 1 for size in sizes):
        raise ValueError(f"a torus has whole sizes of 1 or more, found {sizes}")
    return Topology("torus", sizes)


def ring(chips: int) -> Topology:
    """Each chip is joined to the next, the last to the first."""
    if chips < 1:
        raise ValueError(f"a ring has 1 chip or more, found {chips}")
    return Topology("ring", (chips,))


def switch(chips: int) -> Topology:
    """Every chip is joined to one switch without congestion, and through it to any other."""
    if chips < 1:
        raise ValueError(f"a switch joins 1 chip or more, found {chips}")
    return Topology("switched", (chips,))


def all_reduce_seconds(
    size_bytes: float,
    topology: Topology,
    link_bytes_per_s: float | tuple[float, ...],
    latency_s: float,
) -> float:
    """Seconds until every one of n chips has the sum of `size_bytes` from all of them.

    link_bytes_per_s: B, what one chip sends in one direction over all its links together; half of
        what vendors print for both. Of a torus whose axes differ, a tuple with one rate per axis.
    latency_s: alpha, of one step. S is size_bytes.

    Ring: reduce-scatter and all-gather of n - 1 steps each, half of every piece running either way
    round, 2 (n - 1) (alpha + S / (n B)). (Patarasuk and Yuan, "Bandwidth optimal all-reduce
    algorithms for clusters of workstations", JPDC 69(2), 2009.)
    Torus: reduce-scatter along one axis after another, each on what the axes before have left of S,
    then all-gather back. Of an axis of a chips only its own links work, B_a = B times its share of
    the links: 2 (a - 1) (alpha + S_a / (a B_a)), S_a = S over the product of the axes before it.
    (Chan, Heimlich, Purkayastha and van de Geijn, "Collective communication: theory, practice, and
    experience", Concurrency and Computation 19(13), 2007.) Algorithms that keep all axes busy at
    once are faster for large S, at most by the number of axes.
    Switched: every chip sends to all others at once, in two steps of
    alpha + (n - 1) S / (n B).

    No algorithm is faster than 2 (n - 1) S / (n B); ring and switched reach that without latency.

    >>> all_reduce_seconds(1e9, ring(4), 1e9, 0)
    1.5
    """
    per_axis = isinstance(link_bytes_per_s, tuple)
    given = link_bytes_per_s if isinstance(link_bytes_per_s, tuple) else (link_bytes_per_s,)
    if per_axis and (topology.kind != "torus" or len(given) != len(topology.sizes)):
        raise ValueError(
            f"one rate per axis is for a torus with as many axes; found {len(given)} for a"
            f" {topology.kind} of {topology.sizes}"
        )
    if size_bytes < 0 or latency_s < 0 or not min(given) > 0:
        raise ValueError(
            "size and latency are 0 or more and rates above 0; found"
            f" {size_bytes}, {latency_s}, {link_bytes_per_s}"
        )
    total = sum(given)
    rates = tuple(rate / total for rate in given) if per_axis else None
    if topology.kind == "switched":
        cost = terms("all-reduce", "direct", "switched", topology.sizes)
    else:
        cost = terms("all-reduce", "torus", "torus", topology.sizes, rates)
    assert cost is not None  # both algorithms run on their wiring
    return cost.steps * latency_s + cost.load * size_bytes / total
