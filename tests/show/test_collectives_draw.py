"""Figures of collectives: curves between their limits, marks where they belong, small files."""

from typing import Any

import pytest

from tests.repo.test_repo import FIGURE_BYTES
from tests.show.pictures import kept
from utils.chip.collectives import Tier, crossover_bytes, fabric, seconds
from utils.show import draw
from utils.show.draw import collectives


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The matplotlib figures that are finished during a test."""
    return kept(monkeypatch, collectives)


WIRES = {"near": Tier("near", 8, 1e-6, 1e11), "far": fabric("trn2.48xlarge", nodes=4)}


def test_the_crossover_stands_on_its_curve_between_both_limits(drawn: list[Any]) -> None:
    draw.collective_times("all-gather", WIRES, "c")
    (axes,) = drawn[0].axes
    marks = [line for line in axes.lines if len(line.get_xdata()) == 1]
    assert [line.get_label().partition(":")[0] for line in marks] == [*WIRES]
    assert len({line.get_marker() for line in marks}) == len(WIRES)
    for line, wires in zip(marks, WIRES.values(), strict=True):
        (x,), (y,) = line.get_xdata(), line.get_ydata()
        assert x == crossover_bytes("all-gather", wires)
        assert y == pytest.approx(seconds("all-gather", x, wires).seconds)
    curves = [line for line in axes.lines if len(line.get_xdata()) > 1]
    for curve, *limits in (curves[0:3], curves[3:6]):
        for limit in limits:
            assert (limit.get_ydata() <= curve.get_ydata() * (1 + 1e-9)).all()


def test_points_lie_inside_and_groups_have_marks_of_their_own(drawn: list[Any]) -> None:
    draw.modelled_measured({"a": [(1e-5, 2e-5), (1, 0.5)], "b": [(1e-3, 1e-3)]}, "c")
    (axes,) = drawn[0].axes
    low, high = axes.get_xlim()
    assert low < 1e-5 and high > 1
    marked = [line for line in axes.lines if line.get_linestyle() == "None"]
    assert [line.get_label() for line in marked] == ["a", "b"]
    assert len({line.get_marker() for line in marked}) == 2


def test_figures_are_small_and_carry_their_caption() -> None:
    for picture in (
        draw.collective_times("all-reduce", WIRES, "c"),
        draw.modelled_measured({"a": [(1e-5, 2e-5), (1, 0.5)]}, "c"),
    ):
        assert picture.png.startswith(b"\x89PNG") and picture.caption == "c"
        assert len(picture.png) < FIGURE_BYTES
