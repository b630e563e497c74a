"""From the recorded instructions of a kernel to a schedule: an estimate of when everything runs.

    constants   every number of the model, from data files
    transfers   descriptors of a DMA and the time of each DMA engine
    work        what one instruction asks of the machine
    regions     which bytes a view touches, and which views overlap
    rotation    where tiles lie, and who must be done before a place is used again
    graph       who waits for whom
    array       the warm-up of the Tensor Engine
    queues      engines, rings and ports in time

All times are nanoseconds from the start of the kernel, and estimates.
"""

from dataclasses import dataclass
from typing import Any

from utils.simulator.program import Program
from utils.simulator.timing.constants import Constants, constants
from utils.simulator.timing.graph import Graph, build
from utils.simulator.timing.queues import Run

__all__ = ["SCHEDULES", "Schedule", "schedule"]

SCHEDULES = ("list", "as written")


@dataclass(frozen=True, eq=False)
class Schedule:
    """When each instruction runs. Lists are by node, in program order, core after core.

    start, stop: when it holds its queue. end: when its result can be read. first: the first byte of
    a DMA. cause, why: the node it waited for last, and why (see `queues`). loads: tables of
    functions, (start, stop, node). seconds: from the start to the last result.
    """

    program: Program
    graph: Graph
    constants: Constants
    kind: str
    start: list[float]
    stop: list[float]
    end: list[float]
    first: list[float]
    cause: list[int]
    why: list[int]
    loads: list[tuple[float, float, int]]
    peak: dict[Any, int]

    @property
    def nanoseconds(self) -> float:
        return max(self.end, default=0.0)


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
    graph = build(program, of, rotation)
    window = of.window if kind == "list" else 1
    run = Run(graph, of, window, warm_up is None or warm_up)
    run.run()
    return Schedule(
        program, graph, of, kind, run.start, run.stop, run.end, run.first, run.cause, run.why,
        run.loads, graph.peak,
    )  # fmt: skip
