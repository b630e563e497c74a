"""Who did what when: loaders and their loop, lanes of a profiler trace, collectives beside work."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from utils.show.draw.picture import COLORS, HATCHES, Picture, finish, new_figure

if TYPE_CHECKING:
    from utils.training.loading import Schedule
    from utils.training.native.overlap import Overlap
    from utils.training.traces import Trace

_WAIT: Mapping[str, Any] = {
    "facecolor": "white",
    "edgecolor": COLORS[5],
    "hatch": "///",
    "linewidth": 0.8,
}


def pipelines(schedules: Mapping[str, "Schedule"], caption: str) -> Picture:
    """Loads, waits and work of several schedules, one below the other, on one time axis.

    Loads and steps carry the number of their batch. Without workers the loop loads, so there is no
    row of a worker.

    schedules: title to what `utils.training.loading.predict` returns, of at most 30 batches each.
    """
    rows = [1 + (len(set(plan.workers)) if _ahead(plan) else 0) for plan in schedules.values()]
    figure = new_figure(7.4, 0.32 * sum(rows) + 0.42 * len(rows) + 0.75)
    ratios = {"height_ratios": [item + 0.4 for item in rows]}
    every = figure.subplots(len(rows), 1, sharex=True, squeeze=False, gridspec_kw=ratios)[:, 0]
    longest = max(plan.done_s[-1] for plan in schedules.values())
    for axes, (title, plan), count in zip(every, schedules.items(), rows, strict=True):
        several = [f"worker {row + 1}" for row in range(count - 1)]
        names = [*(several if count > 2 else several and ["loads"]), "loop"]
        loads = list(zip(plan.workers, plan.begins_s, plan.ends_s, strict=True))
        for batch, (worker, begin, end) in enumerate(loads):
            row = worker if count > 1 else 0
            _number(axes, row, begin, end, batch, COLORS[1], longest)
        for batch, (asked, taken, done) in enumerate(
            zip(plan.asked_s, plan.taken_s, plan.done_s, strict=True)
        ):
            if taken > asked and count > 1:
                axes.broken_barh([(asked, taken - asked)], (count - 1.36, 0.72), **_WAIT)
            _number(axes, count - 1, taken, done, batch, COLORS[0], longest)
        axes.set_yticks(range(count), names, fontsize=8)
        axes.set_ylim(count - 0.5, -0.5)
        axes.set_title(title, fontsize=9, loc="left")
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
    every[-1].set_xlabel("seconds of the clock in the model")
    every[-1].set_xlim(0, longest)
    figure.legend(
        handles=_keys({"load": COLORS[1], "step": COLORS[0]}, wait=True),
        loc="outside upper right", ncols=3, frameon=False, fontsize=8,
    )  # fmt: skip
    return finish(figure, caption, diagram=True)


def _ahead(plan: "Schedule") -> bool:
    """Whether somebody else than the loop loads."""
    return any(a != b for a, b in zip(plan.begins_s, plan.asked_s, strict=True)) or (
        len(set(plan.workers)) > 1
    )


def _number(
    axes: Any, row: int, begin: float, end: float, number: int, color: str, longest: float
) -> None:
    if end <= begin:
        return
    axes.broken_barh([(begin, end - begin)], (row - 0.36, 0.72), facecolor=color,
                     edgecolor="white", linewidth=0.6)  # fmt: skip
    if (end - begin) / longest > 0.02:
        axes.text((begin + end) / 2, row, str(number), ha="center", va="center", fontsize=7,
                  color="black" if color == COLORS[1] else "white")  # fmt: skip


def _keys(colors: Mapping[str, str], wait: bool = False) -> list[Any]:
    from matplotlib.patches import Patch

    keys = [Patch(facecolor=color, label=name) for name, color in colors.items()]
    return keys + ([Patch(label="wait", **_WAIT)] if wait else [])


_STYLE: Mapping[str, Mapping[str, Any]] = {
    "trace": {"facecolor": COLORS[0]},
    "compile": {"facecolor": COLORS[3], "hatch": HATCHES[3]},
    "transfer": {"facecolor": COLORS[2], "hatch": HATCHES[2]},
    "execute": {"facecolor": COLORS[4], "hatch": HATCHES[5]},
    "wait": _WAIT,
    "data": {"facecolor": COLORS[1], "hatch": HATCHES[4]},
}
_ROWS = ("host", "loader", "uploader", "device", "compiler")


def lanes(
    trace: "Trace",
    caption: str,
    window_ms: tuple[float, float] | None = None,
    mark: Sequence[str] = (),
) -> Picture:
    """The lanes of a trace over time, coloured by what they did.

    Args:
        window_ms: from when to when; by default all of the capture.
        mark: names of events of the host, each drawn in a row of its own above the lanes.
    """
    from matplotlib.patches import Patch

    begin, end = window_ms or (0.0, trace.length_ms)
    shown = trace.segments
    shown = shown[(shown["end_ms"] > begin) & (shown["begin_ms"] < end)]
    rows = [*mark, *(lane for lane in _ROWS if (shown["lane"] == lane).any())]
    figure = new_figure(7.4, 0.36 * len(rows) + 1.0)
    axes = figure.subplots()
    events = trace.events
    for row, name in enumerate(mark):
        own = events[(events["name"] == name) & (events["lane"] == "host")]
        spans = list(zip(own["begin_ms"], own["duration_ms"], strict=True))
        axes.broken_barh(spans, (row - 0.2, 0.4), facecolor="0.35")
    for row, lane in enumerate(rows[len(mark) :], len(mark)):
        for kind, style in _STYLE.items():
            own = shown[(shown["lane"] == lane) & (shown["kind"] == kind)]
            spans = list(zip(own["begin_ms"], own["end_ms"] - own["begin_ms"], strict=True))
            axes.broken_barh(spans, (row - 0.36, 0.72), **{"edgecolor": "none", **style})
    axes.set_yticks(range(len(rows)), rows)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(begin, end)
    axes.set_xlabel("milliseconds on this CPU, from the start of the capture")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    results = [kind for kind in _STYLE if (shown["kind"] == kind).any()]
    keys = [Patch(**{"edgecolor": "none", **_STYLE[kind], "label": kind}) for kind in results]
    keys += [Patch(facecolor="0.35", label="between two marks of the loop")] if mark else []
    figure.legend(handles=keys, loc="outside upper center", ncols=6, frameon=False, fontsize=8)
    return finish(figure, caption, diagram=True)


def overlaps(plans: Mapping[str, "Overlap"], caption: str) -> Picture:
    """What a rank computes and communicates over time, two rows for each plan, on one time axis."""
    from matplotlib.patches import Patch

    styles = {
        "forward": (COLORS[0], ""),
        "backward": (COLORS[1], ""),
        "gather": (COLORS[2], HATCHES[2]),
        "scatter": (COLORS[4], HATCHES[4]),
    }
    figure = new_figure(7.4, 0.62 * len(plans) + 1.0)
    axes = figure.subplots()
    names = []
    for place, (title, plan) in enumerate(plans.items()):
        for row, lane in enumerate(("compute", "communicate")):
            names.append(f"{title}: {lane}")
            for span in plan.spans:
                if span.lane == lane:
                    color, hatch = styles[span.name.partition(" ")[0]]
                    bar = [(1e3 * span.begin_s, 1e3 * (span.end_s - span.begin_s))]
                    axes.broken_barh(
                        bar, (2 * place + row - 0.4, 0.8),
                        facecolor=color, hatch=hatch, edgecolor="white", linewidth=0.8,
                    )  # fmt: skip
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(0, 1e3 * max(plan.step_s for plan in plans.values()))
    axes.set_xlabel("milliseconds, modelled")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    keys = [
        Patch(facecolor=color, hatch=hatch, edgecolor="white", label=name)
        for name, (color, hatch) in styles.items()
    ]
    figure.legend(handles=keys, loc="outside upper right", ncols=4, frameon=False, fontsize=8)
    return finish(figure, caption, diagram=True)
