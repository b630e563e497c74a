"""Interactive figures from core ipywidgets: a function of the lesson, a slider or a drop-down list
for each of its arguments.

A widget needs a running kernel, so a lesson always calls the same function once more in the cell
below: its static twin, which readers on GitHub see and tests compare.
"""

import html
from collections.abc import Callable
from typing import Any

from utils.draw import Picture


def explore(
    show: Callable[..., Picture], **choices: tuple[int, int, int] | list[str] | list[int]
) -> None:
    """Sliders and lists that call `show` with their values, the picture and its caption below them.

    Args:
        show: takes one value per choice, returns a `Picture`.
        choices: argument name to (lowest, highest, first) for a slider, or to a list of options,
            the first of them chosen, for a drop-down list.
    """
    import ipywidgets
    from IPython.display import display

    def chooser(name: str, choice: tuple[int, int, int] | list[str] | list[int]) -> Any:
        if isinstance(choice, list):
            return ipywidgets.Dropdown(options=choice, description=name)
        low, high, first = choice
        return ipywidgets.IntSlider(
            value=first, min=low, max=high, description=name, continuous_update=False
        )

    choosers = {name: chooser(name, choice) for name, choice in choices.items()}
    image = ipywidgets.Image(format="png")
    caption = ipywidgets.HTML()

    def update(_: object = None) -> None:
        caption.value = "<p>measuring ...</p>"
        picture = show(**{name: each.value for name, each in choosers.items()})
        image.value = picture.png
        # Widgets are not read aloud from an image, so the words stand below it.
        caption.value = f"<p aria-live='polite'>{html.escape(picture.caption)}</p>"

    for each in choosers.values():
        each.observe(update, names="value")
    update()
    display(ipywidgets.VBox([*choosers.values(), image, caption]))
