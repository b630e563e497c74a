"""What collectives cost: a model of latency and bandwidth, held to published measurements.

`fabric(name, nodes)` is the wiring of Trainium instances, `seconds(kind, size, fabric, ranks)` the
modelled time, `crossover_bytes` where latency gives way to bandwidth, `overlap` what computing
hides. All of it is an estimate, without the start of the software.

`algorithms` has the steps and loads of each algorithm on one tier (ring, torus, halving, direct,
tree), `fabrics` the tiers, `cost` the time over all tiers; `published` holds it to measurements,
and `moving` runs the algorithms on small arrays, to see what is sent when.
"""

from utils.chip.collectives.algorithms import ALGORITHMS, KINDS, Terms, terms
from utils.chip.collectives.cost import (
    Estimate,
    Line,
    crossover_bytes,
    lines,
    overlap,
    seconds,
    tier_sizes,
)
from utils.chip.collectives.fabrics import NAMES, Fabric, Tier, fabric
