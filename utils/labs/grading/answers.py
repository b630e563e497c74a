"""From the files of a submission to one record: the released lab with somebody's answers in it.

The released notebook decides everything but the answers: its checks, given cells, points and order.
The learner's own additional cells keep their places between them, because answers may need them.
"""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from utils.course import earlier
from utils.labs.grading.lab import Cell, Exercise, Lab
from utils.labs.grading.submissions import File, NotANotebook, SubmittedCell, decode, parse


@dataclass(frozen=True)
class Earlier:
    """What lies beside the lab in its sandbox: the learner's notebooks of earlier labs.

    What runs them there is the lab's own cell, in the process of the answer, with no more rights
    than it has.

    files: contents by their place in `labs/`, such as Path("lab08_topic/lab08_topic.ipynb").
    modules: what their cells import. cells: of the learner, for who looks at what they do.
    """

    files: dict[Path, bytes] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    cells: tuple[Cell, ...] = ()


@dataclass(frozen=True)
class Notebook:
    """A released lab with somebody's answers in it.

    notes: what had to be mended, in words. doubt: why a person should look at which of the
    submission's notebooks counts. earlier: the notebooks of earlier labs that it uses.
    """

    cells: tuple[Cell, ...]
    notes: tuple[str, ...] = ()
    doubt: str = ""
    earlier: Earlier = Earlier()

    def above(self, exercise: str) -> list[Cell]:
        """The cells to run before the check of an exercise."""
        check = next(
            k for k, c in enumerate(self.cells) if (c.kind, c.exercise) == ("check", exercise)
        )
        return [c for c in self.cells[:check] if c.kind in ("given", "answer", "extra")]

    def alone(self, exercise: str) -> list[Cell]:
        """Of the cells above its check, those that are given and the exercise's own answer."""
        above = self.above(exercise)
        return [c for c in above if c.kind == "given" or c.exercise == exercise]

    def answer(self, exercise: str) -> Cell:
        """The answer cell of an exercise."""
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


def read(files: list[File], lab: Lab) -> Notebook:
    """The lab with the answers of a submission, and what its earlier notebooks hold for it.

    Raises NotANotebook if no file is a notebook of this lab.
    """
    notebook = choose(files, lab)
    contents: dict[Path, bytes] = {}
    modules: dict[str, None] = {}
    cells: list[Cell] = []
    notes: list[str] = []
    for wanted, other in lab.earlier:
        try:
            past = choose(files, other)
        except NotANotebook:
            notes.append(f"no notebook of {other.name} was handed in; {wanted.words} is used here")
            continue
        above = past.above(wanted.exercise)
        place = Path(other.path.parent.name, other.path.name)
        contents[place] = earlier.notebook([(cell.id, cell.source) for cell in above])
        modules |= dict.fromkeys(other.modules)
        cells += [replace(cell, id=f"{other.name} {cell.id}") for cell in above]
        notes += [f"{other.name}: {past.doubt}"] if past.doubt else []
    return replace(
        notebook,
        notes=(*notebook.notes, *notes),
        earlier=Earlier(contents, tuple(modules), tuple(cells)),
    )


# Which file counts


@dataclass(frozen=True)
class _Candidate:
    """A file that can be read, and how well it fits the lab."""

    file: File
    notebook: Notebook
    answers: dict[str, str]
    fit: tuple[int, int, bool]


def choose(files: list[File], lab: Lab) -> Notebook:
    """The lab with the answers of the file that fits it best. Raises NotANotebook.

    The best has the most answers that differ from the released ones, then the most of the lab's
    exercises, of its cell names and answer functions, then the released file name; the first by
    name of several equal ones. Which of two with equally many, but other answers was meant is in
    doubt. Notebooks with the checks of another lab are passed over.
    """
    if not files:
        raise NotANotebook("no notebook was found (no file ends in .ipynb)")
    candidates, reasons, others = [], [], []
    for file in files:
        try:
            cells = parse(file.content)
        except NotANotebook as error:
            reasons.append(f"{file.name}: {error}")
            continue
        if _is_of_another_lab(cells, lab):
            others.append(f"{file.name} is of another lab")
            continue
        fit = _fit(cells, file, lab)
        if fit > (0, 0, False):
            notebook = fill(cells, lab)
            candidates.append(_Candidate(file, notebook, _changed(notebook, lab), fit))
    if not candidates:
        nothing = f"{files[0].name} holds nothing of {lab.name}"
        raise NotANotebook("; ".join([*reasons, *others][:3]) or nothing)
    best, *rest = sorted(
        candidates, key=lambda c: (-len(c.answers), [-int(n) for n in c.fit], c.file.name)
    )
    equal = [
        c.file.name
        for c in rest
        if len(c.answers) == len(best.answers) and c.answers != best.answers
    ]
    notes, doubt, count = [], "", len(files) - len(others)
    if equal:
        doubt = f"{len(equal) + 1} notebooks with different answers"
        named = [*equal[:3], f"{len(equal) - 3} more"] if len(equal) > 3 else equal
        doubt += f"; took {best.file.name}, not {', '.join(named)}"
    elif count > 1:
        notes.append(f"took {best.file.name}, the best fit of {count} notebooks")
    if encoding := decode(best.file.content)[1]:
        notes.append(f"{best.file.name} is written in {encoding}, not in UTF-8")
    first = (doubt, *notes) if doubt else tuple(notes)
    return replace(best.notebook, notes=(*first, *best.notebook.notes), doubt=doubt)


def _is_of_another_lab(cells: list[SubmittedCell], lab: Lab) -> bool:
    """Whether the checks in a notebook are another lab's: all labs name their cells alike."""
    checked = {name for cell in cells for name in _CHECK.findall(cell.source)}
    return bool(checked) and lab.name not in checked


_CHECK = re.compile(r"""^check\(["'](lab\d+)\.ex\d+["']""", re.MULTILINE)


def _changed(notebook: Notebook, lab: Lab) -> dict[str, str]:
    """The answers of a notebook that are not as released, by exercise."""
    released = blank(lab)
    answers = {e.name: notebook.answer(e.name).source.strip() for e in lab.exercises}
    return {n: text for n, text in answers.items() if text != released.answer(n).source.strip()}


def _fit(cells: list[SubmittedCell], file: File, lab: Lab) -> tuple[int, int, bool]:
    source = "\n".join(cell.source for cell in cells)
    mentioned = sum(f'"{e.id}"' in source for e in lab.exercises)
    names = {name for cell in cells for name in cell.names}
    own = [c for c in lab.cells if c.exercise]
    known = sum(c.id in names for c in own) + sum(
        defines(e.function, source) for e in lab.exercises
    )
    same_name = file.name.rpartition("/")[2] == lab.path.name
    return mentioned, known, same_name and bool(mentioned or known)


def lab_of(contents: list[bytes], names: list[str]) -> str:
    """Which lab a set of notebooks belongs to: the one whose checks most of them hold.

    Raises ValueError if that is not clear.
    """
    votes: Counter[str] = Counter()
    for content in contents:
        with suppress(UnicodeDecodeError):
            text = decode(content)[0]
            votes.update(name for name in names if re.search(rf'"{name}\.ex\d', text))
    best = votes.most_common(2)
    if len(names) == 1:
        return names[0]
    if not best or (len(best) > 1 and best[0][1] == best[1][1]):
        raise ValueError(f"cannot tell which lab this is: add --lab, one of {', '.join(names)}")
    return best[0][0]


# Which of its cells is which


def defines(function: str, source: str) -> bool:
    """Whether a cell defines a function or class, or assigns something to its name."""
    name = re.escape(function)
    pattern = rf"^[ \t]*(((async[ \t]+)?def|class)[ \t]+{name}[ \t]*[(:]|{name}[ \t]*=[^=])"
    return re.search(pattern, source, re.MULTILINE) is not None


def blank(lab: Lab) -> Notebook:
    """The lab as released, without answers."""
    return Notebook(lab.cells)


def fill(cells: list[SubmittedCell], lab: Lab) -> Notebook:
    """The released lab with the answers and additional cells of a notebook."""
    notes: list[str] = []
    place = _places(cells, lab, notes)
    sources: dict[str, str] = {}
    order = [cell.id for cell in lab.cells]
    extras: dict[str, list[Cell]] = {}
    anchor = ""
    for index, own in enumerate(cells):
        home = place.get(index)
        if home is not None:
            # A cell that was moved up must not drag the learner's cells below it along.
            anchor = max(anchor, home, key=lambda name: order.index(name) if name else -1)
            sources[home] = own.source
        elif own.type == "code" and own.source.strip():
            number = sum(map(len, extras.values())) + 1
            extra = Cell(f"own cell {number}", "extra", own.source)
            extras.setdefault(anchor, []).append(extra)
    filled = list(extras.get("", []))
    for cell in lab.cells:
        source = sources.get(cell.id)
        if cell.kind == "answer" and source is not None:
            filled.append(replace(cell, source=source))
        else:
            filled.append(cell)
            notes.extend(_repairs(cell, source))
            # An answer may need what its author added to a given cell, such as an import.
            if cell.kind == "given" and source is not None:
                if source.strip() != cell.source.strip():
                    filled.append(Cell(f"edited {cell.id}", "extra", source))
        filled.extend(extras.get(cell.id, []))
    notes.extend(_redefinitions(filled, lab))
    return Notebook(tuple(filled), tuple(notes))


def _redefinitions(cells: list[Cell], lab: Lab) -> Iterator[str]:
    """Notes on functions that an own cell below their check defines: no check sees those."""
    for exercise in lab.exercises:
        check = next(
            k for k, c in enumerate(cells) if (c.kind, c.exercise) == ("check", exercise.name)
        )
        if any(defines(exercise.function, c.source) for c in cells[check:] if c.kind == "extra"):
            again = f"{exercise.function} is defined again below its check"
            yield f"{again}; the answer cell counts"


def _repairs(cell: Cell, source: str | None) -> list[str]:
    if cell.kind in ("text", "silent"):
        return []
    what = {"given": f"given cell {cell.id}", "check": f"check of {cell.exercise}"}.get(
        cell.kind, f"answer cell of {cell.exercise}"
    )
    if source is None:
        return [f"{what} was deleted; put back as released"]
    if source.strip() != cell.source.strip():
        both = "the released one runs first, then the edited one"
        return [f"{what} was edited; {both if cell.kind == 'given' else 'the released one counts'}"]
    return []


def _places(cells: list[SubmittedCell], lab: Lab, notes: list[str]) -> dict[int, str]:
    """Which cell of the submission is which cell of the lab: index to cell id."""
    named: dict[str, list[int]] = {c.id: [] for c in lab.cells}
    by_source = {c.source.strip(): c.id for c in lab.cells if c.kind not in ("answer", "text")}
    for index, own in enumerate(cells):
        name = next((n for n in own.names if n in named), None)
        if name is None and own.type == "code":
            name = by_source.get(own.source.strip())
        if name is not None:
            named[name].append(index)
    exercises = {exercise.name: exercise for exercise in lab.exercises}
    place: dict[int, str] = {}
    for cell in lab.cells:
        mine = named[cell.id]
        if cell.kind == "answer" and cell.exercise:
            taken = {i for name, indices in named.items() if name != cell.id for i in indices}
            chosen = _answer_cell(cells, mine, taken, exercises[cell.exercise], notes)
        else:
            chosen = mine[-1] if mine else None
        if chosen is not None:
            place[chosen] = cell.id
        # Other copies of a cell that is not the learner's to write are dropped, not run.
        if cell.kind not in ("answer", "text"):
            place.update((i, cell.id) for i in mine if i != chosen)
    return place


def _answer_cell(
    cells: list[SubmittedCell],
    mine: list[int],
    taken: set[int],
    exercise: Exercise,
    notes: list[str],
) -> int | None:
    """The cell that counts: the last named one that defines the function, else any that does."""
    code = [i for i, cell in enumerate(cells) if cell.type == "code" and i not in taken]
    defining = [i for i in code if defines(exercise.function, cells[i].source)]
    named = [i for i in mine if i in defining]
    candidates = named or defining or [i for i in mine if i in code]
    if len(mine) > 1:
        notes.append(
            f"answer cell of {exercise.name} exists {len(mine)} times;"
            " the last one that defines the function counts"
        )
    elif candidates and candidates[-1] not in mine:
        notes.append(
            f"answer of {exercise.name} taken from the cell that defines {exercise.function}"
        )
    return candidates[-1] if candidates else None
