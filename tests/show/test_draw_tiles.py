"""Figures of NKI: small files, every element drawn once, in the order in which a view reads it."""

import re
from typing import Any

import numpy as np
import pytest

from tests.repo.test_repo import FIGURE_BYTES
from tests.show.pictures import kept
from utils.facts import figure
from utils.show import draw
from utils.show.draw import tiles

WINDOWS = [[8, 2], [2, 2], [4, 2], [1, 2]]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The matplotlib figures that are finished during a test."""
    return kept(monkeypatch, tiles)


def words(drawn: list[Any]) -> list[str]:
    return [text.get_text() for text in drawn[0].axes[0].texts]


def test_figures_are_small_and_say_what_they_show() -> None:
    for picture in (
        draw.memories("trainium2"),
        draw.tile_layout(128, 512, 2, "A tile of 128 rows."),
        draw.matmul_operands(128, 96, 512, "K lies on the partitions."),
        draw.access_order({"row": [[1, 16]], "windows": WINDOWS}, "Two views of a row."),
    ):
        assert picture.png.startswith(b"\x89PNG") and len(picture.png) < FIGURE_BYTES / 2
        assert len(picture.caption.split()) >= 4


@pytest.mark.parametrize("chip", ["trainium1", "trainium2", "trainium3"])
def test_sizes_of_the_memories_are_those_of_the_facts(drawn: list[Any], chip: str) -> None:
    draw.memories(chip)
    sbuf = figure(f"{chip}.on_chip.sbuf_per_partition").to("KiB")
    assert any(f"x {sbuf:g} KiB" in word for word in words(drawn))


def test_rows_lie_one_after_the_other_in_hbm(drawn: list[Any]) -> None:
    draw.tile_layout(100, 300, 4, "c")
    assert {"row 99", "partition 99", f"{99 * 1200:,}"} <= set(words(drawn))
    assert any("1,200 bytes" in word for word in words(drawn))


def test_k_is_on_the_partitions_of_both_operands(drawn: list[Any]) -> None:
    draw.matmul_operands(64, 96, 256, "c")
    upright = [t.get_text() for t in drawn[0].axes[0].texts if t.get_rotation() == 90]
    assert upright == ["K = 64", "K = 64", "M = 96"]
    assert words(drawn).count("N = 256") == 2


def test_a_view_reads_in_the_order_that_numpy_gives_it(drawn: list[Any]) -> None:
    draw.access_order({"windows": WINDOWS}, "c")
    image = np.arange(16).reshape(2, 2, 2, 2).transpose(0, 2, 1, 3)
    when = [0] * 16
    for time, place in enumerate(image.ravel(), 1):
        when[place] = time
    numbers = [int(word) for word in words(drawn) if re.fullmatch(r"\d+", word)]
    assert numbers == [*range(16), *when]


def test_an_element_that_is_read_often_gets_the_room_for_all_its_numbers(drawn: list[Any]) -> None:
    for count in (1, 4):
        draw.access_order({"windows": [[1, 4], [1, count]]}, "c")
    assert {"4\n7\n10\n13", "16"} <= {text.get_text() for text in drawn[1].axes[0].texts}
    assert drawn[1].get_size_inches()[1] > 1.4 * drawn[0].get_size_inches()[1]
