"""The explorables of the lessons on pages without a kernel: some choices are computed beforehand.

A lesson calls `explore` (`utils.show.widgets`) with a function and its choices. Here the cells up
to that call run in a process of their own, and the function is called for each recorded choice. The
page gets the frames; `explore.js` shows the one that is chosen. Without JavaScript the first is
read.
"""

import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any

from utils.course import catalog
from utils.course.catalog import ROOT

CELL = "explore-widget"
"""The id of the cell that calls `explore`."""
MOST = 40
"""Frames of a page. Where all combinations are more, one choice at a time is recorded."""
VALUES = (12, 6, 4)
"""Values of a slider that are recorded, its first one among them: as many as the frames allow."""
ALL = "This page holds results for the values that can be chosen here; a notebook computes all."
ONE = (
    "This page holds results for one choice at a time: when you move one, the others go back to"
    " where they began. A notebook computes all."
)


Choice = tuple[int, int, int] | list[Any]


def values(choice: Choice, most: int) -> list[Any]:
    """What is recorded of a choice, in its order.

    >>> values((1, 12, 12), most=4), values((1, 3, 2), most=4), values(["b", "a"], most=4)
    ([1, 5, 8, 12], [1, 2, 3], ['b', 'a'])
    >>> values((0, 30, 8), most=4)  # the first value takes the place of its neighbour
    [0, 8, 20, 30]
    """
    if isinstance(choice, list):
        return choice
    low, high, first = choice
    if high - low < most:
        return list(range(low, high + 1))
    places = [round(low + (high - low) * step / (most - 1)) for step in range(most)]
    inner = range(1, most - 1)
    if first not in places:
        places[min(inner, key=lambda place: abs(places[place] - first))] = first
    return places


def plan(
    choices: Mapping[str, Choice], first: Mapping[str, Any] = MappingProxyType({})
) -> tuple[bool, dict[str, list[Any]], list[dict]]:
    """Whether all combinations are recorded, the values of each choice, and the recorded rows, that
    of the first values first. first: those of lists that do not begin with their first value.

    >>> plan({"a": (1, 3, 2), "b": ["x", "y"]})[2][:3]
    [{'a': 2, 'b': 'x'}, {'a': 1, 'b': 'x'}, {'a': 1, 'b': 'y'}]
    """
    begin = {name: c[0] if isinstance(c, list) else c[2] for name, c in choices.items()}
    first = begin | dict(first)
    for most in VALUES:
        taken = {name: values(c, most) for name, c in choices.items()}
        if is_all := math.prod(map(len, taken.values())) <= MOST:
            break
    if is_all:
        rows = [dict(zip(taken, row, strict=True)) for row in itertools.product(*taken.values())]
    else:
        taken = {name: values(c, VALUES[1]) for name, c in choices.items()}
        rows = [first | {name: value} for name, some in taken.items() for value in some]
    return is_all, taken, [first, *(row for row in rows if row != first)]


def record(
    images: Path,
    show: Callable[..., Any],
    labels: Mapping[str, str] | None = None,
    first: Mapping[str, Any] = MappingProxyType({}),
    **choices: Choice,
) -> str:
    """`explore` as HTML: controls, and a frame for each recorded choice.

    images: a folder for the figures, which are referred to by its name. first: of lists of ordered
    values, which become sliders, the one that is shown first.
    """
    from utils.show.draw import Picture  # late: figures need matplotlib, and the page does not

    meaning = {name: (labels or {}).get(name, name.replace("_", " ")) for name in choices}
    is_all, taken, rows = plan(choices, first)
    controls = []
    for name, choice in choices.items():
        kind = "list" if isinstance(choice, list) and name not in first else "slider"
        data = escape(json.dumps([str(value) for value in taken[name]]))
        begin = taken[name].index(rows[0][name])
        controls.append(
            f'<label data-kind="{kind}" data-first="{begin}" data-options="{data}">'
            f"<span>{escape(meaning[name])}</span></label>"
        )
    frames = []
    for number, row in enumerate(rows):
        key = " ".join(str(taken[name].index(value)) for name, value in row.items())
        result = show(**row)
        words = ", ".join(f"{meaning[name]}: {value}" for name, value in row.items())
        if isinstance(result, Picture):
            file = images / f"{number}.png"
            images.mkdir(parents=True, exist_ok=True)
            file.write_bytes(result.png)
            caption, source = escape(result.caption), f"{images.name}/{file.name}"
            shown = (
                f'<img loading="lazy" alt="{caption}" src="{source}">'
                f"<p><em>Figure.</em> {caption}</p>"
            )
        else:
            shown = result._repr_html_()
        hidden, head = " hidden" if number else "", f"<p>{escape(words)}</p>" if words else ""
        frames.append(f'<div data-key="{key}"{hidden}>{head}{shown}</div>')
    mode = "all" if is_all else "one"
    note = f"<p>{ALL if is_all else ONE}</p>" if choices else ""
    return (
        f'<div class="explore" data-mode="{mode}"><div class="controls" hidden>'
        f"{''.join(controls)}{note}</div>"
        f'<div class="frames" aria-live="polite">{"".join(frames)}</div></div>'
    )


def has_one(notebook: Path) -> bool:
    """Whether the notebook has an explorable."""
    return any(cell.get("id") == CELL for cell in catalog.read_notebook(notebook)["cells"])


def record_all(notebooks: Iterable[Path], folder: Path, workers: int = 2) -> dict[str, str]:
    """{name of the notebook: HTML of its explorable}; figures lie in a folder below `folder`.

    Each notebook runs in its own process. Raises ValueError with the error of one that fails.
    """

    def one(notebook: Path) -> tuple[str, str]:
        images = folder / f"{notebook.stem}_frames"
        with tempfile.TemporaryDirectory() as name:
            own = {"COURSE_STRICT": "1", "COURSE_PROGRESS": f"{name}/progress.json"}
            done = subprocess.run(
                [sys.executable, "-m", __name__, str(notebook), str(images)],
                cwd=ROOT,
                capture_output=True,
                text=True,
                env=os.environ | own,
            )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise ValueError(f"the explorable of {notebook.name} cannot be recorded: {last}")
        return notebook.stem, done.stdout

    with ThreadPoolExecutor(workers) as pool:
        return dict(pool.map(one, filter(has_one, notebooks)))


def _main(notebook: Path, images: Path) -> str:
    """The HTML of the explorable of a notebook, whose cells before it run here."""
    from utils.show import widgets

    results: list[str] = []
    widgets.explore = lambda show, labels=None, **choices: results.append(  # type: ignore[assignment]
        record(images, show, labels, **choices)
    )
    os.chdir(notebook.parent)
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in catalog.read_notebook(notebook)["cells"]:
        if cell["cell_type"] == "code":
            exec(compile(catalog.text(cell), f"{notebook.name}:{cell['id']}", "exec"), names)
        if cell["id"] == CELL:
            break
    return results[0]


if __name__ == "__main__":
    import contextlib

    with contextlib.redirect_stdout(sys.stderr):
        page = _main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
    print(page)
