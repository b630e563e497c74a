"""The learner's notebooks of earlier labs, for a lab whose exercises use those answers.

Their answers are poured as any others are. Into the sandbox go plain sources, as files that lie
beside the lab as the learner's own do: what runs them there is the lab's own cell, in the process
of the answer, with no more rights than it has.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from utils.course import earlier
from utils.labs.grading import choose, pour
from utils.labs.grading import lab as labs
from utils.labs.grading.inbox import Found
from utils.labs.grading.lab import Cell, Lab
from utils.labs.grading.notebook import NotANotebook


@dataclass(frozen=True)
class Beside:
    """What a sandbox sees beside the lab.

    files: contents by their place in `labs/`, such as Path("lab08_topic/lab08_topic.ipynb").
    modules: what their cells import. cells: of the learner, for who looks at what they do.
    """

    files: dict[Path, bytes]
    modules: tuple[str, ...] = ()
    cells: tuple[Cell, ...] = ()
    notes: tuple[str, ...] = ()


def used_by(lab: Lab, root: Path) -> list[tuple[earlier.Wanted, Lab]]:
    """The earlier exercises that a lab uses, each with its released lab."""
    return [(each, labs.load(root, each.lab)) for each in earlier.WANTED.get(lab.name, ())]


def find(files: list[Found], used: list[tuple[earlier.Wanted, Lab]]) -> Beside:
    """What a submission holds of the notebooks that are used."""
    found: dict[Path, bytes] = {}
    modules: dict[str, None] = {}
    cells: list[Cell] = []
    notes = []
    for wanted, other in used:
        try:
            choice = choose.choose(files, other)
        except NotANotebook:
            notes.append(f"no notebook of {other.name} was handed in; {wanted.words} is used here")
            continue
        poured = pour.pour(choice.cells, other)
        above = poured.above(wanted.exercise)
        shown = [(cell.id, cell.source) for cell in above]
        found[Path(other.path.parent.name, other.path.name)] = earlier.notebook(shown)
        modules |= dict.fromkeys(other.modules)
        cells += [replace(cell, id=f"{other.name} {cell.id}") for cell in above]
        notes += [f"{other.name}: {choice.doubt}"] if choice.doubt else []
    return Beside(found, tuple(modules), tuple(cells), tuple(notes))
