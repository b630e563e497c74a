"""The Tensor Engine: products of matrices, and transposes made of them."""

import numpy as np

from utils.simulator.enums import engine, matmul_perf_mode
from utils.simulator.instruction import Use, instruction
from utils.simulator.operands import PSUM, SBUF, result, tile

SLOW_FP32 = 4
"""FP32 passes through the array four times (SDK 2.26, nc_matmul)."""


def fits_the_array(use: Use) -> None:
    stationary, moving = use.stationary, use.moving
    if stationary.shape[0] != moving.shape[0]:
        raise use.refuse(
            f"stationary has {stationary.shape[0]} partitions {stationary.shape}, moving has "
            f"{moving.shape[0]} {moving.shape}: the contraction sizes differ.",
            "both operands carry the contraction (K) on the partitions.",
            "transpose the operand whose K is on the free axis, or slice both to the same K.",
        )
    if moving.elements > use.target.moving_columns:
        raise use.refuse(
            f"moving has {moving.elements} columns per partition, the limit is "
            f"{use.target.moving_columns} (nl.tile_size.gemm_moving_fmax).",
            "one row of the product must fit one PSUM bank of 512 FP32 values.",
            f"loop over n and pass moving[:, nl.ds(n * {use.target.moving_columns}, "
            f"{use.target.moving_columns})].",
        )


def cost_matmul(use: Use) -> float:
    passes = SLOW_FP32 if use.stationary.dtype == "float32" else 1
    return passes * max(min(64, use.stationary.elements), use.moving.elements)


@instruction(
    engine=engine.tensor,
    cost=cost_matmul,
    since="0.2",
    dst=result(memory=frozenset({PSUM})),
    stationary=tile(memory=frozenset({SBUF})),
    moving=tile(memory=frozenset({SBUF})),
    rules=(fits_the_array,),
)
def nc_matmul(
    dst,
    stationary,
    moving,
    is_stationary_onezero=False,
    is_moving_onezero=False,
    is_transpose=False,
    accumulate=None,
    tile_position=(),
    tile_size=(),
    perf_mode=matmul_perf_mode.none,
):
    """dst (+)= stationary.T @ moving, in FP32; K lies on the partitions of both operands."""
    a = stationary.get().reshape(stationary.shape[0], -1)
    b = moving.get().reshape(moving.shape[0], -1)
    product = np.matmul(a.T, b).reshape(dst.shape)
    storage, array = dst.storage, dst.array()
    storage.products = storage.products or set()
    place = (dst.offset, dst.shape, dst.strides)
    if accumulate or (accumulate is None and place in storage.products):
        np.add(array, product, out=array)
    else:
        array[...] = product
    storage.products.add(place)
    storage.written = True
