"""New tensors: `nl.ndarray`, and those that begin with a value or with random numbers."""

from typing import Any

import numpy as np

from utils.nki.simulator.capacity import allocate
from utils.nki.simulator.dtypes import DType, dtype_of
from utils.nki.simulator.enums import HBM, ON_CHIP, MemoryRegion
from utils.nki.simulator.errors import learner_line, refuse
from utils.nki.simulator.instructions import nisa
from utils.nki.simulator.operators import OPERATORS
from utils.nki.simulator.program import running
from utils.nki.simulator.surface import leftovers
from utils.nki.simulator.tensor import Tensor, whole

FILL_COLUMNS = 512
"""Columns of the tile from which a tensor of HBM is filled."""


class _Kind(type):
    """Makes `nl.ndarray` serve as a type in annotations and in isinstance."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Tensor)


class ndarray(metaclass=_Kind):  # noqa: N801 (NKI's own spelling)
    """A new tensor: a tile of SBUF or PSUM, or memory in HBM. Its content is not defined.

    shape: on chip, partitions first. address: (partition, byte) for a tile placed by hand.
    """

    def __new__(  # type: ignore[misc]
        cls,
        shape: Any,
        dtype: Any,
        buffer: MemoryRegion = MemoryRegion.sbuf,
        name: str = "",
        address: tuple[int, int] | None = None,
    ) -> Tensor:
        core = running("nl.ndarray")
        if not isinstance(buffer, MemoryRegion):
            buffer = _region(buffer)
        line = learner_line()
        return whole(allocate(core, shape, dtype_of(dtype), buffer, name, address, line))


def _region(asked: Any) -> MemoryRegion:
    if isinstance(asked, str):
        raise leftovers()["nki.language.ndarray(buffer=)"].error(f"buffer={asked!r}")
    raise refuse(
        f"nl.ndarray: buffer is {asked!r}, it takes one of nl.sbuf, nl.psum, nl.shared_hbm, "
        "nl.private_hbm.",
        "a tensor lies in one of the memories of the core.",
        "write buffer=nl.sbuf.",
    )


def full(
    shape: Any, fill_value: float, dtype: Any, buffer: MemoryRegion = MemoryRegion.sbuf,
    name: str = "",
) -> Tensor:  # fmt: skip
    """A new tensor filled with a number: one memset on chip; in HBM transfers of such a tile."""
    made = ndarray(shape, dtype, buffer, name)
    value = _as_element(fill_value, made.dtype)
    if made.buffer in ON_CHIP:
        nisa.memset(dst=made, value=value)
    else:
        _fill_hbm(made, value)
    return made


def _as_element(value: float, dtype: DType) -> float:
    """A whole number for integer types, which memset asks for; anything else as it is."""
    return int(value) if not dtype.is_float and float(value).is_integer() else value


def _fill_hbm(tensor: Tensor, value: float) -> None:
    flat, rows = tensor.reshape((tensor.size,)), running("nl.full").program.target.partitions
    done = 0
    while done < tensor.size:
        left = tensor.size - done
        columns = min(FILL_COLUMNS, left)
        tile = ndarray((min(rows, left // columns), columns), tensor.dtype)
        nisa.memset(dst=tile, value=value)
        for _ in range(left // tile.size):
            nisa.dma_copy(dst=flat[done : done + tile.size], src=tile)
            done += tile.size


def zeros(
    shape: Any, dtype: Any, buffer: MemoryRegion = MemoryRegion.sbuf, name: str = ""
) -> Tensor:
    """A new tensor of zeros."""
    return full(shape, 0, dtype, buffer, name)


def ones(
    shape: Any, dtype: Any, buffer: MemoryRegion = MemoryRegion.sbuf, name: str = ""
) -> Tensor:
    """A new tensor of ones."""
    return full(shape, 1, dtype, buffer, name)


def zeros_like(
    x: Tensor, dtype: Any = None, buffer: MemoryRegion | None = None, name: str = ""
) -> Tensor:
    """Zeros with the shape, and unless asked otherwise the type and memory, of `x`."""
    return full(x.shape, 0, dtype or x.dtype, buffer or x.buffer, name)


def empty_like(
    x: Tensor, dtype: Any = None, buffer: MemoryRegion | None = None, name: str = ""
) -> Tensor:
    """A new tensor with the shape, and unless asked otherwise the type and memory, of `x`."""
    return ndarray(x.shape, dtype or x.dtype, buffer or x.buffer, name)


def tile_like(x: Tensor, dtype: Any = None, shape: tuple[int, ...] | None = None) -> Tensor:
    """A new SBUF tile for a result computed from `x`."""
    return ndarray(shape or x.shape, dtype or x.dtype)


def shared_identity_matrix(n: int, dtype: Any = "uint8", dst: Tensor | None = None) -> Tensor:
    """An identity matrix (n, n) in SBUF, n at most the number of partitions."""
    made = ndarray((n, n), dtype) if dst is None else dst
    nisa.memset(dst=made, value=1 if not made.dtype.is_float else 1.0)
    nisa.affine_select(
        dst=made, pattern=[[-1, n]], channel_multiplier=1, on_true_tile=made, on_false_value=0.0,
        cmp_op=OPERATORS["equal"],
    )  # fmt: skip
    return made


def shared_constant(constant: Any) -> Tensor:
    """A tensor of shared HBM that holds an array, or the array of a .npy file, from the start."""
    array = np.load(constant) if isinstance(constant, str) else np.asarray(constant)
    made = ndarray(array.shape or (1,), array.dtype, MemoryRegion.shared_hbm, name="constant")
    running("nl.shared_constant").program.constants[made.storage] = array
    if made.storage.values:
        made.array()[...] = array.astype(made.storage.numpy)
        made.storage.written = True
    return made


def is_hbm(buffer: MemoryRegion) -> bool:
    """Whether a memory is one of the regions of HBM."""
    return buffer in HBM


def is_on_chip(buffer: MemoryRegion) -> bool:
    """Whether a memory is SBUF or PSUM."""
    return buffer in ON_CHIP


def is_psum(buffer: MemoryRegion) -> bool:
    """Whether a memory is PSUM."""
    return buffer is MemoryRegion.psum


def is_sbuf(buffer: MemoryRegion) -> bool:
    """Whether a memory is SBUF."""
    return buffer is MemoryRegion.sbuf


BITS = 24
"""Bits of an FP32 number between 0 and 1 that are drawn."""


def rand(
    shape: Any, dtype: Any, buffer: MemoryRegion = MemoryRegion.sbuf, name: str = ""
) -> Tensor:
    """A new tensor of numbers from 0 to below 1, evenly distributed."""
    words = ndarray(shape, "uint32")
    nisa.rng(dst=words)
    nisa.tensor_scalar(dst=words, data=words, op0=OPERATORS["right_shift"], operand0=32 - BITS)
    made = ndarray(shape, dtype, buffer, name)
    tile = ndarray(shape, dtype) if buffer in HBM else made
    nisa.tensor_scalar(dst=tile, data=words, op0=OPERATORS["multiply"], operand0=2.0**-BITS)
    if tile is not made:
        nisa.dma_copy(dst=made, src=tile)
    return made


def random_seed(seed: Any) -> None:
    """Begin the random numbers of this core anew from a (1, 1) tile of 32 bits."""
    if not isinstance(seed, Tensor):
        raise refuse(
            f"nl.random_seed: the seed is {seed!r}, it is a (1, 1) tile of 32 bits.",
            "the engine reads its seed from memory.",
            f"nl.random_seed(nl.full((1, 1), {seed!r}, dtype=nl.int32)).",
        )
    nisa.set_rng_seed(src_seeds=seed)


def dropout(x: Tensor, rate: Any, dtype: Any = None) -> Tensor:
    """A new tile in which elements are 0 with the probability `rate` (a number or a column)."""
    made = tile_like(x, dtype)
    nisa.dropout(dst=made, data=x, prob=rate)
    return made
