"""Step 2, engines: what adds over partitions, what turns a tile, and sums that stay in PSUM."""

import nki
import nki.isa as nisa
import nki.language as nl

ROWS = 128
WIDE = 512


def load(source):
    """A rectangle of HBM in a new tile of SBUF."""
    tile = nl.ndarray(source.shape, dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=source)
    return tile


def load_slices(matrix, row, count):
    """`count` times 128 rows of a matrix (m, n) from `row` on, as (128, count, n)."""
    columns = matrix.shape[1]
    made = nl.ndarray((ROWS, count, columns), dtype=matrix.dtype, buffer=nl.sbuf)
    pattern = [[columns, ROWS], [columns * ROWS, count], [1, columns]]
    nisa.dma_copy(dst=made, src=matrix.ap(pattern, offset=row * columns))
    return made


@nki.jit
def transpose(x):
    """x (m, n), multiples of 128, turned 128 x 128 at a time; whole rows are loaded and stored."""
    rows, columns = x.shape
    out = nl.ndarray((columns, rows), dtype=x.dtype, buffer=nl.shared_hbm)
    strips = []
    for row in range(0, rows, ROWS):
        strips.append(load(x[nl.ds(row, ROWS), :]))
    for column in range(0, columns, ROWS):
        turned = nl.ndarray((ROWS, rows), dtype=x.dtype, buffer=nl.sbuf)
        for first in range(0, rows, WIDE):
            width = min(WIDE, rows - first)
            piece = nl.ndarray((ROWS, width), dtype=x.dtype, buffer=nl.psum)
            for row in range(first, first + width, ROWS):
                nisa.nc_transpose(
                    dst=piece[:, nl.ds(row - first, ROWS)],
                    data=strips[row // ROWS][:, nl.ds(column, ROWS)],
                )
            nisa.tensor_copy(dst=turned[:, nl.ds(first, width)], src=piece)
        nisa.dma_copy(dst=out[nl.ds(column, ROWS), :], src=turned)
    return out


@nki.jit
def column_sum(x):
    """Sums of the columns of x (m, n), as (1, n): a product with ones adds over partitions."""
    rows, columns = x.shape
    out = nl.ndarray((1, columns), dtype=x.dtype, buffer=nl.shared_hbm)
    ones = nl.ndarray((ROWS, 1), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(dst=ones, value=1.0)
    sums = nl.ndarray((1, columns), dtype=x.dtype, buffer=nl.sbuf)
    tiles = []
    for row in range(0, rows, ROWS):
        tiles.append(load(x[nl.ds(row, ROWS), :]))
    for column in range(0, columns, WIDE):
        width = min(WIDE, columns - column)
        total = nl.ndarray((1, width), dtype=nl.float32, buffer=nl.psum)
        for tile in tiles:
            nisa.nc_matmul(dst=total, stationary=ones, moving=tile[:, nl.ds(column, width)])
        nisa.tensor_copy(dst=sums[:, nl.ds(column, width)], src=total)
    nisa.dma_copy(dst=out, src=sums)
    return out


@nki.jit
def matmul_sum(a, b):
    """a.T @ b for a (k, 128) and b (k, n <= 512): products of 128 rows add up in PSUM."""
    columns = b.shape[1]
    out = nl.ndarray((ROWS, columns), dtype=a.dtype, buffer=nl.shared_hbm)
    total = nl.ndarray((ROWS, columns), dtype=nl.float32, buffer=nl.psum)
    group = 4 if a.shape[0] % (4 * ROWS) == 0 else 1  # so many tiles come in one transfer
    for row in range(0, a.shape[0], group * ROWS):
        lefts, rights = load_slices(a, row, group), load_slices(b, row, group)
        for k in range(group):
            nisa.nc_matmul(dst=total, stationary=lefts[:, k, :], moving=rights[:, k, :])
    result = nl.ndarray((ROWS, columns), dtype=a.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=total)
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def softmax(x):
    """softmax of the rows of x (m, n): exp with the maximum as bias, summed on the way."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for row in range(0, x.shape[0], ROWS):
        data = load(x[nl.ds(row, ROWS), :])
        shift = nl.ndarray((ROWS, 1), dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((ROWS, 1), dtype=nl.float32, buffer=nl.sbuf)
        inverse = nl.ndarray((ROWS, 1), dtype=nl.float32, buffer=nl.sbuf)
        power = nl.ndarray(data.shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=shift, op=nl.maximum, data=data, axis=1, negate=True)
        nisa.activation(
            dst=power, op=nl.exp, data=data, bias=shift, reduce_op=nl.add, reduce_res=total,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )  # fmt: skip
        nisa.reciprocal(dst=inverse, data=total)
        nisa.tensor_scalar(dst=power, data=power, op0=nl.multiply, operand0=inverse)
        nisa.dma_copy(dst=out[nl.ds(row, ROWS), :], src=power)
    return out
