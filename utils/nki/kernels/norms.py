"""Normalisations of rows, fused and unfused: softmax, RMSNorm, and RMSNorm before a product.

Rows lie on the partitions, so a row's sum or maximum is a reduction along the free axis. The
unfused versions write every intermediate to HBM and read it back, as separate operators would; the
fused ones load the input once.
"""

import nki
import nki.isa as nisa
import nki.language as nl

from utils.nki.kernels.onchip import load, tile

ROWS = nl.tile_size.pmax
WIDE = nl.tile_size.gemm_moving_fmax


@nki.jit
def softmax(x):
    """softmax of the rows of x (m, n), one load and one store for each element."""
    output = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows, size = x.shape
    for row in range(0, rows, ROWS):
        data = load(x[nl.ds(row, ROWS), :])
        shift, total, inverse = tile((ROWS, 1)), tile((ROWS, 1)), tile((ROWS, 1))
        power, result = tile((ROWS, size)), tile((ROWS, size), x.dtype)
        nisa.tensor_reduce(dst=shift, op=nl.maximum, data=data, axis=1, negate=True)
        nisa.activation(
            dst=power, op=nl.exp, data=data, bias=shift, reduce_op=nl.add, reduce_res=total,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )  # fmt: skip
        nisa.reciprocal(dst=inverse, data=total)
        nisa.tensor_scalar(dst=result, data=power, op0=nl.multiply, operand0=inverse)
        nisa.dma_copy(dst=output[nl.ds(row, ROWS), :], src=result)
    return output


@nki.jit
def softmax_in_three_passes(x):
    """The same as three operators: x minus its maximum, exp, division by the sum."""
    output = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    shifted = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.hbm)
    powers = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.hbm)
    rows, size = x.shape
    for row in range(0, rows, ROWS):
        here = nl.ds(row, ROWS)
        data, peak, result = load(x[here, :]), tile((ROWS, 1)), tile((ROWS, size))
        nisa.tensor_reduce(dst=peak, op=nl.maximum, data=data, axis=1)
        nisa.tensor_scalar(dst=result, data=data, op0=nl.subtract, operand0=peak)
        nisa.dma_copy(dst=shifted[here, :], src=result)
    for row in range(0, rows, ROWS):
        here, result = nl.ds(row, ROWS), tile((ROWS, size))
        nisa.activation(dst=result, op=nl.exp, data=load(shifted[here, :]))
        nisa.dma_copy(dst=powers[here, :], src=result)
    for row in range(0, rows, ROWS):
        here, data = nl.ds(row, ROWS), load(powers[nl.ds(row, ROWS), :])
        total, inverse, result = tile((ROWS, 1)), tile((ROWS, 1)), tile((ROWS, size), x.dtype)
        nisa.tensor_reduce(dst=total, op=nl.add, data=data, axis=1)
        nisa.reciprocal(dst=inverse, data=total)
        nisa.tensor_scalar(dst=result, data=data, op0=nl.multiply, operand0=inverse)
        nisa.dma_copy(dst=output[here, :], src=result)
    return output


def inverse_rms(data, epsilon):
    """1 / sqrt(mean of squares + epsilon) of each row of data, (128, 1)."""
    size = data.shape[1]
    squares, total, shift, result = (
        tile(data.shape), tile((ROWS, 1)), tile((ROWS, 1)), tile((ROWS, 1))
    )  # fmt: skip
    nisa.activation(
        dst=squares, op=nl.square, data=data, reduce_op=nl.add, reduce_res=total,
        reduce_cmd=nisa.reduce_cmd.reset_reduce,
    )  # fmt: skip
    nisa.memset(dst=shift, value=epsilon)
    nisa.activation(dst=result, op=nl.rsqrt, data=total, scale=1.0 / size, bias=shift)
    return result


def load_panel(matrix, column, width):
    """Columns of a matrix (k, n) in SBUF, 128 rows of it in each slice: (128, k / 128, width)."""
    depth = matrix.shape[0] // ROWS
    panel = tile((ROWS, depth, width), matrix.dtype)
    for index in range(depth):
        source = matrix[nl.ds(index * ROWS, ROWS), nl.ds(column, width)]
        nisa.dma_copy(dst=panel[:, index, :], src=source)
    return panel


def product_with(rows, panel, output, row, scale=None):
    """Writes rows (128, k), times a column scale, times the panel (128, k / 128, n) to output."""
    depth, columns = panel.shape[1], panel.shape[2]
    turned = tile((ROWS, depth, ROWS), rows.dtype)
    for index in range(depth):
        psum = tile((ROWS, ROWS), rows.dtype, nl.psum)
        nisa.nc_transpose(dst=psum, data=rows[:, nl.ds(index * ROWS, ROWS)])
        nisa.tensor_copy(dst=turned[:, index, :], src=psum)
    for column in range(0, columns, WIDE):
        width = min(WIDE, columns - column)
        part = nl.ds(column, width)
        total, result = tile((ROWS, width), buffer=nl.psum), tile((ROWS, width), output.dtype)
        for index in range(depth):
            nisa.nc_matmul(dst=total, stationary=turned[:, index, :], moving=panel[:, index, part])
        if scale != None:  # noqa: E711  a kernel cannot use `is`
            nisa.tensor_scalar(dst=result, data=total, op0=nl.multiply, operand0=scale)
        else:
            nisa.tensor_copy(dst=result, src=total)
        nisa.dma_copy(dst=output[nl.ds(row, ROWS), part], src=result)


@nki.jit
def rmsnorm_matmul(x, w, epsilon=1e-6):
    """rmsnorm(x) @ w for x (m, k) and w (k, n): x is loaded once, the result scaled row by row.

    The factor of a row commutes with the product, so it is applied where the sums leave PSUM; a
    gain for each column of x would be a factor of the rows of w, and is taken to be in them.
    """
    rows, columns = x.shape[0], w.shape[1]
    output = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.shared_hbm)
    panel = load_panel(w, 0, columns)
    for row in range(0, rows, ROWS):
        data = load(x[nl.ds(row, ROWS), :])
        product_with(data, panel, output, row, inverse_rms(data, epsilon))
    return output


@nki.jit
def rmsnorm_then_matmul(x, w, epsilon=1e-6):
    """The same as two operators: the normalised x goes to HBM and back."""
    rows, columns = x.shape[0], w.shape[1]
    output = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.shared_hbm)
    normal = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.hbm)
    for row in range(0, rows, ROWS):
        here = nl.ds(row, ROWS)
        data, result = load(x[here, :]), tile((ROWS, x.shape[1]), x.dtype)
        scale = inverse_rms(data, epsilon)
        nisa.tensor_scalar(dst=result, data=data, op0=nl.multiply, operand0=scale)
        nisa.dma_copy(dst=normal[here, :], src=result)
    panel = load_panel(w, 0, columns)
    for row in range(0, rows, ROWS):
        product_with(load(normal[nl.ds(row, ROWS), :]), panel, output, row)
    return output
