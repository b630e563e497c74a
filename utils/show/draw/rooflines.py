"""Rooflines: the highest rate a machine allows at each arithmetic intensity, with works on it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from utils.show.draw.picture import COLORS, MARKERS, Picture, finished, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))
APART = 1.3
"""Names nearer to each other than this ratio of intensities would be written over each other."""


def roofline(
    roofs: Mapping[str, tuple[float, float]],
    works: Mapping[str, float],
    caption: str,
    counted: Mapping[str, float] | None = None,
) -> Picture:
    """Roofs on logarithmic axes, each with its ridge marked, and works on the first of them.

    Args:
        roofs: name to (FLOP/s, B/s).
        works: name to intensity in FLOP/B, from a formula: a full dot.
        counted: name to intensity of works that were counted in a graph: a hollow dot.
    """
    marks = [(x, name, True) for name, x in works.items()]
    marks += [(x, name, False) for name, x in (counted or {}).items()]
    ridges = {name: flops / bandwidth for name, (flops, bandwidth) in roofs.items()}
    spread = [*(x for x, _, _ in marks), *ridges.values()]
    low, high = min(0.5, min(spread) / 2.5), max(4000, max(spread) * 3)
    figure = new_figure(6.5, 3.3)
    axes = figure.subplots()
    for i, (name, (flops, bandwidth)) in enumerate(roofs.items()):
        color, ridge = COLORS[i % len(COLORS)], ridges[name]
        axes.plot([low, ridge, high], [low * bandwidth, flops, flops], linewidth=2, color=color,
                  linestyle=STYLES[i % len(STYLES)], label=f"{name}: ridge at {ridge:,.0f}",
                  marker=MARKERS[i % len(MARKERS)], markevery=[1])  # fmt: skip
    # Names hang below their dots, so there is room for one below the lowest.
    floor = low * min(bandwidth for _, bandwidth in roofs.values()) / 150
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(floor, None))
    axes.set(xlabel="arithmetic intensity [FLOP/B]", ylabel="attainable rate [FLOP/s]")
    axes.minorticks_off()
    axes.grid(color="0.92")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", fontsize=8, frameon=False)
    _place(axes, sorted(marks), next(iter(roofs.values())))
    return finished(figure, caption, diagram=True)


def _place(axes: "Axes", marks: list[tuple[float, str, bool]], roof: tuple[float, float]) -> None:
    """Dots on the roof and their names below them, moved to the right where they would collide."""
    free = 0.0
    for x, name, full in marks:
        y = min(roof[0], x * roof[1])
        at = max(x, free)
        free = at * APART
        axes.plot(x, y, "o", color="black", markerfacecolor="black" if full else "white", zorder=5)
        arrow = {"arrowstyle": "-", "color": "0.6", "linewidth": 0.7, "shrinkB": 3, "shrinkA": 0}
        axes.annotate(name, (x, y), (at, min(y, at * roof[1]) / 1.9), rotation=90, fontsize=8,
                      ha="center", va="top", arrowprops=arrow,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4})  # fmt: skip
