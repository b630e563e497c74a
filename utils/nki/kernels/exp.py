"""The smallest kernels: a tile in, something done to it, a tile out.

`exp` is the example of AWS's introduction to DMA (4 x 4096 and 128 x 128, BF16: the same number of
bytes, in 4 rows on one DMA engine or in 128 rows on sixteen). `copies` and `chain` do one thing
many times, so that what one more costs can be read off: a transfer, and an instruction that waits
for the one before.
"""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def exp(x):
    """exp of x, shape (rows <= 128, columns), in the dtype of x."""
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    source = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    target = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=source, src=x)
    nisa.activation(dst=target, op=nl.exp, data=source)
    nisa.dma_copy(dst=result, src=target)
    return result


@nki.jit
def copies(x, times=1):
    """x, shape (rows <= 128, columns), brought into SBUF `times` times and written back once.

    Between the first and the last fetch the DMA engines do nothing else: the rate of a transfer
    against the length of its rows, as AWS's introduction to DMA plots it for 128 rows.
    """
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for _ in range(times):
        tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=result, src=tile)
    return result


@nki.jit
def chain(x, times=1):
    """x, shape (rows <= 128, columns), copied onto itself `times` times by the Scalar Engine.

    Each copy needs the one before, so what one more costs is an instruction's latency.
    """
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    for _ in range(times):
        nisa.activation(dst=tile, op=nl.copy, data=tile)
    nisa.dma_copy(dst=result, src=tile)
    return result
