"""A tensor of a kernel: a strided view of an allocation, and how it is indexed, read and written.

`shape`, `strides` and `offset` count elements of the view's own type from the start of its storage.
On chip, dimension 0 is the partition; its stride is the row of the storage, so the element `offset`
lies in partition `offset // row`.
"""

import math
from typing import Any

import numpy as np

from utils.nki.simulator.arithmetic import refuse_operators
from utils.nki.simulator.dtypes import DType, narrow, widen
from utils.nki.simulator.enums import MemoryRegion
from utils.nki.simulator.errors import doubt, refuse, repeats
from utils.nki.simulator.forms import number_of
from utils.nki.simulator.memory import Storage
from utils.nki.simulator.views import Views


class Tensor(Views):
    """A view of HBM, SBUF or PSUM. Made by `nl.ndarray` or by indexing; holds no numbers itself.

    indirect: what finds the elements at run time (see `indirect`), or None.
    """

    __slots__ = ("_array", "_key", "dtype", "indirect", "offset", "shape", "storage", "strides")

    def __init__(
        self,
        storage: Storage,
        dtype: DType,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        offset: int = 0,
        indirect: Any = None,
    ) -> None:
        self.storage = storage
        self.dtype = dtype
        self.shape = shape
        self.strides = strides
        self.offset = offset
        self.indirect = indirect
        self._key: Any = None
        self._array: np.ndarray | None = None

    # ---- what a kernel may ask ---------------------------------------------------------------

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def buffer(self) -> MemoryRegion:
        return self.storage.buffer

    @property
    def name(self) -> str:
        return self.storage.name

    @property
    def address(self) -> tuple[int, int] | None:
        """(partition, byte in it) of a tile that was allocated with an address, else None."""
        return self.storage.address

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<{self.buffer.value} {self.name or 'tensor'} {self.shape} {self.dtype}>"

    # The language forbids `is`, so libraries write `tensor != None`: plain identity.
    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        """True, because it is there: libraries write `if bias:` of an argument that may be None."""
        if repeats():
            raise self._no_value("a while")
        doubt(
            f"{self.buffer.value} tensor: an if, an and or a not asks whether it is true, and it "
            "is: it is not None.",
            "a kernel is compiled before there are numbers, so Python cannot ask what it holds.",
            "write tensor != None; for control that depends on data use nisa.select_reduce, "
            "nl.where, or a register with nl.fori_loop.",
        )
        return True

    def __int__(self) -> int:
        raise self._no_value("int()")

    def __index__(self) -> int:
        raise self._no_value("an index or range()")

    def __float__(self) -> float:
        raise self._no_value("float()")

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise self._no_value("NumPy")

    def _no_value(self, where: str) -> Exception:
        return refuse(
            f"{where} asks for the numbers of {self!r}.",
            "a kernel is compiled before there are numbers: Python sees shapes and types only.",
            "compute with nisa or nl instructions; for control that depends on data use "
            "nisa.select_reduce, nl.where, or a register with nl.fori_loop.",
        )

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
        self,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        offset: int | None = None,
        dtype: DType | None = None,
        indirect: Any = None,
    ) -> "Tensor":
        """Another view of the same storage."""
        return Tensor(
            self.storage,
            dtype or self.dtype,
            shape,
            strides,
            self.offset if offset is None else offset,
            indirect or self.indirect,
        )

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
            self._array = np.ndarray(
                self.shape,
                numpy,
                self.storage.data,
                self.offset * size,
                tuple(s * size for s in self.strides),
            )
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
        self.put_raw(narrow(values, self.dtype, self.storage.numpy_of(self.dtype)))

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


_NAMES = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "**": "power"}


def _no_operator(tensor: Tensor, symbol: str) -> Exception:
    if symbol == "@":
        fix = "nisa.nc_matmul(dst=product, stationary=a, moving=b), with product in PSUM."
    else:
        name = _NAMES.get(symbol, "add")
        fix = (
            f"nisa.tensor_tensor(dst=tile, data1=a, data2=b, op=nl.{name}), with tiles in SBUF; "
            f"for a number nisa.tensor_scalar(dst=tile, data=a, op0=nl.{name}, operand0=2.0)."
        )
    return refuse(
        f"{symbol} on {tensor!r}: tensors have no operators.",
        "each instruction names the tile that it writes, its engine and where its operands are.",
        fix,
    )


refuse_operators(Tensor, _no_operator)


def whole(storage: Storage) -> Tensor:
    """The view of everything in an allocation."""
    made = Tensor(storage, storage.dtype, storage.shape, storage.form.strides)
    if storage.address is None:
        made._key = storage.form.key
    return made
