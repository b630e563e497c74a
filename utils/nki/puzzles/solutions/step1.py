"""Step 1, tiles: what comes in rows goes through SBUF, 128 rows at a time."""

import nki
import nki.isa as nisa
import nki.language as nl

ROWS = 128


@nki.jit
def copy(x):
    """x (m, n), returned unchanged."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for row in range(0, x.shape[0], ROWS):
        tile = nl.ndarray((ROWS, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[nl.ds(row, ROWS), :])
        nisa.dma_copy(dst=out[nl.ds(row, ROWS), :], src=tile)
    return out


@nki.jit
def axpy(x, y):
    """2 x + y, both (m, n), in one instruction for each tile."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for row in range(0, x.shape[0], ROWS):
        here = nl.ds(row, ROWS)
        left = nl.ndarray((ROWS, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        right = nl.ndarray((ROWS, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=left, src=x[here, :])
        nisa.dma_copy(dst=right, src=y[here, :])
        total = nl.ndarray((ROWS, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.scalar_tensor_tensor(
            dst=total, data=left, op0=nl.multiply, operand0=2.0, op1=nl.add, operand1=right
        )
        nisa.dma_copy(dst=out[here, :], src=total)
    return out


@nki.jit
def row_sum(x):
    """Sums of the rows of x (m, n), as (m, 1)."""
    out = nl.ndarray((x.shape[0], 1), dtype=x.dtype, buffer=nl.shared_hbm)
    for row in range(0, x.shape[0], ROWS):
        tile = nl.ndarray((ROWS, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[nl.ds(row, ROWS), :])
        total = nl.ndarray((ROWS, 1), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=total, op=nl.add, data=tile, axis=1)
        nisa.dma_copy(dst=out[nl.ds(row, ROWS), :], src=total)
    return out


@nki.jit
def ragged_relu(x):
    """max(x, 0) for x (m, n) with any m: the last tile has fewer partitions."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for row in range(0, x.shape[0], ROWS):
        rows = min(ROWS, x.shape[0] - row)
        here = nl.ds(row, rows)
        tile = nl.ndarray((rows, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[here, :])
        result = nl.ndarray((rows, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=result, data=tile, op0=nl.maximum, operand0=0.0)
        nisa.dma_copy(dst=out[here, :], src=result)
    return out
