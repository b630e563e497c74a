"""The tables in README.md: tracks, and lessons, labs and pages. They are made, not written."""

from pathlib import Path

from utils.course import catalog, tracks
from utils.course.catalog import ROOT, CatalogError, Lab, Lesson
from utils.course.shown import markdown

BEGIN = "<!-- {}: made by `python3 course.py labs`, do not edit -->"
END = "<!-- end of {} -->"
HEAD = ("#", "Notebook", "Minutes", "Needs", "After", "What it shows")


def _cells(each: Lesson, root: Path) -> tuple[str, ...]:
    kind = f"lab, {each.points:g} points: " if isinstance(each, Lab) else ""
    return (
        each.number,
        f"{kind}[{each.title}]({each.path.relative_to(root)})",
        str(each.minutes),
        each.needs,
        ", ".join(each.after) or "-",
        each.proves,
    )


def table(root: Path = ROOT) -> str:
    """The table as Markdown: by number, each lesson followed by its lab; the pages at the end."""
    everything: list[Lesson] = [*catalog.lessons(root), *catalog.labs(root)]
    ordered = sorted(everything, key=lambda item: (item.number, isinstance(item, Lab)))
    ordered += catalog.pages(root)
    return markdown(HEAD, (_cells(notebook, root) for notebook in ordered))


TABLES = {"tracks": tracks.table, "lessons and labs": table}


def updated(root: Path = ROOT) -> str:
    """The text of README.md with fresh tables. Raises CatalogError if a place is not marked."""
    text = (root / "README.md").read_text(encoding="utf-8")
    for name, make in TABLES.items():
        first, last = BEGIN.format(name), END.format(name)
        before, begin, rest = text.partition(first)
        _, end, after = rest.partition(last)
        if not begin or not end:
            raise CatalogError(
                f"README.md does not mark the place of a table: add the lines {first} and {last}"
            )
        text = f"{before}{first}\n\n{make(root)}\n\n{last}{after}"
    return text


def is_current(root: Path = ROOT) -> bool:
    """Whether README.md holds the tables as they would be made now."""
    return updated(root) == (root / "README.md").read_text(encoding="utf-8")


def write(root: Path = ROOT) -> bool:
    """Refresh the tables. Returns whether the file changed."""
    if is_current(root):
        return False
    (root / "README.md").write_text(updated(root), encoding="utf-8")
    return True
