"""What holds for every lab whose answers are formulas: labs 01, 13 and 14, some of it for 12, 15
and 16 too. What is particular to one of them is in its own test module.
"""

import itertools
import json
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.labs.cells import answer_from, cases_of, names_of, run_cell, verdict_of, wrong_entries
from utils.course import catalog
from utils.labs import decide, observe_case
from utils.labs.grading import display
from utils.labs.grading.child import FACTS_CHARS
from utils.labs.lab13 import comparisons, ranking
from utils.labs.lab14 import examples, plans

OWN = ("lab01", "lab13", "lab14")
EXERCISES = [exercise.id for lab in OWN for exercise in catalog.exercises(lab)]
SEVERAL_SEEDS = (*OWN, "lab12")
ENDING = [
    w
    for lab in SEVERAL_SEEDS
    for w in wrong_entries(lab)
    if w.name not in ("for ever", "without end")
]
"""Those two take the whole of the limit, and the public seed in test_labs.py is enough."""

every_exercise = pytest.mark.parametrize("exercise_id", EXERCISES)


@pytest.fixture(scope="module")
def names(xla_device) -> dict:
    """What the notebook of each lab defines."""
    return {lab: names_of(lab) for lab in SEVERAL_SEEDS}


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
    unknown = [c.measured for c in verdict.criteria if not display.is_plain(c.measured)]
    assert unknown == [], "a report cannot show it"


@every_exercise
def test_what_does_nothing_wins_nothing(exercise_id: str) -> None:
    for value in (None, 0, [], {}, "", set()):
        verdict = verdict_of(exercise_id, lambda *_, value=value: value, "public")
        assert verdict.points == 0 and any(c.message for c in verdict.criteria), verdict


# What an answer may return


class Odd(dict):
    """Not to be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("not to be shown")


class Endless(dict):
    """Iterates without end."""

    def __iter__(self) -> Any:
        return itertools.repeat("ferry")

    items = keys = __iter__


class EndlessList(list):
    """Iterates without end."""

    def __iter__(self) -> Any:
        return itertools.repeat("ferry")


class Always:
    """A pool or a cache of which every method returns the same."""

    def __init__(self, value: object) -> None:
        self.append = self.fork = self.free = self.start = self.finish = lambda *_: value
        self.table = lambda *_: value


STRANGE: list[Any] = [
    *(None, True, 0, -1, 1j, 5e-324, 1e308, 10**400, float("nan"), float("inf"), Fraction(1, 3)),
    *("", "text", "x" * 9999, b"bytes", range(6), {}, Odd(), {1, 2}, {"x" * 999}, np.zeros((3, 3))),
    *([], [[]], [[]] * 6, [[None, None]] * 6, [None] * 9, [1.0] * 100_000, [1.0] * 3, [0] * 3),
    *(("a", "b"), (1.0, "gpu"), ([0, 0], 8), ([0], None), [("hours", 1.0)] * 6, [("drop",)] * 8),
    *([(1.0, "hours")] * 6, [("x" * 10_000, 10**400)] * 6, ["x" * 10_000] * 1000, {0: 1.5}),
]
STEP = {"step": "port", "weeks": "two", "engineers": None, "exit": [[]], "stop": [(1, 2, 3)]}
BAD = {"step": "audit", "weeks": True, "exit": [("votes", "==", [])] * 99, "stop": "never"}
FORM = {"answers": {"framework": [], "shapes": {}, "gate": 10**400}, "verdict": [], "because": 3}
FLIP = {"field": "gate", "to": [], "verdict": {}, "saving": float("nan")}
SIDE = dict.fromkeys((*plans.TERMS, "from", "runs", "cold_apart"), True)
LIKE_ANSWERS: list[Any] = [
    # lab 13
    {"compute": 1, "engineering": 1, "total": 2},
    {"compute": 5e-324, "engineering": 1e308, "total": 1e308},
    *({"at": at, "below": a, "above": b} for at in (None, -0.0, 0.5, 2.0, 1e308)
      for a in ("first", "second") for b in ("first", "second", Odd())),
    *(set(comparisons.NAMES), {"old price"}, ["unknown"]),
    *({"costs": [a] * 3, "best": b} for a in (0, 1.0, 1e308) for b in (0, 1.0, -1e308)),
    [(name, 1.0) for name in ranking.BASES["job"]],
    *({"servers": a, "cost_per_million": b} for a in (None, 3, -1, 10**400) for b in (None, 3)),
    # lab 14
    *({"ferry": FORM}, {"ferry": FLIP, 3: 4}, {"ferry": []}, {"quarry": Odd()}),
    {"x" * 10_000 + str(k): "y" * 10_000 for k in range(99)},
    {"used": {"kernels": [], "shapes": 3}, "overruled": [[]], "doubted": 10**400},
    {"used": [], "overruled": {"kernels": 1}, "doubted": ["x" * 10_000] * 1000},
    {"now": [], "after": {"slow": {}, 3: 4}, "value": "0", "pilot": 1},
    {"now": "gpu", "after": [], "value": float("inf"), "pilot": None},
    {"steps": [STEP, BAD, 3, None], "benchmark": {"gpu": {"runs": "x", "items": []}}},
    {"steps": [{**BAD, "step": name} for name in examples.STEPS], "benchmark": []},
    {"steps": [{**STEP, "step": name} for name in examples.STEPS],
     "benchmark": {"trainium": SIDE, "gpu": SIDE}},
    {"kernels": [], "parity": "x" * 10_000, "cost": None},
    # labs 15 and 16
    *({"cost"}, [None] * 8, {"cause": 3, "since": "now"}, {"cause": "load", "since": 20}),
    {"replicas": -1, "goodput_per_s": [1], "usd_per_million": float("inf")},
]  # fmt: skip
KEYS = (
    "p50_s first_s p99_s value low high open_ms open_p99_ms closed_p99_ms servers p99_ms"
    " servers_after_loss compute engineering total at below above costs best cost_per_million ferry"
    " answers verdict because field to saving used overruled doubted kernels shapes now after pilot"
    " steps benchmark step exit stop weeks gpu trainium parity cause since replicas goodput_per_s"
).split()
WITHOUT_END = Endless(
    ferry=Endless(a=1), steps=EndlessList([1]), overruled=EndlessList([1]), used=Endless()
)
"""Only the observers of lab 14 take what iterates for ever; elsewhere a limit ends it."""
SAME_FOR_ALL = [dict.fromkeys(KEYS, value) for value in (*STRANGE[:14], {}, [], [[]], [1.0] * 3)]

MOST_OF_TEN = {"lab14": 2, "lab15": 1}
"""By lab, the points that such an answer may happen to win: a part of it can be right."""
EVERYWHERE = [
    *(f"lab12.ex{n}" for n in range(1, 5)),
    *(exercise for exercise in EXERCISES if not exercise.startswith("lab01")),
    *("lab15.ex2", "lab15.ex3"),
    *(f"lab16.ex{n}" for n in range(1, 7)),
]


@cache
def ends_of(exercise_id: str) -> list[Any]:
    """The smallest case and the largest: in the smallest alone, None may be right throughout."""
    cases = cases_of(exercise_id, "first")
    return [cases[0], cases[-1]]


def judged(exercise_id: str, value: object, cases: list[Any]) -> Any:
    """The verdict on an answer that always returns this."""
    names = {"value": value}
    source = "def answer(*_):\n    return value\n\n\nmerged = traps = answer"
    run_cell(source, "<always>", names)
    seen = [observe_case(exercise_id, names["answer"], case) for case in cases]
    texts = [json.dumps(item, allow_nan=False) for item in seen]
    assert exercise_id in OF_CLASSES or max(map(len, texts)) < FACTS_CHARS
    assert exercise_id in OF_CLASSES or all("facts" in item for item in seen), seen
    return decide(exercise_id, cases, list(map(json.loads, texts)), 10.0)


OF_CLASSES = ("lab16.ex2", "lab16.ex3", "lab16.ex1")
"""Here an answer may raise where it is used."""


@pytest.mark.parametrize("exercise_id", EVERYWHERE)
def test_no_returned_value_breaks_the_check_or_wins(
    exercise_id: str, request: pytest.FixtureRequest
) -> None:
    values = [*STRANGE, *(SAME_FOR_ALL if exercise_id.startswith("lab12") else LIKE_ANSWERS)]
    values += [WITHOUT_END] * exercise_id.startswith("lab14")
    if exercise_id in OF_CLASSES:
        values += map(Always, STRANGE)
    # By day each value is tried with some exercises, at night with all.
    step = 1 if request.config.getoption("exhaustive") else 4
    for value in values[EVERYWHERE.index(exercise_id) % step :: step]:
        verdict = judged(exercise_id, value, ends_of(exercise_id))
        assert verdict.state in ("tried", "error"), value
        assert verdict.points <= MOST_OF_TEN.get(exercise_id[:5], 0), (value, verdict)
        assert verdict.error or any(criterion.message for criterion in verdict.criteria)


PLAIN = st.recursive(
    st.none() | st.integers() | st.floats() | st.sampled_from(KEYS) | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=6)
        | st.tuples(inner, inner)
        | st.dictionaries(st.sampled_from(KEYS), inner)
    ),
    max_leaves=12,
)


@given(PLAIN)
@settings(max_examples=60, deadline=None)
def test_no_plain_value_breaks_a_judgement(value: object) -> None:
    for exercise_id in EXERCISES:
        if not exercise_id.startswith("lab01"):
            assert judged(exercise_id, value, ends_of(exercise_id)[:1]).state == "tried"
