"""What the compiler makes of a kernel before it runs: a second program, estimated like the first.

A kernel says what is computed; the compiler still chooses engines, moves loads, and makes room.
Each rule of `RULES` is one of these choices, can be left out, and names what suggests it. None is
documented as such: they are read off published profiles of published kernels, whose rows stand in
`suggested` of utils/facts/data/nki_published.yaml and count as fitted.

Not modelled, because nothing in a recorded program says where it happens: loops whose iterations
the compiler merges into one instruction, rows that it spreads through PSUM, results that it keeps
instead of computing them again, and what it makes of very small transfers.

Programs are changed as lists of instructions: values are not computed again, and what is inserted
or replaced is timed by the same rules as everything else.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from utils.nki.simulator.capacity import levels, usable_bytes
from utils.nki.simulator.enums import MemoryRegion, engine
from utils.nki.simulator.instruction import nisa
from utils.nki.simulator.instructions.costs import FEWEST_CYCLES
from utils.nki.simulator.memory import Storage
from utils.nki.simulator.program import Core, Instruction, Program
from utils.nki.simulator.table import Checked, sentence
from utils.nki.simulator.tensor import Tensor, whole
from utils.nki.simulator.timing.constants import constants, table
from utils.nki.simulator.timing.work import later_accesses
from utils.nki.simulator.uses import tensors_of

SBUF, PSUM = MemoryRegion.sbuf, MemoryRegion.psum
MOVED = frozenset(("tensor_copy", "tensor_scalar"))
"""Instructions that the Scalar Engine does as well: a scale, a shift, a copy."""
LINEAR = frozenset(("multiply", "add", "subtract"))


@dataclass(frozen=True)
class Rule:
    """One thing that the compiler does. says: what; source: what suggests it."""

    name: str
    says: str
    source: str
    apply: Callable[[Program, Core], None]


def compiled(program: Program, rules: Iterable[str] | None = None) -> Program:
    """The program after the rules of these names, all by default. ValueError: no such rule.

    The program that was given stays as it is; without rules it is returned itself.
    """
    chosen = list(RULES) if rules is None else list(rules)
    for name in chosen:
        if name not in RULES:
            raise ValueError(f"no rule is {name!r}; there are {', '.join(map(repr, RULES))}")
    if not chosen:
        return program
    made = dataclasses.replace(program, storages=list(program.storages), cores=[])
    for core in program.cores:
        made.cores.append(
            dataclasses.replace(core, program=made, instructions=list(core.instructions))
        )
    for name, rule in RULES.items():  # in the order of this module, whatever the caller's
        for core in made.cores if name in chosen else ():
            rule.apply(made, core)
            _number(core)
    return made


# ---- instructions --------------------------------------------------------------------------------


def _again(old: Instruction, checked: Checked | None = None, **args: Any) -> Instruction:
    """A copy of an instruction with another verdict or other operands."""
    made = Instruction(checked or old.checked, {**old.args, **args}, old.name, old.line, old.index)
    made.after, made.loop = old.after, old.loop
    return made


def _number(core: Core) -> None:
    """Give all instructions their places, and let requested orders name the copies."""
    place: dict[int, int] = {}
    for index, instruction in enumerate(core.instructions):
        place[id(instruction)] = index
    for index, old in enumerate(core.instructions):
        if old.index == index and not old.after:
            continue
        made = _again(old)
        made.index = index
        made.after = tuple(item for item in old.after if id(item) in place)
        core.instructions[index] = made


def _verdict(of: Instruction, **changes: Any) -> Checked:
    """The verdict on an instruction with another engine or other cycles."""
    old = of.checked
    use: Any = SimpleNamespace(engine=changes.get("engine", old.engine), target=old.target)
    use.doubts = ()
    return Checked(old.spec, use, changes.get("cycles", old.cycles))


def _transfer(like: Instruction, on: Any, dst: Tensor, src: Tensor) -> Instruction:
    """A transfer that the compiler adds, on behalf of an instruction."""
    spec = nisa.dma_copy.spec
    use: Any = SimpleNamespace(engine=engine.dma, target=on, doubts=())
    args = {**spec.defaults, "dst": dst, "src": src}
    made = Instruction(Checked(spec, use, 0.0), args, None, like.line, like.index)
    made.loop = like.loop
    return made


def _moved(tensor: Tensor, storage: Storage) -> Tensor:
    """The same elements of another storage of the same form."""
    return type(tensor)(
        storage, tensor.dtype, tensor.shape, tensor.strides, tensor.offset, tensor.indirect
    )


# ---- rows over partitions ------------------------------------------------------------------------


def broadcast(program: Program, core: Core) -> None:
    """Stream shuffles that spread one row over partitions become one transfer."""
    kept: list[Instruction] = []
    waiting: list[Instruction] = []

    def end() -> None:
        if waiting:
            first, tile = waiting[0], whole(waiting[0].args["dst"].storage)
            row = first.args["src"]
            rows = sum(item.args["dst"].shape[0] for item in waiting)
            dst = tile.again((rows, *tile.shape[1:]), tile.strides, first.args["dst"].offset)
            src = row.again((rows, *row.shape[1:]), (0, *row.strides[1:]), row.offset)
            kept.append(_transfer(first, program.target, dst, src))
            waiting.clear()

    for instruction in core.instructions:
        args = instruction.args
        spreads = (
            instruction.checked.spec.name == "nc_stream_shuffle"
            and args["src"].shape[0] == 1
            and not any(args["shuffle_mask"])
        )
        if waiting and not (spreads and args["dst"].storage is waiting[0].args["dst"].storage):
            end()
        (waiting if spreads else kept).append(instruction)
    end()
    core.instructions[:] = kept


# ---- loads ---------------------------------------------------------------------------------------


def _is_load(instruction: Instruction) -> bool:
    if instruction.checked.spec.name != "dma_copy":
        return False
    src, dst = instruction.args["src"], instruction.args["dst"]
    plain = src.indirect is None and dst.indirect is None
    return plain and dst.buffer is SBUF and not src.storage.on_chip


def _fills(core: Core) -> dict[Storage, list[Instruction]]:
    """For tiles that only loads of what nobody writes fill: these loads, in order."""
    written = {t.storage for i in core.instructions for t in tensors_of(i, reads=False)}
    loads: dict[Storage, list[Instruction]] = defaultdict(list)
    others: set[Storage] = set()
    for instruction in core.instructions:
        clean = _is_load(instruction) and instruction.args["src"].storage not in written
        for tensor in tensors_of(instruction, reads=False):
            (loads[tensor.storage].append(instruction) if clean else others.add(tensor.storage))
    return {tile: items for tile, items in loads.items() if tile not in others}


def _content(items: list[Instruction]) -> Any:
    """What fills a tile: where in HBM and where in the tile, for each load."""

    def at(tensor: Tensor) -> Any:
        return tensor.shape, tensor.strides, tensor.offset, tensor.dtype

    where = tuple((i.args["src"].storage, at(i.args["src"]), at(i.args["dst"])) for i in items)
    return where, items[0].args["dst"].storage.shape


def hoist(program: Program, core: Core) -> None:
    """Inputs that are loaded again and again, and fit beside everything else, are loaded once."""
    fills = _fills(core)
    same: dict[Any, list[Storage]] = defaultdict(list)
    for tile, items in fills.items():
        same[_content(items)].append(tile)
    groups: dict[Storage, list[list[Storage]]] = defaultdict(list)
    for (where, _), tiles in same.items():
        if len(tiles) > 1:
            groups[where[0][0]].append(tiles)

    def saved(sets: list[list[Storage]]) -> int:
        return sum((len(tiles) - 1) * tiles[0].size_bytes for tiles in sets)

    room = usable_bytes(program.target, SBUF) - int(levels(program, SBUF, core.index).max())
    kept: dict[Storage, Storage] = {}
    for sets in sorted(groups.values(), key=saved, reverse=True):
        size = sum(tiles[0].row_bytes for tiles in sets)
        if size <= room:
            room -= size
            kept |= {tile: tiles[0] for tiles in sets for tile in tiles[1:]}
    if not kept:
        return
    dropped = {id(item) for tile in kept for item in fills[tile]}
    core.instructions[:] = [
        _renamed(item, kept) for item in core.instructions if id(item) not in dropped
    ]


def _renamed(instruction: Instruction, kept: dict[Storage, Storage]) -> Instruction:
    """The instruction on the tiles that stand for others."""
    args = instruction.args
    changed: dict[str, Any] = {}
    for name, value in args.items():
        if isinstance(value, Tensor) and value.storage in kept:
            changed[name] = _moved(value, kept[value.storage])
        elif isinstance(value, (list, tuple)) and any(isinstance(t, Tensor) for t in value):
            changed[name] = [
                _moved(t, kept[t.storage]) if isinstance(t, Tensor) and t.storage in kept else t
                for t in value
            ]
    return _again(instruction, **changed) if changed else instruction


# ---- engines -------------------------------------------------------------------------------------


def engines(program: Program, core: Core) -> None:
    """Copies, scales and shifts that ask for no engine run on the Scalar Engine."""
    made: dict[int, Checked] = {}
    for place, instruction in enumerate(core.instructions):
        checked, args = instruction.checked, instruction.args
        if checked.spec.name not in MOVED or checked.engine is not engine.vector:
            continue
        if args.get("engine") is not engine.unknown or not _linear(args):
            continue
        if id(checked) not in made:
            cycles = max(float(args["dst"].elements), FEWEST_CYCLES)
            made[id(checked)] = _verdict(instruction, engine=engine.scalar, cycles=cycles)
        core.instructions[place] = _again(instruction, made[id(checked)])


def _linear(args: dict[str, Any]) -> bool:
    names = [getattr(args.get(name), "name", None) for name in ("op0", "op1")]
    return all(name is None or name in LINEAR for name in names)


def elementwise(program: Program, core: Core) -> None:
    """The Vector Engine's reciprocals are cheaper, and the start of a second tile is hidden."""
    of = constants(program.target.name)
    access = of.vector_access * of.clock[engine.vector]
    factor = table()["compiled_reciprocal"]["value"]
    made: dict[int, Checked] = {}
    for place, instruction in enumerate(core.instructions):
        checked = instruction.checked
        if checked.engine is not engine.vector:
            continue
        if id(checked) not in made:
            cycles = checked.cycles
            if checked.spec.name == "reciprocal":
                cycles = min(cycles, max(FEWEST_CYCLES, factor * instruction.args["dst"].elements))
            more = later_accesses(instruction.args, checked.spec.inputs)
            made[id(checked)] = _verdict(instruction, cycles=max(0.0, cycles - access * more))
        core.instructions[place] = _again(instruction, made[id(checked)])


# ---- room ----------------------------------------------------------------------------------------


class _Room:
    """SBUF while tiles come and go: what is in it, what is saved, and what must come back."""

    def __init__(self, program: Program, core: Core) -> None:
        self.program, self.target = program, program.target
        self.limit = usable_bytes(program.target, SBUF)
        self.fills = _fills(core)
        self.made: list[Instruction] = []
        self.used = 0
        self.inside: dict[Storage, int] = {}
        self.saved: dict[Storage, Tensor] = {}
        self.changed: set[Storage] = set()
        self.out: set[Storage] = set()
        self.stand: dict[Storage, Storage] = {}
        self.next: dict[Storage, list[int]] = defaultdict(list)
        self.touched = [_tiles(item) for item in core.instructions]
        for place, tiles in enumerate(self.touched):
            for tile in tiles:
                self.next[tile].append(place)
        for places in self.next.values():
            places.reverse()

    def use(self, place: int, instruction: Instruction) -> None:
        """Make room for the tiles of an instruction, bring back what it reads, and let it run.

        Loads wait until their tile is used, so that none is put out before.
        """
        tiles = self.touched[place]
        if _is_load(instruction) and instruction.args["dst"].storage in self.fills:
            (tile,) = tiles
            self.next[tile].pop()
            self.out.add(tile)
            return
        for tile in tiles:
            if tile not in self.inside:
                self._make_room(tile, tiles, instruction)
                self.inside[tile] = place
                self.used += tile.row_bytes
                if tile in self.out:
                    self._bring_back(tile, instruction)
            self.inside[tile] = place
        self.made.append(_renamed(instruction, self.stand))
        self.changed.update(t.storage for t in tensors_of(instruction, reads=False))
        for tile in tiles:
            self.next[tile].pop()
            if not self.next[tile]:
                self.used -= tile.row_bytes
                del self.inside[tile]

    def _make_room(self, tile: Storage, kept: set[Storage], at: Instruction) -> None:
        ahead = table()["compiled_ahead"]["value"] if tile in self.out else 0
        while self.used + tile.row_bytes + ahead > self.limit:
            others = [item for item in self.inside if item not in kept]
            if not others:
                return
            self._put_out(max(others, key=lambda item: self.next[item][-1]), kept, at)

    def _put_out(self, victim: Storage, kept: set[Storage], at: Instruction) -> None:
        """The tile that is needed last; of loads all that fetch from the same tensor, again."""
        group = [victim]
        if victim in self.fills:
            source = self._source(victim)
            if not any(self._source(t) is source and self.next[t] for t in self.out):
                group = [t for t in self.inside if self._source(t) is source and t not in kept]
        for tile in group:
            self.used -= tile.row_bytes
            del self.inside[tile]
            self.out.add(tile)
            if tile not in self.fills and (tile in self.changed or tile not in self.saved):
                self._save(tile, at)

    def _source(self, tile: Storage) -> Storage | None:
        loads = self.fills.get(tile)
        return loads[0].args["src"].storage if loads else None

    def _save(self, tile: Storage, at: Instruction) -> None:
        if tile not in self.saved:
            shape = (tile.partitions, tile.row)
            place = self.program.allocate(shape, tile.dtype, MemoryRegion.private_hbm)
            self.saved[tile] = whole(place)
        flat = _flat(self.stand.get(tile, tile))
        self.made.append(_transfer(at, self.target, self.saved[tile], flat))
        self.changed.discard(tile)

    def _bring_back(self, tile: Storage, at: Instruction) -> None:
        """A new tile stands for the old one from here on."""
        self.out.discard(tile)
        new = self.program.allocate(tile.shape, tile.dtype, SBUF, line=tile.line)
        new.core = tile.core
        self.stand[tile] = new
        if tile in self.fills:
            self.made += [_renamed(_again(item), {tile: new}) for item in self.fills[tile]]
        else:
            self.made.append(_transfer(at, self.target, _flat(new), self.saved[tile]))


def _flat(tile: Storage) -> Tensor:
    """A tile as rows."""
    return whole(tile).again((tile.partitions, tile.row), (tile.row, 1), 0)


def _tiles(instruction: Instruction) -> set[Storage]:
    both = (*tensors_of(instruction, reads=True), *tensors_of(instruction, reads=False))
    return {t.storage for t in both if t.buffer is SBUF and t.storage.address is None}


def spill(program: Program, core: Core) -> None:
    """Tiles that do not fit into SBUF are saved to HBM and brought back, or loaded again."""
    if int(levels(program, SBUF, core.index).max()) <= usable_bytes(program.target, SBUF):
        return
    room = _Room(program, core)
    for place, instruction in enumerate(core.instructions):
        room.use(place, instruction)
    core.instructions[:] = room.made


def spilled_bytes(program: Program) -> int:
    """Bytes that `spill` saves and brings back, not counting what is loaded again."""
    total = 0
    for core in program.cores:
        for instruction in core.instructions:
            if instruction.checked.spec.name == "dma_copy":
                sides = (instruction.args["src"].storage, instruction.args["dst"].storage)
                if any(s.line is None and s.buffer is MemoryRegion.private_hbm for s in sides):
                    total += instruction.args["dst"].size * instruction.args["dst"].dtype.itemsize
    return total


_PROFILES = "AccelOpt's profiles of NKIBench (nki_published.yaml, nkibench-*)"
_MADE = (
    (broadcast, "the profile of mamba-toy in AWS's tutorial"),
    (hoist, f"bytes read in {_PROFILES}"),
    (engines, f"activity of engines in {_PROFILES}"),
    (elementwise, f"silu and adamw of {_PROFILES}"),
    (spill, f"bytes spilled in {_PROFILES}, and steps 4 and 5 of AWS's guide"),
)
RULES = {rule.__name__: Rule(rule.__name__, sentence(rule), of, rule) for rule, of in _MADE}
"""The rules by name, in the order in which they are applied."""
