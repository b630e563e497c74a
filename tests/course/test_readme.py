"""The tables of README and guide are made from the notebooks."""

import json
from pathlib import Path

import pytest

from utils.course import readme
from utils.course.catalog import ROOT, CatalogError


def test_the_table_names_lessons_and_labs_in_order(course: Path) -> None:
    assert readme.table(course).splitlines()[2:] == [
        "| 99 | [Counting](../../../../notebooks/99_counting.ipynb) | 5 | Python | 00 | sums |",
        "| 99 | lab, 12 points: [Sums](../../../../labs/lab99_sums/lab99_sums.ipynb) | 5 | Python"
        " | 00 | sums |",
    ]


def test_a_page_stands_at_the_end(course: Path) -> None:
    lesson = json.loads((course / "notebooks" / "99_counting.ipynb").read_text())
    lesson["metadata"]["course"] |= {"kind": "page", "number": "-", "after": []}
    (course / "notebooks" / "claims.ipynb").write_text(json.dumps(lesson))
    assert readme.table(course).splitlines()[-1] == (
        "| - | [Counting](../../../../notebooks/claims.ipynb) | 5 | Python | - | sums |"
    )


def test_the_short_table_has_a_lesson_and_its_lab_in_a_row(course: Path) -> None:
    assert readme.overview(course).splitlines()[2:] == [
        "| 99 | [Counting](notebooks/99_counting.ipynb) | 5"
        " | [Sums](labs/lab99_sums/lab99_sums.ipynb) | 5 |"
    ]


def marked(course: Path) -> None:
    for file, (name, _) in readme.TABLES.items():
        (course / file).parent.mkdir(parents=True, exist_ok=True)
        begin, end = readme.BEGIN.format(name), readme.END.format(name)
        (course / file).write_text(f"before\n{begin}\nold\n{end}\nafter\n")


def test_only_the_marked_place_is_written(course: Path) -> None:
    marked(course)
    assert readme.stale(course) == list(readme.TABLES)
    assert readme.write(course) == list(readme.TABLES)
    for file in readme.TABLES:
        text = (course / file).read_text()
        assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
    assert readme.write(course) == []


def test_a_file_without_the_marks_is_refused(course: Path) -> None:
    marked(course)
    (course / "README.md").write_text("no table\n")
    with pytest.raises(CatalogError, match="README.md does not mark the place"):
        readme.update(Path("README.md"), course)


def test_the_tables_of_this_repository_are_current() -> None:
    assert readme.stale(ROOT) == [], "run: python3 course.py labs"
