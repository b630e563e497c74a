"""Allocations: tensors of HBM, and tiles of SBUF and PSUM with their bytes per partition."""

import math
from typing import Any

import numpy as np

from utils.nki.simulator import surface
from utils.nki.simulator.dtypes import DType, sentinel
from utils.nki.simulator.enums import ON_CHIP, MemoryRegion
from utils.nki.simulator.errors import Line, refuse
from utils.nki.simulator.forms import form_of
from utils.nki.simulator.program import Core, Program
from utils.nki.simulator.target import Target

HBM, PRIVATE, SHARED = MemoryRegion.hbm, MemoryRegion.private_hbm, MemoryRegion.shared_hbm


class Storage:
    """One allocation. On chip, `row` elements of `dtype` in each of `partitions` partitions.

    values: whether it holds numbers; `data` has their bytes, row after row. In HBM there is one
    row. row_bytes: of a row, as the hardware stores it.
    """

    __slots__ = (
        "_data", "address", "argument", "buffer", "core", "dtype", "form", "index", "line", "name",
        "numpy", "on_chip", "partitions", "products", "row", "row_bytes", "shape", "values",
        "written",
    )  # fmt: skip

    def __init__(
        self,
        program: Program,
        shape: tuple[int, ...],
        dtype: DType,
        buffer: MemoryRegion,
        *,
        name: str = "",
        line: Line | None = None,
        address: tuple[int, int] | None = None,
        core: int | None = None,
    ) -> None:
        self.index = len(program.storages)
        self.shape, self.dtype, self.buffer = shape, dtype, buffer
        self.form = form = form_of(shape, dtype, buffer)
        self.on_chip, self.partitions = form.on_chip, form.partitions
        self.row, self.row_bytes = form.row, form.row_bytes
        self.name, self.line, self.address, self.core = name, line, address, core
        self.written = False
        self.argument = False
        self.products: Any = None
        self.numpy = dtype.numpy if program.precise else _unrounded(dtype)
        self.values = program.values
        self._data: np.ndarray | None = None
        program.storages.append(self)

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

    @property
    def size_bytes(self) -> int:
        return self.partitions * self.row_bytes

    def __repr__(self) -> str:
        name = f" {self.name}" if self.name else ""
        return f"<{self.buffer.value}{name} {self.shape} {self.dtype}>"


def _unrounded(dtype: DType) -> np.dtype:
    """How elements are kept where nothing is rounded: small floats in 32 bits."""
    return np.dtype(np.float32) if dtype.kind == "float" and dtype.itemsize < 4 else dtype.numpy


def _unwritten(elements: int, dtype: DType, numpy: np.dtype) -> np.ndarray:
    """The bytes of memory that nobody wrote. Filled by bits: ml_dtypes' own fill is slow."""
    bits = np.array(sentinel(dtype)).astype(numpy).view(f"u{numpy.itemsize}")
    return np.full(elements, bits, bits.dtype).view(np.uint8)


def allocate(
    core: Core,
    shape: Any,
    dtype: DType,
    buffer: MemoryRegion,
    name: str = "",
    address: tuple[int, int] | None = None,
    line: Line | None = None,
) -> Storage:
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
        address = tuple(address)
    if buffer is SHARED and core.grid > 1 and (there := _shared(core, sizes, dtype)) is not None:
        return there
    storage = Storage(program, sizes, dtype, buffer, name=name, line=line, address=address)
    if buffer is SHARED:
        program.shared.append(storage)
    else:
        storage.core = core.index
    return storage


def _shared(core: Core, shape: tuple[int, ...], dtype: DType) -> Storage | None:
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
    whole = (isinstance(n, (int, np.integer)) and type(n) is not bool and n > 0 for n in sizes)
    if not sizes or not all(whole):
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
        banks = (
            f" ({math.ceil(bytes_per_partition / bank)} banks of {target.psum_banks})"
            if buffer is MemoryRegion.psum
            else ""
        )
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
