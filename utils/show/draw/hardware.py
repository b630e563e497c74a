"""Figures of the hardware model: the blocks of a core, the memory ladder, links between chips.

Values come in as arguments, in SI units; nothing here knows a figure of any chip.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from utils.show.draw.picture import COLORS, MARKERS, Picture, finish, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PALE = {"memory": "#DCEBF5", "compute": "#FBEBD0", "move": "#D9F0E8"}
EDGE = {"memory": COLORS[0], "compute": COLORS[1], "move": COLORS[2]}

# Where a block stands in the drawing of a core: centre, width and height, and what it is.
BLOCKS = {
    "HBM": (0.7, 3.0, 1.3, 5.4, "memory"),
    "DMA": (2.5, 3.0, 1.3, 2.6, "move"),
    "SBUF": (4.4, 3.0, 1.5, 5.4, "memory"),
    "Tensor": (7.0, 5.2, 2.1, 0.9, "compute"),
    "Vector": (7.0, 4.1, 2.1, 0.9, "compute"),
    "Scalar": (7.0, 3.0, 2.1, 0.9, "compute"),
    "GpSimd": (7.0, 1.9, 2.1, 0.9, "compute"),
    "Sync": (7.0, 0.8, 2.1, 0.9, "move"),
    "PSUM": (9.5, 4.1, 1.3, 3.1, "memory"),
}


def core(words: Mapping[str, str], caption: str) -> Picture:
    """The blocks of a NeuronCore and who reaches what: memories blue, engines orange, movers green.

    Args:
        words: block ("HBM", "DMA", "SBUF", "Tensor", "Vector", "Scalar", "GpSimd", "Sync", "PSUM")
            to what is written below its name, such as its size or its clock.

    Raises:
        ValueError: for the name of a block that a core does not have.
    """
    from matplotlib.patches import Rectangle

    if unknown := set(words) - set(BLOCKS):
        raise ValueError(f"a core has no {', '.join(sorted(unknown))}: it has {', '.join(BLOCKS)}")
    figure = new_figure(8, 3.3)
    axes = figure.subplots()
    axes.set(xlim=(0, 10.3), ylim=(0.1, 5.9))
    axes.axis("off")
    for name, (x, y, width, height, kind) in BLOCKS.items():
        corner = x - width / 2, y - height / 2
        axes.add_patch(Rectangle(corner, width, height, facecolor=PALE[kind], edgecolor=EDGE[kind]))
        below = words.get(name, "")
        axes.text(x, y, name, ha="center", va="bottom" if below else "center", weight="bold",
                  fontsize=9, zorder=3)  # fmt: skip
        axes.text(x, y - 0.05, below, ha="center", va="top", fontsize=8, zorder=3, linespacing=1.4)
    both, one = "<|-|>", "-|>"
    _arrow(axes, (1.35, 3.0), (1.85, 3.0), both)
    _arrow(axes, (3.15, 3.0), (3.65, 3.0), both)
    for name in ("Tensor", "Vector", "Scalar", "GpSimd"):
        y = BLOCKS[name][1]
        _arrow(axes, (5.15, y), (5.95, y), one if name == "Tensor" else both)
        if name != "GpSimd":
            _arrow(axes, (8.05, y), (8.85, y), one if name == "Tensor" else both)
    # The Sync Engine starts DMA transfers: its line runs below SBUF.
    axes.plot([5.95, 5.55, 5.55, 2.5, 2.5], [0.8, 0.8, 0.15, 0.15, 1.4], ":", color=EDGE["move"])
    _arrow(axes, (2.5, 1.4), (2.5, 1.7), one)
    return finish(figure, caption, diagram=True)


def _arrow(axes: "Axes", start: tuple[float, float], end: tuple[float, float], style: str) -> None:
    arrow = {"arrowstyle": style, "color": "0.35", "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", end, start, arrowprops=arrow)


@dataclass(frozen=True)
class Rung:
    """What one level of memory offers: bytes, B/s, and seconds until the first byte arrives. None:
    nobody publishes it.
    """

    size_bytes: float | None = None
    bytes_per_s: float | None = None
    latency_s: float | None = None


COLUMNS: tuple[tuple[str, str, dict[str, float]], ...] = (
    ("size_bytes", "size", {"1 MiB": 2**20, "1 GiB": 2**30, "1 TiB": 2**40}),
    ("bytes_per_s", "bandwidth", {"1 GB/s": 1e9, "10": 1e10, "100": 1e11, "1 TB/s": 1e12}),
    ("latency_s", "latency", {"10 ns": 1e-8, "100": 1e-7, "1 µs": 1e-6, "10": 1e-5}),
)


def memory_ladder(levels: Mapping[str, Mapping[str, Rung]], caption: str) -> Picture:
    """Sizes, bandwidths and latencies of memories, each on one logarithmic axis.

    Args:
        levels: name of a level, nearest first, to {machine: what it offers there}. Machines are
            told apart by colour and marker.
    """
    machines = list(dict.fromkeys(name for level in levels.values() for name in level))
    figure = new_figure(8, 0.48 * len(levels) + 1)
    for axes, (field, label, ticks) in zip(
        figure.subplots(1, len(COLUMNS), sharey=True), COLUMNS, strict=True
    ):
        for row, level in enumerate(levels.values()):
            if not any(getattr(rung, field) for rung in level.values()):
                axes.text(0.5, row, "no figure", transform=axes.get_yaxis_transform(),
                          ha="center", va="center", color="0.4", fontsize=8)  # fmt: skip
            for name, rung in level.items():
                if value := getattr(rung, field):
                    place = machines.index(name)
                    y = row + (place - (len(machines) - 1) / 2) * 0.22
                    axes.scatter(value, y, s=36, color=COLORS[place], marker=MARKERS[place])
            axes.axhline(row + 0.5, color="0.8", linewidth=0.6)
        axes.set(xscale="log", xlabel=label)
        axes.set_xticks(list(ticks.values()), list(ticks), fontsize=8)
        axes.minorticks_off()
        low, high = axes.get_xlim()
        axes.set_xlim(min(low, *ticks.values()) / 1.5, max(high, *ticks.values()) * 1.5)
        axes.set_yticks(range(len(levels)), list(levels))
        axes.set_ylim(len(levels) - 0.5, -0.5)
        axes.grid(axis="x", color="0.9")
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
    signs = [axes.scatter([], [], s=36, color=COLORS[i], marker=MARKERS[i])
             for i in range(len(machines))]  # fmt: skip
    figure.legend(signs, machines, loc="outside upper center", ncols=6, frameon=False)
    return finish(figure, caption, diagram=True)


def topologies(shapes: Mapping[str, tuple[int, ...] | int], caption: str) -> Picture:
    """Chips and the links between them, side by side.

    Of a torus of three dimensions the planes are drawn beside each other, and of the rings that
    join them only one, for the others would hide it.

    Args:
        shapes: title to the sizes of a torus (planes last; one size is a ring), or to the number
            of chips behind switches.

    Raises:
        ValueError: for a torus of more than three dimensions, or without chips.
    """
    figure = new_figure(2.3 * len(shapes), 2.4)
    panels = figure.subplots(1, len(shapes), squeeze=False)[0]
    for axes, (title, shape) in zip(panels, shapes.items(), strict=True):
        sizes = (shape,) if isinstance(shape, int) else shape
        if not 1 <= len(sizes) <= 3 or min(sizes) < 1:
            raise ValueError(
                f"{title}: {shape!r} cannot be drawn; give the sizes of a torus of one to three"
                " dimensions, such as (4, 4), or the number of chips behind switches, such as 64"
            )
        axes.set_aspect("equal")
        axes.axis("off")
        axes.margins(0.17)
        axes.set_title(title, fontsize=9)
        if len(sizes) == 1:
            _round(axes, sizes[0], switched=isinstance(shape, int))
        else:
            _torus(axes, sizes)
    return finish(figure, caption, diagram=True)


def _round(axes: "Axes", chips: int, switched: bool) -> None:
    turns = [2 * math.pi * i / chips for i in range(chips)]
    places = [(math.sin(turn), math.cos(turn)) for turn in turns]
    if switched:
        for x, y in places:
            axes.plot([0, x], [0, y], color="0.75", linewidth=0.6, antialiased=False, zorder=1)
        box = {"boxstyle": "round,pad=0.6", "facecolor": PALE["compute"], "edgecolor": COLORS[1]}
        axes.text(0, 0, "switches", ha="center", va="center", fontsize=9, zorder=4, bbox=box)
    else:
        axes.plot(*zip(*places, places[0], strict=True), color="0.6", linewidth=1, zorder=1)
    _chips(axes, places)


def _torus(axes: "Axes", sizes: Sequence[int]) -> None:
    rows, columns, planes = (*sizes, 1)[:3]
    wide = math.ceil(math.sqrt(planes))
    corners = []
    for plane in range(planes):
        # The ring walks around: left to right in the first row of planes, back in the next.
        down, along = divmod(plane, wide)
        along = wide - 1 - along if down % 2 else along
        x, y = along * (columns + 1.2), -down * (rows + 1.2)
        corners.append((x, y))
        _plane(axes, x, y, rows, columns)
    if planes > 1:
        around = [*corners, corners[0]]
        for start, end in itertools.pairwise(around):
            _bow(axes, start, end, COLORS[5], 0.25, 1.6)


def _plane(axes: "Axes", x: float, y: float, rows: int, columns: int) -> None:
    """A grid of chips whose rows and columns are closed to rings."""
    for row in range(rows):
        axes.plot([x, x + columns - 1], [y - row] * 2, color="0.6", linewidth=1, zorder=1)
        if columns > 2:
            _bow(axes, (x, y - row), (x + columns - 1, y - row), "0.6", -0.25)
    for column in range(columns):
        axes.plot([x + column] * 2, [y, y - rows + 1], color="0.6", linewidth=1, zorder=1)
        if rows > 2:
            _bow(axes, (x + column, y), (x + column, y - rows + 1), "0.6", 0.25)
    _chips(axes, [(x + c, y - r) for r, c in itertools.product(range(rows), range(columns))])


def _bow(
    axes: "Axes",
    start: tuple[float, float],
    end: tuple[float, float],
    color: str,
    bent: float,
    width: float = 0.5,
) -> None:
    bow = {
        "arrowstyle": "-",
        "color": color,
        "linewidth": width,
        "shrinkA": 0,
        "shrinkB": 0,
        "antialiased": False,
    }
    axes.annotate(
        "", end, start, arrowprops=bow | {"connectionstyle": f"arc3,rad={bent}"}, zorder=2
    )


def _chips(axes: "Axes", places: Sequence[tuple[float, float]]) -> None:
    size = 40 if len(places) <= 16 else 16
    x, y = zip(*places, strict=True)
    axes.scatter(x, y, s=size, marker="s", color=COLORS[0], zorder=3)
