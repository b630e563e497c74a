"""Step 3, fusion: what belongs together happens on one tile, before it leaves the chip."""

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


def spread(row):
    """A row of HBM (1, n) on all partitions, (128, n): a product with a column of ones."""
    source, ones, made = load(row), tile((1, ROWS)), tile((ROWS, row.shape[1]))
    nisa.memset(dst=ones, value=1.0)
    for column in range(0, row.shape[1], WIDE):
        part = nl.ds(column, min(WIDE, row.shape[1] - column))
        total = tile((ROWS, min(WIDE, row.shape[1] - column)), buffer=nl.psum)
        nisa.nc_matmul(dst=total, stationary=ones, moving=source[:, part])
        nisa.tensor_copy(dst=made[:, part], src=total)
    return made


@nki.jit
def rmsnorm(x, gain):
    """x (m, n) over the root of the mean of squares of its row, times gain (1, n)."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    gains, shift = spread(gain), tile((ROWS, 1))
    nisa.memset(dst=shift, value=1e-6)
    for row in range(0, x.shape[0], ROWS):
        data, scale, result = (
            load(x[nl.ds(row, ROWS), :]),
            tile((ROWS, 1)),
            tile((ROWS, x.shape[1])),
        )
        nisa.activation(
            dst=result, op=nl.square, data=data, reduce_op=nl.add, reduce_res=scale,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )  # fmt: skip
        nisa.activation(dst=scale, op=nl.rsqrt, data=scale, bias=shift, scale=1.0 / x.shape[1])
        nisa.scalar_tensor_tensor(
            dst=result, data=data, op0=nl.multiply, operand0=scale, op1=nl.multiply, operand1=gains
        )
        nisa.dma_copy(dst=out[nl.ds(row, ROWS), :], src=result)
    return out


@nki.jit
def matmul(a, b):
    """a.T @ b for a (k, m) and b (k, n): both are loaded once, sums stay in PSUM."""
    (depth, rows), columns = a.shape, b.shape[1]
    out = nl.ndarray((rows, columns), dtype=a.dtype, buffer=nl.shared_hbm)
    lefts, rights = [], []
    for k in range(0, depth, ROWS):
        lefts.append(load(a[nl.ds(k, ROWS), :]))
        rights.append(load(b[nl.ds(k, ROWS), :]))
    for m in range(0, rows, ROWS):
        result = tile((ROWS, columns), a.dtype)
        for n in range(0, columns, WIDE):
            part = nl.ds(n, min(WIDE, columns - n))
            total = tile((ROWS, min(WIDE, columns - n)), buffer=nl.psum)
            for k in range(len(lefts)):
                nisa.nc_matmul(
                    dst=total, stationary=lefts[k][:, nl.ds(m, ROWS)], moving=rights[k][:, part]
                )
            nisa.tensor_copy(dst=result[:, part], src=total)
        nisa.dma_copy(dst=out[nl.ds(m, ROWS), :], src=result)
    return out


@nki.jit
def bias_gelu(a, b, bias):
    """gelu(b.T @ a + bias) for a (k, m), b (k, n), bias (n, 1), as (n, m).

    Columns of b lie on the partitions of the result, so that the bias is one of the Scalar Engine.
    """
    (depth, rows), columns = a.shape, b.shape[1]
    out = nl.ndarray((columns, rows), dtype=a.dtype, buffer=nl.shared_hbm)
    lefts, rights = [], []
    for k in range(0, depth, ROWS):
        lefts.append(load(a[nl.ds(k, ROWS), :]))
        rights.append(load(b[nl.ds(k, ROWS), :]))
    for n in range(0, columns, ROWS):
        shift, result = load(bias[nl.ds(n, ROWS), :]), tile((ROWS, rows), a.dtype)
        for m in range(0, rows, WIDE):
            part = nl.ds(m, min(WIDE, rows - m))
            total = tile((ROWS, min(WIDE, rows - m)), buffer=nl.psum)
            for k in range(len(lefts)):
                nisa.nc_matmul(
                    dst=total, stationary=rights[k][:, nl.ds(n, ROWS)], moving=lefts[k][:, part]
                )
            nisa.activation(dst=result[:, part], op=nl.gelu, data=total, bias=shift)
        nisa.dma_copy(dst=out[nl.ds(n, ROWS), :], src=result)
    return out


@nki.jit
def causal_softmax(x):
    """softmax of the rows of x (n, n), in which row i sees the columns 0 to i, others become 0."""
    size = x.shape[0]
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for row in range(0, size, ROWS):
        data, seen = load(x[nl.ds(row, ROWS), :]), tile((ROWS, size))
        shift, total, inverse = tile((ROWS, 1)), tile((ROWS, 1)), tile((ROWS, 1))
        nisa.affine_select(
            dst=seen, pattern=[[-1, size]], offset=row, channel_multiplier=1, on_true_tile=data,
            on_false_value=HIDDEN, cmp_op=nl.greater_equal,
        )  # fmt: skip
        nisa.tensor_reduce(dst=shift, op=nl.maximum, data=seen, axis=1, negate=True)
        nisa.activation(
            dst=seen, op=nl.exp, data=seen, bias=shift, reduce_op=nl.add, reduce_res=total,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )  # fmt: skip
        nisa.reciprocal(dst=inverse, data=total)
        nisa.tensor_scalar(dst=seen, data=seen, op0=nl.multiply, operand0=inverse)
        nisa.dma_copy(dst=out[nl.ds(row, ROWS), :], src=seen)
    return out
