"""Make labs/ from solutions/, byte for byte reproducible: the learner's notebook of every lab.

The usual wrong answers that a solution lists are made too, from the lab's misconceptions, and the
minutes of a lesson, from its cells.

nbgrader's own preprocessors lock, clear and sign the cells, so that its tools read the result; no
database and no configuration file take part.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from utils.course import catalog, pace
from utils.course.catalog import ROOT, CatalogError, read_notebook, tags, text
from utils.course.misconceptions import misconceptions, usual_wrong_answers
from utils.course.notebooks import Notebook, canonical, to_text, without_grammars

TAGS = frozenset(
    "setup predict exercise check hint solution-only widget device-only"
    " nbval-ignore-output nbval-skip".split()
)
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
MARKER = re.compile(r"(BEGIN|END) SOLUTION")
CELL_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
SOURCES = {
    "labs": "solution",
    "solutions": "records of misconceptions",
    "notebooks": "minutes by utils/course/pace.py",
}
"""What the notebooks of a folder are made from."""
PARTS = ("task", "code", "check", "hints", "why")
HINTS = 3


def _regions(cell: dict[str, Any]) -> Iterator[str]:
    """What is wrong with the solution regions of a cell."""
    opened = None
    inside: list[str] = []
    for number, line in enumerate(text(cell).split("\n"), start=1):
        if not MARKER.search(line):
            inside.append(line)
        elif line.strip() == BEGIN:
            if opened:
                yield f"line {number}: a solution begins inside that of line {opened}: close that"
            opened, inside = number, []
        elif line.strip() == END:
            if not opened:
                yield f"line {number}: a solution ends that never began: add '{BEGIN}'"
            elif not any(item.strip() for item in inside):
                yield f"line {opened}: the solution is empty: write it between the two marks"
            opened = None
        else:
            yield f"line {number}: a mark must stand alone on its line, as '{BEGIN}' or '{END}'"
    if opened:
        yield f"line {opened}: the solution is not closed: add '{END}'"


def _code_cell(cell: dict[str, Any], name: str) -> Iterator[str]:
    grading = cell["metadata"].get("nbgrader", {})
    if (
        not grading.get("solution")
        or grading.get("grade")
        or grading.get("grade_id") != f"{name}-code"
    ):
        yield f"must be an nbgrader solution cell, not graded, with grade_id '{name}-code'"
    if not any(line.strip() == BEGIN for line in text(cell).split("\n")):
        yield f"has no solution region: add '{BEGIN}' and '{END}'"


def _check_cell(cell: dict[str, Any], name: str, lab: str) -> Iterator[str]:
    grading = cell["metadata"].get("nbgrader", {})
    facts = cell["metadata"].get("exercise", {})
    if not grading.get("grade") or not grading.get("locked") or grading.get("solution"):
        yield "must be a locked nbgrader grade cell"
    if grading.get("grade_id") != f"{name}-check":
        yield f"has grade_id {grading.get('grade_id')!r}: it must be '{name}-check'"
    if not isinstance(grading.get("points"), int | float) or not grading["points"] > 0:
        yield f"gives {grading.get('points')!r} points: set 'points' in its nbgrader metadata"
    if facts.get("id") != f"{lab}.{name}":
        yield f"has exercise id {facts.get('id')!r}: it must be '{lab}.{name}'"
    if not facts.get("title") or not facts.get("minutes"):
        yield "lacks the title or the minutes of the exercise in its metadata 'exercise'"
    if text(cell).strip() != f'check("{lab}.{name}")':
        yield f'must contain check("{lab}.{name}") and nothing else'


def _exercise(cells: dict[str, dict[str, Any]], name: str, lab: str) -> Iterator[tuple[str, str]]:
    for part in PARTS:
        if f"{name}-{part}" not in cells:
            yield f"{name}-{part}", f"is missing: exercise {lab}.{name} needs {', '.join(PARTS)}"
    task, code, check, hints, why = (cells.get(f"{name}-{part}") for part in PARTS)
    if task and not re.search("^Difficulty: ", text(task), flags=re.MULTILINE):
        yield f"{name}-task", "states no difficulty: add a line such as 'Difficulty: 2 of 3'"
    if code:
        yield from ((f"{name}-code", item) for item in _code_cell(code, name))
    if check:
        yield from ((f"{name}-check", item) for item in _check_cell(check, name, lab))
    if hints and (result := text(hints).count("<details>")) != HINTS:
        yield f"{name}-hints", f"has {result} hints: it needs {HINTS}, each in <details>"
    if why and "solution-only" not in tags(why):
        yield f"{name}-why", "explains the solution: tag it solution-only"


def problems(notebook: Notebook, lab: str) -> list[str]:
    """What keeps the solution notebook of "lab03" from being a lab: cell id and what to do."""
    results: list[tuple[str, str]] = []
    cells: dict[str, dict[str, Any]] = {}
    for index, cell in enumerate(notebook["cells"]):
        name = cell.get("id", "")
        if not CELL_ID.fullmatch(name) or re.fullmatch(r"[0-9a-f]{8}", name):
            results.append((name or f"number {index}", "needs a meaningful id such as 'ex1-code'"))
        if name in cells:
            results.append((name, "has the id of an earlier cell: give it its own"))
        cells[name] = cell
        for tag in tags(cell):
            if tag not in TAGS:
                results.append(
                    (name, f"has the unknown tag {tag!r}; known are {', '.join(sorted(TAGS))}")
                )
        results += [(name, region) for region in _regions(cell)]
        if BEGIN in text(cell) and not re.fullmatch(r"ex\d+-code", name):
            results.append((name, "holds a solution region: only cells called exN-code may"))
    names = sorted({name.partition("-")[0] for name in cells if re.match(r"ex\d+-", name)})
    if not names:
        results.append(("ex1-task", "is missing: a lab has at least one exercise"))
    for name in names:
        results += _exercise(cells, name, lab)
    return [f"cell {name!r} {what}" for name, what in results]


def _clear_solutions(lab: str) -> Any:
    """nbgrader's ClearSolutions with a stub that names the exercise of the cell."""
    # Late here and below: nbgrader is slow to load, and only who makes labs has it.
    from nbgrader.preprocessors import ClearSolutions

    class NamedStub(ClearSolutions):
        def preprocess_cell(self, cell: Any, resources: Any, cell_index: int) -> Any:
            exercise = f"{lab}.{cell.id.partition('-')[0]}"
            self.code_stub = {
                "python": f'raise NotImplementedError("{exercise}: not attempted yet")'
            }
            return super().preprocess_cell(cell, resources, cell_index)

    return NamedStub()


def _announce_points(cells: list[Any]) -> None:
    """Add minutes and points to the difficulty in each task; they are written in the check cell."""
    for cell in cells:
        if facts := cell.metadata.get("exercise"):
            task = next(c for c in cells if c.id == cell.id.replace("-check", "-task"))
            result = f"{facts['minutes']} minutes · {cell.metadata.nbgrader.points:g} points"
            task.source = re.sub(
                "^Difficulty: .*$", rf"\g<0> · {result}", task.source, flags=re.MULTILINE
            )


def learner_version(notebook: Notebook, lab: str) -> str:
    """The learner's notebook, as file content, made from the solution notebook of `lab`."""
    without_grammars()
    import nbformat
    from nbgrader.preprocessors import CheckCellMetadata, ClearOutput, ComputeChecksums, LockCells

    node = nbformat.from_dict(canonical(notebook))
    node.cells = [cell for cell in node.cells if "solution-only" not in tags(cell)]
    _announce_points(node.cells)
    resources: dict[str, Any] = {}
    for step in (
        LockCells(),
        _clear_solutions(lab),
        ClearOutput(),
        ComputeChecksums(),
        CheckCellMetadata(),
    ):
        node, resources = step.preprocess(node, resources)
    return to_text(node)


USUAL = re.compile(r"\*\*Usual wrong answers?\.\*\*.*", re.DOTALL)


def with_usual_wrong_answers(notebook: Notebook, lab: str, root: Path = ROOT) -> str:
    """The solution notebook, as file content, with the list below each exercise made anew."""
    notebook = canonical(notebook)
    for cell in notebook["cells"]:
        exercise, _, part = cell["id"].partition("-")
        if part == "why" and (listed := usual_wrong_answers(lab, exercise, root)):
            new = f"**Usual wrong answers.**\n\n{listed}"
            before = USUAL.sub("", text(cell)).rstrip()
            cell["source"] = f"{before}\n\n{new}".splitlines(keepends=True)
    return to_text(notebook)


def generate(root: Path = ROOT) -> dict[Path, str]:
    """Every learner's notebook, every solution, and every lesson with its minutes: its path and
    its content.

    Raises CatalogError with every fault of every source, or if there is no lab at all.
    """
    sources = sorted((root / "solutions").glob("lab*/*.ipynb"))
    if not sources:
        raise CatalogError(
            "solutions/ holds no lab: expected solutions/labNN_topic/labNN_topic.ipynb"
        )
    made, faults = {}, []
    for source in sources:
        lab = source.stem.partition("_")[0]
        if source.stem != source.parent.name or not re.fullmatch(
            r"lab\d\d_[a-z0-9_]+", source.stem
        ):
            faults.append(
                f"{source.relative_to(root)}: must be called labNN_topic/labNN_topic.ipynb"
            )
            continue
        notebook = read_notebook(source)
        if wrong := problems(notebook, lab):
            faults += [f"{source.relative_to(root)}: {item}" for item in wrong]
        else:
            catalog.lab(lab, root)
            made[root / "labs" / source.parent.name / source.name] = learner_version(notebook, lab)
            if misconceptions(lab, root):
                made[source] = with_usual_wrong_answers(notebook, lab, root)
    if faults:
        raise CatalogError("\n".join(faults))
    for lesson in [*catalog.lessons(root), *catalog.pages(root)]:
        notebook = read_notebook(lesson.path)
        pace.write(notebook)
        made[lesson.path] = to_text(notebook)
    return made


def _first_difference(result: Path, expected: str) -> str:
    try:
        old = {cell.get("id"): cell for cell in read_notebook(result)["cells"]}
    except CatalogError:
        return "the file is not a readable notebook"
    new = {cell["id"]: cell for cell in json.loads(expected)["cells"]}
    for name in [*new, *old]:
        if name not in old or name not in new or old[name] != new[name]:
            return f"first in cell {name!r}"
    return "in its metadata or in the order of its cells"


def drift(root: Path = ROOT) -> list[str]:
    """Where labs/ differs from what solutions/ gives; empty if they agree."""
    made = generate(root)
    results = []
    for path, content in made.items():
        name = path.relative_to(root)
        if not path.is_file():
            results.append(f"{name} is missing")
        elif path.read_text(encoding="utf-8") != content:
            source = SOURCES[name.parts[0]]
            results.append(f"{name} differs from its {source}, {_first_difference(path, content)}")
    for path in sorted((root / "labs").glob("lab*/*.ipynb")):
        if path not in made:
            results.append(f"{path.relative_to(root)} has no solution notebook: delete it")
    return results


def write(root: Path = ROOT) -> list[Path]:
    """Write labs/ anew. Returns the notebooks whose content changed; other files are left alone."""
    changed = []
    for path, content in generate(root).items():
        if not path.is_file() or path.read_text(encoding="utf-8") != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
            changed.append(path)
    return changed
