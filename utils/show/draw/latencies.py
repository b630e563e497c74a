"""Latencies of a service: by percentile, over the time of a test, against throughput, and how well
a sample knows its percentile.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from utils.show.draw.picture import COLORS, MARKERS, Picture, finish, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (1, 1)))
NINES = (50, 90, 99, 99.9)


def percentiles(
    curves: Mapping[str, Sequence[float]], caption: str, limit_s: float | None = None
) -> Picture:
    """Latency by percentile, the axis stretched towards 100, so that the tail can be seen.

    Args:
        curves: name to latencies in seconds, all above 0.
        limit_s: a target, drawn across.
    """
    figure = new_figure(7, 3)
    axes = figure.subplots()
    places = np.concatenate([np.linspace(5, 90, 35), 100 - np.geomspace(10, 0.1, 45)])
    for i, (name, seconds) in enumerate(curves.items()):
        axes.plot(1 / (1 - places / 100), 1e3 * np.percentile(seconds, places), label=name,
                  color=COLORS[i % len(COLORS)], linestyle=STYLES[i % len(STYLES)],
                  linewidth=2)  # fmt: skip
    if limit_s is not None:
        axes.axhline(1e3 * limit_s, color="0.3", linewidth=1, linestyle=":",
                     label=f"limit, {1e3 * limit_s:g} ms")  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="percentile", ylabel="latency [ms]")
    axes.set_xticks([1 / (1 - p / 100) for p in NINES], [f"p{p:g}" for p in NINES])
    axes.xaxis.minorticks_off()
    _plain(axes)
    axes.grid(color="0.92")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    return finish(figure, caption, diagram=True)


def _plain(axes: "Axes") -> None:
    """Milliseconds on the logarithmic axis as people write them: 20, 50, 100."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(lambda item, _: f"{item:,g}")
    axes.yaxis.set_minor_formatter(NullFormatter())


def waits(
    tests: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    caption: str,
    stall: tuple[float, float] | None = None,
) -> Picture:
    """What each request of several tests of one service measured, over the time of the test.

    Args:
        tests: name to (moment of each request, its latency), both in seconds.
        stall: a stretch in which the service stood still, shaded.
    """
    figure = new_figure(7, 0.8 + 1.25 * len(tests))
    rows = figure.subplots(len(tests), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for i, (axes, (name, (moments, seconds))) in enumerate(zip(rows, tests.items(), strict=True)):
        if stall:
            axes.axvspan(*stall, color="0.9", label=None if i else "the service stands still")
        axes.plot(moments, seconds, MARKERS[i], color=COLORS[i], markersize=3)
        axes.set_title(f"{name}: {len(seconds)} values", fontsize=9, loc="left")
        axes.set_ylabel("latency [s]")
        axes.spines[["top", "right"]].set_visible(False)
    if stall:
        rows[0].legend(frameon=False, fontsize=8, loc="upper right")
    rows[-1].set_xlabel("seconds since the start of the test")
    return finish(figure, caption, diagram=True)


def tradeoff(
    curves: Mapping[str, Sequence[tuple[float, float, str]]],
    caption: str,
    limit_s: float | None = None,
) -> Picture:
    """Latency against throughput, one curve for each way to serve.

    Args:
        curves: name to (items per second, latency in seconds, what stands at the point, or "").
        limit_s: a target, drawn across.
    """
    figure = new_figure(7, 3.1)
    axes = figure.subplots()
    for i, (name, points) in enumerate(curves.items()):
        rates, seconds, labels = zip(*points, strict=True)
        axes.plot(rates, [1e3 * item for item in seconds], color=COLORS[i % len(COLORS)],
                  marker=MARKERS[i % len(MARKERS)], linestyle=STYLES[i % len(STYLES)],
                  label=name)  # fmt: skip
        for rate, second, label in zip(rates, seconds, labels, strict=True):
            axes.annotate(label, (rate, 1e3 * second), (-3, 6), textcoords="offset points",
                          fontsize=8, ha="right", color=COLORS[i % len(COLORS)])  # fmt: skip
    if limit_s is not None:
        axes.axhline(1e3 * limit_s, color="0.3", linewidth=1, linestyle=":",
                     label=f"limit, {1e3 * limit_s:g} ms")  # fmt: skip
    axes.set(xlabel="requests answered per second", ylabel="p99 latency [ms]", xlim=(0, None),
             yscale="log")  # fmt: skip
    _plain(axes)
    axes.grid(color="0.92")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    return finish(figure, caption, diagram=True)


def intervals(
    rows: Mapping[str, tuple[float | None, float, float | None]], true: float, caption: str
) -> Picture:
    """Estimates with their intervals, one below the other, in milliseconds.

    Args:
        rows: name to (low, estimate, high) in seconds; an end that nobody knows is None, and drawn
            as an arrow.
        true: the value that was looked for, in seconds.
    """
    figure = new_figure(7, 0.9 + 0.32 * len(rows))
    axes = figure.subplots()
    known = [1e3 * item for row in rows.values() for item in row if item is not None]
    right = max([*known, 1e3 * true]) * 1.12
    for place, (low, value, high) in enumerate(rows.values()):
        begin, end = (1e3 * (value if item is None else item) for item in (low, high))
        axes.plot([begin, end], [place, place], color=COLORS[0], linewidth=2)
        if high is None:
            arrow = {"arrowstyle": "->", "color": COLORS[5], "linewidth": 2}
            axes.annotate("", (right, place), (end, place), arrowprops=arrow)
        axes.plot([1e3 * value], [place], "o", color="0.1")
    axes.axvline(1e3 * true, color="0.3", linestyle="--", linewidth=1, label="true value")
    for name, look, color in (
        ("estimate", "o", "0.1"), ("interval", "-", COLORS[0]), ("no end known", ">-", COLORS[5]),
    ):  # fmt: skip
        axes.plot([], [], look, color=color, label=name)
    axes.set_yticks(range(len(rows)), list(rows), fontsize=8)
    axes.invert_yaxis()
    axes.set(xlabel="milliseconds", xlim=(None, right))
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=4)
    return finish(figure, caption, diagram=True)
