"""The bytes that a division of tensors over a mesh of devices moves."""

from collections.abc import Mapping
from typing import Any

from utils.show.draw.picture import COLORS, HATCHES, Picture, finish, new_figure

Totals = Mapping[str, tuple[int, float]]


def traffic(steps: Mapping[str, tuple[Totals, Totals]], caption: str) -> Picture:
    """Bytes of collectives, one bar for each step, stacked by kind; a line where the annotations
    would have it end.

    steps: name -> what the annotations say and what the compiler wrote, each as kind -> (number,
        bytes of the results on one device).
    """
    kinds = list(dict.fromkeys(kind for _, wrote in steps.values() for kind in wrote))
    figure = new_figure(7, 1.1 + 0.28 * len(steps))
    axes = figure.subplots()
    longest = max(
        (sum(size for _, size in wrote.values()) for _, wrote in steps.values()), default=0
    )
    for place, (says, wrote) in enumerate(steps.values()):
        left = 0.0
        for kind, (number, size) in wrote.items():
            color = kinds.index(kind)
            axes.barh(place, size / 1e3, left=left / 1e3, color=COLORS[color],
                      hatch=HATCHES[color], edgecolor="white")  # fmt: skip
            if size > longest / 12:
                axes.text((left + size / 2) / 1e3, place, f"{number}", ha="center", va="center",
                          fontsize=8, bbox={"boxstyle": "round,pad=0.15", "facecolor": "white",
                                            "edgecolor": "none"})  # fmt: skip
            left += size
        text = sum(size for _, size in says.values())
        axes.plot([text / 1e3] * 2, [place - 0.45, place + 0.45], color="black", linewidth=2.5)
        axes.text((max(left, text) + longest / 60) / 1e3, place, f"{left / 1e3:,.0f}",
                  va="center", fontsize=8)  # fmt: skip
    axes.set_yticks(range(len(steps)), list(steps), fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.08)
    axes.set_xlabel("thousand bytes of results on one device; in the bars: how many")
    axes.spines[["top", "right"]].set_visible(False)
    handles: list[Any] = [
        axes.barh(0, 0, color=COLORS[i], hatch=HATCHES[i], edgecolor="white")
        for i in range(len(kinds))
    ]
    handles += axes.plot([], [], color="black", linewidth=2.5)
    axes.legend(handles, [*kinds, "annotations say"], frameon=False, fontsize=8,
                ncols=len(kinds) + 1, loc="lower right", bbox_to_anchor=(1, 1))  # fmt: skip
    return finish(figure, caption, diagram=True)
