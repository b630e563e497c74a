"""The catalog reads lessons, labs and exercises from notebooks and names what is missing."""

import json
from pathlib import Path

import pytest

from tests.labs.lab99 import course as lab99
from utils.course import catalog
from utils.course.catalog import CatalogError


def test_lesson_is_read_from_its_notebook(course: Path) -> None:
    (lesson,) = catalog.lessons(course)
    assert (lesson.number, lesson.title, lesson.minutes) == ("99", "Counting", 5)
    assert (lesson.needs, lesson.after, lesson.proves) == ("Python", ("00",), "sums")
    assert lesson.path == course / "notebooks" / "99_counting.ipynb"


def test_pages_are_told_from_a_learners_own_notebooks(course: Path) -> None:
    page = json.loads((course / "notebooks" / "99_counting.ipynb").read_text())
    page["metadata"]["course"] |= {"kind": "page", "number": "-"}
    (course / "notebooks" / "claims.ipynb").write_text(json.dumps(page))
    del page["metadata"]["course"]
    (course / "notebooks" / "Untitled.ipynb").write_text(json.dumps(page))
    (course / "notebooks" / "empty.ipynb").write_text("")
    assert [item.path.name for item in catalog.pages(course)] == ["claims.ipynb"]


def test_lab_has_its_exercises_points_and_the_learners_path(course: Path) -> None:
    (lab,) = catalog.labs(course)
    assert (lab.name, lab.title, lab.points) == ("lab99", "Sums", 12)
    assert [(e.id, e.title, e.minutes, e.points) for e in lab.exercises] == [
        ("lab99.ex1", "Twice", 5, 4),
        ("lab99.ex2", "Mean", 10, 8),
    ]
    assert lab.path == course / "labs" / "lab99_sums" / "lab99_sums.ipynb"
    assert catalog.points("lab99.ex2", course) == 8


def test_without_solutions_the_labs_are_read(course: Path) -> None:
    (course / "solutions").rename(course / "labs")
    assert catalog.labs(course)[0].points == 12


def test_a_copied_check_cell_counts_once(course: Path) -> None:
    path = catalog.lab_notebooks(course)[0]
    content = lab99.solution()
    content["cells"] += [dict(content["cells"][4], id="copy")]
    lab99.save(path, content)
    assert [exercise.id for exercise in catalog.exercises("lab99", course)] == [
        "lab99.ex1",
        "lab99.ex2",
    ]


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ("lab98.ex1", "there is no lab 'lab98'; there is: lab99"),
        ("lab99.ex7", "there is no exercise 'lab99.ex7'; this lab has lab99.ex1, lab99.ex2"),
        ("ex1", "there is no lab 'ex1'"),
        ("lab*.ex1", "there is no lab 'lab*'"),
        (7, "there is no lab '7'"),
    ],
)
def test_unknown_ids_are_answered_with_the_known_ones(course: Path, wrong, expected: str) -> None:
    with pytest.raises(CatalogError) as error:
        catalog.exercise(wrong, course)
    assert expected in str(error.value)


def change(root: Path, edit) -> None:
    path = catalog.lab_notebooks(root)[0]
    content = json.loads(path.read_text())
    edit(content)
    lab99.save(path, content)


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (lambda n: n["metadata"]["course"].pop("minutes"), "lacks minutes"),
        (lambda n: n["metadata"]["course"].update(kind="lesson"), "this folder holds labs"),
        (lambda n: n["metadata"]["course"].update(number="98"), "the file name says otherwise"),
        (lambda n: n["cells"][4]["metadata"].pop("exercise"), "cell 'ex1-check'"),
        (lambda n: n["cells"][4]["metadata"]["exercise"].pop("title"), "lacks title"),
        (lambda n: n["cells"][4]["metadata"]["nbgrader"].pop("points"), "points is None"),
        (lambda n: n["cells"][4]["metadata"]["exercise"].update(id="x"), "'x' must start with"),
        (lambda n: n["cells"].pop(0), "does not start with a heading"),
        (lambda n: n.pop("cells"), "has no list of cells"),
    ],
)
def test_a_broken_lab_is_named_with_what_is_missing(course: Path, edit, expected: str) -> None:
    change(course, edit)
    with pytest.raises(CatalogError, match="lab99_sums.ipynb") as error:
        catalog.labs(course)
    assert expected in str(error.value)


def test_a_file_that_is_no_notebook_is_named(course: Path) -> None:
    catalog.lab_notebooks(course)[0].write_text("{")
    with pytest.raises(CatalogError, match="lab99_sums.ipynb is not a readable notebook"):
        catalog.labs(course)
