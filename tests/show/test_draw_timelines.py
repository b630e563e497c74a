"""Figures of loaders and traces: drawn, small, and for every kind of lane."""

import io

import pytest
from PIL import Image

from tests.training.test_traces import event, made
from utils.show import draw
from utils.training.loading import Uploader, predict
from utils.training.native import overlap


def size(picture) -> tuple[int, int]:
    assert len(picture.png) < 40_000
    return Image.open(io.BytesIO(picture.png)).size


def test_a_schedule_has_a_row_for_each_worker_and_one_for_the_loop() -> None:
    none, three = predict(0.03, 0.01, 8), predict(0.03, 0.01, 8, workers=3)
    heights = [size(draw.pipelines({"one": item}, "Loads."))[1] for item in (none, three)]
    assert heights[0] + 60 < heights[1]
    both = draw.pipelines({"none": none, "three": three}, "Loads.")
    assert size(both)[1] > heights[1]
    ahead = predict(0.01, 0.02, 8, uploader=Uploader())
    assert size(draw.pipelines({"ahead": ahead}, "Loads."))[1] > heights[0]


@pytest.mark.parametrize("window", [None, (0.0, 40.0)])
def test_a_trace_has_a_row_for_each_lane_and_each_marked_name(tmp_path, window) -> None:
    trace = made(
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
    plain = size(draw.lanes(trace, "Lanes.", window))
    marked = size(draw.lanes(trace, "Lanes.", window, mark=("forward",)))
    assert marked[1] > plain[1]


def test_an_overlap_has_two_rows_for_each_plan() -> None:
    one, two = (overlap.step(3, 1.0, 2.0, 0.5, 0.5, ahead) for ahead in (0, 1))
    alone = draw.overlaps({"late": one}, "One plan.")
    both = draw.overlaps({"late": one, "early": two}, "Two plans.")
    assert size(alone)[1] + 60 < size(both)[1]
