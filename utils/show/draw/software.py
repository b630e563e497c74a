"""Which software lasts from when to when."""

import datetime
from collections.abc import Mapping
from typing import Any

from utils.facts.timeline import last_read, releases, spans
from utils.show.draw.picture import COLORS, HATCHES, Picture, finish, new_figure

_STATES: Mapping[str, Mapping[str, Any]] = {
    "supported": {"facecolor": COLORS[0]},
    "maintenance": {"facecolor": COLORS[4], "hatch": HATCHES[1]},
    "private beta": {"facecolor": "white", "hatch": HATCHES[2]},
    "public beta": {"facecolor": COLORS[1], "hatch": HATCHES[4]},
}
_MARGIN = datetime.timedelta(days=30)


def ways(caption: str) -> Picture:
    """Every way to use PyTorch on Neuron as bars over the releases of the SDK."""
    import matplotlib.dates as dates
    from matplotlib.patches import Patch

    lanes = list(dict.fromkeys(item.lane for item in spans()))
    begin, end = min(releases().values()) - _MARGIN, last_read()
    figure = new_figure(7.4, 0.38 * len(lanes) + 1.2)
    axes = figure.subplots()
    for span in spans():
        since = dates.date2num(releases().get(span.since, begin))
        until = dates.date2num(releases().get(span.until, end))
        row = lanes.index(span.lane)
        axes.barh(row, until - since, 0.62, left=since, edgecolor="0.25", linewidth=0.6,
                  **_STATES[span.state])  # fmt: skip
    for version, date in releases().items():
        place = dates.date2num(date)
        axes.axvline(place, color="0.55", linewidth=0.8, linestyle=":", zorder=0)
        axes.text(place, -0.62, version, ha="center", va="bottom", fontsize=8)
    axes.set_title("release of the Neuron SDK", fontsize=8, pad=16)
    axes.set_yticks(range(len(lanes)), lanes)
    axes.set_ylim(len(lanes) - 0.5, -0.55)
    axes.set_xlim(dates.date2num(begin), dates.date2num(end))
    axes.xaxis.set_major_locator(dates.MonthLocator(interval=2))
    axes.xaxis.set_major_formatter(dates.DateFormatter("%Y-%m"))
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    keys = [Patch(edgecolor="0.25", linewidth=0.6, label=name, **style)
            for name, style in _STATES.items()]  # fmt: skip
    figure.legend(handles=keys, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return finish(figure, caption, diagram=True)
