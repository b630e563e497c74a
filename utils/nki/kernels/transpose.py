"""Rows become columns: a square matrix turned on the Tensor Engine, 128 x 128 at a time.

A transpose through DMA would write elements one by one. The Tensor Engine instead multiplies a
tile by the identity, which leaves it turned in PSUM. `tiled` does one tile after the other, as
students of Stanford's CS149 wrote and profiled it; `transposed` fetches whole rows, and four turned
tiles fill a bank of PSUM and are carried to SBUF together.
"""

import nki
import nki.isa as nisa
import nki.language as nl

from utils.nki.kernels import tiles

TURNED = 4


@nki.jit
def transposed(x):
    """x (rows, columns), multiples of 512 and 128, gives its transpose."""
    rows, columns = x.shape
    result = nl.ndarray((columns, rows), dtype=x.dtype, buffer=nl.shared_hbm)
    wide = TURNED * tiles.M
    for m0 in range(0, rows, wide):
        strips = []
        for m in range(m0, m0 + wide, tiles.M):
            strips.append(tiles.load(x, m, 0, columns))
        for n in range(0, columns, tiles.K):
            turned = nl.ndarray((tiles.K, wide), dtype=x.dtype, buffer=nl.psum)
            for i in range(TURNED):
                place = turned[:, nl.ds(i * tiles.M, tiles.M)]
                nisa.nc_transpose(dst=place, data=strips[i][:, nl.ds(n, tiles.K)])
            tiles.store(result, n, m0, tiles.evicted(turned, x.dtype))
    return result


@nki.jit
def tiled(x):
    """x (rows, columns), multiples of 128, gives its transpose, a tile of 128 x 128 at a time."""
    rows, columns = x.shape
    result = nl.ndarray((columns, rows), dtype=x.dtype, buffer=nl.shared_hbm)
    for m in range(0, rows, tiles.M):
        for n in range(0, columns, tiles.K):
            tile = tiles.load(x, m, n, tiles.K)
            turned = nl.ndarray((tiles.K, tiles.M), dtype=x.dtype, buffer=nl.psum)
            nisa.nc_transpose(dst=turned, data=tile)
            out = nl.ndarray(turned.shape, dtype=x.dtype, buffer=nl.sbuf)
            nisa.activation(dst=out, op=nl.copy, data=turned)
            tiles.store(result, n, m, out)
    return result
