"""Views of a tensor: indexing, reshaping, permuting, access patterns. Nothing is copied."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from utils.simulator.dtypes import dtype_of
from utils.simulator.errors import refuse

if TYPE_CHECKING:
    from utils.simulator.tensor import Tensor


class Views:
    """The methods of a tensor that make another view of the same storage."""

    __slots__ = ()

    def __getitem__(self: "Tensor", key: Any) -> "Tensor":
        """Integers, slices with a step, `nl.ds`, ranges and `...`, one for each dimension.

        On chip an integer keeps the partition dimension as size 1, and at least two dimensions stay.
        """
        keys = key if type(key) is tuple else (key,)
        shape, strides, offset = self.shape, self.strides, self.offset
        if len(keys) != len(shape) or Ellipsis in keys:
            keys = self._spread(keys)
        on_chip = self.storage.on_chip
        new_shape: list[int] = []
        new_strides: list[int] = []
        last = None
        for dimension, each in enumerate(keys):
            size = shape[dimension]
            kind = type(each)
            if kind is slice or kind is range:
                start, stop, step = each.start, each.stop, each.step
                if start is None:
                    start = 0
                if stop is None:
                    stop = size
                if step is None:
                    step = 1
                if not (type(start) is int and type(stop) is int and 0 <= start < stop <= size):
                    start, stop = self._bounds(dimension, start, stop)
                if type(step) is not int or step < 1:
                    raise self._bad_key(dimension, each, "steps are integers of 1 or more")
                offset += start * strides[dimension]
                new_shape.append((stop - start + step - 1) // step)
                new_strides.append(strides[dimension] * step)
                continue
            index = self._integer(dimension, each)
            offset += index * strides[dimension]
            if on_chip and dimension == 0:
                new_shape.append(1)
                new_strides.append(strides[0])
            else:
                last = strides[dimension]
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
            if isinstance(key, Views) or hasattr(key, "is_register"):
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
        from utils.simulator.indirect import selected

        return selected(self, dim, index)

    def vector_select(self: "Tensor", dim: int, vector_offset: "Tensor") -> "Tensor":
        """For each partition of the other side its own index of dimension 0. HBM only."""
        from utils.simulator.indirect import vector_selected

        return vector_selected(self, self._dimension(dim), vector_offset)

    def permute(self: "Tensor", dims: tuple[int, ...]) -> "Tensor":
        """The dimensions in another order; on chip dimension 0 stays first."""
        dims = tuple(dims)
        if sorted(dims) != list(range(self.ndim)):
            raise refuse(
                f"permute({dims}) of {self!r}.",
                f"the order names each of the dimensions 0 to {self.ndim - 1} once.",
                f"for example permute({tuple(range(self.ndim))[::-1]}).",
            )
        if dims[0] != 0:
            self._free(0, "permute")
        return self.again(tuple(self.shape[d] for d in dims), tuple(self.strides[d] for d in dims))

    def broadcast(self: "Tensor", dim: int, size: int) -> "Tensor":
        """Repeat a dimension of size 1, without a copy: its stride becomes 0."""
        dim = self._dimension(dim)
        self._free(dim, "broadcast")
        self._one(dim, "broadcast")
        return self.again(
            (*self.shape[:dim], int(size), *self.shape[dim + 1 :]),
            (*self.strides[:dim], 0, *self.strides[dim + 1 :]),
        )

    def expand_dim(self: "Tensor", dim: int) -> "Tensor":
        """A new dimension of size 1 before `dim`."""
        if dim < 0:
            dim += self.ndim + 1
        self._free(dim, "expand_dim")
        stride = self.strides[dim] * self.shape[dim] if dim < self.ndim else 1
        return self.again(
            (*self.shape[:dim], 1, *self.shape[dim:]),
            (*self.strides[:dim], stride, *self.strides[dim:]),
        )

    def squeeze_dim(self: "Tensor", dim: int) -> "Tensor":
        """Without a dimension of size 1."""
        dim = self._dimension(dim)
        self._free(dim, "squeeze_dim")
        self._one(dim, "squeeze_dim")
        return self.again(
            self.shape[:dim] + self.shape[dim + 1 :], self.strides[:dim] + self.strides[dim + 1 :]
        )

    def reshape_dim(self: "Tensor", dim: int, shape: tuple[int, ...]) -> "Tensor":
        """One dimension split into several; one size may be -1."""
        dim = self._dimension(dim)
        sizes = self._inferred(self.shape[dim], tuple(shape))
        if sizes != (self.shape[dim],):
            self._free(dim, "reshape_dim")
        strides = [self.strides[dim]]
        for size in reversed(sizes[1:]):
            strides.append(strides[-1] * size)
        return self.again(
            self.shape[:dim] + sizes + self.shape[dim + 1 :],
            self.strides[:dim] + tuple(reversed(strides)) + self.strides[dim + 1 :],
        )

    def flatten_dims(self: "Tensor", start_dim: int, end_dim: int) -> "Tensor":
        """Dimensions `start_dim` to `end_dim`, that one included, as one."""
        first, last = self._dimension(start_dim), self._dimension(end_dim)
        merged = math.prod(self.shape[first : last + 1])
        return self.reshape((*self.shape[:first], merged, *self.shape[last + 1 :]))

    def reshape(self: "Tensor", *shape: Any) -> "Tensor":
        """Other sizes for the same elements, where no copy is needed. Dimension 0 stays on chip."""
        asked = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
        sizes = self._inferred(self.size, asked)
        if self.storage.on_chip and sizes[0] != self.shape[0]:
            raise refuse(
                f"reshape of {self!r} to {sizes}: {self.shape[0]} partitions would become "
                f"{sizes[0]}.",
                "partitions are separate memories: elements cannot change partition without being "
                "moved.",
                "keep dimension 0, or move data with nisa.dma_copy or nisa.nc_transpose.",
            )
        layout = np.lib.stride_tricks.as_strided(np.empty(1, np.int8), self.shape, self.strides)
        try:
            made = np.reshape(layout, sizes, copy=False)
        except ValueError:
            raise refuse(
                f"reshape of {self!r} with strides {self.strides} to {sizes}.",
                "after this slice or permute the elements do not lie so that the new shape is a "
                "view.",
                "reshape before slicing, or copy the tile with nisa.tensor_copy first.",
            ) from None
        return self.again(sizes, made.strides)

    def rearrange(
        self: "Tensor",
        src_pattern: tuple[Any, ...],
        dst_pattern: tuple[Any, ...],
        fixed_sizes: dict[str, int] | None = None,
    ) -> "Tensor":
        """Split, reorder and merge: t.rearrange(("b", ("h", "w")), ("b", "w", "h"), {"h": 4})."""
        sizes = dict(fixed_sizes or {})
        groups = [(each,) if isinstance(each, str) else tuple(each) for each in src_pattern]
        if len(groups) != self.ndim:
            raise refuse(
                f"rearrange: {src_pattern} names {len(groups)} dimensions of {self!r}.",
                "each dimension has a name or a group of names.",
                "write one entry for each dimension.",
            )
        split: Tensor = self
        names: list[str] = []
        for group, size in zip(groups, self.shape, strict=True):
            known = [sizes.get(name, -1) for name in group]
            parts = self._inferred(size, tuple(known))
            split = split.reshape_dim(len(names), parts) if len(group) > 1 else split
            names += group
            sizes.update(zip(group, parts, strict=True))
        wanted = [(each,) if isinstance(each, str) else tuple(each) for each in dst_pattern]
        order = [name for group in wanted for name in group]
        if sorted(order) != sorted(names):
            raise refuse(
                f"rearrange: from {names} to {order}.",
                "both patterns name the same dimensions.",
                "use each name once on both sides.",
            )
        moved = split.permute(tuple(names.index(name) for name in order))
        return moved.reshape(tuple(math.prod(sizes[name] for name in group) for group in wanted))

    def ap(
        self: "Tensor",
        pattern: Any,
        offset: int | None = None,
        scalar_offset: Any = None,
        vector_offset: Any = None,
        indirect_dim: int = 0,
        dtype: Any = None,
    ) -> "Tensor":
        """A free access pattern [[stride, count], ...] over the storage, in elements.

        On chip the first pair is the partition; its stride is the elements of a partition. `offset`
        is added to where the view begins. `scalar_offset` and `vector_offset` move it at run time.
        """
        from utils.simulator.patterns import pattern_view

        return pattern_view(
            self, pattern, offset, scalar_offset, vector_offset, indirect_dim, dtype
        )

    def view(self: "Tensor", dtype: Any) -> "Tensor":
        """The same bytes read as another type; the last dimension grows or shrinks."""
        new = dtype_of(dtype)
        old, item = self.dtype.itemsize, new.itemsize
        last = self.shape[-1] * old
        inner = [s * old for s in self.strides[:-1]] + [self.offset * old, last]
        if self.indirect is not None or self.strides[-1] != 1 or any(n % item for n in inner):
            raise refuse(
                f"view of {self!r} with strides {self.strides} as {new!r}.",
                f"the last dimension must lie in one piece and hold a multiple of {item} bytes.",
                "take the view before slicing or permuting.",
            )
        strides = tuple(s * old // item for s in self.strides[:-1])
        return self.again(
            (*self.shape[:-1], last // item), (*strides, 1), self.offset * old // item, new
        )

    reinterpret_cast = view

    def get_pattern(self: "Tensor") -> list[list[int]]:
        """[[stride, count], ...] of this view."""
        return [[s, n] for s, n in zip(self.strides, self.shape, strict=True)]

    def is_contiguous(self: "Tensor") -> bool:
        """Whether the elements (of each partition, on chip) lie one after the other."""
        first = 1 if self.storage.on_chip else 0
        step = 1
        for size, stride in zip(
            reversed(self.shape[first:]), reversed(self.strides[first:]), strict=True
        ):
            if size != 1 and stride != step:
                return False
            step *= size
        return True

    def is_indirect(self: "Tensor") -> bool:
        """Whether elements are found at run time."""
        return self.indirect is not None

    def __setitem__(self: "Tensor", key: Any, value: Any) -> None:
        """`tile[...] = other` is a copy by an engine, or a DMA where one side is in HBM."""
        from utils.simulator.language import assign

        assign(self[key], value)

    # ---- checks ------------------------------------------------------------------------------

    def _dimension(self: "Tensor", dim: int) -> int:
        if not isinstance(dim, (int, np.integer)) or not -self.ndim <= dim < self.ndim:
            raise refuse(
                f"dimension {dim!r} of {self!r}.",
                f"it has the dimensions 0 to {self.ndim - 1}.",
                "name one of them.",
            )
        return int(dim) % self.ndim

    def _free(self: "Tensor", dim: int, doing: str) -> None:
        if dim == 0 and (self.storage.on_chip or self.indirect is not None):
            raise refuse(
                f"{doing} of the partition dimension (dimension 0) of {self!r}.",
                "partitions are separate memories; a view cannot rearrange them.",
                "use a free dimension (1 or later), or move data between partitions.",
            )

    def _one(self: "Tensor", dim: int, doing: str) -> None:
        if self.shape[dim] != 1:
            raise refuse(
                f"{doing} of dimension {dim} of {self!r}: its size is {self.shape[dim]}, not 1.",
                "only a dimension of size 1 can be repeated or removed.",
                "slice it to one element first.",
            )

    def _inferred(self: "Tensor", total: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """Sizes with one -1 filled in; their product must be `total`."""
        known = math.prod(n for n in sizes if n != -1)
        if sizes.count(-1) == 1 and known and total % known == 0:
            sizes = tuple(total // known if n == -1 else n for n in sizes)
        if any(n < 1 for n in sizes) or math.prod(sizes) != total:
            raise refuse(
                f"{total} elements of {self!r} do not make the shape {sizes}.",
                "a view has exactly the elements it had before, and one size may be -1.",
                f"choose sizes with the product {total}.",
            )
        return sizes
