"""What allocations of one shape, type and memory have in common, and numbers for layouts.

A kernel allocates and slices the same few shapes thousands of times. What follows from them is
found out once.
"""

import functools
import math
from typing import Any

from utils.nki.simulator.dtypes import DType
from utils.nki.simulator.enums import ON_CHIP, MemoryRegion

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
