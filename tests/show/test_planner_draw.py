"""Figures of plans: small, captioned, and with what does not fit said in words."""

from utils.cost.planner import Layout, architecture, cluster, plans, scaling
from utils.show import draw


def test_plans_are_drawn_with_those_that_do_not_fit() -> None:
    result = plans(architecture("llama-3.1-8b"), cluster("trn2.48xlarge", 16), 4096, 2**20)
    bad = plans(result.architecture, result.cluster, 4096, 2**20, [Layout(data=64)])[0]
    assert not bad.fits
    picture = draw.plans({"best": result.best, "all data": bad}, "two plans")
    assert picture.png.startswith(b"\x89PNG") and len(picture.png) < 40_000
    assert repr(picture) == "Figure. two plans"


def test_a_scaling_curve_leaves_out_what_does_not_fit() -> None:
    sizes = [("trn2.48xlarge", chips) for chips in (1, 16, 64)]
    points = scaling(architecture("llama-3.1-8b"), sizes, 4096, 2**20)
    assert [point.plan is None for point in points] == [True, False, False]
    assert len(draw.scaling_curves({"8b": points}, "a curve").png) < 40_000
