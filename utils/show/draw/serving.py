"""Who computed in which slot of a decode batch, step after step."""

from collections.abc import Mapping, Sequence

from utils.show.draw.picture import COLORS, Picture, finish, new_figure


def slots(runs: Mapping[str, Sequence[Sequence[int | None]]], caption: str) -> Picture:
    """A panel for each run, a row for each slot, a column for each decode.

    runs: name to the decodes of a run: of each, the place that each slot computed, None if empty,
        as `traffic.Timed` keeps them. A request begins where the place is not one more than before.
    """
    import numpy as np  # late, with matplotlib
    from matplotlib.colors import ListedColormap

    figure = new_figure(7, 0.6 + 1.3 * len(runs))
    panels = figure.subplots(len(runs), 1, sharex=True, squeeze=False)[:, 0]
    longest = max(len(decodes) for decodes in runs.values())
    for axes, (name, decodes) in zip(panels, runs.items(), strict=True):
        filled = np.zeros((len(decodes[0]), longest))  # 0: empty; 1 and 2: requests in turns
        for slot in range(len(filled)):
            color, before = 2, None
            for step, places in enumerate(decodes):
                place = places[slot]
                if place is not None:
                    if before is None or place != before + 1:
                        color = 3 - color
                    filled[slot, step] = color
                    before = place
        drawn = ListedColormap(["#F2F2F2", COLORS[0], COLORS[1]])
        axes.imshow(filled, aspect="auto", cmap=drawn, vmin=0, vmax=2, interpolation="nearest")
        axes.set_title(name, fontsize=9, loc="left")
        axes.set_yticks([0, len(filled) - 1], ["slot 0", f"slot {len(filled) - 1}"], fontsize=8)
    panels[-1].set_xlabel("decodes")
    return finish(figure, caption, diagram=True)
