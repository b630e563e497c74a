"""Lab 01: right answers pass however they are written, wrong ones are told apart, what is expected
follows from the facts, and nothing an answer returns can break a check.
"""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.labs.cells import cases_of, names_of
from utils.chip.roofline import bound, gemm
from utils.chip.topology import ring, torus
from utils.chip.training_memory import RECIPES
from utils.course import catalog
from utils.course.catalog import ROOT
from utils.labs import closed, decide, observe_case
from utils.labs.lab01 import fitting, gemms, offers, sheets, tables
from utils.labs.lab01.observe import OBSERVERS
from utils.labs.values import TOLERANCE

EXERCISES = [f"lab01.{name}" for name in OBSERVERS]
SEEDS = ["public", "a private one"]


@pytest.fixture(scope="module")
def names() -> dict:
    return names_of("lab01")


# Right answers


def test_the_course_is_open_again_after_an_answer_was_called() -> None:
    def uses(sheet, products):
        return bound(gemm(4, 4, 4), None, "bf16")

    seen = observe_case("lab01.ex1", uses, cases_of("lab01.ex1", "public")[0])
    assert "gemm belongs to the course" in seen["error"]
    assert gemm(4, 4, 4).flops == 128 and torus(4, 4).diameter == 4 and ring(3).degree == 2


def test_what_cannot_be_closed_is_named() -> None:
    with pytest.raises(ValueError, match="no module, function or class"):
        with closed.closed("lab01.ex1", "utils.chip.roofline.nothing"):
            pass


def test_classes_that_refer_to_each_other_are_closed_without_end() -> None:
    # torch gives every autograd function a class for its backward, and that one the way back.
    with closed.closed("lab05.ex4", "utils.training.precision"):
        pass


def test_a_block_that_raises_opens_what_it_closed() -> None:
    with pytest.raises(KeyError):
        with closed.closed("lab01.ex1", "utils.chip.topology.Topology", "utils.chip.topology.ring"):
            with pytest.raises(RuntimeError, match="write this one yourself"):
                _ = torus(4, 4).diameter
            raise KeyError
    assert ring(4).diameter == 2


# What an answer may return


class Odd(dict):
    def __repr__(self) -> str:
        raise RuntimeError("not to be shown")


def garbage() -> list:
    import torch

    tensor = torch.ones(6)
    deep = {"bytes": [[]] * 4, "stage": {}, "ask": [None, 3, tensor], "rejected": {1: tensor}}
    return [
        *(None, True, "text", b"bytes", float("nan"), float("inf"), 10**400, -1, 1j, tensor),
        *([], [[]] * 6, [[None, None]] * 6, [(1.0, "compute")] * 6, [(tensor, tensor)] * 6),
        *([(10**400, "x" * 10_000)] * 6, [1.0] * 100_000, range(6), ("a", "b"), (tensor, [])),
        *({}, Odd(), deep, {"bytes": tensor, "stage": None}, {"ask": "x", "rejected": [], 3: 4}),
        {"bytes": [float("nan")] * 4, "stage": 10**400},
        {"bytes": [0.0] * 4, "stage": True},
        {"ask": ["x" * 10_000] * 1000, "rejected": {"x" * 10_000 + str(k): k for k in range(99)}},
        {"ask": [], "rejected": {}, "instance": Odd(), "usd_per_hour": "0"},
    ]


@pytest.mark.parametrize("exercise_id", EXERCISES)
def test_no_returned_value_breaks_the_check(exercise_id: str) -> None:
    cases = cases_of(exercise_id, "first")
    for value in garbage():
        seen = [observe_case(exercise_id, lambda *_, value=value: value, case) for case in cases]
        assert all("facts" in item for item in seen), seen
        text = json.dumps(seen, allow_nan=False)
        assert len(text) < 20_000
        verdict = decide(exercise_id, cases, json.loads(text), 10.0)
        assert verdict.state == "tried" and verdict.points == 0, (value, verdict)
        assert any(criterion.message for criterion in verdict.criteria)


PLAIN = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(max_size=3) | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=6)
        | st.tuples(inner, inner)
        | st.dictionaries(st.sampled_from("bytes stage ask rejected instance".split()), inner)
    ),
    max_leaves=12,
)


@given(PLAIN)
@settings(max_examples=30, deadline=None)
def test_no_plain_value_breaks_a_judgement(value: object) -> None:
    for exercise_id in EXERCISES:
        case = CASES[exercise_id]
        seen = observe_case(exercise_id, lambda *_: value, case)
        assert decide(exercise_id, [case], [json.loads(json.dumps(seen))], 10.0).state == "tried"


CASES = {exercise_id: cases_of(exercise_id, "first")[0] for exercise_id in EXERCISES}


# What is expected


@given(st.integers(0, 10**9))
@settings(max_examples=15, deadline=None)
def test_six_products_have_both_bounds_and_no_close_call(seed: int) -> None:
    for case in cases_of("lab01.ex1", str(seed)):
        result = gemms.truth(case)
        assert len(result) == gemms.COUNT
        assert {item for _, item in result} == {"compute", "memory"}
        if case["sheet"]["core_tflops"]:
            assert {item["on"] for item in case["gemms"]} == {"core", "chip"}


@given(st.integers(0, 10**9))
@settings(max_examples=15, deadline=None)
def test_jobs_need_every_stage_and_every_recipe(seed: int) -> None:
    cases = cases_of("lab01.ex3", str(seed))
    assert {fitting.stage(case) for case in cases} == {0, 1, 2, 3, None}
    assert {case["recipe"] for case in cases} == set(fitting.RECIPE_DTYPES)
    for case in cases:
        assert fitting.state(case) == sorted(fitting.state(case), reverse=True)


def test_the_dtypes_of_a_recipe_are_its_bytes() -> None:
    assert set(fitting.RECIPE_DTYPES) == set(RECIPES)
    for name, dtypes in fitting.RECIPE_DTYPES.items():
        width = {part: {"fp32": 4, "bf16": 2, None: 0}[dtype] for part, dtype in dtypes.items()}
        item = RECIPES[name]
        parts = (item.weights, item.gradients, item.master, item.moments)
        assert parts == (*list(width.values())[:3], 2 * width["moments"])


def test_documented_tables_contradict_nothing() -> None:
    for system in sheets.SYSTEMS:
        assert tables.broken(sheets.table_of(system)) == set(), system


@given(st.integers(0, 10**9))
@settings(max_examples=20, deadline=None)
def test_every_wrong_row_is_found_by_what_fails_and_what_holds(seed: int) -> None:
    imagined = tables.imagined_table(random.Random(seed))
    assert tables.broken(imagined) == set()
    for system in (*sheets.SYSTEMS, tables.IMAGINED):
        table = imagined if system == tables.IMAGINED else sheets.table_of(system)
        for row, kinds in tables.errors(system, table).items():
            for value in kinds.values():
                case = {"tables": {system: {**table, row: value}}}
                assert tables.wrong_in(case) == (system, row)
    for case in cases_of("lab01.ex4", str(seed)):
        assert len(case["tables"]) == 4 and tables.wrong_in(case)


def test_no_case_tells_which_row_is_wrong() -> None:
    for case in cases_of("lab01.ex4", "public"):
        assert list(case) == ["tables"]


@given(st.integers(0, 10**9))
@settings(max_examples=10, deadline=None)
def test_jobs_meet_known_prices_unknown_ones_and_none(seed: int) -> None:
    results = [offers.truth(case) for case in cases_of("lab01.ex5", str(seed))]
    assert any(item["ask"] and item["instance"] for item in results)
    assert any(item["ask"] and item["instance"] is None for item in results)
    assert any(len(item["rejected"]) == 7 for item in results)
    assert {why for item in results for why in item["rejected"].values()} == {"memory", "network"}


def test_every_offer_says_its_network() -> None:
    assert all(sheets.offer(name)["network_gbps"] > 0 for name in offers.NAMES)


def test_one_job_of_six_is_cheapest_by_the_hour_and_not_by_the_gib() -> None:
    for seed in SEEDS:
        case = cases_of("lab01.ex5", seed)[4]
        right = offers.truth(case)
        assert right["instance"] not in (None, offers.cheapest_per_gib(case, right))


# What a report shows, and who sees what


def test_the_notebook_says_the_numbers_that_are_judged() -> None:
    lab = catalog.lab("lab01")
    assert sum(exercise.minutes for exercise in lab.exercises) == lab.minutes
    (path,) = catalog.lab_notebooks(ROOT, "lab01")
    text = {c["id"]: catalog.text(c) for c in catalog.read_notebook(path)["cells"]}
    assert f"{lab.minutes} min · {lab.points:g} points" in text["title"]
    assert f"within {TOLERANCE:.1%}" in text["objectives"]
    assert len(cases_of("lab01.ex3", "public")) == 7 and "seven jobs" in text["ex3-task"]
    assert len(cases_of("lab01.ex4", "public")) == 8 and "eight sets" in text["ex4-task"]
    assert len(cases_of("lab01.ex5", "public")) == 6 and "six jobs" in text["ex5-task"]
    widest = max(tolerance for *_, tolerance in tables.RELATIONS.values())
    assert widest == 0.08 and "0.08" in text["ex4-hints"]
