"""nki.tensor: the tensor class, which published kernels also name in annotations."""

from utils.nki.simulator.tensor import Tensor as NkiTensor

__all__ = ["NkiTensor"]
