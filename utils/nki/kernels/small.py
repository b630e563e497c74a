"""Many small instructions: how fast the simulator itself is (`utils.nki.bench`)."""

import nki
import nki.isa as nisa
import nki.language as nl

ROWS = 128


@nki.jit
def small(x):
    """2 exp(x), shape (rows, columns), rows a multiple of 128, and the sum of all exp(x) unused."""
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    total = nl.ndarray((ROWS, x.shape[1]), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=total, value=0.0)
    for i in range(0, x.shape[0], ROWS):
        tile = nl.ndarray((ROWS, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[i : i + ROWS])
        nisa.activation(dst=tile, op=nl.exp, data=tile)
        nisa.tensor_tensor(dst=total, data1=total, data2=tile, op=nl.add)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=result[i : i + ROWS], src=tile)
    return result
