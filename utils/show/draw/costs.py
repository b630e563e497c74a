"""Costs in pictures: from list price to total, what matters, where two options cost the same, and
how far the draws lie apart.

Money is on the axes as the reader has it; bars that take off are hatched, so that no meaning lies
in a colour alone.
"""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from utils.show.draw.picture import COLORS, HATCHES, MARKERS, Picture, finish, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from utils.cost.tco import Cost, Swing

SMALL = 0.01
NARROW = 3.5
"""Inches of a figure that a phone shows at its own size."""
_REST = "all others"
_DEARER, _CHEAPER = "#F4D3AE", "#CDE3F1"
"""Tints of orange and blue, which colour-blind readers can tell apart; borders say the same."""
_CLEAR = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
"""Behind a label, so that no line cuts it."""


def waterfall(
    costs: Mapping[str, "Cost"],
    xlabel: str,
    caption: str,
    small: float = SMALL,
    narrow: bool = False,
) -> Picture:
    """One panel per option: each line of its cost from where the line above ended, the total last.

    Args:
        costs: option to its cost, in numbers.
        xlabel: the money and what it is per.
        small: a line below this share of the dearest total in every option is drawn with "all
            others".
        narrow: for a phone, with one panel below the other.
    """
    names, rows = shown_lines(costs, small)
    height = 0.27 * (len(names) + 1) + 0.9
    figure = new_figure(NARROW, height * len(costs)) if narrow else new_figure(7, height)
    shape = (len(costs), 1) if narrow else (1, len(costs))
    panels = figure.subplots(*shape, sharex=True, sharey=True, squeeze=False).ravel()
    top = max(float(cost.total) for cost in costs.values())
    for axes, (option, values) in zip(panels, rows.items(), strict=True):
        end = 0.0
        for row, value in enumerate(values):
            color, hatch = (COLORS[0], "") if value >= 0 else (COLORS[2], HATCHES[1])
            axes.barh(row, value, left=end, height=0.7, color=color, hatch=hatch,
                      edgecolor="white")  # fmt: skip
            end += value
            # A thin line leads to the next bar, and marks where a small one stands.
            axes.plot([end, end], [row - 0.35, row + 0.65], color="0.4", linewidth=0.8)
            if value:
                axes.text(max(end, end - value) + 0.02 * top, row, short(value), va="center",
                          fontsize=8)  # fmt: skip
        axes.barh(len(values), end, height=0.7, color="0.25")
        axes.text(end + 0.02 * top, len(values), short(end), va="center", fontsize=8,
                  fontweight="bold")  # fmt: skip
        axes.set_title(option, fontsize=10)
        axes.set_xlim(0, 1.22 * top)
        axes.locator_params("x", nbins=4)
        axes.xaxis.set_major_formatter(lambda value, _: short(value))
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_yticks(range(len(names) + 1), [*names, "total"], fontsize=9)
    panels[0].invert_yaxis()
    figure.supxlabel(xlabel, fontsize=9)
    return finish(figure, caption, diagram=True)


def shown_lines(
    costs: Mapping[str, "Cost"], small: float = SMALL
) -> tuple[list[str], dict[str, list[float]]]:
    """Names of the lines that are large enough to be seen, and their money by option; the others
    are summed in a last one.
    """
    least = small * max(float(cost.total) for cost in costs.values())
    every = list(dict.fromkeys(name for cost in costs.values() for name in cost.lines))
    lines = {o: {n: float(c.lines.get(n, 0)) for n in every} for o, c in costs.items()}
    names = [n for n in every if any(abs(line[n]) >= least for line in lines.values())]
    rest = {o: sum(v for n, v in item.items() if n not in names) for o, item in lines.items()}
    rows = {option: [item[name] for name in names] for option, item in lines.items()}
    if any(abs(value) >= 1e-9 for value in rest.values()):
        names.append(_REST)
        rows = {option: [*values, rest[option]] for option, values in rows.items()}
    return names, rows


def tornado(
    swings: Sequence["Swing"],
    saving: float,
    labels: Sequence[str],
    xlabel: str,
    caption: str,
    narrow: bool = False,
) -> Picture:
    """The saving at the low and at the high end of single inputs, widest first.

    Args:
        swings: those to show. saving: at the best guesses, where the bars part.
        labels: name and unit of each; the ends of its range stand at the ends of its bar.
        narrow: for a phone, with each label above its bar.
    """
    from matplotlib.patches import Patch

    height = 0.34 * len(swings) + 1.1
    figure = new_figure(NARROW, 2 * height) if narrow else new_figure(7, height)
    axes = figure.subplots()
    looks = {"low end": (COLORS[0], HATCHES[0]), "high end": (COLORS[1], HATCHES[1])}
    for row, swing in enumerate(swings):
        both = zip((swing.at_low, swing.at_high), looks.values(), strict=True)
        # The longer bar first: where both ends are on one side, the shorter lies on it.
        for end, (color, hatch) in sorted(both, key=lambda end: -abs(end[0] - saving)):
            axes.barh(row, 100 * (end - saving), left=100 * saving, height=0.4 if narrow else 0.62,
                      color=color, hatch=hatch, edgecolor="white")  # fmt: skip
        _label_ends(axes, row, swing, saving)
    axes.axvline(100 * saving, color="0.25", linewidth=1)
    ends = [100 * end for item in swings for end in (item.at_low, item.at_high)]
    if min(ends, default=0) < 0 < max(ends, default=0):
        axes.axvline(0, color="0.25", linewidth=1, linestyle=":")
    axes.set_yticks(range(len(swings)), [] if narrow else labels, fontsize=9)
    axes.invert_yaxis()
    axes.margins(x=0.2 if narrow else 0.14)
    if narrow:
        xlabel = fill(xlabel, 46)
        for row, label in enumerate(labels):
            axes.text(0, row - 0.24, label, fontsize=8, va="bottom", zorder=6, bbox=_CLEAR,
                      transform=axes.get_yaxis_transform())  # fmt: skip
        axes.set_ylim(len(swings) - 0.6, -0.8)
    axes.set_xlabel(xlabel, fontsize=9)
    patches = [
        Patch(facecolor=color, hatch=hatch, edgecolor="white", label=name)
        for name, (color, hatch) in looks.items()
    ]
    axes.legend(handles=patches, frameon=False, fontsize=8, loc="lower center",
                bbox_to_anchor=(0.5, 1), ncols=2)  # fmt: skip
    axes.spines[["top", "right"]].set_visible(False)
    return finish(figure, caption, diagram=True)


def _label_ends(axes: "Axes", row: int, swing: "Swing", saving: float) -> None:
    """The values of the input, left of the bars that which gives less, right of them the other."""
    ends = sorted([(swing.at_low, swing.low), (swing.at_high, swing.high)])
    places = min(saving, ends[0][0]), max(saving, ends[1][0])
    for (_, value), place, side, shift in zip(
        ends, places, ("right", "left"), (-3, 3), strict=True
    ):
        axes.annotate(short(value), (100 * place, row), (shift, 0), textcoords="offset points",
                      ha=side, va="center", fontsize=8, zorder=5, bbox=_CLEAR)  # fmt: skip


def break_even(
    x: Sequence[float],
    curves: Mapping[str, "Sequence[float] | np.ndarray | float"],
    crossings: Sequence[float],
    now: float,
    xlabel: str,
    ylabel: str,
    caption: str,
    believed: tuple[float, float] | None = None,
    narrow: bool = False,
) -> Picture:
    """The cost of each option as one input changes, where they cross, and where the input is now.

    Args:
        x: values of the input, ascending; a logarithmic axis if they are above 0 and span more than
            a factor of 20.
        curves: option to its cost at each of them, or to the one cost that it has everywhere; or
            the saving alone, which may be negative.
        crossings: values at which two options cost the same.
        believed: the range in which the input is believed to lie, shaded. narrow: for a phone.
    """
    figure = new_figure(NARROW if narrow else 7, 3)
    axes = figure.subplots()
    every = max(1, len(x) // 8)
    rows = {option: np.broadcast_to(costs, len(x)) for option, costs in curves.items()}
    for i, (option, costs) in enumerate(rows.items()):
        axes.plot(x, costs, color=COLORS[i], marker=MARKERS[i], markevery=every, label=option)
    if believed:
        axes.axvspan(*believed, color="0.9", label="believed range", zorder=0)
    axes.axvline(now, color="0.5", linewidth=1, linestyle=":", label="now")
    for number, value in enumerate(crossings):
        axes.axvline(value, color=COLORS[5], linewidth=1.2,
                     label=None if number else "break-even")  # fmt: skip
    if _wide(x):
        axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: short(value))
    if any(costs.min() < 0 for costs in rows.values()):
        axes.axhline(0, color="0.25", linewidth=1)
    else:
        axes.set_ylim(0, None)
    axes.yaxis.set_major_formatter(lambda value, _: short(value))
    axes.set_xlabel(fill(xlabel, 46) if narrow else xlabel, fontsize=9)
    axes.set_ylabel(ylabel, fontsize=9)
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1),
                ncols=2 if narrow else 5)  # fmt: skip
    axes.spines[["top", "right"]].set_visible(False)
    return finish(figure, caption, diagram=True)


def break_even_surface(
    xs: Sequence[float],
    ys: Sequence[float],
    savings: np.ndarray,
    now: tuple[float, float],
    xlabel: str,
    ylabel: str,
    caption: str,
    believed: tuple[float, float, float, float] | None = None,
) -> Picture:
    """The saving over two inputs, in per cent: contours, the line on which both options cost the
    same, and where the inputs are now.

    Args:
        xs, ys: values of the inputs, ascending; a logarithmic axis if all are above 0 and span more
            than a factor of 20.
        savings: shares, [len(ys), len(xs)], as `utils.cost.tco.break_even_surface` returns them.
        now: (x, y). believed: the ranges, as (x low, x high, y low, y high), drawn as a box.
    """
    from matplotlib.patches import Patch, Rectangle

    figure = new_figure(5.4, 3)
    axes = figure.subplots()
    percent = 100 * savings
    axes.contourf(xs, ys, percent, levels=[-1e9, 0, 1e9], colors=[_DEARER, _CHEAPER])
    levels = [item for item in (-100, -50, -25, 25, 50)
              if percent.min() < item < percent.max()]  # fmt: skip
    if levels:
        # Dashes below zero, whatever the settings: dearer, and not only by colour.
        styles = ["--" if level < 0 else "-" for level in levels]
        drawn = axes.contour(xs, ys, percent, levels=levels, colors="0.45", linewidths=0.9,
                             linestyles=styles)  # fmt: skip
        for label in axes.clabel(drawn, fmt="%+g %%", fontsize=8, colors="0.2", zorder=6):
            label.set(rotation=0, bbox=_CLEAR)
    if percent.min() < 0 < percent.max():
        axes.contour(xs, ys, percent, levels=[0], colors="black", linewidths=2)
        axes.plot([], [], color="black", linewidth=2, label="both cost the same")
    if believed:
        left, right, low, high = believed
        axes.add_patch(Rectangle((left, low), right - left, high - low, fill=False,
                                 edgecolor="black", linestyle=":",
                                 label="believed ranges"))  # fmt: skip
    axes.plot(*now, marker="*", markersize=13, color="white", markeredgecolor="black",
              linestyle="none", label="best guess")  # fmt: skip
    for values, scale in ((xs, axes.set_xscale), (ys, axes.set_yscale)):
        if _wide(values):
            scale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: short(value))
    axes.set_xlabel(xlabel, fontsize=9)
    axes.set_ylabel(ylabel, fontsize=9)
    handles = axes.get_legend_handles_labels()[0]
    handles += [
        Patch(facecolor=color, edgecolor="0.5", label=name)
        for color, name in ((_DEARER, "saving below 0 %"), (_CHEAPER, "saving above 0 %"))
    ]
    axes.legend(handles=handles, frameon=False, fontsize=8, loc="lower center",
                bbox_to_anchor=(0.5, 1), ncols=3)  # fmt: skip
    return finish(figure, caption, diagram=True)


def distribution(
    draws: Mapping[str, np.ndarray], xlabel: str, caption: str, zero: bool = False
) -> Picture:
    """One panel per quantity, below each other on one axis: how its draws are spread, and between
    which values the middle nine of ten lie.

    Args:
        draws: name to draws. The axis leaves out the outermost of two hundred at each end.
        zero: with a line at 0, and hatches left of it: for savings.
    """
    figure = new_figure(7, 1.3 * len(draws) + 0.7)
    panels = figure.subplots(len(draws), 1, sharex=True, squeeze=False)[:, 0]
    ends = [np.quantile(draw, [0.005, 0.995]) for draw in draws.values()]
    low, high = min(e[0] for e in ends), max(e[1] for e in ends)
    width = max(high - low, 1e-12) / 60
    # Zero is an edge, so that no bar is on both sides of it.
    edges = width * np.arange(np.floor(low / width), np.ceil(high / width) + 1)
    for i, (axes, (name, values)) in enumerate(zip(panels, draws.items(), strict=True)):
        counts = np.histogram(values, edges)[0]
        axes.stairs(counts, edges, fill=True, color=COLORS[i], alpha=0.55)
        if zero and edges[0] < 0:
            below = np.where(edges[1:] < width / 2, counts, 0)
            axes.stairs(below, edges, fill=True, color="none", hatch=HATCHES[1], edgecolor="0.3")
            axes.axvline(0, color="black", linewidth=1)
        low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
        for place, side in ((low, "right"), (middle, "center"), (high, "left")):
            axes.axvline(place, color="0.25", linewidth=1, linestyle=":")
            axes.annotate(short(place), (place, 1), (0, 1), textcoords="offset points", ha=side,
                          va="bottom", fontsize=8, xycoords=("data", "axes fraction"))  # fmt: skip
        axes.set_yticks([])
        axes.set_ylabel(name, fontsize=9, rotation=0, ha="right", va="center")
        axes.spines[["top", "right", "left"]].set_visible(False)
    panels[-1].xaxis.set_major_formatter(lambda value, _: short(value))
    figure.supxlabel(f"{xlabel}; marks at 5, 50 and 95 % of the draws", fontsize=9)
    return finish(figure, caption, diagram=True)


def _wide(values: Sequence[float]) -> bool:
    return min(values) > 0 and max(values) > 20 * min(values)


def short(value: float) -> str:
    """A value with three digits and k, M or G behind it.

    >>> short(1234.5), short(0.0123), short(-2.5e9), short(0)
    ('1.23k', '0.0123', '-2.5G', '0')
    """
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"
