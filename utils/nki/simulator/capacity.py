"""Whether a kernel's tiles fit into SBUF and PSUM, and how full the memories are when.

A tile needs its place from the first to the last instruction that uses it, in program order. That
is the least a compiler must provide: tiles that are loaded ahead need more. All tiles are counted
from partition 0, where those without an address begin. A tile of PSUM takes whole banks, because it
begins at the border of one (AWS, NKI migration guide, direct allocation:
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/migration/index.html).
"""

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from utils.nki.simulator.enums import MemoryRegion
from utils.nki.simulator.errors import Line, refuse, shown
from utils.nki.simulator.memory import Storage, usable_bytes
from utils.nki.simulator.program import Core, Program
from utils.nki.simulator.target import Target
from utils.nki.simulator.uses import uses

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
    """At instruction `index` live tiles take `row_bytes` in each partition."""

    index: int
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


def check(program: Program) -> None:
    """Raise where tiles do not fit, or where two with an address take the same bytes."""
    for core in program.cores:
        first, last = _spans(core)
        for buffer in (SBUF, PSUM):
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
    at = core.instructions[over.index]
    live = [life for life in tiles if life.first <= over.index <= life.last]
    bank = target.psum_bank_bytes
    banks = f", {over.row_bytes // bank} banks of {target.psum_banks}" if buffer is PSUM else ""
    return refuse(
        f"{program.kernel}: at instruction {over.index} ({at.checked.spec.name}) its live tiles "
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
        f"{shown(line) if line else 'nl'}"
        for (line, shape, dtype), tiles in ordered[:NAMED_TILES]
    )


def _apart(core: Core, tiles: list[Life]) -> None:
    """Tiles at addresses of the program's choice do not meet while both are in use."""
    live: list[Life] = []
    for life in tiles:
        live = [other for other in live if other.last > life.first]
        for other in live:
            rows = _shared(life, other, 0, life.storage.partitions, other.storage.partitions)
            columns = _shared(life, other, 1, life.storage.row_bytes, other.storage.row_bytes)
            if rows[0] < rows[1] and columns[0] < columns[1]:
                raise _overlap(core, other, life, rows, columns)
        live.append(life)


def _shared(a: Life, b: Life, axis: int, size_a: int, size_b: int) -> tuple[int, int]:
    """What two addressed tiles share of the partitions (axis 0) or bytes (axis 1): from, to."""
    start_a, start_b = a.storage.address[axis], b.storage.address[axis]
    return max(start_a, start_b), min(start_a + size_a, start_b + size_b)


def _overlap(
    core: Core, old: Life, new: Life, rows: tuple[int, int], columns: tuple[int, int]
) -> Exception:
    where = shown(old.storage.line) if old.storage.line else "nl"
    return refuse(
        f"ndarray: {new.storage!r} at address {new.storage.address} and {old.storage!r} at "
        f"{old.storage.address} (from {where}) share the bytes {columns[0]} to {columns[1] - 1} of "
        f"the partitions {rows[0]} to {rows[1] - 1}; the second is written at instruction "
        f"{new.first}, the first is used until {old.last}.",
        "with address= the program decides where tiles lie, and nobody moves them apart.",
        f"choose an address from byte {old.storage.address[1] + old.storage.row_bytes} on, or use "
        "the tiles one after the other.",
        core.instructions[new.first].line,
    )
