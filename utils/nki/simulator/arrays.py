"""Host arrays and tensors of HBM: how arguments come in and results go out."""

import copy
import dataclasses
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from utils.nki.simulator.dtypes import SCALAR, DType, bool_, dtype_of
from utils.nki.simulator.enums import ON_CHIP, MemoryRegion
from utils.nki.simulator.errors import doubt, refuse
from utils.nki.simulator.memory import Storage
from utils.nki.simulator.program import Program
from utils.nki.simulator.tensor import Tensor, whole

DEEPEST = 16
NARROWER = {"float64": "float32", "int64": "int32", "uint64": "uint32"}


@dataclass(frozen=True)
class Shape:
    """An array without numbers: enough for rules and times, at any size.

    >>> Shape((4096, 8192), "bfloat16").shape
    (4096, 8192)
    """

    shape: tuple[int, ...]
    dtype: Any = "float32"


def is_torch(value: Any) -> bool:
    """Whether it is a torch tensor, without importing torch."""
    return type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "detach")


def is_array(value: Any) -> bool:
    """What becomes a tensor: NumPy and torch arrays, and shapes that stand for them."""
    return isinstance(value, (np.ndarray, Shape)) or is_torch(value)


def map_values(value: Any, change: Callable[[Any], Any], wanted: Callable[[Any], bool]) -> Any:
    """`value` with every `wanted` thing inside changed: in tuples, lists, dictionaries, dataclasses
    and NKIObjects, which are copied where anything in them changes."""
    return _map(value, change, wanted, 0)


def _map(value: Any, change: Any, wanted: Any, depth: int) -> Any:
    if wanted(value):
        return change(value)
    if depth > DEEPEST:
        return value
    if isinstance(value, (tuple, list)):
        made = [_map(item, change, wanted, depth + 1) for item in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    if isinstance(value, dict):
        return {name: _map(item, change, wanted, depth + 1) for name, item in value.items()}
    if not isinstance(value, type) and _has_fields(value):
        changed = {
            name: new
            for name, old in vars(value).items()
            if (new := _map(old, change, wanted, depth + 1)) is not old
        }
        if changed:
            value = copy.copy(value)
            for name, new in changed.items():
                object.__setattr__(value, name, new)
    return value


def _has_fields(value: Any) -> bool:
    kind = type(value)
    is_object = any(item.__name__ == "NKIObject" for item in kind.__mro__)
    return hasattr(value, "__dict__") and (dataclasses.is_dataclass(kind) or is_object)


def any_shape(value: Any) -> bool:
    """Whether a `Shape` is anywhere among the arguments: then there are no numbers."""
    return bool(collect(value, lambda item: isinstance(item, Shape)))


def collect(value: Any, wanted: Callable[[Any], bool]) -> list[Any]:
    """Every `wanted` thing in `value`, in order, however it is packed."""
    results: list[Any] = []

    def keep(thing: Any) -> Any:
        results.append(thing)
        return thing

    map_values(value, keep, wanted)
    return results


def separate_shapes(value: Any) -> Any:
    """Every `Shape` an object of its own: the same array twice is one tensor, but a shape that is
    written twice stands for two arrays."""
    return map_values(
        value, lambda item: Shape(item.shape, item.dtype), lambda item: isinstance(item, Shape)
    )


@dataclass
class Arrays:
    """The host arrays of one call, by the storage that stands for them."""

    host: dict[Storage, Any] = field(default_factory=dict)
    seen: dict[int, Tensor] = field(default_factory=dict)
    torch: bool = False

    def take(self, program: Program, value: Any) -> Any:
        """An argument as the kernel sees it: arrays become tensors, everything else stays."""
        return map_values(value, lambda array: self._tensor(program, array), is_array)

    def _tensor(self, program: Program, value: Any) -> Tensor:
        if id(value) in self.seen:
            return self.seen[id(value)]
        self.torch |= is_torch(value)
        dtype, shape = _supported_type(value), tuple(value.shape)
        if not shape or 0 in shape:
            raise refuse(
                f"an argument is an array of shape {shape}.",
                "a kernel's tensors have one dimension or more, and at least one element.",
                "pass x.reshape(1) for a tensor of one number; plain numbers are constants.",
            )
        region = MemoryRegion.shared_hbm if program.cores[0].grid > 1 else MemoryRegion.hbm
        storage = program.allocate(shape, dtype, region)
        storage.argument = True
        program.inputs.append(storage)
        if storage.values:
            fill(storage, value)
        self.host[storage] = value
        tensor = self.seen[id(value)] = whole(storage)
        tensor.shape = ShapeGiven(shape)
        return tensor

    def give_back(self, program: Program, returned: Any) -> Any:
        """What the kernel returned, as arrays; arguments that were written are updated."""
        if program.values:
            for storage, value in self.host.items():
                if storage.written:
                    _update(value, array_of(whole(storage)))
        return map_values(returned, self._result if program.values else shape_of, is_tensor)

    def _result(self, tensor: Tensor) -> Any:
        check_returnable(tensor)
        stored = tensor.storage
        if stored in self.host and tensor.shape == stored.shape and tensor.dtype == stored.dtype:
            return self.host[stored]
        array = array_of(tensor)
        return _torch(array, tensor.dtype) if self.torch else array


class ShapeGiven(tuple[int, ...]):
    """The shape of an argument, which kernels of the documentation compare with lists, too.

    >>> ShapeGiven((4, 8)) == [4, 8], ShapeGiven((4, 8)) == (4, 8)
    (True, True)
    """

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, tuple(other) if isinstance(other, list) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__


def is_tensor(value: Any) -> bool:
    """Whether it is a tensor of a kernel."""
    return isinstance(value, Tensor)


def shape_of(tensor: Tensor) -> Shape:
    """What is known of a result without numbers."""
    check_returnable(tensor)
    return Shape(tensor.shape, tensor.dtype)


def shapes_of(returned: Any) -> Any:
    """What a kernel returned, without numbers."""
    return map_values(returned, shape_of, is_tensor)


def fill(storage: Storage, value: Any) -> None:
    """Put a host array into an allocation."""
    array = _numpy(value) if is_torch(value) else value
    storage.overwritten()
    whole(storage).array()[...] = array.astype(storage.numpy, copy=False)


def array_of(tensor: Tensor) -> np.ndarray:
    """A copy of a tensor's elements, in the NumPy type of its type."""
    array = tensor.raw().copy()
    if tensor.dtype == bool_:
        return array.astype(bool)
    if array.dtype != tensor.dtype.numpy:  # NKI_PRECISE_FP=0 keeps 32 bits
        return array.astype(tensor.dtype.numpy)
    return array


def check_returnable(tensor: Tensor) -> None:
    """A result lies in shared HBM; `nl.hbm` is accepted with a warning."""
    if tensor.buffer in ON_CHIP or (
        tensor.buffer is MemoryRegion.private_hbm and not tensor.storage.argument
    ):
        raise refuse(
            f"the kernel returns {tensor!r}, which is in {tensor.buffer.value}.",
            "when a kernel has ended, only its tensors in shared HBM are there for others.",
            "allocate out = nl.ndarray(shape, dtype=..., buffer=nl.shared_hbm), nisa.dma_copy the "
            "tile to it, and return out.",
        )
    if tensor.indirect is not None:
        raise refuse(
            f"the kernel returns {tensor!r}, whose elements are found at run time.",
            "nothing looks up indices after the kernel has ended.",
            "nisa.dma_copy it to a tensor in shared HBM, and return that.",
        )
    if tensor.buffer is MemoryRegion.hbm and not tensor.storage.argument:
        doubt(
            "return: the result is in nl.hbm.",
            "since NKI 0.3 results belong in shared HBM; nl.hbm is private to a core.",
            "allocate it with buffer=nl.shared_hbm.",
            tensor.storage.line,
        )


def _supported_type(array: Any) -> DType:
    """The NKI type of a host array; of 64-bit types, NumPy's defaults, it says what to do."""
    name = str(array.dtype).removeprefix("torch.")
    if name not in NARROWER:
        return dtype_of(array.dtype)
    if name in SCALAR and math.prod(array.shape) == 1:
        return SCALAR[name]
    other = NARROWER[name]
    converted = f"x.to(torch.{other})" if is_torch(array) else f"x.astype(np.{other})"
    raise refuse(
        f"an argument of shape {tuple(array.shape)} is {name}.",
        "a NeuronCore has no numbers of 64 bits; they are NumPy's defaults.",
        f"convert to {other} first: {converted}.",
    )


def _numpy(tensor: Any) -> np.ndarray:
    """The elements of a torch tensor; NumPy has no BF16 and FP8 of its own, so by their bits."""
    torch = sys.modules["torch"]  # a tensor was given, so it is there; nothing here imports it

    plain = tensor.detach().cpu()
    dtype = dtype_of(plain.dtype)
    if plain.dtype is torch.bfloat16 or dtype.is_fp8:
        bits = torch.int16 if dtype.itemsize == 2 else torch.uint8
        return plain.contiguous().view(bits).numpy().view(dtype.numpy)
    return plain.numpy()


def _torch(array: np.ndarray, dtype: DType) -> Any:
    """The same bits as a torch tensor; `array` itself where torch has no such type."""
    torch = sys.modules["torch"]

    made = getattr(torch, str(dtype), None)
    if made is None:
        return array
    if dtype == "bfloat16" or dtype.is_fp8:
        bits = np.int16 if dtype.itemsize == 2 else np.uint8
        return torch.from_numpy(np.ascontiguousarray(array).view(bits)).view(made)
    return torch.from_numpy(np.ascontiguousarray(array))


def _update(host: Any, array: np.ndarray) -> None:
    """Write a kernel's changes into the caller's array."""
    if not isinstance(host, np.ndarray):
        host.detach().copy_(_torch(array, dtype_of(host.dtype)))
        return
    if not host.flags.writeable:
        raise refuse(
            f"the kernel writes to an argument {host.shape} {host.dtype} that is read-only here.",
            "what a kernel writes to an argument is written to the caller's array.",
            "pass x.copy(), or let the kernel return a new tensor.",
        )
    host[...] = array
