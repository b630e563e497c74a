"""The arrays of a puzzle cut into tiles: as a grid of numbers, and as text for a terminal."""

from typing import NamedTuple

from utils.nki.puzzles.catalog import Puzzle, Sizes, size_of

MOST = 4
"""Rows and columns of tiles that are drawn; more are counted."""


class Grid(NamedTuple):
    """An array and its tiles: sizes in elements, the last tile of a row or column may be less."""

    name: str
    dtype: str
    shape: tuple[int, int]
    tile: tuple[int, int]

    @property
    def counts(self) -> tuple[int, int]:
        """Rows and columns of tiles."""
        return -(-self.shape[0] // self.tile[0]), -(-self.shape[1] // self.tile[1])


def grids(puzzle: Puzzle, sizes: Sizes | None = None) -> list[Grid]:
    """The tiles of every array that has a tile in the data; by default at the largest sizes that
    are tested. The first of three dimensions is left out: the picture is of one slice."""
    sizes = sizes or {name: max(values) for name, values in puzzle.sizes.items()}
    results = []
    for array in (*puzzle.arguments, puzzle.result):
        if array.name in puzzle.tiles:
            shape = (1, *array.shape(sizes))[-2:]
            rows, columns = (size_of(size, sizes) for size in puzzle.tiles[array.name])
            tile = min(rows, shape[0]), min(columns, shape[1])
            results.append(Grid(array.name, array.dtype, (shape[0], shape[1]), tile))
    return results


def draw(grid: Grid) -> list[str]:
    """One array as lines of text; partitions run down.

    >>> print(*draw(Grid("x", "float32", (200, 64), (128, 64))), sep="\\n")
    x (200, 64) float32, 2 x 1 tiles
    +------+
    |      | 128
    +------+
    |      | 72
    +------+
      64
    """
    rows, columns = grid.counts
    across = [_part(grid.shape[1], grid.tile[1], c) for c in range(min(columns, MOST))]
    edge = "+" + "------+" * len(across)
    more = "..." if columns > MOST else ""
    lines = [f"{grid.name} {grid.shape} {grid.dtype}, {rows} x {columns} tiles", edge]
    for row in range(min(rows, MOST)):
        height = _part(grid.shape[0], grid.tile[0], row)
        lines += [f"|{'      |' * len(across)}{more} {height}", edge]
    if rows > MOST:
        lines.append("  ...")
    return [*lines, "".join(f"  {width:<5}" for width in across).rstrip()]


def _part(size: int, tile: int, index: int) -> int:
    return min(tile, size - index * tile)


def text(puzzle: Puzzle) -> str:
    """All arrays of a puzzle below each other."""
    head = "Tiles at the largest tested sizes, rows down (on chip: partitions), in elements:"
    return "\n".join([head, *(line for grid in grids(puzzle) for line in draw(grid))])
