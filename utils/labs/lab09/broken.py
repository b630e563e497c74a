"""Four kernels that each break one rule of the hardware: given in exercise 6 of lab 09.

Each is right in what it wants. Nothing here judges.
"""

import nki.isa as nisa
import nki.language as nl

from utils.labs.lab09.rules import RULES

__all__ = ["RULES", "a", "b", "c", "d"]


def a(x):
    """Twice x, for x of [256, 64]."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
    nisa.dma_copy(dst=out, src=tile)
    return out


def b(x, y):
    """x.T @ y for x of [128, 128] and y of [128, 256]."""
    out = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.shared_hbm)
    x_tile = nl.ndarray((128, 128), dtype=x.dtype, buffer=nl.sbuf)
    y_tile = nl.ndarray((128, 256), dtype=y.dtype, buffer=nl.sbuf)
    product = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.psum)
    nisa.dma_copy(dst=x_tile, src=x)
    nisa.dma_copy(dst=y_tile, src=y)
    nisa.nc_matmul(dst=product, stationary=x_tile, moving=y_tile)
    nisa.dma_copy(dst=out, src=product)
    return out


def c(x, y):
    """x plus the one row y, for x of [128, 256] and y of [1, 256]."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    row = nl.ndarray((1, 256), dtype=y.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=row, src=y)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=row, op=nl.add)
    nisa.dma_copy(dst=out, src=tile)
    return out


def d(x, y):
    """x.T @ y for x of [64, 128] and y of [64, 1024]."""
    out = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.shared_hbm)
    x_tile = nl.ndarray((64, 128), dtype=x.dtype, buffer=nl.sbuf)
    y_tile = nl.ndarray((64, 1024), dtype=y.dtype, buffer=nl.sbuf)
    result = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.sbuf)
    product = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.psum)
    nisa.dma_copy(dst=x_tile, src=x)
    nisa.dma_copy(dst=y_tile, src=y)
    nisa.nc_matmul(dst=product, stationary=x_tile, moving=y_tile)
    nisa.tensor_copy(dst=result, src=product)
    nisa.dma_copy(dst=out, src=result)
    return out
