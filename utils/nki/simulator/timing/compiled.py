"""What the compiler makes of a kernel before it runs: a second program, estimated like the first.

A kernel says what is computed; the compiler still chooses engines, moves loads, and makes room.
Each rule of `RULES` is one of these choices, can be left out, and names what suggests it. None is
documented as such: they are read off published profiles of published kernels, whose rows count as
fitted (utils/facts/data/nki_published.yaml).

Not modelled, because no published profile shows how it is decided: work that Vector and GpSimd
share, what narrower tiles in SBUF save, and what becomes of very small transfers.

Programs are changed as lists of instructions: values are not computed again, and what is inserted
or replaced is timed by the same rules as everything else.
"""

import bisect
import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from utils.nki.simulator.capacity import levels, usable_bytes
from utils.nki.simulator.dtypes import DType, dtype_of
from utils.nki.simulator.enums import MemoryRegion, engine
from utils.nki.simulator.errors import NkiValidationError
from utils.nki.simulator.instruction import nisa
from utils.nki.simulator.instructions.costs import FEWEST_CYCLES
from utils.nki.simulator.memory import Storage
from utils.nki.simulator.operands import Use
from utils.nki.simulator.operators import OPERATORS
from utils.nki.simulator.program import Core, Instruction, Program
from utils.nki.simulator.table import Checked, sentence, verdict
from utils.nki.simulator.target import Target
from utils.nki.simulator.tensor import Tensor, whole
from utils.nki.simulator.timing.constants import constants, table
from utils.nki.simulator.timing.work import later_accesses
from utils.nki.simulator.uses import tensors_of, uses

SBUF, PSUM = MemoryRegion.sbuf, MemoryRegion.psum
MOVED = frozenset(("tensor_copy", "tensor_scalar"))
"""Instructions that the Scalar Engine does as well: a scale, a shift, a copy."""
ACCUMULATED = dtype_of("float32")
"""What the Tensor Engine accumulates in PSUM."""
SHORT = frozenset(
    ("tensor_tensor", "tensor_scalar", "tensor_reduce", "tensor_copy", "activation", "reciprocal")
)
LONGEST = 512
"""Elements of a partition that a merged instruction has at most: a bank of PSUM in FP32."""
SUMS, TOGETHER = frozenset(("tensor_reduce",)), 4
"""What is merged in a longer loop that uses PSUM, and how many iterations of it."""
ELEMENTWISE = frozenset(("tensor_tensor", "tensor_scalar", "activation", "reciprocal"))
LINEAR = frozenset(("multiply", "add", "subtract"))


@dataclass(frozen=True)
class Rule:
    """One thing that the compiler does. says: what; source: what suggests it."""

    name: str
    says: str
    source: str
    apply: Callable[[Program, Core], None]


def compile_program(program: Program, rules: Iterable[str] | None = None) -> Program:
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


def _add(like: Instruction, on: Target, name: str, **args: Any) -> Instruction:
    """An instruction that the compiler adds, on behalf of another one."""
    spec = getattr(nisa, name).spec
    given = {**spec.defaults, **args}
    made = Instruction(verdict(spec, given, on), given, None, like.line, like.index)
    made.loop = like.loop
    return made


def _users(core: Core) -> dict[Storage, list[int]]:
    """The places of the instructions that use each allocation."""
    users: dict[Storage, list[int]] = defaultdict(list)
    for tile, place in uses(core.instructions):
        users[tile].append(place)
    return users


def _moved(tensor: Tensor, storage: Storage) -> Tensor:
    """The same elements of another storage of the same form."""
    return type(tensor)(
        storage, tensor.dtype, tensor.shape, tensor.strides, tensor.offset, tensor.indirect
    )


# ---- loops ---------------------------------------------------------------------------------------


def merge(program: Program, core: Core) -> None:
    """An innermost loop over short rows becomes one pass, if they fit into a bank of PSUM; of a
    longer one that uses PSUM, four sums become one.
    """
    users = _users(core)
    passes: dict[int, tuple[int, list[Instruction]]] = {}
    inner = -1  # where the last loop began: an outer one comes after those inside it
    for starts in core.loops:
        if starts[0] > inner:
            merged = _Pass(program, core, starts, users).made
            merged = merged or _fours(program, core, starts, users)
            if merged:
                passes[starts[0]] = starts[-1], merged
        inner = max(inner, starts[0])
    made, place = [], 0
    while place < len(core.instructions):
        place, several = passes.get(place, (place + 1, [core.instructions[place]]))
        made += several
    core.instructions[:] = made


def _fours(
    program: Program, core: Core, starts: list[int], users: dict[Storage, list[int]]
) -> list[Instruction]:
    """A loop whose sums are merged, four iterations at a time; none if it has none or no PSUM."""
    body = core.instructions[starts[0] : starts[1]]
    names = {item.checked.spec.name for item in body}
    both = [t for item in body for reads in (True, False) for t in tensors_of(item, reads=reads)]
    if not SUMS & names <= names <= SHORT or all(tensor.buffer is not PSUM for tensor in both):
        return []
    made: list[Instruction] = []
    for first in range(0, len(starts) - 1, TOGETHER):
        part = starts[first : first + TOGETHER + 1]
        merged = _Pass(program, core, part, users, SUMS).made
        made += merged or core.instructions[part[0] : part[-1]]
    return made


class _Pass:
    """All iterations of a loop in one instruction for each of its body, or for those of some
    names; `made` has none if that cannot be: an operand has to be the same, to move on evenly, or
    to be a tile of one iteration.
    """

    def __init__(
        self, program: Program, core: Core, starts: list[int], users: dict[Storage, list[int]],
        names: frozenset[str] | None = None,
    ) -> None:  # fmt: skip
        self.program, self.count, self.users, self.starts = program, len(starts) - 1, users, starts
        self.tiles: dict[Storage, Storage] = {}
        self.places: dict[Storage, tuple[Storage, int]] = {}
        self.made: list[Instruction] = []
        bodies = [core.instructions[a:b] for a, b in itertools.pairwise(starts)]
        if self.count < 2 or len({len(body) for body in bodies}) > 1:
            return
        written = {t.storage for item in bodies[0] for t in tensors_of(item, reads=False)}
        self.read = {t.storage for item in bodies[0] for t in tensors_of(item, reads=True)}
        self.moving = {tile for tile in written if not self._is_own(tile, 0)}
        for same in zip(*bodies, strict=True):
            if names is None or same[0].checked.spec.name in names:
                merged = self._merge(same)
                if merged is None:
                    self.made = []
                    return
                self.made.append(merged)
            else:
                self.made += same
        self.made = [self._place(item) for item in self.made]

    def _merge(self, same: tuple[Instruction, ...]) -> Instruction | None:
        """One instruction for those at the same place of all bodies."""
        first, spec = same[0], same[0].checked.spec
        if spec.name not in SHORT or any(i.checked.spec is not spec for i in same):
            return None
        args: dict[str, Any] = {}
        for name, value in first.args.items():
            values = [item.args[name] for item in same]
            if isinstance(value, Tensor):
                args[name] = self._along(values, name in spec.outputs)
                if args[name] is None or args[name].elements > LONGEST:
                    return None
            elif any(type(v) is not type(value) or v != value for v in values):
                return None
            else:
                args[name] = value
        use = Use(spec.name, spec.operands, spec.engine, args, self.program.target)
        use.engine = first.engine
        return _again(first, Checked(spec, use, spec.cost(use)), **args)

    def _along(self, tensors: list[Any], written: bool) -> Tensor | None:
        """A view of what the tensors of all iterations see, with the loop as its second axis."""
        one = tensors[0]
        if any(not isinstance(t, Tensor) or t.indirect or (t.shape, t.strides, t.dtype)
               != (one.shape, one.strides, one.dtype) for t in tensors):  # fmt: skip
            return None
        storage, step, offset = one.storage, tensors[1].offset - one.offset, one.offset
        if any(t.storage is not storage for t in tensors):
            if not all(self._is_own(t.storage, i) for i, t in enumerate(tensors)):
                return None
            step = storage.row
            if storage not in self.tiles:
                shape = (storage.partitions, self.count * step)
                self.tiles[storage] = self.program.allocate(
                    shape, storage.dtype, storage.buffer, line=storage.line
                )
            storage = self.tiles[storage]
            self.places |= {t.storage: (storage, i * step) for i, t in enumerate(tensors)}
            if any(t.offset != offset for t in tensors):
                return None
        elif any(t.offset - s.offset != step for s, t in itertools.pairwise(tensors)):
            return None
        elif storage in self.moving and (step == 0 or storage in self.read):
            return None
        strides = (storage.row, step, *one.strides[1:])
        return type(one)(
            storage, one.dtype, (one.shape[0], self.count, *one.shape[1:]), strides, offset
        )

    def _place(self, instruction: Instruction) -> Instruction:
        """An instruction of one iteration on its part of the tiles that iterations share now."""
        changed: dict[str, Any] = {}
        for name, value in instruction.args.items():
            if isinstance(value, Tensor) and value.storage in self.places:
                tile, offset = self.places[value.storage]
                strides = (tile.row, *value.strides[1:])
                changed[name] = type(value)(
                    tile, value.dtype, value.shape, strides, value.offset + offset
                )
        return _again(instruction, **changed) if changed else instruction

    def _is_own(self, tile: Storage, iteration: int) -> bool:
        """Whether a tile is used in one iteration only."""
        places, (begin, end) = self.users[tile], self.starts[iteration : iteration + 2]
        return tile.on_chip and begin <= places[0] and places[-1] < end


# ---- copies --------------------------------------------------------------------------------------


def fold(program: Program, core: Core) -> None:
    """A result that is only copied is written where its copy goes."""
    users = _users(core)
    dropped = set()
    for place, copy in enumerate(core.instructions):
        if copy.checked.spec.name != "tensor_copy":
            continue
        src, dst = copy.args["src"], copy.args["dst"]
        first = users[src.storage][0]
        made = core.instructions[first]
        if users[src.storage] != [first, place] or made.checked.spec.name not in SHORT:
            continue
        result, between = made.args["dst"], bisect.bisect(users[dst.storage], first)
        same = (result.storage, result.shape, result.strides, result.offset) == (
            src.storage, src.shape, src.strides, src.offset
        )  # fmt: skip
        if same and users[dst.storage][between] == place:
            core.instructions[first] = _again(made, dst=dst)
            dropped.add(place)
    core.instructions[:] = [i for n, i in enumerate(core.instructions) if n not in dropped]


# ---- rows over partitions ------------------------------------------------------------------------


def broadcast(program: Program, core: Core) -> None:
    """The Tensor Engine spreads rows over partitions through PSUM; rows of one bank stay there."""
    users = _users(core)
    on, bank = program.target, program.target.psum_bank_bytes
    room = usable_bytes(on, PSUM) - bank - levels(program, PSUM, core.index)
    ones: dict[DType, Tensor] = {}
    stands: dict[Storage, Storage] = {}
    made: list[Instruction] = []
    for tile, run in itertools.groupby(core.instructions, _spread):
        group = list(run)
        if tile is None:
            made += [_elsewhere(instruction, stands, on) for instruction in group]
            continue
        first, row = group[0], group[0].args["src"]
        if row.dtype not in ones:
            ones[row.dtype] = whole(program.allocate((1, on.partitions), row.dtype, SBUF))
        weights = ones[row.dtype][:, : tile.partitions]
        alive = slice(users[tile][0], users[tile][-1] + 1)
        readers = [item for p in users[tile] if _spread(item := core.instructions[p]) is None]
        in_psum = program.allocate(tile.shape, tile.dtype, PSUM, line=tile.line)
        fits = tile.row_bytes <= bank and bool((room[alive] >= bank).all())
        if fits and all(_may_read(item, tile, in_psum, on) for item in readers):
            room[alive] -= bank
            stands[tile] = in_psum
            operands = {"dst": whole(in_psum), "stationary": weights, "moving": row}
            made.append(_add(first, on, "nc_matmul", **operands))
            continue
        columns = bank // ACCUMULATED.itemsize
        for start in range(0, tile.row, columns):
            part, piece = (whole(tile)[:, start : start + columns], row[:, start : start + columns])
            between = whole(program.allocate(part.shape, ACCUMULATED, PSUM, line=tile.line))
            operands = {"dst": between, "stationary": weights, "moving": piece}
            made.append(_add(first, on, "nc_matmul", **operands))
            operands = {"dst": part, "data": between, "op": OPERATORS["copy"]}
            made.append(_add(first, on, "activation", **operands))
    core.instructions[:] = made


def _spread(instruction: Instruction) -> Storage | None:
    """The tile over whose partitions an instruction spreads a row of numbers."""
    args = instruction.args
    spreads = (
        instruction.checked.spec.name == "nc_stream_shuffle"
        and args["src"].shape[0] == 1
        and args["src"].ndim == 2
        and args["src"].dtype.is_float
        and not any(args["shuffle_mask"])
    )
    return args["dst"].storage if spreads else None


def _elsewhere(instruction: Instruction, stands: dict[Storage, Storage], on: Target) -> Instruction:
    """The instruction on tiles of another memory, which changes its cost."""
    made = _rename(instruction, stands)
    if made is not instruction:
        made.checked = verdict(made.checked.spec, made.args, on)
    return made


def _may_read(instruction: Instruction, tile: Storage, other: Storage, on: Target) -> bool:
    """Whether an instruction only reads a tile, and may read it in the memory of another."""
    if any(tensor.storage is tile for tensor in tensors_of(instruction, reads=False)):
        return False
    try:
        return _elsewhere(instruction, {tile: other}, on) is not instruction
    except NkiValidationError:
        return False


# ---- results ----------------------------------------------------------------------------------


def reuse(program: Program, core: Core) -> None:
    """What is computed again from the same tiles is computed once, if its result can be kept."""
    writers: dict[Storage, int] = defaultdict(int)
    for item in core.instructions:
        for tensor in tensors_of(item, reads=False):
            writers[tensor.storage] += 1
    room = usable_bytes(program.target, SBUF) - int(levels(program, SBUF, core.index).max())
    version: dict[Storage, int] = defaultdict(int)
    seen: dict[Any, Storage] = {}
    paid: set[Storage] = set()
    kept: dict[Storage, Storage] = {}
    made: list[Instruction] = []
    for before in core.instructions:
        instruction = _rename(before, kept)
        key = _computed(instruction, version)
        result = instruction.args["dst"].storage if key else None
        if key and result is not None and writers[result] == 1:
            first = seen.setdefault(key, result)
            size = 0 if first in paid else first.row_bytes
            if first is not result and size <= room:
                room -= size
                paid.add(first)
                kept[result] = first
                continue
        made.append(instruction)
        for tensor in tensors_of(instruction, reads=False):
            version[tensor.storage] += 1
    core.instructions[:] = made


def _computed(instruction: Instruction, version: dict[Storage, int]) -> Any:
    """What an elementwise instruction computes into a whole tile of SBUF; None for any other."""
    spec, args = instruction.checked.spec, instruction.args
    if spec.name not in ELEMENTWISE or spec.outputs != ("dst",):
        return None
    dst = args["dst"]
    if dst.buffer is not SBUF or dst.size != dst.storage.partitions * dst.storage.row:
        return None
    reads = tensors_of(instruction, reads=True)
    if any(tensor.indirect or not tensor.storage.on_chip for tensor in (*reads, dst)):
        return None
    parts = [
        (name, value.storage, version[value.storage], value.shape, value.strides, value.offset)
        if isinstance(value, Tensor) else (name, repr(value))
        for name, value in args.items() if name != "dst"
    ]  # fmt: skip
    return spec.name, dst.shape, dst.dtype, *parts


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
        _rename(item, kept) for item in core.instructions if id(item) not in dropped
    ]


def _rename(instruction: Instruction, kept: dict[Storage, Storage]) -> Instruction:
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
    """Reciprocals are cheaper on Vector; short rows hide the start of a second tile."""
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
            spare = max(0, FEWEST_CYCLES - instruction.args[checked.spec.outputs[0]].elements)
            made[id(checked)] = _verdict(instruction, cycles=cycles - min(spare, access * more))
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
        self.made.append(_rename(instruction, self.stand))
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
        self.made.append(_add(at, self.target, "dma_copy", dst=self.saved[tile], src=flat))
        self.changed.discard(tile)

    def _bring_back(self, tile: Storage, at: Instruction) -> None:
        """A new tile stands for the old one from here on."""
        self.out.discard(tile)
        new = self.program.allocate(tile.shape, tile.dtype, SBUF, line=tile.line)
        new.core = tile.core
        self.stand[tile] = new
        if tile in self.fills:
            self.made += [_rename(_again(item), {tile: new}) for item in self.fills[tile]]
        else:
            self.made.append(
                _add(at, self.target, "dma_copy", dst=_flat(new), src=self.saved[tile])
            )


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
_PICTURES = "AWS's profiles of mamba_v2 with 512 and 8192 columns (fused_mamba.rst, rows mamba-v2)"
_ACCOUNT = "https://charleshong3.github.io/blog/autocomp_trainium_conv1d.html"
_MADE = (
    (merge, f"counts of products and sums of steps 5 and 6 in {_ACCOUNT}, rows conv1d-5 and -6"),
    (fold, "row small-head-3: it copies what small-head-2 writes at once, and is not slower"),
    (broadcast, f"the Tensor Engine, PSUM and the Scalar Engine in {_PICTURES}"),
    (reuse, f"four Vector instructions for a state, of five that are written, in {_PICTURES}"),
    (hoist, f"bytes read in {_PROFILES}"),
    (engines, f"activity of engines in {_PROFILES}"),
    (elementwise, f"silu and adamw of {_PROFILES}; conv1d-0 and mamba-v2 for the second tile"),
    (spill, f"bytes spilled in {_PROFILES}, and steps 4 and 5 of AWS's guide"),
)
RULES = {rule.__name__: Rule(rule.__name__, sentence(rule), of, rule) for rule, of in _MADE}
"""The rules by name, in the order in which they are applied."""
