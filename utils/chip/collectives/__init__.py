"""What collectives cost: a model of latency and bandwidth, held to published measurements.

`fabric(name, nodes)` is the wiring of Trainium instances, `seconds(kind, size, fabric, ranks)` the
modelled time, `crossover_bytes` where latency gives way to bandwidth, `overlapped` what computing
hides. All of it is an estimate, without the start of the software: `utils.collectives.published`
says how good.
"""

from utils.collectives.cost import Estimate, crossover_bytes, overlapped, seconds
from utils.collectives.fabric import NAMES, Fabric, Tier, fabric
from utils.collectives.lines import Line, lines, spread
from utils.collectives.terms import ALGORITHMS, KINDS, Terms, terms

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
