"""Moving and rearranging: load, store, copy, transpose, matmul, broadcast, select, gather."""

from typing import Any

from utils.nki.simulator.dtypes import dtype_of
from utils.nki.simulator.enums import HBM, MemoryRegion
from utils.nki.simulator.errors import doubt, refuse
from utils.nki.simulator.instructions import nisa
from utils.nki.simulator.language.allocation import ndarray, tile_like
from utils.nki.simulator.operators import OPERATORS
from utils.nki.simulator.program import running
from utils.nki.simulator.tensor import Tensor

QUADRANT = 32
"""Partitions that a stream shuffle moves between."""


def load(src: Tensor, dtype: Any = None) -> Tensor:
    """A new SBUF tile with a copy of `src` in HBM; (n,) becomes (n, 1)."""
    _in_hbm("nl.load", "src", src)
    shape = src.shape if src.ndim > 1 else (*src.shape, 1)
    limit = running("nl.load").program.target.partitions
    if shape[0] > limit:
        raise refuse(
            f"nl.load: src has {shape[0]} rows {src.shape}; a tile has at most {limit} partitions "
            "(nl.tile_size.pmax).",
            "the first dimension becomes the partition dimension, one partition of SBUF per row.",
            f"loop over the rows: nl.load(x[nl.ds(i * {limit}, {limit}), :]).",
        )
    made = ndarray(shape, dtype or src.dtype)
    nisa.dma_copy(dst=made, src=src)
    return made


def store(dst: Tensor, value: Tensor) -> None:
    """Copy an SBUF tile to `dst` in HBM."""
    _in_hbm("nl.store", "dst", dst)
    nisa.dma_copy(dst=dst, src=value)


def _in_hbm(doing: str, name: str, tensor: Any) -> None:
    if not isinstance(tensor, Tensor) or tensor.buffer not in HBM:
        raise refuse(
            f"{doing}: {name} is {tensor!r}, it takes a tensor in HBM.",
            "load and store move between HBM and SBUF; on chip, tiles are copied.",
            "use nl.copy or nisa.tensor_copy between tiles.",
        )


def load_transpose2d(src: Tensor, dtype: Any = None) -> Tensor:
    """A new SBUF tile (columns, rows) with the transpose of `src` (rows, columns) in HBM."""
    _in_hbm("nl.load_transpose2d", "src", src)
    made = ndarray(src.shape[::-1], src.dtype)
    nisa.dma_transpose(dst=made, src=src)
    return made if dtype is None else cast(made, dtype)


def copy(x: Tensor, dtype: Any = None) -> Tensor:
    """A new SBUF tile with a copy of a tile of SBUF or PSUM, on the Vector Engine."""
    made = tile_like(x, dtype)
    nisa.tensor_copy(dst=made, src=x)
    return made


def cast(x: Tensor, dtype: Any) -> Tensor:
    """`x` itself where it has the type asked for, else a copy of that type."""
    return x if dtype is None or dtype_of(dtype) == x.dtype else copy(x, dtype)


def transpose(x: Tensor, dtype: Any = None) -> Tensor:
    """A new PSUM tile (columns, rows) with the transpose of a tile (rows, columns)."""
    if x.buffer is MemoryRegion.psum:
        x = copy(x)
    x = cast(x, dtype)
    made = ndarray((x.elements, x.shape[0]), x.dtype, MemoryRegion.psum)
    nisa.nc_transpose(dst=made, data=x)
    return made


def matmul(x: Tensor, y: Tensor, transpose_x: bool = False) -> Tensor:
    """A new PSUM tile with x @ y in FP32, or x.T @ y where `x` comes transposed.

    The Tensor Engine wants x transposed, (K, M), with y (K, N).
    """
    if not transpose_x:
        doubt(
            "nl.matmul: transpose_x=False.",
            "the release notes of NKI 0.3 to 0.6 say that only transpose_x=True compiles; here a "
            "transpose on the Tensor Engine is inserted.",
            "keep x as (K, M) and write nl.matmul(x, y, transpose_x=True).",
        )
        x = copy(transpose(x))
    made = ndarray((x.elements, *y.shape[1:]), "float32", MemoryRegion.psum)
    nisa.nc_matmul(dst=made, stationary=x, moving=y)
    return made


def broadcast_to(x: Tensor, shape: Any, dtype: Any = None) -> Tensor:
    """A new SBUF tile in which dimensions of size 1 are repeated; `x` itself if none is.

    One row is spread over partitions by stream shuffles, 32 partitions each.
    """
    shape = tuple(shape)
    fits = len(shape) == x.ndim and all(a in (1, b) for a, b in zip(x.shape, shape, strict=True))
    if not fits:
        raise refuse(
            f"nl.broadcast_to: {x.shape} to {shape}.",
            "only dimensions of size 1 are repeated, and their number stays.",
            "add dimensions with nl.expand_dims first.",
        )
    if x.shape == shape:
        return cast(x, dtype)
    wide = x
    for dimension in range(1, x.ndim):
        if x.shape[dimension] != shape[dimension]:
            wide = wide.broadcast(dimension, shape[dimension])
    if x.shape[0] == shape[0]:
        return copy(wide, dtype)
    row = wide if wide is x and dtype is None else copy(wide, dtype)
    made = ndarray(shape, row.dtype)
    for start in range(0, shape[0], QUADRANT):
        part = made[start : min(start + QUADRANT, shape[0])]
        nisa.nc_stream_shuffle(dst=part, src=row, shuffle_mask=[0] * QUADRANT)
    return made


def expand_dims(x: Tensor, axis: int) -> Tensor:
    """A view with one more dimension of size 1 at `axis`, which is not the partition."""
    return x.expand_dim(axis if axis >= 0 else axis + x.ndim + 1)


def where(condition: Tensor, x: Any, y: Any, dtype: Any = None) -> Tensor:
    """A new tile with elements of `x` where `condition` is not 0, else of `y`: tiles or numbers."""
    like = next((item for item in (x, y) if isinstance(item, Tensor)), condition)
    made = tile_like(like, dtype, shape=condition.shape)
    chosen = tile_like(condition, "uint8")
    nisa.tensor_scalar(dst=chosen, data=condition, op0=OPERATORS["not_equal"], operand0=0.0)
    if isinstance(y, Tensor):
        nisa.tensor_copy(dst=made, src=y)
    else:
        nisa.memset(dst=made, value=y)
    if isinstance(x, Tensor):
        x = cast(x, made.dtype)
    nisa.tensor_copy_predicated(dst=made, src=x, predicate=chosen)
    return made


def gather_flattened(data: Tensor, indices: Tensor, axis: int = 0, dtype: Any = None) -> Tensor:
    """A new tile: in each partition the elements of `data` at the positions in `indices`."""
    made = tile_like(data, shape=indices.shape)
    nisa.nc_n_gather(dst=made, data=data, indices=cast(indices, "uint32"))
    return cast(made, dtype)


def device_print(print_prefix: str, tensor: Tensor) -> None:
    """Print a tensor's numbers, after the prefix. Without numbers, its shape."""
    known = running("nl.device_print").program.values
    print(print_prefix, tensor.raw() if known else repr(tensor))
