"""Which device holds which part, and the figures of divided tensors and of traffic."""

import pytest

from tests.repo.test_repo import FIGURE_BYTES
from utils.show import draw
from utils.show.draw.meshes import holders

GRID = {"data": 2, "model": 2}


@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        ((None, None), {(0, 0): [0, 1, 2, 3]}),
        (("data", None), {(0, 0): [0, 1], (1, 0): [2, 3]}),
        ((None, "model"), {(0, 0): [0, 2], (0, 1): [1, 3]}),
        (("data", "model"), {(0, 0): [0], (0, 1): [1], (1, 0): [2], (1, 1): [3]}),
        (("model", "data"), {(0, 0): [0], (0, 1): [2], (1, 0): [1], (1, 1): [3]}),
    ],
)
def test_parts_are_held_as_the_mesh_is_numbered(spec, parts):
    assert holders((8, 4), spec, GRID) == parts


def test_an_axis_that_is_unknown_or_does_not_divide_is_an_error():
    with pytest.raises(ValueError, match="cannot divide 7"):
        holders((7,), ("data",), GRID)
    with pytest.raises(ValueError, match="cannot divide 8"):
        holders((8,), ("rows",), GRID)


def test_figures_are_small_and_keep_their_caption():
    tensors = {
        "x": ((8, 32), ("data", None)),
        "w": ((256, 64), ("model", None)),
        "b": ((8,), (None,)),
    }
    picture = draw.divided(tensors, {"data": 4, "model": 4}, "Three tensors on sixteen devices.")
    assert len(picture.png) < FIGURE_BYTES / 2 and picture.caption.startswith("Three")
    totals = {"all-reduce": (3, 5e4), "all-gather": (1, 2e4)}
    steps = {"dp": ({"all-reduce": (3, 5e4)}, totals), "one": ({}, {})}
    assert len(draw.traffic(steps, "Bytes of two steps.").png) < FIGURE_BYTES / 2
