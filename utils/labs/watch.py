"""What observers count while an answer runs: graphs that ran, training steps that began."""

import itertools
from typing import Any

from utils.labs import Answer, Facts
from utils.labs.plain import numbers

# The compiler remembers every graph of this process, and a shape is part of a graph. A shape that
# no earlier check used makes compiles count as they do in a fresh process.
unused = itertools.count(1)


def launches() -> int:
    """Graphs launched so far in this process; exact at any moment, without waiting."""
    from torch_xla.debug import metrics

    names = ("UncachedCompile", "CachedCompile")
    return sum(metrics.counter_value(name) or 0 for name in names)


def compiles() -> int:
    """Graphs that this process has compiled so far."""
    from torch_xla.debug import metrics

    return metrics.counter_value("UncachedCompile") or 0


def _graph_sizes() -> tuple[int, list[float]]:
    """The number of graphs that ran so far, and the nodes of the latest of them."""
    from torch_xla.debug import metrics

    count, _, latest = metrics.metric_data("TensorsGraphSize") or (0, 0, [])
    return count, [nodes for _, nodes in latest]


class Grown(Exception):
    """Ends an answer whose graphs grow: each takes the compiler longer, and all is seen."""


class Steps:
    """Watches training steps: how many began, how many were recorded but not run at worst, and how
    many graphs ran within the first two."""

    def __init__(self) -> None:
        self.started = 0
        self._waiting = 0
        self._before = launches()
        self._graphs = _graph_sizes()[0]
        self._early: int | None = None

    def begin(self) -> None:
        """To be called when a step begins. Raises Grown if the last graph is far too large."""
        self._look()
        count, latest = _graph_sizes()
        own = latest[len(latest) - (count - self._graphs) :]
        if self.started == 2:
            self._early = len(own)
        if self._early and own[-1] > 4 * max(own[: self._early]):
            raise Grown
        self.started += 1

    def facts(self) -> Facts:
        """Steps begun, steps that waited at worst, and graphs that ran within the first two."""
        self._look()
        return {"steps": self.started, "waiting": self._waiting, "early_graphs": self._early or 0}

    def _look(self) -> None:
        self._waiting = max(self._waiting, self.started - (launches() - self._before))


def counts(reading: Any) -> Facts:
    """A reading of `utils.xla.meter.Meter` as plain values."""
    return {
        "executions": reading.executions,
        "compiles": reading.compiles,
        "reads": reading.reads,
        "graph_nodes": list(reading.graph_nodes),
    }


def numbers_of(answer: Answer, *inputs: Any) -> Facts:
    """What `numbers` says of the answer's result, and whether it was stopped."""
    try:
        return {"stopped": False, **numbers(answer(*inputs))}
    except Grown:
        return {"stopped": True, **numbers(None)}
