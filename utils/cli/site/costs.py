"""A page of the cost model that needs no server: for each scenario the inputs that decide most,
each moved alone through its range, with the answer and the waterfall of each value.
"""

from pathlib import Path
from typing import Any

from utils.cli.site import recording
from utils.cost.tco.scenario import Scenario, scenarios
from utils.cost.tco.uncertainty import compare, tornado
from utils.show.draw import Picture
from utils.show.report.build import answer, verdict_of
from utils.show.report.estimates import pictures
from utils.show.report.wording import name_of, quantity

NAME = "costs"
INPUTS = 4
HEAD = """# What would it cost?

The same work on Trainium and on a GPU, by the course's cost model: estimates, with the ranges of
their inputs. Each scenario below can be moved along the inputs that change its answer most, within
their ranges. `python3 course.py tco` opens the whole model on your machine, with every input, its
source and your own numbers; [lesson 13](notebooks/13_tco.ipynb) explains it.
"""


def page(folder: Path, whole: bool = True) -> str:
    """The page as Markdown; its figures are written below `folder`. whole: with all values, and not
    only with the scenarios as they are."""
    parts = [HEAD]
    for name, item in scenarios().items():
        images = folder / f"{NAME}_{name}_frames"
        parts += [
            f"## {item.title}",
            "",
            "```{raw} html",
            _scenario(images, item, whole),
            "```",
            "",
        ]
    return "\n".join(parts)


def _scenario(images: Path, item: Scenario, whole: bool) -> str:
    paths = [swing.path for swing in tornado(item) if swing.width > 0][: INPUTS if whole else 0]
    numbers: dict[str, dict[str, float]] = {}
    for path in paths:
        low, best, high = (getattr(item.inputs[path], end) for end in ("low", "value", "high"))
        every = sorted({low, (low + best) / 2, best, (best + high) / 2, high})
        numbers[path] = {quantity(path, value, item): value for value in every}

    def show(**chosen: str) -> Picture:
        compared = compare(
            item.with_values({path: numbers[path][at] for path, at in chosen.items()})
        )
        fall = pictures(compared, ())[0]
        words = f"{verdict_of(compared)[1]} {answer(compared)} {fall.caption}"
        return Picture(fall.png, words)

    options: dict[str, Any] = {path: list(numbers[path]) for path in paths}
    first = {path: quantity(path, item.inputs[path].value, item) for path in paths}
    return recording.record(images, show, {path: name_of(path) for path in paths}, first, **options)
