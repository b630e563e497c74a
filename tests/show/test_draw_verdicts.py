"""The figure of a verdict along one input: its zones, what it draws, what it refuses."""

import io

import pytest

from utils.show import draw
from utils.show.draw.verdicts import zones

LIMIT_BYTES = 40_000


def test_zones_cover_the_range_once_and_in_order() -> None:
    x = [0.1, 0.2, 0.4, 0.8, 0.9]
    result = zones(x, ["gpu", "either", "either", "trainium", "gpu"])
    assert [name for _, _, name in result] == ["gpu", "either", "trainium", "gpu"]
    assert result[0][0] == x[0] and result[-1][1] == x[-1]
    assert all(one[1] == other[0] for one, other in zip(result, result[1:], strict=False))
    assert result[1][:2] == (pytest.approx(0.15), pytest.approx(0.6))


def test_one_zone_where_the_verdict_never_changes() -> None:
    assert zones([1, 2, 3], ["gpu"] * 3) == [(1, 3, "gpu")]


def test_the_figure_is_drawn_and_small() -> None:
    from PIL import Image

    x = [step / 20 for step in range(1, 21)]
    names = ["gpu"] * 8 + ["either"] * 4 + ["trainium"] * 8
    picture = draw.verdicts(
        x,
        names,
        x,
        (0.1, 0.3, 0.7, 0.9),
        {"now": 0.3, "break-even": 0.5},
        "MFU",
        "chance",
        "Three.",
    )
    assert picture.caption == "Three." and len(picture.png) < LIMIT_BYTES
    image = Image.open(io.BytesIO(picture.png)).convert("RGB")
    assert image.width > 400 and len(image.getcolors(1 << 24)) > 8


@pytest.mark.parametrize("x", [[1, 2], [1, 3, 2], [1, 1, 2]])
def test_values_that_do_not_fit_are_refused(x: list[float]) -> None:
    with pytest.raises(ValueError, match="ascending values"):
        draw.verdicts(x, ["gpu"] * 3, [0.5] * 3, (), {}, "x", "y", "None.")
