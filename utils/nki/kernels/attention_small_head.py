"""Attention as Stable Diffusion uses it, heads narrower than the Tensor Engine, in seven steps.

All take q, k, v (n, d), d <= 128, FP32, and return softmax(q k.T / 8) v, (n, d). Products are of
BF16. A row of 128 queries at a time: all its scores are copied to SBUF, in pieces of 128 keys, and
one instruction takes their exponential. `LADDER` lists the options of the steps that were measured
on a Trainium1 (ucb-bar/autocomp, examples/trn-tutorial/5_sd_attention_trace.py); those of steps 1
and 2, and of 5 and 6, differ in nothing but words.
"""

import nki
import nki.isa as nisa
import nki.language as nl

from utils.nki.kernels.onchip import evict, load, tile

ROWS = nl.tile_size.pmax
SCALE = 0.125
LOW = nl.bfloat16


def turned(matrix, scale):
    """scale times the transpose of a matrix (n, d) of HBM, BF16, (d, n) in SBUF."""
    size, depth = matrix.shape
    result = tile((depth, size), LOW)
    for row in range(0, size, ROWS):
        narrow = evict(load(matrix[nl.ds(row, ROWS), :]), LOW)
        psum = tile((depth, ROWS), LOW, nl.psum)
        nisa.nc_transpose(dst=psum, data=narrow)
        nisa.tensor_scalar(
            dst=result[:, nl.ds(row, ROWS)], data=psum, op0=nl.multiply, operand0=scale
        )
    return result


@nki.jit
def attention(q, k, v, fused_sum=True, round_later=False, narrow_scores=True, by_query=True):
    """fused_sum: the exponential's instruction adds the rows up as well.

    round_later: the exponentials are FP32 first, BF16 after a copy. narrow_scores: the copy of the
    scores is BF16, not FP32. by_query: the result comes with queries on the partitions, not with
    its columns there, from where single elements go to HBM.
    """
    size, depth = q.shape
    output = nl.ndarray(q.shape, dtype=q.dtype, buffer=nl.shared_hbm)
    queries, keys = turned(q, SCALE), turned(k, 1.0)
    values = tile((ROWS, size // ROWS, depth), LOW)
    for row in range(0, size, ROWS):
        nisa.dma_copy(dst=values[:, row // ROWS, :], src=v[nl.ds(row, ROWS), :])

    for row in range(0, size, ROWS):
        scores = tile((ROWS, size), LOW if narrow_scores else nl.float32)
        shifts, shift, total = tile((ROWS, size // ROWS)), tile((ROWS, 1)), tile((ROWS, 1))
        for column in range(0, size, ROWS):
            here = nl.ds(column, ROWS)
            psum = tile((ROWS, ROWS), buffer=nl.psum)
            nisa.nc_matmul(dst=psum, stationary=queries[:, nl.ds(row, ROWS)], moving=keys[:, here])
            nisa.activation(dst=scores[:, here], op=nl.copy, data=psum)
            nisa.tensor_reduce(
                dst=shifts[:, nl.ds(column // ROWS, 1)], op=nl.maximum, data=scores[:, here],
                axis=1, negate=True,
            )  # fmt: skip
        nisa.tensor_reduce(dst=shift, op=nl.minimum, data=shifts, axis=1)
        power = tile((ROWS, size), nl.float32 if round_later else LOW)
        if fused_sum:
            nisa.activation(
                dst=power, op=nl.exp, data=scores, bias=shift, reduce_op=nl.add, reduce_res=total,
                reduce_cmd=nisa.reduce_cmd.reset_reduce,
            )  # fmt: skip
        else:
            nisa.activation(dst=power, op=nl.exp, data=scores, bias=shift)
            nisa.tensor_reduce(dst=total, op=nl.add, data=power, axis=1)
        weights = evict(power, LOW, nisa.engine.scalar) if round_later else power
        inverse = tile((ROWS, 1))
        nisa.reciprocal(dst=inverse, data=total)
        write(output, row, transposed_pieces(weights), values, inverse, by_query)
    return output


def transposed_pieces(weights):
    """Weights (128, n) as (128, n / 128, 128), every piece of 128 columns transposed."""
    pieces = tile((ROWS, weights.shape[1] // ROWS, ROWS), LOW)
    for index in range(weights.shape[1] // ROWS):
        psum = tile((ROWS, ROWS), LOW, nl.psum)
        nisa.nc_transpose(dst=psum, data=weights[:, nl.ds(index * ROWS, ROWS)])
        if index % 2:
            nisa.activation(dst=pieces[:, index, :], op=nl.copy, data=psum)
        else:
            nisa.tensor_copy(dst=pieces[:, index, :], src=psum)
    return pieces


def write(output, row, pieces, values, inverse, by_query):
    """Rows of the output from `row` on: the weights' pieces times values, divided by the sums."""
    depth = values.shape[2]
    count = pieces.shape[1]
    psum = tile((ROWS, depth) if by_query else (depth, ROWS), buffer=nl.psum)
    for index in range(count):
        weight, value = pieces[:, index, :], values[:, index, :]
        if by_query:
            nisa.nc_matmul(dst=psum, stationary=weight, moving=value)
        else:
            nisa.nc_matmul(dst=psum, stationary=value, moving=weight)
    here = output[nl.ds(row, ROWS), :]
    if by_query:
        result = tile((ROWS, depth), output.dtype)
        nisa.tensor_scalar(dst=result, data=psum, op0=nl.multiply, operand0=inverse)
        nisa.dma_copy(dst=here, src=result)
        return
    columns, factors = tile((ROWS, depth)), tile((depth, ROWS), buffer=nl.psum)
    nisa.tensor_copy(dst=columns, src=inverse.broadcast(1, depth))
    nisa.nc_transpose(dst=factors, data=columns)
    result = tile((depth, ROWS), output.dtype)
    nisa.tensor_tensor(dst=result, data1=evict(psum, nl.float32), data2=factors, op=nl.multiply)
    nisa.dma_copy(dst=here.permute((1, 0)), src=result)


# The published ladder: the options of every step, in order.
LADDER: tuple[dict[str, bool], ...] = (
    {"fused_sum": False, "round_later": True, "narrow_scores": False, "by_query": False},
    {"narrow_scores": False, "by_query": False},
    {"narrow_scores": False, "by_query": False},
    {"round_later": True, "narrow_scores": False, "by_query": False},
    {"by_query": False},
    {},
    {},
)
