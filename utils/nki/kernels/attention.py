"""Attention of one head on chip: the scores never leave it, however long the sequence.

q and k are (d, n), one column for each position, with d <= 128; v is (n, d). The result is
softmax(scale q.T k) v, (n, d). Rows of the scores, one for each query, lie on the partitions, so
that their maximum is a reduction along the free axis; the second product needs the keys there, so
every 128 x 128 tile of probabilities is transposed. Their sum comes out of the second product too,
as one more column of v, which is all ones.
"""

import nki
import nki.isa as nisa
import nki.language as nl

from utils.nki.kernels.onchip import evict, load, tile

ROWS = nl.tile_size.pmax
WIDE = nl.tile_size.psum_fmax
HIDDEN = -30000.0


@nki.jit
def flash_attention(q, k, v, scale=None, causal=False, block=WIDE):
    """The keys in blocks, with a running maximum and sum: memory does not grow with the sequence.

    causal: a query sees the keys up to its own position. Blocks of the future are not computed; on
    the diagonal, GpSimd overwrites the scores of the future. n is a multiple of the block, and the
    block of 512.
    """
    depth, size = q.shape
    assert size % block == 0 and block % WIDE == 0, f"{size} positions in blocks of {block}"
    scale = scale or depth**-0.5
    output = nl.ndarray((size, depth), dtype=q.dtype, buffer=nl.shared_hbm)
    keys, values = load(k), with_ones(v)
    for row in range(0, size, ROWS):
        queries, state = load(q[:, nl.ds(row, ROWS)]), ()
        for first, width in pieces(row, size, block, causal):
            scores = scores_of(queries, keys, first, width)
            if causal and first + width > row:
                scores = without_future(scores, row - first)
            state = updated(state, scores, values, first, scale)
        result = state[1]
        inverse, finished = tile((ROWS, 1)), tile((ROWS, depth), output.dtype)
        nisa.reciprocal(dst=inverse, data=result[:, nl.ds(depth, 1)])
        nisa.tensor_scalar(dst=finished, data=result[:, 0:depth], op0=nl.multiply, operand0=inverse)
        nisa.dma_copy(dst=output[nl.ds(row, ROWS), :], src=finished)
    return output


def with_ones(v):
    """v (n, d) in SBUF as (128, n / 128, d + 1): 128 rows in each slice, and a column of ones."""
    size, depth = v.shape
    values = tile((ROWS, size // ROWS, depth + 1), v.dtype)
    nisa.memset(dst=values[:, :, nl.ds(depth, 1)], value=1.0)
    for row in range(0, size, ROWS):
        nisa.dma_copy(dst=values[:, row // ROWS, 0:depth], src=v[nl.ds(row, ROWS), :])
    return values


def pieces(row, size, block, causal):
    """First key and number of keys of every block that the 128 queries from `row` on see."""
    end = row // WIDE * WIDE if causal else size
    results = []
    for first in range(0, end, block):
        results.append((first, min(block, end - first)))
    if causal:
        results.append((end, WIDE))
    return results


def scores_of(queries, keys, first, width):
    """The scores of 128 queries and `width` keys from `first` on, (128, width) in PSUM."""
    scores = tile((ROWS, width), buffer=nl.psum)
    for start in range(0, width, WIDE):
        nisa.nc_matmul(
            dst=scores[:, nl.ds(start, WIDE)], stationary=queries,
            moving=keys[:, nl.ds(first + start, WIDE)],
        )  # fmt: skip
    return scores


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


def updated(state, scores, values, first, scale):
    """Shift (128, 1) and result (128, d + 1) after one more block of scores, of keys from `first`.

    The result is the sum of exp(scale score + shift) times the rows of values; where the shift
    falls, what was summed before fades with it.
    """
    peak, shift = tile((ROWS, 1)), tile((ROWS, 1))
    nisa.tensor_reduce(dst=peak, op=nl.maximum, data=scores, axis=1)
    if state:
        nisa.tensor_scalar(
            dst=shift, data=peak, op0=nl.multiply, operand0=-scale,
            op1=nl.minimum, operand1=state[0],
        )  # fmt: skip
    else:
        nisa.tensor_scalar(dst=shift, data=peak, op0=nl.multiply, operand0=-scale)
    power = tile(scores.shape, values.dtype)
    nisa.activation(dst=power, op=nl.exp, data=scores, bias=shift, scale=scale)
    product, result = weighted(power, values, first), tile((ROWS, values.shape[2]))
    if state:
        fade = tile((ROWS, 1))
        nisa.activation(dst=fade, op=nl.exp, data=state[0], bias=shift, scale=-1.0)
        nisa.scalar_tensor_tensor(
            dst=result, data=state[1], op0=nl.multiply, operand0=fade, op1=nl.add, operand1=product
        )
    else:
        nisa.tensor_copy(dst=result, src=product)
    return shift, result


def weighted(power, values, first):
    """power (128, width) times the rows of values from `first` on, (128, d + 1) in PSUM.

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
        by_scalar = (first + start) // WIDE % 2
        engine = nisa.engine.scalar if by_scalar else nisa.engine.vector
        moved = evict(turned, power.dtype, engine)
        for column in range(0, WIDE, ROWS):
            nisa.nc_matmul(
                dst=product, stationary=moved[:, nl.ds(column, ROWS)],
                moving=values[:, (first + start + column) // ROWS, :],
            )  # fmt: skip
    return product
