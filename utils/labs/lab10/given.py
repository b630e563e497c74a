"""Three operators in a row, as exercise 3 of lab 10 gives them: each goes through HBM. Judges
nothing.
"""

import nki
import nki.isa as nisa
import nki.language as nl

ROWS = nl.tile_size.pmax


@nki.jit
def gated_norm(x, gate, weight, epsilon):
    """h = x * silu(gate), then h / sqrt(mean(h**2) + epsilon) * weight, in three operators.

    x, gate: [rows, columns] FP32, rows a multiple of 128; weight: [columns] FP32.
    """
    rows, columns = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    active = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.hbm)
    product = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.hbm)

    for row in range(0, rows, ROWS):
        here = nl.ds(row, ROWS)
        tile = nl.ndarray((ROWS, columns), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=gate[here])
        nisa.activation(dst=tile, op=nl.silu, data=tile)
        nisa.dma_copy(dst=active[here], src=tile)

    for row in range(0, rows, ROWS):
        here = nl.ds(row, ROWS)
        left = nl.ndarray((ROWS, columns), dtype=x.dtype, buffer=nl.sbuf)
        right = nl.ndarray((ROWS, columns), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=left, src=x[here])
        nisa.dma_copy(dst=right, src=active[here])
        nisa.tensor_tensor(dst=left, data1=left, data2=right, op=nl.multiply)
        nisa.dma_copy(dst=product[here], src=left)

    weights = nl.ndarray((ROWS, columns), dtype=nl.float32, buffer=nl.sbuf)
    offset = nl.ndarray((ROWS, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=weights, src=weight.ap(pattern=[[0, ROWS], [1, columns]]))
    nisa.memset(dst=offset, value=epsilon)
    for row in range(0, rows, ROWS):
        here = nl.ds(row, ROWS)
        tile = nl.ndarray((ROWS, columns), dtype=x.dtype, buffer=nl.sbuf)
        squares = nl.ndarray((ROWS, columns), dtype=nl.float32, buffer=nl.sbuf)
        scale = nl.ndarray((ROWS, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=product[here])
        nisa.activation_reduce(
            dst=squares, op=nl.square, data=tile, reduce_op=nl.add, reduce_res=scale
        )
        nisa.activation(dst=scale, op=nl.rsqrt, data=scale, scale=1 / columns, bias=offset)
        nisa.scalar_tensor_tensor(
            dst=tile, data=tile, op0=nl.multiply, operand0=scale,
            op1=nl.multiply, operand1=weights,
        )  # fmt: skip
        nisa.dma_copy(dst=out[here], src=tile)
    return out
