"""The course as its notebooks tell it: lessons, labs, exercises, minutes and points.

The notebooks are the only place where these facts are written; every table, card, board and
gradebook asks here.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
COURSE_KEYS = ("kind", "number", "minutes", "needs", "after", "proves")
_KEPT = 128
"""How many notebooks' facts are kept, by their content: every check asks for those of all labs."""


class CatalogError(ValueError):
    """A notebook lacks something, or an id names nothing: what, where and what to do."""


@dataclass(frozen=True)
class Exercise:
    """One exercise of a lab: `id` such as "lab03.ex2"; `minutes` to spend, `points` to win."""

    id: str
    title: str
    minutes: int
    points: float


@dataclass(frozen=True)
class Lesson:
    """One notebook: `number` "03", `after` the numbers of the lessons it builds on."""

    number: str
    title: str
    minutes: int
    needs: str
    after: tuple[str, ...]
    proves: str
    path: Path


@dataclass(frozen=True)
class Lab(Lesson):
    """A lab: a lesson's facts and its exercises. `path` is the learner's notebook in labs/."""

    exercises: tuple[Exercise, ...] = ()

    @property
    def name(self) -> str:
        """Such as "lab03"."""
        return f"lab{self.number}"

    @property
    def points(self) -> float:
        """Of all its exercises."""
        return sum(exercise.points for exercise in self.exercises)


def read_notebook(path: Path) -> dict[str, Any]:
    """The notebook's JSON. Raises CatalogError with the file and the place where it breaks off."""
    return _notebook(path, _content(path))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> CatalogError:
    return CatalogError(
        f"{path.name} is not a readable notebook ({error}): restore it, for example with"
        f" 'git checkout -- {path.parent.name}/{path.name}'"
    )


def _notebook(path: Path, content: bytes) -> dict[str, Any]:
    try:
        notebook = json.loads(content.decode("utf-8"))
    except ValueError as error:
        raise _unreadable(path, error) from None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise CatalogError(f"{path.name} has no list of cells: it is not a version 4 notebook")
    return notebook


def text(cell: dict[str, Any]) -> str:
    """The source of a cell, which notebook files keep as text or as a list of lines."""
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def tags(cell: dict[str, Any]) -> list[str]:
    """The tags of a cell, such as "solution-only"."""
    return list(cell.get("metadata", {}).get("tags", []))


def title(notebook: dict[str, Any], path: Path) -> str:
    """The level-1 heading of the first cell without its leading number: "# 03 · Lazy tensors"."""
    first = text(notebook["cells"][0]).strip().splitlines() if notebook["cells"] else []
    if not first or not first[0].startswith("# "):
        raise CatalogError(
            f"{path.name}: the first cell does not start with a heading '# 03 · Topic'"
        )
    _, separator, name = first[0][2:].partition("·")
    return (name if separator else first[0][2:]).strip()


def _course(notebook: dict[str, Any], path: Path, kind: str) -> dict[str, Any]:
    course = notebook.get("metadata", {}).get("course", {})
    missing = [key for key in COURSE_KEYS if key not in course]
    if missing:
        raise CatalogError(
            f"{path.name}: the notebook metadata 'course' lacks {', '.join(missing)};"
            f" it needs {', '.join(COURSE_KEYS)}"
        )
    if course["kind"] != kind:
        raise CatalogError(
            f"{path.name}: course.kind is {course['kind']!r}, but this folder holds {kind}s"
        )
    return {
        "number": str(course["number"]),
        "title": title(notebook, path),
        "minutes": int(course["minutes"]),
        "needs": str(course["needs"]),
        "after": tuple(str(number) for number in course["after"]),
        "proves": str(course["proves"]),
    }


def _exercises(notebook: dict[str, Any], path: Path) -> Iterator[Exercise]:
    for cell in notebook["cells"]:
        metadata = cell.get("metadata", {})
        facts, grading = metadata.get("exercise"), metadata.get("nbgrader", {})
        place = f"{path.name}, cell {cell.get('id', '?')!r}"
        if facts is None:
            if grading.get("grade"):
                raise CatalogError(
                    f"{place}: a graded cell without metadata 'exercise';"
                    " add id, title and minutes of the exercise"
                )
            continue
        missing = [key for key in ("id", "title", "minutes") if key not in facts]
        if missing:
            raise CatalogError(f"{place}: metadata 'exercise' lacks {', '.join(missing)}")
        if not isinstance(grading.get("points"), int | float):
            raise CatalogError(
                f"{place}: no number of points in metadata 'nbgrader' (points is"
                f" {grading.get('points')!r}); points are written there and nowhere else"
            )
        yield Exercise(facts["id"], facts["title"], int(facts["minutes"]), grading["points"])


def lessons(root: Path = ROOT) -> tuple[Lesson, ...]:
    """All lessons, by number."""
    paths = sorted((root / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    return tuple(_lesson(path, _content(path)) for path in paths)


@lru_cache(_KEPT)
def _lesson(path: Path, content: bytes) -> Lesson:
    return Lesson(path=path, **_course(_notebook(path, content), path, "lesson"))


def pages(root: Path = ROOT) -> tuple[Lesson, ...]:
    """The notebooks beside the lessons that are looked up rather than worked through, by name."""
    results = []
    for path in sorted((root / "notebooks").glob("[!0-9]*.ipynb")):
        try:
            notebook = read_notebook(path)
        except CatalogError:
            continue  # a learner's own file may lie there too, in any state
        if notebook.get("metadata", {}).get("course", {}).get("kind") == "page":
            results.append(Lesson(path=path, **_course(notebook, path, "page")))
    return tuple(results)


def lab_notebooks(root: Path = ROOT, name: str = "lab*") -> list[Path]:
    """The notebooks to read about labs: of solutions/, or of labs/ if solutions/ was deleted."""
    pattern = f"{name}_*" if name != "lab*" else name
    for folder in ("solutions", "labs"):
        if results := sorted((root / folder).glob(f"{pattern}/{pattern}.ipynb")):
            return results
    return []


@lru_cache(_KEPT)
def _lab(path: Path, root: Path, content: bytes) -> Lab:
    notebook = _notebook(path, content)
    lab = Lab(
        path=root / "labs" / path.parent.name / path.name,
        # A learner's notebook may hold a copied check cell: the exercise still counts once.
        exercises=tuple({entry.id: entry for entry in _exercises(notebook, path)}.values()),
        **_course(notebook, path, "lab"),
    )
    if not path.name.startswith(f"{lab.name}_"):
        raise CatalogError(
            f"{path.name}: course.number is {lab.number!r}, the file name says otherwise"
        )
    for item in lab.exercises:
        if not item.id.startswith(f"{lab.name}."):
            raise CatalogError(
                f"{path.name}: exercise id {item.id!r} must start with '{lab.name}.'"
            )
    return lab


def labs(root: Path = ROOT) -> tuple[Lab, ...]:
    """All labs, by number."""
    return tuple(_lab(path, root, _content(path)) for path in lab_notebooks(root))


def lab(name: str, root: Path = ROOT) -> Lab:
    """The lab called `name`, such as "lab03". Raises CatalogError with the names there are."""
    result = lab_notebooks(root, name) if name.startswith("lab") and name.isalnum() else []
    if not result:
        names = ", ".join(path.name.partition("_")[0] for path in lab_notebooks(root))
        raise CatalogError(f"there is no lab {name!r}; there is: {names or 'none at all'}")
    return _lab(result[0], root, _content(result[0]))


def exercises(name: str, root: Path = ROOT) -> tuple[Exercise, ...]:
    """The exercises of a lab in the order of its notebook."""
    return lab(name, root).exercises


def exercise(exercise_id: str, root: Path = ROOT) -> Exercise:
    """The exercise of an id such as "lab03.ex2". Raises CatalogError with the ids there are."""
    all_of_lab = exercises(str(exercise_id).partition(".")[0], root)
    for candidate in all_of_lab:
        if candidate.id == exercise_id:
            return candidate
    ids = ", ".join(item.id for item in all_of_lab)
    raise CatalogError(f"there is no exercise {exercise_id!r}; this lab has {ids}")


def points(exercise_id: str, root: Path = ROOT) -> float:
    """The points to win in an exercise, from the one place where they are written."""
    return exercise(exercise_id, root).points


def version_of(root: Path) -> str:
    """A hash of the course's code, labs and facts: what two versions compute is not one result."""
    digest = hashlib.sha256()
    for folder, ending in (("utils", "*.py"), ("utils", "*.yaml"), ("solutions", "*.ipynb")):
        for path in sorted((root / folder).rglob(ending)):
            digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
