"""What a graph costs, counted from its HLO text: `cost(graph.hlo_text(loss))`.

FLOPs are exact for the operators that have them, bytes are two bounds, and an operator that cannot
be counted is named instead of being taken for free.
"""

from utils.xla.hlo.counting import Cost, OperatorCost, cost
