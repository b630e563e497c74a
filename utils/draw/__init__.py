"""Figures of the lessons. Each function returns a `Picture`: a PNG with a caption that says in
words what it shows.
"""

from utils.draw.charts import bars, graph, lines, timeline
from utils.draw.picture import Picture

__all__ = ["Picture", "bars", "graph", "lines", "timeline"]
