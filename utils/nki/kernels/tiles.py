"""What every matrix kernel does with tiles: bring one in, add products up, take one out.

A tile of an operand has the contraction on its 128 partitions, because the Tensor Engine sums
along them; a tile of the result has rows of the result there. Offsets are in elements.
"""

import nki.isa as nisa
import nki.language as nl

K = nl.tile_size.pmax
M = nl.tile_size.gemm_stationary_fmax
N = nl.tile_size.gemm_moving_fmax


def load(matrix, row, column, width):
    """The tile (128, width) of a matrix in HBM that begins at row and column, in SBUF."""
    tile = nl.ndarray((K, width), dtype=matrix.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=matrix[nl.ds(row, K), nl.ds(column, width)])
    return tile


def load_panel(matrix, column, width, first=0, last=None):
    """Rows first to last (default: all) of the columns from `column` on: a list of tiles."""
    tiles = []
    for row in range(first, last or matrix.shape[0], K):
        tiles.append(load(matrix, row, column, width))
    return tiles


def product(left, right, m=0, n=0):
    """The sum over k of left[k].T @ right[k], a tile (128, 512) in PSUM.

    m and n: the columns of the operands' tiles where those of this product begin.
    """
    total = nl.ndarray((M, N), dtype=nl.float32, buffer=nl.psum)
    for k in range(len(left)):
        multiply(total, left[k], right[k], m, n)
    return total


def multiply(total, left, right, m=0, n=0):
    """Adds left.T @ right to a tile in PSUM; m and n as for `product`."""
    nisa.nc_matmul(dst=total, stationary=left[:, nl.ds(m, M)], moving=right[:, nl.ds(n, N)])


def evicted(tile, dtype):
    """A copy in SBUF of a tile in PSUM, which DMA cannot reach."""
    copy = nl.ndarray(tile.shape, dtype=dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=copy, src=tile)
    return copy


def store(result, row, column, tile):
    """Writes a tile from SBUF to its place in a matrix in HBM."""
    rows, columns = tile.shape
    nisa.dma_copy(dst=result[nl.ds(row, rows), nl.ds(column, columns)], src=tile)


def sizes(lhs_t, rhs, m=M, n=N, k=K):
    """(M, N, K) of lhs_t (K, M) and rhs (K, N), which must be multiples of m, n and k."""
    (depth, rows), (rhs_depth, columns) = lhs_t.shape, rhs.shape
    assert depth == rhs_depth, f"lhs_t has {depth} rows and rhs {rhs_depth}: both are K"
    for size, step in ((rows, m), (columns, n), (depth, k)):
        assert size % step == 0, f"{size} is no multiple of {step}: pad, or take smaller blocks"
    return rows, columns, depth
