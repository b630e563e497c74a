"""The figures of lesson 08 show what they are given, and stay small."""

import io

import pytest
from PIL import Image

from utils.show.draw import recovery

SPANS = [(0, 2, "computing"), (2, 2.5, "saving"), (2.5, 4, "lost"), (4, 5, "down")]
INTERVAL = ([0.1, 1, 10], {"Daly": [1, 0.1, 2]}, {"simulated": [(1, 0.2)]}, {"best": 0.9}, "c")


@pytest.mark.parametrize(
    ("draw", "arguments"),
    [
        (recovery.lives, ([(0, 8), (6, 12)], 3, 12, "c")),
        (recovery.lives, ([(0, 5), (3, 4), (3, 7), (6, 12)], 3, 12, "c")),
        (recovery.differences, ({"a": [False, True], "b": [True] * 5}, 7, "step", "c")),
        (recovery.chunks, (12, [(0, 3), (3, 3), (6, 3), (9, 3)], [(0, 6), (6, 6)], "c")),
        (recovery.chunks, (12, [(0, 4), (4, 4), (8, 4)], [(0, 6), (6, 6)], "c")),
        (recovery.spans, ({"one": SPANS, "two": SPANS[:1]}, "c")),
        (recovery.interval, INTERVAL),
    ],
)
def test_a_figure_is_small_and_has_its_caption(draw, arguments) -> None:
    picture = draw(*arguments)
    assert picture.caption == "c" and len(picture.png) < 40_000
    assert Image.open(io.BytesIO(picture.png)).width == 700


def test_intervals_ascend() -> None:
    with pytest.raises(ValueError, match="do not ascend"):
        recovery.interval([1, 1], *INTERVAL[1:])
