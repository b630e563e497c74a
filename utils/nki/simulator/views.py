"""Views of a tensor: reshaping, permuting, repeating, the same bytes as another type. Nothing is
copied.
"""

import math
from typing import Any, Self

import numpy as np

from utils.nki.simulator.dtypes import dtype_of
from utils.nki.simulator.errors import is_whole, refuse
from utils.nki.simulator.indexing import Indexing


class Views(Indexing):
    """The methods of a tensor that make another view of the same storage."""

    __slots__ = ()

    def permute(self, dims: tuple[int, ...]) -> Self:
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

    def broadcast(self, dim: int, size: int) -> Self:
        """Repeat a dimension of size 1, without a copy: its stride becomes 0."""
        dim = self._dimension(dim)
        self._free(dim, "broadcast")
        self._one(dim, "broadcast")
        if not is_whole(size) or size < 1:
            raise refuse(
                f"broadcast of dimension {dim} of {self!r} to {size!r} elements.",
                "a size is an integer of 1 or more, known at compile time.",
                "write a number, or a size of another tensor.",
            )
        shape, strides = list(self.shape), list(self.strides)
        shape[dim], strides[dim] = int(size), 0
        return self.again(tuple(shape), tuple(strides))

    def expand_dim(self, dim: int) -> Self:
        """A new dimension of size 1 before `dim`."""
        if dim < 0:
            dim += self.ndim + 1
        self._free(dim, "expand_dim")
        stride = self.strides[dim] * self.shape[dim] if dim < self.ndim else 1
        return self.again(
            (*self.shape[:dim], 1, *self.shape[dim:]),
            (*self.strides[:dim], stride, *self.strides[dim:]),
        )

    def squeeze_dim(self, dim: int) -> Self:
        """Without a dimension of size 1."""
        dim = self._dimension(dim)
        self._free(dim, "squeeze_dim")
        self._one(dim, "squeeze_dim")
        return self.again(*self._without(dim))

    def reshape_dim(self, dim: int, shape: tuple[int, ...]) -> Self:
        """One dimension split into several; one size may be -1."""
        dim = self._dimension(dim)
        sizes = self._infer(self.shape[dim], tuple(shape))
        if sizes != (self.shape[dim],):
            self._free(dim, "reshape_dim")
        strides = [self.strides[dim]]
        for size in reversed(sizes[1:]):
            strides.append(strides[-1] * size)
        return self.again(
            self.shape[:dim] + sizes + self.shape[dim + 1 :],
            self.strides[:dim] + tuple(reversed(strides)) + self.strides[dim + 1 :],
        )

    def flatten_dims(self, start_dim: int, end_dim: int) -> Self:
        """Dimensions `start_dim` to `end_dim`, that one included, as one."""
        first, last = self._dimension(start_dim), self._dimension(end_dim)
        merged = math.prod(self.shape[first : last + 1])
        return self.reshape((*self.shape[:first], merged, *self.shape[last + 1 :]))

    def reshape(self, *shape: Any) -> Self:
        """Other sizes for the same elements, where no copy is needed. Dimension 0 stays on chip."""
        asked = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
        sizes = self._infer(self.size, asked)
        rows_stay = self.storage.on_chip or self.indirect is not None
        if rows_stay and sizes[0] != self.shape[0]:
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
        strides = (self.strides[0], *made.strides[1:]) if rows_stay else made.strides
        return self.again(sizes, strides)

    def rearrange(
        self,
        src_pattern: tuple[Any, ...],
        dst_pattern: tuple[Any, ...],
        fixed_sizes: dict[str, int] | None = None,
    ) -> Self:
        """Split, reorder and merge: t.rearrange(("b", ("h", "w")), ("b", "w", "h"), {"h": 4})."""
        sizes = dict(fixed_sizes or {})
        groups = [(item,) if isinstance(item, str) else tuple(item) for item in src_pattern]
        if len(groups) != self.ndim:
            raise refuse(
                f"rearrange: {src_pattern} names {len(groups)} dimensions of {self!r}.",
                "each dimension has a name or a group of names.",
                "write one entry for each dimension.",
            )
        split = self
        names: list[str] = []
        for group, size in zip(groups, self.shape, strict=True):
            known = [sizes.get(name, -1) for name in group]
            parts = self._infer(size, tuple(known))
            split = split.reshape_dim(len(names), parts) if len(group) > 1 else split
            names += group
            sizes.update(zip(group, parts, strict=True))
        wanted = [(item,) if isinstance(item, str) else tuple(item) for item in dst_pattern]
        order = [name for group in wanted for name in group]
        if sorted(order) != sorted(names):
            raise refuse(
                f"rearrange: from {names} to {order}.",
                "both patterns name the same dimensions.",
                "use each name once on both sides.",
            )
        moved = split.permute(tuple(names.index(name) for name in order))
        return moved.reshape(tuple(math.prod(sizes[name] for name in group) for group in wanted))

    def view(self, dtype: Any) -> Self:
        """The same bytes as another type; the last dimension grows or shrinks.

        Raises where the last dimension is strided, or the bytes do not divide.
        """
        new = dtype_of(dtype)
        old, item = self.dtype.itemsize, new.itemsize
        shape, strides = self.shape, self.strides
        if old == item and self.indirect is None:
            return self.again(shape, strides, dtype=new)
        last = shape[-1] * old
        in_one_piece = shape[-1] == 1 or strides[-1] == 1
        others = [s * old for s, n in zip(strides[:-1], shape[:-1], strict=True) if n > 1]
        divides = not any(n % item for n in (*others, self.offset * old, last))
        if self.indirect is not None or not (in_one_piece and divides):
            raise refuse(
                f"view of {self!r} with strides {strides} as {new!r}.",
                f"the last dimension must lie in one piece and hold a multiple of {item} bytes; "
                f"it has {last}.",
                "take the view before slicing or permuting.",
            )
        return self.again(
            (*shape[:-1], last // item),
            (*(s * old // item for s in strides[:-1]), 1),
            self.offset * old // item,
            new,
        )

    reinterpret_cast = view

    def get_pattern(self) -> list[list[int]]:
        """[[stride, count], ...] of this view."""
        return [[s, n] for s, n in zip(self.strides, self.shape, strict=True)]

    def is_contiguous(self) -> bool:
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

    def is_indirect(self) -> bool:
        """Whether elements are found at run time."""
        return self.indirect is not None

    # ---- checks ------------------------------------------------------------------------------

    def _one(self, dim: int, doing: str) -> None:
        if self.shape[dim] != 1:
            raise refuse(
                f"{doing} of dimension {dim} of {self!r}: its size is {self.shape[dim]}, not 1.",
                "only a dimension of size 1 can be repeated or removed.",
                "slice it to one element first.",
            )

    def _infer(self, total: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
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
