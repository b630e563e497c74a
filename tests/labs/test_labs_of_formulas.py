"""What holds for every lab whose answers are formulas: labs 01, 13 and 14. What is particular to
one of them is in its own test module.
"""

import pytest

from tests.labs import test_lab01, test_lab13, test_lab14
from tests.labs.cells import answer_from, names_of, verdict_of, wrong_entries
from utils.labs.grading import shown

OWN = {"lab01": test_lab01, "lab13": test_lab13, "lab14": test_lab14}
EXERCISES = [exercise for module in OWN.values() for exercise in module.EXERCISES]
ENDING = [w for lab in OWN for w in wrong_entries(lab) if w.name != "for ever"]
"""That one takes the whole of the limit, and the public seed in test_labs.py is enough."""

every_exercise = pytest.mark.parametrize("exercise_id", EXERCISES)


@pytest.fixture(scope="module")
def names() -> dict:
    """What the notebook of each lab defines."""
    return {lab: names_of(lab) for lab in OWN}


def verdict_on(source: str, exercise_id: str, seed: str, names: dict):
    answer = answer_from(source, exercise_id, names[exercise_id.partition(".")[0]])
    return verdict_of(exercise_id, answer, seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", ["a private one", "another"])
@pytest.mark.parametrize(
    ("exercise_id", "source"),
    [pytest.param(w[0], w[2], id=f"{w[0]}-{w[1].replace(' ', '-')}") for w in ENDING],
)
def test_a_wrong_answer_loses_points_with_any_seed(exercise_id, source, seed, names) -> None:
    verdict = verdict_on(source, exercise_id, seed, names)
    assert verdict.state in ("tried", "error") and verdict.points < 10.0, verdict
    unknown = [c.measured for c in verdict.criteria if not shown.known(c.measured)]
    assert unknown == [], "a report cannot show it"


@every_exercise
def test_what_does_nothing_wins_nothing(exercise_id: str) -> None:
    for value in (None, 0, [], {}, "", set()):
        verdict = verdict_of(exercise_id, lambda *_, value=value: value, "public")
        assert verdict.points == 0 and any(c.message for c in verdict.criteria), verdict
