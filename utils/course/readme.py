"""Tables of the course that are made and not written: the short one of README.md, the tracks and
the long one of the guide.
"""

from collections.abc import Callable
from pathlib import Path

from utils.course import catalog, tracks
from utils.course.catalog import ROOT, CatalogError, Lab, Lesson
from utils.course.shown import markdown

BEGIN = "<!-- {}: made by `python3 course.py labs`, do not edit -->"
END = "<!-- end of {} -->"
SHORT_HEAD = ("#", "Lesson", "Minutes", "Lab, 40 points", "Minutes")
HEAD = ("#", "Notebook", "Minutes", "Needs", "After", "What it shows")
GUIDE = Path("utils", "cli", "site", "guide")


def _link(notebook: Lesson, root: Path, up: str = "") -> str:
    return f"[{notebook.title}]({up}{notebook.path.relative_to(root)})"


def overview(root: Path = ROOT) -> str:
    """A lesson and its lab a row; the pages at the end. Links lead from the course's folder."""
    labs = {lab.number: lab for lab in catalog.labs(root)}
    rows = []
    for lesson in catalog.lessons(root):
        lab = labs.get(lesson.number)
        beside = (_link(lab, root), str(lab.minutes)) if lab else ("-", "-")
        rows.append((lesson.number, _link(lesson, root), str(lesson.minutes), *beside))
    pages = [("-", _link(page, root), str(page.minutes), "-", "-") for page in catalog.pages(root)]
    return markdown(SHORT_HEAD, [*rows, *pages])


def table(root: Path = ROOT) -> str:
    """By number, each lesson followed by its lab; the pages at the end. Links lead from `GUIDE`."""
    everything: list[Lesson] = [*catalog.lessons(root), *catalog.labs(root)]
    ordered = sorted(everything, key=lambda item: (item.number, isinstance(item, Lab)))
    ordered += catalog.pages(root)
    return markdown(HEAD, (_cells(notebook, root) for notebook in ordered))


def _cells(notebook: Lesson, root: Path) -> tuple[str, ...]:
    kind = f"lab, {notebook.points:g} points: " if isinstance(notebook, Lab) else ""
    return (
        notebook.number,
        kind + _link(notebook, root, "../" * len(GUIDE.parts)),
        str(notebook.minutes),
        notebook.needs,
        ", ".join(notebook.after) or "-",
        notebook.proves,
    )


TABLES: dict[Path, tuple[str, Callable[[Path], str]]] = {
    Path("README.md"): ("lessons and labs", overview),
    GUIDE / "map.md": ("lessons and labs", table),
    GUIDE / "tracks.md": ("tracks", tracks.table),
}


def update(file: Path, root: Path = ROOT) -> str:
    """The text of a file of `TABLES` with a fresh table. Raises CatalogError if no place is
    marked for it."""
    name, make = TABLES[file]
    first, last = BEGIN.format(name), END.format(name)
    before, begin, rest = (root / file).read_text(encoding="utf-8").partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise CatalogError(
            f"{file} does not mark the place of its table: add the lines {first} and {last}"
        )
    return f"{before}{first}\n\n{make(root)}\n\n{last}{after}"


def stale(root: Path = ROOT) -> list[Path]:
    """The files whose table is not as it would be made now."""
    return [
        file for file in TABLES if update(file, root) != (root / file).read_text(encoding="utf-8")
    ]


def write(root: Path = ROOT) -> list[Path]:
    """Refresh the tables. Returns the files that changed."""
    files = stale(root)
    for file in files:
        (root / file).write_text(update(file, root), encoding="utf-8")
    return files
