"""What joins the ranks, from the inside out: tiers of wiring, built from the facts.

A rank is a logical core of Trainium, or a GPU. The bandwidth of a tier is what one rank sends in
one direction while all ranks send at once: ranks that share a link or an adapter share its rate.
"""

import math
from dataclasses import dataclass
from functools import cache, cached_property

from utils.chip.collectives.algorithms import WIRINGS, neighbours
from utils.facts import figure


@dataclass(frozen=True)
class Tier:
    """Ranks that are wired alike, or groups of them.

    name: such as "chips of an instance". ranks: how many members. latency_s: of one step.
    bytes_per_s: what one rank sends in one direction over all its links of this tier.
    wiring: "ring", "torus" or "switched". sizes: of a torus, the ranks along each axis.
    without: algorithms that are not chosen there (an all-to-all may still be direct).

    Raises ValueError if these do not fit together.
    """

    name: str
    ranks: int
    latency_s: float
    bytes_per_s: float
    wiring: str = "switched"
    sizes: tuple[int, ...] = ()
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        sizes = self.sizes or (self.ranks,)
        for wrong, text in (
            (self.wiring not in WIRINGS, f"wiring {self.wiring!r}: allowed are {WIRINGS}"),
            (
                self.ranks < 1 or self.ranks % 1,
                f"{self.ranks} ranks: there must be 1 or more, a whole number",
            ),
            (math.prod(sizes) != self.ranks, f"sizes {sizes} do not make {self.ranks} ranks"),
            (
                not self.latency_s >= 0 or not self.bytes_per_s > 0,
                f"latency {self.latency_s} s, bandwidth {self.bytes_per_s} B/s: the first is 0 or"
                " more, the second above 0",
            ),
        ):
            if wrong:
                raise ValueError(f"tier {self.name!r}: {text}")
        object.__setattr__(self, "sizes", sizes)

    def part(self, ranks: int) -> tuple[tuple[int, ...], tuple[float, ...]] | None:
        """(sizes, rates) of a group of `ranks` members, see `algorithms.terms`; None if none fits.

        Of a torus a group fills the last axis first. On an axis that it does not fill it has one
        link to a neighbour instead of two, since the ring is not closed.
        """
        if self.wiring == "switched":
            return ((ranks,), (1.0,)) if ranks <= self.ranks else None
        sizes = []
        for size in reversed(self.sizes):
            taken = math.gcd(ranks, size)
            sizes.append(taken)
            ranks //= taken
        if ranks > 1:
            return None
        links = [neighbours(size) for size in self.sizes]
        used = [
            neighbours(size) if taken == size else min(taken - 1, 1)
            for taken, size in zip(sizes[::-1], self.sizes, strict=True)
        ]
        return tuple(sizes[::-1]), tuple(item / max(sum(links), 1) for item in used)


@dataclass(frozen=True)
class Fabric:
    """Tiers from the inside out. Ranks are numbered so that neighbours in number are near."""

    name: str
    tiers: tuple[Tier, ...]

    @cached_property
    def ranks(self) -> int:
        """Of all tiers together."""
        return math.prod(tier.ranks for tier in self.tiers)


NODE_LATENCY = "trn2.48xlarge.network_latency"
HOP_LATENCY = "trainium2.link.latency"
HBM_SHARE = "trainium1.collectives.hbm_share"
"""Of HBM's bandwidth, what the cores of a chip pass on: measured on Trainium1, taken for all."""


def _inside(chip: str, latency_key: str) -> Tier:
    """The logical cores of a chip, which share its HBM."""
    cores = int(figure(f"{chip}.logical_cores").number)
    rate = figure(f"{chip}.hbm.bandwidth").to("B/s") * figure(HBM_SHARE).number / cores
    return Tier("cores of a chip", cores, figure(latency_key).to("s"), rate)


def _links(name: str, key: str, sizes: tuple[int, ...], wiring: str, cores: int) -> Tier:
    """Chips: vendors print both directions of all links, and the cores of a chip share them."""
    rate = figure(key).to("B/s") / 2 / cores
    return Tier(name, math.prod(sizes), figure(HOP_LATENCY).to("s"), rate, wiring, sizes)


def _network(key: str, ranks: int, nodes: int, latency_key: str = NODE_LATENCY) -> Tier:
    """EFA: figures in Gbps are of one direction, and all ranks of a node share its adapters.

    AWS sends to all others at once in small groups only, because receivers are congested.
    """
    rate = figure(key).to("B/s") / ranks
    latency = figure(latency_key).to("s")
    return Tier("nodes, EFA", nodes, latency, rate, without=("direct", "one-shot"))


def _trainium(chip: str, link: str, sizes: tuple[int, ...], wiring: str) -> tuple[Tier, ...]:
    inside = _inside(chip, f"{chip}.dma.latency")
    return inside, _links("chips of an instance", link, sizes, wiring, inside.ranks)


def _gpus(name: str, gpu: str, nodes: int) -> tuple[Tier, ...]:
    gpus = int(figure(f"{name}.accelerators").number)
    rate = figure(f"{gpu}.link.bandwidth").to("B/s") / 2
    latency = figure(f"{gpu}.link.latency").to("s")
    memory = figure(f"{gpu}.hbm.bandwidth").to("B/s")
    return (
        Tier("a GPU, which is one rank", 1, latency, memory),
        Tier("GPUs of an instance", gpus, latency, rate),
        _network(f"{name}.network", gpus, nodes, f"{name}.network_latency"),
    )


def _tiers(name: str, nodes: int) -> tuple[Tier, ...]:
    match name:
        case "p5.48xlarge":
            return _gpus(name, "h100", nodes)
        case "p5en.48xlarge":
            return _gpus(name, "h200", nodes)
        case "trn1.32xlarge" | "trn1n.32xlarge":
            tiers = _trainium("trainium1", f"{name}.neuronlink.per_chip", (4, 4), "torus")
        case "trn2.48xlarge":
            tiers = _trainium("trainium2", f"{name}.neuronlink.per_chip", (4, 4), "torus")
        case "trn2-ultraserver":
            tiers = _trainium("trainium2", f"{name}.neuronlink.inside", (4, 4), "torus")
            across = (int(figure(f"{name}.servers").number),)
            cores = tiers[0].ranks
            tiers += (
                _links("instances of an UltraServer", f"{name}.neuronlink.between", across, "ring",
                       cores),
            )  # fmt: skip
        case "trn3-ultraserver-gen1" | "trn3-ultraserver-gen2":
            chips = (int(figure(f"{name}.accelerators").number),)
            inside = _inside("trainium3", "trainium3.dma.latency")
            tiers = (
                inside,
                _links("chips of an UltraServer", "trainium3.link.bandwidth", chips, "switched",
                       inside.ranks),
            )  # fmt: skip
        case _:
            raise KeyError(f"no fabric {name!r}; there are {', '.join(NAMES)}")
    key = "network_of_instances" if name == "trn2-ultraserver" else "network"
    return *tiers, _network(f"{name}.{key}", math.prod(t.ranks for t in tiers), nodes)


NAMES = (
    "trn1.32xlarge",
    "trn1n.32xlarge",
    "trn2.48xlarge",
    "trn2-ultraserver",
    "trn3-ultraserver-gen1",
    "trn3-ultraserver-gen2",
    "p5.48xlarge",
    "p5en.48xlarge",
)


@cache
def fabric(name: str, nodes: int = 1) -> Fabric:
    """The fabric of `nodes` instances or UltraServers; a rank is a logical core, or a GPU.

    >>> [tier.ranks for tier in fabric("trn2.48xlarge", nodes=2).tiers]
    [4, 16, 2]

    Raises KeyError if there is no such fabric, with those that there are.
    """
    return Fabric(name, _tiers(name, nodes))
