"""Three products of FP32 matrices on a Trainium1, where each is bound by something else.

The instructions are those of the kernels matmul, bmm and transpose_matmul of NKIBench, whose
profiles the project AccelOpt published with the bytes that they moved.

    turning   lhs comes as (M, K) and is turned on the Tensor Engine; rhs comes anew for each row
    batched   sixteen short products (K = 64), whose results are most of the bytes
    panels    lhs comes as (K, M); panels of all of K, and a last tile that is not full
"""

import nki
import nki.isa as nisa
import nki.language as nl

from utils.nki.kernels import tiles

WIDE = 2 * tiles.N


@nki.jit
def turning(lhs, rhs, block_k=8):
    """lhs (M, K) @ rhs (K, N). Panels of rhs would not fit, so its tiles come for each row of lhs.

    The published kernel asks for each tile of rhs once for a panel of columns; the bytes that were
    read say that the compiler fetched it for every row of tiles, and so does this one.
    """
    (rows, depth), columns = lhs.shape, rhs.shape[1]
    result = nl.ndarray((rows, columns), dtype=lhs.dtype, buffer=nl.shared_hbm)
    for n in range(0, columns, WIDE):
        for m in range(0, rows, tiles.M):
            left = []
            for k in range(0, depth, block_k * tiles.K):
                wide = tiles.load(lhs, m, k, block_k * tiles.K)
                for i in range(block_k):
                    left.append(_turned(wide[:, nl.ds(i * tiles.K, tiles.K)]))
            totals = [_total(), _total()]
            for k in range(len(left)):
                right = tiles.load(rhs, k * tiles.K, n, WIDE)
                for j in range(2):
                    tiles.multiply(totals[j], left[k], right, n=j * tiles.N)
            _store_wide(result, m, n, totals)
    return result


@nki.jit
def batched(lhs, rhs, block_m=8):
    """lhs (batch, M, 64) @ rhs (batch, 64, N), each product on its own."""
    (batch, rows, depth), columns = lhs.shape, rhs.shape[2]
    result = nl.ndarray((batch, rows, columns), dtype=lhs.dtype, buffer=nl.shared_hbm)
    for b in range(batch):
        for n in range(0, columns, WIDE):
            right = nl.ndarray((depth, WIDE), dtype=rhs.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=right, src=rhs[b, :, nl.ds(n, WIDE)])
            for m0 in range(0, rows, block_m * tiles.M):
                left = []
                for m in range(m0, m0 + block_m * tiles.M, tiles.M):
                    tile = nl.ndarray((tiles.M, depth), dtype=lhs.dtype, buffer=nl.sbuf)
                    nisa.dma_copy(dst=tile, src=lhs[b, nl.ds(m, tiles.M), :])
                    left.append(_turned(tile))
                for i in range(block_m):
                    totals = [_total(), _total()]
                    for j in range(2):
                        tiles.multiply(totals[j], left[i], right, n=j * tiles.N)
                    _store_wide(result[b], m0 + i * tiles.M, n, totals)
    return result


@nki.jit
def panels(lhs_t, rhs, block_m=8):
    """lhs_t (K, M) and rhs (K, N) give lhs_t.T @ rhs; N may be any number."""
    (depth, rows), columns = lhs_t.shape, rhs.shape[1]
    result = nl.ndarray((rows, columns), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    for m0 in range(0, rows, block_m * tiles.M):
        left = tiles.load_panel(lhs_t, m0, block_m * tiles.M)
        for n in range(0, columns, WIDE):
            width = min(WIDE, columns - n)
            right = tiles.load_panel(rhs, n, width)
            for m in range(0, block_m * tiles.M, tiles.M):
                out = nl.ndarray((tiles.M, width), dtype=result.dtype, buffer=nl.sbuf)
                for j in range(0, width, tiles.N):
                    narrow = min(tiles.N, width - j)
                    part = nl.ds(j, narrow)
                    total = nl.ndarray((tiles.M, narrow), dtype=nl.float32, buffer=nl.psum)
                    for k in range(depth // tiles.K):
                        column = left[k][:, nl.ds(m, tiles.M)]
                        nisa.nc_matmul(dst=total, stationary=column, moving=right[k][:, part])
                    nisa.activation(dst=out[:, part], op=nl.copy, data=total)
                tiles.store(result, m0 + m, n, out)
    return result


def _turned(tile):
    """The transpose of a tile (rows, columns) in SBUF: through the Tensor Engine and PSUM."""
    rows, columns = tile.shape
    turned = nl.ndarray((columns, rows), dtype=tile.dtype, buffer=nl.psum)
    nisa.nc_transpose(dst=turned, data=tile, engine=nisa.engine.tensor)
    return _copied(turned)


def _copied(tile):
    """A copy in SBUF of a tile in PSUM, by the Scalar Engine: it was the busy one in profiles."""
    copy = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.sbuf)
    nisa.activation(dst=copy, op=nl.copy, data=tile)
    return copy


def _total():
    return nl.ndarray((tiles.M, tiles.N), dtype=nl.float32, buffer=nl.psum)


def _store_wide(result, m, n, totals):
    """Two sums, side by side, from PSUM to their place in the result."""
    out = nl.ndarray((tiles.M, WIDE), dtype=result.dtype, buffer=nl.sbuf)
    for j in range(2):
        nisa.activation(dst=out[:, nl.ds(j * tiles.N, tiles.N)], op=nl.copy, data=totals[j])
    tiles.store(result, m, n, out)
