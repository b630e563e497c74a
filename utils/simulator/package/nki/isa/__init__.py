"""The instructions."""

from utils.simulator.enums import (
    dge_mode,
    dma_engine,
    engine,
    matmul_perf_mode,
    nc_version,
    oob_mode,
    reduce_cmd,
)
from utils.simulator.errors import NkiValidationError
from utils.simulator.instructions.dma import dma_copy
from utils.simulator.instructions.tensor_engine import nc_matmul
from utils.simulator.instructions.vector import memset, tensor_copy, tensor_tensor
