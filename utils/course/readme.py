"""The table of lessons, labs and pages in README.md, made from the metadata of the notebooks."""

from pathlib import Path

from utils.course import catalog
from utils.course.catalog import ROOT, CatalogError, Lab, Lesson
from utils.course.shown import markdown

BEGIN = "<!-- lessons and labs: made by `python3 course.py labs`, do not edit -->"
END = "<!-- end of lessons and labs -->"
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


def updated(root: Path = ROOT) -> str:
    """The text of README.md with a fresh table. Raises CatalogError if its place is not marked."""
    text = (root / "README.md").read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise CatalogError(
            f"README.md does not mark the place of the table: add the lines {BEGIN} and {END}"
        )
    return f"{before}{BEGIN}\n\n{table(root)}\n\n{END}{after}"


def is_current(root: Path = ROOT) -> bool:
    """Whether README.md holds the table as it would be made now."""
    return updated(root) == (root / "README.md").read_text(encoding="utf-8")


def write(root: Path = ROOT) -> bool:
    """Refresh the table. Returns whether the file changed."""
    if is_current(root):
        return False
    (root / "README.md").write_text(updated(root), encoding="utf-8")
    return True
