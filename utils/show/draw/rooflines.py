"""Rooflines: the highest rate a machine allows at each arithmetic intensity, with works on it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from utils.show.draw.picture import COLORS, MARKERS, Picture, finish, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))


def roofline(
    roofs: Mapping[str, tuple[float, float]],
    works: Mapping[str, float],
    caption: str,
    counted: Mapping[str, float] | None = None,
) -> Picture:
    """Roofs on logarithmic axes, each with its ridge marked, and works on the first of them.

    Works have numbers; their names and intensities stand below the roof. Where roofs coincide, the
    later ones are thinner lines on the earlier.

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
        axes.plot([low, ridge, high], [low * bandwidth, flops, flops], color=color,
                  linewidth=1.6 + 1.1 * (len(roofs) - 1 - i), linestyle=STYLES[i % len(STYLES)],
                  label=f"{name}: ridge at {ridge:,.0f} FLOP/B",
                  marker=MARKERS[i % len(MARKERS)], markevery=[1])  # fmt: skip
    # Room for the names of the works, in the corner below the roof.
    floor = low * min(bandwidth for _, bandwidth in roofs.values()) / 40
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(floor, None))
    axes.set(xlabel="arithmetic intensity [FLOP/B]", ylabel="attainable rate [FLOP/s]")
    axes.minorticks_off()
    axes.grid(color="0.92")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", fontsize=8, frameon=False)
    _place(axes, sorted(marks), next(iter(roofs.values())))
    return finish(figure, caption, diagram=True)


def _place(axes: "Axes", marks: list[tuple[float, str, bool]], roof: tuple[float, float]) -> None:
    """Numbered dots on the roof, and what the numbers stand for in the corner below it."""
    names = []
    for i, (x, name, full) in enumerate(marks, 1):
        y = min(roof[0], x * roof[1])
        axes.plot(x, y, "o", color="black", markerfacecolor="black" if full else "white", zorder=5)
        # Above and below in turns, so that numbers of neighbours do not meet.
        shift, place = ((-5, 4), "bottom") if i % 2 else ((5, -4), "top")
        axes.annotate(str(i), (x, y), shift, textcoords="offset points", fontsize=8, ha="center",
                      va=place, zorder=6)  # fmt: skip
        value = f"{x:,.0f}" if x >= 100 else f"{x:.3g}"
        names.append(f"{i}  {name}: {value} FLOP/B")
    axes.text(0.99, 0.03, "\n".join(names), transform=axes.transAxes, ha="right", va="bottom",
              fontsize=8, multialignment="left", linespacing=1.35,
              bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})  # fmt: skip
