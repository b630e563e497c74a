"""The instruction table, one module for each engine; `TABLE` in `instruction` holds all rows."""

from utils.nki.simulator.instructions import (
    accumulating,
    control,
    dma,
    fill,
    gather,
    gpsimd,
    quantize,
    reductions,
    scalar,
    select,
    shuffle,
    tensor_engine,
    tensor_scalar,
    top,
    vector,
)

__all__ = [
    "accumulating",
    "control",
    "dma",
    "fill",
    "gather",
    "gpsimd",
    "quantize",
    "reductions",
    "scalar",
    "select",
    "shuffle",
    "tensor_engine",
    "tensor_scalar",
    "top",
    "vector",
]
