"""The figures of latencies and of slots: small, and telling an unknown end from a known one."""

import pytest

from utils import serving
from utils.show.draw import latencies
from utils.show.draw import serving as pictures

RUN = serving.open_loop(serving.poisson(60, 400, seed=1), serving.Linear(0.010, 0.0))
POINTS = [(50, 0.02, ""), (100, 0.05, "knee")]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: latencies.percentiles({"one": RUN.latencies_s}, "words", limit_s=0.05),
        lambda: latencies.percentiles({str(i): RUN.latencies_s for i in range(7)}, "words"),
        lambda: latencies.felt({"open": ([0.0, 1.0], [0.1, 0.2])}, "words", stall=(0.2, 0.4)),
        lambda: latencies.tradeoff({"a": POINTS, "b": POINTS}, "words", limit_s=0.05),
        lambda: latencies.intervals({"few": (None, 0.02, None)}, 0.03, "words"),
        lambda: pictures.slots({"a": [(0, 3)] * 200, "b": [(0, None), (1, 0)]}, "words"),
    ],
)
def test_a_figure_is_small_and_has_its_words(draw):
    picture = draw()
    assert picture.png.startswith(b"\x89PNG") and len(picture.png) < 40_000
    assert picture.caption == "words"


def test_an_end_that_nobody_knows_looks_different():
    known = latencies.intervals({"n": (0.01, 0.02, 0.04)}, 0.03, "words")
    unknown = latencies.intervals({"n": (0.01, 0.02, None)}, 0.03, "words")
    assert known.png != unknown.png


def test_two_requests_in_a_slot_look_different_from_one_and_from_none():
    of = [[(4,), (5,), (6,)], [(4,), (5,), (2,)], [(4,), (5,), (None,)]]
    assert len({pictures.slots({"run": decodes}, "words").png for decodes in of}) == 3
