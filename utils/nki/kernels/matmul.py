"""A matrix product, five times: the same sums, each time with less waiting for memory.

All take lhs_t (K, M), the left matrix transposed, and rhs (K, N); they return lhs_t.T @ rhs, shape
(M, N), in the dtype of lhs_t. One tile of the result, 128 x 512, is the sum of K / 128 products on
the Tensor Engine. The steps differ in when a tile is fetched from HBM, and how often:

    tiled      for each single product
    hoisted    once for a row of tiles of the result
    blocked    once for a block of rows and columns
    blocked_k  in pieces of K too, so that large blocks fit and every fetch is long
    grouped    blocks of sums that stay in PSUM while K passes by, each tile fetched once per block

The instructions of the first four are those of AWS's guide to kernel optimisation and of its
tutorial on matrix multiplication (tiled, hoisted, blocked free dimensions, fully optimised); those
of `grouped` are a ladder that the program Autocomp found on a Trainium1.
"""

import nki
import nki.isa as nisa
import nki.language as nl

from utils.nki.kernels import tiles


@nki.jit
def tiled(lhs_t, rhs):
    """Two tiles are fetched for every product: the textbook's three loops."""
    rows, columns, depth = tiles.sizes(lhs_t, rhs)
    result = nl.ndarray((rows, columns), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    for m in range(0, rows, tiles.M):
        for n in range(0, columns, tiles.N):
            total = nl.ndarray((tiles.M, tiles.N), dtype=nl.float32, buffer=nl.psum)
            for k in range(0, depth, tiles.K):
                left = tiles.load(lhs_t, k, m, tiles.M)
                right = tiles.load(rhs, k, n, tiles.N)
                tiles.multiply(total, left, right)
            tiles.store(result, m, n, tiles.evicted(total, result.dtype))
    return result


@nki.jit
def hoisted(lhs_t, rhs):
    """The tiles of lhs_t are fetched once for a whole row of the result."""
    rows, columns, _ = tiles.sizes(lhs_t, rhs)
    result = nl.ndarray((rows, columns), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    for m in range(0, rows, tiles.M):
        left = tiles.load_panel(lhs_t, m, tiles.M)
        for n in range(0, columns, tiles.N):
            right = tiles.load_panel(rhs, n, tiles.N)
            total = tiles.product(left, right)
            tiles.store(result, m, n, tiles.evicted(total, result.dtype))
    return result


@nki.jit
def blocked(lhs_t, rhs, block_m=2, block_n=2, keep=True):
    """What is fetched serves block_m x block_n tiles of the result.

    With keep=False the columns of rhs come anew for each row of a block, which is what the
    compiler makes of this kernel where they do not fit into SBUF together.
    """
    rows, columns, _ = tiles.sizes(lhs_t, rhs, block_m * tiles.M, block_n * tiles.N)
    result = nl.ndarray((rows, columns), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    for m0 in range(0, rows, block_m * tiles.M):
        lefts = []
        for i in range(block_m):
            lefts.append(tiles.load_panel(lhs_t, m0 + i * tiles.M, tiles.M))
        for n0 in range(0, columns, block_n * tiles.N):
            rights = []
            for j in range(block_n * keep):
                rights.append(tiles.load_panel(rhs, n0 + j * tiles.N, tiles.N))
            for i in range(block_m):
                for j in range(block_n):
                    n = n0 + j * tiles.N
                    right = rights[j] if keep else tiles.load_panel(rhs, n, tiles.N)
                    total = tiles.product(lefts[i], right)
                    tiles.store(result, m0 + i * tiles.M, n, tiles.evicted(total, result.dtype))
    return result


@nki.jit
def blocked_k(lhs_t, rhs, block_m=16, block_n=2, block_k=8):
    """All columns of a block stay in SBUF as sums, while K comes in blocks of long rows."""
    width_m, width_n, length_k = block_m * tiles.M, block_n * tiles.N, block_k * tiles.K
    rows, columns, depth = tiles.sizes(lhs_t, rhs, width_m, width_n, length_k)
    result = nl.ndarray((rows, columns), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    for n0 in range(0, columns, width_n):
        sums = []
        for _ in range(rows // tiles.M * block_n):
            tile = nl.ndarray((tiles.M, tiles.N), dtype=result.dtype, buffer=nl.sbuf)
            nisa.memset(dst=tile, value=0.0)
            sums.append(tile)
        for k0 in range(0, depth, length_k):
            right = tiles.load_panel(rhs, n0, width_n, k0, k0 + length_k)
            for m0 in range(0, rows, width_m):
                left = tiles.load_panel(lhs_t, m0, width_m, k0, k0 + length_k)
                for j in range(block_n):
                    for i in range(block_m):
                        total = tiles.product(left, right, i * tiles.M, j * tiles.N)
                        tile = sums[(m0 // tiles.M + i) * block_n + j]
                        nisa.tensor_tensor(dst=tile, data1=tile, data2=total, op=nl.add)
        for m in range(rows // tiles.M):
            row = nl.ndarray((tiles.M, width_n), dtype=result.dtype, buffer=nl.sbuf)
            for j in range(block_n):
                place = row[:, nl.ds(j * tiles.N, tiles.N)]
                nisa.tensor_copy(dst=place, src=sums[m * block_n + j])
            tiles.store(result, m * tiles.M, n0, row)
    return result


@nki.jit
def grouped(lhs_t, rhs, group_m=4, group_n=2, load_m=4, load_n=2):
    """group_m x group_n sums in PSUM at once; a fetch brings load_m or load_n tiles side by side.

    PSUM has 8 banks, one for each sum of 128 x 512, so group_m * group_n <= 8.
    """
    width_m, width_n = group_m * tiles.M, group_n * tiles.N
    rows, columns, depth = tiles.sizes(lhs_t, rhs, width_m, width_n)
    result = nl.ndarray((rows, columns), dtype=lhs_t.dtype, buffer=nl.shared_hbm)
    for m0 in range(0, rows, width_m):
        for n0 in range(0, columns, width_n):
            totals = []
            for _ in range(group_m * group_n):
                totals.append(nl.ndarray((tiles.M, tiles.N), dtype=nl.float32, buffer=nl.psum))
            for k in range(0, depth, tiles.K):
                rights = []
                for j in range(0, group_n, load_n):
                    rights.append(tiles.load(rhs, k, n0 + j * tiles.N, load_n * tiles.N))
                for i in range(group_m):
                    if i % load_m == 0:
                        left = tiles.load(lhs_t, k, m0 + i * tiles.M, load_m * tiles.M)
                    for j in range(group_n):
                        m, n = i % load_m * tiles.M, j % load_n * tiles.N
                        total = totals[i * group_n + j]
                        tiles.multiply(total, left, rights[j // load_n], m, n)
            for i in range(group_m):
                for j in range(group_n):
                    tile = tiles.evicted(totals[i * group_n + j], result.dtype)
                    tiles.store(result, m0 + i * tiles.M, n0 + j * tiles.N, tile)
    return result
