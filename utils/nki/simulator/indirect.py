"""Views whose elements are found at run time: by one index, or by one index for each row.

`t.select(dim, index)` and `t.ap(pattern, scalar_offset=index)` move a view by one index, which is a
register or a (1, 1) tile. `t.vector_select(0, indices)` and `t.ap(pattern, vector_offset=indices)`
give each row its own index: a gather where the view is read, a scatter where it is written.
(AWS, NKI access patterns:
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/deep-dives/nki-aps.html)
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from utils.nki.simulator.dtypes import narrow, widen
from utils.nki.simulator.enums import MemoryRegion
from utils.nki.simulator.errors import refuse
from utils.nki.simulator.registers import VirtualRegister
from utils.nki.simulator.tensor import Tensor

INDEX_TYPES = ("int32", "uint32")


@dataclass(frozen=True, eq=False)
class Indirect:
    """How a view finds its elements.

    index: a register, a (1, 1) tile, or for `by_row` a tile with one index for each row of the
    view, taken column by column. scale: elements, of the view's type, from one index to the next.
    size: how many indices there are: 0 to size - 1.
    """

    index: Tensor | VirtualRegister
    scale: int
    size: int
    by_row: bool = False

    @property
    def key(self) -> Any:
        """What rules and costs may depend on."""
        return ("by row" if self.by_row else "at", self.index.key, self.scale, self.size)

    @property
    def tile(self) -> Tensor | None:
        """The tile that the indices are read from, if it is not a register."""
        return self.index if isinstance(self.index, Tensor) else None

    def check_view(self, view: Tensor, keys: tuple[Any, ...]) -> None:
        """A view of the view leaves the rows alone that have an index each."""
        rows = view.shape[0]
        first = keys[0]
        if self.by_row and not (
            isinstance(first, slice)
            and (first.start or 0, first.step or 1) == (0, 1)
            and first.stop in (None, rows)
        ):
            raise refuse(
                f"{view!r} is sliced along dimension 0, where each of its {rows} rows has an index "
                "of its own.",
                "one instruction takes one list of indices.",
                "slice the tile of indices, and select with that.",
            )

    def indices(self, view: Tensor) -> np.ndarray:
        """The values now: one, or one for each row."""
        if isinstance(self.index, Tensor):
            found = self.index.raw().astype(np.int64)
            return found.reshape(found.shape[0], -1).T.reshape(-1)
        return np.array([self.index.read(f"{view!r}")], np.int64)

    def _rows(self, view: Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """An array whose dimension 0 is the index, the indices, and which of them exist."""
        inner = list(zip(view.shape, view.strides, strict=True))[1 if self.by_row else 0 :]
        start, end = view.offset, view.row
        if view.storage.on_chip:
            start, inner = view.offset % view.row, inner[1:]
        last = start + sum((n - 1) * stride for n, stride in inner)
        fitting = max(0, (end - 1 - last) // max(1, self.scale) + 1)
        size = view.storage.numpy_of(view.dtype).itemsize
        table = np.ndarray(
            (min(self.size, fitting), *(view.shape[1:] if self.by_row else view.shape)),
            view.storage.numpy_of(view.dtype),
            view.storage.data,
            view.offset * size,
            (self.scale * size, *(s * size for s in view.strides[1 if self.by_row else 0 :])),
        )
        indices = self.indices(view)
        return table, indices, (indices >= 0) & (indices < table.shape[0])

    def gather(self, view: Tensor, skip: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """The stored elements, and for each whether it exists; without `skip` all have to."""
        table, indices, good = self._rows(view)
        if not good.all() and not skip:
            raise self._outside(view, table.shape[0], indices, good)
        found = (
            table[np.where(good, indices, 0)]
            if table.shape[0]
            else np.zeros((len(indices), *table.shape[1:]), table.dtype)
        )
        exists = np.broadcast_to(good.reshape(-1, *(1,) * (found.ndim - 1)), found.shape)
        return found.reshape(view.shape), exists.reshape(view.shape)

    def scatter(self, view: Tensor, stored: np.ndarray, given: np.ndarray, skip: bool) -> None:
        """Write the elements that are `given`, except to rows that do not exist."""
        table, indices, good = self._rows(view)
        if not good.all() and not skip:
            raise self._outside(view, table.shape[0], indices, good)
        rows = stored.reshape(len(indices), *table.shape[1:])
        wanted = given.reshape(rows.shape)
        for row in np.flatnonzero(good):
            target = table[indices[row]]
            target[...] = np.where(wanted[row], rows[row], target)

    def read(self, view: Tensor) -> np.ndarray:
        return self.gather(view)[0]

    def write(self, view: Tensor, stored: np.ndarray) -> None:
        self.scatter(view, stored, np.ones(view.shape, bool), skip=False)

    def _outside(self, view: Tensor, size: int, indices: np.ndarray, good: np.ndarray) -> Exception:
        where = int(np.flatnonzero(~good)[0])
        place = f" in row {where}" if self.by_row else ""
        return refuse(
            f"index {int(indices[where])}{place} of {view!r}; allowed are 0 to {size - 1}.",
            "the address would lie outside of the tensor; DMA engines check this at run time.",
            "correct the indices, or leave such rows out of a nisa.dma_copy with "
            "oob_mode=nisa.oob_mode.skip.",
        )


def copy(dst: Tensor, src: Tensor, skip: bool) -> None:
    """What a DMA does where a side is indirect. With `skip`, elements without address stay out."""
    if src.indirect is None:
        stored, exists = src.raw(), np.ones(src.shape, bool)
    else:
        stored, exists = src.indirect.gather(src, skip)
    numpy = dst.storage.numpy_of(dst.dtype)
    if src.dtype != dst.dtype:
        stored = narrow(widen(stored), dst.dtype, numpy)
    stored, exists = stored.reshape(dst.shape), exists.reshape(dst.shape)
    dst.storage.written = True
    if dst.indirect is not None:
        dst.indirect.scatter(dst, stored, exists, skip)
    elif exists.all():
        dst.put_raw(stored)
    else:
        target = dst.array()
        target[...] = np.where(exists, stored, target)


def selected(base: Tensor, dim: int, index: Any) -> Tensor:
    """`base` without dimension `dim`, at an index known at run time. See `Tensor.select`."""
    _once(base, "select")
    if dim == 0 and base.storage.on_chip:
        raise refuse(
            f"select of dimension 0 of {base!r} at run time.",
            "dimension 0 of a tile is the partition; an instruction's partitions are fixed.",
            "select a free dimension, or keep the data in HBM and select there.",
        )
    found = Indirect(_one(index, "select"), base.strides[dim], base.shape[dim])
    return base.again(
        base.shape[:dim] + base.shape[dim + 1 :],
        base.strides[:dim] + base.strides[dim + 1 :],
        indirect=found,
    )


def vector_selected(base: Tensor, dim: int, indices: Any) -> Tensor:
    """Row `indices[p]` of `base` for each p. See `Tensor.vector_select`."""
    _once(base, "vector_select")
    _in_hbm(base, dim, "vector_select")
    rows = _many(indices, "vector_select", None)
    found = Indirect(indices, base.strides[0], base.shape[0], by_row=True)
    return base.again((rows, *base.shape[1:]), base.strides, indirect=found)


def moved(view: Tensor, scalar: Any, vector: Any, dim: int, base: Tensor) -> Tensor:
    """`view`, a pattern over `base`, moved along a dimension of `base` by one index or by many."""
    _once(base, "ap")
    if scalar is not None and vector is not None:
        raise refuse(
            "ap: scalar_offset and vector_offset together.",
            "the address of an element has one part that is known at run time.",
            "give one of them.",
        )
    if isinstance(dim, bool) or not isinstance(dim, (int, np.integer)) or not 0 <= dim < base.ndim:
        raise refuse(
            f"ap: indirect_dim={dim!r} of {base!r}.",
            f"it names one of the dimensions 0 to {base.ndim - 1} of the tensor, not of the "
            "pattern.",
            "indirect_dim=0 counts rows.",
        )
    item = base.dtype.itemsize
    steps = base.strides[dim] * item
    if steps % view.dtype.itemsize:
        raise refuse(
            f"ap as {view.dtype!r}: one step of dimension {dim} is {steps} bytes.",
            "an index steps over whole elements.",
            "call view(dtype) on a contiguous tensor first.",
        )
    scale = steps // view.dtype.itemsize
    if vector is not None:
        _in_hbm(base, dim, "ap with vector_offset")
        _many(vector, "ap", view.shape[0])
        return view.again(
            view.shape,
            (scale, *view.strides[1:]),
            indirect=Indirect(vector, scale, base.shape[0], by_row=True),
        )
    if dim == 0 and base.storage.on_chip:
        raise refuse(
            f"ap: scalar_offset along dimension 0 of {base!r}.",
            "dimension 0 of a tile is the partition; an instruction's partitions are fixed.",
            "pass indirect_dim=1 or a later one, or move the data by DMA.",
        )
    return view.again(
        view.shape,
        view.strides,
        indirect=Indirect(_one(scalar, "ap"), scale, base.shape[dim]),
    )


def _once(base: Tensor, doing: str) -> None:
    if base.indirect is not None:
        raise refuse(
            f"{doing} of {base!r}, whose elements are found at run time already.",
            "the address of an element has one part that is known at run time.",
            "compute one index from both on chip.",
        )


def _in_hbm(base: Tensor, dim: int, doing: str) -> None:
    if dim != 0 or base.storage.on_chip:
        raise refuse(
            f"{doing}: dimension {dim} of {base!r}.",
            "a DMA gathers rows (dimension 0) of a tensor in HBM.",
            "inside an SBUF tile gather with nisa.nc_n_gather (each partition by itself) or "
            "nisa.local_gather (16 partitions together).",
        )


def _index_tile(index: Any, doing: str, shape: str) -> Tensor:
    if not isinstance(index, Tensor):
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


def _one(index: Any, doing: str) -> Tensor | VirtualRegister:
    if isinstance(index, VirtualRegister):
        return index
    tile = _index_tile(index, doing, "(1, 1)")
    if tile.size != 1:
        raise refuse(
            f"{doing}: the index {tile!r} has {tile.size} values, one is needed.",
            "the whole view moves by one index.",
            "for one index per row use vector_select or vector_offset.",
        )
    return tile


def _many(index: Any, doing: str, rows: int | None) -> int:
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
