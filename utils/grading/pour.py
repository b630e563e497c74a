"""Pour a learner's answers into the released lab.

The released notebook decides everything but the answers: its checks, given cells, points and order.
The learner's own additional cells keep their places between them, because answers may need them.
"""

import json
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from utils.grading.inbox import Found
from utils.grading.lab import Cell, Lab

MAX_CELLS = 1000
MAX_SOURCE_CHARS = 1 << 20


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


@dataclass(frozen=True)
class Choice:
    """The notebook of a submission that counts. doubt: why a person should look at the choice."""

    cells: list[dict[str, Any]]
    notes: tuple[str, ...] = ()
    doubt: str = ""


class NotANotebook(ValueError):
    """A file that cannot be graded; the text says why."""


def parse(content: bytes) -> list[dict[str, Any]]:
    """The cells of a notebook file: dicts with "type", "source", "names". Raises NotANotebook."""
    if not content.strip():
        raise NotANotebook("it is empty")
    try:
        notebook = json.loads(_decoded(content)[0])
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else "not JSON"
        raise NotANotebook(f"it is no notebook ({reason})") from None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise NotANotebook("it is no notebook of format 4 (it has no list of cells)")
    if len(cells) > MAX_CELLS:
        raise NotANotebook(f"it has {len(cells)} cells; at most {MAX_CELLS} are read")
    parsed = [_cell(cell) for cell in cells if isinstance(cell, dict)]
    if sum(len(cell["source"]) for cell in parsed) > MAX_SOURCE_CHARS:
        raise NotANotebook(f"its cells hold more than {MAX_SOURCE_CHARS:,} characters")
    return parsed


def _decoded(content: bytes) -> tuple[str, str]:
    """The text of a notebook file, and the name of its encoding if that is not UTF-8."""
    encoding = json.detect_encoding(content)
    try:
        return content.decode(encoding), "" if encoding.startswith("utf-8") else encoding.upper()
    except UnicodeDecodeError:
        return content.decode("cp1252"), "Windows-1252"


def _cell(raw: dict[str, Any]) -> dict[str, Any]:
    source = raw.get("source", "")
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    metadata = raw.get("metadata") if isinstance(raw.get("metadata"), dict) else {}
    nbgrader = metadata.get("nbgrader") if isinstance(metadata.get("nbgrader"), dict) else {}
    # Colab keeps the id of a cell in its metadata.
    names = [nbgrader.get("grade_id"), raw.get("id"), metadata.get("id")]
    source = source if isinstance(source, str) else ""
    return {
        "type": str(raw.get("cell_type")),
        # A lone surrogate is valid JSON but cannot be written to a file again.
        "source": source.encode("utf-8", "replace").decode("utf-8"),
        "names": [name for name in names if isinstance(name, str)],
    }


def choose(files: list[Found], lab: Lab) -> Choice:
    """The notebook that fits the lab best. Raises NotANotebook.

    The best has the most answers that differ from the released ones, then the most of the lab's
    exercises, of its cell names and answer functions, then the released file name; the first by
    name of several equal ones. Which of two with equally many, but other answers was meant is in
    doubt.
    """
    if not files:
        raise NotANotebook("no notebook was found (no file ends in .ipynb)")
    readable, reasons = [], []
    for file in files:
        try:
            cells = parse(file.content)
            readable.append((_fit(cells, file, lab), file, cells, _answers(cells, lab)))
        except NotANotebook as error:
            reasons.append(f"{file.name}: {error}")
    readable = [each for each in readable if each[0] > (0, 0, False)]
    if not readable:
        raise NotANotebook("; ".join(reasons[:3]) or f"{files[0].name} holds nothing of {lab.name}")
    readable.sort(key=lambda each: (-len(each[3]), [-int(n) for n in each[0]], each[1].name))
    _, file, cells, answers = readable[0]
    equal = [f.name for _, f, _, a in readable[1:] if len(a) == len(answers) and a != answers]
    notes, doubt = [], ""
    if equal:
        count = f"{len(equal) + 1} notebooks with different answers"
        doubt = f"{count}; took {file.name}, not {', '.join(equal)}"
    elif len(files) > 1:
        notes.append(f"took {file.name}, the best fit of {len(files)} notebooks")
    if encoding := _decoded(file.content)[1]:
        notes.append(f"{file.name} is written in {encoding}, not in UTF-8")
    return Choice(cells, tuple(notes), doubt)


def _answers(cells: list[dict[str, Any]], lab: Lab) -> dict[str, str]:
    """The answers of a notebook that are not as released, by exercise."""
    poured, released = pour(cells, lab), untouched(lab)
    found = {e.name: poured.answer(e.name).source.strip() for e in lab.exercises}
    return {n: text for n, text in found.items() if text != released.answer(n).source.strip()}


def _fit(cells: list[dict[str, Any]], file: Found, lab: Lab) -> tuple[int, int, bool]:
    source = "\n".join(cell["source"] for cell in cells)
    mentioned = sum(f'"{e.id}"' in source for e in lab.exercises)
    names = {name for cell in cells for name in cell["names"]}
    own = [c for c in lab.cells if c.exercise]
    known = sum(c.id in names for c in own) + sum(
        _defines(e.function, source) for e in lab.exercises
    )
    same_name = file.name.rpartition("/")[2] == lab.path.name
    return mentioned, known, same_name and bool(mentioned or known)


def _defines(function: str, source: str) -> bool:
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
        if any(_defines(exercise.function, c.source) for c in below):
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
    defining = [i for i in code if _defines(function, cells[i]["source"])]
    for candidates in (
        [i for i in mine if i in defining],
        defining,
        [i for i in mine if i in code],
    ):
        if candidates:
            return candidates[-1]
    return None


def lab_of(contents: list[bytes], names: list[str]) -> str:
    """Which lab a set of notebooks belongs to: the one whose checks most of them hold.

    Raises ValueError if that is not clear.
    """
    votes: Counter[str] = Counter()
    for content in contents:
        with suppress(UnicodeDecodeError):
            text = _decoded(content)[0]
            votes.update(n for n in names if re.search(rf'"{n}\.ex\d', text))
    best = votes.most_common(2)
    if len(names) == 1:
        return names[0]
    if not best or (len(best) > 1 and best[0][1] == best[1][1]):
        raise ValueError(f"cannot tell which lab this is: add --lab, one of {', '.join(names)}")
    return best[0][0]
