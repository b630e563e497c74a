"""Figures of profiles: small, every engine where it belongs, loads counted where they were."""

import itertools
from typing import Any

import numpy as np
import pytest

from tests.repo.test_repo import FIGURE_BYTES
from tests.show.pictures import keep_figures
from utils.nki import simulator
from utils.nki.simulator.traffic import moves
from utils.show import draw
from utils.show.draw import kernels as drawing

simulator.use()

import nki  # noqa: E402
import nki.isa as nisa  # noqa: E402
import nki.language as nl  # noqa: E402

from utils.nki.kernels import matmul, norms  # noqa: E402

SQUARE = nki.Shape((1024, 1024), "bfloat16")
OTHER = nki.Shape((1024, 1024), "bfloat16")


@pytest.fixture(scope="module")
def tiled() -> Any:
    return nki.profile(matmul.tiled)(SQUARE, OTHER)


@pytest.fixture(scope="module")
def softmax() -> Any:
    return nki.profile(norms.softmax)(nki.Shape((512, 512), "float32"))


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    return keep_figures(monkeypatch, drawing)


def test_figures_are_small_and_say_what_they_show(tiled: Any, softmax: Any) -> None:
    pictures = [
        draw.kernel_timeline({"one": tiled, "two": softmax}),
        draw.kernel_timeline({"one": tiled}, span=(0.0, tiled.seconds / 10)),
        draw.occupancy(tiled),
        draw.hbm_loads({"tiled": tiled}, ("left", "right")),
        draw.hbm_loads({"one": tiled, "two": tiled}, ("left", "right")),
        draw.kernel_roofline({"tiled": tiled}, 8e13, 4e11),
    ]
    for picture in pictures:
        assert picture.png.startswith(b"\x89PNG") and len(picture.png) < FIGURE_BYTES
    assert "stimated" in pictures[0].caption and "one, about" in pictures[0].caption
    assert "left: 2 times by tiled; right: 8 times by tiled." in pictures[3].caption
    assert "left: 2 times by one, 2 times by two;" in pictures[4].caption
    assert "peak: tiled " in pictures[5].caption


def test_a_lane_for_each_engine_with_work_and_no_other(drawn: list[Any], softmax: Any) -> None:
    draw.kernel_timeline({"softmax": softmax})
    (axes,) = drawn[0].axes
    lanes = [label.get_text().split()[0] for label in axes.get_yticklabels()]
    assert lanes == ["Vector", "Scalar", "DMA"]
    assert len(axes.collections) >= len(lanes)


def test_bars_lie_in_the_span_and_do_not_overlap(tiled: Any) -> None:
    start, end = tiled.seconds / 4, tiled.seconds / 2
    for lane in ("tensor", "dma"):
        bars = drawing._bars(tiled, lane, start, end)
        assert bars
        for (left, width), (after, _) in itertools.pairwise(bars):
            assert left + width <= after * (1 + 1e-9)
        assert bars[0][0] >= start and sum(bars[-1]) <= end * (1 + 1e-3)


def test_busy_time_in_the_figure_is_that_of_the_profile(tiled: Any) -> None:
    bars = drawing._bars(tiled, "tensor", 0.0, tiled.seconds)
    assert sum(width for _, width in bars) == pytest.approx(tiled.busy["tensor"], rel=0.05)


def test_bars_narrower_than_a_pixel_are_seen(tiled: Any, drawn: list[Any]) -> None:
    draw.kernel_timeline({"tiled": tiled})
    assert all(bars.get_snap() is False for bars in drawn[0].axes[0].collections[:3])


def test_panels_of_several_kernels_stand_side_by_side(tiled: Any, drawn: list[Any]) -> None:
    draw.hbm_loads({"one": tiled, "two": tiled}, ("left", "right"))
    titles = [axes.get_title().replace("\n", " ") for axes in drawn[0].axes]
    assert titles[:4] == [
        "one left: 2 times", "two left: 2 times", "one right: 8 times", "two right: 8 times",
    ]  # fmt: skip


def test_a_kernel_lies_below_its_roof(tiled: Any, drawn: list[Any]) -> None:
    peak = tiled.flop / tiled.seconds / tiled.mfu
    draw.kernel_roofline({"tiled": tiled}, peak, 4e11)
    dot = next(line for line in drawn[0].axes[0].lines if line.get_label() != "_child0")
    assert dot.get_ydata()[0] == pytest.approx(tiled.mfu) and dot.get_ydata()[1] <= 1
    (_, label) = drawn[0].axes[0].get_legend_handles_labels()
    assert label == [f"tiled: {tiled.mfu:.0%}"]


def test_loads_are_counted_where_they_are() -> None:
    @nki.jit
    def kernel(x):
        out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        for _ in range(3):
            nisa.dma_copy(dst=tile, src=x[0:128, 64:128])
        nisa.dma_copy(dst=tile, src=x[128:256, 0:64])
        nisa.dma_copy(dst=out, src=tile)
        return out

    program = nki.profile(kernel)(nki.Shape((256, 128), "float32")).program
    result = moves(program, program.inputs[0])
    assert result.rows == (0, 128, 256) and result.columns == (0, 64, 128)
    assert np.array_equal(result.times, [[0, 3], [1, 0]])
    assert result.most == 3 and result.mean == 1.0
    assert moves(program, program.inputs[0], reads=False).most == 0


def test_loads_agree_with_the_bytes_of_the_profile(tiled: Any) -> None:
    program = tiled.program
    read = sum(moves(program, input_).mean * input_.size_bytes for input_ in program.inputs)
    assert read == tiled.hbm_read


def test_a_view_of_three_dimensions_counts_by_rows() -> None:
    @nki.jit
    def kernel(x):
        out = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray((128, 32), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[1])
        nisa.dma_copy(dst=out, src=tile)
        return out

    program = nki.profile(kernel)(nki.Shape((2, 128, 32), "float32")).program
    result = moves(program, program.inputs[0])
    assert result.rows == (0, 128, 256) and np.array_equal(result.times, [[0], [1]])
