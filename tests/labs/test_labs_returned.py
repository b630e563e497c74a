"""What answers to labs 01 to 08 may return, raise or do: nothing of it breaks a check, nothing that
is not asked for wins a point, and wrong answers lose points with other seeds too. Their notebooks
say the numbers that are judged.
"""

import json
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.labs.cells import answer_from, cases_of, names_of, verdict_of, wrong_entries
from utils.course import catalog
from utils.course.catalog import ROOT
from utils.labs import (
    Facts,
    Verdict,
    criteria,
    decide,
    limit,
    observe_case,
    observer,
    training,
    values,
)
from utils.labs.grading import display
from utils.labs.lab01 import tables
from utils.labs.lab02 import judge as lab02
from utils.labs.lab02 import truth
from utils.labs.lab03 import judge as lab03
from utils.labs.lab04 import histograms, loops, plans
from utils.labs.lab04 import judge as lab04
from utils.labs.lab05 import products, scales, updates
from utils.labs.lab06 import pipeline
from utils.labs.lab06.examples import ORDER

LABS = [lab for lab in catalog.labs(ROOT) if lab.name <= "lab08"]
EXERCISES = [exercise.id for lab in LABS for exercise in lab.exercises]
HERE = [exercise_id for exercise_id in EXERCISES if not observer(exercise_id).apart]
"""Those whose answers run in this process, in which many can be tried."""
ON_A_DEVICE = ("lab02", "lab03", "lab04.ex1", "lab04.ex2", "lab04.ex3", "lab05.ex4", "lab06.ex1")
QUICK = [exercise_id for exercise_id in HERE if not exercise_id.startswith(ON_A_DEVICE)]

pytestmark = [
    pytest.mark.usefixtures("xla_device"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning"),
]

names = cache(names_of)
"""What the notebook of a lab defines."""


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Formulas in place of compiles, which other tests hold equal, and no patience with loaders
    that are wrong in any case.
    """

    def edits(numbers: list[float]) -> dict[str, int]:
        return {name: rule(numbers) for name, rule in lab04.EXPECTED.items()}

    monkeypatch.setattr("utils.labs.lab04.observe.measure_edits", edits)
    for name, slices in (("PATIENCE", 2), ("LESS", 1), ("MOST", 9)):
        monkeypatch.setattr(pipeline, name, slices)


def cases(exercise_id: str, seed: object = "first") -> list[Facts]:
    """All cases, or the smallest where each takes a moment; none is compiled."""
    result = cases_of(exercise_id, seed)[: 1 if exercise_id.startswith(ON_A_DEVICE) else None]
    return [{**case, "compiled": False} if "compiled" in case else case for case in result]


def verdict_on(exercise_id: str, answer: Callable[..., Any], seed: object = "first") -> Verdict:
    """The verdict on these cases, with the facts as JSON as at grading."""
    some = cases(exercise_id, seed)
    seen = [observe_case(exercise_id, answer, case) for case in some]
    text = json.dumps(seen, allow_nan=False)
    assert len(text) < 100_000
    return decide(exercise_id, some, json.loads(text), 10.0)


class Odd(dict):
    """Nothing that an exercise asks for."""

    def __repr__(self) -> str:
        raise RuntimeError("not to be shown")

    __float__ = __repr__


def garbage(exercise_id: str, step: int) -> list[Any]:
    """Values that no exercise asks for, made anew because some can be used up: every `step`th, for
    each exercise from another one on.
    """
    import torch
    import torch_xla

    lazy = torch.ones(()).to(torch_xla.device()) * 2
    huge, long = 10**400, "x" * 10_000
    arrays = [
        *(np.zeros(0, np.float32), np.zeros(()), np.zeros((3, 3)), np.zeros(100_000, np.float32)),
        *(np.full((3, 4), np.nan), np.array([None, "a"], object), np.array(["a"])),
        *(np.zeros(3, dtype=[("a", "i4"), ("b", "f4")]), np.zeros(3, "V5"), np.ones(3, bool)),
        (np.zeros((3, 2)), np.zeros((3, 64))),
        (np.full((3, 2), np.nan), np.full((3, 64), np.inf)),
        (np.array([["a"]]), np.zeros(3, "V5")),
        (np.zeros((3, 2), int), None),
    ]
    tensors = [
        *(lazy, [lazy] * 2, torch.ones(3), torch.ones(2, 2), torch.ones(3) > 0),
        *((torch.ones(2), "x"), torch.ones(()).to(torch.complex64), [(lazy, lazy)] * 6),
        (torch.ones(0), torch.ones(2000)),
    ]
    letters = [None, Odd(), "x" * 500, (1,), [1, "a"], huge, math.nan, {"all-reduce": (huge, 1)}]
    entries = [
        *(dict(zip("ABCDEFGH", letters, strict=True)), dict.fromkeys("ABCDE", Odd())),
        *({"A": {long: 1, 3: None}}, {"bytes": [math.nan] * 4, "stage": huge}),
        {"bytes": [[]] * 4, "stage": {}, "ask": [None, 3, lazy], "rejected": {1: lazy}},
        {"bytes": [0.0] * 4, "stage": True},
        {"ask": [long] * 1000, "rejected": {f"{long}{k}": k for k in range(99)}},
        {"ask": [], "rejected": {}, "instance": Odd(), "usd_per_hour": "0"},
        *({"first_s": "1", "median_s": None}, {"first_s": 1e308, "median_s": 2}),
        {**dict.fromkeys(ORDER, math.nan), "bottleneck": Odd()},
        {**dict.fromkeys(ORDER, 0.2), "bottleneck": "step"},
        *({"cause": Odd(), "number": Odd()}, {"cause": "starved", "number": huge}),
        *({"cause": long, "number": math.nan}, {"cause": None, "number": 0.5}),
        {"fits": math.nan, "layout": [], "step_s": Odd()},
        {"fits": huge, "layout": {"data": 0, "tensor": -1, "pipeline": 1e308}, "step_s": 1e308},
        {"fits": None, "layout": {"data": 1.5, "tensor": "x", "pipeline": []}, "step_s": "x"},
        {"fits": 3, "layout": None, "step_s": None},
        *({"hours": None, "lost_per_day": long}, {"hours": -1, "lost_per_day": 1e308}),
        *({"hours": 5e-324, "lost_per_day": huge}, {"hours": 1e308, "lost_per_day": [[]]}),
        *({"layer0": [[1.0]], "step": 3, 7: 7, long: None}, {"layer0": np.full((500, 500), 1j)}),
        {"layer0": np.ma.array([1]), "step": np.array("x" * 99)},
    ]
    values = [
        *(None, True, 0, -1, 1.5, math.nan, math.inf, huge, 1j, Fraction(1, 3), Odd(), object()),
        *("", "text", long, b"bytes", [], {}, set(), {1, 2}, {"x" * 999}, range(6), ("a", 1)),
        *([[]] * 2, [[]] * 6, [None] * 5, [None] * 10, [huge] * 10, [math.inf] * 12, [-1] * 10),
        *([1.0] * 100_000, [huge, 1], [1e300, -0.0], [0, -3, 10**9], [(1.0, "compute")] * 6),
        *([(huge, long)] * 6, [[None, None]] * 6, [[("first", 1, 2)]] * 2, [[1, 2, 3]] * 2),
        [[("first", huge, math.nan)], [(long, [], {})]],
        *arrays,
        *tensors,
        *entries,
    ]
    return values[EXERCISES.index(exercise_id) % step :: step]


MOST = {"lab04.ex1": 1.25}
"""Points that a guess may win: a constant is right for one edit of eight."""


@pytest.mark.parametrize("exercise_id", HERE)
def test_no_returned_value_breaks_the_check_or_wins_a_point(
    exercise_id: str, request: pytest.FixtureRequest
) -> None:
    # What runs on a device takes a moment, and what an update of lab 05 returns is ignored. By day
    # each value is tried with some exercises.
    slow = exercise_id.startswith((*ON_A_DEVICE, "lab04.ex4"))
    step = 20 if exercise_id == "lab05.ex4" else 4 if slow else 1
    by_day = 1 if request.config.getoption("exhaustive") else 4
    for value in garbage(exercise_id, step * by_day):
        verdict = verdict_on(exercise_id, lambda *_, value=value: value)
        assert verdict.state == "tried" and verdict.points <= MOST.get(exercise_id, 0), (
            value,
            verdict,
        )
        assert any(criterion.message for criterion in verdict.criteria)


@pytest.mark.parametrize("exercise_id", [i for i in EXERCISES if i not in HERE])
def test_nothing_from_another_process_wins_a_point(exercise_id: str) -> None:
    for value in (None, [math.nan] * 8):
        verdict = verdict_of(exercise_id, lambda *_, value=value: value, "public")
        assert verdict.points == 0 and verdict.state in ("tried", "error"), (value, verdict)


NOTHING = {
    "lab02.ex2": ["the script as it is", "stayed on the cpu", "cuda if available"],
    "lab02.ex3": ["as it was given", "on the host", "left on the host"],
    "lab02.ex4": ["as it was given", "on the host"],
    "lab02.ex5": ["as it ran on xla"],
    "lab04.ex2": ["the given loop", "on the CPU"],
    "lab04.ex3": ["no padding", "one graph of everything", "on the CPU"],
    "lab04.ex5": ["empty queues"],
    "lab05.ex2": ["x as it is", "to nearest", "truncation"],
    "lab05.ex3": ["without the engine"],
    "lab05.ex4": ["the stalled update", "FP32 weights in the forward pass"],
    "lab05.ex5": ["no scaling", "almost zero"],
    "lab08.ex1": ["does nothing"],
}
"""Wrong answers that show nothing of what is asked for, though some of what they do is right."""


@pytest.mark.parametrize(
    ("exercise_id", "wrong"), [(ex, wrong) for ex, some in NOTHING.items() for wrong in some]
)
def test_what_is_given_and_what_stays_on_the_host_wins_nothing(
    exercise_id: str, wrong: str
) -> None:
    lab = exercise_id.partition(".")[0]
    entry = next(w for w in wrong_entries(lab) if (w.exercise, w.name) == (exercise_id, wrong))
    answer = answer_from(entry.source, exercise_id, names(lab))
    assert verdict_of(exercise_id, answer, "public").points == 0


KEYS = (
    "A B bytes stage ask rejected cause number fits layout data step_s hours lost_per_day".split()
)
PLAIN = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(max_size=3) | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=10)
        | st.tuples(inner, inner)
        | st.tuples(inner, inner, inner)
        | st.dictionaries(st.sampled_from(KEYS), inner)
    ),
    max_leaves=12,
)


@given(PLAIN, st.sampled_from(QUICK))
@settings(max_examples=300, deadline=None)
def test_no_plain_value_breaks_a_judge(value: object, exercise_id: str) -> None:
    (*_, case) = cases(exercise_id)[:3]
    seen = json.loads(json.dumps(observe_case(exercise_id, lambda *_: value, case)))
    assert decide(exercise_id, [case], [seen], 10.0).state == "tried"


@pytest.mark.parametrize("exercise_id", ["lab02.ex3", "lab02.ex4"])
@given(value=PLAIN)
@settings(max_examples=15, deadline=None)
def test_no_plain_value_breaks_a_judge_of_the_device(exercise_id: str, value: object) -> None:
    assert verdict_on(exercise_id, lambda *_: value).points == 0


@pytest.mark.parametrize("exercise_id", HERE)
def test_what_raises_is_an_error_with_its_text(exercise_id: str) -> None:
    def broken(*_: object) -> None:
        raise KeyError("C")

    assert verdict_on(exercise_id, broken).error.startswith("KeyError: 'C'")


@pytest.mark.parametrize("lab", ["lab02", "lab03", "lab04", "lab05"])
def test_observing_leaves_random_numbers_alone(lab: str) -> None:
    import torch

    def numbers() -> list[float]:
        return [*torch.rand(3).tolist(), *np.random.rand(3)]

    answers = names(lab)
    torch.manual_seed(7), np.random.seed(7)
    expected = numbers()
    torch.manual_seed(7), np.random.seed(7)
    for exercise_id in [i for i in EXERCISES if i.startswith(lab)]:
        answer = answers[observer(exercise_id).answer]
        assert "facts" in observe_case(exercise_id, answer, cases(exercise_id)[0])
    assert numbers() == expected


@pytest.mark.parametrize(
    "exercise_id", ["lab03.ex2", "lab03.ex4", "lab03.ex5", "lab04.ex2", "lab04.ex3"]
)
def test_nothing_but_the_return_is_said_of_an_answer_that_does_nothing(exercise_id: str) -> None:
    name = observer(exercise_id).answer
    for value, kind in ((None, "None"), (1.0, "a float"), ([], "a list of 0")):
        verdict = verdict_on(exercise_id, lambda *_, value=value: value)
        first, *others = (criterion.message for criterion in verdict.criteria)
        assert first.startswith(f"`{name}` returned {kind}: return a list of")
        assert others == [""] * len(others)


GUESSES: dict[str, tuple[Any, set[str]]] = {
    "lab02.ex1": (dict.fromkeys("ABCDEFGHIJ", "loud"), set("AG")),
    "lab03.ex1": (dict.fromkeys("ABCDEF", (1, 1)), set("B")),
    "lab04.ex1": (dict.fromkeys("ABCDEFGH", 1), set("H")),
}
"""A guess at all, and the letters for which it is right for any case."""


@pytest.mark.parametrize("exercise_id", GUESSES)
def test_a_first_guess_is_not_answered_by_the_card(exercise_id: str) -> None:
    guess, right = GUESSES[exercise_id]
    telling = {"lab02.ex1": {"loud", "silent", "slow", "fine"}, "lab03.ex1": set("23456789")}
    for criterion in verdict_of(exercise_id, lambda *_: guess, "public").criteria:
        assert criterion.passed == (criterion.measured != "") == (criterion.name in right)
        response = criterion.message.removeprefix("you said loud")
        assert not telling.get(exercise_id, set()) & {*response, *response.split()}, criterion
    nothing = verdict_of(exercise_id, lambda *_: {}, "public")
    assert nothing.points == 0 and all(item.measured == "" for item in nothing.criteria)
    assert all(item.message.startswith("no ") for item in nothing.criteria)


NO_OTHER_SEED = {"for ever", "without end", "all combinations"}
"""These take the whole of a limit, and one seed is enough."""
OTHER_SEEDS = [
    wrong
    for lab in LABS
    for wrong in wrong_entries(lab.name)
    if wrong.name not in NO_OTHER_SEED
    and wrong.exercise != "lab06.ex1"
    # Hundreds of files, or several lives of a training: two of them say it for all.
    and (
        wrong.exercise not in ("lab08.ex1", "lab08.ex2") or wrong.name in ("in place", "keeps all")
    )
]


@pytest.mark.exhaustive
@pytest.mark.parametrize("wrong", OTHER_SEEDS, ids=lambda wrong: wrong.id)
def test_a_wrong_answer_loses_points_with_a_private_seed_too(wrong: Any) -> None:
    lab = wrong.exercise.partition(".")[0]
    answer = answer_from(wrong.source, wrong.exercise, names(lab))
    some = cases_of(wrong.exercise, "a private one")
    # Two meshes are enough, and what a prediction is compiled for is no part of its judgement.
    some = [
        {**case, "compiled": False} for case in some[: 2 if wrong.exercise == "lab07.ex1" else None]
    ]
    seen = [json.loads(json.dumps(observe_case(wrong.exercise, answer, case))) for case in some]
    verdict = decide(wrong.exercise, some, seen, 10.0)
    assert verdict.state in ("tried", "error") and verdict.points < 10.0, verdict
    # A report shows what is measured in words that it knows.
    assert [c.measured for c in verdict.criteria if not display.is_plain(c.measured)] == []


# What the notebooks say


@pytest.mark.parametrize("lab", catalog.labs(ROOT), ids=lambda lab: lab.name)
def test_the_title_of_a_lab_says_its_minutes_and_points(lab: catalog.Lab) -> None:
    assert lab.minutes - sum(exercise.minutes for exercise in lab.exercises) in (0, 2, 5)
    assert f"{lab.minutes} min · {lab.points:g} points" in cells_of(lab.name)["title"]


@cache
def cells_of(lab: str) -> dict[str, str]:
    (path,) = catalog.lab_notebooks(ROOT, lab)
    return {c["id"]: catalog.text(c) for c in catalog.read_notebook(path)["cells"]}


STATED = [
    ("lab01 objectives", f"within {values.TOLERANCE:.1%}"),
    ("lab01 ex4-hints", f"{max(tolerance for *_, tolerance in tables.RELATIONS.values())}"),
    *((f"lab02 {name}-task", f"within {criteria.TOLERANCE:.0e} of") for name in ("ex2", "ex4")),
    ("lab02 ex5-task", f"within {lab02.BF16_TOLERANCE:g} of"),
    ("lab02 ex2-task", f"at most {lab02.MOST_COMPILES} compiles"),
    ("lab02 scratch", f"MAX_NORM = {truth.MAX_NORM}"),
    ("lab02 ex5-given", f"momentum={training.MOMENTUM}"),
    *((f"lab03 {name}-task", f"{criteria.TOLERANCE:.0e} of") for name in ("ex2", "ex4", "ex5")),
    ("lab03 ex5-task", f"at most {lab03.MOST_COMPILES} compiles"),
    ("lab03 ex5-given", f"momentum={training.MOMENTUM}"),
    *((f"lab04 {name}-task", f"within {loops.TOLERANCE:.0e} of") for name in ("ex2", "ex3")),
    ("lab04 ex2-task", f"at most {loops.MOST_COMPILES_STEADY} compiles"),
    ("lab04 ex3-task", f"at most {loops.MOST_TIMES_TOKENS:.2f} times"),
    ("lab04 ex3-task", f"at most {loops.MOST_SHAPES} shapes"),
    ("lab04 ex4-task", f"within {histograms.NEAR - 1:.0%} of"),
    ("lab04 ex4-task", f"after {limit.SECONDS:g} seconds"),
    ("lab04 ex5-task", f"at most {plans.MOST_TIMES_BOUND:.2f} times"),
    ("lab05 ex2-task", "at most once in 10⁹ checks"),
    ("lab05 ex3-task", f"at most {products.TOLERANCE:.0e}"),
    ("lab05 ex4-task", f"within {updates.TOLERANCE:g} of that"),
    (
        "lab05 ex4-task",
        "trainings of {} and {} steps".format(*(c["steps"] for c in cases_of("lab05.ex4", 1))),
    ),
    ("lab05 ex5-task", f"{scales.NEAR - 1:.0%}".replace("%", " %")),
]
"""A cell, and what it says of a limit that is judged."""


@pytest.mark.parametrize(("place", "text"), STATED)
def test_a_notebook_says_the_numbers_that_are_judged(place: str, text: str) -> None:
    lab, cell = place.split()
    assert text.replace("e-0", "e-") in cells_of(lab)[cell]


@pytest.mark.parametrize(
    ("exercise_id", "count", "text"),
    [("lab01.ex3", 7, "seven jobs"), ("lab01.ex4", 8, "eight sets"), ("lab01.ex5", 6, "six jobs")],
)
def test_a_task_says_how_many_cases_there_are(exercise_id: str, count: int, text: str) -> None:
    lab, name = exercise_id.split(".")
    assert len(cases_of(exercise_id, "public")) == count and text in cells_of(lab)[f"{name}-task"]
