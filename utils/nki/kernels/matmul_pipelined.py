"""A matrix product whose loads are solved: what is left is who waits for whom in PSUM.

All take lhs_t (K, M) and rhs (K, N), small enough that both fit in SBUF, and return lhs_t.T @ rhs,
shape (M, N), in the dtype of lhs_t. The Tensor Engine writes sums to PSUM; before it may write to
the same place again, the Vector Engine has to carry them to SBUF. The steps:

    streamed   one buffer for each tile: nothing overlaps, so every product waits for its operands
    resident   both matrices fetched before; one accumulator of a whole row of tiles, or two in turn
    skewed     two accumulators, and the loop says so: a row is carried out while the next is summed
    panelled   operands in blocks, fetched while others are multiplied; K in one go
    two_level  the same with K in two halves that are added in SBUF
    turning    two_level for a left matrix that nobody transposed before

The instructions are those of awslabs/nki-autotune, which measured each step on a Trainium2. It also
cleared each accumulator by a memset before the first product; so do these, although a first
product that overwrites (accumulate=False) needs none.
"""

import nki
import nki.isa as nisa
import nki.language as nl

from utils.nki.kernels import tiles


@nki.jit
def streamed(lhs_t, rhs):
    """Every tile has one place, allocated before the loops, so the next waits until it is free."""
    rows, columns, depth = tiles.sizes(lhs_t, rhs)
    result = nl.ndarray((rows, columns), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    left = nl.ndarray((tiles.K, tiles.M), dtype=lhs_t.dtype, buffer=nl.sbuf)
    right = nl.ndarray((tiles.K, tiles.N), dtype=rhs.dtype, buffer=nl.sbuf)
    total = nl.ndarray((tiles.M, tiles.N), dtype=nl.float32, buffer=nl.psum)
    out = nl.ndarray((tiles.M, tiles.N), dtype=result.dtype, buffer=nl.sbuf)
    for m in range(0, rows, tiles.M):
        for n in range(0, columns, tiles.N):
            nisa.memset(dst=total, value=0.0)
            for k in range(0, depth, tiles.K):
                nisa.dma_copy(dst=left, src=lhs_t[nl.ds(k, tiles.K), nl.ds(m, tiles.M)])
                nisa.dma_copy(dst=right, src=rhs[nl.ds(k, tiles.K), nl.ds(n, tiles.N)])
                nisa.nc_matmul(dst=total, stationary=left, moving=right, accumulate=k > 0)
            nisa.tensor_copy(dst=out, src=total)
            tiles.store(result, m, n, out)
    return result


@nki.jit
def resident(lhs_t, rhs, accumulators=2):
    """Everything is in SBUF at the start; rows of the result take the accumulators in turn."""
    rows, columns, _ = tiles.sizes(lhs_t, rhs)
    result = nl.ndarray((rows, columns), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    left, right = tiles.load_panel(lhs_t, 0, rows), tiles.load_panel(rhs, 0, columns)
    totals = _accumulators(accumulators, columns)
    outs = []
    for m in range(0, rows, tiles.M):
        total = totals[m // tiles.M % accumulators]
        _sum_row(total, left, right, m)
        outs.append(tiles.evicted(total, result.dtype))
    for m in range(len(outs)):
        tiles.store(result, m * tiles.M, 0, outs[m])
    return result


@nki.jit
def skewed(lhs_t, rhs):
    """Row m is summed before row m - 1 is carried out: the order in which they can overlap."""
    rows, columns, _ = tiles.sizes(lhs_t, rhs)
    result = nl.ndarray((rows, columns), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    left, right = tiles.load_panel(lhs_t, 0, rows), tiles.load_panel(rhs, 0, columns)
    totals = _accumulators(2, columns)
    outs = []
    _sum_row(totals[0], left, right, 0)
    for m in range(1, rows // tiles.M):
        _sum_row(totals[m % 2], left, right, m * tiles.M)
        outs.append(tiles.evicted(totals[(m - 1) % 2], result.dtype))
    outs.append(tiles.evicted(totals[(rows // tiles.M - 1) % 2], result.dtype))
    for m in range(len(outs)):
        tiles.store(result, m * tiles.M, 0, outs[m])
    return result


@nki.jit
def panelled(lhs_t, rhs, block_m=4):
    """Panels of all of K, each fetched where it is used; a fresh accumulator for each tile."""
    width_m = block_m * tiles.M
    rows, columns, _ = tiles.sizes(lhs_t, rhs, width_m)
    result = nl.ndarray((rows, columns), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    for n in range(0, columns, tiles.N):
        right = tiles.load_panel(rhs, n, tiles.N)
        for m0 in range(0, rows, width_m):
            left = tiles.load_panel(lhs_t, m0, width_m)
            for m in range(0, width_m, tiles.M):
                out = tiles.evicted(_summed(left, right, m), result.dtype)
                tiles.store(result, m0 + m, n, out)
    return result


@nki.jit
def two_level(lhs_t, rhs, block_m=4, block_k=8):
    """Blocks of K are summed in PSUM, then added up in SBUF: operands come in short panels."""
    width_m, length_k = block_m * tiles.M, block_k * tiles.K
    rows, columns, depth = tiles.sizes(lhs_t, rhs, width_m, tiles.N, length_k)
    result = nl.ndarray((rows, columns), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    for n in range(0, columns, tiles.N):
        sums = _zeros(rows // tiles.M, tiles.N, result.dtype)
        for k in range(0, depth, length_k):
            right = tiles.load_panel(rhs, n, tiles.N, k, k + length_k)
            for m0 in range(0, rows, width_m):
                left = tiles.load_panel(lhs_t, m0, width_m, k, k + length_k)
                for m in range(0, width_m, tiles.M):
                    _add_product(sums[(m0 + m) // tiles.M], left, right, m)
        for m in range(len(sums)):
            tiles.store(result, m * tiles.M, n, sums[m])
    return result


@nki.jit
def turning(lhs, rhs, block_m=8, block_k=8):
    """As two_level, for lhs as it comes, (M, K): DMA turns its tiles while it fetches them."""
    width_m, length_k = block_m * tiles.M, block_k * tiles.K
    (rows, depth), columns = lhs.shape, rhs.shape[1]
    result = nl.ndarray((rows, columns), dtype=lhs.dtype, buffer=nl.shared_hbm)
    for m0 in range(0, rows, width_m):
        sums = _zeros(block_m, columns, result.dtype)
        for n in range(0, columns, tiles.N):
            for k0 in range(0, depth, length_k):
                left = []
                for k in range(k0, k0 + length_k, tiles.K):
                    tile = nl.ndarray((tiles.K, width_m), dtype=lhs.dtype, buffer=nl.sbuf)
                    piece = lhs[nl.ds(m0, width_m), nl.ds(k, tiles.K)]
                    nisa.dma_transpose(dst=tile, src=piece)
                    left.append(tile)
                right = tiles.load_panel(rhs, n, tiles.N, k0, k0 + length_k)
                for i in range(block_m):
                    _add_product(sums[i][:, nl.ds(n, tiles.N)], left, right, i * tiles.M)
            for i in range(block_m):
                tiles.store(result, m0 + i * tiles.M, n, sums[i][:, nl.ds(n, tiles.N)])
    return result


def _accumulators(count, columns):
    """Rows of tiles in PSUM, (128, columns) each; two of 2048 columns are all of it."""
    totals = []
    for _ in range(count):
        totals.append(nl.ndarray((tiles.M, columns), dtype=nl.float32, buffer=nl.psum))
    return totals


def _zeros(count, columns, dtype):
    """Tiles (128, columns) in SBUF, cleared."""
    cleared = []
    for _ in range(count):
        tile = nl.ndarray((tiles.M, columns), dtype=dtype, buffer=nl.sbuf)
        nisa.memset(dst=tile, value=0.0)
        cleared.append(tile)
    return cleared


def _add_product(place, left, right, m):
    """Adds the sum over k of left[k].T @ right[k], columns from m of left, to a tile in SBUF."""
    part = tiles.evicted(_summed(left, right, m), place.dtype)
    nisa.tensor_tensor(dst=place, data1=place, data2=part, op=nl.add)


def _sum_row(total, left, right, m):
    """Row of tiles m of the product into total, (128, columns) in PSUM, cleared before."""
    nisa.memset(dst=total, value=0.0)
    for n in range(0, total.shape[1], tiles.N):
        place = total[:, nl.ds(n, tiles.N)]
        for k in range(len(left)):
            nisa.nc_matmul(
                dst=place,
                stationary=left[k][:, nl.ds(m, tiles.M)],
                moving=right[k][:, nl.ds(n, tiles.N)],
                accumulate=k > 0,
            )


def _summed(left, right, m):
    """The sum over k of left[k].T @ right[k] for the columns from m of left; (128, 512) in PSUM."""
    total = nl.ndarray((tiles.M, tiles.N), dtype=nl.float32, buffer=nl.psum)
    nisa.memset(dst=total, value=0.0)
    for k in range(len(left)):
        nisa.nc_matmul(
            dst=total, stationary=left[k][:, nl.ds(m, tiles.M)], moving=right[k], accumulate=k > 0
        )
    return total
