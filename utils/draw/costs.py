"""Costs in pictures: from list price to total, what matters, and where two options cost the same.

Money is on the axes as the reader has it; bars that take off are hatched, so that no meaning lies
in a colour alone.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from utils.draw.picture import COLORS, HATCHES, MARKERS, Picture, finished, new_figure

if TYPE_CHECKING:
    from utils.tco import Cost, Swing

SMALL = 0.01
_REST = "all others"


def waterfall(costs: Mapping[str, "Cost"], xlabel: str, caption: str) -> Picture:
    """One panel per option: each line of its cost from where the line above ended, the total last.

    Args:
        costs: option to its cost, in numbers. A line below a hundredth of the dearest total in
            every option is drawn with "all others".
        xlabel: the money and what it is per.
    """
    names, rows = shown_lines(costs)
    figure = new_figure(7, 0.27 * (len(names) + 1) + 0.9)
    panels = figure.subplots(1, len(costs), sharex=True, sharey=True, squeeze=False)[0]
    top = max(float(each.total) for each in costs.values())
    for axes, (option, values) in zip(panels, rows.items(), strict=True):
        end = 0.0
        for row, value in enumerate(values):
            color, hatch = (COLORS[0], "") if value >= 0 else (COLORS[2], HATCHES[1])
            axes.barh(row, value, left=end, height=0.7, color=color, hatch=hatch,
                      edgecolor="white")  # fmt: skip
            end += value
            if value:
                axes.text(max(end, end - value) + 0.02 * top, row, short(value), va="center",
                          fontsize=8)  # fmt: skip
        axes.barh(len(values), end, height=0.7, color="0.25")
        axes.text(end + 0.02 * top, len(values), short(end), va="center", fontsize=8,
                  fontweight="bold")  # fmt: skip
        axes.set_title(option, fontsize=10)
        axes.set_xlim(0, 1.22 * top)
        axes.locator_params("x", nbins=4)
        axes.xaxis.set_major_formatter(lambda value, _: short(value))
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_yticks(range(len(names) + 1), [*names, "total"], fontsize=9)
    panels[0].invert_yaxis()
    figure.supxlabel(xlabel, fontsize=9)
    return finished(figure, caption)


def shown_lines(costs: Mapping[str, "Cost"]) -> tuple[list[str], dict[str, list[float]]]:
    """Names of the lines that are large enough to be seen, and their money by option; the others
    are summed in a last one.
    """
    least = SMALL * max(float(each.total) for each in costs.values())
    every = list(dict.fromkeys(name for each in costs.values() for name in each.lines))
    lines = {o: {n: float(c.lines.get(n, 0)) for n in every} for o, c in costs.items()}
    names = [n for n in every if any(abs(each[n]) >= least for each in lines.values())]
    rest = {o: sum(v for n, v in each.items() if n not in names) for o, each in lines.items()}
    rows = {option: [each[name] for name in names] for option, each in lines.items()}
    if any(abs(value) >= 1e-9 for value in rest.values()):
        names.append(_REST)
        rows = {option: [*values, rest[option]] for option, values in rows.items()}
    return names, rows


def tornado(
    swings: Sequence["Swing"], saving: float, labels: Sequence[str], xlabel: str, caption: str
) -> Picture:
    """The saving at the low and at the high end of single inputs, widest first.

    Args:
        swings: those to show. saving: at the best guesses, where the bars part.
        labels: name and range of each, in words.
    """
    figure = new_figure(7, 0.34 * len(swings) + 1.1)
    axes = figure.subplots()
    for row, swing in enumerate(swings):
        for end, color, hatch in (
            (swing.at_low, COLORS[0], HATCHES[0]),
            (swing.at_high, COLORS[1], HATCHES[1]),
        ):
            axes.barh(row, 100 * (end - saving), left=100 * saving, height=0.62, color=color,
                      hatch=hatch, edgecolor="white",
                      label=None if row else ("low end", "high end")[hatch != ""])  # fmt: skip
    axes.axvline(100 * saving, color="0.25", linewidth=1)
    ends = [100 * end for each in swings for end in (each.at_low, each.at_high)]
    if min(ends, default=0) < 0 < max(ends, default=0):
        axes.axvline(0, color="0.25", linewidth=1, linestyle=":")
    axes.set_yticks(range(len(swings)), labels, fontsize=9)
    axes.invert_yaxis()
    axes.set_xlabel(xlabel, fontsize=9)
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    axes.spines[["top", "right"]].set_visible(False)
    return finished(figure, caption)


def break_even(
    x: Sequence[float],
    curves: Mapping[str, Sequence[float]],
    crossings: Sequence[float],
    now: float,
    xlabel: str,
    ylabel: str,
    caption: str,
) -> Picture:
    """The cost of each option as one input changes, where they cross, and where the input is now.

    Args:
        x: values of the input, ascending; a logarithmic axis if all are above 0.
        curves: option to its cost at each of them.
        crossings: values at which two options cost the same.
    """
    figure = new_figure(7, 3)
    axes = figure.subplots()
    every = max(1, len(x) // 8)
    for i, (option, costs) in enumerate(curves.items()):
        axes.plot(x, costs, color=COLORS[i], marker=MARKERS[i], markevery=every, label=option)
    axes.axvline(now, color="0.5", linewidth=1, linestyle=":", label="now")
    for number, value in enumerate(crossings):
        axes.axvline(value, color=COLORS[5], linewidth=1.2,
                     label=None if number else "break-even")  # fmt: skip
    if min(x) > 0:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: short(value))
    axes.set_ylim(0, None)
    axes.yaxis.set_major_formatter(lambda value, _: short(value))
    axes.set_xlabel(xlabel, fontsize=9)
    axes.set_ylabel(ylabel, fontsize=9)
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=4)
    axes.spines[["top", "right"]].set_visible(False)
    return finished(figure, caption)


def short(value: float) -> str:
    """A value with three digits and k, M or G behind it.

    >>> short(1234.5), short(0.0123), short(-2.5e9), short(0)
    ('1.23k', '0.0123', '-2.5G', '0')
    """
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"
