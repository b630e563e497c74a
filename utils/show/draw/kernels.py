"""Figures of a kernel's profile: engines over time, memory over time, and what HBM gave how often.

All times are the estimates of the course's model, and each figure says so.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from utils.show.draw.picture import COLORS, MARKERS, Picture, finish, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from utils.nki.simulator.profile import Profile

LANES = ("tensor", "vector", "scalar", "gpsimd", "dma")
NAMES = {
    "tensor": "Tensor", "vector": "Vector", "scalar": "Scalar", "gpsimd": "GpSimd", "dma": "DMA",
}  # fmt: skip
UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
PIXELS = 600
"""About the width of a timeline."""
MOST_BARS = 4000
"""Narrower bars than this many side by side cannot be seen; they are drawn as one."""


def kernel_timeline(
    profiles: "Mapping[str, Profile]", caption: str = "", span: tuple[float, float] | None = None
) -> Picture:
    """What each engine does over time, kernel below kernel on one time axis.

    profiles: what a kernel is called in the figure to its profile.
    span: seconds from and to, to see a part of it.
    """
    from matplotlib.ticker import MaxNLocator

    used = {name: _lanes(profile) for name, profile in profiles.items()}
    heights = [len(lanes) + 0.9 for lanes in used.values()]
    figure = new_figure(6.6, 0.32 * sum(heights) + 0.5)
    rows = figure.subplots(
        len(profiles), sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights}
    )[:, 0]
    start, end = span or (0.0, max(profile.seconds for profile in profiles.values()))
    scale, unit = _unit(end - start)
    for axes, (name, profile) in zip(rows, profiles.items(), strict=True):
        for row, lane in enumerate(used[name]):
            color = LANES.index(lane)
            bars = _bars(profile, lane, start, end)
            seen = _widen(bars, (end - start) / PIXELS)
            axes.broken_barh(
                [(left / scale, width / scale) for left, width in seen],
                (row - 0.38, 0.76),
                facecolor=COLORS[color],
                linewidth=0,
                snap=False,  # or bars narrower than a pixel vanish
            )
        busy = profile.utilisation
        axes.set_yticks(
            range(len(used[name])), [f"{NAMES[lane]}  {busy[lane]:.0%}" for lane in used[name]]
        )
        axes.set_ylim(len(used[name]) - 0.4, -0.6)
        axes.set_title(f"{name}: {_time(profile.seconds)}", loc="left", fontsize=9)
        axes.tick_params(labelsize=8, length=0)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.grid(axis="x", color="0.9")
        axes.set_axisbelow(True)
        if not span:
            axes.axvline(profile.seconds / scale, color="0.4", linestyle=":", linewidth=1)
    rows[-1].set_xlim(start / scale, end / scale)
    rows[-1].xaxis.set_major_locator(MaxNLocator(8))
    target = next(iter(profiles.values())).target
    rows[-1].set_xlabel(f"estimated time on one core of {target} ({unit})", fontsize=8)
    return finish(figure, caption or _timeline_words(profiles), diagram=True)


def _lanes(profile: "Profile") -> list[str]:
    return [lane for lane in LANES if profile.busy.get(lane, 0.0) > 0]


def _bars(profile: "Profile", lane: str, start: float, end: float) -> list[tuple[float, float]]:
    """(start, length) of what a lane does in a span, with gaps too narrow to be seen closed."""
    gap = (end - start) / MOST_BARS
    results = sorted(
        (max(interval.start, start), min(interval.end, end))
        for interval in profile.intervals
        if interval.engine.partition(" ")[0] == lane
        and interval.end > start
        and interval.start < end
    )
    joined: list[list[float]] = []
    for left, right in results:
        if joined and left - joined[-1][1] < gap:
            joined[-1][1] = max(joined[-1][1], right)
        else:
            joined.append([left, right])
    return [(left, max(right - left, gap / 2)) for left, right in joined]


def _widen(bars: list[tuple[float, float]], pixel: float) -> list[tuple[float, float]]:
    """Bars that stand alone get a width that can be seen; crowded ones keep theirs, as a shade.

    >>> _widen([(0.0, 0.2), (9.0, 0.2), (9.5, 0.2)], pixel=1.0)
    [(0.0, 1.0), (9.0, 0.2), (9.5, 1.0)]
    """
    ends = [left for left, _ in bars[1:]] + [math.inf]
    return [
        (left, max(width, pixel) if after - left > 3 * pixel else width)
        for (left, width), after in zip(bars, ends, strict=True)
    ]


def _unit(seconds: float) -> tuple[float, str]:
    return next(((scale, unit) for scale, unit in UNITS if seconds >= scale), UNITS[-1])


def _time(seconds: float) -> str:
    """
    >>> _time(0.0000425), _time(0.0215)
    ('about 42.5 µs', 'about 21.5 ms')
    """
    scale, unit = _unit(seconds)
    return f"about {seconds / scale:.3g} {unit}"


def _timeline_words(profiles: "Mapping[str, Profile]") -> str:
    text = []
    for name, profile in profiles.items():
        busy = ", ".join(
            f"{NAMES[lane]} {profile.utilisation[lane]:.0%}" for lane in _lanes(profile)
        )
        text.append(f"{name}, {_time(profile.seconds)}: {busy}")
    return "Estimated timelines, and how busy engines are: " + "; ".join(text) + "."


def occupancy(profile: "Profile", caption: str = "") -> Picture:
    """How full SBUF and PSUM are over time, with their limits."""
    figure = new_figure(6.6, 2.1)
    panels = figure.subplots(1, 2)
    target = profile.program.target
    words = []
    for axes, region, limit, scale, unit in (
        (panels[0], "sbuf", target.sbuf_bytes, 1024, "KiB in each partition"),
        (panels[1], "psum", target.psum_bytes, target.psum_bank_bytes, "banks"),
    ):
        steps = profile.occupancy[region]
        time_scale, time_unit = _unit(profile.seconds)
        times = [time / time_scale for time, _ in steps] + [profile.seconds / time_scale]
        levels = [used / scale for _, used in steps]
        axes.stairs(levels, times, fill=True, color=COLORS[4], edgecolor=COLORS[0])
        axes.axhline(limit / scale, color=COLORS[5], linestyle="--", linewidth=1.2)
        axes.annotate("all of it", (1, limit / scale), (0, 3), ha="right", fontsize=8,
                      xycoords=("axes fraction", "data"), textcoords="offset points")  # fmt: skip
        axes.set_ylim(0, limit / scale * 1.2)
        axes.set_xlim(0, times[-1])
        axes.set_title(f"{region.upper()}: {unit}", fontsize=9, loc="left")
        axes.set_xlabel(f"estimated time ({time_unit})", fontsize=8)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        words.append(
            f"{region.upper()} holds at most {max(levels, default=0):.3g} of "
            f"{limit / scale:g} {unit}"
        )
    alternative = "Memory over time: " + "; ".join(words) + "."
    return finish(figure, caption or alternative, diagram=True)


def hbm_loads(
    profiles: "Mapping[str, Profile]", names: Sequence[str], caption: str = ""
) -> Picture:
    """Each argument of a kernel as a table, coloured by how often each part was loaded.

    Several kernels stand side by side, an argument in each row of panels.

    profiles: what a kernel is called to its profile. names: of the arguments, in their order.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    # late: the simulator is slow to load, and only this figure needs it
    from utils.nki.simulator.traffic import moves

    several = len(profiles) > 1
    high, wide = (len(names), len(profiles)) if several else (1, len(names))
    figure = new_figure(1.45 * wide + 0.9, 1.75 * high + 0.2)
    panels = figure.subplots(high, wide, squeeze=False)
    loads = {
        (kernel, name): moves(profile.program, profile.program.inputs[place])
        for place, name in enumerate(names)
        for kernel, profile in profiles.items()
    }
    most = max(2, *(load.most for load in loads.values()))
    norm = LogNorm(1, most)
    for axes, ((kernel, name), item) in zip(panels.flat, loads.items(), strict=True):
        rows, columns = (np.array(borders) for borders in (item.rows, item.columns))
        shown = np.ma.masked_equal(item.times, 0)
        axes.pcolormesh(columns, rows, shown, norm=norm, cmap="viridis_r")
        _mesh(axes, rows, columns)
        axes.invert_yaxis()
        axes.set_aspect(_aspect(rows[-1], columns[-1]))
        axes.set_title(f"{kernel}\n{name}: {_often(item.mean)}", fontsize=8)
        axes.set_xticks([0, columns[-1]])
        axes.set_yticks([0, rows[-1]])
        axes.tick_params(labelsize=8, length=2)
        axes.set_facecolor("white")
    for axes in panels[-1]:
        axes.set_xlabel("column", fontsize=8, labelpad=1)
    for axes in panels[:, 0]:
        axes.set_ylabel("row", fontsize=8, labelpad=-8)
    ticks = [2**power for power in range(most.bit_length())]
    bar = figure.colorbar(ScalarMappable(norm, "viridis_r"), ax=panels, shrink=0.8, ticks=ticks)
    bar.ax.set_yticklabels([str(tick) for tick in ticks])
    bar.ax.minorticks_off()
    bar.ax.tick_params(labelsize=8)
    bar.set_label("times loaded", fontsize=9)
    text = "; ".join(
        f"{name}: "
        + ", ".join(f"{_often(loads[kernel, name].mean)} by {kernel}" for kernel in profiles)
        for name in names
    )
    alternative = f"How often each part of an argument is loaded. {text}."
    return finish(figure, caption or alternative, diagram=True)


def _often(times: float) -> str:
    """
    >>> _often(1.0), _often(4.0)
    ('once', '4 times')
    """
    return "once" if times == 1 else f"{times:.3g} times"


def _mesh(axes: "Axes", rows: np.ndarray, columns: np.ndarray) -> None:
    """Borders of the parts, where they are few enough to be seen."""
    if len(rows) <= 40 and len(columns) <= 40:
        axes.hlines(rows, columns[0], columns[-1], color="white", linewidth=0.4)
        axes.vlines(columns, rows[0], rows[-1], color="white", linewidth=0.4)


def _aspect(rows: int, columns: int) -> float:
    """Equal for ordinary shapes; long and thin tables are drawn square."""
    return 1.0 if 0.25 <= rows / columns <= 4 else columns / rows


def kernel_roofline(
    profiles: "Mapping[str, Profile]", flop_per_s: float, bytes_per_s: float, caption: str = ""
) -> Picture:
    """Kernels under the roof of one core: a dot for the rate of each, a line up to its roof.

    profiles: what a kernel is called to its profile, of kernels with matrix products.
    flop_per_s, bytes_per_s: the two limits that make up the roof.
    """
    ridge = flop_per_s / bytes_per_s
    places = {
        name: (item.intensity, item.flop / item.seconds / flop_per_s)
        for name, item in profiles.items()
    }
    spread = [ridge, *(x for x, _ in places.values())]
    low, high = min(spread) / 2, max(spread) * 3
    figure = new_figure(5.6, 2.7)
    axes = figure.subplots()
    axes.plot([low, ridge, high], [low / ridge, 1, 1], color=COLORS[0], linewidth=2)
    axes.annotate(f"ridge at {ridge:.0f}", (ridge, 1), (0, 4), textcoords="offset points",
                  fontsize=8, ha="center", va="bottom", color=COLORS[0])  # fmt: skip
    for i, (name, (x, share)) in enumerate(places.items()):
        color, roof = COLORS[(i + 1) % len(COLORS)], min(1.0, x / ridge)
        axes.plot([x, x], [share, roof], color="0.5", linestyle=":", linewidth=1.2)
        axes.plot(x, share, MARKERS[i % len(MARKERS)], color=color, markersize=7, zorder=5,
                  label=f"{name}: {share:.0%}")  # fmt: skip
    axes.set(xscale="log", yscale="log", ylim=(None, 1.6))
    axes.set_xlabel("achieved arithmetic intensity [FLOP/B]", fontsize=8)
    axes.set_ylabel("rate, share of the peak", fontsize=8)
    steps = [digit * 10**power for power in range(5) for digit in (1, 2, 5)]
    axes.set_xticks(steps, [f"{step:,}" for step in steps])
    axes.set_yticks([0.1, 0.2, 0.5, 1], ["10%", "20%", "50%", "100%"])
    axes.minorticks_off()
    axes.set_xlim(low, high)
    axes.tick_params(labelsize=8)
    axes.grid(color="0.92")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", fontsize=8, frameon=False)
    text = "; ".join(
        f"{name} {share:.0%} of {min(1.0, x / ridge):.0%}" for name, (x, share) in places.items()
    )
    alternative = f"Estimated rates, and what the roof allows, in shares of the peak: {text}."
    return finish(figure, caption or alternative, diagram=True)
