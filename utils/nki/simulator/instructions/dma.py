"""Transfers between HBM and SBUF. Their time depends on bytes and descriptors: see `timing`."""

import numpy as np

from utils.nki.simulator import indirect
from utils.nki.simulator.enums import dge_mode, engine, oob_mode
from utils.nki.simulator.instruction import instruction
from utils.nki.simulator.instructions.choices import by_value
from utils.nki.simulator.instructions.costs import by_bytes
from utils.nki.simulator.instructions.dma_rules import (
    AXES,
    as_many_elements,
    conversion,
    hardware_generator,
    quality,
    transpose_generator,
    transpose_shapes,
)
from utils.nki.simulator.operands import DMA_MEMORY, SBUF, result, tile

engines = engine


@instruction(
    engine=engine.dma,
    cost=by_bytes,
    since="0.2",
    dst=result(memory=DMA_MEMORY),
    src=tile(memory=DMA_MEMORY),
    rules=(as_many_elements, conversion, hardware_generator, quality),
    resolve=by_value,
)
def dma_copy(
    dst,
    src,
    priority=None,
    oob_mode=oob_mode.error,
    dge_mode=dge_mode.unknown,
    engine=engine.unknown,
):
    """Copy `src` to `dst` between HBM and SBUF, or within one of them.

    Elements are taken in row-major order of both views, so only their number has to agree. Other
    types are converted through FP32. Where a side is found at run time, an index outside is an
    error, or with oob_mode.skip its elements keep what they were.
    """
    if src.indirect is not None or dst.indirect is not None:
        indirect.copy(dst, src, skip=oob_mode.name == "skip")
    elif src.dtype == dst.dtype:
        dst.put_raw(src.raw())
    else:
        dst.put(src.get())


@instruction(
    engine=engine.dma,
    cost=by_bytes,
    since="0.2",
    dst=result(memory=frozenset({SBUF})),
    src=tile(memory=DMA_MEMORY),
    rules=(transpose_shapes, transpose_generator, quality),
    resolve=by_value,
)
def dma_transpose(
    dst,
    src,
    axes=None,
    priority=None,
    dge_mode=dge_mode.unknown,
    oob_mode=oob_mode.error,
):
    """Copy `src` to `dst` with its first and last dimension exchanged.

    axes: (1, 0), (2, 1, 0) or (3, 1, 2, 0), which is also what is done without it. The last
    dimension of src becomes the partitions of dst, at most 128.
    """
    order = AXES[src.ndim]
    if src.indirect is None:
        dst.put_raw(src.raw().transpose(order))
        return
    stored, exists = src.indirect.gather(src, oob_mode.name == "skip")
    stored = stored.transpose(order).reshape(dst.shape)
    kept = dst.array()
    dst.put_raw(np.where(exists.transpose(order).reshape(dst.shape), stored, kept))
