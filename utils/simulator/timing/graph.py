"""Which instruction waits for which: reads after writes, writes after reads and writes, by region.

Nodes are numbered core after core, in program order. An edge goes from a node to a later one of the
same core; cores wait for each other only at barriers.
"""

from dataclasses import dataclass, field
from typing import Any

from utils.simulator.program import Core, Instruction, Program
from utils.simulator.timing.constants import Constants
from utils.simulator.timing.regions import WHOLE, Layout
from utils.simulator.timing.rotation import Users, memories
from utils.simulator.timing.work import QUEUES, SYNC, Work, work_of

BARRIERS = frozenset(("core_barrier", "sendrecv"))


@dataclass
class Graph:
    """Nodes in program order, as parallel lists.

    after: for each node the nodes that wait for its end; `~n` waits only for its place in the order
    of an engine. waits: how many edges come in. queue: the number of its queue, of all cores.
    """

    instructions: list[Instruction] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)
    queue: list[int] = field(default_factory=list)
    after: list[list[int]] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)
    meetings: dict[int, int] = field(default_factory=dict)
    peak: dict[Any, int] = field(default_factory=dict)
    cores: int = 1


class _State:
    """Who wrote and read the regions of one allocation: number -> [writer, readers]."""

    __slots__ = ("entries", "layout")

    def __init__(self, layout: Layout, users: Users) -> None:
        self.layout = layout
        self.entries: dict[int, list[Any]] = {WHOLE: [-1, users]} if users else {}


def build(program: Program, constants: Constants, rotation: bool) -> Graph:
    """The graph of all instructions of all cores."""
    graph = Graph(cores=len(program.cores))
    layouts: dict[Any, Layout] = {}
    waiting: dict[Any, list[int]] = {}
    for core in program.cores:
        _Builder(program, core, constants, graph, layouts, waiting, rotation).build()
    for arrivals in waiting.values():
        for node in arrivals:
            graph.meetings[node] = max(arrivals) if node != max(arrivals) else min(arrivals)
    return graph


class _Builder:
    """Adds the nodes of one core."""

    def __init__(
        self,
        program: Program,
        core: Core,
        constants: Constants,
        graph: Graph,
        layouts: dict[Any, Layout],
        waiting: dict[Any, list[int]],
        rotation: bool,
    ) -> None:
        self.program, self.core, self.constants, self.graph = program, core, constants, graph
        self.layouts, self.waiting = layouts, waiting
        self.places = memories(program.target, rotation)
        self.states: dict[int, _State] = {}
        self.written: set[Any] = set()
        self.barriers = 0

    def build(self) -> None:
        graph, first = self.graph, len(self.graph.works)
        offset = self.core.index * len(QUEUES)
        accesses, last = self._accesses()
        ending: dict[int, list[Any]] = {}
        for storage, position in last.items():
            ending.setdefault(position, []).append(storage)
        count = len(accesses)
        graph.instructions += self.core.instructions
        graph.works += [each[0] for each in accesses]
        graph.queue += [work.queue + offset for work, _, _ in accesses]
        graph.after += [[] for _ in range(count)]
        graph.waits += [0] * count
        for position, (work, reads, writes) in enumerate(accesses):
            node = first + position
            for tensor in reads:
                self._read(node, work, tensor)
            for tensor in writes:
                self._write(node, work, tensor)
            instruction = self.core.instructions[position]
            for other in instruction.after:
                if other is not instruction:
                    self._edge(first + other.index, node)
            if work.name in BARRIERS:
                self._meet(node)
            for storage in ending.get(position, ()):
                self._retire(storage)
        for buffer, places in self.places.items():
            graph.peak[buffer] = max(places.peak, graph.peak.get(buffer, 0))

    def _accesses(self) -> tuple[list[tuple[Work, list[Any], list[Any]]], dict[Any, int]]:
        """What each instruction reads and writes, and the last use of each tile on chip."""
        made = []
        last: dict[Any, int] = {}
        on, constants = self.program.target, self.constants
        for position, instruction in enumerate(self.core.instructions):
            checked, args = instruction.checked, instruction.args
            work = checked.memo
            if work is None:
                work = checked.memo = work_of(instruction, on, constants)
            if work.lists or work.indices:
                reads, writes = _tensors(work, args)
            else:
                reads = [args[name] for name in work.reads]
                writes = [args[name] for name in work.writes]
            for tensor in reads:
                if tensor.storage.on_chip:
                    last[tensor.storage] = position
            for tensor in writes:
                storage = tensor.storage
                if storage.on_chip:
                    last[storage] = position
                self.written.add(storage)
            made.append((work, reads, writes))
        return made, last

    def _edge(self, before: int, node: int) -> None:
        self.graph.after[before].append(node)
        self.graph.waits[node] += 1

    def _order(self, before: int, node: int) -> None:
        """Wait for another node's end; on one engine its place in the order is enough."""
        graph = self.graph
        queue = graph.queue[node]
        if graph.queue[before] == queue and queue % len(QUEUES) <= SYNC:
            if graph.works[before].transfer is None:
                graph.after[before].append(~node)
                graph.waits[node] += 1
                return
        self._edge(before, node)

    def _state(self, storage: Any) -> _State:
        state = self.states.get(storage.index)
        if state is None:
            shape = (storage.shape, storage.dtype, storage.buffer)
            layout = self.layouts.get(shape)
            if layout is None:
                bank = self.program.target.psum_bank_bytes
                layout = self.layouts[shape] = Layout(storage, bank)
            users: Users = []
            if storage.on_chip and storage.address is None:
                users = self.places[storage.buffer].take(storage)
            state = self.states[storage.index] = _State(layout, users)
        return state

    def _retire(self, storage: Any) -> None:
        if storage.address is None:
            users: Users = []
            for writer, readers in self.states[storage.index].entries.values():
                if writer >= 0:
                    users.append(writer)
                users += readers
            self.places[storage.buffer].give_up(storage, users)

    def _read(self, node: int, work: Work, tensor: Any) -> None:
        if tensor.storage not in self.written and not tensor.storage.on_chip:
            return  # an argument that the kernel leaves alone
        state = self._state(tensor.storage)
        entries, layout = state.entries, state.layout
        number = layout.number(tensor)
        entry = entries.get(number)
        if entry is None:
            entry = entries[number] = [-1, []]
        elif entry[0] >= 0 and entry[0] != node:
            self._edge(entry[0], node)
        entry[1].append(node)
        if len(entries) > 1:
            near = layout.near[number]
            for other in near:
                entry = entries.get(other)
                if entry is not None and entry[0] >= 0 and entry[0] != node:
                    self._edge(entry[0], node)

    def _write(self, node: int, work: Work, tensor: Any) -> None:
        state = self._state(tensor.storage)
        entries, layout = state.entries, state.layout
        number = layout.number(tensor)
        entry = entries.get(number)
        if entry is not None:
            self._replace(node, entry)
        if len(entries) > 1 or entry is None:
            inside = layout.inside[number]
            for other in layout.near[number]:
                entry = entries.get(other)
                if entry is not None:
                    self._replace(node, entry)
                    if other in inside:
                        del entries[other]
        entries[number] = [node, []]

    def _replace(self, node: int, entry: list[Any]) -> None:
        writer, readers = entry
        if writer >= 0 and writer != node:
            self._order(writer, node)
        for reader in readers:
            if reader != node:
                self._order(reader, node)

    def _meet(self, node: int) -> None:
        self.waiting.setdefault(self.barriers, []).append(node)
        self.barriers += 1


def _tensors(work: Work, args: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """Operands that are lists, and the indices of operands found at run time, included."""
    reads: list[Any] = []
    writes: list[Any] = []
    for names, found in ((work.reads, reads), (work.writes, writes)):
        for name in names:
            value = args[name]
            found += [t for t in value if t is not None] if name in work.lists else [value]
    for name in work.indices:
        tile = args[name].indirect.tile
        if tile is not None:
            reads.append(tile)
    return reads, writes
