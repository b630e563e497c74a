"""One core in time: when an instruction that may go now begins and ends, and what that leaves."""

from collections import deque

from utils.nki.simulator.enums import engine
from utils.nki.simulator.timing.constants import Constants
from utils.nki.simulator.timing.transfers import Transfer
from utils.nki.simulator.timing.work import QUEUES, SCALAR, TENSOR, Part, Work


class Array:
    """The state of one array: when it began to warm up, and when it was busy of late."""

    def __init__(self, constants: Constants, warm_up: bool) -> None:
        self.window = constants.warm_up if warm_up else 0.0
        self.rate = constants.cold_rate
        self.below = constants.cold_below
        self.began = 0.0
        self.busy: deque[list[float]] = deque()

    def run(self, start: float, duration: float) -> float:
        """How long an instruction takes that begins now and takes `duration` at full rate."""
        if not self.window:
            return duration
        if not self.busy:
            self.began = start
            self.busy.append([start, start])
        elif start > self.busy[-1][1]:
            if self._was_idle(start):
                self.began = start
            self.busy.append([start, start])
        cold = self.began + self.window - start
        if cold > 0:
            work = cold * self.rate
            duration = duration / self.rate if duration <= work else cold + duration - work
        self.busy[-1][1] = max(self.busy[-1][1], start + duration)
        return duration

    def _was_idle(self, now: float) -> bool:
        since = now - self.window
        while self.busy and self.busy[0][1] <= since:
            self.busy.popleft()
        share = sum(end - max(begin, since) for begin, end in self.busy) / self.window
        return share < self.below


DATA, TURN, DMA, TABLE, PORT, GENERATOR, WEIGHTS, MEETING = range(8)
"""What an instruction waited for last: another's result, its turn on the engine, the DMA engines,
a table of functions, a shared port, a descriptor generator, the weights of the array, a core."""


class Times:
    """What a schedule says of each node, in ns: lists by node.

    start: when it is issued. stop: when its queue is free again. end: when its result can be read.
    first: of a DMA, its first byte. cause, why: what it waited for last. loads: of tables of
    functions, (start, stop, node).
    """

    def __init__(self, count: int) -> None:
        self.start = [0.0] * count
        self.stop = [0.0] * count
        self.end = [0.0] * count
        self.first = [0.0] * count
        self.cause = [-1] * count
        self.why = [DATA] * count
        self.loads: list[tuple[float, float, int]] = []


class Machine:
    """The state of one core. free: when each queue can issue again. lanes: when each DMA engine is
    done; as long as all are done at the same time `even` says it alone.
    """

    def __init__(self, constants: Constants, warm_up: bool, times: Times) -> None:
        self.constants, self.times = constants, times
        self.free = [0.0] * len(QUEUES)
        self.last = [-1] * len(QUEUES)
        self.ports = [(0.0, -1), (0.0, -1)]
        self.generators = [(0.0, -1), (0.0, -1)]
        self.table = ""
        self.array = Array(constants, warm_up)
        self.product = 0.0
        self.parts: dict[Part, float] = {}
        self.even = 0.0
        self.lanes: list[float] | None = None
        self.transfer = -1

    def run(self, kind: int, node: int, work: Work, now: float, ready: float) -> None:
        """Issue a node on the queue `kind` at `now`; its operands are there since `ready`."""
        times = self.times
        start, busy = now, work.busy
        if self.last[kind] >= 0 and self.free[kind] >= ready:
            times.cause[node], times.why[node] = self.last[kind], TURN
        if kind == TENSOR:
            loaded = max(ready, self.product) + work.weights
            if loaded > start:
                start, times.why[node] = loaded, WEIGHTS
            start = self._wait_for_parts(node, work, start)
            self.product = start
            busy = self.array.run(start, busy)
            self._take_part(work, start + busy)
        elif kind == SCALAR and work.table and work.table != self.table:
            start = self._load_table(node, work, start)
        if work.ports:
            start = self._wait_for_ports(node, work, start)
        if work.transfer is not None:
            self._transfer(kind, node, work, work.transfer, start)
            return
        done = stop = start + busy
        for port in work.ports:
            self.ports[port] = (stop, node)
        if work.part is not None:  # the rest of the array is free sooner
            stop = start + min(busy, work.turnaround)
        times.start[node] = start
        times.stop[node] = self.free[kind] = stop
        times.end[node] = done + work.latency
        self.last[kind] = node

    def _wait_for_parts(self, node: int, work: Work, start: float) -> float:
        """Products in parts of the array run side by side; one that overlaps them waits."""
        if not self.parts:
            return start
        until = max(
            (done for part, done in self.parts.items() if _overlap(part, work.part)), default=0.0
        )
        if until > start:
            self.times.cause[node], self.times.why[node] = self.last[TENSOR], TURN
            start = until
        if work.part is None:
            self.parts.clear()
        return start

    def _take_part(self, work: Work, done: float) -> None:
        if work.part is not None:
            self.parts[work.part] = done

    def _load_table(self, node: int, work: Work, start: float) -> float:
        """A table is loaded as soon as the Scalar Engine is free, before the operands are there."""
        times, free = self.times, self.free[SCALAR]
        loaded = free + self.constants.table_load
        times.loads.append((free, loaded, node))
        self.table = work.table
        if loaded <= start:
            return start
        times.cause[node], times.why[node] = self.last[SCALAR], TABLE
        return loaded

    def _wait_for_ports(self, node: int, work: Work, start: float) -> float:
        times = self.times
        for port in work.ports:
            until, user = self.ports[port]
            if until > start:
                start = until
                times.cause[node], times.why[node] = user, PORT
        return start

    def _transfer(self, kind: int, node: int, work: Work, transfer: Transfer, start: float) -> None:
        """Descriptors, then the data phase on the DMA engines, then the consumer's semaphore."""
        times, constants = self.times, self.constants
        generator = work.generator
        if generator is not None:
            until, user = self.generators[generator]
            if until > start:
                start = until
                times.cause[node], times.why[node] = user, GENERATOR
        issued = start + work.busy
        if generator is not None:
            self.generators[generator] = (issued, node)
        times.start[node] = start
        stop = issued
        if kind == SCALAR:  # its sequencer goes on while the generator works
            stop = start + constants.semaphore[engine.scalar]
        times.stop[node] = self.free[kind] = stop
        self.last[kind] = node
        last = self._move(node, transfer, issued + work.start)
        spread = transfer.spread * constants.dma_stagger
        times.end[node] = last + spread + constants.dma_done
        self.transfer = node

    def _move(self, node: int, moved: Transfer, at: float) -> float:
        """The data phase, from `at` on wherever an engine is free; returns when the last ends."""
        times = self.times
        if moved.even and self.lanes is None:
            begin = at
            if self.even > at:
                begin = self.even
                times.cause[node], times.why[node] = self.transfer, DMA
            times.first[node] = begin
            self.even = begin + moved.even
            return self.even
        if self.lanes is None:
            self.lanes = [self.even] * self.constants.dma_engines
        lanes = self.lanes
        begins = [max(at, until) for until in lanes]
        ends = [begin + share for begin, share in zip(begins, moved.shares, strict=True)]
        taking = [i for i, share in enumerate(moved.shares) if share]
        for i in taking:
            lanes[i] = ends[i]
        if not taking:
            times.first[node] = at
            return at
        slowest = max(taking, key=ends.__getitem__)
        if begins[slowest] > at:
            times.cause[node], times.why[node] = self.transfer, DMA
        times.first[node] = min(begins[i] for i in taking)
        if len(taking) == len(lanes) and min(lanes) == max(lanes):
            self.even, self.lanes = lanes[0], None
        return ends[slowest]


def _overlap(one: Part, other: Part | None) -> bool:
    """Whether two parts of the array share rows and columns; None is all of it."""
    if other is None:
        return True
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]
