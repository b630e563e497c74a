"""From the recorded instructions of a kernel to a schedule: an estimate of when everything runs.

    constants   every number of the model, from data files
    transfers   descriptors of a DMA and the time of each DMA engine
    work        what one instruction asks of the machine
    regions     which bytes a view touches, and which views overlap
    rotation    where tiles lie, and who must be done before a place is used again
    graph       who waits for whom
    array       the warm-up of the Tensor Engine
    machine     engines, rings and ports of one core in time
    queues      which instruction goes next

All times are nanoseconds from the start of the kernel, and estimates.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from utils.nki.simulator.program import Program
from utils.nki.simulator.timing.constants import Constants, constants
from utils.nki.simulator.timing.graph import Graph, build
from utils.nki.simulator.timing.machine import Times
from utils.nki.simulator.timing.queues import Run

__all__ = ["SCHEDULES", "Schedule", "schedule", "without_collecting"]

SCHEDULES = ("list", "as written")


@dataclass(frozen=True, eq=False)
class Schedule:
    """When each instruction runs. Nodes are numbered in program order, core after core.

    kind: one of `SCHEDULES`. rotation: whether tiles took fresh places while there were any.
    """

    program: Program
    graph: Graph
    constants: Constants
    times: Times
    kind: str
    rotation: bool

    @property
    def nanoseconds(self) -> float:
        """From the start to the last result."""
        return max(self.times.end, default=0.0)


def schedule(
    program: Program,
    kind: str = "list",
    *,
    rotation: bool = True,
    warm_up: bool | None = None,
) -> Schedule:
    """Schedules a program.

    kind: "list" takes the earliest instruction that is ready, as a compiler that reorders would;
    "as written" keeps every engine in program order. rotation: tiles take fresh places while there
    are any. warm_up: the Tensor Engine begins at half rate; None: where the chip does.
    """
    if kind not in SCHEDULES:
        raise ValueError(f"schedule is {kind!r}; there are {', '.join(map(repr, SCHEDULES))}")
    of = constants(program.target.name)
    window = of.window if kind == "list" else 1
    with without_collecting():
        graph = build(program, of, rotation)
        times = Run(graph, of, window, warm_up is None or warm_up).run()
    return Schedule(program, graph, of, times, kind, rotation)


@contextmanager
def without_collecting() -> Iterator[None]:
    """No search for cycles meanwhile: it would go through all instructions again and again."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
