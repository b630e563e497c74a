"""A strided view of an allocation: where its elements lie, and how they are read and written.

`shape`, `strides` and `offset` count elements of the view's own type from the start of its storage.
On chip, dimension 0 is the partition; its stride is the row of the storage, so the element `offset`
lies in partition `offset // row`.

The elements of an indirect view are found at run time, by one index or by one for each row.
`t.select(dim, index)` and `t.ap(pattern, scalar_offset=index)` move a view by one index, which is a
register or a (1, 1) tile. `t.vector_select(0, indices)` and `t.ap(pattern, vector_offset=indices)`
give each row its own index: a gather where the view is read, a scatter where it is written.
(AWS, NKI access patterns:
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/deep-dives/nki-aps.html)
"""

import math
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from utils.nki.simulator.dtypes import DType, widen
from utils.nki.simulator.enums import MemoryRegion
from utils.nki.simulator.errors import refuse
from utils.nki.simulator.memory import Storage, number_of
from utils.nki.simulator.registers import VirtualRegister


@dataclass(eq=False, repr=False, slots=True)
class View:
    """Elements of HBM, SBUF or PSUM; holds no numbers itself. `Tensor` is what kernels see of it.

    indirect: what finds the elements at run time, or None.
    """

    storage: Storage
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0
    indirect: "Indirect | None" = None
    _key: int | None = field(default=None, init=False)
    _array: np.ndarray | None = field(default=None, init=False)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def buffer(self) -> MemoryRegion:
        """The memory it lies in."""
        return self.storage.buffer

    @property
    def name(self) -> str:
        """The name that it was allocated with, or ""."""
        return self.storage.name

    @property
    def address(self) -> tuple[int, int] | None:
        """(partition, byte in it) of a tile that was allocated with an address, else None."""
        return self.storage.address

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<{self.buffer.value} {self.name or 'tensor'} {self.shape} {self.dtype}>"

    # The language forbids `is`, so libraries write `tensor != None`: plain identity.
    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    # ---- layout ------------------------------------------------------------------------------

    @property
    def row(self) -> int:
        """Elements of this view's type in one partition of the storage (all of them in HBM)."""
        return self.storage.row * self.storage.dtype.itemsize // self.dtype.itemsize

    @property
    def partition(self) -> int:
        """The first partition touched; in a tile with an address, of the memory."""
        if not self.storage.on_chip:
            return 0
        address = self.storage.address
        return self.offset // self.row + (address[0] if address is not None else 0)

    @property
    def partition_step(self) -> int:
        """From one partition touched to the next: 1 unless dimension 0 was sliced with a step."""
        return self.strides[0] // self.row if self.storage.on_chip and self.shape[0] > 1 else 1

    @property
    def elements(self) -> int:
        """Elements in each partition; in HBM, elements after the first dimension."""
        return math.prod(self.shape[1:])

    @property
    def start_byte(self) -> int:
        """Where the view begins: bytes from the start of its partition (of the tensor in HBM)."""
        return self.offset % self.row * self.dtype.itemsize

    @property
    def bank_byte(self) -> int:
        """Where the view begins in a partition of the memory, as far as known: a tile without an
        address begins at the border of a PSUM bank."""
        address = self.storage.address
        return self.start_byte + (address[1] if address is not None else 0)

    def box(self) -> tuple[int, int, int, int]:
        """The bytes this view may touch: partitions from, to; bytes of a partition from, to.

        Ends are exclusive. A strided view counts with the gaps inside it; an indirect view as its
        whole storage.
        """
        storage, item = self.storage, self.dtype.itemsize
        if self.indirect is not None:
            return 0, storage.partitions, 0, storage.row_bytes
        shape, strides = self.shape, self.strides
        if storage.on_chip:
            row = self.row
            first, start = divmod(self.offset, row)
            last = first + (shape[0] - 1) * (strides[0] // row) + 1
            span = sum((n - 1) * s for n, s in zip(shape[1:], strides[1:], strict=True)) + 1
            return first, last, start * item, (start + span) * item
        span = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1
        return 0, 1, self.offset * item, (self.offset + span) * item

    @property
    def key(self) -> int:
        """A number for everything that rules and costs may depend on; not the place in a row of
        SBUF or HBM, and on chip not the size of the row."""
        made = self._key
        if made is None:
            storage = self.storage
            at = self.offset if storage.on_chip else 0
            where = None if self.indirect is None else self.indirect.key
            view = (self.dtype, self.shape, self.strides, at, storage.address, where)
            known = storage.form.keys
            made = known.get(view)
            if made is None:
                made = known[view] = number_of(self._layout(where))
            self._key = made
        return made

    def _layout(self, where: Any) -> tuple[Any, ...]:
        storage, strides = self.storage, self.strides
        partition = start = 0
        if storage.on_chip:
            partition, strides = self.partition, (strides[0] // self.row, *strides[1:])
            start = self.bank_byte if storage.buffer is MemoryRegion.psum else 0
        return storage.buffer, self.dtype, self.shape, strides, partition, start, where

    def again(
        self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int | None = None,
        dtype: DType | None = None, indirect: "Indirect | None" = None,
    ) -> Self:  # fmt: skip
        """Another view of the same storage."""
        at = self.offset if offset is None else offset
        kind, result = dtype or self.dtype, indirect or self.indirect
        return type(self)(self.storage, kind, shape, strides, at, result)

    # ---- numbers, for the semantics of instructions only -----------------------------------------

    def array(self) -> np.ndarray:
        """The stored elements, as a NumPy view that may be written."""
        if self._array is None:
            size = self.storage.numpy.itemsize
            numpy = self.storage.numpy
            if self.dtype != self.storage.dtype:
                if self.storage.numpy != self.storage.dtype.numpy:
                    raise refuse(
                        f"{self!r} reads {self.storage.dtype!r} as {self.dtype!r} while "
                        "NKI_PRECISE_FP=0.",
                        "without exact rounding floats are kept in 32 bits, so their bits are not "
                        "those of the type.",
                        "unset NKI_PRECISE_FP.",
                    )
                numpy, size = self.dtype.numpy, self.dtype.itemsize
            steps = tuple(s * size for s in self.strides)
            data, at = self.storage.data, self.offset * size
            self._array = np.ndarray(self.shape, numpy, data, at, steps)
        return self._array

    def raw(self) -> np.ndarray:
        """The stored elements, gathered where the view is indirect."""
        return self.array() if self.indirect is None else self.indirect.read(self)

    def get(self) -> np.ndarray:
        """The elements as FP32, as every arithmetic instruction reads them."""
        return widen(self.raw())

    def put(self, values: np.ndarray) -> None:
        """Write FP32 values: one rounding to the view's type. `values` has as many elements."""
        if values.shape != self.shape:
            values = values.reshape(self.shape)
        self.put_raw(self.storage.narrow(values, self.dtype))

    def put_raw(self, stored: np.ndarray) -> None:
        """Write elements that are already of the stored type, bit by bit."""
        if stored.shape != self.shape:
            stored = stored.reshape(self.shape)
        storage = self.storage
        storage.written = True
        if self.indirect is None:
            if self.shape == storage.shape and self.strides == storage.form.strides:
                storage.overwritten()
            self.array()[...] = stored
        else:
            self.indirect.write(self, stored)


@dataclass(frozen=True, eq=False)
class Indirect:
    """How a view finds its elements.

    index: a register, a (1, 1) tile, or for `by_row` a tile with one index for each row of the
    view, taken column by column. scale: elements, of the view's type, from one index to the next.
    size: how many indices there are: 0 to size - 1.
    """

    index: View | VirtualRegister
    scale: int
    size: int
    by_row: bool = False

    @property
    def key(self) -> Any:
        """What rules and costs may depend on."""
        return ("by row" if self.by_row else "at", self.index.key, self.scale, self.size)

    @property
    def tile(self) -> View | None:
        """The tile that the indices are read from, if it is not a register."""
        return self.index if isinstance(self.index, View) else None

    def check_view(self, view: View, keys: tuple[Any, ...]) -> None:
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

    def indices(self, view: View) -> np.ndarray:
        """The values now: one, or one for each row."""
        if isinstance(self.index, View):
            result = self.index.raw().astype(np.int64)
            return result.reshape(result.shape[0], -1).T.reshape(-1)
        return np.array([self.index.read(f"{view!r}")], np.int64)

    def _rows(self, view: View) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """An array whose dimension 0 is the index, the indices, and which of them exist."""
        inner = list(zip(view.shape, view.strides, strict=True))[1 if self.by_row else 0 :]
        start, end = view.offset, view.row
        if view.storage.on_chip:
            start, inner = view.offset % view.row, inner[1:]
        last = start + sum((n - 1) * stride for n, stride in inner)
        fitting = max(0, (end - 1 - last) // max(1, self.scale) + 1)
        size = view.storage.numpy_of(view.dtype).itemsize
        skipped = 1 if self.by_row else 0
        shape = (min(self.size, fitting), *view.shape[skipped:])
        steps = (self.scale * size, *(s * size for s in view.strides[skipped:]))
        numpy, data = view.storage.numpy_of(view.dtype), view.storage.data
        table = np.ndarray(shape, numpy, data, view.offset * size, steps)
        indices = self.indices(view)
        return table, indices, (indices >= 0) & (indices < table.shape[0])

    def gather(self, view: View, skip: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """The stored elements, and for each whether it exists; without `skip` all have to."""
        table, indices, good = self._rows(view)
        if not good.all() and not skip:
            raise self._outside(view, table.shape[0], indices, good)
        result = (
            table[np.where(good, indices, 0)]
            if table.shape[0]
            else np.zeros((len(indices), *table.shape[1:]), table.dtype)
        )
        exists = np.broadcast_to(good.reshape(-1, *(1,) * (result.ndim - 1)), result.shape)
        return result.reshape(view.shape), exists.reshape(view.shape)

    def scatter(self, view: View, stored: np.ndarray, given: np.ndarray, skip: bool) -> None:
        """Write the elements that are `given`, except to rows that do not exist."""
        table, indices, good = self._rows(view)
        if not good.all() and not skip:
            raise self._outside(view, table.shape[0], indices, good)
        rows = stored.reshape(len(indices), *table.shape[1:])
        wanted = given.reshape(rows.shape)
        for row in np.flatnonzero(good):
            target = table[indices[row]]
            target[...] = np.where(wanted[row], rows[row], target)

    def read(self, view: View) -> np.ndarray:
        """The stored elements, all of which have to exist."""
        return self.gather(view)[0]

    def write(self, view: View, stored: np.ndarray) -> None:
        """Write all elements, each of which has to have a place."""
        self.scatter(view, stored, np.ones(view.shape, bool), skip=False)

    def _outside(self, view: View, size: int, indices: np.ndarray, good: np.ndarray) -> Exception:
        where = int(np.flatnonzero(~good)[0])
        place = f" in row {where}" if self.by_row else ""
        return refuse(
            f"index {int(indices[where])}{place} of {view!r}; allowed are 0 to {size - 1}.",
            "the address would lie outside of the tensor; DMA engines check this at run time.",
            "correct the indices, or leave such rows out of a nisa.dma_copy with "
            "oob_mode=nisa.oob_mode.skip.",
        )


def copy_present(dst: View, src: View, skip: bool) -> None:
    """A copy where a side is indirect; with `skip`, elements without address stay as they were."""
    if src.indirect is None:
        stored, exists = src.raw(), np.ones(src.shape, bool)
    else:
        stored, exists = src.indirect.gather(src, skip)
    if src.dtype != dst.dtype:
        stored = dst.storage.narrow(widen(stored), dst.dtype)
    stored, exists = stored.reshape(dst.shape), exists.reshape(dst.shape)
    dst.storage.written = True
    if dst.indirect is not None:
        dst.indirect.scatter(dst, stored, exists, skip)
    elif exists.all():
        dst.put_raw(stored)
    else:
        target = dst.array()
        target[...] = np.where(exists, stored, target)
