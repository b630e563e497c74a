"""Figures of costs: small, additive, values at the ends of bars, a line where costs are equal."""

from typing import Any

import numpy as np
import pytest

from tests.repo.test_repo import FIGURE_BYTES
from tests.show.pictures import keep_figures
from utils.cost import tco
from utils.show import draw
from utils.show.draw import costs as drawing


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    return keep_figures(monkeypatch, drawing)


def texts(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.texts]


@pytest.mark.parametrize("name", ["pretrain-70b", "chat-service"])
def test_figures_of_a_job_and_of_a_service_are_small(name: str) -> None:
    scenario = tco.scenario(name)
    compared = tco.compare(scenario, draws=500)
    swings = tco.tornado(scenario)[:8]
    path = swings[0].path
    item = scenario.inputs[path]
    crossing = tco.break_even(scenario, path)
    x = np.geomspace(max(crossing.low, 1e-3), crossing.high, 40)
    other = swings[1].path
    y = np.linspace(swings[1].low, swings[1].high, 30)
    pictures = [
        draw.waterfall(compared.best, "money", "lines"),
        draw.tornado(swings, compared.saving, [s.path for s in swings], "saving", "swings"),
        draw.break_even(
            x,
            {option: scenario.cost(option, {path: x}).total for option in scenario.options},
            crossing.values, item.value, path, "money", "lines", (item.low, item.high),
        ),
        draw.break_even_surface(
            x, y, tco.break_even_surface(scenario, path, other, x, y),
            (item.value, scenario.inputs[other].value), path, other, "surface",
            (item.low, item.high, swings[1].low, swings[1].high),
        ),
        draw.distribution(compared.totals, "money", "draws"),
        draw.distribution({"saving": compared.savings}, "saving", "draws", zero=True),
    ]  # fmt: skip
    for picture in pictures:
        assert picture.png.startswith(b"\x89PNG") and len(picture.png) < FIGURE_BYTES
        assert picture.caption


@pytest.mark.parametrize("name", sorted(tco.scenarios()))
def test_the_lines_shown_add_up_to_the_total(name: str) -> None:
    scenario = tco.scenario(name)
    costs = {option: scenario.cost(option) for option in scenario.options}
    _, rows = drawing.shown_lines(costs)
    for option, values in rows.items():
        assert sum(values) == pytest.approx(costs[option].total)


def test_a_line_that_takes_off_goes_left_and_is_hatched(drawn: list[Any]) -> None:
    cost = tco.Cost({"work": 100.0, "support": 10.0, "credits": -40.0}, 1, 1, 1, 1)
    draw.waterfall({"one": cost}, "money", "lines")
    bars = drawn[0].axes[0].patches
    assert [(b.get_x(), b.get_width(), bool(b.get_hatch())) for b in bars] == [
        (0, 100, False), (100, 10, False), (110, -40, True), (0, 70, False),
    ]  # fmt: skip
    assert texts(drawn[0].axes[0]) == ["100", "10", "-40", "70"]


def test_a_tornado_says_the_values_at_the_ends_of_its_bars(drawn: list[Any]) -> None:
    swings = [tco.Swing("mfu", 0.2, 0.4, -0.3, 0.5), tco.Swing("price", 30, 50, 0.4, 0.1)]
    draw.tornado(swings, 0.25, ["mfu [ratio]", "price [USD/h]"], "saving [%]", "swings")
    labels = {text.get_text(): text.xy for text in drawn[0].axes[0].texts}
    assert labels == {"0.2": (-30, 0), "0.4": (50, 0), "50": (10, 1), "30": (40, 1)}


def test_both_ends_on_one_side_stay_readable(drawn: list[Any]) -> None:
    draw.tornado([tco.Swing("share", 0.1, 0.3, 0.3, 0.5)], 0.2, ["share"], "saving [%]", "swings")
    axes = drawn[0].axes[0]
    assert [bar.get_width() for bar in axes.patches] == [pytest.approx(30), pytest.approx(10)]
    assert {text.get_text(): text.xy[0] for text in axes.texts} == {"0.1": 20, "0.3": 50}


def test_break_even_takes_costs_that_do_not_change_and_savings_below_zero(drawn: list[Any]) -> None:
    x = [0.1, 0.2, 0.3]
    draw.break_even(x, {"one": [3, 2, 1], "two": 2.0}, [0.2], 0.3, "x", "y", "c", (0.15, 0.35))
    draw.break_even(x, {"saving": [-50, 0, 25]}, [0.2], 0.3, "x", "y", "c")
    costs, saving = (figure.axes[0] for figure in drawn)
    assert costs.get_xscale() == "linear" and costs.get_ylim()[0] == 0
    assert "believed range" in [patch.get_label() for patch in costs.patches]
    assert saving.get_ylim()[0] < -50


def test_a_surface_draws_the_line_of_equal_costs_only_where_there_is_one(drawn: list[Any]) -> None:
    grid = np.linspace(-0.5, 0.5, 12).reshape(3, 4)
    for savings in (grid, grid + 1):
        draw.break_even_surface([1, 2, 3, 100], [1, 2, 3], savings, (2, 2), "x", "y", "c")
    with_line, without = ([e.get_label() for e in f.axes[0].lines] for f in drawn)
    assert "both cost the same" in with_line and "both cost the same" not in without
    assert drawn[0].axes[0].get_xscale() == "log" and drawn[0].axes[0].get_yscale() == "linear"


def test_a_distribution_marks_the_middle_nine_of_ten(drawn: list[Any]) -> None:
    values = np.linspace(-100, 100, 1001)
    draw.distribution({"saving": values}, "saving [%]", "draws", zero=True)
    assert texts(drawn[0].axes[0]) == ["-90", "0", "90"]
