"""Elementwise kernels, which move much and compute little: SiLU, its gated form, rotary positions.

Two of them reproduce baselines of a public benchmark on Trainium1 with profiler counters
(zhang677/AccelOpt, NKIBench): `silu_from_exp` and `rope`, FP32.
"""

import nki
import nki.isa as nisa
import nki.language as nl

from utils.nki.kernels.onchip import load, tile, zeros

ROWS = nl.tile_size.pmax
WIDE = nl.tile_size.psum_fmax


@nki.jit
def silu_from_exp(x, piece=2 * WIDE):
    """x / (1 + exp(-x)) in four instructions for every 512 columns: x (128, blocks, n).

    The reciprocal is taken by the Scalar Engine, the other two by the Vector Engine.
    """
    output = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    partitions, blocks, size = x.shape
    none = zeros((partitions, 1))
    for block in range(blocks):
        for start in range(0, size, piece):
            data = load(x[:, block, nl.ds(start, piece)])
            result = tile(data.shape, x.dtype)
            for column in range(0, piece, WIDE):
                here = nl.ds(column, WIDE)
                power, total, inverse = (
                    tile((partitions, WIDE)), tile((partitions, WIDE)), tile((partitions, WIDE))
                )  # fmt: skip
                nisa.activation(dst=power, op=nl.exp, data=data[:, here], bias=none, scale=-1.0)
                nisa.tensor_scalar(dst=total, data=power, op0=nl.add, operand0=1.0)
                nisa.activation(dst=inverse, op=nl.reciprocal, data=total)
                nisa.tensor_tensor(
                    dst=result[:, here], data1=data[:, here], data2=inverse, op=nl.multiply
                )
            nisa.dma_copy(dst=output[:, block, nl.ds(start, piece)], src=result)
    return output


@nki.jit
def silu(x):
    """The same with the function that the Scalar Engine has, a block in one instruction."""
    output = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for block in range(x.shape[1]):
        data = load(x[:, block, :])
        result = tile(data.shape, x.dtype)
        nisa.activation(dst=result, op=nl.silu, data=data)
        nisa.dma_copy(dst=output[:, block, :], src=result)
    return output


@nki.jit
def silu_multiply(gate, up):
    """silu(gate) up for matrices (m, n), the middle of a gated network: three transfers."""
    output = nl.ndarray(gate.shape, dtype=gate.dtype, buffer=nl.shared_hbm)
    for row in range(0, gate.shape[0], ROWS):
        here = nl.ds(row, ROWS)
        data, other = load(gate[here, :]), load(up[here, :])
        active, result = tile(data.shape, gate.dtype), tile(data.shape, gate.dtype)
        nisa.activation(dst=active, op=nl.silu, data=data)
        nisa.tensor_tensor(dst=result, data1=active, data2=other, op=nl.multiply)
        nisa.dma_copy(dst=output[here, :], src=result)
    return output


@nki.jit
def silu_then_multiply(gate, up):
    """The same as two operators: silu(gate) goes to HBM and back, five transfers."""
    output = nl.ndarray(gate.shape, dtype=gate.dtype, buffer=nl.shared_hbm)
    between = nl.ndarray(gate.shape, dtype=gate.dtype, buffer=nl.hbm)
    for row in range(0, gate.shape[0], ROWS):
        here = nl.ds(row, ROWS)
        data = load(gate[here, :])
        active = tile(data.shape, gate.dtype)
        nisa.activation(dst=active, op=nl.silu, data=data)
        nisa.dma_copy(dst=between[here, :], src=active)
    for row in range(0, gate.shape[0], ROWS):
        here = nl.ds(row, ROWS)
        active, other = load(between[here, :]), load(up[here, :])
        result = tile(active.shape, gate.dtype)
        nisa.tensor_tensor(dst=result, data1=active, data2=other, op=nl.multiply)
        nisa.dma_copy(dst=output[here, :], src=result)
    return output


@nki.jit
def rope(x, cos, sin):
    """Rotary positions for x (128, n), the halves of a head above each other; cos, sin (64, n).

    The upper half of the result is x[:64] cos - x[64:] sin, the lower x[64:] cos + x[:64] sin. Both
    inputs of an elementwise instruction begin in the same partition, so the lower half of x is
    copied to the upper partitions first.
    """
    output = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    half = x.shape[0] // 2
    for start in range(0, x.shape[1], WIDE):
        here = nl.ds(start, WIDE)
        both, cosine, sine = load(x[:, here]), load(cos[:, here]), load(sin[:, here])
        upper, lower = both[0:half, :], tile((half, WIDE), x.dtype)
        nisa.tensor_copy(dst=lower, src=both[half : 2 * half, :])
        products = []
        for data, factor in ((upper, cosine), (lower, cosine), (upper, sine), (lower, sine)):
            product = tile((half, WIDE), x.dtype)
            nisa.tensor_tensor(dst=product, data1=data, data2=factor, op=nl.multiply)
            products.append(product)
        result = tile(both.shape, x.dtype)
        nisa.tensor_tensor(
            dst=result[0:half, :], data1=products[0], data2=products[3], op=nl.subtract
        )
        nisa.tensor_tensor(
            dst=result[half : 2 * half, :], data1=products[1], data2=products[2], op=nl.add
        )
        nisa.dma_copy(dst=output[:, here], src=result)
    return output
