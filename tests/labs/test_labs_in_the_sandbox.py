"""Every lab, graded in the sandbox that submissions run in: the published solution has all points,
the untouched lab has none and is called what it is, and what the course already has for an exercise
is refused there as it is in a notebook.

All are graded in one sandbox, because most of the time goes into its start: an import of torch_xla.
Each attempt still runs in a process of its own. XLA compiles fast here, which changes neither
counts nor verdicts; no limit is near on a busy machine.
"""

import json
from dataclasses import replace
from typing import NamedTuple

import pytest

from tests.labs.cells import wrong_entries
from tests.labs.hostile import PATIENT
from utils.course import catalog, labgen
from utils.course.catalog import ROOT
from utils.labs.grading import answers, display, marking, sandbox
from utils.labs.grading import lab as released
from utils.labs.grading.answers import Notebook
from utils.labs.grading.attempts import Setting, attempts_of, job, run_jobs
from utils.labs.grading.lab import Cell, Exercise, Lab
from utils.labs.grading.marking import Mark
from utils.labs.grading.submissions import File
from utils.xla import fresh

LABS = [lab.name for lab in catalog.labs(ROOT)]
COPIED = "belongs to the course"
"""What an answer is told that calls the course's own function for its exercise."""


class Attempted(NamedTuple):
    """One attempt at an exercise: what it is called, the notebook it is from, the cells to run."""

    name: str
    exercise: Exercise
    notebook: Notebook
    cells: list[Cell]


def notebook_file(lab: str) -> File:
    """The notebook of a lab with its solutions, as a learner may hand it in."""
    (path,) = catalog.lab_notebooks(ROOT, lab)
    return File(path.name, path.read_bytes())


def attempts_at(lab: Lab, nightly: bool) -> list[Attempted]:
    """Each exercise of the published "solution"; of the "untouched" lab the last one by day, below
    all of its cells, and at night each; and a "copied" answer that calls the course's own function,
    if one is known.

    That each is called not attempted shows by day where the untouched lab runs as a notebook, and
    that each can be observed in the sandbox with its solution.
    """
    earlier = [notebook_file(other.name) for _, other in lab.earlier]
    solution = notebook_file(lab.name)
    stub = labgen.learner_version(json.loads(solution.content), lab.name).encode()
    untouched = File(solution.name, stub)
    notebooks = {
        "solution": answers.read([solution, *earlier], lab),
        "untouched": answers.read([untouched, *earlier], lab),
    }
    attempts = [
        Attempted(name, exercise, notebook, notebook.above(exercise.name))
        for name, notebook in notebooks.items()
        for exercise in (lab.exercises if nightly or name == "solution" else lab.exercises[-1:])
    ]
    exercises = {exercise.id: exercise for exercise in lab.exercises}
    # One shows that it is closed there as well; that all are is shown in test_labs.py.
    copied = [wrong for wrong in wrong_entries(lab.name) if COPIED in wrong.record.says][:1]
    for number, wrong in enumerate(copied):
        exercise, notebook = exercises[wrong.exercise], notebooks["solution"]
        *above, answer = notebook.above(exercise.name)
        cells = [*above, replace(answer, source=wrong.source)]
        attempts.append(Attempted(f"copied {number}", exercise, notebook, cells))
    return attempts


def marks_of(lab: Lab, attempts: list[Attempted]) -> list[Mark]:
    """The mark of each attempt, all run in one sandbox."""
    cases = {exercise.id: marking.cases(exercise.id, "seed") for exercise in lab.exercises}
    setting = Setting(lab, lab.exercises, cases, ROOT, sandbox.prepare(), PATIENT, fresh.FAST)
    jobs = [job(made.exercise, setting, {made.name: made.cells}) for made in attempts]
    outcome = run_jobs(jobs, attempts[0].notebook, setting, slot=0)
    assert (outcome.ended, outcome.noise) == ("complete", "")
    results = attempts_of(outcome.messages)
    return [
        marking.mark(
            made.exercise,
            made.notebook,
            cases[made.exercise.id],
            results[made.exercise.id, made.name],
            own=None,
            published=None,
            limits=PATIENT,
        )
        for made in attempts
    ]


@pytest.mark.parametrize("name", LABS)
def test_a_lab_is_graded_as_it_deserves(name: str, request: pytest.FixtureRequest) -> None:
    lab = released.load(ROOT, name)
    attempts = attempts_at(lab, request.config.getoption("exhaustive"))
    assert [made.notebook.notes for made in attempts] == [()] * len(attempts)
    total = 0.0
    for attempt, mark in zip(attempts, marks_of(lab, attempts), strict=True):
        where = f"{attempt.exercise.id}, {attempt.name}: {mark.state}, {mark.cause} {mark.private}"
        if attempt.name == "solution":
            total += mark.points
            assert mark.state == "passed", where
        elif attempt.name == "untouched":
            assert (mark.state, mark.points, mark.cause) == ("not attempted", 0.0, ""), where
        else:
            # A module that judges is not there to be imported.
            absent = [
                note for note in mark.notes if note.endswith("-code raised ImportError in line 1")
            ]
            assert COPIED in mark.private or absent, where
            assert mark.points < attempt.exercise.points, where
            continue
        assert mark.notes == (), where
        unseen = [c.name for c in mark.criteria if c.measured == display.HIDDEN]
        assert unseen == [], f"{where}: a report does not show what {unseen} measured"
    assert total == 40
