"""The instruction table, one module for each engine; `TABLE` in `instruction` holds all rows."""

from utils.simulator.instructions import control, dma, gpsimd, scalar, select, tensor_engine, vector

__all__ = ["control", "dma", "gpsimd", "scalar", "select", "tensor_engine", "vector"]
