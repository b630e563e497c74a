"""Self-attention of one head in eleven steps, from a round trip through HBM to one pass on chip.

All take q, k, v (128, n), one column for each position, and return softmax(q.T k) v.T, (n, 128), in
the data type of q, without the usual scale. `LADDER` lists a kernel and its options for every step
of a search that was measured on a Trainium1 (ucb-bar/autocomp,
examples/trn-tutorial/4_attention_trace.py):

     0, 1  `through_hbm`      every stage of the softmax is written to HBM; the sum fused into exp
     2     `three_passes`     all stays on chip, but the scores, which do not fit into PSUM
     3     `three_passes`     the scores are computed again in each pass: maximum, sum, result
     4..7  `three_passes`     probabilities in BF16, the sum fused into exp, v in BF16
     8     `one_row`          v is transposed once, the scores of a row of tiles are kept
     9, 10 `one_row`          they are computed twice; the shift is taken from the first row only

What the sources leave to the compiler is read from what was measured. The scores of a row of tiles
are used where they are made in steps 0 and 1. The products of q and k, which are FP32, go through
the Tensor Engine four times in steps 0 and 1, and once from step 2 on, where they were marked as
transposes: their results lose digits there. Of two tiles that leave PSUM, one takes the Vector, one
the Scalar Engine, which takes both in step 8, where the Vector Engine copies the scores. In step 7
v becomes BF16 once. In step 10 all rows share the shift of the first 128, which cancels in exact
arithmetic.
"""

import nki
import nki.isa as nisa
import nki.language as nl

from utils.nki.kernels.onchip import evict, load, tile, transpose, zeros

ROWS = nl.tile_size.pmax
WIDE = nl.tile_size.gemm_moving_fmax


def scores_of(queries, keys):
    """queries.T @ keys for 128 queries and 512 keys, (128, 512) in PSUM."""
    scores = tile((ROWS, keys.shape[1]), buffer=nl.psum)
    nisa.nc_matmul(dst=scores, stationary=queries, moving=keys)
    return scores


def reduced(data, op, negate=False):
    """The rows of data reduced to a column, (128, 1)."""
    column = tile((ROWS, 1))
    nisa.tensor_reduce(dst=column, op=op, data=data, axis=1, negate=negate)
    return column


def inverse(column):
    """A new column with 1 / x."""
    inverted = tile(column.shape)
    nisa.reciprocal(dst=inverted, data=column)
    return inverted


def once(matrix):
    """The FP32 tile as one that the Tensor Engine takes in one pass."""
    return matrix.view(nl.tfloat32) if matrix.dtype == nl.float32 else matrix


@nki.jit
def through_hbm(q, k, v, fused_sum=False):
    """Steps 0 and 1: each stage is a loop of its own, and hands its matrix on through HBM."""
    size = q.shape[1]
    output = nl.ndarray((size, ROWS), dtype=q.dtype, buffer=nl.shared_hbm)
    shifted = nl.ndarray((size, size), dtype=nl.float32, buffer=nl.hbm)
    powers = nl.ndarray((size, size), dtype=nl.float32, buffer=nl.hbm)
    weights = nl.ndarray((size, size), dtype=nl.float32, buffer=nl.hbm)
    turned = nl.ndarray((size // ROWS, size // ROWS, ROWS, ROWS), dtype=nl.float32, buffer=nl.hbm)
    values = nl.ndarray((size, ROWS), dtype=nl.float32, buffer=nl.hbm)
    q_all, k_all, v_all = load(q), load(k), load(v)

    for row in range(0, size, ROWS):
        scores = []
        maxima = tile((ROWS, size // WIDE))
        for index in range(size // WIDE):
            part = scores_of(q_all[:, nl.ds(row, ROWS)], k_all[:, nl.ds(index * WIDE, WIDE)])
            nisa.tensor_reduce(dst=maxima[:, nl.ds(index, 1)], op=nl.maximum, data=part, axis=1)
            scores.append(part)
        maximum = reduced(maxima, nl.maximum)
        difference = tile((ROWS, size))
        for index in range(size // WIDE):
            nisa.tensor_scalar(
                dst=difference[:, nl.ds(index * WIDE, WIDE)], data=scores[index],
                op0=nl.subtract, operand0=maximum, engine=nisa.engine.vector,
            )  # fmt: skip
        nisa.dma_copy(dst=shifted[nl.ds(row, ROWS), :], src=difference)

    sums = tile((ROWS, size // ROWS))
    for row in range(0, size, ROWS):
        column = sums[:, nl.ds(row // ROWS, 1)]
        difference, power = load(shifted[nl.ds(row, ROWS), :]), tile((ROWS, size))
        if fused_sum:
            nisa.activation(
                dst=power, op=nl.exp, data=difference, reduce_op=nl.add, reduce_res=column,
                reduce_cmd=nisa.reduce_cmd.reset_reduce,
            )  # fmt: skip
        else:
            nisa.activation(dst=power, op=nl.exp, data=difference)
        nisa.dma_copy(dst=powers[nl.ds(row, ROWS), :], src=power)
    if not fused_sum:
        for row in range(0, size, ROWS):
            column = sums[:, nl.ds(row // ROWS, 1)]
            power = load(powers[nl.ds(row, ROWS), :])
            nisa.tensor_reduce(dst=column, op=nl.add, data=power, axis=1)

    inverses = inverse(sums)
    for row in range(0, size, ROWS):
        power, weight = load(powers[nl.ds(row, ROWS), :]), tile((ROWS, size))
        nisa.tensor_scalar(
            dst=weight, data=power, op0=nl.multiply, operand0=inverses[:, nl.ds(row // ROWS, 1)],
            engine=nisa.engine.vector,
        )  # fmt: skip
        nisa.dma_copy(dst=weights[nl.ds(row, ROWS), :], src=weight)

    for column in range(0, size, ROWS):
        columns = v_all[:, nl.ds(column, ROWS)]
        nisa.dma_copy(dst=values[nl.ds(column, ROWS), :], src=transpose(columns, dtype=nl.float32))
    for row in range(size // ROWS):
        for column in range(size // ROWS):
            weight = load(weights[nl.ds(row * ROWS, ROWS), nl.ds(column * ROWS, ROWS)])
            nisa.dma_copy(dst=turned[column, row], src=transpose(weight))
    for row in range(size // ROWS):
        total = tile((ROWS, ROWS), buffer=nl.psum)
        for column in range(size // ROWS):
            nisa.nc_matmul(
                dst=total, stationary=load(turned[column, row]),
                moving=load(values[nl.ds(column * ROWS, ROWS), :]),
            )  # fmt: skip
        nisa.dma_copy(dst=output[nl.ds(row * ROWS, ROWS), :], src=evict(total, output.dtype))
    return output


@nki.jit
def three_passes(q, k, v, spilled=False, narrow=True, fused_sum=True, narrow_values=False):
    """Steps 2 to 7: maximum, sum and result each pass over the keys, on chip.

    spilled: the scores are kept, in HBM, because PSUM holds only a row of tiles; else each pass
    computes them. narrow: the probabilities are BF16, not FP32; narrow_values: v is from the start.
    """
    size = q.shape[1]
    low = nl.bfloat16 if narrow else nl.float32
    blocks = range(0, size, WIDE)
    output = nl.ndarray((size, ROWS), dtype=q.dtype, buffer=nl.shared_hbm)
    if spilled:
        kept = nl.ndarray((size, size), dtype=nl.float32, buffer=nl.hbm)
    q_all, k_all, v_all = once(load(q)), once(load(k)), load(v)
    if narrow_values:
        v_all = evict(v_all, low)

    def scores_at(row, block):
        if spilled:
            return load(kept[nl.ds(row, ROWS), nl.ds(block, WIDE)])
        return scores_of(q_all[:, nl.ds(row, ROWS)], k_all[:, nl.ds(block, WIDE)])

    if spilled:
        for row in range(0, size, ROWS):
            for block in blocks:
                scores = scores_of(q_all[:, nl.ds(row, ROWS)], k_all[:, nl.ds(block, WIDE)])
                scores = evict(scores, nl.float32)
                nisa.dma_copy(dst=kept[nl.ds(row, ROWS), nl.ds(block, WIDE)], src=scores)

    shifts = tile((ROWS, size // ROWS))
    for row in range(0, size, ROWS):
        shift = tile((ROWS, 1))
        for block in blocks:
            result = reduced(scores_at(row, block), nl.maximum)
            if block == 0:
                nisa.tensor_copy(dst=shift, src=result)
            else:
                nisa.tensor_tensor(dst=shift, data1=shift, data2=result, op=nl.maximum)
        nisa.tensor_scalar(
            dst=shifts[:, nl.ds(row // ROWS, 1)], data=shift, op0=nl.multiply, operand0=-1.0
        )

    sums = zeros((ROWS, size // ROWS))
    for row in range(0, size, ROWS):
        column = nl.ds(row // ROWS, 1)
        for block in blocks:
            scores, power = scores_at(row, block), tile((ROWS, WIDE), low)
            if fused_sum:
                last = block == size - WIDE
                first = nisa.reduce_cmd.reset_reduce if block == 0 else nisa.reduce_cmd.reduce
                nisa.activation(
                    dst=power, op=nl.exp, data=scores, bias=shifts[:, column], reduce_op=nl.add,
                    reduce_res=sums[:, column] if last else None, reduce_cmd=first,
                )  # fmt: skip
            else:
                nisa.activation(dst=power, op=nl.exp, data=scores, bias=shifts[:, column])
                part = reduced(power, nl.add)
                nisa.tensor_tensor(
                    dst=sums[:, column], data1=sums[:, column], data2=part, op=nl.add
                )

    inverses = inverse(sums)
    for row in range(0, size, ROWS):
        column = nl.ds(row // ROWS, 1)
        total = tile((ROWS, ROWS), buffer=nl.psum)
        for block in blocks:
            power, weight = tile((ROWS, WIDE), low), tile((ROWS, WIDE), low)
            nisa.activation(
                dst=power, op=nl.exp, data=scores_at(row, block), bias=shifts[:, column]
            )
            nisa.tensor_scalar(
                dst=weight, data=power, op0=nl.multiply, operand0=inverses[:, column],
                engine=nisa.engine.vector,
            )  # fmt: skip
            for start in range(0, WIDE, ROWS):
                value = v_all[:, nl.ds(block + start, ROWS)]
                nisa.nc_matmul(
                    dst=total, stationary=transpose(weight[:, nl.ds(start, ROWS)]),
                    moving=transpose(value, nisa.engine.scalar, low),
                )  # fmt: skip
        nisa.dma_copy(dst=output[nl.ds(row, ROWS), :], src=evict(total, output.dtype))
    return output


@nki.jit
def one_row(q, k, v, keep_scores=False, one_shift=False):
    """Steps 8 to 10: a row of tiles at a time, v transposed once, divided by the sum at the end.

    keep_scores: the scores of the row stay in SBUF, in BF16; else they are computed twice.
    one_shift: all rows subtract the maxima of the first.
    """
    size, low = q.shape[1], nl.bfloat16
    blocks = range(0, size, WIDE)
    output = nl.ndarray((size, ROWS), dtype=q.dtype, buffer=nl.shared_hbm)
    q_all, k_all = once(load(q)), once(load(k))
    values = tile((ROWS, size // ROWS, ROWS), low)
    for column in range(size // ROWS):
        turned = tile((ROWS, ROWS), v.dtype, nl.psum)
        nisa.nc_transpose(dst=turned, data=load(v[:, nl.ds(column * ROWS, ROWS)]))
        nisa.tensor_copy(dst=values[:, column, :], src=turned)

    for row in range(0, size, ROWS):
        queries = q_all[:, nl.ds(row, ROWS)]
        if keep_scores:
            kept = tile((ROWS, size), low)
        if row == 0 or not one_shift:
            maxima = tile((ROWS, size // WIDE))
            for block in blocks:
                scores = scores_of(queries, k_all[:, nl.ds(block, WIDE)])
                column = maxima[:, nl.ds(block // WIDE, 1)]
                nisa.tensor_reduce(dst=column, op=nl.maximum, data=scores, axis=1)
                if keep_scores:
                    nisa.tensor_copy(dst=kept[:, nl.ds(block, WIDE)], src=scores)
            shift = reduced(maxima, nl.maximum, negate=True)
        sums = zeros((ROWS, size // ROWS))
        total = tile((ROWS, ROWS), buffer=nl.psum)
        for block in blocks:
            if keep_scores:
                scores = kept[:, nl.ds(block, WIDE)]
            else:
                scores = scores_of(queries, k_all[:, nl.ds(block, WIDE)])
            for start in range(0, WIDE, ROWS):
                column = (block + start) // ROWS
                power = tile((ROWS, ROWS), low)
                part = scores[:, nl.ds(start, ROWS)]
                nisa.activation(dst=power, op=nl.exp, data=part, bias=shift)
                nisa.tensor_reduce(dst=sums[:, nl.ds(column, 1)], op=nl.add, data=power, axis=1)
                by_scalar = keep_scores or column % 2
                engine = nisa.engine.scalar if by_scalar else nisa.engine.vector
                nisa.nc_matmul(
                    dst=total, stationary=transpose(power, engine), moving=values[:, column, :]
                )
        result = tile((ROWS, ROWS), output.dtype)
        nisa.tensor_scalar(
            dst=result, data=total, op0=nl.multiply, operand0=inverse(reduced(sums, nl.add))
        )
        nisa.dma_copy(dst=output[nl.ds(row, ROWS), :], src=result)
    return output


# The published ladder: a kernel and its options for every step, in order.
LADDER: tuple[tuple[object, dict[str, object]], ...] = (
    (through_hbm, {}),
    (through_hbm, {"fused_sum": True}),
    (three_passes, {"spilled": True, "narrow": False, "fused_sum": False}),
    (three_passes, {"narrow": False, "fused_sum": False}),
    (three_passes, {"fused_sum": False}),
    (three_passes, {}),
    (three_passes, {}),
    (three_passes, {"narrow_values": True}),
    (one_row, {"keep_scores": True}),
    (one_row, {}),
    (one_row, {"one_shift": True}),
)
