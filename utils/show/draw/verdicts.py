"""A verdict as one input changes: zones with names, and the chance that lies behind them."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from utils.show.draw.picture import COLORS, HATCHES, Picture, finish, new_figure

_LINES = (":", "--", "-.")


def zones(x: Sequence[float], names: Sequence[str]) -> list[tuple[float, float, str]]:
    """Neighbouring values with one name as (from, to, name); zones meet half-way.

    >>> zones([1, 2, 3, 4], ["gpu", "gpu", "either", "either"])
    [(1, 2.5, 'gpu'), (2.5, 4, 'either')]
    """
    result, start, place = [], x[0], 0
    for name, run in groupby(names):
        place += len(list(run))
        end = x[-1] if place == len(x) else (x[place - 1] + x[place]) / 2
        result.append((start, end, name))
        start = end
    return result


def verdicts(
    x: Sequence[float],
    names: Sequence[str],
    chances: Sequence[float],
    levels: Sequence[float],
    marks: Mapping[str, float],
    xlabel: str,
    ylabel: str,
    caption: str,
) -> Picture:
    """Which verdict holds where along an input.

    Args:
        x: values of the input, ascending. names: the verdict at each. chances: 0 to 1 at each.
        levels: chances at which the rule changes its mind, drawn across.
        marks: name to a value of the input, drawn upright; at most three.

    Raises:
        ValueError: if the three sequences differ in length, or x does not ascend.
    """
    if not len(x) == len(names) == len(chances) or any(
        b <= a for a, b in zip(x, x[1:], strict=False)
    ):
        raise ValueError(
            f"{len(x)} values, {len(names)} verdicts and {len(chances)} chances: give one of each"
            " for ascending values"
        )
    figure = new_figure(7, 2.9)
    axes = figure.subplots()
    kinds = list(dict.fromkeys(names))
    for low, high, name in zones(x, names):
        kind = kinds.index(name)
        axes.axvspan(
            low, high, facecolor=COLORS[kind % len(COLORS)], alpha=0.22,
            hatch=HATCHES[kind % len(HATCHES)], edgecolor="white",
        )  # fmt: skip
        axes.text((low + high) / 2, 1.03, name, ha="center", fontsize=9, fontweight="bold")
    axes.plot(x, chances, color="0.15", linewidth=2)
    for level in levels:
        axes.axhline(level, color="0.4", linewidth=0.8, linestyle=(0, (1, 3)))
    for (name, value), line in zip(marks.items(), _LINES, strict=False):
        axes.axvline(value, color="0.15", linewidth=1.4, linestyle=line, label=name)
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(0, 1.12)
    axes.set_yticks([0, *levels, 1], [f"{item:.0%}" for item in (0, *levels, 1)], fontsize=8)
    axes.set_xlabel(xlabel, fontsize=9)
    axes.set_ylabel(ylabel, fontsize=9)
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3)
    axes.spines[["top", "right"]].set_visible(False)
    return finish(figure, caption)
