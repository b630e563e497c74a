"""RMSNorm and conversion to FP8 with one scale for each row, the engines taking turns.

The instructions of the kernel whose profile on a Trainium2 AWS shows in the design notes of its
library (nki/library/specs/design-rmsnorm-quant): the Scalar Engine squares and adds a row up, the
Tensor Engine spreads the gain over the partitions, 512 columns at a time, into PSUM, and the Vector
Engine multiplies, looks for the largest magnitude, and scales.
"""

import nki
import nki.isa as nisa
import nki.language as nl

from utils.nki.kernels.onchip import load, tile

ROWS = nl.tile_size.pmax
BANK = nl.tile_size.psum_fmax
LARGEST = 240.0
SMALLEST_SCALE = 1e-6


@nki.jit
def rmsnorm_quantized(x, gain, epsilon=1e-6):
    """rmsnorm(x) gain as FP8 E4M3 (m, n) and its factors (m, 1), for BF16 x (m, n), gain (1, n).

    A row of the result times its factor is the normalised row.
    """
    rows, size = x.shape
    output = nl.ndarray(x.shape, dtype=nl.float8_e4m3, buffer=nl.shared_hbm)
    factors = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    ones = tile((1, ROWS), x.dtype)
    nisa.memset(dst=ones, value=1.0)
    for first in range(0, rows, ROWS):
        here = slice(first, min(first + ROWS, rows))
        data, gains = load(x[here, :]), load(gain)
        count = data.shape[0]
        normalise(data, gains, ones[:, 0:count], epsilon)
        magnitudes, factor, inverse = tile(data.shape, x.dtype), tile((count, 1)), tile((count, 1))
        nisa.tensor_scalar_reduce(
            dst=magnitudes, data=data, op0=nl.abs, operand0=0.0, reduce_op=nl.maximum,
            reduce_res=factor,
        )  # fmt: skip
        nisa.activation(dst=factor, op=nl.copy, data=factor, scale=1.0 / LARGEST)
        nisa.tensor_scalar(dst=factor, data=factor, op0=nl.maximum, operand0=SMALLEST_SCALE)
        nisa.reciprocal(dst=inverse, data=factor)
        result = tile(data.shape, output.dtype)
        nisa.tensor_scalar(
            dst=result, data=data, op0=nl.multiply, operand0=inverse, engine=nisa.engine.vector
        )
        nisa.dma_copy(dst=output[here, :], src=result)
        nisa.dma_copy(dst=factors[here, :], src=factor)
    return output, factors


def normalise(data, gains, ones, epsilon):
    """Rows of data (m, n) divided by their root mean square, times gains (1, n), in place."""
    rows, size = data.shape
    squares, scale, shift = tile(data.shape, data.dtype), tile((rows, 1)), tile((rows, 1))
    nisa.memset(dst=shift, value=epsilon)
    nisa.activation(
        dst=squares, op=nl.square, data=data, reduce_op=nl.add, reduce_res=scale,
        reduce_cmd=nisa.reduce_cmd.reset_reduce,
    )  # fmt: skip
    nisa.activation(dst=scale, op=nl.rsqrt, data=scale, bias=shift, scale=1.0 / size)
    for start in range(0, size, BANK):
        part = nl.ds(start, min(BANK, size - start))
        spread = tile((rows, min(BANK, size - start)), buffer=nl.psum)
        nisa.nc_matmul(dst=spread, stationary=ones, moving=gains[:, part])
        nisa.scalar_tensor_tensor(
            dst=data[:, part], data=data[:, part], op0=nl.multiply, operand0=scale,
            op1=nl.multiply, operand1=spread,
        )  # fmt: skip
