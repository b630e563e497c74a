"""What counts in a folder of results: records, with the points of the gradebook."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from utils.labs.grading import downloads, lab, records
from utils.labs.grading.gradebook import Book
from utils.labs.grading.lab import Lab
from utils.labs.grading.records import Graded, Record


@dataclass(frozen=True)
class Results:
    """A graded folder: its lab, its gradebook, and its students by file name."""

    out: Path
    lab: Lab
    book: Book
    students: tuple[Graded, ...]


def load(out: Path, root: Path) -> Results:
    """Read the results in `out`. Raises ValueError if nothing was graded there."""
    known = list(records.read(out)) if out.is_dir() else []
    if not known or not (out / "gradebook.db").exists():
        raise ValueError(f"{out} holds no results: give the --out of an earlier `course.py grade`")
    chosen = lab.load(root, known[0].marks[0].exercise.id.partition(".")[0])
    book = Book(chosen, root, out)
    return Results(out, chosen, book, tuple(book.graded(known)))


def platform_of(record: Record) -> str:
    """The platform that named a submission; "" where the name told no id."""
    return downloads.entry_of(record.entry).platform if record.id else ""


def names_of(record: Record) -> set[str]:
    """All names by which an instructor may mean a student, as `same` compares them."""
    return {same(n) for n in (record.student, record.slug, record.entry, record.id) if n}


def same(name: str) -> str:
    """What two spellings of one name have in common.

    >>> same(" Jane  DOE") == same("jane doe")
    True
    """
    import unicodedata

    return " ".join(unicodedata.normalize("NFC", name).casefold().split())


def join_names(names: Iterable[str]) -> str:
    """Names in a message, in order."""
    return ", ".join(sorted(names))
