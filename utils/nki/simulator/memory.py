"""An allocation: a tensor of HBM, or a tile of SBUF or PSUM with its bytes per partition.

A kernel allocates and slices the same few shapes thousands of times. What follows from a shape, a
type and a memory is found out once, and kept in a `Form`.
"""

import functools
import math
from typing import Any

import numpy as np

from utils.nki.simulator.dtypes import DType, narrow, sentinel
from utils.nki.simulator.enums import ON_CHIP, MemoryRegion
from utils.nki.simulator.errors import Line

_numbers: dict[Any, int] = {}


def number_of(layout: Any) -> int:
    """The number of a layout, from 1 on; equal layouts have the same.

    >>> number_of((128, 512)) == number_of((128, 512)) != number_of((128, 64))
    True
    """
    return _numbers.setdefault(layout, len(_numbers) + 1)


class Form:
    """One shape, type and memory. On chip, `row` elements in each of `partitions` partitions.

    row_bytes: bytes per partition (of the whole tensor in HBM), as the hardware stores them.
    strides: of everything, row-major, in elements. key: the `Tensor.key` of everything where no
    address says otherwise; keys: those of views.
    """

    __slots__ = ("key", "keys", "on_chip", "partitions", "row", "row_bytes", "strides")

    def __init__(self, shape: tuple[int, ...], dtype: DType, buffer: MemoryRegion) -> None:
        self.on_chip = buffer in ON_CHIP
        self.partitions = shape[0] if self.on_chip else 1
        self.row = math.prod(shape[1:] if self.on_chip else shape)
        self.row_bytes = self.row * dtype.itemsize
        self.strides = tuple(math.prod(shape[i:]) for i in range(1, len(shape) + 1))
        step = (self.strides[0] // self.row,) if self.on_chip else self.strides[:1]
        strides = (*step, *self.strides[1:])
        self.key = number_of((buffer, dtype, shape, strides, 0, 0, None))
        self.keys: dict[Any, int] = {}


@functools.cache
def form_of(shape: tuple[int, ...], dtype: DType, buffer: MemoryRegion) -> Form:
    """The form of an allocation; its shape is checked before: positive Python integers."""
    return Form(shape, dtype, buffer)


class Storage:
    """One allocation. On chip, `row` elements of `dtype` in each of `partitions` partitions.

    index: its number among the allocations of the program. values: whether it holds numbers; `data`
    has their bytes, row after row. In HBM there is one row. row_bytes: of a row, as the hardware
    stores it. precise: round at every write, or keep small floats in 32 bits.
    """

    __slots__ = (
        "_data", "address", "argument", "buffer", "core", "dtype", "form", "index", "line", "name",
        "numpy", "on_chip", "partitions", "precise", "products", "row", "row_bytes", "shape",
        "values", "written",
    )  # fmt: skip

    def __init__(
        self, index: int, shape: tuple[int, ...], dtype: DType, buffer: MemoryRegion, *,
        values: bool = True, precise: bool = True, name: str = "", line: Line | None = None,
        address: tuple[int, int] | None = None, core: int | None = None,
    ) -> None:  # fmt: skip
        self.index = index
        self.shape, self.dtype, self.buffer = shape, dtype, buffer
        self.form = form = form_of(shape, dtype, buffer)
        self.on_chip, self.partitions = form.on_chip, form.partitions
        self.row, self.row_bytes = form.row, form.row_bytes
        self.name, self.line, self.address, self.core = name, line, address, core
        self.written = False
        self.argument = False
        self.products: Any = None
        self.numpy = dtype.numpy if precise else _wide_dtype(dtype)
        self.values, self.precise = values, precise
        self._data: np.ndarray | None = None

    @property
    def data(self) -> np.ndarray:
        """The bytes; at first those of memory that nobody wrote."""
        if self._data is None:
            self._data = _unwritten(self.partitions * self.row, self.dtype, self.numpy)
        return self._data

    def overwritten(self) -> None:
        """All of it is going to be written: what it held before need not be made up."""
        if self._data is None:
            self._data = np.empty(self.partitions * self.row * self.numpy.itemsize, np.uint8)

    def numpy_of(self, dtype: DType) -> np.dtype:
        """How elements are kept that are written through a view of type `dtype`."""
        return self.numpy if dtype == self.dtype else dtype.numpy

    def narrow(self, values: np.ndarray, dtype: DType) -> np.ndarray:
        """FP32 values as they are kept when written through a view of type `dtype`."""
        if dtype == "tfloat32" and not self.precise:
            return values.astype(np.float32, copy=False)
        return narrow(values, dtype, self.numpy_of(dtype))

    @property
    def size_bytes(self) -> int:
        """Bytes on the hardware, all partitions together."""
        return self.partitions * self.row_bytes

    def __repr__(self) -> str:
        name = f" {self.name}" if self.name else ""
        return f"<{self.buffer.value}{name} {self.shape} {self.dtype}>"


def _wide_dtype(dtype: DType) -> np.dtype:
    """How elements are kept where nothing is rounded: small floats in 32 bits."""
    return np.dtype(np.float32) if dtype.kind == "float" and dtype.itemsize < 4 else dtype.numpy


def _unwritten(elements: int, dtype: DType, numpy: np.dtype) -> np.ndarray:
    """The bytes of memory that nobody wrote. Filled by bits: ml_dtypes' own fill is slow."""
    bits = np.array(sentinel(dtype)).astype(numpy).view(f"u{numpy.itemsize}")
    return np.full(elements, bits, bits.dtype).view(np.uint8)
