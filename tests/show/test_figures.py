"""The figures of the lessons: small files that keep their captions, marks where they belong."""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.repo.test_repo import FIGURE_BYTES
from tests.show.pictures import keep_figures
from tests.training.test_traces import event, trace_of
from utils import serving
from utils.chip.collectives import Tier, crossover_bytes, fabric, seconds
from utils.chip.formats import FORMATS, round_to
from utils.cost.planner import Layout, architecture, cluster, plans, scaling
from utils.facts import figure
from utils.show import draw
from utils.show.draw import Picture, collectives, latencies, recovery, software, tiles
from utils.show.draw import serving as batches
from utils.show.draw.numbers import _apart
from utils.show.draw.verdicts import zones
from utils.training.loading import Uploader, predict
from utils.training.native import overlap

WIRES = {"near": Tier("near", 8, 1e-6, 1e11), "far": fabric("trn2.48xlarge", nodes=4)}
RUN = serving.open_loop(serving.poisson(60, 400, seed=1), serving.Linear(0.010, 0.0))
POINTS = [(50, 0.02, ""), (100, 0.05, "knee")]
INTERVAL = ([0.1, 1, 10], {"Daly": [1, 0.1, 2]}, {"simulated": [(1, 0.2)]}, {"best": 0.9}, "c")
CURVES = {f"recipe {i}": [3 - 0.01 * k - 0.001 * i for k in range(50)] for i in range(5)}
SAID = {"all-reduce": (3, 5e4)}
TRAFFIC = {"dp": (SAID, SAID | {"all-gather": (1, 2e4)}), "one": ({}, {})}
VERDICTS = ["gpu"] * 8 + ["either"] * 4 + ["trainium"] * 8
WINDOWS = [[8, 2], [2, 2], [4, 2], [1, 2]]
RUNG = draw.Rung(2**20, 1e11, 1e-6)


def stalled() -> Picture:
    random = np.random.default_rng(0)
    before = round_to(random.standard_normal(500).astype(np.float32), "bf16")
    step = (1e-3 * random.standard_normal(500)).astype(np.float32)
    return draw.stalls(before, step, round_to(before - step, "bf16"), FORMATS["bf16"], "c")


def verdicts() -> Picture:
    x = [step / 20 for step in range(1, 21)]
    marks = {"now": 0.3, "break-even": 0.5}
    return draw.verdicts(x, VERDICTS, x, (0.1, 0.3, 0.7, 0.9), marks, "MFU", "chance", "c")


def two_plans() -> Picture:
    result = plans(architecture("llama-3.1-8b"), cluster("trn2.48xlarge", 16), 4096, 2**20)
    bad = plans(result.architecture, result.cluster, 4096, 2**20, [Layout(data=64)])[0]
    assert not bad.fits
    return draw.plans({"best": result.best, "all data": bad}, "c")


def scaled() -> Picture:
    sizes = [("trn2.48xlarge", chips) for chips in (1, 16, 64)]
    points = scaling(architecture("llama-3.1-8b"), sizes, 4096, 2**20)
    assert [point.plan is None for point in points] == [True, False, False]
    return draw.scaling_curves({"8b": points}, "c")


FIGURES: dict[str, Callable[[], Picture]] = {
    "core": lambda: draw.core({"HBM": "big", "Tensor": "128 x 128"}, "c"),
    "ladder": lambda: draw.memory_ladder(
        {"near": {"A": RUNG, "B": RUNG}, "far": {"A": draw.Rung()}}, "c"
    ),
    "roofline": lambda: draw.roofline(
        {"A": (1e14, 1e12), "B": (1e13, 1e12)}, {"w": 3}, "c", {"v": 400}
    ),
    "topologies": lambda: draw.topologies({"a": (4, 4), "b": (4, 4, 4), "c": 144, "d": (8,)}, "c"),
    "tile": lambda: draw.tile_layout(128, 512, 2, "c"),
    "operands": lambda: draw.matmul_operands(128, 96, 512, "c"),
    "order": lambda: draw.access_order({"row": [[1, 16]], "windows": WINDOWS}, "c"),
    "times": lambda: draw.collective_times("all-reduce", WIRES, "c"),
    "measured": lambda: draw.modelled_measured({"a": [(1e-5, 2e-5), (1, 0.5)]}, "c"),
    "ranges": lambda: draw.ranges(list(FORMATS.values()), "c"),
    "training": lambda: draw.training({"left": CURVES, "right": CURVES}, "loss", "c"),
    "stalled": stalled,
    "verdicts": verdicts,
    "traffic": lambda: draw.traffic(TRAFFIC, "c"),
    "plans": two_plans,
    "scaling": scaled,
    "software": lambda: software.ways("c"),
    "limit": lambda: latencies.percentiles({"one": RUN.latencies_s}, "c", limit_s=0.05),
    "seven": lambda: latencies.percentiles({str(i): RUN.latencies_s for i in range(7)}, "c"),
    "felt": lambda: latencies.waits({"open": ([0.0, 1.0], [0.1, 0.2])}, "c", stall=(0.2, 0.4)),
    "tradeoff": lambda: latencies.tradeoff({"a": POINTS, "b": POINTS}, "c", limit_s=0.05),
    "few": lambda: latencies.intervals({"few": (None, 0.02, None)}, 0.03, "c"),
    "slots": lambda: batches.slots({"a": [(0, 3)] * 200, "b": [(0, None), (1, 0)]}, "c"),
    "two lives": lambda: recovery.lives([(0, 8), (6, 12)], 3, 12, "c"),
    "lives": lambda: recovery.lives([(0, 5), (3, 4), (3, 7), (6, 12)], 3, 12, "c"),
    "differences": lambda: recovery.differences(
        {"a": [False, True], "b": [True] * 5}, 7, "step", "c"
    ),
    "chunks": lambda: recovery.chunks(12, [(0, 4), (4, 4), (8, 4)], [(0, 6), (6, 6)], "c"),
    "interval": lambda: recovery.interval(*INTERVAL),
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_small_and_keeps_its_caption(name: str) -> None:
    picture = FIGURES[name]()
    assert picture.caption == "c" and len(picture.png) < FIGURE_BYTES
    image = Image.open(io.BytesIO(picture.png)).convert("RGB")
    assert image.width > 400 and len(image.getcolors(1 << 24)) > 2  # something is drawn


def draw_by(module: Any, monkeypatch: pytest.MonkeyPatch, show: Callable[..., Any]) -> Any:
    """The figure that `show` draws, as matplotlib has it."""
    drawn = keep_figures(monkeypatch, module)
    show()
    return drawn[0]


def words(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


# Collectives


def test_the_crossover_stands_on_its_curve_between_both_limits(monkeypatch) -> None:
    (axes,) = draw_by(
        collectives, monkeypatch, lambda: draw.collective_times("all-gather", WIRES, "c")
    ).axes
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


def test_points_lie_inside_and_groups_have_marks_of_their_own(monkeypatch) -> None:
    points = {"a": [(1e-5, 2e-5), (1, 0.5)], "b": [(1e-3, 1e-3)]}
    (axes,) = draw_by(collectives, monkeypatch, lambda: draw.modelled_measured(points, "c")).axes
    low, high = axes.get_xlim()
    assert low < 1e-5 and high > 1
    marked = [line for line in axes.lines if line.get_linestyle() == "None"]
    assert [line.get_label() for line in marked] == ["a", "b"]
    assert len({line.get_marker() for line in marked}) == 2


# Tiles


@pytest.mark.parametrize("chip", ["trainium1", "trainium2", "trainium3"])
def test_sizes_of_the_memories_are_those_of_the_facts(monkeypatch, chip: str) -> None:
    drawn = draw_by(tiles, monkeypatch, lambda: draw.memories(chip))
    sbuf = figure(f"{chip}.on_chip.sbuf_per_partition").to("KiB")
    assert any(f"x {sbuf:g} KiB" in word for word in words(drawn))


def test_rows_lie_one_after_the_other_in_hbm(monkeypatch) -> None:
    text = words(draw_by(tiles, monkeypatch, lambda: draw.tile_layout(100, 300, 4, "c")))
    assert {"row 99", "partition 99", f"{99 * 1200:,}"} <= set(text)
    assert any("1,200 bytes" in word for word in text)


def test_k_is_on_the_partitions_of_both_operands(monkeypatch) -> None:
    drawn = draw_by(tiles, monkeypatch, lambda: draw.matmul_operands(64, 96, 256, "c"))
    upright = [text.get_text() for text in drawn.axes[0].texts if text.get_rotation() == 90]
    assert upright == ["K = 64", "K = 64", "M = 96"]
    assert words(drawn).count("N = 256") == 2


def test_a_view_reads_in_the_order_that_numpy_gives_it(monkeypatch) -> None:
    drawn = draw_by(tiles, monkeypatch, lambda: draw.access_order({"windows": WINDOWS}, "c"))
    image = np.arange(16).reshape(2, 2, 2, 2).transpose(0, 2, 1, 3)
    when = [0] * 16
    for time, place in enumerate(image.ravel(), 1):
        when[place] = time
    numbers = [int(word) for word in words(drawn) if re.fullmatch(r"\d+", word)]
    assert numbers == [*range(16), *when]


def test_an_element_that_is_read_often_gets_the_room_for_all_its_numbers(monkeypatch) -> None:
    drawn = keep_figures(monkeypatch, tiles)
    for count in (1, 4):
        draw.access_order({"windows": [[1, 4], [1, count]]}, "c")
    assert {"4\n7\n10\n13", "16"} <= set(words(drawn[1]))
    assert drawn[1].get_size_inches()[1] > 1.4 * drawn[0].get_size_inches()[1]


# Numbers and verdicts


def test_a_number_line_draws_every_value_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.axes import Axes

    drawn = []
    real = Axes.vlines
    monkeypatch.setattr(
        Axes, "vlines", lambda self, x, *a, **k: drawn.append(len(x)) or real(self, x, *a, **k)
    )
    draw.number_line([FORMATS["e2m1"], FORMATS["e4m3"]], -6, 6, "c")
    assert drawn == [15, np.count_nonzero(np.abs(FORMATS["e4m3"].values()) <= 6)]


def test_names_keep_apart_and_in_order() -> None:
    places = _apart({"a": 1.0, "b": 1.0, "c": 0.2, "d": 1.01}, 0, 2)
    assert min(np.diff(sorted(places.values()))) >= 0.06 * 2
    assert sorted(places, key=places.__getitem__)[0] == "c" and places["c"] == 0.2


def test_zones_cover_the_range_once_and_in_order() -> None:
    x = [0.1, 0.2, 0.4, 0.8, 0.9]
    result = zones(x, ["gpu", "either", "either", "trainium", "gpu"])
    assert [name for _, _, name in result] == ["gpu", "either", "trainium", "gpu"]
    assert result[0][0] == x[0] and result[-1][1] == x[-1]
    assert all(one[1] == other[0] for one, other in zip(result, result[1:], strict=False))
    assert result[1][:2] == (pytest.approx(0.15), pytest.approx(0.6))
    assert zones([1, 2, 3], ["gpu"] * 3) == [(1, 3, "gpu")]


# Loaders, lanes, slots: more of them take more room, or look different


def height(picture: Picture) -> int:
    assert len(picture.png) < FIGURE_BYTES
    return Image.open(io.BytesIO(picture.png)).height


def test_a_schedule_has_a_row_for_each_worker_and_one_for_the_loop() -> None:
    none, three = predict(0.03, 0.01, 8), predict(0.03, 0.01, 8, workers=3)
    heights = [height(draw.pipelines({"one": item}, "c")) for item in (none, three)]
    assert heights[0] + 60 < heights[1]
    assert height(draw.pipelines({"none": none, "three": three}, "c")) > heights[1]
    ahead = predict(0.01, 0.02, 8, uploader=Uploader())
    assert height(draw.pipelines({"ahead": ahead}, "c")) > heights[0]


@pytest.mark.parametrize("window", [None, (0.0, 40.0)])
def test_a_trace_has_a_row_for_each_lane_and_each_marked_name(tmp_path: Path, window) -> None:
    trace = trace_of(
        tmp_path,
        event("course.capture", 0, 100),
        event("forward", 0, 30, kind="trace"),
        event("StepMarker", 45, 50),
        event("XLAGraphExecutor::Compile", 50, 20),
        event("TensorCollectionBarrier", 75, 10),
        event("ThunkExecutor::Execute", 20, 10, tid=2),
        event("H2D Dispatch", 31, 4, tid=2),
        event("cpu_loader.next", 10, 70, tid=4),
    )
    plain = height(draw.lanes(trace, "c", window))
    assert height(draw.lanes(trace, "c", window, mark=("forward",))) > plain


def test_an_overlap_has_two_rows_for_each_plan() -> None:
    one, two = (overlap.step(3, 1.0, 2.0, 0.5, 0.5, ahead) for ahead in (0, 1))
    alone = height(draw.overlaps({"late": one}, "c"))
    assert alone + 60 < height(draw.overlaps({"late": one, "early": two}, "c"))


def test_an_end_that_nobody_knows_looks_different_and_so_do_two_requests_in_a_slot() -> None:
    ends = [latencies.intervals({"n": (0.01, 0.02, end)}, 0.03, "c") for end in (0.04, None)]
    assert len({picture.png for picture in ends}) == 2
    of = [[(4,), (5,), (6,)], [(4,), (5,), (2,)], [(4,), (5,), (None,)]]
    assert len({batches.slots({"run": decodes}, "c").png for decodes in of}) == 3


@pytest.mark.parametrize(
    ("show", "says"),
    [
        (lambda: recovery.interval([1, 1], *INTERVAL[1:]), "do not ascend"),
        (lambda: draw.number_line([FORMATS["bf16"]], -4, 4, "c"), "choose a shorter range"),
        (lambda: draw.number_line([FORMATS["e2m1"]], 4, -4, "c"), "smaller one"),
        *(
            (lambda x=x: draw.verdicts(x, ["gpu"] * 3, [0.5] * 3, (), {}, "x", "y", "c"),
             "ascending values")
            for x in ([1, 2], [1, 3, 2], [1, 1, 2])
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused(show, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        show()
