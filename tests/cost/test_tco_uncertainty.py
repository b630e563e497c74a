"""Draws, what matters, where it flips and what measuring is worth: against hand-made cases."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cost.tco_toy import toy
from utils.cost import tco

WORKED = list(tco.scenarios())
worked = pytest.mark.parametrize("name", WORKED)


@worked
def test_draws_stay_within_their_ranges_and_repeat(name: str) -> None:
    scenario = tco.scenario(name)
    drawn = tco.sample(scenario, 2000)
    for path, item in scenario.inputs.items():
        assert (path in drawn) == (item.low < item.high)
        if path in drawn:
            assert drawn[path].shape == (2000,)
            assert item.low <= drawn[path].min() and drawn[path].max() <= item.high
            mean = (item.low + item.value + item.high) / 3
            error = drawn[path].std() / math.sqrt(2000)
            assert abs(drawn[path].mean() - mean) < 5 * error
    again, other = tco.sample(scenario, 2000), tco.sample(scenario, 2000, seed=1)
    for path in drawn:
        assert np.array_equal(drawn[path], again[path])
        assert not np.array_equal(drawn[path], other[path])


def test_uniform_draws_are_as_likely_everywhere() -> None:
    one = toy(a={"price": (9.0, 8.0, 12.0)})
    drawn = tco.sample(one, 20_000, shape="uniform")["a.price"]
    assert 8 <= drawn.min() and drawn.max() <= 12 and drawn.mean() == pytest.approx(10, abs=0.03)
    # Half of the range is below 10, of the triangle two thirds are.
    result = tco.compare(one, shape="uniform")
    assert result.probability == pytest.approx(1 / 2, abs=0.02) and "uniform draws" in repr(result)
    with pytest.raises(tco.InputError, match="'normal': allowed is one of triangular, uniform"):
        tco.compare(one, shape="normal")


@given(
    st.sampled_from(WORKED),
    st.dictionaries(st.sampled_from(["mfu", "units_per_second", "price", "weeks", "pay"]),
                    st.floats(0.2, 5), max_size=3),
    st.sampled_from(tco.SHAPES),
    st.floats(0.05, 0.99),
)  # fmt: skip
@settings(max_examples=60)
def test_an_estimate_lies_in_its_own_interval(name, factors, shape, share) -> None:
    scenario = tco.scenario(name)
    changes = {
        path: min(item.value * factors[field], tco.FIELDS[field].most)
        for path, item in scenario.inputs.items()
        if (field := path.rpartition(".")[2]) in factors
    }
    compared = tco.compare(scenario.with_values(changes), draws=200, shape=shape)
    for option in (None, compared.a, compared.b):
        low, high = compared.interval(option, share)
        values = compared.savings if option is None else compared.totals[option]
        best = compared.saving if option is None else compared.best[option].total
        assert low <= best <= high
        inside = np.mean((low <= values) & (values <= high))
        assert share - 0.011 <= inside, "it still holds its share of the draws"


def test_each_published_row_makes_its_own_comparison() -> None:
    compared = tco.compare(tco.scenario("pretrain-70b"))
    rows = tco.by_row(compared, draws=200)
    assert [row.chip for row in rows] == ["Trainium1"] * 11 + ["H100"] * 10
    # The best guess is itself a row of either option.
    assert [row.ratio for row in rows if row.key.endswith("llama31_70b.mfu_with_attention")] == [
        compared.ratio
    ]
    cheaper = {row.key.split(".")[-1] + row.key.split(".")[2]: row.cheaper for row in rows[:11]}
    assert list(cheaper.values()).count("trainium") == 4, "the verdict turns on the row"
    for row in (rows[0], rows[10], rows[13]):
        changed = compared.scenario.with_values({row.path: row.value})
        assert row.ratio == pytest.approx(tco.compare(changed, draws=2).ratio)
    assert tco.by_row(tco.compare(tco.scenario("chat-service"), draws=100)) == ()


@worked
def test_a_comparison_has_ten_thousand_draws_and_repeats(name: str) -> None:
    scenario = tco.scenario(name)
    one, two = tco.compare(scenario), tco.compare(scenario)
    assert {len(total) for total in one.totals.values()} == {10_000}
    assert one.savings.shape == (10_000,) and np.array_equal(one.savings, two.savings)
    other = tco.compare(scenario, seed=1)
    assert abs(one.probability - other.probability) < 0.03
    back = tco.compare(scenario, one.b, one.a)
    assert one.probability + back.probability == 1
    assert back.amount == -one.amount
    for option in (None, one.a, one.b):
        inner, outer = one.interval(option, 0.5), one.interval(option)
        assert outer[0] <= inner[0] <= inner[1] <= outer[1]
    drawn = {path: values[7] for path, values in one.drawn.items()}
    for option in (one.a, one.b):
        alone = scenario.cost(option, drawn).total
        assert one.totals[option][7] == pytest.approx(alone, rel=1e-12)
        assert one.best[option].total == scenario.cost(option).total


@worked
@pytest.mark.parametrize("rate", [0.92, 150.0])
def test_another_currency_changes_no_decision(name: str, rate: float) -> None:
    scenario = tco.scenario(name)
    other = scenario.in_currency("EUR", rate)
    assert {input_.currency for input_ in other.inputs.values()} == {"EUR", None}
    one, two = tco.compare(scenario), tco.compare(other)
    assert two.saving == pytest.approx(one.saving, rel=1e-9)
    assert two.probability == one.probability
    assert two.amount == pytest.approx(one.amount * rate, rel=1e-9)
    before, after = tco.tornado(scenario), tco.tornado(other)
    widths = {entry.path: entry.width for entry in after}
    for item in before:
        assert widths[item.path] == pytest.approx(item.width, rel=1e-6, abs=1e-12)
    # In the same order, but for ties.
    order = [widths[entry.path] for entry in before]
    assert order == pytest.approx(sorted(order, reverse=True), rel=1e-9, abs=1e-12)
    worth, foreign = tco.value_of_measuring(one), tco.value_of_measuring(two)
    for path in worth:
        assert foreign[path] == pytest.approx(worth[path] * rate, rel=1e-6, abs=1e-6 * rate)


@worked
def test_a_flip_flips(name: str) -> None:
    scenario = tco.scenario(name)
    a, b = list(scenario.options)[:2]

    def cheaper(path: str, value: float) -> str:
        totals = {option: scenario.cost(option, {path: value}).total for option in (a, b)}
        return min((b, a), key=lambda option: totals[option])

    flips = 0
    for path in scenario.inputs:
        result = tco.break_even(scenario, path)
        assert len(result.cheaper) == len(result.values) + 1
        pairs = zip(result.cheaper, result.cheaper[1:], strict=False)
        assert all(one != other for one, other in pairs)
        assert list(result.values) == sorted(result.values)
        for value, before, after in zip(
            result.values, result.cheaper[:-1], result.cheaper[1:], strict=True
        ):
            flips += 1
            assert result.low < value < result.high
            assert cheaper(path, value * (1 - 1e-9)) == before
            assert cheaper(path, value * (1 + 1e-9)) == after
    assert flips > 0


def test_a_break_even_is_where_prices_meet() -> None:
    result = tco.break_even(toy(a={"price": 8.0}), "a.price")
    assert result.values == pytest.approx((10.0,), rel=1e-12)
    assert result.cheaper == ("a", "b")
    assert tco.break_even(toy(a={"price": 8.0}), "b.price").cheaper == ("b", "a")
    # A discount of a fifth on 12.5 is a price of 10.
    one = toy(a={"price": 12.5, "discount": 0.0}, b={"discount": 0.0})
    assert tco.break_even(one, "a.discount").values == pytest.approx((0.2,))


def test_a_break_even_on_a_point_of_the_grid_is_found() -> None:
    one = toy(a={"queue": 0.0}, b={"queue": 100.0})
    result = tco.break_even(one, "a.queue", low=0, high=399)
    assert result.values == pytest.approx((100.0,)) and result.cheaper == ("a", "b")


def test_a_break_even_knows_several_crossings_and_jumps() -> None:
    """Days at 10 an hour against hours at 15: equal at 16, dearer past 24, equal at 32."""
    one = toy(a={"billing_step": 24.0}, b={"billing_step": 0.0, "price": 15.0})
    result = tco.break_even(one, "work", low=3600.0, high=45 * 3600.0)
    assert result.values == pytest.approx([hours * 3600 for hours in (16, 24, 32)], rel=1e-9)
    assert result.cheaper == ("b", "a", "b", "a")


def test_without_a_crossing_one_option_is_cheaper_throughout() -> None:
    result = tco.break_even(toy(a={"price": 8.0}), "work")
    assert result.values == () and result.cheaper == ("a",)
    assert tco.break_even(toy(b={"price": 8.0}), "runs").cheaper == ("b",)
    assert tco.break_even(toy(), "work").values == (), "equal throughout"


def test_where_to_look_must_be_allowed() -> None:
    with pytest.raises(tco.InputError, match=r"a.price = -1: allowed is 0 or more \(USD/h\)"):
        tco.break_even(toy(), "a.price", low=-1, high=5)
    with pytest.raises(tco.InputError, match="low below high"):
        tco.break_even(toy(), "a.price", low=5, high=5)
    with pytest.raises(tco.InputError, match="'a.prise'.*one of a.price"):
        tco.break_even(toy(), "a.prise")


@worked
def test_a_surface_holds_the_savings_of_its_points(name: str) -> None:
    scenario = tco.scenario(name)
    a, b = list(scenario.options)[:2]
    x, y = f"{a}.price", f"{b}.price"
    xs = [scenario.inputs[x].value * factor for factor in (0.5, 1, 2)]
    ys = [scenario.inputs[y].value * factor for factor in (0.8, 1.5)]
    surface = tco.break_even_surface(scenario, x, y, xs, ys)
    assert surface.shape == (2, 3)
    for row, right in enumerate(ys):
        for column, left in enumerate(xs):
            changed = scenario.with_values({x: left, y: right})
            expected = 1 - changed.cost(a).total / changed.cost(b).total
            assert surface[row, column] == pytest.approx(expected, rel=1e-9)


def test_a_tornado_moves_each_input_alone_widest_first() -> None:
    one = toy(
        a={"price": (8.0, 6.0, 9.0)}, b={"price": (10.0, 8.0, 16.0)}, operations=(0.0, 0.0, 1.0)
    )
    swings = tco.tornado(one)
    assert [swing.path for swing in swings] == ["b.price", "a.price", "operations"]
    assert (swings[0].at_low, swings[0].at_high) == pytest.approx((0.0, 0.5))
    assert (swings[1].at_low, swings[1].at_high) == pytest.approx((0.4, 0.1))
    assert swings[1].width == pytest.approx(0.3) and swings[2].width == 0
    assert (swings[1].low, swings[1].high) == (6.0, 9.0)


def test_the_chance_to_be_cheaper_is_that_of_the_triangle() -> None:
    """Of a triangle from 8 over 9 to 12 the part above 10 is 2 * 2 / (4 * 3) = 1/3."""
    result = tco.compare(toy(a={"price": (9.0, 8.0, 12.0)}))
    assert result.probability == pytest.approx(2 / 3, abs=0.02)
    assert result.saving == pytest.approx(0.1)
    assert result.amount == pytest.approx(1.0)
    # A quantile q of the rising side is at 8 + sqrt(q * 4 * 1).
    assert 10 * (1 - result.interval()[1]) == pytest.approx(8 + math.sqrt(0.05 * 4), abs=0.05)


def test_what_cannot_change_the_decision_is_not_worth_measuring() -> None:
    fixed = tco.value_of_measuring(tco.compare(toy(a={"price": 8.0})))
    assert fixed == {"everything": 0.0}
    clear = tco.compare(toy(a={"price": (5.0, 4.0, 6.0)}, operations=(1.0, 0.0, 2.0)))
    assert set(tco.value_of_measuring(clear).values()) == {0.0}


def test_one_unknown_is_worth_everything() -> None:
    """A triangle of half width 2 around the other price: on average a third of 2 either way, so
    that knowing it saves half of that an hour; over 50 runs fifty times as much.
    """
    result = tco.value_of_measuring(tco.compare(toy(a={"price": (10.0, 8.0, 12.0)}, runs=50.0)))
    assert result["everything"] == pytest.approx(50 * 2 / 3 / 2, rel=0.03)
    assert result["a.price"] == pytest.approx(result["everything"], rel=0.01)


def test_of_two_unknowns_each_is_worth_its_part() -> None:
    """Two equal triangles: their difference is a sum of four uniform draws of width h, whose mean
    distance from its middle is 7/15 h; knowing one alone leaves its own, h / 3.
    """
    half = 2.0
    both = {"price": (10.0, 10.0 - half, 10.0 + half)}
    one = toy(a=both, b=both, operations=(1.0, 0.0, 2.0), pay=(40.0, 20.0, 120.0))
    result = tco.value_of_measuring(tco.compare(one, draws=40_000))
    assert list(result)[0] == "everything"
    assert result["everything"] == pytest.approx(7 / 15 * half / 2, rel=0.03)
    assert result["a.price"] == pytest.approx(half / 6, rel=0.06)
    assert result["b.price"] == pytest.approx(half / 6, rel=0.06)
    for path in ("operations", "pay"):
        assert result[path] < 0.03 * result["everything"], "chance is not knowledge"


@worked
def test_no_measurement_is_worth_more_than_to_know_all(name: str) -> None:
    for seed in range(3):
        result = tco.value_of_measuring(tco.compare(tco.scenario(name), draws=2000, seed=seed))
        assert min(result.values()) >= 0
        assert max(result.values()) <= result["everything"] * (1 + 1e-9)


def test_a_comparison_needs_two_options_that_cost_something() -> None:
    with pytest.raises(tco.InputError, match="b = a cost of 0"):
        tco.compare(toy(b={"price": 0.0}))
    with pytest.raises(tco.InputError, match="b = a cost of 0"):
        tco.tornado(toy(b={"price": 0.0}, a={"price": (2.0, 1.0, 3.0)}))
    with pytest.raises(tco.InputError, match="'c'.*one of a, b"):
        tco.compare(toy(), "a", "c")
    with pytest.raises(tco.InputError, match="a twice"):
        tco.compare(toy(), "a", "a")
    with pytest.raises(tco.InputError, match="2 or more"):
        tco.sample(toy(), 1)
