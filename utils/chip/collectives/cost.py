"""How long a collective takes: `seconds("all-reduce", 1e9, fabric("trn2.48xlarge"))`.

Every way to do a collective, flat or one tier after another, is a straight line of time against
size: `lines` has them all, `seconds` takes the fastest. Sizes, ranks and strides may be numpy
arrays, which are broadcast against each other.
"""

import itertools
import math
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any

import numpy as np

from utils.chip.collectives.algorithms import ALGORITHMS, KINDS, terms
from utils.chip.collectives.fabrics import Fabric, Tier

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


def tier_sizes(fabric: Fabric, ranks: int, stride: int = 1) -> tuple[int, ...]:
    """How many members a group has in each tier, from the inside out.

    Args:
        ranks: members, the first of them rank 0. stride: of their numbers.

    >>> from utils.chip.collectives import fabric
    >>> tier_sizes(fabric("trn2.48xlarge", nodes=8), ranks=16, stride=32)
    (1, 2, 8)

    Raises ValueError if the group is larger than the fabric, or uneven: not every chip or node that
    it touches has as many members.
    """
    if ranks < 1 or stride < 1 or ranks * stride > fabric.ranks:
        raise ValueError(
            f"{ranks} ranks with stride {stride} in {fabric.name}, which has {fabric.ranks} ranks"
        )
    members, inside, result = 1, 1, []
    for tier in fabric.tiers:
        inside *= tier.ranks
        together = min(max(inside // stride, 1), ranks)
        if together % members or ranks % together or (stride < inside and inside % stride):
            raise ValueError(
                f"a group of {ranks} ranks with stride {stride} is uneven in {fabric.name}: it"
                f" fills {tier.name} of {inside} ranks in part; take ranks and strides that divide"
                f" {', '.join(str(item.ranks) for item in fabric.tiers)} and their products"
            )
        result.append(together // members)
        members = together
    return tuple(result)


def _part(tier: Tier, ranks: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """(sizes, rates) of a group within a tier. Raises ValueError if none of that size fits."""
    fit = tier.part(ranks)
    if fit is None:
        raise ValueError(
            f"no group of {ranks} ranks in {tier.name}, {tier.wiring} of"
            f" {' x '.join(map(str, tier.sizes))}: take a product of divisors of these"
        )
    return fit


def _tier_lines(kind: str, tier: Tier, ranks: int) -> list[Line]:
    """One line per algorithm that runs on `ranks` members of a tier."""
    fit = _part(tier, ranks)
    results = []
    for name in ALGORITHMS:
        cost = terms(kind, name, tier.wiring, *fit)
        if cost is None or (name in tier.without and kind not in ("all-to-all", "permute")):
            continue
        load = cost.load / tier.bytes_per_s
        results.append(Line(name, cost.steps * tier.latency_s, load, cost.steps, cost.sent))
    return results


def _best_lines(lines: list[Line]) -> list[Line]:
    """Without those that another beats in latency and in bandwidth."""
    lines = sorted(lines, key=lambda line: (line.latency_s, line.seconds_per_byte))
    results: list[Line] = []
    for line in lines:
        if not results or line.seconds_per_byte < results[-1].seconds_per_byte:
            results.append(line)
    return results


@cache
def lines(
    kind: str, fabric: Fabric | Tier, ranks: int | tuple[int, ...] | None = None, stride: int = 1
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
        members = tier_sizes(whole, whole.ranks if ranks is None else ranks, stride)
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
        result, inside = [], 1
        for tier, ranks in used:
            inside *= ranks
            (line,) = (x for x in _tier_lines(kind, tier, ranks) if x.algorithm == "direct")
            result.append(line.of(inside / total).seconds_per_byte)
        return [Line("direct", latency_s, max(result), 1, (total - 1) / total)]
    # The ring leaves a group of inner tiers once: its links are pooled for that one hop.
    rates, inside = [], 1
    for tier, ranks in used:
        _, shares = _part(tier, ranks)
        rates.append(tier.bytes_per_s * sum(shares) * inside)
        inside *= ranks
    ways = 2 if kind in ("all-reduce", "broadcast") else 1
    sent = ways * (total - 1) / total
    steps = ways * (total - 1)
    return [Line(FLAT, steps * latency_s, sent / min(rates), steps, sent)]


@dataclass(frozen=True)
class Estimate:
    """Modelled times of a collective; arrays if sizes or ranks were arrays.

    seconds: latency_s + bandwidth_s. algorithm: its name. steps: latencies one after the other.
    bytes_sent_per_rank: of the busiest rank.
    """

    seconds: Any
    latency_s: Any
    bandwidth_s: Any
    algorithm: Any
    bytes_sent_per_rank: Any
    steps: Any


def _choose(
    kind: str,
    fabric: Fabric | Tier,
    ranks: int | tuple[int, ...] | None,
    stride: int,
    algorithm: str | None,
) -> tuple[Line, ...]:
    known = lines(kind, fabric, ranks, stride)
    if algorithm is None or known[0].algorithm == "none":
        return known
    asked = tuple(line for line in known if line.algorithm == algorithm)
    if not asked:
        names = sorted({line.algorithm for line in known})
        raise ValueError(f"{kind} has no {algorithm!r} here; there are {', '.join(names)}")
    return asked


def seconds(
    kind: str,
    size_bytes: Any,
    fabric: Fabric | Tier,
    ranks: Any = None,
    algorithm: str | None = None,
    stride: Any = 1,
) -> Estimate:
    """How long a collective takes, and by which algorithm.

    Args:
        kind: one of `KINDS`.
        size_bytes: S, of the larger side: what every rank holds of an all-reduce, has in the end of
            an all-gather, had before a reduce-scatter. Number or array.
        ranks: members of each group, by default all of the fabric; number or array. A tuple says
            how many members the group has in each tier, from the inside out.
        algorithm: by default the fastest for each size.
        stride: of the numbers of a group's members: 1 for neighbours, the size of a tensor-parallel
            group for the data-parallel groups across it. All groups are at work at once.

    >>> from utils.chip.collectives import Tier
    >>> seconds("all-reduce", 1e9, Tier("ring", 4, 0.0, 1e9, "ring"), algorithm="ring").seconds
    1.5

    Raises ValueError for a kind, an algorithm or a group that there is not, and a size below 0.
    """
    members = ranks if isinstance(ranks, tuple) else None
    sizes, counts, strides = np.broadcast_arrays(
        np.asarray(size_bytes, float),
        np.asarray(fabric.ranks if ranks is None or members else ranks, int),
        np.asarray(stride, int),
    )
    if sizes.size and not sizes.min() >= 0:
        raise ValueError(f"a message has 0 bytes or more, found {sizes.min():g}")
    result = {name: np.empty(sizes.shape) for name in ("latency", "bandwidth", "sent")}
    result["steps"] = np.empty(sizes.shape, int)
    names = np.empty(sizes.shape, object)
    groups, where = np.unique(
        np.stack([counts.ravel(), strides.ravel()]), axis=1, return_inverse=True
    )
    where = where.reshape(sizes.shape)
    for place, (n, step) in enumerate(groups.T):
        some = where == place
        choice = _choose(kind, fabric, members or int(n), int(step), algorithm)
        size = sizes[some]
        times = [line.latency_s + line.seconds_per_byte * size for line in choice]
        best = np.argmin(times, axis=0)
        column = {
            "latency": np.array([line.latency_s for line in choice])[best],
            "bandwidth": np.array([line.seconds_per_byte for line in choice])[best] * size,
            "sent": np.array([line.sent for line in choice])[best] * size,
            "steps": np.array([line.steps for line in choice])[best],
        }
        for name, values in column.items():
            result[name][some] = values
        names[some] = np.array([line.algorithm for line in choice], object)[best]
    plain = sizes.ndim == 0
    latency_s, bandwidth_s, sent, steps, algorithms = (
        array.item() if plain else array for array in (*result.values(), names)
    )
    return Estimate(latency_s + bandwidth_s, latency_s, bandwidth_s, algorithms, sent, steps)


def crossover_bytes(
    kind: str,
    fabric: Fabric | Tier,
    ranks: int | tuple[int, ...] | None = None,
    algorithm: str | None = None,
    stride: int = 1,
) -> float:
    """The size at which latency takes as long as bandwidth: smaller messages wait, larger move.

    Of one algorithm that is latency_s / seconds_per_byte. If the fastest is taken for every size,
    it is where the time is twice that which the bandwidth of very large messages would take; the
    first line to come down to that counts. 0 for a single rank.

    >>> from utils.chip.collectives import Tier
    >>> crossover_bytes("all-reduce", Tier("ring", 4, 1e-6, 1e9, "ring"), algorithm="ring")
    4000.0
    """
    known = _choose(kind, fabric, ranks, stride, algorithm)
    least = min(line.seconds_per_byte for line in known)
    return min(
        (
            line.latency_s / (2 * least - line.seconds_per_byte)
            for line in known
            if line.seconds_per_byte < 2 * least
        ),
        default=0.0,
    )


def overlap(compute_s: Any, communicate_s: Any, share: Any) -> Any:
    """Seconds of a step whose collectives may in part run while it computes.

    share: of the communication, what does not have to wait for the end of the computation, 0 to 1:
        the gradients of all layers but the last to be computed, for example. Numbers or arrays. It
        is hidden as long as there is work to hide it behind; the rest comes on top.

    >>> overlap(1.0, 0.5, 0.8)
    1.1
    """
    part = np.asarray(share, float)
    if part.size and not (part.min() >= 0 and part.max() <= 1):
        raise ValueError(f"a share is from 0 to 1, found {share}")
    hidden = np.minimum(np.asarray(compute_s, float), part * communicate_s)
    total = compute_s + communicate_s - hidden
    return total.item() if np.ndim(total) == 0 else total
