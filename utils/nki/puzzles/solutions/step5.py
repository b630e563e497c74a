"""Step 5, blocks: what a layer does in one kernel; nothing between its parts sees HBM.

A transfer takes about 2 us however little it moves, so a matrix comes in one transfer or a few; and
what an engine is slow at is put where another engine has time.
"""

import nki
import nki.isa as nisa
import nki.language as nl

ROWS = 128
WIDE = 512
HIDDEN = -1e30


def tile(shape, dtype=nl.float32, buffer=nl.sbuf):
    """A new tile."""
    return nl.ndarray(shape, dtype=dtype, buffer=buffer)


def load(source):
    """A rectangle of HBM in a new tile of SBUF."""
    made = tile(source.shape, source.dtype)
    nisa.dma_copy(dst=made, src=source)
    return made


def load_slices(matrix, first=0, count=None):
    """`count` rows of a matrix (k, n) from `first` on, as (128, count / 128, n) in one transfer.

    Slice c has the rows first + 128 c to first + 128 c + 127.
    """
    columns, count = matrix.shape[1], count or matrix.shape[0]
    made = tile((ROWS, count // ROWS, columns), matrix.dtype)
    source = matrix.ap(
        [[columns, ROWS], [columns * ROWS, count // ROWS], [1, columns]], offset=first * columns
    )
    nisa.dma_copy(dst=made, src=source)
    return made


def inverse_rms(data):
    """1 / sqrt(mean of squares + 1e-6) of each row, (128, 1); the root is one of the Vector Engine,
    so that the Scalar Engine need not change its table of functions."""
    squares, scale = tile(data.shape, nl.bfloat16), tile((ROWS, 1))
    nisa.activation(
        dst=squares, op=nl.square, data=data, reduce_op=nl.add, reduce_res=scale,
        reduce_cmd=nisa.reduce_cmd.reset_reduce,
    )  # fmt: skip
    nisa.tensor_scalar(
        dst=scale, data=scale, op0=nl.multiply, operand0=1.0 / data.shape[1], op1=nl.add,
        operand1=1e-6,
    )  # fmt: skip
    nisa.tensor_scalar(dst=scale, data=scale, op0=nl.power, operand0=-0.5)
    return scale


def turn(dst, data, engine):
    """The columns of data (128, n) on partitions, dst (128, n / 128, 128): one copy out of PSUM."""
    count = data.shape[1] // ROWS
    psum = tile((ROWS, count, ROWS), data.dtype, nl.psum)
    for k in range(count):
        nisa.nc_transpose(dst=psum[:, k, :], data=data[:, nl.ds(k * ROWS, ROWS)])
    nisa.tensor_copy(dst=dst, src=psum, engine=engine)


@nki.jit
def rmsnorm_matmul(x, w):
    """rmsnorm(x) @ w for x (m, k) and w (k, n): the factor of a row is applied to its sums.

    x comes first, because it is turned while w is on its way.
    """
    (rows, depth), columns = x.shape, w.shape[1]
    out = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.shared_hbm)
    blocks, panel = load_slices(x), []
    for k in range(0, depth, ROWS):
        panel.append(load(w[nl.ds(k, ROWS), :]))
    pairs = 2 if rows % (2 * ROWS) == 0 else 1
    for first in range(0, rows // ROWS, pairs):
        lefts, totals, scales = [], [], []
        for i in range(first, first + pairs):
            left = tile((ROWS, depth // ROWS, ROWS), x.dtype)
            turn(left, blocks[:, i, :], nisa.engine.vector)
            lefts.append(left)
            scales.append(inverse_rms(blocks[:, i, :]))
            for column in range(0, columns, WIDE):
                totals.append(tile((ROWS, min(WIDE, columns - column)), buffer=nl.psum))
        wide = len(totals) // pairs
        for k in range(len(panel)):  # outside, so that products begin when rows of w are there
            for i in range(len(totals)):
                nisa.nc_matmul(
                    dst=totals[i], stationary=lefts[i // wide][:, k, :],
                    moving=panel[k][:, nl.ds(i % wide * WIDE, totals[i].shape[1])],
                )  # fmt: skip
        for i in range(pairs):
            result = tile((ROWS, columns), x.dtype)
            for j in range(wide):
                total = totals[i * wide + j]
                part = nl.ds(j * WIDE, total.shape[1])
                if j % 2:
                    nisa.activation(dst=result[:, part], op=nl.copy, data=total, scale=scales[i])
                else:
                    nisa.tensor_scalar(
                        dst=result[:, part], data=total, op0=nl.multiply, operand0=scales[i]
                    )
            nisa.dma_copy(dst=out[nl.ds((first + i) * ROWS, ROWS), :], src=result)
    return out


@nki.jit
def attention(q, k, v):
    """softmax(q.T k / sqrt(d)) v for q, k (d, n) and v (n, d).

    Scores are computed twice. With queries on the partitions they give the maximum of each query;
    with keys there, their powers are what the second product wants, and need not be turned. Minus
    the maximum is one more row of q, beside a row of ones of k: the product subtracts it. A column
    of ones beside v makes the sums.
    """
    depth, size = q.shape
    scale, count = depth**-0.5, size // ROWS
    out = nl.ndarray((size, depth), dtype=q.dtype, buffer=nl.shared_hbm)
    queries, keys = tile((depth + 1, size), q.dtype), tile((depth + 1, size), k.dtype)
    values = tile((ROWS, count, depth + 1), v.dtype)
    nisa.dma_copy(dst=queries[0:depth, :], src=q)
    nisa.dma_copy(dst=keys[0:depth, :], src=k)
    nisa.dma_copy(
        dst=values[:, :, 0:depth], src=v.ap([[depth, ROWS], [depth * ROWS, count], [1, depth]])
    )
    nisa.memset(dst=keys[nl.ds(depth, 1), :], value=1.0, engine=nisa.engine.gpsimd)
    nisa.memset(dst=values[:, :, nl.ds(depth, 1)], value=1.0, engine=nisa.engine.gpsimd)
    group = 4 if count % 4 == 0 else 1
    peaks = tile((ROWS, group, depth + 1), q.dtype)
    nisa.memset(dst=peaks, value=0.0, engine=nisa.engine.gpsimd)
    for i in range(group):
        find_peak(peaks, i, queries, keys, i * ROWS)
    for first in range(0, count, group):
        here = nl.ds(first * ROWS, group * ROWS)
        row = tile((depth + 1, group, ROWS), q.dtype, nl.psum)
        for i in range(group):
            nisa.nc_transpose(dst=row[:, i, :], data=peaks[:, i, :])
        nisa.tensor_copy(dst=queries[nl.ds(depth, 1), here], src=row[nl.ds(depth, 1), :, :])
        total = tile((ROWS, group, depth + 1), buffer=nl.psum)
        for j in range(count):
            ahead = first + group + j  # the Vector Engine looks at the next queries meanwhile
            if j < group and ahead < count:
                find_peak(peaks, j, queries, keys, ahead * ROWS)
            scores = tile((ROWS, group * ROWS), buffer=nl.psum)
            power = tile((ROWS, group * ROWS), v.dtype)
            nisa.nc_matmul(
                dst=scores, stationary=keys[:, nl.ds(j * ROWS, ROWS)], moving=queries[:, here]
            )
            nisa.activation(dst=power, op=nl.exp, data=scores, scale=scale)
            for i in range(group):
                nisa.nc_matmul(
                    dst=total[:, i, :], stationary=power[:, nl.ds(i * ROWS, ROWS)],
                    moving=values[:, j, :],
                )  # fmt: skip
        inverse, final = tile((ROWS, group, 1)), tile((ROWS, group, depth), q.dtype)
        nisa.reciprocal(dst=inverse, data=total[:, :, nl.ds(depth, 1)])
        for i in range(group):
            nisa.tensor_scalar(
                dst=final[:, i, :], data=total[:, i, 0:depth], op0=nl.multiply,
                operand0=inverse[:, i, :],
            )  # fmt: skip
        nisa.dma_copy(
            dst=out.ap(
                [[depth, ROWS], [depth * ROWS, group], [1, depth]], offset=first * ROWS * depth
            ),
            src=final,
        )
    return out


def find_peak(peaks, place, queries, keys, first):
    """Minus the highest score of each of 128 queries from `first` on: last column of a slice."""
    depth, size = queries.shape[0] - 1, keys.shape[1]
    scores = tile((ROWS, size), buffer=nl.psum)
    for column in range(0, size, WIDE):
        part = nl.ds(column, min(WIDE, size - column))
        nisa.nc_matmul(
            dst=scores[:, part], stationary=queries[0:depth, nl.ds(first, ROWS)],
            moving=keys[0:depth, part],
        )  # fmt: skip
    nisa.tensor_reduce(
        dst=peaks[:, place, nl.ds(depth, 1)], op=nl.maximum, data=scores, axis=1, negate=True
    )


@nki.jit
def attention_block(x, wq, wk, wv, wo):
    """x + attention(rmsnorm(x)) @ wo with a causal mask: x (n, w), wq, wk, wv (w, d), wo (d, w).

    All rows are projected first: the Tensor Engine then finds work whenever one of the steps below,
    each of which waits for the one before, leaves it idle.
    """
    (size, width), depth = x.shape, wq.shape[1]
    count, slices = size // ROWS, width // ROWS
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    data, weights = tile((ROWS, count, width), x.dtype), tile((ROWS, slices, 3, depth), x.dtype)
    nisa.dma_copy(dst=data[:, 0, :], src=x[nl.ds(0, ROWS), :])
    for i, part in ((0, wq), (1, wk), (2, wv)):
        nisa.dma_copy(
            dst=weights[:, :, i, :],
            src=part.ap([[depth, ROWS], [depth * ROWS, slices], [1, depth]]),
        )
    for i in range(1, count):
        nisa.dma_copy(dst=data[:, i, :], src=x[nl.ds(i * ROWS, ROWS), :])
    last = load(wo)
    warm = tile((1, 1))  # the table of exp is loaded while data is on its way
    nisa.memset(dst=warm, value=0.0)
    nisa.activation(dst=warm, op=nl.exp, data=warm)
    # 1 on the diagonal; HIDDEN right of it.
    ones, identity, future = (
        tile((ROWS, ROWS), x.dtype), tile((ROWS, ROWS), x.dtype), tile((ROWS, ROWS), x.dtype)
    )  # fmt: skip
    nisa.memset(dst=ones, value=1.0, engine=nisa.engine.gpsimd)
    nisa.affine_select(
        dst=identity, pattern=[[-1, ROWS]], channel_multiplier=1, on_true_tile=ones,
        on_false_value=0.0, cmp_op=nl.equal,
    )  # fmt: skip
    nisa.memset(dst=ones, value=0.0, engine=nisa.engine.gpsimd)
    nisa.affine_select(
        dst=future, pattern=[[-1, ROWS]], channel_multiplier=1, on_true_tile=ones,
        on_false_value=HIDDEN, cmp_op=nl.greater_equal,
    )  # fmt: skip
    keys, queries = tile((depth, size), x.dtype), tile((depth, size), x.dtype)
    values = tile((ROWS, count, depth), x.dtype)
    for i in range(count):
        project(data, weights, i, queries, keys, values)
    for i in range(count):
        power, inverse = powers(queries, keys, i, identity, future)
        # A product with inverses on the diagonal turns powers and divides them by their sum.
        divide, turned = tile((ROWS, ROWS), x.dtype), tile((ROWS, i + 1, ROWS), x.dtype)
        nisa.tensor_scalar(dst=divide, data=identity, op0=nl.multiply, operand0=inverse)
        for first in range(0, i + 1, 4):
            more = min(4, i + 1 - first)
            psum = tile((ROWS, more, ROWS), buffer=nl.psum)
            for k in range(more):
                nisa.nc_matmul(
                    dst=psum[:, k, :], stationary=power[:, nl.ds((first + k) * ROWS, ROWS)],
                    moving=divide,
                )  # fmt: skip
            nisa.tensor_copy(dst=turned[:, nl.ds(first, more), :], src=psum)
        head, left = tile((depth, ROWS), buffer=nl.psum), tile((depth, ROWS), x.dtype)
        for k in range(i + 1):
            nisa.nc_matmul(dst=head, stationary=values[:, k, :], moving=turned[:, k, :])
        nisa.activation(dst=left, op=nl.copy, data=head)
        result = tile((ROWS, width), x.dtype)
        for column in range(0, width, WIDE):
            part = nl.ds(column, min(WIDE, width - column))
            total = tile((ROWS, min(WIDE, width - column)), buffer=nl.psum)
            nisa.nc_matmul(dst=total, stationary=identity, moving=data[:, i, part])
            nisa.nc_matmul(dst=total, stationary=left, moving=last[:, part])
            half = total.shape[1] // 2  # each engine that reads PSUM copies a half
            nisa.activation(dst=result[:, nl.ds(column, half)], op=nl.copy, data=total[:, 0:half])
            nisa.tensor_copy(
                dst=result[:, nl.ds(column + half, half)], src=total[:, nl.ds(half, half)]
            )
        nisa.dma_copy(dst=out[nl.ds(i * ROWS, ROWS), :], src=result)
    return out


def project(data, weights, i, queries, keys, values):
    """Norm, turn and project rows 128 i on: queries over sqrt(d) and keys (d, n), values (n, d)."""
    width, depth, here = data.shape[2], queries.shape[0], nl.ds(i * ROWS, ROWS)
    slices = width // ROWS
    normal, columns = tile((ROWS, width), data.dtype), tile((ROWS, slices, ROWS), data.dtype)
    nisa.tensor_scalar(
        dst=normal, data=data[:, i, :], op0=nl.multiply, operand0=inverse_rms(data[:, i, :])
    )
    turn(columns, normal, nisa.engine.vector)
    both, total = tile((2 * depth, ROWS), buffer=nl.psum), tile((ROWS, depth), buffer=nl.psum)
    for k in range(slices):
        nisa.nc_matmul(dst=both, stationary=weights[:, k, 0:2, :], moving=columns[:, k, :])
    for k in range(slices):
        nisa.nc_matmul(dst=total, stationary=columns[:, k, :], moving=weights[:, k, 2, :])
    nisa.activation(dst=queries[:, here], op=nl.copy, data=both[0:depth, :], scale=depth**-0.5)
    nisa.tensor_copy(dst=keys[:, here], src=both[nl.ds(depth, depth), :])
    nisa.activation(dst=values[:, i, :], op=nl.copy, data=total)


def powers(queries, keys, i, identity, future):
    """exp of the scores of rows 128 i on with what they see, and one over their sums, (128, 1).

    A product with an identity adds the mask to the last 128 columns.
    """
    here, seen = nl.ds(i * ROWS, ROWS), (i + 1) * ROWS
    scores, power = tile((ROWS, seen), buffer=nl.psum), tile((ROWS, seen), queries.dtype)
    peak, total, inverse = tile((ROWS, 1)), tile((ROWS, 1)), tile((ROWS, 1))
    for column in range(0, seen, WIDE):
        part = nl.ds(column, min(WIDE, seen - column))
        nisa.nc_matmul(dst=scores[:, part], stationary=queries[:, here], moving=keys[:, part])
    nisa.nc_matmul(dst=scores[:, here], stationary=identity, moving=future, accumulate=True)
    nisa.tensor_reduce(dst=peak, op=nl.maximum, data=scores, axis=1, negate=True)
    nisa.activation(
        dst=power, op=nl.exp, data=scores, bias=peak, reduce_op=nl.add, reduce_res=total,
        reduce_cmd=nisa.reduce_cmd.reset_reduce,
    )  # fmt: skip
    nisa.reciprocal(dst=inverse, data=total)
    return power, inverse


@nki.jit
def mixture(x, router, up, down):
    """Each row of x (m, w) through the expert that scores highest, times its share.

    router (w, e), up (e w, h), down (e h, w); an expert is relu(row @ up) @ down. Every expert sees
    every row. Rows that did not choose it get HIDDEN added before relu, so that they are 0 after
    it, and the products of all experts add up in PSUM; the share is applied at the end.
    """
    (rows, width), experts, hidden = x.shape, router.shape[1], up.shape[1]
    count, slices, parts = rows // ROWS, width // ROWS, hidden // ROWS
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    data, route, ups, downs = load_slices(x), load_slices(router), [], []
    for expert in range(experts):
        ups.append(load_slices(up, expert * width, width))
        downs.append(load_slices(down, expert * hidden, hidden))
    # Row e of slice e is 1: a product with it brings row e of the other side to all partitions.
    ones, chooser = tile((experts, experts, ROWS), x.dtype), tile((experts, experts, ROWS), x.dtype)
    nisa.memset(dst=ones, value=1.0, engine=nisa.engine.gpsimd)
    nisa.affine_select(
        dst=chooser, pattern=[[-1, experts], [0, ROWS]], channel_multiplier=1, on_true_tile=ones,
        on_false_value=0.0, cmp_op=nl.equal,
    )  # fmt: skip
    columns, others = tile((ROWS, slices, rows), x.dtype), tile((experts, rows), x.dtype)
    shares = tile((ROWS, count))
    for i in range(count):
        here = nl.ds(i * ROWS, ROWS)
        turn(columns[:, :, here], data[:, i, :], nisa.engine.vector)
        scores, power = tile((ROWS, experts), buffer=nl.psum), tile((ROWS, experts))
        for k in range(slices):
            nisa.nc_matmul(dst=scores, stationary=columns[:, k, here], moving=route[:, k, :])
        peak, minus, sum_ = tile((ROWS, 1)), tile((ROWS, 1)), tile((ROWS, 1))
        hide, turned = tile((ROWS, experts), x.dtype), tile((experts, ROWS), x.dtype, nl.psum)
        nisa.tensor_reduce(dst=peak, op=nl.maximum, data=scores, axis=1)
        nisa.tensor_scalar(
            dst=hide, data=scores, op0=nl.less, operand0=peak, op1=nl.multiply, operand1=HIDDEN
        )
        nisa.nc_transpose(dst=turned, data=hide)
        nisa.tensor_copy(dst=others[:, here], src=turned)
        nisa.tensor_scalar(dst=minus, data=peak, op0=nl.multiply, operand0=-1.0)
        nisa.activation(
            dst=power, op=nl.exp, data=scores, bias=minus, reduce_op=nl.add, reduce_res=sum_,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )  # fmt: skip
        nisa.reciprocal(dst=shares[:, nl.ds(i, 1)], data=sum_)
    total = tile((ROWS, count, width), buffer=nl.psum)
    for expert in range(experts):
        middle = tile((ROWS, parts, rows), x.dtype)
        for h in range(parts):
            psum = tile((ROWS, rows), buffer=nl.psum)
            nisa.nc_matmul(dst=psum, stationary=chooser[:, expert, :], moving=others)
            for k in range(slices):
                nisa.nc_matmul(
                    dst=psum, stationary=ups[expert][:, k, nl.ds(h * ROWS, ROWS)],
                    moving=columns[:, k, :],
                )  # fmt: skip
            if h % 2:
                nisa.activation(dst=middle[:, h, :], op=nl.relu, data=psum)
            else:
                nisa.tensor_scalar(dst=middle[:, h, :], data=psum, op0=nl.maximum, operand0=0.0)
        for i in range(count):
            for h in range(parts):
                nisa.nc_matmul(
                    dst=total[:, i, :], stationary=middle[:, h, nl.ds(i * ROWS, ROWS)],
                    moving=downs[expert][:, h, :],
                )  # fmt: skip
    result = tile((ROWS, count, width), x.dtype)
    for i in range(count):
        nisa.tensor_scalar(
            dst=result[:, i, :], data=total[:, i, :], op0=nl.multiply,
            operand0=shares[:, nl.ds(i, 1)],
        )  # fmt: skip
    nisa.dma_copy(dst=out.ap([[width, ROWS], [width * ROWS, count], [1, width]]), src=result)
    return out
