"""Chips to plan for: their cores as ranks, with memory, rates, and the fabric that joins them."""

from dataclasses import dataclass

from utils.chip.collectives import NAMES, Fabric, fabric
from utils.chip.hardware import machine
from utils.facts import figure


@dataclass(frozen=True)
class Cluster:
    """ranks: what a layout divides: logical cores of Trainium, or GPUs; chips: how many.

    flops, hbm_bytes, hbm_bytes_per_s: of one rank, its share of the chip.
    node_chips: chips that fail and are replaced together.
    """

    name: str
    chips: int
    ranks: int
    flops: float
    hbm_bytes: float
    hbm_bytes_per_s: float
    fabric: Fabric
    node_chips: int

    @property
    def nodes(self) -> int:
        """Groups of chips that fail together."""
        return -(-self.chips // self.node_chips)


def cluster(instance: str = "trn2.48xlarge", chips: int = 16, dtype: str = "bf16") -> Cluster:
    """A part of an instance or UltraServer, or whole ones joined by EFA, from the facts.

    instance: one that `utils.chip.collectives.fabric` knows. chips: a divisor of its chips, or a
    multiple. dtype: of the matrix products.

    >>> cluster("trn2-ultraserver", 64).ranks
    256

    Raises ValueError for other numbers of chips, with those that are near.
    """
    if instance not in NAMES:
        raise ValueError(f"no instance {instance!r} to plan for; there are {', '.join(NAMES)}")
    whole = machine(instance)
    item = whole.chips
    if chips < 1 or (chips % item if chips > item else item % chips):
        below = max(1, chips // item) * item
        raise ValueError(
            f"{chips} chips of {instance}, which has {item}: take a divisor of {item}, or a"
            f" multiple such as {below} or {below + item}"
        )
    joined = fabric(instance, max(1, chips // item))
    cores = joined.tiers[0].ranks
    ranks = item * cores
    servers = f"{instance}.servers"
    parts = int(figure(servers).number) if "ultraserver" in instance else 1
    return Cluster(
        name=f"{chips:,} chip{'s' * (chips != 1)} of {instance}",
        chips=chips,
        ranks=chips * cores,
        flops=whole.rate(dtype) / ranks,
        hbm_bytes=whole.hbm_bytes / ranks,
        hbm_bytes_per_s=whole.hbm_bytes_per_s / ranks,
        fabric=joined,
        node_chips=min(chips, item // parts),
    )
