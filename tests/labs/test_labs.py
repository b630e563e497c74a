"""The contract of every lab: generated from its solution, and wrong answers are refused by name.

That the solution passes is proven by papermill (tests/notebooks) and in the sandbox
(test_labs_in_the_sandbox.py), on cases of two seeds.
"""

import contextlib
import json
import random
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.labs.cells import SEEDS, Wrong, right_ways, run_cell, verdict_of, wrong_entries
from utils.cli.commands import labs as labs_command
from utils.course import catalog, labgen, quiz
from utils.course.catalog import ROOT
from utils.labs import decide, judge, limit, observe_case, observer, rerun
from utils.labs.check import PUBLIC_SEED, card, check
from utils.labs.grading import display

LABS = catalog.labs(ROOT)
EXERCISES = [exercise for lab in LABS for exercise in lab.exercises]
WRONG = [wrong for lab in LABS for wrong in wrong_entries(lab.name)]
RIGHT_WAYS = [way for lab in LABS for way in right_ways(lab.name)]
LEAST_WRONG_ANSWERS = 7
SLOW, SENTENCES_BY_DAY = ("lab07.ex2", "lab10.ex2", "lab10.ex6"), 4
ENDLESS = ("for ever", "without end", "all combinations")
"""What is wrong with answers that a limit ends: the tests need not wait for all of it."""

pytestmark = pytest.mark.usefixtures("xla_device")


def by_day_and_by_night() -> list[Any]:
    """All wrong answers. An answer that is observed in processes of its own, or is compiled for a
    mesh or simulated, takes a second: of those to one exercise, the first with each of four
    sentences are tried by day.
    """
    known: dict[str, set[str]] = defaultdict(set)
    result = []
    for wrong in WRONG:
        sentences = known[wrong.exercise]
        late = wrong.record.says in sentences or len(sentences) >= SENTENCES_BY_DAY
        slow = wrong.exercise in SLOW or observer(wrong.exercise).apart
        marks = [pytest.mark.exhaustive] if late and slow else []
        result.append(pytest.param(wrong, marks=marks, id=wrong.id))
        sentences.add(wrong.record.says)
    return result


@cache
def prepared(lab: str) -> dict[str, tuple[dict, str]]:
    """What a notebook holds before each answer cell, and the official answer, by exercise name.

    Runs the code of the solution notebook once, without its checks.
    """
    (path,) = catalog.lab_notebooks(ROOT, lab)
    answers: dict[str, tuple[dict, str]] = {}
    names: dict = {"__name__": "notebook"}
    for cell in catalog.read_notebook(path)["cells"]:
        name, _, part = cell["id"].partition("-")
        if cell["cell_type"] != "code" or part == "check" or name == "setup":
            continue
        if part == "code":
            answers[name] = dict(names), catalog.text(cell)
        with contextlib.chdir(path.parent):  # as Jupyter does
            run_cell(catalog.text(cell), f"<{cell['id']}>", names)
    return answers


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


def test_there_are_labs_and_wrong_answers() -> None:
    assert LABS and WRONG, "no lab was found: this file would test nothing"


def test_labs_are_what_the_solutions_give() -> None:
    assert labgen.drift(ROOT) == [], "run: python3 course.py labs"


def test_the_verb_agrees_that_labs_are_current() -> None:
    assert labs_command.main(["--check"]) == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", ["a private one", "another"])
@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_the_solution_passes_for_any_seed(exercise: catalog.Exercise, seed: str) -> None:
    answer = namespace(exercise.id)[observer(exercise.id).answer]
    verdict = verdict_of(exercise.id, answer, seed)
    assert verdict.points == 10.0
    assert [c.measured for c in verdict.criteria if not display.is_plain(c.measured)] == []


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_a_lab_gives_forty_points_and_has_a_quiz(lab: catalog.Lab) -> None:
    assert lab.points == 40 and quiz.questions(lab.name)


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_every_exercise_has_observer_judge_and_wrong_answers(exercise: catalog.Exercise) -> None:
    assert callable(observer(exercise.id).observe) and callable(judge(exercise.id).judge)
    count = Counter(wrong.exercise for wrong in WRONG)[exercise.id]
    assert count >= LEAST_WRONG_ANSWERS, f"{exercise.id} has {count} wrong answers"


@cache
def public_cases(exercise_id: str) -> str:
    """The cases of a notebook as JSON: some take half a second to draw."""
    return json.dumps(judge(exercise_id).cases(random.Random(PUBLIC_SEED)))


def refusal(wrong: Wrong) -> str:
    """The card of a wrong answer: after the first case that is refused as its record says, because
    a card keeps what the smallest failing case shows; after all cases where none is.
    """
    names = namespace(wrong.exercise, wrong.source)
    answer = names.get(observer(wrong.exercise).answer)
    if not callable(answer):
        return check(wrong.exercise, names).text
    exercise = catalog.exercise(wrong.exercise)
    cases = json.loads(public_cases(wrong.exercise))
    observations = []
    text = ""
    for count, case in enumerate(cases, 1):
        # As JSON, because at grading an observation crosses a process border.
        observations.append(json.loads(json.dumps(observe_case(wrong.exercise, answer, case))))
        verdict = decide(wrong.exercise, cases[:count], observations, exercise.points)
        text = card(exercise, verdict, 1, "", ROOT).text
        unknown = [c.measured for c in verdict.criteria if not display.is_plain(c.measured)]
        assert unknown == [], "a report cannot show what this answer measures"
        if verdict.state in ("tried", "error") and verdict.points < verdict.max_points:
            if wrong.record.is_refused_by(text) or verdict.state == "error":
                return text
    return text if verdict.points < verdict.max_points else f"not refused:\n{text}"


@pytest.mark.parametrize("wrong", by_day_and_by_night())
def test_a_wrong_answer_is_refused_with_its_message(
    wrong: Wrong, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A disk that is busy is no fault of an answer that writes hundreds of files.
    monkeypatch.setattr(limit, "SHARE", 0.2 if wrong.name in ENDLESS else 2)
    text = refusal(wrong)
    expected = f"{wrong.record.says!r} {wrong.record.shows!r}"
    assert wrong.record.is_refused_by(text), f"{wrong.name}: expected {expected} in\n{text}"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("exercise_id", "source"),
    [pytest.param(*way[::2], id=f"{way[0]}-{way[1].replace(' ', '-')}") for way in RIGHT_WAYS],
)
def test_other_right_ways_pass(
    exercise_id: str, source: str, seed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limit, "SHARE", 2)  # a busy disk is no fault of a right answer
    answer = namespace(exercise_id, source)[observer(exercise_id).answer]
    verdict = verdict_of(exercise_id, answer, seed)
    assert verdict.state == "passed", (verdict.error, [c for c in verdict.criteria if not c.passed])


HERE = [exercise for exercise in EXERCISES if not observer(exercise.id).apart]
"""Exercises whose answers run in this process."""


@pytest.mark.parametrize("exercise", HERE, ids=lambda exercise: exercise.id)
def test_the_arguments_of_a_call_can_be_had(exercise: catalog.Exercise) -> None:
    answer = namespace(exercise.id)[observer(exercise.id).answer]
    case = judge(exercise.id).cases(random.Random(PUBLIC_SEED))[0]
    assert isinstance(rerun.arguments(exercise.id, answer, case), tuple)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("exercise", HERE, ids=lambda exercise: exercise.id)
def test_its_own_input_given_back_earns_nothing(exercise: catalog.Exercise) -> None:
    def given_back(*inputs: object) -> object:
        return inputs[0] if inputs else None

    verdict = verdict_of(exercise.id, given_back, PUBLIC_SEED)
    assert verdict.points == 0, verdict


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.id)
def test_an_undefined_answer_is_told_to_run_the_cell(exercise: catalog.Exercise) -> None:
    result = check(exercise.id, {})
    assert result.verdict is None
    assert f"`{observer(exercise.id).answer}` is not defined in this notebook" in result.text
