"""Figures of the lessons. Each function returns a `Picture`: a PNG with a caption that says in
words what it shows. What its modules take from matplotlib and networkx is imported inside of the
functions that draw: both are slow to load, and most users of a lesson's results draw nothing.
"""

from utils.show.draw.charts import bars, graph, lines, timeline
from utils.show.draw.chips import ladder, neuroncore
from utils.show.draw.collectives import collective_times, modelled_measured
from utils.show.draw.costs import break_even, break_even_surface, distribution, tornado, waterfall
from utils.show.draw.hardware import Rung, core, memory_ladder, topologies
from utils.show.draw.kernels import hbm_loads, kernel_roofline, kernel_timeline, occupancy
from utils.show.draw.meshes import traffic
from utils.show.draw.numbers import number_line, ranges, stalls, training
from utils.show.draw.picture import Picture
from utils.show.draw.plans import plans, scaling_curves
from utils.show.draw.rooflines import roofline
from utils.show.draw.tiles import access_order, matmul_operands, memories, tile_layout
from utils.show.draw.timelines import lanes, overlaps, pipelines
from utils.show.draw.verdicts import verdicts
