"""Interactive figures from core ipywidgets: a function of the lesson, a slider for each of its
arguments.

A widget needs a running kernel, so a lesson always calls the same function once more in the cell
below: its static twin, which readers on GitHub see and tests compare.
"""

import html
from collections.abc import Callable

from utils.draw import Picture


def explore(show: Callable[..., Picture], **ranges: tuple[int, int, int]) -> None:
    """Sliders that call `show` with their values, the picture and its caption below them.

    Args:
        show: takes one int per range, returns a `Picture`.
        ranges: argument name to (lowest, highest, first) value.
    """
    import ipywidgets
    from IPython.display import display

    sliders = {
        name: ipywidgets.IntSlider(
            value=first, min=low, max=high, description=name, continuous_update=False
        )
        for name, (low, high, first) in ranges.items()
    }
    image = ipywidgets.Image(format="png")
    caption = ipywidgets.HTML()

    def update(_: object = None) -> None:
        caption.value = "<p>measuring ...</p>"
        picture = show(**{name: slider.value for name, slider in sliders.items()})
        image.value = picture.png
        # Widgets are not read aloud from an image, so the words stand below it.
        caption.value = f"<p aria-live='polite'>{html.escape(picture.caption)}</p>"

    for slider in sliders.values():
        slider.observe(update, names="value")
    update()
    display(ipywidgets.VBox([*sliders.values(), image, caption]))
