"""Grids of tiles and of blocks over a tensor (NKI 0.7): views by coordinates, nothing is moved.

A grid tiles the last dimensions of a tensor; those before them count slabs. Indexing keeps the
grid, `.data` is the operand of an instruction. The last tile of a dimension is cut to what is
there. On chip a grid of more rows than there are partitions lies in one dense tile: row of tiles
after row of tiles along the free dimension, and only selections within one such row have `.data`.
(AWS: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/api/generated/nki.language.tiles.html)
"""

import math
from typing import Any, Self

from utils.nki.simulator.dtypes import DType
from utils.nki.simulator.enums import ON_CHIP, MemoryRegion
from utils.nki.simulator.errors import is_whole, refuse
from utils.nki.simulator.language.allocation import ndarray
from utils.nki.simulator.tensor import Tensor

Sizes = tuple[int, ...]


class NkiGrid:
    """What grids of tiles and of blocks have in common; made by `tiles`, `blocks` and `alloc_...`.

    tile_shape: elements of a tile. source: the tensor; extent: the elements of each dimension of
    it; start, stop: the selected part, in elements; kept: the dimensions that are still indexed.
    """

    def __init__(
        self, source: Tensor, extent: Sizes, tile_shape: Sizes, block_shape: Sizes,
        part: tuple[Sizes, Sizes] | None = None, kept: Sizes | None = None,
    ) -> None:  # fmt: skip
        self.source, self.extent = source, extent
        self.tile_shape, self._block = tile_shape, block_shape
        self.start, self.stop = part or ((0,) * len(extent), extent)
        self.kept = tuple(range(len(extent))) if kept is None else kept

    # ---- what it is --------------------------------------------------------------------------

    @property
    def dtype(self) -> DType:
        """The type of its elements."""
        return self.source.dtype

    @property
    def buffer(self) -> MemoryRegion:
        """The memory that it lies in."""
        return self.source.buffer

    @property
    def index_step_elements(self) -> Sizes:
        """Elements from one coordinate to the next, for each dimension that is still indexed."""
        return tuple(self._steps()[d] for d in self.kept)

    @property
    def shape(self) -> Sizes:
        """How many tiles, or blocks, there are; slabs for the dimensions before."""
        steps = self._steps()
        return tuple(math.ceil((self.stop[d] - self.start[d]) / steps[d]) for d in self.kept)

    @property
    def element_shape(self) -> Sizes:
        """How many elements are selected, without the slab dimensions that an integer chose."""
        slabs = len(self.extent) - len(self.tile_shape)
        return tuple(
            b - a
            for d, (a, b) in enumerate(zip(self.start, self.stop, strict=True))
            if d >= slabs or d in self.kept
        )

    @property
    def is_remainder(self) -> bool:
        """Whether the selection has a tile or block that is cut off by the end of the tensor."""
        steps = self._steps()
        return any((b - a) % step for a, b, step in zip(self.start, self.stop, steps, strict=True))

    @property
    def is_data_representable(self) -> bool:
        """Whether one operand, `data`, can be the selection."""
        rows = self._dense_rows()
        return rows is None or self.stop[0] <= (self.start[0] // rows + 1) * rows

    @property
    def data(self) -> Tensor:
        """The selection as the operand of an instruction."""
        rows = self._dense_rows()
        where: tuple[Any, ...] = tuple(map(slice, self.start, self.stop))
        if rows is not None:
            if not self.is_data_representable:
                raise refuse(
                    f".data of {self!r}: it reaches over several rows of tiles.",
                    f"a tile on chip has {rows} partitions, so rows of tiles lie beside each "
                    "other, and no access pattern joins them.",
                    "loop over the rows of the grid and take grid[i, ...].data.",
                )
            row, first = divmod(self.start[0], rows)
            columns = row * self.extent[1]
            where = (
                slice(first, self.stop[0] - row * rows),
                slice(columns + self.start[1], columns + self.stop[1]),
            )
        slabs = len(self.extent) - len(self.tile_shape)
        chosen = tuple(
            self.start[d] if d < slabs and d not in self.kept else part
            for d, part in enumerate(where)
        )
        return self.source[chosen]

    def __repr__(self) -> str:
        return f"<grid {self.shape} of {self.element_shape} elements of {self.source!r}>"

    def _steps(self) -> Sizes:
        slabs = len(self.extent) - len(self.tile_shape)
        tile = zip(self.tile_shape, self._block or (1,) * len(self.tile_shape), strict=True)
        return (1,) * slabs + tuple(size * count for size, count in tile)

    def _dense_rows(self) -> int | None:
        """Rows of a dense tile on chip, where its grid has more; else None."""
        dense = self.source.buffer in ON_CHIP and self.extent != self.source.shape
        return self.source.shape[0] if dense else None

    # ---- parts of it -------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Self:
        """A part by coordinates: an integer picks one and uses the dimension up, a slice keeps it.

        Raises NkiValidationError for a coordinate outside, a step, or too many of them.
        """
        keys = key if isinstance(key, tuple) else (key,)
        shape, steps = self.shape, self._steps()
        if len(keys) > len(shape):
            raise self._refuse(keys, f"it has {len(shape)} dimensions to index")
        start, stop, kept = list(self.start), list(self.stop), list(self.kept)
        for d, count, item in zip(self.kept, shape, keys, strict=False):
            if isinstance(item, slice):
                first, last, step = item.indices(count)
                if step != 1 or first >= last:
                    raise self._refuse(keys, "a slice selects one or more neighbours")
            else:
                if not is_whole(item) or not -count <= item < count:
                    raise self._refuse(keys, f"a coordinate is a Python int below {count}")
                first = item % count
                last = first + 1
                kept.remove(d)
            begin = self.start[d]
            start[d] = begin + first * steps[d]
            stop[d] = min(begin + last * steps[d], self.stop[d])
        part = tuple(start), tuple(stop)
        return type(self)(self.source, self.extent, self.tile_shape, self._block, part, tuple(kept))

    def _refuse(self, keys: Any, why: str) -> Exception:
        return refuse(
            f"{list(keys)} of a grid of shape {self.shape}.",
            f"{why}.",
            "index it like grid[i, j] or grid[i, :], with numbers known when the kernel is "
            "compiled.",
        )


class NkiTileGrid(NkiGrid):
    """A tensor by the coordinates of its tiles."""


class NkiBlockGrid(NkiGrid):
    """A tensor by the coordinates of blocks of tiles; `tiles(block)` shows the tiles of one."""

    @property
    def block_shape(self) -> Sizes:
        """Tiles of a block along each tiled dimension."""
        return self._block


def tiles(source: Any, *, tile_shape: Any = None) -> NkiTileGrid:
    """The grid of tiles of a tensor, or of what a grid has selected (with its own tile_shape)."""
    return _regroup(NkiTileGrid, "tiles", source, tile_shape, ())


def blocks(source: Any, *, tile_shape: Any = None, block_shape: Any) -> NkiBlockGrid:
    """The grid of blocks of `block_shape` tiles each."""
    return _regroup(NkiBlockGrid, "blocks", source, tile_shape, block_shape)


def alloc_tiles(
    *, tile_shape: Any, element_shape: Any, buffer: Any, dtype: Any, address: Any = None,
    name: str = "",
) -> NkiTileGrid:  # fmt: skip
    """A new tensor of `element_shape` as a grid of tiles; its content is not defined."""
    place = {"buffer": buffer, "dtype": dtype, "address": address, "name": name}
    return _allocate(NkiTileGrid, "alloc_tiles", tile_shape, (), element_shape, place)


def alloc_blocks(
    *, tile_shape: Any, block_shape: Any, element_shape: Any, buffer: Any, dtype: Any,
    address: Any = None, name: str = "",
) -> NkiBlockGrid:  # fmt: skip
    """A new tensor of `element_shape` as a grid of blocks; its content is not defined."""
    place = {"buffer": buffer, "dtype": dtype, "address": address, "name": name}
    return _allocate(NkiBlockGrid, "alloc_blocks", tile_shape, block_shape, element_shape, place)


def _regroup(kind: Any, name: str, source: Any, tile_shape: Any, block_shape: Any) -> Any:
    if isinstance(source, NkiGrid):
        shape = source.tile_shape if tile_shape is None else tile_shape
        part, slabs = (source.start, source.stop), len(source.extent) - len(source.tile_shape)
        kept = tuple(d for d in range(len(source.extent)) if d >= slabs or d in source.kept)
        _check(name, shape, source.extent, block_shape)
        if len(shape) != len(source.tile_shape):
            raise _wrong(name, f"tile_shape {shape} over tiles of {source.tile_shape}")
        return kind(source.source, source.extent, tuple(shape), tuple(block_shape), part, kept)
    if not isinstance(source, Tensor):
        raise _wrong(name, f"source is {source!r}, it takes a tensor or a grid")
    _check(name, tile_shape, source.shape, block_shape)
    return kind(source, source.shape, tuple(tile_shape), tuple(block_shape))


def _allocate(
    kind: Any, name: str, tile_shape: Any, block_shape: Any, extent: Any, place: dict[str, Any]
) -> Any:
    if not _is_sizes(extent):
        raise _wrong(name, f"element_shape is {extent!r}, a tuple of positive integers")
    _check(name, tile_shape, extent, block_shape)
    shape = extent
    if place["buffer"] in ON_CHIP:
        if len(extent) != 2:
            raise _wrong(name, f"element_shape {extent} on chip has 2 dimensions")
        rows = tile_shape[0]
        if extent[0] > rows:
            shape = (rows, math.ceil(extent[0] / rows) * extent[1])
    return kind(ndarray(shape, **place), extent, tuple(tile_shape), tuple(block_shape))


def _is_sizes(value: Any) -> bool:
    return isinstance(value, tuple) and all(type(n) is int and n > 0 for n in value)


def _check(name: str, tile_shape: Any, extent: Sizes, block_shape: Any) -> None:
    if not _is_sizes(tile_shape) or not 2 <= len(tile_shape) <= len(extent):
        raise _wrong(
            name,
            f"tile_shape is {tile_shape!r}; a tuple of 2 to {len(extent)} positive integers, for "
            f"the last dimensions of {tuple(extent)}",
        )
    if block_shape != () and (not _is_sizes(block_shape) or len(block_shape) != len(tile_shape)):
        raise _wrong(name, f"block_shape is {block_shape!r}; a tuple of {len(tile_shape)} counts")


def _wrong(name: str, what: str) -> Exception:
    return refuse(
        f"nl.{name}: {what}.",
        "a grid cuts the last dimensions of a tensor into tiles of one size.",
        f"nl.{name}(x, tile_shape=(128, 512){', block_shape=(2, 2)' if 'blocks' in name else ''}).",
    )
