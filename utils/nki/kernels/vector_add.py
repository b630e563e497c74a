"""Two vectors are added: what a transfer costs when it is short, and what overlap brings.

The instructions are those that Stanford's CS149 hands to its students, who published their profiles
on a Trainium2: pieces of one element per partition, then of many.
"""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def tiled(a, b, rows=128):
    """a and b, shape (n,), in pieces of `rows` elements, one for each partition."""
    (size,) = a.shape
    result = nl.ndarray((size,), dtype=a.dtype, buffer=nl.shared_hbm)
    for start in range(0, size, rows):
        piece = nl.ds(start, rows)
        left = nl.ndarray((rows, 1), dtype=a.dtype, buffer=nl.sbuf)
        right = nl.ndarray((rows, 1), dtype=b.dtype, buffer=nl.sbuf)
        total = nl.ndarray((rows, 1), dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=left, src=a[piece])
        nisa.dma_copy(dst=right, src=b[piece])
        nisa.tensor_scalar(dst=total, data=left, op0=nl.add, operand0=right)
        nisa.dma_copy(dst=result[piece], src=total)
    return result


@nki.jit
def streamed(a, b, width=1000):
    """a and b, shape (n,), as 128 rows, in pieces of `width` columns."""
    (size,) = a.shape
    rows = nl.tile_size.pmax
    columns = size // rows
    result = nl.ndarray((rows, columns), dtype=a.dtype, buffer=nl.shared_hbm)
    wide_a, wide_b = a.reshape((rows, columns)), b.reshape((rows, columns))
    for start in range(0, columns, width):
        piece = nl.ds(start, width)
        left = nl.ndarray((rows, width), dtype=a.dtype, buffer=nl.sbuf)
        right = nl.ndarray((rows, width), dtype=b.dtype, buffer=nl.sbuf)
        total = nl.ndarray((rows, width), dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=left, src=wide_a[:, piece])
        nisa.dma_copy(dst=right, src=wide_b[:, piece])
        nisa.tensor_tensor(dst=total, data1=left, data2=right, op=nl.add)
        nisa.dma_copy(dst=result[:, piece], src=total)
    return result.reshape((size,))
