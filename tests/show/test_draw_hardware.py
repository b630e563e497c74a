"""Figures of the hardware model: small files, every mark where it belongs, legible words."""

from typing import Any

import pytest

from tests.show.pictures import keep_figures
from utils.facts import figure
from utils.show import draw
from utils.show.draw import chips, hardware, rooflines
from utils.show.draw.picture import Picture
from utils.show.widgets import explore

Drawn = list[Any]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    """The matplotlib figures that are finished during a test."""
    return keep_figures(monkeypatch, hardware, rooflines)


RUNG = draw.Rung(2**20, 1e11, 1e-6)


def test_a_core_shows_all_its_blocks_and_no_other(drawn: Drawn) -> None:
    draw.core({"PSUM": "8 banks"}, "c")
    texts = {text.get_text() for text in drawn[0].axes[0].texts}
    assert texts >= {*hardware.BLOCKS, "8 banks"}
    with pytest.raises(ValueError, match="a core has no L2: it has HBM"):
        draw.core({"L2": "none"}, "c")


def test_the_ladder_says_where_there_is_no_figure(drawn: Drawn) -> None:
    draw.memory_ladder({"near": {"A": RUNG}, "far": {"A": draw.Rung(2**40)}}, "c")
    written = [[text.get_text() for text in axes.texts] for axes in drawn[0].axes]
    assert written == [[], ["no figure"], ["no figure"]]


def test_every_value_of_the_ladder_lies_inside_its_axis(drawn: Drawn) -> None:
    small, large = draw.Rung(1, 1, 1e-12), draw.Rung(2**50, 1e15, 10)
    draw.memory_ladder({"near": {"A": small}, "far": {"A": large}}, "c")
    for axes, values in zip(drawn[0].axes, ((1, 2**50), (1, 1e15), (1e-12, 10)), strict=True):
        low, high = axes.get_xlim()
        assert low < values[0] < values[1] < high


def test_ridges_and_works_stand_where_they_belong(drawn: Drawn) -> None:
    draw.roofline({"A": (1e14, 1e12), "B": (1e13, 1e12)}, {"slow": 2}, "c", {"fast": 400})
    (axes,) = drawn[0].axes
    roofs = [line for line in axes.lines if len(line.get_xdata()) == 3]
    assert [line.get_xdata()[1] for line in roofs] == [100, 10]
    assert [line.get_label() for line in roofs] == [
        "A: ridge at 100 FLOP/B",
        "B: ridge at 10 FLOP/B",
    ]
    dots = {(line.get_xdata()[0], line.get_ydata()[0]): line.get_markerfacecolor()
            for line in axes.lines if len(line.get_xdata()) == 1}  # fmt: skip
    assert dots == {(2, 2e12): "black", (400, 1e14): "white"}


def test_works_are_numbered_and_named_below_the_roof(drawn: Drawn) -> None:
    works = {f"work {i}": 100 + i for i in range(5)} | {"small embedding": 0.1}
    draw.roofline({"A": (1e14, 1e12)}, works, "c")
    (axes,) = drawn[0].axes
    numbers, names = axes.texts[:-1], axes.texts[-1]
    assert [text.get_text() for text in numbers] == ["1", "2", "3", "4", "5", "6"]
    lines = names.get_text().splitlines()
    assert lines[0] == "1  small embedding: 0.1 FLOP/B" and lines[-1] == "6  work 4: 104 FLOP/B"
    assert names.get_window_extent().y0 > axes.get_window_extent().y0


@pytest.mark.parametrize(("shape", "count"), [((4, 4), 16), ((4, 4, 4), 64), (144, 144), ((5,), 5)])
def test_every_chip_is_drawn_once(drawn: Drawn, shape: Any, count: int) -> None:
    draw.topologies({"t": shape}, "c")
    (axes,) = drawn[0].axes
    places = [tuple(place) for marks in axes.collections for place in marks.get_offsets()]
    assert len(places) == len(set(places)) == count


@pytest.mark.parametrize("shape", [(2, 2, 2, 2), (), 0, (4, 0)])
def test_shapes_that_cannot_be_drawn_are_named(shape: Any) -> None:
    with pytest.raises(ValueError, match="t: .* cannot be drawn; give the sizes of a torus"):
        draw.topologies({"t": shape}, "c")


@pytest.mark.parametrize("chip", ["trainium1", "trainium2", "trainium3"])
def test_the_core_of_each_generation_says_what_the_facts_say(drawn: Drawn, chip: str) -> None:
    draw.neuroncore(chip)
    texts = "\n".join(text.get_text() for text in drawn[0].axes[0].texts)
    for key, unit in (("hbm.capacity", "GiB"), ("engines.vector.clock", "GHz"),
                      ("on_chip.sbuf_per_core", "MiB")):  # fmt: skip
        assert f"{figure(f'{chip}.{key}').to(unit):g} {unit}" in texts


def test_the_ladder_loses_bandwidth_and_wins_room_at_each_step() -> None:
    for chip, domain in (("trainium1", "trn1.32xlarge"), ("trainium2", "trn2-ultraserver"),
                         ("trainium3", "trn3-ultraserver-gen2")):  # fmt: skip
        steps = list(chips.rungs(chip, domain).values())
        rates = [step.bytes_per_s for step in steps]
        sizes = [step.size_bytes for step in steps if step.size_bytes]
        assert rates == sorted(rates, reverse=True)
        assert sizes == sorted(sizes) and len(sizes) == 4
        assert steps[-1].size_bytes is None
        waits = [step.latency_s for step in steps if step.latency_s]
        assert waits == sorted(waits)


def test_the_network_of_an_ultraserver_is_that_of_its_four_instances() -> None:
    network = chips.rungs("trainium2", "trn2-ultraserver")["other servers,\nEFA"].bytes_per_s
    alone = figure("trn2.48xlarge.network").to("B/s") / figure("trn2.48xlarge.cores").number
    assert network == pytest.approx(alone)


def test_a_choice_may_be_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes: list[Any] = []
    monkeypatch.setattr("IPython.display.display", boxes.append)
    seen = []

    def show(chip: str, rows: int) -> Picture:
        seen.append((chip, rows))
        return Picture(b"", f"{chip}, {rows}")

    explore(show, chip=["one", "two"], rows=[1, 64])
    chip, rows, _, caption = boxes[0].children
    chip.index, rows.index = 1, 1
    assert seen == [("one", 1), ("two", 1), ("two", 64)]
    assert "two, 64" in caption.value
    assert chip.description == "chip" and rows.options == ["1", "64"]
