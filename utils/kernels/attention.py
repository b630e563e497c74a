"""Attention of one head on chip: the scores never leave it, however long the sequence.

q and k are (d, n), one column for each position, with d <= 128; v is (n, d). The result is
softmax(scale q.T k) v, (n, d). Rows of the scores, one for each query, lie on the partitions, so
that their maximum and sum are reductions along the free axis; the second product needs the keys
there, so every 128 x 128 tile of probabilities is transposed.
"""

import nki
import nki.isa as nisa
import nki.language as nl

from utils.kernels.onchip import evict, load, tile

ROWS = nl.tile_size.pmax
WIDE = nl.tile_size.psum_fmax
HIDDEN = -30000.0


@nki.jit
def flash_attention(q, k, v, scale=None, causal=False, block=4 * WIDE):
    """The keys in blocks, with a running maximum and sum: memory does not grow with the sequence.

    causal: a query sees the keys up to its own position. Blocks of the future are not computed;
    on the diagonal, GpSimd overwrites the scores of the future.
    """
    depth, size = q.shape
    block = min(block, size)
    assert size % block == 0 and block % WIDE == 0, "n must be a multiple of the block, and of 512"
    scale = scale or depth**-0.5
    output = nl.ndarray((size, depth), dtype=q.dtype, buffer=nl.shared_hbm)
    keys = load(k)
    values = tile((ROWS, size // ROWS, depth), v.dtype)
    for row in range(0, size, ROWS):
        nisa.dma_copy(dst=values[:, row // ROWS, :], src=v[nl.ds(row, ROWS), :])

    for row in range(0, size, ROWS):
        queries = load(q[:, nl.ds(row, ROWS)])
        shift, total, result = tile((ROWS, 1)), tile((ROWS, 1)), tile((ROWS, depth))
        for first, width in pieces(row, size, block, causal):
            scores = tile((ROWS, width), buffer=nl.psum)
            for start in range(0, width, WIDE):
                nisa.nc_matmul(
                    dst=scores[:, nl.ds(start, WIDE)], stationary=queries,
                    moving=keys[:, nl.ds(first + start, WIDE)],
                )  # fmt: skip
            if causal and first + width > row:
                scores = without_future(scores, row - first)
            peak, sums = tile((ROWS, 1)), tile((ROWS, 1))
            nisa.tensor_reduce(dst=peak, op=nl.maximum, data=scores, axis=1)
            power = tile((ROWS, width), v.dtype)
            before = tile((ROWS, 1))
            if first == 0:
                nisa.tensor_scalar(dst=shift, data=peak, op0=nl.multiply, operand0=-scale)
            else:
                nisa.tensor_copy(dst=before, src=shift)
                nisa.tensor_scalar(
                    dst=shift, data=peak, op0=nl.multiply, operand0=-scale,
                    op1=nl.minimum, operand1=before,
                )  # fmt: skip
            nisa.activation(
                dst=power, op=nl.exp, data=scores, bias=shift, scale=scale, reduce_op=nl.add,
                reduce_res=sums, reduce_cmd=nisa.reduce_cmd.reset_reduce,
            )  # fmt: skip
            product = weighted(power, values[:, nl.ds(first // ROWS, width // ROWS), :])
            if first == 0:
                nisa.tensor_copy(dst=total, src=sums)
                nisa.tensor_copy(dst=result, src=product)
            else:
                fade = tile((ROWS, 1))
                nisa.activation(dst=fade, op=nl.exp, data=before, bias=shift, scale=-1.0)
                for kept, new in ((total, sums), (result, product)):
                    nisa.scalar_tensor_tensor(
                        dst=kept, data=kept, op0=nl.multiply, operand0=fade,
                        op1=nl.add, operand1=new,
                    )  # fmt: skip
        inverse, finished = tile((ROWS, 1)), tile((ROWS, depth), output.dtype)
        nisa.reciprocal(dst=inverse, data=total)
        nisa.tensor_scalar(dst=finished, data=result, op0=nl.multiply, operand0=inverse)
        nisa.dma_copy(dst=output[nl.ds(row, ROWS), :], src=finished)
    return output


def pieces(row, size, block, causal):
    """First key and number of keys of every block that the queries from `row` on see."""
    end = row // WIDE * WIDE if causal else size
    found = []
    for first in range(0, end, block):
        found.append((first, min(block, end - first)))
    if causal:
        found.append((end, WIDE))
    return found


def without_future(scores, ahead):
    """Scores (128, width) in SBUF, hidden where the key lies after the query.

    ahead: by how many positions the first query is ahead of the first key.
    """
    width = scores.shape[1]
    seen = tile(scores.shape)
    nisa.affine_select(
        dst=seen, pattern=[[-1, width]], offset=ahead, channel_multiplier=1,
        on_true_tile=evict(scores, nl.float32), on_false_value=HIDDEN, cmp_op=nl.greater_equal,
    )  # fmt: skip
    return seen


def weighted(power, values):
    """power @ values, (128, d) in PSUM: power (128, width), values (128, width / 128, d).

    Four transposed tiles fill one PSUM bank and leave it together, by turns through the Vector and
    the Scalar Engine.
    """
    product = tile((ROWS, values.shape[2]), buffer=nl.psum)
    for start in range(0, power.shape[1], WIDE):
        turned = tile((ROWS, WIDE), power.dtype, nl.psum)
        for column in range(0, WIDE, ROWS):
            nisa.nc_transpose(
                dst=turned[:, nl.ds(column, ROWS)], data=power[:, nl.ds(start + column, ROWS)]
            )
        engine = nisa.engine.scalar if start // WIDE % 4 == 3 else nisa.engine.vector
        moved = evict(turned, power.dtype, engine)
        for column in range(0, WIDE, ROWS):
            nisa.nc_matmul(
                dst=product, stationary=moved[:, nl.ds(column, ROWS)],
                moving=values[:, (start + column) // ROWS, :],
            )  # fmt: skip
    return product
