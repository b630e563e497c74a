"""Submissions to lab 99 that a grader must survive, and a course to grade them in.

Each maker takes the folder of a student and writes what that student hands in. All of them but the
unreadable ones answer exercise 2 rightly: its 8 points show whether trouble in exercise 1 spreads.
"""

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.labs.cells import run_cell
from tests.labs.lab99 import course as lab99
from utils.facts.records import read_yaml
from utils.labs import observe_case
from utils.labs.grading.answers import Notebook as FilledNotebook
from utils.labs.grading.attempts import Attempt, Attempts, Setting
from utils.labs.grading.confine import Limits
from utils.labs.grading.marking import Mark
from utils.labs.grading.records import Record

REPOSITORY = Path(__file__).resolve().parents[3]
PATIENT = Limits(seconds=180)
"""For tests of what real labs are given, which are no tests of how fast a busy machine is."""

Notebook = dict[str, Any]

MEAN = """
def mean(read, count):
    return sum(map(read, range(count))) / count"""
RIGHT = {"ex1": "def double(number):\n    return 2 * number", "ex2": MEAN}
WRONG = "def double(number):\n    return number"


def build_course(root: Path) -> Path:
    """A whole course with lab 99 only, `utils` included; returns `root`."""
    lab99.build(root)
    ignore = shutil.ignore_patterns("__pycache__", "lab[0-9]*")
    shutil.copytree(REPOSITORY / "utils", root / "utils", ignore=ignore, dirs_exist_ok=True)
    shutil.copytree(
        REPOSITORY / "tests" / "labs" / "lab99",
        root / "utils" / "labs" / "lab99",
        ignore=shutil.ignore_patterns("__pycache__", "course.py"),
    )
    return root


def notebook(**answers: str) -> Notebook:
    """Lab 99 with the given answers, otherwise right ones: `notebook(ex1="def double(number):
    ...")`.
    """
    made = copy.deepcopy(lab99.solution())
    for name, source in (RIGHT | answers).items():
        cell(made, f"{name}-code")["source"] = source
    return made


def cell(made: Notebook, name: str) -> dict[str, Any]:
    return next(item for item in made["cells"] if item["id"] == name)


def hand_in(folder: Path, made: Notebook, name: str = "lab99_sums.ipynb") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(made))


def run_here(notebook: FilledNotebook, setting: Setting, slot: int) -> tuple[Attempts, str]:
    """In place of `attempts.run_all`: each answer runs in this process, without a sandbox."""
    made: Attempts = {}
    for exercise in setting.exercises:
        names: dict[str, Any] = {}
        run_cell(notebook.answer(exercise.name).source, "<answer>", names)
        cases = enumerate(setting.cases[exercise.id])
        seen = {k: observe_case(exercise.id, names[exercise.function], c) for k, c in cases}
        made[exercise.id, "full"] = Attempt("full", "finished", finished=True, seen=seen)
    return made, ""


def record_of(student: str, marks: tuple[Mark, ...], **about: Any) -> Record:
    """A record of somebody with these marks."""
    slug = about.pop("slug", student)
    return Record(student, student, slug, "key", "seed", "graded", marks, **about)


Maker = Callable[[Path], None]
MAKERS: dict[str, Maker] = {}


def maker(function: Maker) -> Maker:
    MAKERS[function.__name__.replace("_", "-")] = function
    return function


def answering(**answers: str) -> Maker:
    """A maker of lab 99 with these answers."""
    stripped = {name: source.strip("\n") for name, source in answers.items()}
    return lambda folder: hand_in(folder, notebook(**stripped))


Expected = tuple[float, float, str | None, str]
"""Points of ex1 and ex2, status (None: either), and a pattern of what the notes must say."""


def answers_of(file: str) -> dict[str, tuple[Maker, Expected, bool]]:
    """The hostile answers in a file beside this module, by student: who makes the submission, what
    it is to get, and whether it is tried by day too.
    """
    return {
        student: (
            answering(**{name: known[name] for name in ("ex1", "ex2") if name in known}),
            (*known["points"], known.get("status"), known.get("notes", "")),
            known.get("by_day", False),
        )
        for student, known in read_yaml(Path(__file__).with_name(file)).items()
    }


ANSWERS = answers_of("answers.yaml")
MAKERS |= {student: make for student, (make, _, _) in ANSWERS.items()}


@maker
def deleted_answer(folder: Path) -> None:
    made = notebook()
    made["cells"] = [item for item in made["cells"] if item["id"] != "ex1-code"]
    hand_in(folder, made)


@maker
def deleted_check(folder: Path) -> None:
    made = notebook()
    made["cells"] = [item for item in made["cells"] if "check" not in item["id"]]
    hand_in(folder, made)


@maker
def duplicated_answer(folder: Path) -> None:
    made = notebook(ex1="def double(number):\n    return -1")
    again = copy.deepcopy(cell(made, "ex1-code")) | {"id": "a1b2", "source": RIGHT["ex1"]}
    made["cells"].insert(made["cells"].index(cell(made, "ex1-code")) + 1, again)
    hand_in(folder, made)


@maker
def edited_check(folder: Path) -> None:
    made = notebook(ex1="def double(number):\n    return -1")
    check = cell(made, "ex1-check")
    check["source"] = "4.0"
    check["metadata"]["nbgrader"] |= {"points": 10**400, "grade_id": "ex1-check"}
    check["outputs"] = [
        {
            "output_type": "execute_result",
            "data": {"text/plain": "99"},
            "metadata": {},
            "execution_count": 1,
        }
    ]
    hand_in(folder, made)


@maker
def no_metadata(folder: Path) -> None:
    made = notebook()
    for item in made["cells"]:
        item.pop("id")
        item["metadata"] = {}
    made["nbformat_minor"] = 4
    hand_in(folder, made, "Untitled (1).ipynb")


@maker
def not_a_notebook(folder: Path) -> None:
    folder.mkdir()
    (folder / "lab99_sums.ipynb").write_bytes(b"%PDF-1.7\n\xff\xfe")


@maker
def nothing(folder: Path) -> None:
    folder.mkdir()


@maker
def too_deep(folder: Path) -> None:
    folder.mkdir()
    (folder / "lab.ipynb").write_text('{"cells": ' + "[" * 100_000 + "]" * 100_000 + "}")


@maker
def too_many_cells(folder: Path) -> None:
    made = notebook()
    made["cells"] += [lab99.code(f"c{k}", "1") for k in range(100_000)]
    hand_in(folder, made)


@maker
def odd_types(folder: Path) -> None:
    made = notebook()
    made["metadata"] = 7
    made["cells"] += [3, None, {"cell_type": ["code"], "source": {"a": 1}, "metadata": []}, {}]
    cell_with_list = {"cell_type": "code", "source": ["x = 1\n", 5], "metadata": {"nbgrader": [1]}}
    made["cells"].append({**cell_with_list, "id": {"a": 1}, "outputs": 3})
    hand_in(folder, made)


@maker
def link(folder: Path) -> None:
    folder.mkdir()
    (folder / "lab99_sums.ipynb").symlink_to(folder.parent / "fair" / "lab99_sums.ipynb")
    (folder / "all").symlink_to("/")
    (folder / "<b>bold.ipynb").symlink_to("/etc/passwd")


@maker
def pipe(folder: Path) -> None:
    import os

    folder.mkdir()
    os.mkfifo(folder / "lab99_sums.ipynb")
