"""Which parts of an allocation a view touches, and which parts overlap.

A view of a tensor of shape (A, B, C) usually touches a range of indices of each dimension: a box
with steps. Two such boxes overlap where the ranges of all dimensions meet, which is exact for
slices with and without steps. Views that fit no such box (after a reshape across dimensions, or
with another data type) count with all bytes from their first to their last. In PSUM a bank is the
unit: engines take turns on one.
"""

import math
from typing import Any

import numpy as np

from utils.nki.simulator.enums import MemoryRegion
from utils.nki.simulator.memory import Storage
from utils.nki.simulator.tensor import Tensor

WHOLE = 0
"""The number of the region that is the whole allocation."""

FEWEST = 16
"""Room for regions is doubled, and begins with this many."""

Range = tuple[int, int, int]
"""First and last index, and the step between them (0 for a single one)."""


class Region:
    """What a view touches: `grid` tells which boxes may be compared, `box` the ranges, `low` and
    `high` the first and last byte of `rows` (first and last partition)."""

    __slots__ = ("box", "grid", "high", "low", "rows")

    def __init__(
        self, rows: tuple[int, int], low: int, high: int, grid: Any, box: tuple[Range, ...]
    ) -> None:
        self.rows, self.low, self.high, self.grid, self.box = rows, low, high, grid, box

    def overlaps(self, other: "Region") -> bool:
        """Whether some byte belongs to both."""
        if self.low > other.high or other.low > self.high:
            return False
        if self.rows[0] > other.rows[1] or other.rows[0] > self.rows[1]:
            return False
        if self.grid is None or self.grid != other.grid:
            return True
        for (a, z, step), (b, y, stride) in zip(self.box, other.box, strict=True):
            if a > y or b > z:
                return False
            common = math.gcd(step, stride)
            if common > 1 and (a - b) % common:
                return False
        return True

    def contains(self, other: "Region") -> bool:
        """Whether a write of this replaces all of the other."""
        if self.grid is None or self.grid != other.grid:
            return False
        return all(
            a <= b and y <= z and step <= 1
            for (a, z, step), (b, y, _) in zip(self.box, other.box, strict=True)
        )


class Layout:
    """The regions of all allocations of one shape, numbered, and which of them overlap.

    near: for each region the numbers of others that overlap it. inside: those it contains.
    """

    def __init__(self, storage: Storage, bank_bytes: int) -> None:
        self.item = storage.dtype.itemsize
        self.on_chip = storage.on_chip
        self.bank_bytes = bank_bytes if storage.buffer is MemoryRegion.psum else 0
        self.row_bytes = storage.row_bytes
        self.partitions = storage.partitions
        sizes = storage.shape
        strides = [1] * len(sizes)
        for i in range(len(sizes) - 2, -1, -1):
            strides[i] = strides[i + 1] * sizes[i + 1]
        self.grid = tuple(zip(strides, sizes, strict=True))
        self.numbers: dict[Any, int] = {}
        self.known: dict[Any, int] = {}
        self.lows = self.highs = np.empty(0, np.int64)
        self.top = -1  # the last byte of all regions but the whole
        self.regions: list[Region] = []
        self.near: list[list[int]] = []
        self.inside: list[set[int]] = []
        self._add(self._whole(storage))

    def number(self, tensor: Tensor) -> int:
        """The region that a view touches."""
        if tensor.shape is tensor.storage.shape or tensor.indirect is not None:
            return WHOLE
        key = (tensor.offset, tensor.shape, tensor.strides, tensor.dtype)
        result = self.numbers.get(key)
        if result is None:
            result = self.numbers[key] = self._add(self._region(tensor))
        return result

    def _add(self, region: Region) -> int:
        """The number of a region, a new one if there is none that is the same."""
        same = (region.rows, region.low, region.high, region.grid, region.box)
        result = self.known.get(same)
        if result is not None:
            return result
        number = self.known[same] = len(self.regions)
        if number == len(self.lows):
            self.lows = np.concatenate([self.lows, np.empty(number + FEWEST, np.int64)])
            self.highs = np.concatenate([self.highs, np.empty(number + FEWEST, np.int64)])
        if region.low > self.top:
            perhaps = [WHOLE] if number else []
        else:
            lows, highs = self.lows[:number], self.highs[:number]
            perhaps = np.nonzero((lows <= region.high) & (highs >= region.low))[0].tolist()
        if number:
            self.top = max(self.top, region.high)
        near = [i for i in perhaps if region.overlaps(self.regions[i])]
        self.lows[number], self.highs[number] = region.low, region.high
        self.regions.append(region)
        self.near.append(near)
        self.inside.append({i for i in near if region.contains(self.regions[i])})
        for i in near:
            self.near[i].append(number)
            if self.regions[i].contains(region):
                self.inside[i].add(number)
        return number

    def _whole(self, storage: Storage) -> Region:
        if self.bank_bytes:
            return self._banks(0, self.row_bytes - 1)
        box = tuple((0, size - 1, 1 if size > 1 else 0) for _, size in self.grid)
        return Region((0, self.partitions - 1), 0, self.row_bytes - 1, self.grid, box)

    def _banks(self, low: int, high: int) -> Region:
        first, last = low // self.bank_bytes, high // self.bank_bytes
        return Region((0, 0), first, last, "banks", ((first, last, 1 if last > first else 0),))

    def _region(self, tensor: Tensor) -> Region:
        first, last, low, high = tensor.box()
        if self.bank_bytes:
            return self._banks(low, high - 1)
        rows = (first, last - 1)
        if tensor.dtype.itemsize == self.item:
            grid = self.grid
            box = _box(tensor.offset, tensor.shape, tensor.strides, grid)
            if box is None:
                grid = _own_grid(tensor, grid)
                box = _box(tensor.offset, tensor.shape, tensor.strides, grid)
            if box is not None:
                return Region(rows, low, high - 1, grid, box)
        return Region(rows, low, high - 1, None, ())


def _own_grid(tensor: Tensor, grid: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """The grid that a view's strides make, where the shape of its allocation does not fit it."""
    total = grid[0][0] * grid[0][1]
    strides = sorted({s for s in (*tensor.strides, 1) if s > 0}, reverse=True)
    above = [total, *strides[:-1]]
    return tuple((s, -(-a // s)) for s, a in zip(strides, above, strict=True))


def _box(
    offset: int, shape: tuple[int, ...], strides: tuple[int, ...], grid: tuple[tuple[int, int], ...]
) -> tuple[Range, ...] | None:
    """The range of each dimension of the grid, or None if the view does not fit it."""
    left = [(s, n) for s, n in zip(strides, shape, strict=True) if n > 1 and s > 0]
    left.sort()
    box = []
    for stride, size in grid:
        first, offset = divmod(offset, stride)
        last, step = first, 0
        while left and left[-1][0] >= stride:
            s, n = left.pop()
            inner, rest = divmod(s, stride)
            if rest or (step and step != inner * n):
                return None  # together they make no range with one step
            last += (n - 1) * inner
            step = inner
        if last >= size:
            return None
        box.append((first, last, step))
    return tuple(box)
