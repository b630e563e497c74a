"""A matrix product in FP8: lhs is scaled and rounded on the way, rhs was before.

The Tensor Engine takes two rows of FP8 at once (`double_row`), so that a product sums over 256
elements of K in the time of 128. What that costs is the quantisation of lhs: one scale for each row
of a block, found by the Vector Engine. The structure is that of a kernel of AWS's samples, whose
test sets a limit to its time on a Trainium2.
"""

import nki
import nki.isa as nisa
import nki.language as nl

from utils.nki.kernels import tiles

LARGEST = 240.0  # of float8_e4m3 on the chip
PAIR = 2


@nki.jit
def double_row(lhs, rhs_pairs, rhs_scale, block_m=2, block_k=16):
    """lhs (M, K) times a quantised rhs (K, N), shape (M, N), in the dtype of lhs.

    rhs_pairs: (K / 2, 2 N) in float8_e4m3; each two tiles of 128 x 512 that follow along K stand
    side by side. rhs_scale: (128, N), the scale of each column, the same in every row.
    """
    (rows, depth), columns = lhs.shape, rhs_scale.shape[1]
    length_k = block_k * tiles.K
    result = nl.ndarray((rows, columns), dtype=lhs.dtype, buffer=nl.shared_hbm)
    scale = nl.ndarray(rhs_scale.shape, dtype=rhs_scale.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=scale, src=rhs_scale)
    for m0 in range(0, rows, block_m * tiles.M):
        sums = []
        for _ in range(block_m):
            tile = nl.ndarray((tiles.M, columns), dtype=nl.float32, buffer=nl.sbuf)
            nisa.memset(dst=tile, value=0.0)
            sums.append(tile)
        for k0 in range(0, depth, length_k):
            right = []
            for k in range(k0 // PAIR, (k0 + length_k) // PAIR, tiles.K):
                right.append(tiles.load(rhs_pairs, k, 0, PAIR * columns))
            for i in range(block_m):
                left, steps = _quantised(tiles.load(lhs, m0 + i * tiles.M, k0, length_k))
                left = _turned(left)
                for n in range(0, columns, tiles.N):
                    total = _pair_product(left, right, n)
                    place = sums[i][:, nl.ds(n, tiles.N)]
                    nisa.scalar_tensor_tensor(
                        dst=place,
                        data=total,
                        op0=nl.multiply,
                        operand0=steps,
                        op1=nl.add,
                        operand1=place,
                    )
        for i in range(block_m):
            out = nl.ndarray((tiles.M, columns), dtype=result.dtype, buffer=nl.sbuf)
            nisa.tensor_tensor(dst=out, data1=sums[i], data2=scale, op=nl.multiply)
            tiles.store(result, m0 + i * tiles.M, 0, out)
    return result


def _quantised(tile):
    """A tile (128, K) in FP8, and the step of each row, (128, 1): tile is about step * FP8."""
    size = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.sbuf)
    # One of the tile's own numbers, so its data type holds it exactly.
    largest = nl.ndarray((tiles.M, 1), dtype=tile.dtype, buffer=nl.sbuf)
    step = nl.ndarray((tiles.M, 1), dtype=nl.float32, buffer=nl.sbuf)
    inverse = nl.ndarray((tiles.M, 1), dtype=nl.float32, buffer=nl.sbuf)
    small = nl.ndarray(tile.shape, dtype=nl.float8_e4m3, buffer=nl.sbuf)
    nisa.activation(dst=size, op=nl.abs, data=tile)
    nisa.tensor_reduce(dst=largest, op=nl.maximum, data=size, axis=1)
    nisa.tensor_scalar(dst=step, data=largest, op0=nl.multiply, operand0=1 / LARGEST)
    nisa.reciprocal(dst=inverse, data=step)
    nisa.tensor_scalar(dst=small, data=tile, op0=nl.multiply, operand0=inverse)
    return small, step


def _turned(tile):
    """Pairs of transposed tiles, (128 of K, 2, 128 of M) each, of a tile (128 of M, K)."""
    pairs = []
    for k in range(0, tile.shape[1], PAIR * tiles.K):
        pair = nl.ndarray((tiles.K, PAIR, tiles.M), dtype=tile.dtype, buffer=nl.sbuf)
        for j in range(PAIR):
            turned = nl.ndarray((tiles.K, tiles.M), dtype=tile.dtype, buffer=nl.psum)
            nisa.nc_transpose(dst=turned, data=tile[:, nl.ds(k + j * tiles.K, tiles.K)])
            nisa.tensor_copy(dst=pair[:, j, :], src=turned)
        pairs.append(pair)
    return pairs


def _pair_product(left, right, n):
    """The sum over pairs of tiles of K, (128, 512) in PSUM, for the columns from n on."""
    total = nl.ndarray((tiles.M, tiles.N), dtype=nl.float32, buffer=nl.psum)
    for k in range(len(left)):
        moving = right[k][:, nl.ds(PAIR * n, PAIR * tiles.N)].reshape((tiles.K, PAIR, tiles.N))
        nisa.nc_matmul(
            dst=total, stationary=left[k], moving=moving, perf_mode=nisa.matmul_perf_mode.double_row
        )
    return total
