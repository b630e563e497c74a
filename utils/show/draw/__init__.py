"""Figures of the lessons. Each function returns a `Picture`: a PNG with a caption that says in
words what it shows.
"""

from utils.draw.charts import bars, graph, lines, timeline
from utils.draw.chips import ladder, neuroncore
from utils.draw.collectives import collective_times, modelled_measured
from utils.draw.costs import break_even, break_even_surface, distribution, tornado, waterfall
from utils.draw.hardware import Rung, core, memory_ladder, topologies
from utils.draw.kernels import hbm_loads, kernel_roofline, kernel_timeline, occupancy
from utils.draw.meshes import divided, traffic
from utils.draw.numbers import number_line, ranges, stalled, training
from utils.draw.picture import Picture
from utils.draw.plans import plans, scaling_curves
from utils.draw.rooflines import roofline
from utils.draw.tiles import access_order, matmul_operands, memories, tile_layout
from utils.draw.timelines import lanes, pipelines
from utils.draw.verdicts import verdicts

__all__ = [
    "Picture",
    "Rung",
    "access_order",
    "bars",
    "break_even",
    "break_even_surface",
    "collective_times",
    "core",
    "distribution",
    "divided",
    "graph",
    "hbm_loads",
    "kernel_roofline",
    "kernel_timeline",
    "ladder",
    "lanes",
    "lines",
    "matmul_operands",
    "memories",
    "memory_ladder",
    "modelled_measured",
    "neuroncore",
    "number_line",
    "occupancy",
    "pipelines",
    "plans",
    "ranges",
    "roofline",
    "scaling_curves",
    "stalled",
    "tile_layout",
    "timeline",
    "topologies",
    "tornado",
    "traffic",
    "training",
    "verdicts",
    "waterfall",
]
