"""Pour a learner's answers into the released lab.

The released notebook decides everything but the answers: its checks, given cells, points and order.
The learner's own additional cells keep their places between them, because answers may need them.
"""

import re
from dataclasses import dataclass, replace
from typing import Any

from utils.labs.grading.lab import Cell, Lab


@dataclass(frozen=True)
class Poured:
    """A released lab with somebody's answers in it. notes: what had to be mended, in words."""

    cells: tuple[Cell, ...]
    notes: tuple[str, ...]

    def above(self, exercise: str) -> list[Cell]:
        """The cells to run before the check of an exercise."""
        check = next(
            k for k, c in enumerate(self.cells) if (c.kind, c.exercise) == ("check", exercise)
        )
        return [c for c in self.cells[:check] if c.kind in ("given", "answer", "extra")]

    def answer(self, exercise: str) -> Cell:
        return next(c for c in self.cells if (c.kind, c.exercise) == ("answer", exercise))

    def label(self, cell: Cell) -> str:
        """What a learner knows a cell by."""
        if cell.kind != "extra":
            return f"cell {cell.id}"
        if cell.id.startswith("edited"):
            return f"your {cell.id}"
        above = [c.id for c in self.cells[: self.cells.index(cell)] if c.kind != "extra"]
        place = f"after {above[-1]}" if above else "at the top"
        line = next(line.strip() for line in cell.source.splitlines() if line.strip())
        return f"your cell {place} (`{line[:40]}`)"


def defines(function: str, source: str) -> bool:
    name = re.escape(function)
    pattern = rf"^[ \t]*((async[ \t]+)?def[ \t]+{name}[ \t]*\(|{name}[ \t]*=[^=])"
    return re.search(pattern, source, re.MULTILINE) is not None


def untouched(lab: Lab) -> Poured:
    """The lab as released, without answers."""
    return Poured(lab.cells, ())


def pour(cells: list[dict[str, Any]], lab: Lab) -> Poured:
    """The released lab with the answers and additional cells of a submission."""
    notes: list[str] = []
    place = _places(cells, lab, notes)
    answers, order = {}, [c.id for c in lab.cells]
    extras: dict[str, list[Cell]] = {}
    anchor = ""
    for index, cell in enumerate(cells):
        home = place.get(index)
        if home is not None:
            # A cell that was moved up must not drag the learner's cells below it along.
            anchor = max(anchor, home, key=lambda name: order.index(name) if name else -1)
            answers[home] = cell["source"]
        elif cell["type"] == "code" and cell["source"].strip():
            number = sum(map(len, extras.values())) + 1
            extras.setdefault(anchor, []).append(
                Cell(f"own cell {number}", "extra", cell["source"])
            )
    poured = list(extras.get("", []))
    for cell in lab.cells:
        given = answers.get(cell.id)
        if cell.kind == "answer" and given is not None:
            poured.append(replace(cell, source=given))
        else:
            poured.append(cell)
            notes.extend(_mended(cell, given))
            # An answer may need what its author added to a given cell, such as an import.
            if cell.kind == "given" and given is not None and given.strip() != cell.source.strip():
                poured.append(Cell(f"edited {cell.id}", "extra", given))
        poured.extend(extras.get(cell.id, []))
    notes.extend(_defined_again(poured, lab))
    return Poured(tuple(poured), tuple(notes))


def _defined_again(poured: list[Cell], lab: Lab) -> list[str]:
    """Notes on functions that an own cell below their check defines: no check sees those."""
    notes = []
    for exercise in lab.exercises:
        checks = [
            k for k, c in enumerate(poured) if (c.kind, c.exercise) == ("check", exercise.name)
        ]
        below = [c for c in poured[checks[0] :] if c.kind == "extra"]
        if any(defines(exercise.function, c.source) for c in below):
            again = f"{exercise.function} is defined again below its check"
            notes.append(f"{again}; the answer cell counts")
    return notes


def _mended(cell: Cell, given: str | None) -> list[str]:
    if cell.kind in ("text", "silent"):
        return []
    what = {"given": f"given cell {cell.id}", "check": f"check of {cell.exercise}"}.get(
        cell.kind, f"answer cell of {cell.exercise}"
    )
    if given is None:
        return [f"{what} was deleted; put back as released"]
    if given.strip() != cell.source.strip():
        both = "the released one runs first, then the edited one"
        return [f"{what} was edited; {both if cell.kind == 'given' else 'the released one counts'}"]
    return []


def _places(cells: list[dict[str, Any]], lab: Lab, notes: list[str]) -> dict[int, str]:
    """Which cell of the submission is which cell of the lab: index to cell id."""
    named: dict[str, list[int]] = {c.id: [] for c in lab.cells}
    by_source = {c.source.strip(): c.id for c in lab.cells if c.kind not in ("answer", "text")}
    for index, cell in enumerate(cells):
        name = next((n for n in cell["names"] if n in named), None)
        if name is None and cell["type"] == "code":
            name = by_source.get(cell["source"].strip())
        if name is not None:
            named[name].append(index)
    functions = {e.name: e.function for e in lab.exercises}
    place: dict[int, str] = {}
    for cell in lab.cells:
        mine = named[cell.id]
        if cell.kind == "answer" and cell.exercise:
            taken = {i for name, found in named.items() if name != cell.id for i in found}
            chosen = _answer(cells, mine, taken, functions[cell.exercise])
            if len(mine) > 1:
                notes.append(
                    f"answer cell of {cell.exercise} exists {len(mine)} times;"
                    " the last one that defines the function counts"
                )
            elif chosen is not None and chosen not in mine:
                notes.append(
                    f"answer of {cell.exercise} taken from the cell that defines"
                    f" {functions[cell.exercise]}"
                )
        else:
            chosen = mine[-1] if mine else None
        if chosen is not None:
            place[chosen] = cell.id
        # Other copies of a cell that is not the learner's to write are dropped, not run.
        if cell.kind not in ("answer", "text"):
            place.update((i, cell.id) for i in mine if i != chosen)
    return place


def _answer(
    cells: list[dict[str, Any]], mine: list[int], taken: set[int], function: str
) -> int | None:
    """The cell that counts: the last named one that defines the function, else any that does."""
    code = [i for i, cell in enumerate(cells) if cell["type"] == "code" and i not in taken]
    defining = [i for i in code if defines(function, cells[i]["source"])]
    for candidates in (
        [i for i in mine if i in defining],
        defining,
        [i for i in mine if i in code],
    ):
        if candidates:
            return candidates[-1]
    return None
