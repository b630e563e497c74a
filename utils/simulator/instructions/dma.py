"""Transfers between HBM and SBUF. Their time depends on bytes and descriptors: see `timing`."""

import numpy as np

from utils.simulator.enums import dge_mode, engine, oob_mode
from utils.simulator.instruction import Use, instruction
from utils.simulator.operands import DMA_MEMORY, result, tile

engines = engine


def by_bytes(use: Use) -> float:
    """DMA engines do not count cycles; `timing` charges bytes and descriptors."""
    return 0.0


def as_many_elements(use: Use) -> None:
    if use.src.size != use.dst.size:
        raise use.refuse(
            f"src has {use.src.size} elements {use.src.shape}, dst has {use.dst.size} "
            f"{use.dst.shape}.",
            "a DMA writes every element that it reads.",
            "slice both sides to the same number of elements.",
        )


@instruction(
    engine=engine.dma,
    cost=by_bytes,
    since="0.2",
    dst=result(memory=DMA_MEMORY),
    src=tile(memory=DMA_MEMORY),
    rules=(as_many_elements,),
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
    types are converted through FP32.
    """
    if src.dtype == dst.dtype:
        dst.put_raw(np.ascontiguousarray(src.raw()))
    else:
        dst.put(np.ascontiguousarray(src.get()))
