"""The README's tables are made from the notebooks."""

import json
from pathlib import Path

import pytest

from utils.course import readme
from utils.course.catalog import ROOT, CatalogError


def test_the_table_names_lessons_and_labs_in_order(course: Path) -> None:
    assert readme.table(course).splitlines()[2:] == [
        "| 99 | [Counting](notebooks/99_counting.ipynb) | 5 | Python | 00 | sums |",
        "| 99 | lab, 12 points: [Sums](labs/lab99_sums/lab99_sums.ipynb) | 5 | Python | 00"
        " | sums |",
    ]


def test_a_page_stands_at_the_end(course: Path) -> None:
    lesson = json.loads((course / "notebooks" / "99_counting.ipynb").read_text())
    lesson["metadata"]["course"] |= {"kind": "page", "number": "-", "after": []}
    (course / "notebooks" / "claims.ipynb").write_text(json.dumps(lesson))
    assert readme.table(course).splitlines()[-1] == (
        "| - | [Counting](notebooks/claims.ipynb) | 5 | Python | - | sums |"
    )


def test_only_the_marked_place_is_written(course: Path) -> None:
    places = "between\n".join(
        f"{readme.BEGIN.format(name)}\nold\n{readme.END.format(name)}\n" for name in readme.TABLES
    )
    (course / "README.md").write_text(f"before\n{places}after\n")
    assert not readme.is_current(course)
    assert readme.write(course) is True
    text = (course / "README.md").read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
    assert "\nbetween\n" in text and text.count("| Track |") == text.count("| # |") == 1
    assert readme.write(course) is False


def test_a_readme_without_the_marks_is_refused(course: Path) -> None:
    (course / "README.md").write_text("no table\n")
    with pytest.raises(CatalogError, match="does not mark the place"):
        readme.updated(course)


def test_the_table_of_this_repository_is_current() -> None:
    assert readme.is_current(ROOT), "run: python3 course.py labs"
