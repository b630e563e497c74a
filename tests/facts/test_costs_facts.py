"""What is published about costs beside an instance's hour, and about savings, holds together."""

import datetime
from collections.abc import Mapping
from typing import Any

import pytest

from utils.cost.tco import FIELDS
from utils.facts import STATUSES, figure
from utils.facts.records import content

FILE = content("tco_cases.yaml")
CASES: Mapping[str, Mapping[str, Any]] = FILE["cases"]
WORK = {"training", "fine-tuning", "online inference", "batch inference"}
DISAGREES = {"llama4-scout-trn2-p5"}
"""Cases whose stated saving does not follow from the prices and throughputs beside it."""


def cost(case: Mapping[str, Any], side: str) -> float | None:
    """USD per `per` units, None where an input is not given."""
    given = case[side]
    if given.get("price") is None:
        return None
    if given.get("hours"):
        return given.get("instances", 1) * given["price"] * given["hours"]
    return given["price"] / given["throughput"] / 3600 * case["per"]


def saving(case: Mapping[str, Any]) -> float | None:
    subject, baseline = cost(case, "subject"), cost(case, "baseline")
    return None if subject is None or baseline is None else 1 - subject / baseline


COMPUTED = {name: saving(case) for name, case in CASES.items() if saving(case) is not None}


@pytest.mark.parametrize("name", CASES)
def test_a_case_says_what_is_compared_by_whom_and_what_is_missing(name: str) -> None:
    case = CASES[name]
    assert case["about"].endswith(".") and case["work"] in WORK
    assert FILE["sources"][case["source"]]["url"].startswith("https://")
    assert case["status"] in STATUSES[1:3], "a claim or an estimate: nobody here has measured it"
    assert type(case["date"]) is datetime.date and case["date"] <= datetime.date.today()
    assert case["differs"] and case["missing"]
    low, high = case["stated_low"], case["stated_high"]
    assert high is not None or low is None, "an 'up to' has no low end"
    assert None in (low, high) or low <= high < 1


def test_sources_are_all_used() -> None:
    assert {case["source"] for case in CASES.values()} == set(FILE["sources"])


def test_enough_cases_can_be_computed_and_both_signs_occur() -> None:
    assert len(CASES) >= 8 and len(COMPUTED) >= 4
    assert min(COMPUTED.values()) < 0 < max(COMPUTED.values())


@pytest.mark.parametrize("name", [name for name in COMPUTED if CASES[name]["stated_high"]])
def test_the_stated_saving_follows_from_what_is_given_or_is_known_not_to(name: str) -> None:
    case = CASES[name]
    near = case["stated_low"] - 0.02 <= COMPUTED[name] <= case["stated_high"] + 0.02
    assert near == (name not in DISAGREES)


@pytest.mark.parametrize("name", [name for name in CASES if "more_low" in CASES[name]])
def test_more_work_for_the_same_money_is_a_smaller_saving(name: str) -> None:
    case = CASES[name]
    for end in ("low", "high"):
        assert case[f"stated_{end}"] == pytest.approx(1 - 1 / (1 + case[f"more_{end}"]), abs=1e-3)


@pytest.mark.parametrize(
    ("key", "field"),
    [
        ("failures.llama3_405b.per_server", "failures"),
        ("storage.s3_standard", "storage_price"),
        ("transfer.out_first_10_tb", "egress_price"),
        ("support.business_plus.rate_first", "support"),
        ("people.developer_week", "pay"),
        ("startup.server_high", "startup"),
        ("compile.usual_high", "compile_cold"),
        ("training.trn1.llama2_7b.mfu", "mfu"),
        ("capacity_block.step", "billing_step"),
    ],
)
def test_a_cost_model_can_take_a_quoted_figure_in_its_own_unit(key: str, field: str) -> None:
    assert figure(key).to(FIELDS[field].unit) > 0


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [
        ("spot.trn1.32xlarge.price", "reserved.trn1.32xlarge.price"),
        ("reserved.trn1.32xlarge.price", "trn1.32xlarge.price.on_demand"),
        ("startup.vllm_8b_warm", "startup.vllm_8b_cold"),
        ("people.developer_week_low", "people.developer_week"),
        ("power.h100_server_measured", "power.h100_server_rated"),
    ],
)
def test_orders_that_hold_whatever_the_figures_are(smaller: str, larger: str) -> None:
    assert figure(smaller).to(figure(larger).unit) < figure(larger).value
