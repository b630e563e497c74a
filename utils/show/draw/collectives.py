"""Collectives: time against size with both limits, and the model beside what was measured."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from utils.chip.collectives import Fabric, Tier, crossover_bytes, lines, seconds
from utils.show.draw.picture import COLORS, MARKERS, Picture, finish, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STYLES = ("-", "--", "-.", (0, (5, 1, 1, 1, 1, 1)))
_BYTES = {1e3: "kB", 1e6: "MB", 1e9: "GB"}


def size_label(size: float) -> str:
    """A size in the unit that fits.

    >>> size_label(999.0)
    '999 B'
    """
    for unit, name in reversed(_BYTES.items()):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.3g} B"


def collective_times(
    kind: str,
    fabrics: Mapping[str, Fabric | Tier],
    caption: str,
    low: float = 1e3,
    high: float = 1e10,
    ranks: Mapping[str, int] | None = None,
) -> Picture:
    """Time of a collective against its size, for each fabric with its two limits: the latency of
    the smallest message, and the bandwidth of the largest. A mark where both take as long.

    Args:
        fabrics: name to wiring, four at most. ranks: members of a group, where not all are.
    """
    figure = new_figure(7, 3.6)
    axes = figure.subplots()
    sizes = np.geomspace(low, high, 200)
    for i, (name, fabric) in enumerate(fabrics.items()):
        members = (ranks or {}).get(name)
        color = COLORS[i % len(COLORS)]
        known = lines(kind, fabric, members)
        latency = min(line.latency_s for line in known)
        per_byte = min(line.seconds_per_byte for line in known)
        times = seconds(kind, sizes, fabric, members).seconds
        at = crossover_bytes(kind, fabric, members)
        axes.plot(sizes, times, color=color, linestyle=_STYLES[i % len(_STYLES)], linewidth=2)
        for limit in (np.full_like(sizes, latency), per_byte * sizes):
            axes.plot(sizes, limit, color=color, linewidth=0.8, linestyle=(0, (1, 2)))
        axes.plot(
            at, 2 * per_byte * at, MARKERS[i], color=color, markersize=9, markeredgecolor="black",
            label=f"{name}: {size_label(at)}",
        )  # fmt: skip
    axes.plot([], [], color="0.4", linewidth=0.8, linestyle=(0, (1, 2)),
              label="latency alone, bandwidth alone")  # fmt: skip
    lowest = min(min(line.latency_s for line in lines(kind, f, (ranks or {}).get(n)))
                 for n, f in fabrics.items())  # fmt: skip
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(lowest / 3, None))
    axes.set(xlabel="size of the message [B]", ylabel=f"{kind} [s]")
    _plain(axes)
    axes.legend(title="latency gives way to bandwidth at", fontsize=8, title_fontsize=8,
                frameon=False, loc="upper left")  # fmt: skip
    return finish(figure, caption, diagram=True)


def modelled_measured(
    points: Mapping[str, Sequence[tuple[float, float]]], caption: str, factor: float = 2.0
) -> Picture:
    """Modelled against measured seconds; on the diagonal both agree, in the band within `factor`.

    Args:
        points: name of a group to (measured, modelled), six groups at most.
    """
    every = [value for group in points.values() for pair in group for value in pair]
    low, high = min(every) / 2, max(every) * 2
    figure = new_figure(5.6, 3.9)
    axes = figure.subplots()
    span = np.array([low, high])
    axes.fill_between(
        span, span / factor, span * factor, color="0.92", label=f"within {factor:g} x"
    )
    axes.plot(span, span, color="0.3", linewidth=1)
    for i, (name, group) in enumerate(points.items()):
        measured, modelled = zip(*group, strict=True)
        axes.plot(measured, modelled, MARKERS[i], color=COLORS[i], markersize=6, label=name,
                  markeredgecolor="black", markeredgewidth=0.5, linestyle="none")  # fmt: skip
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
    axes.set(xlabel="measured [s]", ylabel="modelled [s]")
    _plain(axes)
    axes.legend(fontsize=8, frameon=False, loc="upper left")
    return finish(figure, caption, diagram=True)


def _plain(axes: "Axes") -> None:
    axes.minorticks_off()
    axes.grid(color="0.92")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
