"""The contract of every lab: generated from its solution, and wrong answers are refused by name."""

import contextlib
import importlib
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.labs.cells import run_cell, verdict_of
from utils.course import catalog, labgen, quiz
from utils.course.catalog import ROOT
from utils.labs.check import check
from utils.labs import judge, observer
from utils.labs.grading import shown

LABS = catalog.labs(ROOT)
EXERCISES = [each for lab in LABS for each in lab.exercises]
WRONG = [
    wrong
    for lab in LABS
    for wrong in importlib.import_module(f"tests.labs.wrong_answers.{lab.name}").WRONG
]
LEAST_WRONG_ANSWERS = 7
SEEDS = ["public", "a private one", "another"]

pytestmark = pytest.mark.usefixtures("xla_device")


@cache
def prepared(lab: str) -> dict[str, tuple[dict, str]]:
    """What a notebook holds before each answer cell, and the official answer, by exercise name.

    Runs the code of the solution notebook once, without its checks.
    """
    (path,) = catalog.lab_notebooks(ROOT, lab)
    found: dict[str, tuple[dict, str]] = {}
    names: dict = {"__name__": "notebook"}
    for cell in catalog.read_notebook(path)["cells"]:
        name, _, part = cell["id"].partition("-")
        if cell["cell_type"] != "code" or part == "check" or name == "setup":
            continue
        if part == "code":
            found[name] = dict(names), catalog.text(cell)
        with contextlib.chdir(path.parent):  # as Jupyter does
            run_cell(catalog.text(cell), f"<{cell['id']}>", names)
    return found


def namespace(exercise_id: str, answer: str | None = None) -> dict:
    """What a notebook holds when an exercise is checked, with `answer` or the official one."""
    lab, _, name = exercise_id.partition(".")
    given, official = prepared(lab)[name]
    names = dict(given)
    run_cell(official if answer is None else answer, f"<{name}-code>", names)
    return names


@pytest.fixture(autouse=True)
def _cards_instead_of_errors(relaxed, progress_file: Path) -> None:
    """Refusals are read from the card."""


def test_there_are_labs() -> None:
    assert LABS, "no lab was found: this file would test nothing"


def test_labs_are_what_the_solutions_give() -> None:
    assert labgen.drift(ROOT) == [], "run: python3 course.py labs"


def test_the_verb_agrees_that_labs_are_current() -> None:
    command = "import sys; from utils.cli.commands.labs import main; sys.exit(main(['--check']))"
    done = subprocess.run([sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def answer_to(exercise_id: str, source: str | None = None) -> Callable[..., Any]:
    """The answer that `source` defines, or the official one."""
    return namespace(exercise_id, source)[observer(exercise_id).answer]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda each: each.id)
def test_the_solution_passes_for_any_seed(exercise: catalog.Exercise, seed: str) -> None:
    verdict = verdict_of(exercise.id, answer_to(exercise.id), seed)
    assert verdict.points == 10.0
    assert [each.measured for each in verdict.criteria if not shown.known(each.measured)] == []


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda each: each.id)
def test_the_answer_that_the_wrong_ones_change_is_right(exercise: catalog.Exercise) -> None:
    lab, _, name = exercise.id.partition(".")
    source = importlib.import_module(f"tests.labs.wrong_answers.{lab}").RIGHT[name]
    assert verdict_of(exercise.id, answer_to(exercise.id, source), "public").state == "passed"


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_a_lab_gives_forty_points_and_has_a_quiz(lab: catalog.Lab) -> None:
    assert lab.points == 40
    for name, question in quiz.questions(lab.name).items():
        right = [
            letter
            for letter in question.options
            if quiz.digest(lab.name, name, letter) == question.digest
        ]
        assert len(right) == 1, f"{lab.name}.{name}: {len(right)} options match the digest"


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda each: each.id)
def test_every_exercise_has_observer_judge_and_wrong_answers(exercise: catalog.Exercise) -> None:
    assert callable(observer(exercise.id).observe) and callable(judge(exercise.id).judge)
    count = Counter(wrong[0] for wrong in WRONG)[exercise.id]
    assert count >= LEAST_WRONG_ANSWERS, f"{exercise.id} has {count} wrong answers"


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda each: each.id)
def test_the_solution_passes_its_check(exercise: catalog.Exercise) -> None:
    card = check(exercise.id, namespace(exercise.id))
    assert card.verdict is not None and card.verdict.state == "passed", card.text
    assert card.verdict.points == exercise.points


@pytest.mark.parametrize(
    ("exercise_id", "name", "source", "fragment"),
    WRONG,
    ids=[f"{wrong[0]}-{wrong[1].replace(' ', '-')}" for wrong in WRONG],
)
def test_a_wrong_answer_is_refused_with_its_message(exercise_id, name, source, fragment) -> None:
    card = check(exercise_id, namespace(exercise_id, source))
    assert card.verdict is not None and card.verdict.state in ("tried", "error"), card.text
    assert card.verdict.points < card.verdict.max_points
    assert fragment in card.text, f"{name}: expected {fragment!r} in\n{card.text}"


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda each: each.id)
def test_an_undefined_answer_is_told_to_run_the_cell(exercise: catalog.Exercise) -> None:
    card = check(exercise.id, {})
    assert card.verdict is None
    assert f"`{observer(exercise.id).answer}` is not defined in this notebook" in card.text


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda each: each.id)
def test_an_untouched_answer_is_not_attempted(exercise: catalog.Exercise) -> None:
    stub = next(
        catalog.text(cell)
        for cell in catalog.read_notebook(
            next(lab.path for lab in LABS if exercise in lab.exercises)
        )["cells"]
        if cell["id"] == exercise.id.partition(".")[2] + "-code"
    )
    card = check(exercise.id, namespace(exercise.id, stub))
    assert card.verdict.state == "not attempted" and card.verdict.points == 0, card.text
