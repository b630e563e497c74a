"""Kernels with one flaw each, or none, and what mends it: the profiles of exercise 5 of lab 10.

The flaw is put in, so what to do next is known and no matter of opinion: without it the same kernel
is faster, which the tests measure. Only judges import this.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import nki.isa as nisa
import nki.language as nl

ROWS = 128
WIDE = 512
FP32, BF16 = "float32", "bfloat16"


class Variant(NamedTuple):
    """action: what mends the kernel. shapes: of its arguments, with their type. mended: the same
    kernel without the flaw; the kernel itself where there is none.
    """

    action: str
    kernel: Callable[..., Any]
    mended: Callable[..., Any]
    shapes: tuple[tuple[tuple[int, int], str], ...]


def _tile(shape: tuple[int, ...], dtype: Any, buffer: Any = nl.sbuf) -> Any:
    return nl.ndarray(shape, dtype=dtype, buffer=buffer)


def product(lhs_t: Any, rhs: Any, keep: bool = True) -> Any:
    """Rows of tiles of lhs_t.T @ rhs; without `keep` rhs comes again for each of them."""
    (depth, rows), columns = lhs_t.shape, rhs.shape[1]
    out = _tile((rows, columns), lhs_t.dtype, nl.shared_hbm)
    lefts: list[Any] = []
    rights: list[Any] = []
    for row in range(0, rows, ROWS):
        sums = []
        for _ in range(columns // WIDE):
            sums.append(_tile((ROWS, WIDE), nl.float32, nl.psum))
        for k in range(depth // ROWS):
            here = nl.ds(k * ROWS, ROWS)
            if row == 0:
                lefts.append(_tile((ROWS, rows), lhs_t.dtype))
                nisa.dma_copy(dst=lefts[k], src=lhs_t[here])
            if row == 0 or not keep:
                rights[k : k + 1] = [_tile((ROWS, columns), rhs.dtype)]
                nisa.dma_copy(dst=rights[k], src=rhs[here])
            for place in range(len(sums)):
                nisa.nc_matmul(
                    dst=sums[place],
                    stationary=lefts[k][:, nl.ds(row, ROWS)],
                    moving=rights[k][:, nl.ds(place * WIDE, WIDE)],
                )
        result = _tile((ROWS, columns), out.dtype)
        for place in range(len(sums)):
            nisa.tensor_copy(dst=result[:, nl.ds(place * WIDE, WIDE)], src=sums[place])
        nisa.dma_copy(dst=out[nl.ds(row, ROWS)], src=result)
    return out


def strips(x: Any, width: int) -> Any:
    """exp of x in strips of so many columns: the fewer, the shorter the transfers."""
    out = _tile(x.shape, x.dtype, nl.shared_hbm)
    for row in range(0, x.shape[0], ROWS):
        for column in range(0, x.shape[1], width):
            here = nl.ds(row, ROWS), nl.ds(column, width)
            tile = _tile((ROWS, width), x.dtype)
            nisa.dma_copy(dst=tile, src=x[here])
            nisa.activation(dst=tile, op=nl.exp, data=tile)
            nisa.dma_copy(dst=out[here], src=tile)
    return out


def in_turns(x: Any, width: int, turns: bool) -> Any:
    """exp of x, squared, in pieces: each with tiles of its own, or all with the same two."""
    out = _tile(x.shape, x.dtype, nl.shared_hbm)
    tile, power = _tile((ROWS, width), x.dtype), _tile((ROWS, width), nl.float32)
    for row in range(0, x.shape[0], ROWS):
        for column in range(0, x.shape[1], width):
            here = nl.ds(row, ROWS), nl.ds(column, width)
            if turns:
                tile, power = _tile((ROWS, width), x.dtype), _tile((ROWS, width), nl.float32)
            nisa.dma_copy(dst=tile, src=x[here])
            nisa.activation(dst=power, op=nl.exp, data=tile)
            nisa.tensor_tensor(dst=tile, data1=power, data2=power, op=nl.multiply)
            nisa.dma_copy(dst=out[here], src=tile)
    return out


def powers(x: Any, count: int, engines: tuple[Any, ...]) -> Any:
    """`count` products of x with itself in each tile, by one engine or by several in turn."""
    out = _tile(x.shape, x.dtype, nl.shared_hbm)
    for row in range(0, x.shape[0], ROWS):
        here = nl.ds(row, ROWS)
        tile = _tile((ROWS, x.shape[1]), x.dtype)
        nisa.dma_copy(dst=tile, src=x[here])
        by = engines[row // ROWS % len(engines)]
        for _ in range(count):
            result = _tile(tile.shape, x.dtype)
            nisa.tensor_tensor(dst=result, data1=tile, data2=tile, op=nl.multiply, engine=by)
            tile = result
        nisa.dma_copy(dst=out[here], src=tile)
    return out


def functions(x: Any, vector: bool) -> Any:
    """relu, tanh, relu, square: all on the Scalar Engine, or relu on the Vector Engine."""
    out = _tile(x.shape, x.dtype, nl.shared_hbm)
    for row in range(0, x.shape[0], ROWS):
        here = nl.ds(row, ROWS)
        tile = _tile((ROWS, x.shape[1]), x.dtype)
        nisa.dma_copy(dst=tile, src=x[here])
        for op in (nl.relu, nl.tanh, nl.relu, nl.square):
            result = _tile(tile.shape, x.dtype)
            if vector and op == nl.relu:
                nisa.tensor_scalar(dst=result, data=tile, op0=nl.maximum, operand0=0.0)
            else:
                nisa.activation(dst=result, op=op, data=tile)
            tile = result
        nisa.dma_copy(dst=out[here], src=tile)
    return out


def two_operators(x: Any, fused: bool) -> Any:
    """tanh, then twice that: in one loop, or in two with an array in HBM between them."""
    out = _tile(x.shape, x.dtype, nl.shared_hbm)
    between = out if fused else _tile(x.shape, x.dtype, nl.hbm)
    for row in range(0, x.shape[0], ROWS):
        here = nl.ds(row, ROWS)
        tile = _tile((ROWS, x.shape[1]), x.dtype)
        nisa.dma_copy(dst=tile, src=x[here])
        nisa.activation(dst=tile, op=nl.tanh, data=tile)
        if fused:
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=between[here], src=tile)
    for row in range(0, 0 if fused else x.shape[0], ROWS):
        here = nl.ds(row, ROWS)
        tile = _tile((ROWS, x.shape[1]), x.dtype)
        nisa.dma_copy(dst=tile, src=between[here])
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=out[here], src=tile)
    return out


def variants() -> list[Variant]:
    """All of them, in groups by action."""
    vector, gpsimd = nisa.engine.vector, nisa.engine.gpsimd

    def in_fp32(action: str, kernel: Any, mended: Any, *sizes: tuple[int, ...]) -> list[Variant]:
        """Of kernels that take [rows, columns] and further numbers, a variant for each size."""
        return [
            Variant(
                action,
                lambda x, more=more: kernel(x, *more),
                lambda x, more=more: mended(x, *more),
                (((rows, columns), FP32),),
            )
            for rows, columns, *more in sizes
        ]

    def product_of(depth: int, rows: int, columns: int) -> tuple[Any, Any]:
        return ((depth, rows), BF16), ((depth, columns), BF16)

    results = [
        Variant("block", lambda a, b: product(a, b, keep=False), product, product_of(*sizes))
        for sizes in ((512, 1024, 1024), (512, 768, 2048), (768, 1536, 1024))
    ]
    results += in_fp32(
        "lengthen", strips, lambda x, _: strips(x, WIDE),
        (128, 1024, 8), (256, 1536, 16), (256, 2048, 16),
    )  # fmt: skip
    results += in_fp32(
        "rotate", lambda x, width: in_turns(x, width, False), lambda x, w: in_turns(x, w, True),
        (1024, 1024, 1024), (1280, 768, 768), (640, 2048, 1024),
    )  # fmt: skip
    results += in_fp32(
        "rebalance", lambda x, count: powers(x, count, (vector,)),
        lambda x, count: powers(x, count, (vector, gpsimd)), (1536, 1024, 5), (2048, 768, 6),
    )  # fmt: skip
    on_scalar, on_vector = (lambda x, v=v: functions(x, vector=v) for v in (False, True))
    results.append(Variant("rebalance", on_scalar, on_vector, (((2048, 1024), BF16),)))
    apart, fused = (lambda x, f=f: two_operators(x, fused=f) for f in (False, True))
    results += in_fp32("fuse", apart, fused, (2048, 2048), (3072, 1024), (1536, 3072))
    results.append(Variant("stop", product, product, product_of(1536, 1536, 2048)))
    results += in_fp32("stop", fused, fused, (4096, 2048), (6144, 1024))
    return results
