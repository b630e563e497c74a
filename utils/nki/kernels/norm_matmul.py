"""rmsnorm(lhs) @ rhs in one pass over lhs: the sum that it is divided by grows on the way.

A row of lhs has to be divided by the root of the mean of its squares, which is known only at its
end. Here K comes in blocks, the result so far is rescaled whenever the root changes, and lhs is
read once. The instructions are those of a kernel of awslabs/nki-autotune on a Trainium2.
"""

import nki
import nki.isa as nisa
import nki.language as nl

from utils.nki.kernels import tiles

EPSILON = 1e-6


@nki.jit
def rmsnorm_matmul(lhs, rhs, block_m=8, block_k=4):
    """lhs (M, K) and rhs (K, N) give rmsnorm(lhs) @ rhs, shape (M, N), in the dtype of lhs."""
    (rows, depth), columns = lhs.shape, rhs.shape[1]
    result = nl.ndarray((rows, columns), dtype=lhs.dtype, buffer=nl.shared_hbm)
    length_k = block_k * tiles.K
    for m0 in range(0, rows, block_m * tiles.M):
        squares = _columns(block_m, 0.0)
        # A root of infinity says that nothing was summed before: the first rescaling is by zero.
        old = _columns(block_m, float("inf"))
        outs = []
        for _ in range(block_m):
            out = nl.ndarray((tiles.M, columns), dtype=result.dtype, buffer=nl.sbuf)
            nisa.memset(dst=out, value=0.0)
            outs.append(out)
        for k0 in range(0, depth, length_k):
            left, new, scale = [], [], []
            for i in range(block_m):
                left.append(tiles.load(lhs, m0 + i * tiles.M, k0, length_k))
            for i in range(block_m):
                _add_squares(squares[i], left[i])
            for i in range(block_m):
                new.append(_inverse_root(squares[i], depth))
            for i in range(block_m):
                scale.append(_quotient(new[i], old[i]))
            for i in range(block_m):
                nisa.tensor_scalar(dst=left[i], data=left[i], op0=nl.multiply, operand0=new[i])
            turned = _turned(left, block_k)
            for n in range(0, columns, tiles.N):
                right = tiles.load_panel(rhs, n, tiles.N, k0, k0 + length_k)
                for i in range(block_m):
                    total = nl.ndarray((tiles.M, tiles.N), dtype=nl.float32, buffer=nl.psum)
                    nisa.memset(dst=total, value=0.0)
                    for k in range(block_k):
                        column = turned[k][:, nl.ds(i * tiles.M, tiles.M)]
                        nisa.nc_matmul(
                            dst=total, stationary=column, moving=right[k], accumulate=k > 0
                        )
                    place = outs[i][:, nl.ds(n, tiles.N)]
                    nisa.scalar_tensor_tensor(
                        dst=place,
                        data=place,
                        op0=nl.multiply,
                        operand0=scale[i],
                        op1=nl.add,
                        operand1=total,
                    )
            old = new
        for i in range(block_m):
            tiles.store(result, m0 + i * tiles.M, 0, outs[i])
    return result


def _columns(count, value):
    """A list of columns (128, 1) of FP32 in SBUF, filled."""
    columns = []
    for _ in range(count):
        column = nl.ndarray((tiles.M, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=column, value=value)
        columns.append(column)
    return columns


def _column():
    return nl.ndarray((tiles.M, 1), dtype=nl.float32, buffer=nl.sbuf)


def _add_squares(squares, left):
    """squares (128, 1) plus the sum of squares of each row of left."""
    unused = nl.ndarray(left.shape, dtype=nl.float32, buffer=nl.sbuf)
    sums = _column()
    nisa.activation_reduce(dst=unused, op=nl.square, data=left, reduce_op=nl.add, reduce_res=sums)
    nisa.tensor_tensor(dst=squares, data1=squares, data2=sums, op=nl.add)


def _inverse_root(squares, depth):
    """1 / sqrt(squares / depth + epsilon), (128, 1)."""
    root, share, epsilon = _column(), _column(), _column()
    nisa.memset(dst=share, value=1.0 / depth)
    nisa.memset(dst=epsilon, value=EPSILON)
    nisa.activation(dst=root, op=nl.rsqrt, data=squares, scale=share, bias=epsilon)
    return root


def _quotient(new, old):
    """new / old, (128, 1)."""
    inverse, quotient = _column(), _column()
    nisa.reciprocal(dst=inverse, data=old)
    nisa.tensor_tensor(dst=quotient, data1=new, data2=inverse, op=nl.multiply)
    return quotient


def _turned(left, block_k):
    """Tiles (128 of M, K) turned by DMA into block_k tiles (128 of K, M)."""
    turned = []
    for k in range(block_k):
        tile = nl.ndarray((tiles.K, len(left) * tiles.M), dtype=left[0].dtype, buffer=nl.sbuf)
        for i in range(len(left)):
            place = tile[:, nl.ds(i * tiles.M, tiles.M)]
            nisa.dma_transpose(dst=place, src=left[i][:, nl.ds(k * tiles.K, tiles.K)])
        turned.append(tile)
    return turned
