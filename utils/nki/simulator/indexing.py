"""Indexing a tensor: integers, slices and `nl.ds` make views that share its storage."""

from typing import TYPE_CHECKING, Any

import numpy as np

from utils.nki.simulator.errors import refuse

if TYPE_CHECKING:
    from utils.nki.simulator.tensor import Tensor


class Indexing:
    """What `t[...]` means, and the methods that say the same by name."""

    __slots__ = ()

    def __getitem__(self: "Tensor", key: Any) -> "Tensor":
        """Integers, slices with a step, `nl.ds`, ranges and `...`, one for each dimension.

        On chip an integer keeps the partition as size 1, and at least two dimensions stay.
        """
        keys = key if type(key) is tuple else (key,)
        shape, strides, offset = self.shape, self.strides, self.offset
        if len(keys) != len(shape):
            keys = self._spread(keys)
        on_chip = self.storage.on_chip
        new_shape: list[int] = []
        new_strides: list[int] = []
        last = None
        for dimension, each in enumerate(keys):
            size, stride = shape[dimension], strides[dimension]
            kind = type(each)
            if kind is slice or kind is range:
                start, stop, step = each.start, each.stop, each.step
                if start is None:
                    start = 0
                if stop is None:
                    stop = size
                if not (type(start) is int and type(stop) is int and 0 <= start < stop <= size):
                    start, stop = self._bounds(dimension, start, stop)
                offset += start * stride
                if step is None:
                    new_shape.append(stop - start)
                    new_strides.append(stride)
                else:
                    step = self._step(dimension, each)
                    new_shape.append((stop - start + step - 1) // step)
                    new_strides.append(stride * step)
                continue
            if each is Ellipsis:
                return self[self._spread(keys)]
            index = self._integer(dimension, each)
            offset += index * stride
            if on_chip and dimension == 0:
                new_shape.append(1)
                new_strides.append(stride)
            else:
                last = stride
        minimum = 2 if on_chip else 1
        if len(new_shape) < minimum:
            new_shape.append(1)
            new_strides.append(last if last is not None else 1)
        if self.indirect is not None:
            self.indirect.check_view(self, keys)
        return self.again(tuple(new_shape), tuple(new_strides), offset)

    def _spread(self: "Tensor", keys: tuple[Any, ...]) -> tuple[Any, ...]:
        """One key for each dimension: `...` and missing keys become full slices."""
        dots = [i for i, each in enumerate(keys) if each is Ellipsis]
        given = len(keys) - len(dots)
        if len(dots) > 1 or given > self.ndim:
            raise refuse(
                f"{self!r} has {self.ndim} dimensions and is indexed with {given}: {keys!r}.",
                "each dimension takes one index.",
                f"use at most {self.ndim} indices and one '...'.",
            )
        at = dots[0] if dots else len(keys)
        rest = keys[at + 1 :] if dots else ()
        return (*keys[:at], *(slice(None),) * (self.ndim - given), *rest)

    def _bad_key(self: "Tensor", dimension: int, key: Any, why: str) -> Exception:
        return refuse(
            f"index {key!r} for dimension {dimension} of {self!r}, which has "
            f"{self.shape[dimension]} elements.",
            why + ".",
            "use integers, slices such as 0:128, or nl.ds(start, size).",
        )

    def _integer(self: "Tensor", dimension: int, key: Any) -> int:
        size = self.shape[dimension]
        if isinstance(key, bool) or not isinstance(key, (int, np.integer)):
            if isinstance(key, Indexing) or hasattr(key, "is_register"):
                raise refuse(
                    f"dimension {dimension} of {self!r} is indexed with {key!r}.",
                    "this index is only known at run time, a view is fixed at compile time.",
                    "use t.ap(pattern, scalar_offset=index) or t.select(dimension, index).",
                )
            raise self._bad_key(dimension, key, "an index is an integer known at compile time")
        index = int(key)
        if not -size <= index < size:
            raise self._bad_key(dimension, key, f"indices go from {-size} to {size - 1}")
        return index % size

    def _bounds(self: "Tensor", dimension: int, start: Any, stop: Any) -> tuple[int, int]:
        """Start and stop of a slice, checked; NumPy would cut them off without a word."""
        size = self.shape[dimension]
        for each in (start, stop):
            if isinstance(each, bool) or not isinstance(each, (int, np.integer)):
                self._integer(dimension, each)
        first = int(start) + size if start < 0 else int(start)
        last = int(stop) + size if stop < 0 else int(stop)
        if not 0 <= first < last <= size:
            raise refuse(
                f"slice {start}:{stop} of dimension {dimension} of {self!r}, which has {size} "
                "elements.",
                "a view covers existing elements only, at least one; a partial last tile is not "
                "cut off for you.",
                f"end at min({stop}, {size}), and give the other operands the same size.",
            )
        return first, last

    def _step(self: "Tensor", dimension: int, key: Any) -> int:
        step = key.step
        if isinstance(step, bool) or not isinstance(step, (int, np.integer)) or step < 1:
            raise self._bad_key(dimension, key, "steps are integers of 1 or more")
        return int(step)

    def slice(self: "Tensor", dim: int, start: int, end: int, step: int = 1) -> "Tensor":
        """The elements start, start + step, ... before `end` of one dimension."""
        keys: list[Any] = [slice(None)] * self.ndim
        keys[self._dimension(dim)] = slice(start, end, step)
        return self[tuple(keys)]

    def select(self: "Tensor", dim: int, index: Any) -> "Tensor":
        """One element of a dimension, which goes; a tensor or register selects at run time."""
        dim = self._dimension(dim)
        if isinstance(index, (int, np.integer)):
            index = self._integer(dim, index)
            self._free(dim, "select")
            shape = self.shape[:dim] + self.shape[dim + 1 :]
            strides = self.strides[:dim] + self.strides[dim + 1 :]
            return self.again(shape, strides, self.offset + index * self.strides[dim])
        from utils.nki.simulator.indirect import selected

        return selected(self, dim, index)

    def vector_select(self: "Tensor", dim: int, vector_offset: "Tensor") -> "Tensor":
        """For each partition of the other side its own index of dimension 0. HBM only."""
        from utils.nki.simulator.indirect import vector_selected

        return vector_selected(self, self._dimension(dim), vector_offset)

    def __setitem__(self: "Tensor", key: Any, value: Any) -> None:
        """`tile[...] = other` is a copy by an engine, or a DMA where one side is in HBM."""
        from utils.nki.simulator.language import assign

        assign(self[key], value)

    def _dimension(self: "Tensor", dim: int) -> int:
        if not isinstance(dim, (int, np.integer)) or not -self.ndim <= dim < self.ndim:
            raise refuse(
                f"dimension {dim!r} of {self!r}.",
                f"it has the dimensions 0 to {self.ndim - 1}.",
                "name one of them.",
            )
        return int(dim) % self.ndim
