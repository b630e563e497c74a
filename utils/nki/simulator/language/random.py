"""Random tiles."""

from typing import Any

from utils.nki.simulator.enums import MemoryRegion
from utils.nki.simulator.errors import refuse
from utils.nki.simulator.language.allocation import ndarray, tile_like
from utils.nki.simulator.language.calls import nisa
from utils.nki.simulator.operands import HBM
from utils.nki.simulator.operators import OPERATORS
from utils.nki.simulator.tensor import Tensor

BITS = 24
"""Bits of an FP32 number between 0 and 1 that are drawn."""


def rand(
    shape: Any, dtype: Any, buffer: MemoryRegion = MemoryRegion.sbuf, name: str = ""
) -> Tensor:
    """A new tensor of numbers from 0 to below 1, evenly distributed."""
    words = ndarray(shape, "uint32")
    nisa.rng(dst=words)
    nisa.tensor_scalar(dst=words, data=words, op0=OPERATORS["right_shift"], operand0=32 - BITS)
    made = ndarray(shape, dtype, buffer, name)
    tile = ndarray(shape, dtype) if buffer in HBM else made
    nisa.tensor_scalar(dst=tile, data=words, op0=OPERATORS["multiply"], operand0=2.0**-BITS)
    if tile is not made:
        nisa.dma_copy(dst=made, src=tile)
    return made


def random_seed(seed: Any) -> None:
    """Begin the random numbers of this core anew from a (1, 1) tile of 32 bits."""
    if not isinstance(seed, Tensor):
        raise refuse(
            f"nl.random_seed: the seed is {seed!r}, it is a (1, 1) tile of 32 bits.",
            "the engine reads its seed from memory.",
            f"nl.random_seed(nl.full((1, 1), {seed!r}, dtype=nl.int32)).",
        )
    nisa.set_rng_seed(src_seeds=seed)


def dropout(x: Tensor, rate: Any, dtype: Any = None) -> Tensor:
    """A new tile in which elements are 0 with the probability `rate` (a number or a column)."""
    made = tile_like(x, dtype)
    nisa.dropout(dst=made, data=x, prob=rate)
    return made
