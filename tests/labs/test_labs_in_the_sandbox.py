"""Every lab, graded in the sandbox that submissions run in: the published solution has all points,
the untouched lab has none and is called what it is.

Both are graded in one sandbox, because most of the time goes into its start: an import of
torch_xla. Each exercise of each still runs in a process of its own. XLA compiles fast here, which
changes neither counts nor verdicts; no limit is near on a busy machine.
"""

import json
from pathlib import Path

import pytest

from tests.labs.hostile import PATIENT
from utils.course import catalog, labgen
from utils.course.catalog import ROOT
from utils.labs.grading import beside, marking, pour, sandbox, shown
from utils.labs.grading import lab as released
from utils.labs.grading.attempts import attempts_of
from utils.labs.grading.inbox import Found
from utils.labs.grading.marking import Mark
from utils.labs.grading.notebook import parse
from utils.xla import fresh

LABS = [lab.name for lab in catalog.labs(ROOT)]


def solution(lab: str) -> Path:
    """The notebook of a lab with its solutions."""
    (path,) = catalog.lab_notebooks(ROOT, lab)
    return path


def grade(name: str) -> dict[str, list[Mark]]:
    """The marks of a lab's "solution" and of the "untouched" lab, by exercise in order."""
    lab = released.load(ROOT, name)
    content = solution(name).read_bytes()
    untouched = labgen.learner_version(json.loads(content), name).encode()
    poured = {
        "solution": pour.pour(parse(content), lab),
        "untouched": pour.pour(parse(untouched), lab),
    }
    assert [notebook.notes for notebook in poured.values()] == [(), ()]
    used = beside.used_by(lab, ROOT)
    earlier = [Found(path.name, path.read_bytes()) for path in {solution(o.name) for _, o in used}]
    hidden = {e.id: marking.cases(e.id, "seed") for e in lab.exercises}
    jobs = [
        {
            "id": exercise.id,
            "cases": hidden[exercise.id],
            "attempts": {which: [{"source": c.source} for c in notebook.above(exercise.name)]},
        }
        for which, notebook in poured.items()
        for exercise in lab.exercises
    ]
    outcome = sandbox.run(
        sandbox.prepare(),
        lab,
        ROOT,
        {
            "lab": lab.name,
            "modules": lab.modules,
            "environment": fresh.FAST,
            "exercises": jobs,
        },
        PATIENT,
        slot=0,
        beside=beside.find(earlier, used),
    )
    assert (outcome.ended, outcome.noise) == ("complete", "")
    attempts = attempts_of(outcome.messages)
    return {
        which: [
            marking.mark(
                *(exercise, notebook, hidden[exercise.id], attempts[exercise.id, which]),
                *(None, None, PATIENT),
            )
            for exercise in lab.exercises
        ]
        for which, notebook in poured.items()
    }


@pytest.mark.parametrize("lab", LABS)
def test_the_solution_has_forty_points_and_the_untouched_lab_none(lab: str) -> None:
    marks = grade(lab)
    problems = [(m.exercise.id, m.state, m.cause, m.private) for m in marks["solution"]
                if m.state != "passed"]  # fmt: skip
    assert problems == []
    assert sum(mark.points for mark in marks["solution"]) == 40
    states = {m.exercise.id: (m.state, m.points, m.cause) for m in marks["untouched"]}
    assert states == dict.fromkeys(states, ("not attempted", 0.0, ""))
    for mark in [*marks["solution"], *marks["untouched"]]:
        assert mark.notes == (), mark.exercise.id
        hidden = [c.name for c in mark.criteria if c.measured == shown.HIDDEN]
        assert hidden == [], f"{mark.exercise.id}: a report hides what {hidden} measured"
