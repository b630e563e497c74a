"""What collectives cost: a model of latency and bandwidth, held to published measurements.

`fabric(name, nodes)` is the wiring of Trainium instances, `seconds(kind, size, fabric, ranks)` the
modelled time, `crossover_bytes` where latency gives way to bandwidth, `overlapped` what computing
hides. All of it is an estimate, without the start of the software:
`utils.chip.collectives.published` says how good.
"""

from utils.chip.collectives.cost import Estimate, crossover_bytes, overlapped, seconds
from utils.chip.collectives.fabric import NAMES, Fabric, Tier, fabric
from utils.chip.collectives.lines import Line, lines, spread
from utils.chip.collectives.terms import ALGORITHMS, KINDS, Terms, terms

__all__ = [
    "ALGORITHMS",
    "KINDS",
    "NAMES",
    "Estimate",
    "Fabric",
    "Line",
    "Terms",
    "Tier",
    "crossover_bytes",
    "fabric",
    "lines",
    "overlapped",
    "seconds",
    "spread",
    "terms",
]
