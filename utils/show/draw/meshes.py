"""Tensors divided over a mesh of devices, and the bytes that a division moves."""

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from utils.show.draw.picture import COLORS, HATCHES, Picture, finished, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Spec = Sequence[str | None]
Totals = Mapping[str, tuple[int, float]]


def holders(shape: Sequence[int], spec: Spec, axes: Mapping[str, int]) -> dict[tuple, list[int]]:
    """Which devices hold which part: place of the part along each dimension -> device numbers.

    axes: devices along each axis of the mesh; devices are numbered along the last axis first.

    >>> holders((8, 4), ("data", None), {"data": 2, "model": 2})
    {(0, 0): [0, 1], (1, 0): [2, 3]}

    Raises: ValueError if an axis is unknown or does not divide its dimension.
    """
    for size, axis in zip(shape, spec, strict=True):
        if axis is not None and (axis not in axes or size % axes[axis]):
            raise ValueError(
                f"axis {axis!r} cannot divide {size} into equal parts: the mesh has {dict(axes)}"
            )
    parts: dict[tuple, list[int]] = {}
    for device, place in enumerate(itertools.product(*map(range, axes.values()))):
        along = dict(zip(axes, place, strict=True))
        part = tuple(0 if axis is None else along[axis] for axis in spec)
        parts.setdefault(part, []).append(device)
    return dict(sorted(parts.items()))


def divided(
    tensors: Mapping[str, tuple[Sequence[int], Spec]], axes: Mapping[str, int], caption: str
) -> Picture:
    """Each tensor as a rectangle, cut where the annotation cuts it; in each part the devices that
    hold it.

    tensors: name to (shape, spec), of one or two dimensions.
    """
    figure = new_figure(7, 2.4)
    panels = figure.subplots(1, len(tensors), squeeze=False)[0]
    for panel, (name, (shape, spec)) in zip(panels, tensors.items(), strict=True):
        _tensor(panel, shape, spec, axes)
        written = ", ".join("None" if axis is None else f'"{axis}"' for axis in spec)
        panel.set_title(f"{name}\n{list(shape)}\n({written})", fontsize=8)
    return finished(figure, caption, diagram=True)


def _tensor(panel: "Axes", shape: Sequence[int], spec: Spec, axes: Mapping[str, int]) -> None:
    from matplotlib.patches import Rectangle

    counts = [1 if axis is None else axes[axis] for axis in spec]
    rows, columns = (counts[0], counts[1] if len(counts) > 1 else 1)
    # Drawn between square and a third, so that a long matrix is seen to be long and fits.
    ratio = shape[0] / (shape[1] if len(shape) > 1 else 8)
    height = min(1.0, max(0.34, ratio)) if ratio <= 1 else 1.0
    width = 1.0 if ratio <= 1 else max(0.34, 1 / ratio)
    for place, (part, devices) in enumerate(holders(shape, spec, axes).items()):
        row, column = part[0], part[1] if len(part) > 1 else 0
        left, top = column * width / columns, 1 - row * height / rows
        panel.add_patch(
            Rectangle(
                (left, top - height / rows),
                width / columns,
                height / rows,
                facecolor=COLORS[place % len(COLORS)],
                alpha=0.55,
                edgecolor="black",
                hatch=HATCHES[place % len(HATCHES)] if place < len(HATCHES) else "",
                linewidth=0.8,
            )
        )
        panel.text(
            left + width / columns / 2,
            top - height / rows / 2,
            _numbers(devices),
            ha="center",
            va="center",
            fontsize=8 if max(rows, columns) <= 4 else 6,
            bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"},
        )
    # Every panel is as wide, so that all are drawn to one scale; the tensor stands in its middle.
    panel.set_xlim(width / 2 - 0.52, width / 2 + 0.52)
    panel.set_ylim(-0.02, 1.02)
    panel.set_aspect("equal")
    panel.axis("off")


def _numbers(devices: Sequence[int]) -> str:
    """Device numbers in few letters: all of an unbroken run by its ends.

    >>> _numbers([0, 1, 2, 3]), _numbers([0, 2]), _numbers([5])
    ('0-3', '0 2', '5')
    """
    if len(devices) > 2 and devices[-1] - devices[0] == len(devices) - 1:
        return f"{devices[0]}-{devices[-1]}"
    return " ".join(map(str, devices[:4])) + (" ..." if len(devices) > 4 else "")


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
    return finished(figure, caption, diagram=True)
