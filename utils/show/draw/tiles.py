"""Figures of NKI: three memories and who reaches them, a tile in its partitions, the operands of a
product, the order in which a view reads.

Sizes of the memories come from the facts; everything else comes in as arguments.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from utils.facts import figure as fact
from utils.show.draw.hardware import EDGE, PALE
from utils.show.draw.picture import COLORS, Picture, finish, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from utils.nki.puzzles.catalog import Puzzle

ROWS = (COLORS[4], COLORS[1], COLORS[2], COLORS[3])
"""Colours of rows; black text can be read on them."""
LABEL = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
ARROW = {"color": "0.3", "shrinkA": 0, "shrinkB": 0}


def memories(chip: str) -> Picture:
    """HBM, SBUF and PSUM of one core of "trainium2", with tiles in them, and what connects them."""

    def of(key: str, unit: str) -> str:
        return f"{fact(f'{chip}.{key}').to(unit):,.4g} {unit}"

    partitions, banks = (
        int(fact(f"{chip}.on_chip.{key}").number) for key in ("partitions", "psum_banks")
    )
    figure, axes = _blank(8, 3.3, (0, 14.6), (0, 6.8))
    for left, title, words in (
        (0.2, "HBM", f"{of('hbm.capacity', 'GiB')} for {fact(f'{chip}.cores').number:g} cores"),
        (5.6, "SBUF", f"{partitions} x {of('on_chip.sbuf_per_partition', 'KiB')}"),
        (11.0, "PSUM", f"{partitions} x {banks} banks x {of('on_chip.psum_bank', 'KiB')}"),
    ):
        _box(axes, (left, 1.3), 3.4, 4.6, "memory")
        axes.text(left + 1.7, 6.3, title, ha="center", weight="bold", fontsize=10)
        axes.text(left + 1.7, 1.0, words, ha="center", va="top", fontsize=8)
    # A tensor in HBM is one long row; on chip its rows lie below each other, one per partition.
    for row in range(4):
        _box(axes, (0.4, 5.1 - 0.42 * row), 3.0, 0.34, color=ROWS[row])
        _box(axes, (5.8, 5.1 - 0.42 * row), 1.7, 0.34, color=ROWS[row])
    axes.text(1.9, 3.55, "a tensor,\nrow after row", ha="center", va="top", fontsize=8)
    axes.text(7.4, 3.55, "a tile: each row in\na partition of its own", ha="center", va="top",
              fontsize=8)  # fmt: skip
    for bank in range(banks):
        _box(axes, (11.15 + 0.39 * bank, 3.75), 0.35, 1.7, color="white" if bank else ROWS[0])
    axes.text(12.7, 3.55, "a product fills\n(part of) one bank", ha="center", va="top", fontsize=8)
    _arrow(axes, (3.6, 4.6), (5.6, 4.6), "<|-|>")
    axes.text(4.6, 4.75, "DMA", ha="center", fontsize=9)
    for y, text, style in (
        (5.4, "Tensor", "-|>"),
        (4.1, "Vector", "<|-|>"),
        (2.8, "Scalar", "<|-|>"),
    ):
        _arrow(axes, (9.0, y), (11.0, y), style)
        axes.text(10.0, y + 0.15, text, ha="center", fontsize=9)
    _arrow(axes, (9.0, 1.6), (9.5, 1.6), "<|-|>")
    axes.text(9.6, 1.6, "GpSimd", va="center", fontsize=9)
    axes.plot([1.9, 1.9, 12.7, 12.7], [0.45, 0.15, 0.15, 0.45], ":", color="0.5")
    axes.text(7.3, 0.15, " no path ", ha="center", va="center", fontsize=8, color="0.3",
              bbox=LABEL)  # fmt: skip
    return finish(
        figure,
        f"The memories of one core of {chip.capitalize()}. DMA moves between HBM and SBUF. The"
        " Tensor Engine reads SBUF and writes PSUM; Vector and Scalar read and write both; GpSimd"
        " only SBUF. Between HBM and PSUM there is no path. Each row of a tile has a partition"
        " of its own.",
        diagram=True,
    )


def tile_layout(rows: int, columns: int, itemsize: int, caption: str) -> Picture:
    """A tensor of `rows` x `columns` elements of `itemsize` bytes, in HBM and as a tile in SBUF.

    Drawn are three first rows and the last one.
    """
    figure, axes = _blank(8, 2.9, (0, 16), (0, 5.8))
    shown = (0, 1, 2, rows - 1)
    axes.text(0.3, 5.45, "in HBM: one row of bytes", fontsize=9, weight="bold")
    for place, row in enumerate(shown):
        left = 0.3 + 3.6 * place + (0.8 if place == 3 else 0)
        _box(axes, (left, 4.4), 3.5, 0.6, color=ROWS[place])
        axes.text(left + 1.75, 4.7, f"row {row}", ha="center", va="center", fontsize=8)
        axes.text(left, 4.3, f"{row * columns * itemsize:,}", va="top", fontsize=7)
    axes.text(11.4, 4.65, "...", ha="center", fontsize=11)
    axes.text(0.3, 3.35, "in SBUF: a row of bytes in each partition", fontsize=9, weight="bold")
    for place, row in enumerate(shown):
        y = 2.6 - 0.55 * place - (0.35 if place == 3 else 0)
        axes.text(4.5, y + 0.22, f"partition {row}", ha="right", va="center", fontsize=8)
        _box(axes, (4.7, y), 7.0, 0.44, color=ROWS[place])
        _box(axes, (11.7, y), 3.4, 0.44, color="white")
        axes.text(8.2, y + 0.22, f"row {row}", ha="center", va="center", fontsize=8)
    axes.text(13.4, 2.82, "other tiles, or free", ha="center", va="center", fontsize=8)
    axes.text(8.2, 1.32, "...", ha="center", va="center", fontsize=11)
    _arrow(axes, (4.7, 0.25), (11.7, 0.25), "-|>")
    axes.text(8.2, 0.02, f"free axis: {columns * itemsize:,} bytes, one element after the other in"
              " time", ha="center", va="top", fontsize=8)  # fmt: skip
    _arrow(axes, (0.6, 3.0), (0.6, 0.5), "-|>")
    axes.text(0.9, 1.75, "partition axis:\nside by side\nin space", va="center", fontsize=8)
    return finish(figure, caption, diagram=True)


def matmul_operands(k: int, m: int, n: int, caption: str) -> Picture:
    """Where the operands of nc_matmul lie: stationary (k, m), moving (k, n), result (m, n).

    Heights are partitions, widths the free axis; not to scale.
    """
    figure, axes = _blank(8, 2.7, (0, 16), (0, 5.4))
    sizes = {"K": (k, COLORS[0]), "M": (m, COLORS[5]), "N": (n, COLORS[2])}

    def side(name: str, start: tuple[float, float], end: tuple[float, float]) -> None:
        size, color = sizes[name]
        axes.annotate("", end, start, arrowprops=ARROW | {
            "arrowstyle": "<|-|>", "color": color, "linewidth": 1.6})  # fmt: skip
        upright = start[0] == end[0]
        middle = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
        place = (middle[0] - 0.2, middle[1]) if upright else (middle[0], middle[1] - 0.2)
        axes.text(*place, f"{name} = {size}", color=color, fontsize=9, weight="bold",
                  rotation=90 if upright else 0, ha="right" if upright else "center",
                  va="center" if upright else "top")  # fmt: skip

    for (x, y), width, height, text, color, down, right in (
        ((1.7, 1.0), 1.9, 3.0, "stationary\nSBUF", PALE["memory"], "K", "M"),
        ((5.6, 1.0), 3.9, 3.0, "moving\nSBUF", PALE["move"], "K", "N"),
        ((11.7, 1.6), 3.9, 1.9, "dst\nPSUM", PALE["compute"], "M", "N"),
    ):
        _box(axes, (x, y), width, height, color=color)
        axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=9)
        side(down, (x - 0.2, y + height), (x - 0.2, y))
        side(right, (x, y - 0.2), (x + width, y - 0.2))
    axes.text(4.35, 2.5, "and", ha="center", va="center", fontsize=9)
    axes.text(10.15, 2.5, "gives", ha="center", va="center", fontsize=9)
    for x, text in ((2.65, "stays in the array"), (7.55, "streams through it"),
                    (13.65, "stationary.T @ moving")):  # fmt: skip
        axes.text(x, 4.35, text, ha="center", fontsize=8, color="0.3")
    axes.text(0.1, 5.1, "partitions down, free axis to the right", fontsize=8, color="0.3")
    return finish(figure, caption, diagram=True)


def access_order(patterns: dict[str, Sequence[Sequence[int]]], caption: str) -> Picture:
    """The elements of one partition and when each view reads them.

    Args:
        patterns: name of a view to its free dimensions [[stride, count], ...], outermost first.
            What the inner half of them reads in one step of the others has one colour.
    """
    orders = {name: _offsets(pattern) for name, pattern in patterns.items()}
    width = max(16, 1 + max(max(item) for item in orders.values()))
    # An element that is read several times holds several numbers, one below the other.
    most = max(order.count(item) for order in orders.values() for item in set(order))
    height = 0.4 + 0.15 * most
    figure, axes = _blank(
        8, height * len(orders) + 0.55, (-3.4, width), (-len(orders) - 0.1, 0.5 / height)
    )
    for place in range(width):
        axes.text(place + 0.5, 0.08 / height, str(place), ha="center", fontsize=7, color="0.4")
    axes.text(-0.3, 0.08 / height, "element", ha="right", fontsize=8, color="0.4")
    for row, (name, order) in enumerate(orders.items()):
        inner = patterns[name][-max(1, len(patterns[name]) // 2) :]
        together = math.prod(count for _, count in inner)
        axes.text(-0.3, -row - 0.5, name, ha="right", va="center", fontsize=8)
        for place in range(width):
            times = [time for time, item in enumerate(order) if item == place]
            part = times[0] // together % len(ROWS) if times else 0
            color = ROWS[part] if times else "white"
            _box(axes, (place + 0.04, -row - 0.9), 0.92, 0.8, color=color)
            if times:
                axes.text(place + 0.5, -row - 0.5, "\n".join(str(time + 1) for time in times),
                          ha="center", va="center", fontsize=8, linespacing=1.0,
                          bbox=LABEL)  # fmt: skip
    return finish(figure, caption, diagram=True)


def puzzle_tiles(puzzle: "Puzzle") -> Picture:
    """The arrays of a puzzle at its largest tested sizes, cut into the tiles of its record.

    Rows run down; sides are drawn by the square root of their sizes, so that a column can be seen
    beside a matrix. The first tile of each array is hatched; where tiles are single rows, only the
    first one is drawn.
    """
    from utils.nki.puzzles.picture import grids  # late: they load the simulator

    arrays = grids(puzzle)
    figure, axes = _blank(8, 1.9, (0, 16), (0, 3.8))
    room = 16 / len(arrays)
    longest = max(max(grid.shape) for grid in arrays)
    words = []
    for place, grid in enumerate(arrays):
        result = place == len(arrays) - 1
        width, height = (
            max(0.25, most * math.sqrt(size / longest))
            for size, most in zip(reversed(grid.shape), (min(room - 1.1, 3.4), 2.4), strict=True)
        )
        left, top = place * room + 0.75, 2.95
        kind = "compute" if result else "memory"
        _box(axes, (left, top - height), width, height, kind)
        rows, columns = grid.counts
        down, right = grid.tile[0] / grid.shape[0] * height, grid.tile[1] / grid.shape[1] * width
        _box(axes, (left, top - down), right, down, kind)
        axes.patches[-1].set_hatch("//")
        cuts = [top - down * i for i in range(1, rows if down > 0.05 else 1)]
        axes.hlines(cuts, left, left + width, EDGE[kind], linewidth=0.8)
        cuts = [left + right * i for i in range(1, columns)]
        axes.vlines(cuts, top - height, top, EDGE[kind], linewidth=0.8)
        axes.text(left, 3.5, grid.name, fontsize=9, weight="bold")
        axes.text(left, 3.1, f"{rows} x {columns} tile{'s' * (rows * columns > 1)}", fontsize=8)
        axes.text(left - 0.1, top - height / 2, str(grid.shape[0]), fontsize=8, rotation=90,
                  ha="right", va="center")  # fmt: skip
        axes.text(left + width / 2, top - height - 0.1, str(grid.shape[1]), fontsize=8,
                  ha="center", va="top")  # fmt: skip
        words.append(f"{grid.name} {grid.shape} in {rows} x {columns}")
    return finish(figure, f"Tiles of {puzzle.id}, rows down: {'; '.join(words)}.", diagram=True)


def _offsets(pattern: Sequence[Sequence[int]]) -> list[int]:
    """The elements that a pattern [[stride, count], ...] visits, in its order.

    >>> _offsets([[4, 2], [1, 3]])
    [0, 1, 2, 4, 5, 6]
    """
    results = [0]
    for stride, count in pattern:
        results = [start + stride * step for start in results for step in range(count)]
    return results


def _blank(
    width: float, height: float, x: tuple[float, float], y: tuple[float, float]
) -> "tuple[Figure, Axes]":
    figure = new_figure(width, height)
    axes = figure.subplots()
    axes.set(xlim=x, ylim=y)
    axes.axis("off")
    return figure, axes


def _box(
    axes: "Axes",
    corner: tuple[float, float],
    width: float,
    height: float,
    kind: str = "",
    color: str = "",
) -> None:
    from matplotlib.patches import Rectangle

    face, edge = (PALE[kind], EDGE[kind]) if kind else (color, "0.3")
    axes.add_patch(Rectangle(corner, width, height, facecolor=face, edgecolor=edge, linewidth=0.8))


def _arrow(axes: "Axes", start: tuple[float, float], end: tuple[float, float], style: str) -> None:
    axes.annotate("", end, start, arrowprops=ARROW | {"arrowstyle": style})
