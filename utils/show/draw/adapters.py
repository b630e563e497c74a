"""Adapters: two thin matrices beside a frozen one, the memory that they need, and the graphs of
several weeks.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from utils.show.draw.picture import COLORS, HATCHES, Picture, finish, new_figure

if TYPE_CHECKING:
    from matplotlib.patches import Rectangle

FROZEN = "0.8"


def thin_matrices(width_in: int, width_out: int, rank: int, caption: str) -> Picture:
    """A weight [width_out, width_in] and the adapter beside it, in proportion; a rank too thin to
    see is drawn thicker."""
    figure = new_figure(7, 2.5)
    axes = figure.subplots()
    unit = 1 / max(width_in, width_out)
    wide, high, r = width_in * unit, width_out * unit, max(rank * unit, 0.035)
    gap = 0.44
    left = wide + gap
    boxes = (
        (0.0, (1 - high) / 2, wide, high, FROZEN, "", f"W\nfrozen\n{width_out} x {width_in}"),
        (left, (1 - high) / 2, r, high, COLORS[0], "", f"B\n{width_out} x {rank}"),
        (left + r + 0.12, 0.5 - r / 2, wide, r, COLORS[1], "//", f"A, {rank} x {width_in}"),
    )
    for x, y, across, up, color, hatch, words in boxes:
        axes.add_patch(_box(x, y, across, up, color, hatch))
        inside = across > 0.2 and up > 0.2
        axes.text(
            x + across / 2, y + up / 2 if inside else y - 0.04, words, ha="center",
            va="center" if inside else "top", fontsize=9,
        )  # fmt: skip
    axes.text(wide + gap / 2, 0.5, "+ scale ·", ha="center", va="center", fontsize=11)
    axes.text(left + r + 0.06, 0.5, "·", ha="center", va="center", fontsize=14)
    axes.set(
        xlim=(-0.03, left + r + 0.12 + wide + 0.03), ylim=(min(0.0, (1 - high) / 2) - 0.22, 1.02)
    )
    axes.set_aspect("equal")
    axes.axis("off")
    return finish(figure, caption, diagram=True)


def _box(x: float, y: float, across: float, up: float, color: str, hatch: str) -> "Rectangle":
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), across, up, facecolor=color, hatch=hatch, edgecolor="0.2")


def memory(
    needs: Mapping[str, Mapping[str, float]], marks: Mapping[str, float], caption: str
) -> Picture:
    """Bytes by part, one bar per way to train, and what machines hold as upright lines.

    Args:
        needs: name of a bar to {part: bytes}; all bars have the same parts.
        marks: name to usable bytes; those far to the right of all bars are left out.
    """
    figure = new_figure(7, 1.3 + 0.42 * len(needs))
    axes = figure.subplots()
    longest = max(sum(parts.values()) for parts in needs.values()) / 1e9
    left = [0.0] * len(needs)
    for i, part in enumerate(next(iter(needs.values()))):
        widths = [need[part] / 1e9 for need in needs.values()]
        axes.barh(
            range(len(needs)), widths, 0.62, left, label=part, hatch=HATCHES[i % len(HATCHES)],
            color=FROZEN if part == "frozen" else COLORS[i % len(COLORS)], edgecolor="white",
        )  # fmt: skip
        left = [a + b for a, b in zip(left, widths, strict=True)]
    shown = {name: item / 1e9 for name, item in marks.items() if item / 1e9 < 1.25 * longest}
    gap = longest / 80
    for row, total in enumerate(left):
        at = total + gap
        for line in sorted(shown.values()):  # no line goes through a number
            at = line + gap if at - gap <= line < at + 4 * gap else at
        axes.text(at, row, f"{total:,.0f}", va="center", fontsize=8,
                  bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})  # fmt: skip
    styles = (":", "--", "-.", "-")
    for i, (name, value) in enumerate(shown.items()):
        axes.axvline(value, color="0.15", linewidth=1.3, linestyle=styles[i % 4], label=name)
    axes.set_yticks(range(len(needs)), list(needs), fontsize=8)
    axes.invert_yaxis()
    axes.set(xlabel="GB for one replica, all devices together")
    axes.set_xlim(0, 1.08 * max([longest, *shown.values()]))
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.legend(frameon=False, fontsize=7, ncols=4, loc="lower center", bbox_to_anchor=(0.45, 1))
    return finish(figure, caption)


def graph_keys(rows: Mapping[str, Sequence[str]], caption: str) -> Picture:
    """Which processes asked for which graphs: one row each, one field per key; equal keys have the
    same colour, hatch and letter."""
    letters: dict[str, str] = {}
    figure = new_figure(7, 0.5 + 0.4 * len(rows))
    axes = figure.subplots()
    for row, keys in enumerate(rows.values()):
        for place, key in enumerate(keys):
            letter = letters.setdefault(key, chr(ord("A") + len(letters)))
            number = ord(letter) - ord("A")
            axes.barh(
                row, 0.94, 0.8, place, color=COLORS[number % len(COLORS)], alpha=0.8,
                hatch=HATCHES[number % len(HATCHES)], edgecolor="white",
            )  # fmt: skip
            axes.text(
                place + 0.47, row, letter, ha="center", va="center", fontsize=9,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
            )  # fmt: skip
    axes.set_yticks(range(len(rows)), list(rows), fontsize=8)
    axes.invert_yaxis()
    widest = max(map(len, rows.values()))
    axes.set(xlim=(-0.05, widest), xticks=[])
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    axes.tick_params(length=0)
    return finish(figure, caption, diagram=True)
