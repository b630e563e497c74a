"""Host arrays and tensors of HBM: how arguments come in and results go out."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from utils.simulator.dtypes import DType, bool_, dtype_of
from utils.simulator.enums import ON_CHIP, MemoryRegion
from utils.simulator.errors import doubt, refuse
from utils.simulator.memory import Storage
from utils.simulator.program import Program
from utils.simulator.tensor import Tensor, whole


@dataclass(frozen=True)
class Shape:
    """An array without numbers: enough for rules and times, at any size.

    >>> Shape((4096, 8192), "bfloat16").shape
    (4096, 8192)
    """

    shape: tuple[int, ...]
    dtype: Any = "float32"


@dataclass
class Arrays:
    """The host arrays of one call, by the storage that stands for them."""

    host: dict[Storage, Any] = field(default_factory=dict)
    seen: dict[int, Tensor] = field(default_factory=dict)
    torch: bool = False

    def taken(self, program: Program, value: Any) -> Any:
        """An argument as the kernel sees it: arrays become tensors, everything else stays."""
        if isinstance(value, (tuple, list)):
            return type(value)(self.taken(program, each) for each in value)
        if isinstance(value, dict):
            return {name: self.taken(program, each) for name, each in value.items()}
        is_torch = type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach")
        if not isinstance(value, (np.ndarray, Shape)) and not is_torch:
            return value
        if id(value) in self.seen:
            return self.seen[id(value)]
        self.torch |= is_torch
        dtype, shape = dtype_of(value.dtype), tuple(value.shape)
        if not shape:
            raise refuse(
                "an argument is an array without dimensions.",
                "a kernel's tensors have one dimension or more; plain numbers are constants.",
                "pass float(x) or x.reshape(1).",
            )
        region = MemoryRegion.shared_hbm if program.cores[0].grid > 1 else MemoryRegion.hbm
        storage = Storage(program, shape, dtype, region)
        storage.argument = True
        program.inputs.append(storage)
        if storage.data is not None:
            array = _numpy(value) if is_torch else value
            whole(storage).array()[...] = array.astype(storage.numpy, copy=False)
        self.host[storage] = value
        tensor = self.seen[id(value)] = whole(storage)
        return tensor

    def given_back(self, program: Program, returned: Any) -> Any:
        """What the kernel returned, as arrays; arguments that were written are updated."""
        if program.values:
            for storage, value in self.host.items():
                if storage.written:
                    _update(value, whole(storage).array())
        return self._result(program, returned)

    def _result(self, program: Program, value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return type(value)(self._result(program, each) for each in value)
        if not isinstance(value, Tensor):
            return value
        _returnable(value)
        if not program.values:
            return Shape(value.shape, value.dtype)
        stored = value.storage
        if stored in self.host and value.shape == stored.shape:
            return self.host[stored]
        array = value.raw().copy()
        if value.dtype == bool_:
            array = array.astype(bool)
        elif array.dtype != value.dtype.numpy:  # NKI_PRECISE_FP=0 keeps 32 bits
            array = array.astype(value.dtype.numpy)
        return _torch(array, value.dtype) if self.torch else array


def _returnable(tensor: Tensor) -> None:
    if tensor.buffer in ON_CHIP or (
        tensor.buffer is MemoryRegion.private_hbm and not tensor.storage.argument
    ):
        raise refuse(
            f"the kernel returns {tensor!r}, which is in {tensor.buffer.value}.",
            "when a kernel has ended, only its tensors in shared HBM are there for others.",
            "allocate out = nl.ndarray(shape, dtype=..., buffer=nl.shared_hbm), nisa.dma_copy the "
            "tile to it, and return out.",
        )
    if tensor.buffer is MemoryRegion.hbm and not tensor.storage.argument:
        doubt(
            "return: the result is in nl.hbm.",
            "since NKI 0.3 results belong in shared HBM; nl.hbm is private to a core.",
            "allocate it with buffer=nl.shared_hbm.",
            tensor.storage.line,
        )


def _numpy(tensor: Any) -> np.ndarray:
    """The elements of a torch tensor; NumPy has no BF16 and FP8 of its own, so by their bits."""
    import torch

    plain = tensor.detach().cpu()
    dtype = dtype_of(plain.dtype)
    if plain.dtype in (torch.bfloat16,) or dtype.is_fp8:
        bits = torch.int16 if dtype.itemsize == 2 else torch.uint8
        return plain.contiguous().view(bits).numpy().view(dtype.numpy)
    return plain.numpy()


def _torch(array: np.ndarray, dtype: DType) -> Any:
    import torch

    made = getattr(torch, str(dtype), None)
    if dtype == "bfloat16" or dtype.is_fp8:
        bits = np.int16 if dtype.itemsize == 2 else np.uint8
        return torch.from_numpy(np.ascontiguousarray(array).view(bits)).view(made)
    return torch.from_numpy(np.ascontiguousarray(array))


def _update(host: Any, array: np.ndarray) -> None:
    """Write a kernel's changes into the caller's array."""
    if isinstance(host, np.ndarray):
        host[...] = array
    else:
        host.detach().copy_(_torch(array, dtype_of(host.dtype)))
