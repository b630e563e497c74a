"""Running the graph: which instruction of each in-order queue goes next, and when.

A queue may issue an instruction once everything that it waits for is scheduled. "As written" only
the first of a queue may go; a list schedule takes the one that is ready earliest among the next
ones of the queue (`window`), as a compiler that reorders independent instructions does.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import heappop, heappush

from utils.nki.simulator.enums import engine
from utils.nki.simulator.program import Program
from utils.nki.simulator.timing.constants import Constants, constants
from utils.nki.simulator.timing.graph import Graph, build
from utils.nki.simulator.timing.machine import MEETING, Machine, Times
from utils.nki.simulator.timing.work import QUEUES

ENGINES = (
    engine.tensor, engine.vector, engine.scalar, engine.gpsimd, engine.sync, engine.dma, engine.dma,
)  # fmt: skip
NEVER = float("inf")


class Run:
    """One schedule in the making; `times` is the result.

    order: the nodes of each queue. head: how many of them are issued without a gap; `window` from
    there on may go. coming: those of them that wait only for time, (ready, node). events: (time,
    queue) at which a queue may issue, if that is still the plan.
    """

    def __init__(self, graph: Graph, constants: Constants, window: int, warm_up: bool) -> None:
        count, size = len(graph.works), len(QUEUES) * graph.cores
        self.graph, self.window = graph, window
        self.barrier = constants.barrier
        self.times = Times(count)
        self.machines = [Machine(constants, warm_up, self.times) for _ in range(graph.cores)]
        self.semaphore = [constants.semaphore[item] for item in ENGINES] * graph.cores
        self.waits = list(graph.waits)
        self.ready = [0.0] * count
        self.order: list[list[int]] = [[] for _ in range(size)]
        self.place = [0] * count
        for node, queue in enumerate(graph.queue):
            self.place[node] = len(self.order[queue])
            self.order[queue].append(node)
        self.head = [0] * size
        self.issued = bytearray(count)
        self.coming: list[list[tuple[float, int]]] = [[] for _ in range(size)]
        self.events: list[tuple[float, int]] = []
        self.planned = [NEVER] * size
        self.arrived: dict[int, int] = {}

    def run(self) -> Times:
        """Issue all instructions; what each one waited for is in the result."""
        for queue, nodes in enumerate(self.order):
            for node in nodes[: self.window]:
                if not self.waits[node]:
                    self._enter(queue, node)
        events, planned, works = self.events, self.planned, self.graph.works
        meets, kinds, left = self.graph.meets, len(QUEUES), len(works)
        while events:
            now, queue = heappop(events)
            if now != planned[queue]:
                continue
            planned[queue] = NEVER
            _, node = heappop(self.coming[queue])
            core, kind = divmod(queue, kinds)
            self.machines[core].run(kind, node, works[node], now, self.ready[node])
            left -= 1
            if meets and node in meets:
                self._meet(queue, node)
            else:
                self._release(queue, node)
            self._advance(queue, node)
            self._plan(queue)
        assert not left, f"{left} instructions wait for each other"
        return self.times

    def _enter(self, queue: int, node: int) -> None:
        """A node of the window has nothing left to wait for but time."""
        heappush(self.coming[queue], (self.ready[node], node))
        self._plan(queue)

    def _plan(self, queue: int) -> None:
        """The next time at which the queue can issue."""
        core, kind = divmod(queue, len(QUEUES))
        coming = self.coming[queue]
        if not coming:
            return
        at = max(self.machines[core].free[kind], coming[0][0])
        if at < self.planned[queue]:
            self.planned[queue] = at
            heappush(self.events, (at, queue))

    def _release(self, queue: int, node: int) -> None:
        """Those that waited for a node know now when it ends."""
        graph, waits, ready = self.graph, self.waits, self.ready
        end, queues = self.times.end[node], graph.queue
        is_dma = graph.works[node].transfer is not None
        for other in graph.after[node]:
            if other < 0:
                other = ~other
                into = queue
            else:
                into = queues[other]
                at = end if into == queue or is_dma else end + self.semaphore[into]
                if at > ready[other]:
                    ready[other] = at
                    self.times.cause[other] = node
            waits[other] -= 1
            if not waits[other] and self.place[other] < self.head[into] + self.window:
                self._enter(into, other)

    def _advance(self, queue: int, node: int) -> None:
        """Move the window past what is issued."""
        issued, order = self.issued, self.order[queue]
        issued[node] = 1
        head, count = self.head[queue], len(order)
        while head < count and issued[order[head]]:
            head += 1
            self.head[queue] = head
            entering = head + self.window - 1
            if entering < count and not self.waits[order[entering]]:
                self._enter(queue, order[entering])

    def _meet(self, queue: int, node: int) -> None:
        """Two cores go on together, when the later one is there."""
        times, other = self.times, self.graph.meets[node]
        core, kind = divmod(queue, len(QUEUES))
        if other not in self.arrived:
            self.arrived[node] = queue
            self.machines[core].free[kind] = NEVER
            return
        end = max(times.end[node], times.end[other]) + self.barrier
        late = node if times.end[node] >= times.end[other] else other
        for item, where in ((node, queue), (other, self.arrived[other])):
            core, kind = divmod(where, len(QUEUES))
            times.end[item] = times.stop[item] = self.machines[core].free[kind] = end
            if item != late:
                times.cause[item], times.why[item] = late, MEETING
            self._release(where, item)
            self._plan(where)


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
    program: Program, kind: str = "list", *, rotation: bool = True, warm_up: bool | None = None
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
