"""What the cost models must do whatever their inputs: additive, monotone, free of units, exact at
their limits. The numbers themselves are held by test_tco_independent.py.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from utils.cost import tco

ENOUGH = settings(max_examples=60, deadline=None)
RANGES_OF_BOTH = {
    "price": (0.1, 300),
    "discount": (0, 0.8),
    "credits": (0, 1e5),
    "support": (0, 0.2),
    "startup": (0, 2),
    "compile_cold": (1, 5),
    "storage": (0, 1e5),
    "storage_price": (0, 0.2),
    "egress_price": (0, 0.2),
    "engineers": (0, 6),
    "weeks": (0, 30),
    "pay": (0, 1e4),
    "operations": (0, 500),
}
RANGES = {
    "job": RANGES_OF_BOTH
    | {
        "work": (1e9, 1e12),
        "flop_per_unit": (1e9, 1e12),
        "peak": (1e14, 1e16),
        "mfu": (0.02, 1),
        "runs": (1, 200),
        "instances": (1, 64),
        "scaling": (0.3, 1),
        "billing_step": (0, 24),
        "starts": (1, 5),
        "compile_warm": (0, 1),
        "cold_compiles": (0, 300),
        "compile_paid": (0, 1),
        "queue": (0, 10),
        "utilisation": (0.2, 1),
        "failed_runs": (0, 2),
        "failed_share": (0, 1),
        "failures": (0, 12),
        "interruptions": (0, 0.05),
        "checkpoint_every": (0.1, 50),
        "checkpoint_write": (0, 0.3),
        "restart": (0, 2),
        "storage_months": (0, 12),
        "egress": (0, 1e4),
    },
    "service": RANGES_OF_BOTH
    | {
        "demand": (0.1, 1e4),
        "peak_to_mean": (1, 8),
        "tokens_per_item": (1, 2000),
        "months": (1, 36),
        "units_per_second": (0.1, 1e3),
        "load": (0.2, 1),
        "spare": (0, 3),
        "autoscaled": (0, 1),
        "scale_ups": (0, 40),
        "releases": (0, 8),
        "egress_per_item": (0, 200),
    },
}
MODELS = {"job": tco.job, "service": tco.service}
CHEAPENING = {
    "job": {"mfu", "peak", "scaling", "utilisation", "discount", "credits", "runs"},
    "service": {"units_per_second", "load", "discount", "credits", "months"},
}
"""Fields that lower a cost as they rise; credits and ports spread over runs are aside."""
OF_NEITHER_KIND = {
    # More servers share the work but fail more often; seldom checkpoints cost less and lose more;
    # longer steps are rounded otherwise; a fleet that follows has no whole servers; the port and
    # the credits go opposite ways.
    "job": {"instances", "checkpoint_every", "billing_step", "runs"},
    "service": {"autoscaled", "months", "tokens_per_item"},
}


def values_of(kind: str) -> st.SearchStrategy:
    """All that a model takes, each within a range that may happen."""
    return st.fixed_dictionaries(
        {
            name: st.floats(low, high, allow_subnormal=False)
            for name, (low, high) in RANGES[kind].items()
        }
    )


def not_above(one: float, other: float, scale: float = 0.0) -> None:
    assert one <= other + 1e-9 * (abs(other) + scale)


def size(cost: tco.Cost) -> float:
    """Of what a total is the sum: small totals of large lines are less exact."""
    return sum(abs(line) for line in cost.lines.values())


both = pytest.mark.parametrize("kind", ["job", "service"])


@both
@given(data=st.data())
@ENOUGH
def test_lines_are_additive_and_only_discount_and_credits_are_negative(kind, data) -> None:
    cost = MODELS[kind](data.draw(values_of(kind)))
    assert cost.total == pytest.approx(math.fsum(cost.lines.values()), abs=1e-9 * size(cost))
    assert list(cost.lines) == [line for line in tco.LINES if line in cost.lines]
    for line, money in cost.lines.items():
        if line in ("discount", "credits"):
            assert money <= 0
        else:
            assert money >= -1e-9 * size(cost), line
    rest = ("support", "storage", "egress", "operations", "engineering", "credits")
    others = sum(cost.lines[line] for line in rest)
    assert cost.compute + others == pytest.approx(cost.total, abs=1e-9 * size(cost))
    assert cost.per_million * cost.units / 1e6 == pytest.approx(cost.total)
    assert cost.overall == pytest.approx(cost.total * cost.horizon)
    people = cost.lines["operations"] + cost.lines["engineering"]
    not_above(people, cost.total, size(cost))


@both
@given(data=st.data())
@ENOUGH
def test_a_bill_is_the_billed_hours_at_the_price_paid(kind, data) -> None:
    values = data.draw(values_of(kind))
    cost = MODELS[kind](values)
    paid = cost.instance_hours * values["price"] * (1 - values["discount"])
    assert cost.compute == pytest.approx(paid, rel=1e-9)


@pytest.mark.parametrize(
    "kind, name",
    [
        (kind, name)
        for kind, item in RANGES.items()
        for name in item
        if name not in OF_NEITHER_KIND[kind]
    ],
)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_what_costs_more_never_lowers_the_cost(kind, name, data) -> None:
    values = data.draw(values_of(kind))
    higher = data.draw(st.floats(values[name], RANGES[kind][name][1], allow_subnormal=False))
    before, after = MODELS[kind](values), MODELS[kind](values | {name: higher})
    if name in CHEAPENING[kind]:
        before, after = after, before
    not_above(before.total, after.total, size(before))
    if name == "price":
        not_above(before.compute, after.compute)
    if name in ("mfu", "utilisation", "load"):
        not_above(before.compute, after.compute)


@given(values_of("job"), st.floats(1, 100))
@ENOUGH
def test_more_runs_never_raise_engineering_per_run(values, factor) -> None:
    # Without steps of billing: a smaller share of the compile can save a step of each run.
    values |= {"billing_step": 0}
    before, after = tco.job(values), tco.job(values | {"runs": values["runs"] * factor})
    not_above(after.lines["engineering"], before.lines["engineering"])
    assert after.overall - before.overall >= -1e-9 * size(after) * after.horizon


@given(values_of("job"), st.floats(0.01, 0.5))
@ENOUGH
def test_doubling_utilisation_halves_compute(values, utilisation) -> None:
    values |= {"billing_step": 0, "utilisation": utilisation}
    half = tco.job(values | {"utilisation": 2 * utilisation})
    assert tco.job(values).compute == pytest.approx(2 * half.compute, rel=1e-12)


@given(values_of("job"), st.floats(1e-3, 1e3))
@ENOUGH
def test_the_clock_may_run_in_any_unit(values, factor) -> None:
    """Times `factor` times as long and rates as low cost the same money."""
    times = (
        "startup compile_cold compile_warm queue billing_step checkpoint_every checkpoint_write"
        " restart storage_months operations weeks"
    ).split()
    rates = "price peak failures interruptions storage_price pay".split()
    other = values | {name: values[name] * factor for name in times}
    other |= {name: values[name] / factor for name in rates}
    one, two = tco.job(values), tco.job(other)
    for line, money in one.lines.items():
        assert two.lines[line] == pytest.approx(money, rel=1e-7, abs=1e-8 * size(one)), line
    assert two.hours == pytest.approx(one.hours * factor, rel=1e-9)


@both
@given(data=st.data(), rate=st.floats(1e-3, 1e3))
@ENOUGH
def test_a_model_knows_no_currency(kind, data, rate) -> None:
    values = data.draw(values_of(kind))
    money = [name for name in values if "USD" in tco.FIELDS[name].unit]
    other = MODELS[kind](values | {name: values[name] * rate for name in money})
    cost = MODELS[kind](values)
    for line in cost.lines:
        expected = cost.lines[line] * rate
        assert other.lines[line] == pytest.approx(expected, abs=1e-9 * rate * size(cost))
    assert (other.hours, other.instance_hours) == (cost.hours, cost.instance_hours)


@both
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_arrays_go_through_as_numbers_do(kind, data) -> None:
    several = data.draw(st.lists(values_of(kind), min_size=2, max_size=5))
    if kind == "job":
        several[0]["billing_step"] = 0.0
    together = {name: np.array([item[name] for item in several]) for name in several[0]}
    whole = MODELS[kind](together)
    for position, values in enumerate(several):
        alone = MODELS[kind](values)
        for line, money in alone.lines.items():
            result = np.broadcast_to(whole.lines[line], len(several))[position]
            assert result == pytest.approx(money, rel=1e-12, abs=1e-12 * size(alone)), line
        hours = np.broadcast_to(whole.hours, len(several))[position]
        assert hours == pytest.approx(alone.hours)


NOTHING_ELSE = dict.fromkeys(
    "discount credits support startup compile_cold compile_warm queue failed_runs failed_share"
    " billing_step failures interruptions checkpoint_write restart storage egress engineers"
    " operations".split(),
    0.0,
) | {"scaling": 1.0, "utilisation": 1.0}


@given(values_of("job"))
@ENOUGH
def test_at_its_peak_without_overheads_a_job_costs_its_arithmetic(values) -> None:
    values |= NOTHING_ELSE | {"mfu": 1.0}
    cost = tco.job(values)
    seconds = values["work"] * values["flop_per_unit"] / values["peak"]
    assert cost.total == pytest.approx(seconds / 3600 * values["price"], rel=1e-12)
    assert cost.lines["at peak"] == pytest.approx(cost.total, rel=1e-12)


@given(values_of("job"))
@ENOUGH
def test_without_failures_none_are_paid(values) -> None:
    values |= {"billing_step": 0.0, "credits": 0.0}
    never = tco.job(values | {"failures": 0.0, "interruptions": 0.0})
    hardly = tco.job(values | {"failures": 1e-12, "interruptions": 0.0})
    assert never.lines["lost work"] == pytest.approx(0, abs=1e-12 * size(never))
    assert hardly.total == pytest.approx(never.total, rel=1e-8)


@given(values_of("job"))
@ENOUGH
def test_checkpoints_that_never_come_are_one_at_the_end(values) -> None:
    values |= {"failures": 0.0, "interruptions": 0.0, "checkpoint_every": 1e9}
    cost = tco.job(values)
    once = values["checkpoint_write"] * values["instances"] * values["price"]
    assert cost.lines["checkpoints"] == pytest.approx(once)
    later = tco.job(values | {"checkpoint_every": 1e12})
    assert later.total == pytest.approx(cost.total, rel=1e-12)


@both
@given(data=st.data())
@ENOUGH
def test_credits_pay_usage_but_never_people(kind, data) -> None:
    cost = MODELS[kind](data.draw(values_of(kind)) | {"credits": 1e15})
    people = cost.lines["operations"] + cost.lines["engineering"]
    assert cost.total == pytest.approx(people, abs=1e-9 * size(cost))


@given(st.integers(1, 50), values_of("service"))
@ENOUGH
def test_a_fleet_without_reserve_is_what_is_busy(servers, values) -> None:
    values |= dict.fromkeys(("spare", "scale_ups", "releases", "discount", "autoscaled"), 0.0)
    values |= {"load": 1.0, "peak_to_mean": 1.0}
    values["demand"] = servers * values["units_per_second"]
    cost = tco.service(values)
    assert cost.instance_hours == pytest.approx(servers * 730.5, rel=1e-12)
    assert cost.compute == pytest.approx(cost.lines["work"], rel=1e-9)
    assert tco.service(values | {"autoscaled": 1.0}).compute == pytest.approx(cost.compute)


def test_whole_steps_and_servers_stay_whole() -> None:
    """Three tenths in steps of a tenth are three, also where the quotient is a bit above."""
    values = {name: low for name, (low, high) in RANGES["job"].items()} | NOTHING_ELSE
    values |= {"price": 1.0, "work": 3 * 360.0, "flop_per_unit": 1.0, "peak": 1.0, "mfu": 1.0}
    values |= {"checkpoint_every": 1.0, "engineers": 0.0}
    assert 3 * 0.1 / 0.1 > 3
    assert tco.job(values | {"billing_step": 0.1}).instance_hours == pytest.approx(0.3)
    assert tco.job(values | {"billing_step": 0.2}).instance_hours == pytest.approx(0.4)
    # A step that nothing can resolve is none.
    assert tco.job(values | {"billing_step": 1e-300}).instance_hours == pytest.approx(0.3)
    few = {name: low for name, (low, high) in RANGES["service"].items()}
    few |= {"demand": 2.1, "units_per_second": 3.0, "load": 0.7, "peak_to_mean": 3.0}
    assert 2.1 / 3 / 0.7 * 3 > 3
    assert tco.service(few).instance_hours == pytest.approx(3 * 730.5)


@both
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_energy_is_for_the_record_and_costs_nothing(kind, data) -> None:
    values = data.draw(values_of(kind))
    cost = MODELS[kind](values)
    assert cost.energy_kwh is None and cost.carbon_kg is None
    with_power = MODELS[kind](values | {"power": 8.0, "pue": 1.25, "carbon": 0.4})
    assert with_power.lines == cost.lines
    assert with_power.energy_kwh == pytest.approx(10 * cost.instance_hours)
    assert with_power.carbon_kg == pytest.approx(4 * cost.instance_hours)
    assert MODELS[kind](values | {"power": 8.0, "pue": 1.25}).energy_kwh is None


@given(values_of("service"))
@settings(max_examples=15, deadline=None)
def test_money_per_million_tokens_is_that_per_item_over_its_tokens(values) -> None:
    cost = tco.service(values)
    items = values["demand"] * 3600 * 730.5
    expected = cost.total / (items * values["tokens_per_item"]) * 1e6
    result = tco.per_million_tokens(cost, values["tokens_per_item"])
    assert result == pytest.approx(expected)


def simulate_hours(work, every, write, restart, rate, generator) -> float:
    """One run, event by event: failures strike work, writing and restarts alike."""
    clock, saved = 0.0, 0.0
    strikes = generator.exponential(1 / rate)
    while work - saved > 1e-9:
        segment = min(every, work - saved)
        if clock + segment + write <= strikes:
            clock += segment + write
            saved += segment
            continue
        clock, strikes = strikes, strikes + generator.exponential(1 / rate)
        while clock + restart > strikes:
            clock, strikes = strikes, strikes + generator.exponential(1 / rate)
        clock += restart
    return clock


@pytest.mark.parametrize(
    "work, every, write, restart, mean_between",
    [(40, 2, 0.1, 0.5, 24), (40, 4, 0.5, 2, 5), (10, 10, 0.2, 0, 20), (24, 1, 0.05, 3, 2)],
)
def test_expected_hours_are_those_of_a_simulation(
    work, every, write, restart, mean_between
) -> None:
    generator = np.random.default_rng(6)
    runs = [
        simulate_hours(work, every, write, restart, 1 / mean_between, generator)
        for _ in range(3000)
    ]
    expected = tco.expected_hours(work, every, write, restart, 1 / mean_between)
    error = np.std(runs, ddof=1) / math.sqrt(len(runs))
    assert abs(np.mean(runs) - expected) < 3 * error
    assert error < 0.02 * expected


@given(st.floats(1e-3, 1), st.floats(1, 5000), st.floats(0, 3))
@ENOUGH
def test_the_best_interval_is_the_least_of_expected_hours(write, mean_between, restart) -> None:
    best = tco.best_interval(write, 1 / mean_between)
    young = math.sqrt(2 * write * mean_between)

    def per_hour(every: float) -> float:
        return tco.expected_hours(1e6, every, write, restart, 1 / mean_between)

    result = minimize_scalar(
        per_hour, bounds=(young / 10, min(young * 10, 40 * mean_between)), method="bounded",
        options={"xatol": 1e-9},
    )  # fmt: skip
    assert per_hour(best) <= result.fun * (1 + 1e-12)
    assert best == pytest.approx(result.x, rel=1e-3)
    assert best < young


@pytest.mark.parametrize("bad", [-1, math.nan, math.inf, "1", True])
def test_expected_hours_refuses_what_is_no_number_of_hours(bad) -> None:
    good = {"work": 10, "every": 1, "write": 0.1, "restart": 0.5, "failures_per_hour": 0.1}
    named = {"every": "checkpoint_every", "write": "checkpoint_write"}
    for name in good:
        with pytest.raises(tco.InputError, match=named.get(name, name)):
            tco.expected_hours(**good | {name: bad})


def test_a_run_that_never_ends_is_refused() -> None:
    with pytest.raises(tco.InputError, match="practically never ends"):
        tco.expected_hours(1000, 100, 0.1, 0.5, 1)
    for write, rate in ((0.0, 1.0), (0.1, 0.0), (-1.0, 1.0), (0.1, math.nan)):
        with pytest.raises(tco.InputError, match="more than 0"):
            tco.best_interval(write, rate)
