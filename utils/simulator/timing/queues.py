"""Running the graph: in-order queues, engines, shared ports, DMA engines; when everything begins.

A queue may issue an instruction when what it waits for is scheduled. "As written" only the first
of a queue may go; a list schedule takes the earliest that is ready among the next ones of the
queue (`window`), as a compiler that reorders independent instructions does.
"""

from heapq import heappop, heappush

from utils.simulator.enums import engine
from utils.simulator.timing.array import Array
from utils.simulator.timing.constants import Constants
from utils.simulator.timing.graph import Graph
from utils.simulator.timing.work import QUEUES, SCALAR, TENSOR, Work

ENGINES = (
    engine.tensor, engine.vector, engine.scalar, engine.gpsimd, engine.sync, engine.dma, engine.dma,
)  # fmt: skip
FOREVER = float("inf")
DATA, TURN, DMA, TABLE, PORT, GENERATOR, WEIGHTS = range(7)
"""What an instruction waited for last: another's result, its turn on the engine, the DMA engines,
a table of functions, a shared port, a descriptor generator, the weights of the array."""


class Machine:
    """The state of one core while a schedule is made."""

    def __init__(self, constants: Constants, warm_up: bool) -> None:
        self.free = [0.0] * len(QUEUES)
        self.last = [-1] * len(QUEUES)
        self.ports = [0.0, 0.0]
        self.port_user = [-1, -1]
        self.generators = [0.0, 0.0]
        self.generator_user = [-1, -1]
        self.table = ""
        self.array = Array(constants, warm_up)
        self.matmul = 0.0
        self.even = 0.0
        self.lanes: list[float] | None = None
        self.transfer = -1


class Run:
    """One schedule in the making; afterwards `start`, `stop` and `end` of each node, in ns.

    stop: when the queue is free again. end: when the result can be read. first: for a DMA the first
    byte. cause, why: what each node waited for last. loads: tables loaded, (start, end, node).
    """

    def __init__(self, graph: Graph, constants: Constants, window: int, warm_up: bool) -> None:
        count = len(graph.works)
        self.graph, self.constants, self.window = graph, constants, window
        self.machines = [Machine(constants, warm_up) for _ in range(graph.cores)]
        self.start = [0.0] * count
        self.stop = [0.0] * count
        self.end = [0.0] * count
        self.first = [0.0] * count
        self.cause = [-1] * count
        self.why = [DATA] * count
        self.loads: list[tuple[float, float, int]] = []
        self.ready = [0.0] * count
        self.met: dict[int, float] = {}
        size = len(QUEUES) * graph.cores
        self.order: list[list[int]] = [[] for _ in range(size)]
        self.place = [0] * count
        for node, queue in enumerate(graph.queue):
            self.place[node] = len(self.order[queue])
            self.order[queue].append(node)
        self.head = [0] * size
        self.done = [bytearray(len(nodes)) for nodes in self.order]
        self.coming: list[list[tuple[float, int]]] = [[] for _ in range(size)]
        self.here: list[list[int]] = [[] for _ in range(size)]
        self.events: list[tuple[float, int]] = []
        self.planned = [FOREVER] * size

    def run(self) -> None:
        waits = list(self.graph.waits)
        for queue, nodes in enumerate(self.order):
            for node in nodes[: self.window]:
                if not waits[node]:
                    self._arrive(queue, node)
        left = len(self.graph.works)
        while self.events:
            now, queue = heappop(self.events)
            if now != self.planned[queue]:
                continue
            self.planned[queue] = FOREVER
            node = self._choose(queue, now)
            if node >= 0:
                left -= 1
                self._issue(queue, node, now, waits)
            self._plan(queue)
        assert not left, f"{left} instructions wait for each other"

    def _arrive(self, queue: int, node: int) -> None:
        """A node of the window has nothing left to wait for but time."""
        heappush(self.coming[queue], (self.ready[node], node))
        self._plan(queue)

    def _plan(self, queue: int) -> None:
        """The next time at which the queue can issue."""
        if self.here[queue]:
            earliest = 0.0
        elif self.coming[queue]:
            earliest = self.coming[queue][0][0]
        else:
            return
        core, kind = divmod(queue, len(QUEUES))
        at = max(earliest, self.machines[core].free[kind])
        if at < self.planned[queue]:
            self.planned[queue] = at
            heappush(self.events, (at, queue))

    def _choose(self, queue: int, now: float) -> int:
        """The first in program order of those that are ready."""
        coming, here = self.coming[queue], self.here[queue]
        while coming and coming[0][0] <= now:
            heappush(here, heappop(coming)[1])
        return heappop(here) if here else -1

    def _issue(self, queue: int, node: int, now: float, waits: list[int]) -> None:
        graph = self.graph
        core, kind = divmod(queue, len(QUEUES))
        machine = self.machines[core]
        self._time(machine, kind, node, graph.works[node], now)
        end = self.end[node]
        semaphore = 0.0
        for other in graph.after[node]:
            if other < 0:
                other = ~other
            else:
                into = graph.queue[other]
                if into != queue and graph.works[node].transfer is None:
                    semaphore = self.constants.semaphore[ENGINES[into % len(QUEUES)]]
                else:
                    semaphore = 0.0
                if end + semaphore > self.ready[other]:
                    self.ready[other] = end + semaphore
                    self.cause[other] = node
            waits[other] -= 1
            if not waits[other]:
                into = graph.queue[other]
                if self.place[other] < self.head[into] + self.window:
                    self._arrive(into, other)
        self._advance(queue, node, waits)

    def _advance(self, queue: int, node: int, waits: list[int]) -> None:
        """Move the window past what is issued."""
        done, order = self.done[queue], self.order[queue]
        done[self.place[node]] = 1
        head = self.head[queue]
        while head < len(order) and done[head]:
            head += 1
            entering = head + self.window - 1
            if entering < len(order) and not waits[order[entering]]:
                self.head[queue] = head
                self._arrive(queue, order[entering])
        self.head[queue] = head

    def _time(self, machine: Machine, kind: int, node: int, work: Work, now: float) -> None:
        """Start, stop and end of a node that is issued now, and what that does to the machine."""
        free = machine.free[kind]
        start = now
        if free >= self.ready[node] and machine.last[kind] >= 0:
            self.cause[node], self.why[node] = machine.last[kind], TURN
        busy = work.busy
        if kind == TENSOR:
            begin = max(self.ready[node], machine.matmul) + work.weights
            if begin > start:
                start, self.why[node] = begin, WEIGHTS
            machine.matmul = start
            busy = machine.array.run(start, busy)
        elif kind == SCALAR and work.table and work.table != machine.table:
            loaded = free + self.constants.table_load
            self.loads.append((free, loaded, node))
            machine.table = work.table
            if loaded > start:
                start, self.why[node], self.cause[node] = loaded, TABLE, machine.last[kind]
        for port in work.ports:
            if machine.ports[port] > start:
                start, self.why[node] = machine.ports[port], PORT
                self.cause[node] = machine.port_user[port]
        if work.generator is not None:
            ready = machine.generators[work.generator]
            if ready > start:
                start, self.why[node] = ready, GENERATOR
                self.cause[node] = machine.generator_user[work.generator]
            machine.generators[work.generator] = start + busy
            machine.generator_user[work.generator] = node
        stop = start + busy
        for port in work.ports:
            machine.ports[port], machine.port_user[port] = stop, node
        self.start[node] = start
        machine.last[kind] = node
        if work.transfer is None:
            self.end[node] = stop + work.latency
        else:
            self.end[node] = self._move(machine, node, work, stop)
            if kind == SCALAR:
                stop = start + self.constants.semaphore[engine.scalar]
        self.stop[node] = machine.free[kind] = stop

    def _move(self, machine: Machine, node: int, work: Work, issued: float) -> float:
        """The data phase on the DMA engines; when the consumer may start."""
        constants, moved = self.constants, work.transfer
        at = issued + work.start
        if moved.even and machine.lanes is None:
            begin = at if at > machine.even else machine.even
            if machine.even > at:
                self.cause[node], self.why[node] = machine.transfer, DMA
            machine.even = last = begin + moved.even
        else:
            if machine.lanes is None:
                machine.lanes = [machine.even] * constants.dma_engines
            lanes = machine.lanes
            begin, last = FOREVER, at
            longest = 0.0
            for lane, share in enumerate(moved.shares):
                if share:
                    first = at if at > lanes[lane] else lanes[lane]
                    begin = min(begin, first)
                    lanes[lane] = first + share
                    if first + share > last:
                        last = first + share
                        longest = first - at
            if longest > 0:
                self.cause[node], self.why[node] = machine.transfer, DMA
            if moved.even and min(lanes) == max(lanes):
                machine.even, machine.lanes = lanes[0], None
        machine.transfer = node
        self.first[node] = begin
        return last + moved.spread * constants.dma_stagger + constants.dma_done
