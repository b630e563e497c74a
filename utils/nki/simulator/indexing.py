"""Indexing a tensor: integers, slices and `nl.ds` make views that share its storage, and so do
indices that are known only at run time.
"""

import math
from typing import Any, Self

import numpy as np

from utils.nki.simulator.enums import MemoryRegion
from utils.nki.simulator.errors import is_whole, refuse
from utils.nki.simulator.registers import NkiScalar, VirtualRegister
from utils.nki.simulator.view import Indirect, View

INDEX_TYPES = ("int32", "uint32")


class Indexing(View):
    """What `t[...]` means, and the methods that say the same by name."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Self:
        """Integers, slices with a step, `nl.ds`, ranges and `...`, one for each dimension.

        On chip an integer keeps the partition as size 1, and at least two dimensions stay.
        """
        keys = key if type(key) is tuple else (key,)
        shape, strides, offset = self.shape, self.strides, self.offset
        if len(keys) != len(shape):
            keys = self._spread(keys)
        on_chip = self.storage.on_chip
        new_shape: list[int] = []
        new_strides: list[int] = []
        last = None
        for dimension, item in enumerate(keys):
            size, stride = shape[dimension], strides[dimension]
            kind = type(item)
            if kind is slice or kind is range:
                start, stop, step = item.start, item.stop, item.step
                if start is None:
                    start = 0
                if stop is None:
                    stop = size
                if not (type(start) is int and type(stop) is int and 0 <= start < stop <= size):
                    start, stop = self._bounds(dimension, start, stop)
                offset += start * stride
                if step is None:
                    new_shape.append(stop - start)
                    new_strides.append(stride)
                else:
                    step = self._step(dimension, item)
                    new_shape.append((stop - start + step - 1) // step)
                    new_strides.append(stride * step)
                continue
            if item is Ellipsis:
                return self[self._spread(keys)]
            index = self._integer(dimension, item)
            offset += index * stride
            if on_chip and dimension == 0:
                new_shape.append(1)
                new_strides.append(stride)
            else:
                last = stride
        minimum = 2 if on_chip else 1
        if len(new_shape) < minimum:
            new_shape.append(1)
            new_strides.append(last if last is not None else 1)
        if self.indirect is not None:
            self.indirect.check_view(self, keys)
        return self.again(tuple(new_shape), tuple(new_strides), offset)

    def _spread(self, keys: tuple[Any, ...]) -> tuple[Any, ...]:
        """One key for each dimension: `...` and missing keys become full slices."""
        dots = [i for i, item in enumerate(keys) if item is Ellipsis]
        given = len(keys) - len(dots)
        if len(dots) > 1 or given > self.ndim:
            raise refuse(
                f"{self!r} has {self.ndim} dimensions and is indexed with {given}: {keys!r}.",
                "each dimension takes one index.",
                f"use at most {self.ndim} indices and one '...'.",
            )
        at = dots[0] if dots else len(keys)
        rest = keys[at + 1 :] if dots else ()
        return (*keys[:at], *(slice(None),) * (self.ndim - given), *rest)

    def _bad_key(self, dimension: int, key: Any, why: str) -> Exception:
        return refuse(
            f"index {key!r} for dimension {dimension} of {self!r}, which has "
            f"{self.shape[dimension]} elements.",
            why + ".",
            "use integers, slices such as 0:128, or nl.ds(start, size).",
        )

    def _integer(self, dimension: int, key: Any) -> int:
        size = self.shape[dimension]
        if not is_whole(key):
            if isinstance(key, Indexing) or hasattr(key, "is_register"):
                raise refuse(
                    f"dimension {dimension} of {self!r} is indexed with {key!r}.",
                    "this index is only known at run time, a view is fixed at compile time.",
                    "use t.ap(pattern, scalar_offset=index) or t.select(dimension, index).",
                )
            raise self._bad_key(dimension, key, "an index is an integer known at compile time")
        index = int(key)
        if not -size <= index < size:
            raise self._bad_key(dimension, key, f"indices go from {-size} to {size - 1}")
        return index % size

    def _bounds(self, dimension: int, start: Any, stop: Any) -> tuple[int, int]:
        """Start and stop of a slice, checked; NumPy would cut them off without a word."""
        size = self.shape[dimension]
        for item in (start, stop):
            if not is_whole(item):
                self._integer(dimension, item)
        first = int(start) + size if start < 0 else int(start)
        last = int(stop) + size if stop < 0 else int(stop)
        if not 0 <= first < last <= size:
            raise refuse(
                f"slice {start}:{stop} of dimension {dimension} of {self!r}, which has {size} "
                "elements.",
                "a view covers existing elements only, at least one; a partial last tile is not "
                "cut off for you.",
                f"end at min({stop}, {size}), and give the other operands the same size.",
            )
        return first, last

    def _step(self, dimension: int, key: Any) -> int:
        step = key.step
        if not is_whole(step) or step < 1:
            raise self._bad_key(dimension, key, "steps are integers of 1 or more")
        return int(step)

    def slice(self, dim: int, start: int, end: int, step: int = 1) -> Self:
        """The elements start, start + step, ... before `end` of one dimension."""
        keys: list[Any] = [slice(None)] * self.ndim
        keys[self._dimension(dim)] = slice(start, end, step)
        return self[tuple(keys)]

    def select(self, dim: int, index: Any) -> Self:
        """One element of a dimension, which goes; a tensor or register selects at run time."""
        dim = self._dimension(dim)
        if isinstance(index, (int, np.integer)):
            index = self._integer(dim, index)
            self._free(dim, "select")
            return self.again(*self._without(dim), self.offset + index * self.strides[dim])
        _once(self, "select")
        if dim == 0 and self.storage.on_chip:
            raise refuse(
                f"select of dimension 0 of {self!r} at run time.",
                "dimension 0 of a tile is the partition; an instruction's partitions are fixed.",
                "select a free dimension, or keep the data in HBM and select there.",
            )
        one = _one_index(index, "select", self.storage.on_chip)
        result = Indirect(one, self.strides[dim], self.shape[dim])
        return self.again(*self._without(dim), indirect=result)

    def _without(self, dim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Shape and strides of the other dimensions."""
        return (
            self.shape[:dim] + self.shape[dim + 1 :], self.strides[:dim] + self.strides[dim + 1 :]
        )  # fmt: skip

    def vector_select(self, dim: int, vector_offset: Any) -> Self:
        """For each partition of the other side its own index of dimension 0. HBM only."""
        dim = self._dimension(dim)
        _once(self, "vector_select")
        _in_hbm(self, dim, "vector_select")
        rows = _index_of_each_row(vector_offset, "vector_select", None)
        result = Indirect(vector_offset, self.strides[0], self.shape[0], by_row=True)
        return self.again((rows, *self.shape[1:]), self.strides, indirect=result)

    def _dimension(self, dim: int) -> int:
        if not isinstance(dim, (int, np.integer)) or not -self.ndim <= dim < self.ndim:
            raise refuse(
                f"dimension {dim!r} of {self!r}.",
                f"it has the dimensions 0 to {self.ndim - 1}.",
                "name one of them.",
            )
        return int(dim) % self.ndim

    def _free(self, dim: int, doing: str) -> None:
        if dim == 0 and (self.storage.on_chip or self.indirect is not None):
            raise refuse(
                f"{doing} of the partition dimension (dimension 0) of {self!r}.",
                "partitions are separate memories; a view cannot rearrange them.",
                "use a free dimension (1 or later), or move data between partitions.",
            )

    def _moved(self, view: Self, scalar: Any, vector: Any, dim: int) -> Self:
        """`view`, a pattern over this tensor, moved along a dimension by one index or by many."""
        _once(self, "ap")
        if scalar is not None and vector is not None:
            raise refuse(
                "ap: scalar_offset and vector_offset together.",
                "the address of an element has one part that is known at run time.",
                "give one of them.",
            )
        if not is_whole(dim) or not 0 <= dim < self.ndim:
            raise refuse(
                f"ap: indirect_dim={dim!r} of {self!r}.",
                f"it names one of the dimensions 0 to {self.ndim - 1} of the tensor, not of the "
                "pattern.",
                "indirect_dim=0 counts rows.",
            )
        item = self.dtype.itemsize
        steps = self.strides[dim] * item
        if steps % view.dtype.itemsize:
            raise refuse(
                f"ap as {view.dtype!r}: one step of dimension {dim} is {steps} bytes.",
                "an index steps over whole elements.",
                "call view(dtype) on a contiguous tensor first.",
            )
        scale = steps // view.dtype.itemsize
        if vector is not None:
            _in_hbm(self, dim, "ap with vector_offset")
            _index_of_each_row(vector, "ap", view.shape[0])
            result = Indirect(vector, scale, self.shape[0], by_row=True)
            return view.again(view.shape, (scale, *view.strides[1:]), indirect=result)
        if dim == 0 and self.storage.on_chip:
            raise refuse(
                f"ap: scalar_offset along dimension 0 of {self!r}.",
                "dimension 0 of a tile is the partition; an instruction's partitions are fixed.",
                "pass indirect_dim=1 or a later one, or move the data by DMA.",
            )
        one = _one_index(scalar, "ap", self.storage.on_chip)
        return view.again(view.shape, view.strides, indirect=Indirect(one, scale, self.shape[dim]))


def _once(base: View, doing: str) -> None:
    if base.indirect is not None:
        raise refuse(
            f"{doing} of {base!r}, whose elements are found at run time already.",
            "the address of an element has one part that is known at run time.",
            "compute one index from both on chip.",
        )


def _in_hbm(base: View, dim: int, doing: str) -> None:
    if dim != 0 or base.storage.on_chip:
        raise refuse(
            f"{doing}: dimension {dim} of {base!r}.",
            "a DMA gathers rows (dimension 0) of a tensor in HBM.",
            "inside an SBUF tile gather with nisa.nc_n_gather (each partition by itself) or "
            "nisa.local_gather (16 partitions together).",
        )


def _index_tile(index: Any, doing: str, shape: str) -> View:
    if not isinstance(index, View):
        raise refuse(
            f"{doing}: the index is {index!r}.",
            "an index that is known when the kernel is compiled needs no indirection.",
            f"pass an SBUF tile {shape} of int32 or uint32; for a Python int use "
            "t[...] or offset=.",
        )
    if index.buffer is not MemoryRegion.sbuf or index.dtype not in INDEX_TYPES:
        raise refuse(
            f"{doing}: the index {index!r} is {index.dtype} in {index.buffer.value}; it is int32 "
            "or uint32 in SBUF.",
            "the generator of descriptors reads indices from SBUF.",
            "nisa.dma_copy it to an int32 tile of SBUF.",
        )
    return index


def _one_index(index: Any, doing: str, on_chip: bool) -> View | VirtualRegister:
    if isinstance(index, VirtualRegister):
        if on_chip and isinstance(index, NkiScalar) and index.dtype != "int32":
            raise refuse(
                f"{doing}: the index {index!r} into a tile on chip.",
                "on-chip memory is small; an address of 64 bits is refused rather than cut.",
                "load the index from a tile of nl.int32.",
            )
        return index
    tile = _index_tile(index, doing, "(1, 1)")
    if tile.size != 1:
        raise refuse(
            f"{doing}: the index {tile!r} has {tile.size} values, one is needed.",
            "the whole view moves by one index.",
            "for one index per row use vector_select or vector_offset.",
        )
    return tile


def _index_of_each_row(index: Any, doing: str, rows: int | None) -> int:
    tile = _index_tile(index, doing, "(rows, 1)")
    if rows is None:
        if tile.size != tile.shape[0]:
            raise refuse(
                f"{doing}: the indices have the shape {tile.shape}.",
                "each row takes one index from its partition.",
                f"use shape ({tile.shape[0]}, 1).",
            )
        return tile.shape[0]
    if math.prod(tile.shape) != rows:
        raise refuse(
            f"{doing}: vector_offset holds {tile.size} indices {tile.shape}, the pattern has "
            f"{rows} rows.",
            "each row takes one index.",
            f"use a tile of shape ({rows}, 1), or a pattern with {tile.size} rows.",
        )
    return rows
