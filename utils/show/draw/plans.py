"""Plans of a training run in pictures: memory against what a rank has, a step by part, and how far
more chips bring more.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from utils.show.draw.costs import short
from utils.show.draw.picture import COLORS, HATCHES, MARKERS, Picture, finish, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from utils.cost.planner import Plan, Point

GIB = 2**30
MEMORY = ("weights", "gradients", "optimizer", "activations", "logits", "buffers")
STEP = ("products", "between", "tensor", "data", "pipeline", "bubble", "optimizer")
SOMETIMES = ("context", "experts")
"""Parts of a step that most plans do not have."""
GRAYS = ("0.6", "0.75", "0.4")


def plans(named: Mapping[str, "Plan"], caption: str) -> Picture:
    """Two panels with one bar per plan: memory of the fullest rank by part, with a line at what it
    may use; and a step by part.

    Args:
        named: a short name of each layout to its plan.
    """
    figure = new_figure(7.4, 0.34 * len(named) + 1.5)
    left, right = figure.subplots(1, 2, sharey=True)
    _bars(left, [item.memory for item in named.values()], MEMORY, 1 / GIB)
    (usable,) = {item.usable_bytes for item in named.values()}
    left.axvline(usable / GIB, color="black", linewidth=1.3)
    left.annotate("usable", (usable / GIB, 0), (3, 3), textcoords="offset points", fontsize=8,
                  xycoords=("data", "axes fraction"))  # fmt: skip
    # What needs many times more than there is would make all others invisible.
    left.set_xlim(0, 2.5 * usable / GIB)
    left.set_xlabel("memory of a rank, GiB", fontsize=9)
    for row, plan in enumerate(named.values()):
        if plan.memory_bytes > 2.5 * usable:
            left.annotate(f"{short(plan.memory_bytes / GIB)} GiB", (2.45 * usable / GIB, row),
                          ha="right", va="center", fontsize=8, backgroundcolor="white")  # fmt: skip
    seconds = [item.seconds for item in named.values()]
    there = [part for part in SOMETIMES if any(row[part] for row in seconds)]
    _bars(right, seconds, (*STEP, *there), 1)
    for row, plan in enumerate(named.values()):
        text = "" if plan.fits else "  does not fit"
        right.annotate(f" {short(plan.step_seconds)}{text}", (plan.step_seconds, row), va="center",
                       fontsize=8)  # fmt: skip
    right.margins(x=0.25)
    right.set_xlabel("step, s", fontsize=9)
    left.set_yticks(range(len(named)), list(named), fontsize=8)
    left.invert_yaxis()
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=7, ncols=4, loc="lower center",
                    bbox_to_anchor=(0.5, 1), columnspacing=0.8)  # fmt: skip
    return finish(figure, caption, diagram=True)


def _bars(
    axes: "Axes", rows: Sequence[Mapping[str, float]], parts: Sequence[str], scale: float
) -> None:
    ends = [0.0] * len(rows)
    for i, part in enumerate(parts):
        widths = [scale * row[part] for row in rows]
        looks: dict[str, Any] = {
            "color": COLORS[i % len(COLORS)],
            "hatch": HATCHES[i % len(HATCHES)],
        }
        if i >= len(COLORS):
            looks = {"color": GRAYS[i - len(COLORS)], "hatch": ("--", "oo", "**")[i - len(COLORS)]}
        axes.barh(range(len(rows)), widths, left=ends, height=0.7, label=part, edgecolor="white",
                  linewidth=0.4, **looks)  # fmt: skip
        ends = [end + width for end, width in zip(ends, widths, strict=True)]


def scaling_curves(curves: Mapping[str, Sequence["Point"]], caption: str) -> Picture:
    """Tokens per second over the number of chips, and the share of each chip's peak that is kept:
    as the plan says, and what is left of it with failures (dashed). Sizes at which nothing fits are
    left out.

    Args:
        curves: name to points, ascending in chips.
    """
    figure = new_figure(7.4, 3.1)
    left, right = figure.subplots(1, 2)
    for i, (name, points) in enumerate(curves.items()):
        fitting = [p for p in points if p.plan and p.goodput]
        chips = [p.chips for p in fitting]
        looks = {"color": COLORS[i], "marker": MARKERS[i], "markersize": 4}
        left.plot(chips, [p.tokens_per_s for p in fitting], label=name, **looks)
        left.plot(chips, [p.kept_per_s for p in fitting], linestyle="--", **looks)
        useful = [(p.plan.mfu, p.goodput.share) for p in fitting if p.plan and p.goodput]
        right.plot(chips, [100 * mfu for mfu, _ in useful], label=name, **looks)
        right.plot(chips, [100 * mfu * share for mfu, share in useful], linestyle="--", **looks)
    left.set(xscale="log", yscale="log", ylabel="tokens per second")
    right.set(xscale="log", ylim=(0, None), ylabel="MFU, %")
    for axes in (left, right):
        axes.plot([], [], color="0.3", linestyle="--", label="kept, with failures")
        axes.set_xlabel("chips")
        axes.spines[["top", "right"]].set_visible(False)
    left.legend(frameon=False, fontsize=8)
    return finish(figure, caption)
