"""The worked figures of popular articles, put through the cost model: those that follow from their
inputs are reproduced; of the others it is shown by how much they do not.
"""

import re

import pytest

from tests.cost.tco_toy import toy
from utils.cost import tco
from utils.facts import claim, figure


def numbers(identity: str) -> list[float]:
    """The numbers in a claim, as it gives them."""
    text = claim(identity).text
    return [float(item) for item in re.findall(r"(?<![A-Za-z\d])\d+(?:\.\d+)?", text)]


def test_a_saving_of_a_percentage_of_a_bill_is_that_much_money() -> None:
    low, high, bill, least, most = numbers("A-116")
    for percent, saved in ((low, least), (high, most)):
        cheaper = toy(a={"price": 1 - percent / 100}, b={"price": 1.0}, work=3600 * bill)
        assert tco.compare(cheaper).amount == pytest.approx(saved)


def test_a_port_of_three_months_eats_a_small_saving_and_ten_runs_pay_for_it() -> None:
    saving, pay, months = numbers("A-133")
    port = {"engineers": 1.0, "weeks": months * 52 / 12, "pay": pay / 52}
    compared = toy(a=port | {"price": 1.0}, b={"price": 1.0 + saving}, runs=1.0)
    assert tco.compare(compared).amount == pytest.approx(saving - pay / 4)
    even = tco.break_even(compared, "runs", low=1.0, high=100.0)
    assert even.values == pytest.approx((10.0,)) and even.cheaper == ("b", "a")


@pytest.mark.parametrize(
    ("new", "old", "weeks"), [("bf16", "bf16", 5.97), ("mxfp8", "fp8", 3.1)], ids=["BF16", "FP8"]
)
def test_six_weeks_do_not_become_two_by_a_newer_chip(new: str, old: str, weeks: float) -> None:
    before, after = numbers("A-122")
    gain = figure(f"trainium3.rate.{new}").number / figure(f"trainium2.rate.{old}").number
    week = 7 * 24
    faster = toy(a={"units_per_second": gain}, work=before * week * 3600)
    results = {name: float(faster.cost(name).hours) / week for name in ("a", "b")}
    assert results["b"] == pytest.approx(before)
    assert results["a"] == pytest.approx(weeks, abs=0.05) and results["a"] > after


def test_a_price_per_chip_is_a_sixth_and_buys_less_than_a_chips_work() -> None:
    gpu, _, chip = numbers("C-055")
    assert gpu / chip == numbers("C-056")[2]
    speed = figure("trainium2.rate.bf16").to("TFLOPS") / figure("h100.rate.bf16").to("TFLOPS")
    same_work = toy(a={"price": chip, "units_per_second": speed}, b={"price": gpu})
    assert tco.compare(same_work).ratio == pytest.approx(chip / gpu / speed)
    assert 0.6 < speed < 0.7


def test_more_work_for_the_money_is_a_smaller_saving() -> None:
    """30 to 50 % more work per dollar is 23 to 33 % less money for the same work."""
    for percent, saved in zip(numbers("B-001"), (0.23, 0.33), strict=True):
        faster = toy(a={"units_per_second": 1 + percent / 100}, b={"units_per_second": 1.0})
        assert tco.compare(faster).saving == pytest.approx(saved, abs=0.005)
