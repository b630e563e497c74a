"""What holds for every lab whose answers are formulas: labs 01, 13 and 14. What is particular to
one of them is in its own test module.
"""

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import test_lab01, test_lab13, test_lab14
from tests.cells import answer_from, cases_of, names_of, verdict_of
from tests.wrong_answers import lab01, lab13, lab14
from utils.catalog import ROOT
from utils.exercises import judge
from utils.grading import confine, shown
from utils.grading import lab as grading_lab

OWN = {"lab01": test_lab01, "lab13": test_lab13, "lab14": test_lab14}
EXERCISES = [each for module in OWN.values() for each in module.EXERCISES]
SEEDS = ["public", "a private one", *map(str, range(4))]
WRONG = [*lab01.WRONG, *lab13.WRONG, *lab14.WRONG]
ENDING = [wrong for wrong in WRONG if wrong[1] != "for ever"]
"""That one takes the whole of the limit, and the public seed in test_labs.py is enough."""
IN_THE_SANDBOX = {
    "lab01": {"sheets"},
    "lab13": {"models"},
    "lab14": set(),
}
"""Modules of a lab that its cells need, beside the observer and the worked examples."""

every_exercise = pytest.mark.parametrize("exercise_id", EXERCISES)
every_lab = pytest.mark.parametrize("lab", OWN)


@pytest.fixture(scope="module")
def names() -> dict:
    """What the notebook of each lab defines."""
    return {lab: names_of(lab) for lab in OWN}


def verdict_on(source: str, exercise_id: str, seed: str, names: dict):
    answer = answer_from(source, exercise_id, names[exercise_id.partition(".")[0]])
    return verdict_of(exercise_id, answer, seed)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("exercise_id", "source"),
    [
        pytest.param(*answer, id=f"{answer[0]}-{way.replace(' ', '-')}")
        for module in OWN.values()
        for way, answer in module.OTHER_WAYS.items()
    ],
)
def test_other_right_ways_pass(exercise_id: str, source: str, seed: str, names: dict) -> None:
    verdict = verdict_on(source, exercise_id, seed, names)
    assert verdict.state == "passed", verdict


@pytest.mark.parametrize("seed", ["a private one", "another"])
@pytest.mark.parametrize(
    ("exercise_id", "source"),
    [pytest.param(w[0], w[2], id=f"{w[0]}-{w[1].replace(' ', '-')}") for w in ENDING],
)
def test_a_wrong_answer_loses_points_with_any_seed(exercise_id, source, seed, names) -> None:
    verdict = verdict_on(source, exercise_id, seed, names)
    assert verdict.state in ("tried", "error") and verdict.points < 10.0, verdict


@every_exercise
def test_what_does_nothing_wins_nothing(exercise_id: str) -> None:
    for value in (None, 0, [], {}, "", set()):
        verdict = verdict_of(exercise_id, lambda *_, value=value: value, "public")
        assert verdict.points == 0 and any(c.message for c in verdict.criteria), verdict


@every_exercise
def test_ten_wrong_answers_are_known(exercise_id: str) -> None:
    assert sum(wrong[0] == exercise_id for wrong in WRONG) >= 10


@every_lab
def test_what_a_lab_measures_is_shown_by_a_report(lab: str, names: dict) -> None:
    for exercise_id, _, source, _ in ENDING:
        if exercise_id.startswith(lab):
            verdict = verdict_on(source, exercise_id, "public", names)
            unknown = [c.measured for c in verdict.criteria if not shown.known(c.measured)]
            assert unknown == [], (exercise_id, unknown)


@given(st.integers(0, 10**9))
@settings(max_examples=10, deadline=None)
def test_cases_are_plain_the_same_for_a_seed_and_fit_on_a_card(seed: int) -> None:
    for exercise_id in EXERCISES:
        cases = cases_of(exercise_id, str(seed))
        assert json.loads(json.dumps(cases)) == cases == cases_of(exercise_id, str(seed))
        assert len(json.dumps(cases)) < 2**16
        for case in cases:
            assert len(judge(exercise_id).words(case)) <= 160


def test_judging_and_observing_need_no_torch() -> None:
    command = (
        "import random, sys\n"
        "from utils.exercises import judge, observe_case\n"
        f"for name in {EXERCISES}:\n"
        "    for case in judge(name).cases(random.Random(1)):\n"
        "        seen = observe_case(name, lambda *_: None, case)\n"
        "        judge(name).judge(case, seen['facts'])\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", command], cwd=ROOT, check=True)


@every_lab
def test_a_sandbox_sees_no_judgement(lab: str) -> None:
    seen = confine.exercise_modules(grading_lab.load(ROOT, lab), ROOT / "utils")
    own = {path.stem for path in seen if path.parent.name == lab}
    assert own == {"__init__", "observe", "examples"} | IN_THE_SANDBOX[lab]
