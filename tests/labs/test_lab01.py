"""Lab 01: right answers pass however they are written, wrong ones are told apart, what is expected
follows from the facts, and nothing an answer returns can break a check.
"""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.labs.cells import cases_of
from utils.chip.roofline import bound, gemm
from utils.chip.topology import ring, torus
from utils.chip.training_memory import RECIPES
from utils.labs import forbidden, observe_case
from utils.labs.lab01 import fitting, gemms, offers, sheets, tables

SEEDS = ["public", "a private one"]


# Right answers


def test_the_course_is_open_again_after_an_answer_was_called() -> None:
    def uses(sheet, products):
        return bound(gemm(4, 4, 4), None, "bf16")

    seen = observe_case("lab01.ex1", uses, cases_of("lab01.ex1", "public")[0])
    assert "gemm belongs to the course" in seen["error"]
    assert gemm(4, 4, 4).flops == 128 and torus(4, 4).diameter == 4


def test_what_cannot_be_closed_is_named() -> None:
    with pytest.raises(ValueError, match="no module, function or class"):
        with forbidden.forbid("lab01.ex1", "utils.chip.roofline.nothing"):
            pass


def test_classes_that_refer_to_each_other_are_closed_without_end() -> None:
    # torch gives every autograd function a class for its backward, and that one the way back.
    with forbidden.forbid("lab05.ex4", "utils.training.precision"):
        pass


def test_a_block_that_raises_opens_what_it_closed() -> None:
    with pytest.raises(KeyError):
        with forbidden.forbid(
            "lab01.ex1", "utils.chip.topology.Topology", "utils.chip.topology.ring"
        ):
            with pytest.raises(RuntimeError, match="write this one yourself"):
                _ = torus(4, 4).diameter
            raise KeyError
    assert ring(4).diameter == 2


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
        assert tables.breaches(sheets.table_of(system)) == set(), system


@given(st.integers(0, 10**9))
@settings(max_examples=20, deadline=None)
def test_every_wrong_row_is_found_by_what_fails_and_what_holds(seed: int) -> None:
    imagined = tables.imagined_table(random.Random(seed))
    assert tables.breaches(imagined) == set()
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
