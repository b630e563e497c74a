"""Figures of the lessons. Each function returns a `Picture`: a PNG with a caption that says in
words what it shows.
"""

from utils.draw.charts import bars, graph, lines, timeline
from utils.draw.chips import ladder, neuroncore
from utils.draw.hardware import Rung, core, memory_ladder, topologies
from utils.draw.numbers import number_line, ranges, stalled, training
from utils.draw.picture import Picture
from utils.draw.rooflines import roofline

__all__ = [
    "Picture",
    "Rung",
    "bars",
    "core",
    "graph",
    "ladder",
    "lines",
    "memory_ladder",
    "neuroncore",
    "number_line",
    "ranges",
    "roofline",
    "stalled",
    "timeline",
    "topologies",
    "training",
]
