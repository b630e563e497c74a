"""Figures of number formats and of training under recipes: what they draw, what they refuse."""

import io

import numpy as np
import pytest

from utils.chip.formats import FORMATS, round_to
from utils.show import draw
from utils.show.draw.numbers import _apart

LIMIT_BYTES = 40_000


def check(picture: draw.Picture, caption: str) -> None:
    from PIL import Image

    assert picture.caption == caption and len(picture.png) < LIMIT_BYTES
    image = Image.open(io.BytesIO(picture.png)).convert("RGB")
    assert image.width > 400 and len(image.getcolors(1 << 24)) > 2  # something is drawn


def test_ranges_of_all_formats() -> None:
    check(draw.ranges(list(FORMATS.values()), "All formats."), "All formats.")


def test_a_number_line_draws_every_value_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.axes import Axes

    drawn = []
    real = Axes.vlines
    monkeypatch.setattr(
        Axes, "vlines", lambda self, x, *a, **k: drawn.append(len(x)) or real(self, x, *a, **k)
    )
    check(draw.number_line([FORMATS["e2m1"], FORMATS["e4m3"]], -6, 6, "Two."), "Two.")
    values = FORMATS["e4m3"].values()
    assert drawn == [15, np.count_nonzero(np.abs(values) <= 6)]


def test_a_number_line_refuses_what_nobody_could_read() -> None:
    with pytest.raises(ValueError, match="choose a shorter range"):
        draw.number_line([FORMATS["bf16"]], -4, 4, "Black.")
    with pytest.raises(ValueError, match="smaller one"):
        draw.number_line([FORMATS["e2m1"]], 4, -4, "Turned round.")


def test_training_curves_with_names_at_their_ends() -> None:
    curves = {f"recipe {i}": [3 - 0.01 * k - 0.001 * i for k in range(50)] for i in range(5)}
    check(draw.training({"left": curves, "right": curves}, "loss", "Ten."), "Ten.")


def test_names_keep_apart_and_in_order() -> None:
    places = _apart({"a": 1.0, "b": 1.0, "c": 0.2, "d": 1.01}, 0, 2)
    heights = sorted(places.values())
    assert min(np.diff(heights)) >= 0.06 * 2
    assert sorted(places, key=places.__getitem__)[0] == "c" and places["c"] == 0.2


def test_stalled_weights_lie_below_the_staircase() -> None:
    random = np.random.default_rng(0)
    before = round_to(random.standard_normal(500).astype(np.float32), "bf16")
    step = (1e-3 * random.standard_normal(500)).astype(np.float32)
    after = round_to(before - step, "bf16")
    check(draw.stalled(before, step, after, FORMATS["bf16"], "Stalled."), "Stalled.")
