"""The instructions, about one module for each engine; importing this fills `TABLE` and `nisa`."""

from utils.nki.simulator.instruction import nisa
from utils.nki.simulator.instructions import (  # noqa: F401
    collectives,
    control,
    dma,
    gather,
    gpsimd,
    quantize,
    random,
    reductions,
    scalar,
    select,
    tensor_engine,
    tensor_scalar,
    top,
    vector,
)

__all__ = ["nisa"]
