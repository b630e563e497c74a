"""Which instruction waits for which: reads after writes, writes after reads and writes, by region.

Nodes are numbered core after core, in program order. An edge goes from a node to a later one of the
same core. Cores wait for each other only where they meet: at barriers and exchanges.
"""

from dataclasses import dataclass, field
from typing import Any

from utils.nki.simulator.memory import Storage
from utils.nki.simulator.program import Core, Instruction, Program
from utils.nki.simulator.registers import NkiScalar, VirtualRegister
from utils.nki.simulator.tensor import Tensor
from utils.nki.simulator.timing.constants import Constants
from utils.nki.simulator.timing.regions import WHOLE, Layout
from utils.nki.simulator.timing.rotation import Place, Users, memories
from utils.nki.simulator.timing.work import QUEUES, SYNC, Work, work_of

MEETINGS = frozenset(("core_barrier", "sendrecv"))
UNTRACKED = None
"""The state of an argument that the kernel never writes: nothing has to wait for its readers."""


@dataclass
class Graph:
    """Nodes in program order, as parallel lists.

    after: for each node the nodes that wait for its end; `~n` waits only for its place in the order
    of an engine. waits: how many edges come in. queue: the number of its queue, of all cores.
    meets: nodes of two cores that wait for each other. places: the tiles of each core on chip.
    """

    cores: int
    instructions: list[Instruction] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)
    queue: list[int] = field(default_factory=list)
    after: list[list[int]] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)
    meets: dict[int, int] = field(default_factory=dict)
    places: list[list[Place]] = field(default_factory=list)


def build(program: Program, constants: Constants, rotation: bool) -> Graph:
    """The graph of all instructions of all cores."""
    graph = Graph(len(program.cores))
    meetings: dict[Any, list[int]] = {}
    layouts: dict[Any, Layout] = {}
    for core in program.cores:
        builder = _Builder(program, core, constants, graph, rotation)
        builder.layouts = layouts
        builder.build()
        met: dict[str, int] = {}
        for node in builder.meeting:
            name = graph.works[node].name
            met[name] = met.get(name, 0) + 1
            meetings.setdefault((name, met[name]), []).append(node)
    for nodes in meetings.values():
        if len(nodes) == 2:
            graph.meets[nodes[0]], graph.meets[nodes[1]] = nodes[1], nodes[0]
    return graph


class _Builder:
    """Adds the nodes of one core.

    states: for each allocation who wrote and read its regions last, {region: [writer, readers]},
    its layout, and the users of its place before. What a write replaces is forgotten.
    """

    def __init__(
        self, program: Program, core: Core, constants: Constants, graph: Graph, rotation: bool
    ) -> None:
        self.program, self.core, self.constants, self.graph = program, core, constants, graph
        self.layouts: dict[Any, Layout] = {}
        self.memories = memories(program.target, rotation)
        self.states: dict[Storage, tuple[dict[int, list[Any]], Layout, Users] | None] = {}
        self.registers: dict[int, int] = {}
        self.meeting: list[int] = []
        self.after, self.waits, self.queue = graph.after, graph.waits, graph.queue
        self.in_order: list[bool] = []
        self.first = len(graph.works)

    def build(self) -> None:
        graph, first = self.graph, self.first
        offset = self.core.index * len(QUEUES)
        accesses, ending = self._accesses()
        graph.instructions += self.core.instructions
        graph.works += [work for work, _, _ in accesses]
        graph.queue += [work.queue + offset for work, _, _ in accesses]
        graph.after += [[] for _ in accesses]
        graph.waits += [0] * len(accesses)
        self.in_order = [w.transfer is None and w.queue <= SYNC for w, _, _ in accesses]
        for position, (work, reads, writes) in enumerate(accesses):
            node = first + position
            for tensor in reads:
                self._read(node, tensor)
            for tensor in writes:
                self._write(node, tensor)
            instruction = self.core.instructions[position]
            for other in instruction.after:
                if other.index < position:
                    self._edge(first + other.index, node)
            if work.registers:
                self._registers(node, work, instruction.args)
            if work.name in MEETINGS:
                self.meeting.append(node)
            if position in ending:
                for storage in ending[position]:
                    self._retire(storage)
        graph.places.append([p for memory in self.memories.values() for p in memory.given])

    def _accesses(
        self,
    ) -> tuple[list[tuple[Work, list[Tensor], list[Tensor]]], dict[int, list[Storage]]]:
        """What each instruction reads and writes, and which tiles nobody uses after it."""
        on, constants = self.program.target, self.constants
        made = []
        last: dict[Storage, int] = {}
        written = set()
        for position, instruction in enumerate(self.core.instructions):
            checked, args = instruction.checked, instruction.args
            work = checked.memo
            if work is None:
                work = checked.memo = work_of(instruction, on, constants)
            if work.plain:
                reads = [args[name] for name in work.reads]
                writes = [args[name] for name in work.writes]
            else:
                reads, writes = _tensors(work, args)
            for tensor in reads:
                last[tensor.storage] = position
            for tensor in writes:
                storage = tensor.storage
                last[storage] = position
                written.add(storage)
            made.append((work, reads, writes))
        ending: dict[int, list[Storage]] = {}
        for storage, position in last.items():
            if storage.on_chip:
                ending.setdefault(position, []).append(storage)
            elif storage not in written:
                self.states[storage] = UNTRACKED
        return made, ending

    def _edge(self, before: int, node: int) -> None:
        others = self.after[before]
        if not others or others[-1] != node:
            others.append(node)
            self.waits[node] += 1

    def _order(self, before: int, node: int) -> None:
        """Wait for another node's end; on the same engine its place in the order is enough."""
        if self.queue[before] == self.queue[node] and self.in_order[before - self.first]:
            others = self.after[before]
            if not others or (others[-1] != node and others[-1] != ~node):
                others.append(~node)
                self.waits[node] += 1
        else:
            self._edge(before, node)

    def _state(self, storage: Storage) -> tuple[dict[int, list[Any]], Layout, Users]:
        """A new state: writes of a tile wait for the users of its place before."""
        shape = (storage.shape, storage.dtype, storage.buffer)
        layout = self.layouts.get(shape)
        if layout is None:
            bank = self.program.target.psum_bank_bytes
            layout = self.layouts[shape] = Layout(storage, bank)
        before: Users = []
        if storage.on_chip and storage.address is None:
            before = self.memories[storage.buffer].take(storage)
        made = self.states[storage] = ({}, layout, before)
        return made

    def _retire(self, storage: Storage) -> None:
        if storage.address is not None:
            return
        entries, _, before = self.states[storage] or ({}, None, [])
        users: Users = []
        for writer, readers in entries.values():
            if writer >= 0:
                users.append(writer)
            users += readers
        if all(writer < 0 for writer, _ in entries.values()):
            users += before  # nothing was written that has waited for them
        self.memories[storage.buffer].give_up(storage, users)

    def _read(self, node: int, tensor: Tensor) -> None:
        storage = tensor.storage
        try:
            state = self.states[storage]
        except KeyError:
            state = self._state(storage)
        if state is UNTRACKED:
            return
        entries, layout, _ = state
        number = WHOLE if tensor.shape is storage.shape else layout.number(tensor)
        entry = entries.get(number)
        if entry is None:
            entry = entries[number] = [-1, []]
        elif entry[0] >= 0 and entry[0] != node:
            self._edge(entry[0], node)
        entry[1].append(node)
        if len(entries) > 1:
            for other in layout.near[number]:
                entry = entries.get(other)
                if entry is not None and entry[0] >= 0 and entry[0] != node:
                    self._edge(entry[0], node)

    def _write(self, node: int, tensor: Tensor) -> None:
        storage = tensor.storage
        try:
            state = self.states[storage]
        except KeyError:
            state = self._state(storage)
        assert state is not None, "only what nobody writes is untracked"
        entries, layout, before = state
        number = WHOLE if tensor.shape is storage.shape else layout.number(tensor)
        for user in before:
            self._order(user, node)
        if number == WHOLE:
            before.clear()
        entry = entries.get(number)
        if entry is not None:
            self._replace(node, entry)
        if len(entries) > 1 or (entry is None and entries):
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

    def _registers(self, node: int, work: Work, args: dict[str, Any]) -> None:
        """A register is read after it was loaded."""
        for name in work.registers:
            value = args[name]
            register = value if isinstance(value, VirtualRegister) else value.indirect.index
            roots = register.roots if isinstance(register, NkiScalar) else (register,)
            loads = (self.registers.get(id(root)) for root in roots)
            for loaded in {load for load in loads if load is not None}:
                self._edge(loaded, node)
            if name in ("dst", "_result") and value is register:
                self.registers[id(register)] = node


def _tensors(work: Work, args: dict[str, Any]) -> tuple[list[Tensor], list[Tensor]]:
    """Operands that are lists, and the indices of operands found at run time, included."""
    reads: list[Tensor] = []
    writes: list[Tensor] = []
    for names, result in ((work.reads, reads), (work.writes, writes)):
        for name in names:
            value = args[name]
            result += [t for t in value if isinstance(t, Tensor)] if name in work.lists else [value]
    reads += [args[name].indirect.tile for name in work.indices]
    return reads, writes
