"""Step 5, blocks: what a layer does in one kernel; nothing between its parts sees HBM."""

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


def load_panel(matrix):
    """A matrix (k, n) as tiles of 128 rows."""
    panel = []
    for row in range(0, matrix.shape[0], ROWS):
        panel.append(load(matrix[nl.ds(row, ROWS), :]))
    return panel


def turned(source):
    """A tile (128, n) as tiles (128, 128) with its columns on the partitions."""
    results = []
    for column in range(0, source.shape[1], ROWS):
        psum = tile((ROWS, ROWS), source.dtype, nl.psum)
        nisa.nc_transpose(dst=psum, data=source[:, nl.ds(column, ROWS)])
        made = tile((ROWS, ROWS), source.dtype)
        nisa.tensor_copy(dst=made, src=psum)
        results.append(made)
    return results


def product(lefts, rights, column, width):
    """The sum of lefts[k].T @ rights[k], columns of a panel: (m, width) in PSUM."""
    total = tile((lefts[0].shape[1], width), buffer=nl.psum)
    for k in range(len(lefts)):
        nisa.nc_matmul(dst=total, stationary=lefts[k], moving=rights[k][:, nl.ds(column, width)])
    return total


def inverse_rms(data):
    """1 / sqrt(mean of squares + 1e-6) of each row, (128, 1)."""
    squares, scale, shift = tile(data.shape), tile((ROWS, 1)), tile((ROWS, 1))
    nisa.memset(dst=shift, value=1e-6)
    nisa.activation(
        dst=squares, op=nl.square, data=data, reduce_op=nl.add, reduce_res=scale,
        reduce_cmd=nisa.reduce_cmd.reset_reduce,
    )  # fmt: skip
    nisa.activation(dst=scale, op=nl.rsqrt, data=scale, bias=shift, scale=1.0 / data.shape[1])
    return scale


def softmax_of(scores, scale, dtype):
    """exp of scaled scores (128, n) minus their maximum, and one over their sum, (128, 1)."""
    peak, total, inverse = tile((ROWS, 1)), tile((ROWS, 1)), tile((ROWS, 1))
    power = tile(scores.shape, dtype)
    nisa.tensor_reduce(dst=peak, op=nl.maximum, data=scores, axis=1)
    nisa.tensor_scalar(dst=peak, data=peak, op0=nl.multiply, operand0=-scale)
    nisa.activation(
        dst=power, op=nl.exp, data=scores, bias=peak, scale=scale, reduce_op=nl.add,
        reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce,
    )  # fmt: skip
    nisa.reciprocal(dst=inverse, data=total)
    return power, inverse


@nki.jit
def rmsnorm_matmul(x, w):
    """rmsnorm(x) @ w for x (m, k) and w (k, n): the factor of a row is applied to its sums."""
    rows, columns = x.shape[0], w.shape[1]
    out = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.shared_hbm)
    panel = load_panel(w)
    for row in range(0, rows, ROWS):
        data, result = load(x[nl.ds(row, ROWS), :]), tile((ROWS, columns), x.dtype)
        scale, lefts = inverse_rms(data), turned(data)
        for column in range(0, columns, WIDE):
            width = min(WIDE, columns - column)
            nisa.tensor_scalar(
                dst=result[:, nl.ds(column, width)], data=product(lefts, panel, column, width),
                op0=nl.multiply, operand0=scale,
            )  # fmt: skip
        nisa.dma_copy(dst=out[nl.ds(row, ROWS), :], src=result)
    return out


def attended(queries, keys, values, row, causal):
    """Attention of 128 queries (d, 128) over keys (d, n) and values, tiles (128, d): (128, d) FP32.

    With causal, the queries are those of the positions from `row` on.
    """
    depth = queries.shape[0]
    size = row + ROWS if causal else keys.shape[1]
    scores = tile((ROWS, size))
    for column in range(0, size, WIDE):
        width = min(WIDE, size - column)
        part = tile((ROWS, width), buffer=nl.psum)
        nisa.nc_matmul(dst=part, stationary=queries, moving=keys[:, nl.ds(column, width)])
        nisa.tensor_copy(dst=scores[:, nl.ds(column, width)], src=part)
    if causal:
        seen = tile((ROWS, size))
        nisa.affine_select(
            dst=seen, pattern=[[-1, size]], offset=row, channel_multiplier=1, on_true_tile=scores,
            on_false_value=HIDDEN, cmp_op=nl.greater_equal,
        )  # fmt: skip
        scores = seen
    power, inverse = softmax_of(scores, depth**-0.5, values[0].dtype)
    total, result = (
        tile((ROWS, values[0].shape[1]), buffer=nl.psum),
        tile((ROWS, values[0].shape[1])),
    )
    pieces = turned(power)
    for k in range(len(pieces)):
        nisa.nc_matmul(dst=total, stationary=pieces[k], moving=values[k])
    nisa.tensor_scalar(dst=result, data=total, op0=nl.multiply, operand0=inverse)
    return result


@nki.jit
def attention(q, k, v):
    """softmax(q.T k / sqrt(d)) v for q, k (d, n) and v (n, d)."""
    depth, size = q.shape
    out = nl.ndarray((size, depth), dtype=q.dtype, buffer=nl.shared_hbm)
    queries, keys, values = load(q), load(k), load_panel(v)
    for row in range(0, size, ROWS):
        result, final = (
            attended(queries[:, nl.ds(row, ROWS)], keys, values, row, False),
            tile((ROWS, depth), q.dtype),
        )
        nisa.tensor_copy(dst=final, src=result)
        nisa.dma_copy(dst=out[nl.ds(row, ROWS), :], src=final)
    return out


@nki.jit
def attention_block(x, wq, wk, wv, wo):
    """x + attention(rmsnorm(x)) @ wo with a causal mask: x (n, w), wq, wk, wv (w, d), wo (d, w)."""
    (size, width), depth = x.shape, wq.shape[1]
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    into = [load_panel(wq), load_panel(wk), load_panel(wv)]
    last = load(wo)
    keys, values, queries, rows = tile((depth, size), x.dtype), [], [], []
    for row in range(0, size, ROWS):
        data, normal = load(x[nl.ds(row, ROWS), :]), tile((ROWS, width), x.dtype)
        nisa.tensor_scalar(dst=normal, data=data, op0=nl.multiply, operand0=inverse_rms(data))
        columns = turned(normal)
        query, value = tile((depth, ROWS), x.dtype), tile((ROWS, depth), x.dtype)
        # Queries and keys are wanted with d on the partitions: the weights are stationary there.
        nisa.tensor_copy(dst=query, src=product(into[0], columns, 0, ROWS))
        nisa.tensor_copy(dst=keys[:, nl.ds(row, ROWS)], src=product(into[1], columns, 0, ROWS))
        nisa.tensor_copy(dst=value, src=product(columns, into[2], 0, depth))
        rows.append(data)
        queries.append(query)
        values.append(value)
        seen = attended(query, keys, values, row, True)
        head, result = tile((ROWS, depth), x.dtype), tile((ROWS, width), x.dtype)
        nisa.tensor_copy(dst=head, src=seen)
        psum, left = tile((depth, ROWS), x.dtype, nl.psum), tile((depth, ROWS), x.dtype)
        nisa.nc_transpose(dst=psum, data=head)
        nisa.tensor_copy(dst=left, src=psum)
        for column in range(0, width, WIDE):
            part = nl.ds(column, min(WIDE, width - column))
            total = tile((ROWS, min(WIDE, width - column)), buffer=nl.psum)
            nisa.nc_matmul(dst=total, stationary=left, moving=last[:, part])
            nisa.tensor_tensor(dst=result[:, part], data1=total, data2=data[:, part], op=nl.add)
        nisa.dma_copy(dst=out[nl.ds(row, ROWS), :], src=result)
    return out


@nki.jit
def mixture(x, router, up, down):
    """Each row of x (m, w) through the expert that scores highest, times its share.

    router (w, e), up (e w, h), down (e h, w); an expert is relu(row @ up) @ down. Every expert
    sees every row; rows that did not choose it get the factor 0.
    """
    (rows, width), experts = x.shape, router.shape[1]
    hidden = up.shape[1]
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    route, ups, downs = load_panel(router), load_panel(up), load_panel(down)
    for row in range(0, rows, ROWS):
        columns = turned(load(x[nl.ds(row, ROWS), :]))
        scores, chosen, peak = tile((ROWS, experts)), tile((ROWS, experts)), tile((ROWS, 1))
        nisa.tensor_copy(dst=scores, src=product(columns, route, 0, experts))
        nisa.tensor_reduce(dst=peak, op=nl.maximum, data=scores, axis=1)
        power, share = softmax_of(scores, 1.0, nl.float32)
        nisa.tensor_scalar(dst=chosen, data=scores, op0=nl.greater_equal, operand0=peak)
        nisa.tensor_tensor(dst=chosen, data1=chosen, data2=power, op=nl.multiply)
        nisa.tensor_scalar(dst=chosen, data=chosen, op0=nl.multiply, operand0=share)
        total = tile((ROWS, width))
        nisa.memset(dst=total, value=0.0)
        for expert in range(experts):
            first, second = expert * width // ROWS, expert * hidden // ROWS
            into, back = [], []
            for k in range(width // ROWS):
                into.append(ups[first + k])
            middle = []
            for h in range(0, hidden, ROWS):
                psum, active = tile((ROWS, ROWS), buffer=nl.psum), tile((ROWS, ROWS), x.dtype)
                for k in range(width // ROWS):
                    nisa.nc_matmul(
                        dst=psum, stationary=into[k][:, nl.ds(h, ROWS)], moving=columns[k]
                    )
                nisa.activation(dst=active, op=nl.relu, data=psum)
                middle.append(active)
                back.append(downs[second + h // ROWS])
            for column in range(0, width, WIDE):
                size = min(WIDE, width - column)
                nisa.scalar_tensor_tensor(
                    dst=total[:, nl.ds(column, size)], data=product(middle, back, column, size),
                    op0=nl.multiply, operand0=chosen[:, expert : expert + 1], op1=nl.add,
                    operand1=total[:, nl.ds(column, size)],
                )  # fmt: skip
        result = tile((ROWS, width), x.dtype)
        nisa.tensor_copy(dst=result, src=total)
        nisa.dma_copy(dst=out[nl.ds(row, ROWS), :], src=result)
    return out
