"""Runs that die and go on: what each life computed, where a missing part shows, where chunks of a
tensor go, and what the interval between checkpoints costs.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from utils.show.draw.picture import COLORS, HATCHES, MARKERS, Picture, finish, new_figure

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.patches import Patch

LOOKS = {"computing": (COLORS[0], ""), "lost": (COLORS[5], "xx")}


def lives(attempts: Sequence[tuple[int, int]], every: int, steps: int, caption: str) -> Picture:
    """The lives of one run, one below the other, on an axis of steps.

    Args:
        attempts: (steps done at its start, steps done when it ended) of each life, in order; all
            but one that reaches `steps` end by a kill.
        every: steps between two checkpoints.
    """
    figure = new_figure(7, 0.9 + 0.45 * len(attempts))
    axes = figure.subplots()
    reached = 0
    for row, (start, end) in enumerate(attempts):
        again = min(end, max(start, reached))
        for left, right, kind in ((start, again, "lost"), (again, end, "computing")):
            color, hatch = LOOKS[kind]
            axes.barh(row, right - left, left=left, height=0.5, color=color, hatch=hatch,
                      edgecolor="white")  # fmt: skip
        saved = range(start + every - start % every, end + 1, every)
        axes.plot(saved, [row] * len(saved), "D", color="0.1", markersize=6)
        if end < steps:
            axes.plot([end], [row], "X", color="0.1", markersize=11)
        reached = max(reached, end)
    keys: list[Artist] = [_key("computing", "steps"), _key("lost", "steps done again")]
    for name, marker, size in (("checkpoint", "D", 6), ("killed", "X", 9)):
        keys += axes.plot([], [], marker, color="0.1", markersize=size, label=name)
    axes.set_yticks(range(len(attempts)), [f"life {i + 1}" for i in range(len(attempts))])
    axes.invert_yaxis()
    axes.set(xlim=(-0.2, steps + 0.3), xlabel="steps done", xticks=range(0, steps + 1))
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.legend(handles=keys, frameon=False, fontsize=8, ncols=4, loc="lower center",
                bbox_to_anchor=(0.5, 1))  # fmt: skip
    return finish(figure, caption, diagram=True)


def _key(kind: str, name: str) -> "Patch":
    """The entry of a legend for one of `LOOKS`."""
    from matplotlib.patches import Patch

    color, hatch = LOOKS[kind]
    return Patch(facecolor=color, hatch=hatch, edgecolor="white", label=name)


def differences(
    rows: Mapping[str, Sequence[bool]], first: int, xlabel: str, caption: str
) -> Picture:
    """Which steps of each run differ from the run to compare with.

    Args:
        rows: name of a run to one value per step, from step `first` on: whether it differs.
    """
    figure = new_figure(7, 0.8 + 0.27 * len(rows))
    axes = figure.subplots()
    for row, differs in enumerate(rows.values()):
        for place, other in enumerate(differs):
            axes.barh(row, 0.94, left=first + place - 0.47, height=0.8,
                      color=COLORS[5] if other else "#B3D1E7")  # fmt: skip
            # The sign says it again, for those who cannot tell the colours.
            axes.text(first + place, row, "≠" if other else "=", ha="center", va="center",
                      color="white" if other else "0.2", fontsize=9)  # fmt: skip
    axes.set_yticks(range(len(rows)), list(rows), fontsize=8)
    axes.invert_yaxis()
    longest = max(map(len, rows.values()))
    axes.set(xlabel=xlabel, xticks=range(first, first + longest))
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)
    for name, color in (("= equal", "#B3D1E7"), ("≠ differs", COLORS[5])):
        axes.plot([], [], color=color, linewidth=6, label=name)
    axes.legend(frameon=False, fontsize=8, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1))
    return finish(figure, caption, diagram=True)


def chunks(
    rows: int, saved: Sequence[tuple[int, int]], wanted: Sequence[tuple[int, int]], caption: str
) -> Picture:
    """Rows of a matrix as they were saved, and as they are loaded: (first row, rows) of each."""
    figure = new_figure(7, 2.6)
    axes = figure.subplots()
    for left, parts, side in ((0.0, saved, "saved by"), (2.0, wanted, "loaded by")):
        for number, (first, height) in enumerate(parts):
            axes.bar(
                left, height, 1.0, first, color=COLORS[number % len(COLORS)],
                hatch=HATCHES[number % len(HATCHES)], edgecolor="white",
                alpha=0.85, linewidth=1.5,
            )  # fmt: skip
            axes.text(
                left, first + height / 2, f"device {number}", ha="center", va="center", fontsize=9,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 2},
            )  # fmt: skip
        axes.text(left, -0.06 * rows, f"{side} {len(parts)} devices", ha="center", va="bottom",
                  fontsize=9)  # fmt: skip
    for first, height in saved:
        middle = first + height / 2
        for begin, size in wanted:
            low, high = max(first, begin), min(first + height, begin + size)
            if low < high:
                axes.annotate(
                    "", (1.47, (low + high) / 2), (0.53, middle),
                    arrowprops={"arrowstyle": "->", "color": "0.3"},
                )  # fmt: skip
    axes.set(xlim=(-0.7, 2.7), ylim=(rows, -0.18 * rows), ylabel="row of the matrix")
    axes.set(xticks=[], yticks=sorted({first for first, _ in (*saved, *wanted)} | {rows}))
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    return finish(figure, caption, diagram=True)


def interval(
    every: Sequence[float],
    curves: Mapping[str, Sequence[float]],
    points: Mapping[str, Sequence[tuple[float, float]]],
    marks: Mapping[str, float],
    caption: str,
) -> Picture:
    """Hours beyond the work against the interval between checkpoints, both axes logarithmic.

    Args:
        every: intervals in hours, ascending. curves: name to the share of the work added, each as a
            ratio above 0. points: name to (interval, share), such as of simulations.
        marks: name to an interval, drawn upright; at most three.
    """
    from matplotlib.ticker import LogLocator, NullFormatter

    if any(b <= a for a, b in pairwise(every)):
        raise ValueError(f"the intervals {list(every)} do not ascend: give each once, in order")
    figure = new_figure(7, 3)
    axes = figure.subplots()
    for i, (name, values) in enumerate(curves.items()):
        style = ("-", "--", "-.", ":")[i % 4]
        axes.plot(every, values, color=COLORS[i], linestyle=style, linewidth=2, label=name)
    for i, (name, pairs) in enumerate(points.items()):
        xs, ys = zip(*pairs, strict=True)
        axes.plot(xs, ys, MARKERS[i], color="0.15", fillstyle="none", label=name)
    for (name, value), style in zip(marks.items(), (":", "--", "-."), strict=False):
        axes.axvline(value, color="0.3", linewidth=1.2, linestyle=style, label=name)
    axes.set(xscale="log", yscale="log", xlabel="hours of computing between two checkpoints",
             ylabel="hours beyond the work [% of it]")  # fmt: skip
    for axis, text in (
        (axes.yaxis, lambda share, _: f"{100 * share:g} %"),
        (axes.xaxis, lambda hours, _: f"{hours:g}"),
    ):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(text)
        axis.set_minor_formatter(NullFormatter())
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return finish(figure, caption, diagram=True)
