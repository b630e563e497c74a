"""Number formats on a line, training curves under different recipes, and updates that stall."""

from collections.abc import Mapping, Sequence
from math import log2
from typing import TYPE_CHECKING, Any

import numpy as np

from utils.show.draw.picture import COLORS, Picture, finish, new_figure

if TYPE_CHECKING:
    from utils.chip.formats import Format

_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


def ranges(formats: Sequence["Format"], caption: str) -> Picture:
    """From the smallest to the largest value above zero, a bar for each format on a binary axis.

    The light part of a bar are subnormal numbers, which lose digits towards its end. Formats of
    fewer than 16 bits are hatched; the number beside a bar are the bits of its mantissa.
    """
    from matplotlib.patches import Patch

    figure = new_figure(7, 0.32 * len(formats) + 0.9)
    axes = figure.subplots()
    for row, form in enumerate(formats):
        lowest, normal, top = map(log2, (form.min_subnormal, form.min_normal, form.max))
        hatch: dict[str, Any] = {"hatch": "//" if form.bits < 16 else "", "edgecolor": "white"}
        axes.barh(row, top - normal, left=normal, height=0.6, color=COLORS[0], **hatch)
        axes.barh(row, normal - lowest, left=lowest, height=0.6, color=COLORS[4], **hatch)
        axes.text(top + 3, row, str(form.mantissa_bits), va="center", fontsize=9)
    axes.set_yticks(range(len(formats)), [form.name for form in formats])
    axes.invert_yaxis()
    axes.axvline(0, color="0.3", linewidth=0.8)
    axes.set_xlim(-155, 152)
    keys = [
        Patch(color=COLORS[0], label="normal numbers"),
        Patch(color=COLORS[4], label="subnormal numbers"),
        Patch(facecolor="0.6", hatch="//", edgecolor="white", label="fewer than 16 bits"),
    ]
    axes.legend(handles=keys, frameon=False, fontsize=8, loc="center right")
    axes.set_xlabel("magnitude, as a power of two; beside each bar the bits of the mantissa")
    axes.spines[["top", "right", "left"]].set_visible(False)
    return finish(figure, caption)


def number_line(formats: Sequence["Format"], low: float, high: float, caption: str) -> Picture:
    """Every value that formats of at most 16 bits have from low to high: one tick each.

    Raises:
        ValueError: if low is not below high, or a format has more than 600 values there, which
            would be a black bar.
    """
    if not low < high:
        raise ValueError(f"low is {low} and high is {high}: low has to be the smaller one")
    figure = new_figure(7, 0.5 * len(formats) + 1.0)
    axes = figure.subplots()
    names = []
    for row, form in enumerate(formats):
        values = form.values()
        inside = values[(values >= low) & (values <= high)]
        if len(inside) > 600:
            raise ValueError(f"{form.name} has {len(inside)} values there: choose a shorter range")
        axes.hlines(row, low, high, color="0.85", linewidth=1)
        axes.vlines(inside, row - 0.3, row + 0.3, color=COLORS[row % len(COLORS)], linewidth=1)
        names.append(f"{form.name} ({len(inside)})")
    axes.set_yticks(range(len(formats)), names)
    axes.set_ylim(len(formats) - 0.4, -0.6)
    margin = 0.005 * (high - low)  # else the first and the last tick are cut in half
    axes.set_xlim(low - margin, high + margin)
    axes.set_xlabel("value; in brackets how many there are")
    axes.spines[["top", "right", "left"]].set_visible(False)
    return finish(figure, caption)


def training(
    panels: Mapping[str, Mapping[str, Sequence[float]]], ylabel: str, caption: str, over: int = 10
) -> Picture:
    """Curves of trainings, one value per step, as means over the last `over` steps.

    panels: title to {name of a curve: its values}; the panels share their y axis. The name stands
    at the right end of its curve.
    """
    figure = new_figure(7.4, 3)
    to_the_left = {"arrowstyle": "-", "color": "0.75", "relpos": (0, 0.5)}
    every = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (title, curves) in zip(every, panels.items(), strict=True):
        ends = {}
        for i, (name, values) in enumerate(curves.items()):
            smooth = [
                sum(values[max(0, k - over + 1) : k + 1]) / min(k + 1, over)
                for k in range(len(values))
            ]
            ends[name] = smooth[-1]
            axes.plot(range(1, len(values) + 1), smooth, color=COLORS[i % 6],
                      linestyle=_DASHES[i % 5], linewidth=1.6)  # fmt: skip
        steps = max(map(len, curves.values()))
        places = _apart(ends, *axes.get_ylim())
        for i, name in enumerate(curves):
            axes.annotate(name, (steps, ends[name]), (steps * 1.09, places[name]), fontsize=8,
                          color=COLORS[i % 6], va="center", annotation_clip=False,
                          arrowprops=to_the_left)  # fmt: skip
        axes.set(xlabel="step", title=title, xlim=(0, steps * 1.6))
        axes.title.set_fontsize(9)
        axes.set_xticks([0, steps // 2, steps])
        axes.spines[["top", "right"]].set_visible(False)
    every[0].set_ylabel(ylabel)
    return finish(figure, caption)


def _apart(ends: Mapping[str, float], low: float, high: float) -> dict[str, float]:
    """Heights near the ends of the curves at which their names do not overlap."""
    gap = 0.065 * (high - low)
    placed: dict[str, float] = {}
    previous = float("-inf")
    for name in sorted(ends, key=ends.__getitem__):
        previous = placed[name] = max(ends[name], previous + gap)
    return placed


def stalls(
    before: np.ndarray, step: np.ndarray, after: np.ndarray, form: "Format", caption: str
) -> Picture:
    """Each weight a point: its magnitude, and the step it was to take; the line is half a spacing
    of `form` at that magnitude.

    Args:
        before, step, after: of equal shape, as `utils.training.precision.Update` has them.
    """
    size, wanted, moved = np.abs(before).ravel(), np.abs(step).ravel(), (before != after).ravel()
    shares = {"stayed": (~moved).mean(), "moved": moved.mean()}  # of all, not of those shown
    shown = np.random.default_rng(0).permutation(len(size))[:1500]
    size, wanted, moved = size[shown], wanted[shown], moved[shown]
    figure = new_figure(6.6, 3.2)
    axes = figure.subplots()
    for state, color, marker, words in (
        (~moved, COLORS[5], ".", "stayed"),
        (moved, COLORS[0], "+", "moved"),
    ):
        axes.scatter(size[state], wanted[state], s=9, color=color, marker=marker, linewidths=0.8,
                     label=f"{words} ({shares[words]:.0%})")  # fmt: skip
    steps = 2.0 ** np.arange(-16, 3)
    line = axes.step(steps, form.spacing(steps) / 2, where="post", color="black", linewidth=1.3)
    line[0].set_label(f"half a spacing of {form.name}")
    axes.set(xscale="log", yscale="log", xlim=(1e-4, 4), ylim=(3e-7, 1e-3))
    axes.set_xlabel("magnitude of the weight")
    axes.set_ylabel("magnitude of the step")
    axes.legend(frameon=False, fontsize=8, loc="upper left", markerscale=2)
    axes.spines[["top", "right"]].set_visible(False)
    return finish(figure, caption)
