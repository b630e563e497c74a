"""Charts for counts and curves, small recorded graphs, and timelines."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from utils.show.draw.picture import COLORS, HATCHES, MARKERS, Picture, finish, new_figure

if TYPE_CHECKING:
    import networkx


def bars(
    groups: Mapping[str, Sequence[float]],
    labels: Sequence[str],
    ylabel: str,
    caption: str,
    height: float = 2.9,
) -> Picture:
    """Bars of several quantities side by side.

    Args:
        groups: quantity name to one value per label.
        labels: what the values belong to, from left to right.
        height: of the figure, in inches.
    """
    figure = new_figure(7, height)
    axes = figure.subplots()
    width = 0.8 / len(groups)
    for i, (name, values) in enumerate(groups.items()):
        places = [x + (i - (len(groups) - 1) / 2) * width for x in range(len(labels))]
        drawn = axes.bar(places, values, width, label=name, color=COLORS[i], hatch=HATCHES[i],
                         edgecolor="white")  # fmt: skip
        axes.bar_label(drawn, fmt="%g")
    axes.set_xticks(range(len(labels)), labels, fontsize=7 if len(labels) > 8 else None)
    axes.set_ylabel(ylabel)
    axes.margins(y=0.15)
    if all(float(item).is_integer() for values in groups.values() for item in values):
        axes.locator_params("y", integer=True)
    axes.spines[["top", "right"]].set_visible(False)
    if len(groups) > 1:
        axes.legend(frameon=False)
    return finish(figure, caption)


def lines(
    panels: Mapping[str, Mapping[str, Sequence[float]]],
    x: Sequence[float],
    xlabel: str,
    caption: str,
    log: bool = False,
) -> Picture:
    """Line plots side by side that share their x axis.

    Args:
        panels: label of the y axis to {line name: one value per x}. Lines are named in a legend if
            there are several.
        log: with a logarithmic y axis, for values above 0; otherwise the axis starts at 0.
    """
    figure = new_figure(7, 2.9)
    for axes, (ylabel, curves) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        for i, (name, values) in enumerate(curves.items()):
            axes.plot(x, values, color=COLORS[i], marker=MARKERS[i], label=name)
        scale = {"yscale": "log"} if log else {"ylim": (0, None)}
        axes.set(xlabel=xlabel, ylabel=ylabel, **scale)
        axes.locator_params("x", integer=all(float(item).is_integer() for item in x))
        axes.spines[["top", "right"]].set_visible(False)
        if len(curves) > 1:
            # Curves on a logarithmic axis leave no corner free.
            above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1), "ncols": 4} if log else {}
            axes.legend(frameon=False, **above)
    return finish(figure, caption)


def graph(recorded: "networkx.DiGraph", caption: str) -> Picture:
    """A small recorded graph, inputs on the left; takes what `utils.xla.graph.ir_graph` returns.

    Raises:
        ValueError: for more than 40 nodes, which no reader could tell apart.
    """
    import networkx

    if not 0 < len(recorded) <= 40:
        raise ValueError(
            f"the graph has {len(recorded)} nodes; 1 to 40 can be drawn: count a larger one with"
            " graph.operators"
        )
    layers = {
        node: layer
        for layer, nodes in enumerate(networkx.topological_generations(recorded))
        for node in nodes
    }
    # An input stands just left of its first use, not at the far left, so that edges stay short.
    for node in recorded:
        if not recorded.in_degree(node) and recorded.out_degree(node):
            layers[node] = min(layers[user] for user in recorded.successors(node)) - 1
    placed = networkx.DiGraph(recorded)
    networkx.set_node_attributes(placed, layers, "layer")
    places = networkx.multipartite_layout(placed, subset_key="layer")

    figure = new_figure(min(9.0, 1.6 * (1 + max(layers.values()))), 3)
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axis("off")
    # Texts and arrows do not widen the axes; invisible points do.
    axes.scatter(*zip(*places.values(), strict=True), alpha=0)
    axes.margins(0.12, 0.2)
    arrow = {"arrowstyle": "-|>", "color": "0.5", "shrinkA": 26, "shrinkB": 26}
    for start, end in recorded.edges:
        axes.annotate("", places[end], places[start], arrowprops=arrow)
    words = {"xla::device_data": "input", "prim::Constant": "constant"}
    for node, data in recorded.nodes(data=True):
        operator = data["operator"]
        box = (
            {"boxstyle": "square,pad=0.4", "facecolor": "white"}
            if operator in words
            else {"boxstyle": "round,pad=0.4", "facecolor": "#DCEBF5"}
        )
        label = f"{words.get(operator, operator.partition('::')[2])}\n{data['shape']}"
        axes.text(
            places[node][0],
            places[node][1],
            label,
            ha="center",
            va="center",
            fontsize=9,
            bbox=box | {"edgecolor": COLORS[0]},
        )
    return finish(figure, caption)


def timeline(lanes: Mapping[str, Sequence[int]], xlabel: str, caption: str) -> Picture:
    """What happened in each step, one lane per kind of event: a mark per step, with its number if
    more than one.

    Args:
        lanes: lane name to the number of events in each step.
    """
    figure = new_figure(7, 0.55 * len(lanes) + 1)
    axes = figure.subplots()
    for row, (name, counts) in enumerate(lanes.items()):
        color, marker = COLORS[row % len(COLORS)], MARKERS[row % len(MARKERS)]
        steps = [step for step, count in enumerate(counts, 1) if count]
        axes.scatter(steps, [row] * len(steps), s=120, color=color, marker=marker, label=name)
        for step, count in enumerate(counts, 1):
            if count > 1:
                axes.annotate(
                    f"x{count}", (step, row), (7, 7), textcoords="offset points", fontsize=8
                )
    axes.set_yticks(
        range(len(lanes)), [f"{name} ({sum(counts)})" for name, counts in lanes.items()]
    )
    axes.set_ylim(len(lanes) - 0.4, -0.6)
    axes.set_xticks(range(1, 1 + max(map(len, lanes.values()))))
    axes.set_xlabel(xlabel)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis="y", color="0.9")
    axes.set_axisbelow(True)
    return finish(figure, caption)
