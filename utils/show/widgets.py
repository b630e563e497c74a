"""Interactive figures from core ipywidgets: a function of the lesson, a slider or a drop-down list
for each of its arguments.

A widget needs a running kernel, so a lesson always calls the same function once more in the cell
below: its static twin, which readers on GitHub see and tests compare.
"""

import html
from collections.abc import Callable, Mapping
from typing import Any

from utils.course.shown import Shown
from utils.show.draw import Picture


def explore(
    show: Callable[..., Picture | Shown],
    labels: Mapping[str, str] | None = None,
    **choices: tuple[int, int, int] | list[str] | list[int],
) -> None:
    """Sliders and lists that call `show` with their values; below them the picture and its caption,
    or the words.

    Args:
        show: takes one value per choice, returns a `Picture`, or a `Shown` where words are enough.
        labels: argument name to what it means, with its unit; by default the name itself.
        choices: argument name to (lowest, highest, first) for a slider, or to a list of options,
            the first of them chosen, for a drop-down list.
    """
    import ipywidgets  # late: slow to load, and only a live notebook needs it
    from IPython.display import display

    from utils.show.slider import Choice, Slider  # late, as above

    meaning = {name: (labels or {}).get(name, name.replace("_", " ")) for name in choices}

    def chooser(name: str, choice: tuple[int, int, int] | list[str] | list[int]) -> Any:
        if isinstance(choice, list):
            return Choice(options=[str(option) for option in choice], description=meaning[name])
        low, high, first = choice
        return Slider(value=first, min=low, max=high, description=meaning[name])

    def value_of(name: str) -> Any:
        item, choice = choosers[name], choices[name]
        return choice[item.index] if isinstance(choice, list) else item.value

    choosers = {name: chooser(name, choice) for name, choice in choices.items()}
    # Beside the choosers, so that it is seen; read aloud when it changes.
    status, place = ipywidgets.HTML(), ipywidgets.HTML()

    def update(_: object = None) -> None:
        values = {name: value_of(name) for name in choosers}
        words = ", ".join(f"{meaning[name]}: {value}" for name, value in values.items())
        status.value = f"<div role='status'>computing {html.escape(words)} ...</div>"
        place.value = f"<div style='opacity:0.35'>{place.value}</div>"
        result = show(**values)
        shown = result.html() if isinstance(result, Picture) else result._repr_html_()
        place.value = f"<div aria-live='polite'>{shown}</div>"
        status.value = f"<div role='status'>{html.escape(words)}</div>"

    for item in choosers.values():
        item.observe(update, names="index" if isinstance(item, Choice) else "value")
    update()
    display(ipywidgets.VBox([*choosers.values(), status, place]))


def searchable(head: tuple[str, ...], rows: list[tuple[str, ...]], choose: tuple[str, ...]) -> None:
    """A table to sort by any column, to search, and to filter by the values of some, offline.

    The table, and the library that it needs, live in a widget: the notebook's file keeps neither.

    Args:
        head: the names of the columns.
        rows: cells as plain text; an address beginning with https:// becomes a link.
        choose: names of the columns whose values can be picked from lists.
    """
    import ipywidgets  # late: slow to load, and only a live notebook needs it
    import itables
    import pandas
    from IPython.display import HTML, display
    from itables.javascript import generate_init_offline_itables_html

    def cell(text: str) -> str:
        if text.startswith("https://"):
            host = text.split("/")[2].removeprefix("www.")
            return f'<a href="{html.escape(text)}" target="_blank">{html.escape(host)}</a>'
        return html.escape(text)

    frame = pandas.DataFrame([[cell(item) for item in row] for row in rows], columns=list(head))
    chosen = [head.index(name) for name in choose]
    table = itables.to_html_datatable(
        frame,
        connected=False,
        allow_html=True,
        maxBytes=0,
        display_logo_when_loading=False,
        text_in_header_can_be_selected=False,
        classes="display compact",
        style="width:100%;table-layout:auto;text-align:left",
        layout={"top1": "searchPanes"} if chosen else {},
        searchPanes={
            "columns": chosen,
            "layout": f"columns-{max(1, len(chosen))}",
            "initCollapsed": False,
            "viewTotal": True,
            "cascadePanes": True,
        },
        columnDefs=[
            {"targets": [0, *chosen], "className": "dt-left dt-nowrap"},
            {"targets": "_all", "className": "dt-left"},
        ],
        pageLength=10,
    )
    bundle = itables.options.dt_bundle
    place = ipywidgets.Output()
    # Not `with place`: what executes notebooks without a browser waits for such a block for long.
    place.append_display_data(HTML(generate_init_offline_itables_html(bundle)))
    place.append_display_data(HTML(table))
    display(place)
