"""Whether tiles fit into SBUF and PSUM: one alone when it is allocated, all together at the end.

A tile needs its place from the first to the last instruction that uses it, in program order. That
is the least a compiler must provide: tiles that are loaded ahead need more. All tiles are counted
from partition 0, where those without an address begin. A tile of PSUM takes whole banks, because it
begins at the border of one (AWS, NKI migration guide, direct allocation:
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/migration/index.html).
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from utils.nki.simulator import surface
from utils.nki.simulator.dtypes import DType
from utils.nki.simulator.enums import ON_CHIP, MemoryRegion
from utils.nki.simulator.errors import Line, is_whole, refuse, show_line
from utils.nki.simulator.memory import Storage
from utils.nki.simulator.program import Core, Program
from utils.nki.simulator.target import Target
from utils.nki.simulator.uses import uses

HBM, PRIVATE, SHARED = MemoryRegion.hbm, MemoryRegion.private_hbm, MemoryRegion.shared_hbm


# ---- one tile, when it is allocated --------------------------------------------------------------


def allocate(
    core: Core, shape: Any, dtype: DType, buffer: MemoryRegion, name: str = "",
    address: tuple[int, int] | None = None, line: Line | None = None,
) -> Storage:  # fmt: skip
    """A new allocation of the running kernel, checked against the memory it asks for.

    Of `shared_hbm`, the two cores of a grid get the same: the n-th of one is the n-th of the other.
    """
    sizes = _sizes(shape)
    program = core.program
    if buffer in ON_CHIP:
        kind = sizes, dtype, buffer
        if kind not in program.fitting:
            _fits(core, *kind, name)
            program.fitting.add(kind)
    elif buffer is HBM and core.grid > 1:
        buffer = PRIVATE
    if address is not None:
        _addressed(core, sizes, dtype, buffer, address)
        address = (address[0], address[1])
    if buffer is SHARED and core.grid > 1:
        if (there := _made_by_other(core, sizes, dtype)) is not None:
            return there
    storage = program.allocate(sizes, dtype, buffer, name=name, line=line, address=address)
    if buffer is SHARED:
        program.shared.append(storage)
    else:
        storage.core = core.index
    return storage


def _made_by_other(core: Core, shape: tuple[int, ...], dtype: DType) -> Storage | None:
    """The tensor that the other core has allocated already."""
    made, program = core.shared_made, core.program
    core.shared_made += 1
    if made >= len(program.shared):
        return None
    there = program.shared[made]
    if (there.shape, there.dtype) != (shape, dtype):
        raise refuse(
            f"ndarray: shared tensor {made} is {there.shape} {there.dtype!r} on core 0 "
            f"and {shape} {dtype!r} on core {core.index}.",
            "both cores of a grid allocate the same shared_hbm in the same order.",
            "allocate shared tensors outside of branches on nl.program_id(0).",
        )
    return there


def _sizes(shape: Any) -> tuple[int, ...]:
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    for n in sizes:
        if type(n) is not int or n < 1:
            break
    else:
        if sizes:
            return sizes
    if not sizes or not all(is_whole(n) and n > 0 for n in sizes):
        raise refuse(
            f"ndarray: the shape {shape!r} is not a tuple of positive integers.",
            "sizes are fixed when the kernel is compiled.",
            "write numbers, or sizes of arguments: (128, x.shape[1]).",
        )
    return tuple(int(n) for n in sizes)


def _fits(
    core: Core, shape: tuple[int, ...], dtype: DType, buffer: MemoryRegion, name: str
) -> None:
    target = core.program.target
    called = f"ndarray {name!r}" if name else "ndarray"
    if len(shape) < 2:
        raise refuse(
            f"{called}: {shape} in {buffer.value}; a tile has 2 dimensions or more.",
            "dimension 0 counts partitions, the others the elements inside each partition.",
            f"write ({shape[0]}, 1) for one element in each partition, or (1, {shape[0]}).",
        )
    if shape[0] > target.partitions:
        raise refuse(
            f"{called}: {shape[0]} partitions in {buffer.value}, at most {target.partitions} "
            "(nl.tile_size.pmax): the partition dimension is dimension 0.",
            f"{buffer.value.upper()} has {target.partitions} partitions, one for each row of the "
            "Tensor Engine.",
            f"loop over {math.ceil(shape[0] / target.partitions)} tiles of {target.partitions} "
            f"rows: x[nl.ds(i * {target.partitions}, {target.partitions})].",
        )
    bytes_per_partition = math.prod(shape[1:]) * dtype.itemsize
    limit = usable_bytes(target, buffer)
    if bytes_per_partition > limit:
        bank = target.psum_bank_bytes
        count = math.ceil(bytes_per_partition / bank)
        banks = f" ({count} banks of {target.psum_banks})" if buffer is PSUM else ""
        raise refuse(
            f"{called}: {shape} {dtype!r} takes {bytes_per_partition} bytes in each partition"
            f"{banks}, {buffer.value} of {target.name} has {limit}.",
            "a tile lies in one piece in every partition.",
            "make the tile smaller and loop, or choose a smaller data type.",
        )


def usable_bytes(target: Target, buffer: MemoryRegion) -> int:
    """Bytes per partition that tiles of a kernel may take. Of SBUF the compiler keeps a part."""
    if buffer is MemoryRegion.psum:
        return target.psum_bytes
    return surface.section("usable_sbuf_bytes")[target.version.name]


def _addressed(
    core: Core, shape: tuple[int, ...], dtype: DType, buffer: MemoryRegion, address: Any
) -> None:
    """`address=(partition, byte)` lies inside the memory, where a tile may begin."""
    target = core.program.target
    numbers = isinstance(address, (tuple, list)) and len(address) == 2
    if buffer not in ON_CHIP or not numbers or not all(type(n) is int and n >= 0 for n in address):
        raise refuse(
            f"ndarray: address={address!r} in {buffer.value}; a pair (partition, byte) of numbers "
            "from 0 in sbuf or psum.",
            "an address says in which partition a tile begins, and at which byte of each.",
            "write address=(0, byte), or leave it out: then the compiler places the tile.",
        )
    partition, byte = address
    row, limit = math.prod(shape[1:]) * dtype.itemsize, usable_bytes(target, buffer)
    if partition + shape[0] > target.partitions or byte + row > limit:
        raise refuse(
            f"ndarray: {shape} {dtype!r} at address {tuple(address)} covers the partitions "
            f"{partition} to {partition + shape[0] - 1} and the bytes {byte} to {byte + row - 1}; "
            f"{buffer.value} of {target.name} has {target.partitions} partitions of {limit} bytes.",
            "a tile lies inside its memory.",
            f"begin at partition {max(target.partitions - shape[0], 0)} or before, and at byte "
            f"{max(limit - row, 0)} or before.",
        )
    step = target.psum_bank_bytes if buffer is MemoryRegion.psum else dtype.itemsize
    if byte % step:
        what = "a bank" if buffer is MemoryRegion.psum else f"an element of {dtype}"
        raise refuse(
            f"ndarray: address {tuple(address)} in {buffer.value}; byte {byte} is no multiple of "
            f"{step}, the bytes of {what}.",
            f"a tile of {buffer.value} begins where {what} begins.",
            f"use byte {byte // step * step} or {(byte // step + 1) * step}.",
        )


# ---- all tiles, when the kernel has ended --------------------------------------------------------


SBUF, PSUM = MemoryRegion.sbuf, MemoryRegion.psum
NAMED_TILES = 3


class Life(NamedTuple):
    """A tile from the first to the last instruction (indices of one core) that uses it.

    row_bytes: what it takes in each partition, in PSUM whole banks.
    """

    storage: Storage
    first: int
    last: int
    row_bytes: int


class Step(NamedTuple):
    """At instruction `place` live tiles take `row_bytes` in each partition."""

    place: int
    row_bytes: int


def _spans(core: Core) -> tuple[dict[Storage, int], dict[Storage, int]]:
    """The first and the last use of each allocation, the latter in the order of first uses."""
    used = uses(core.instructions)
    return dict(reversed(used)), dict(used)


def _lives(target: Target, first: dict[Storage, int], last: dict[Storage, int]) -> list[Life]:
    return [
        Life(tile, first[tile], end, taken_bytes(tile, target))
        for tile, end in last.items()
        if tile.on_chip
    ]


def taken_bytes(tile: Storage, target: Target) -> int:
    """What a tile takes in each partition: in PSUM whole banks, 0 where it shares its bytes."""
    if tile.address is not None and tile.address[0] > 0:
        return 0  # it shares its bytes with tiles that begin at partition 0
    if tile.buffer is SBUF:
        return tile.row_bytes
    bank = target.psum_bank_bytes
    return -(-tile.row_bytes // bank) * bank


def levels(program: Program, buffer: MemoryRegion = SBUF, core: int = 0) -> np.ndarray:
    """Bytes that live tiles take in each partition at every instruction of a core."""
    return _levels(program.target, *_spans(program.cores[core]), buffer)


_spilling: ContextVar[bool] = ContextVar("spilling", default=False)


@contextmanager
def spilling() -> Iterator[None]:
    """While the block runs, tiles may take more room than there is: who runs it models spills."""
    before = _spilling.set(True)
    try:
        yield
    finally:
        _spilling.reset(before)


def check(program: Program) -> None:
    """Raise where tiles do not fit, or where two with an address take the same bytes."""
    checked = () if _spilling.get() else (SBUF, PSUM)
    for core in program.cores:
        first, last = _spans(core)
        for buffer in checked:
            tiles = {tile: end for tile, end in last.items() if tile.buffer is buffer}
            taken = _levels(program.target, first, tiles, buffer)
            over = np.flatnonzero(taken > usable_bytes(program.target, buffer))
            if over.size:
                index = int(over[0])
                here = _lives(program.target, first, tiles)
                raise _too_full(program, core, buffer, here, Step(index, int(taken[index])))
            placed = {tile: end for tile, end in tiles.items() if tile.address is not None}
            _apart(core, _lives(program.target, first, placed))


def _levels(
    target: Target, first: dict[Storage, int], last: dict[Storage, int], buffer: MemoryRegion
) -> np.ndarray:
    tiles = [tile for tile in last if tile.buffer is buffer]
    sizes = [taken_bytes(tile, target) for tile in tiles]
    count = max(last.values(), default=-1) + 1
    begun = np.bincount(np.array([first[tile] for tile in tiles], np.intp), sizes, count)
    ended = np.bincount(np.array([last[tile] for tile in tiles], np.intp), sizes, count)
    return np.cumsum(begun) - np.cumsum(ended) + ended


def _too_full(
    program: Program, core: Core, buffer: MemoryRegion, tiles: list[Life], over: Step
) -> Exception:
    target = program.target
    limit = usable_bytes(target, buffer)
    at = core.instructions[over.place]
    live = [life for life in tiles if life.first <= over.place <= life.last]
    bank = target.psum_bank_bytes
    banks = f", {over.row_bytes // bank} banks of {target.psum_banks}" if buffer is PSUM else ""
    return refuse(
        f"{program.kernel}: at instruction {over.place} ({at.checked.spec.name}) its live tiles "
        f"take {over.row_bytes} bytes in each partition of {buffer.value}{banks}; {target.name} "
        f"has {limit}. Largest: {_largest(live)}.",
        "a tile needs its place from the first to the last instruction that uses it, and all tiles "
        "in use lie in memory together.",
        "allocate tiles inside the loop that uses them, make them smaller, or evict results "
        "earlier.",
        at.line,
    )


def _largest(live: list[Life]) -> str:
    """The allocations that take most, with their lines."""
    groups: dict[tuple[Line | None, tuple[int, ...], str], list[Life]] = defaultdict(list)
    for life in live:
        tile = life.storage
        groups[tile.line, tile.shape, tile.dtype].append(life)
    ordered = sorted(groups.items(), key=lambda item: -sum(life.row_bytes for life in item[1]))
    return "; ".join(
        f"{len(tiles)} of {shape} {dtype}, {sum(life.row_bytes for life in tiles)} bytes, from "
        f"{show_line(line) if line else 'nl'}"
        for (line, shape, dtype), tiles in ordered[:NAMED_TILES]
    )


def _apart(core: Core, tiles: list[Life]) -> None:
    """Tiles at addresses of the program's choice do not meet while both are in use."""
    live: list[Life] = []
    for life in tiles:
        live = [other for other in live if other.last > life.first]
        for other in live:
            rows = _common(life, other, 0, life.storage.partitions, other.storage.partitions)
            columns = _common(life, other, 1, life.storage.row_bytes, other.storage.row_bytes)
            if rows[0] < rows[1] and columns[0] < columns[1]:
                raise _overlap(core, other, life, rows, columns)
        live.append(life)


def _common(a: Life, b: Life, axis: int, size_a: int, size_b: int) -> tuple[int, int]:
    """What two addressed tiles share of the partitions (axis 0) or bytes (axis 1): from, to."""
    start_a, start_b = _address(a)[axis], _address(b)[axis]
    return max(start_a, start_b), min(start_a + size_a, start_b + size_b)


def _address(life: Life) -> tuple[int, int]:
    """The place that the program chose for a tile."""
    assert life.storage.address is not None
    return life.storage.address


def _overlap(
    core: Core, old: Life, new: Life, rows: tuple[int, int], columns: tuple[int, int]
) -> Exception:
    where = show_line(old.storage.line) if old.storage.line else "nl"
    return refuse(
        f"ndarray: {new.storage!r} at address {new.storage.address} and {old.storage!r} at "
        f"{old.storage.address} (from {where}) share the bytes {columns[0]} to {columns[1] - 1} of "
        f"the partitions {rows[0]} to {rows[1] - 1}; the second is written at instruction "
        f"{new.first}, the first is used until {old.last}, at "
        f"{show_line(core.instructions[old.last].line)}.",
        "with address= the program decides where tiles lie, and nobody moves them apart.",
        f"choose an address from byte {_address(old)[1] + old.storage.row_bytes} on, or use "
        "the tiles one after the other.",
        core.instructions[new.first].line,
    )
