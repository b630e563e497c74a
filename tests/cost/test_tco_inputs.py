"""Inputs: any unit of the right kind, clear errors for all else, links that hold them, warnings."""

import datetime
import math
import re

import numpy as np
import pytest
from hypothesis import given as with_drawn
from hypothesis import settings
from hypothesis import strategies as st

from tests.cost.tco_toy import TODAY, entry, row_of, toy
from tests.cost.test_tco_independent import random_job, random_service
from utils import facts
from utils.cost import tco
from utils.cost.decision import judgements
from utils.cost.tco.inputs import parse
from utils.cost.tco.scenario import read
from utils.facts.records import content

MODELS = {"job": (tco.job, random_job(1)), "service": (tco.service, random_service(1))}


def refuses(result: str) -> pytest.RaisesExc:
    return pytest.raises(tco.InputError, match=re.escape(result))


# Units and currencies


@pytest.mark.parametrize(
    "name, unit, factor",
    [
        ("trainium.price", "USD/day", 24),
        ("trainium.price", "USD/s", 1 / 3600),
        ("trainium.price", "cUSD/h", None),
        ("trainium.peak", "PFLOPS", 1e-15),
        ("trainium.peak", "FLOP/h", 3600),
        ("trainium.weeks", "day", 7),
        ("startup", "min", 60),
        ("gpu.billing_step", "day", 1 / 24),
        ("storage", "TB", 1e-3),
        ("storage", "GiB", 1e9 / 2**30),
        ("storage_price", "USD/TB/month", 1e3),
        ("failures", "1/month", 1 / 12),
        ("pay", "USD/day", 1 / 7),
        ("restart", "s", 3600),
    ],
)
def test_an_input_may_be_given_in_any_unit_of_its_kind(name, unit, factor) -> None:
    scenario = tco.scenario("pretrain-70b")
    before = scenario.inputs[name]
    if factor is None:
        with refuses(f"{name} = {unit}: allowed is a unit such as {before.unit}"):
            scenario.with_inputs({name: before.scaled(1, unit)})
        return
    other = scenario.with_inputs({name: before.scaled(factor, unit)})
    assert other.inputs[name].unit == before.unit
    for end in ("low", "value", "high"):
        assert getattr(other.inputs[name], end) == pytest.approx(getattr(before, end), rel=1e-12)
    for option in scenario.options:
        total = scenario.cost(option).total
        assert other.cost(option).total == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize(
    "name, unit, allowed",
    [
        ("queue", "USD", "h"),
        ("queue", "GB", "h"),
        ("storage", "units", "GB"),
        ("runs", "GB", "runs"),
        ("utilisation", "MiB", "ratio"),
        ("a.price", "h", "USD/h"),
        ("a.price", "USD", "a unit such as USD/h"),
        ("a.price", "bananas", "USD/h"),
        ("work", "h", "units"),
        ("storage_price", "USD/h", "USD/GB/month"),
        ("utilisation", "USD/h", "ratio"),
        ("a.price", "kEUR/h", "USD/h"),
        ("a.price", "USD per hour", "USD/h"),
    ],
)
def test_a_unit_of_another_kind_is_refused(name, unit, allowed) -> None:
    scenario = toy()
    with refuses(f"{name} = {unit}") as caught:
        scenario.with_inputs({name: scenario.inputs[name].scaled(1, unit)})
    assert allowed in caught.value.allowed


def test_mixed_currencies_are_refused_and_both_are_named() -> None:
    price = row_of("price", 9.0) | {"unit": "EUR/h"}
    with refuses("a.price = EUR/h: allowed is a unit such as USD/h. A scenario has one currency"):
        toy(a={"price": price})
    # In euros throughout, no unit of the model but the currency changes.
    euros = toy(a={"price": (9.0, 8.0, 11.0)}).in_currency("EUR", 0.9)
    assert euros.inputs["a.price"].unit == "EUR/h"
    assert euros.cost("b").total == pytest.approx(0.9 * toy().cost("b").total)
    with refuses("a.price = USD/h: allowed is a unit such as EUR/h"):
        euros.with_inputs({"a.price": toy().inputs["a.price"]})
    with refuses("a.price = kUSD/h: allowed is a unit such as EUR/h"):
        euros.with_inputs({"a.price": toy().inputs["a.price"].scaled(0.001, "kUSD/h")})
    for currency in ("EURO", "eur", ""):
        with refuses(f"currency = {currency!r}: allowed is three capitals"):
            toy().in_currency(currency, 0.9)
    for rate in (0, -1, math.nan):
        with refuses("rate"):
            toy().in_currency("EUR", rate)


# Bad values, wherever they come in


@pytest.mark.parametrize(
    "kind, name, value, allowed",
    [
        ("job", "queue", -1.0, "queue = -1: allowed is 0 or more (h)"),
        ("job", "startup", -0.5, "startup = -0.5: allowed is 0 or more (h)"),
        ("job", "utilisation", 1.2, "utilisation = 1.2: allowed is more than 0 and at most 1"),
        ("job", "utilisation", 0, "utilisation = 0: allowed is more than 0 and at most 1 (ratio)"),
        ("job", "scaling", math.nan, "scaling = nan: allowed is more than 0 and at most 1"),
        ("job", "price", math.inf, "price = inf: allowed is 0 or more (USD/h)"),
        ("job", "price", "40", "price = '40': allowed is 0 or more (USD/h). Give a number"),
        ("job", "price", True, "price = True: allowed is 0 or more (USD/h). Give a number"),
        ("job", "price", None, "price = None: allowed is 0 or more (USD/h). Give a number"),
        ("job", "price", [1.0, "2"], "price = [1.0, '2']: allowed is 0 or more (USD/h)"),
        ("job", "runs", 0.5, "runs = 0.5: allowed is 1 or more (runs)"),
        ("job", "work", np.array([3.0, -2.0]), "work = -2: allowed is more than 0 (units)"),
        ("job", "discount", 1.01, "discount = 1.01: allowed is 0 or more and at most 1 (ratio)"),
        ("job", "checkpoint_every", 0, "checkpoint_every = 0: allowed is more than 0 (h)"),
        ("service", "load", 1.5, "load = 1.5: allowed is more than 0 and at most 1 (ratio)"),
        ("service", "demand", 0, "demand = 0: allowed is more than 0 (1/s)"),
        ("service", "peak_to_mean", 0.9, "peak_to_mean = 0.9: allowed is 1 or more (ratio)"),
        ("service", "autoscaled", -0.1, "autoscaled = -0.1: allowed is 0 or more and at most 1"),
        ("service", "months", math.nan, "months = nan: allowed is more than 0 (month)"),
    ],
)
def test_a_model_names_the_field_the_value_and_what_is_allowed(kind, name, value, allowed) -> None:
    model, good = MODELS[kind]
    model(good)
    with refuses(allowed) as caught:
        model(good | {name: value})
    assert caught.value.field == name


@pytest.mark.parametrize("kind", MODELS)
def test_every_field_has_limits_that_hold(kind) -> None:
    model, good = MODELS[kind]
    for name in tco.NEEDS[kind]:
        field = tco.FIELDS[name]
        for bad in (-1.0, math.nan, math.inf, "1", True, None, 1j):
            with pytest.raises(tco.InputError) as caught:
                model(good | {name: bad})
            assert caught.value.field == name and field.allowed in str(caught.value)
        with refuses("nothing: allowed is") as caught:
            model({other: value for other, value in good.items() if other != name})
        assert caught.value.field == name
    with refuses("price, runs = nothing" if kind == "job" else "months, price = nothing"):
        model({n: v for n, v in good.items() if n not in ("price", "runs", "months")})


def test_inputs_that_are_unknown_or_change_nothing_are_refused() -> None:
    job, good = MODELS["job"]
    with refuses("input = 'prise': allowed is one of price"):
        job(good | {"prise": 1.0})
    with refuses("demand, load = an input: allowed is none: a job does not use it"):
        job(good | {"load": 0.5, "demand": 1.0})
    with refuses("mfu = given with units_per_second: allowed is one or the other"):
        job(good | {"mfu": 0.5})
    service, good = MODELS["service"]
    with refuses("peak = an input: allowed is none: a service does not use it"):
        service(good | {"peak": 1e15})
    bare = {n: v for n, v in random_job(1).items() if n != "units_per_second"}
    with refuses("units_per_second (or flop_per_unit, mfu, peak) = nothing"):
        job(bare | {"peak": 1e15, "mfu": 0.4})


BAD_ENTRIES = {
    "a.queue = -1: allowed is 0 or more (h)": {"a": {"queue": -1.0}, "b": {"queue": 0.0}},
    "a.scaling = 1.5: allowed is more than 0": {"a": {"scaling": 1.5}, "b": {"scaling": 1.0}},
    "restart = -2": {"restart": (1.0, -2.0, 3.0)},
    "utilisation = 2: allowed is more than 0 and at most 1": {"utilisation": (0.5, 0.4, 2.0)},
    "queue: value = nan: allowed is between low and high": {"queue": math.nan},
    "queue: value = 3: allowed is between low and high: 4 to 5": {"queue": (3.0, 4.0, 5.0)},
    "a.price: value = 3: allowed is between low and high: 1 to": {"a": {"price": (3.0, 1.0, 2.0)}},
    "queue: value = '1': allowed is a number": {"queue": "1"},
    "queue: value = True: allowed is a number": {"queue": True},
    "queue: low = None: allowed is a number": {"queue": {**row_of("queue", 1.0), "low": None}},
    "a.pricee": {"a": {"pricee": {"value": 1.0, "unit": "USD/h", "note": "toy"}}},
    "queue = height: allowed is one of date": {"queue": {**row_of("queue", 1.0), "height": 2}},
    "queue = no value or no unit: allowed is both": {"queue": {"value": 1.0, "note": "toy"}},
    "queue: note = nothing": {"queue": {"value": 1.0, "unit": "h"}},
    "queue: source = nothing": {"queue": {**row_of("queue", 1.0), "status": "primary"}},
    "queue: status = 'x': allowed is one of": {"queue": {**row_of("queue", 1.0), "status": "x"}},
    "queue: value = '1': allowed is": {"queue": {"value": "1", "spread": 0.1, "unit": "h"}},
    "queue: figure = 'trn1.pric': allowed is one of": {"queue": {"figure": "trn1.pric"}},
}  # fmt: skip


@pytest.mark.parametrize("message", BAD_ENTRIES)
def test_a_scenario_names_the_path_the_value_and_what_is_allowed(message) -> None:
    expected = message.replace("a.pricee", "input = 'pricee': allowed is one of price")
    with pytest.raises(tco.InputError) as caught:
        read("toy", entry(**BAD_ENTRIES[message]))
    assert expected in str(caught.value)


def test_a_scenario_lacks_nothing_and_has_nothing_twice() -> None:
    written = entry()
    del written["shared"]["queue"]
    with refuses("a.queue = nothing: allowed is 0 or more (h). Every input is given"):
        read("toy", written)
    written = entry()
    del written["options"]["b"]["inputs"]["price"]
    with refuses("b.price = nothing: allowed is 0 or more (USD/h)"):
        read("toy", written)
    written = entry()
    written["shared"]["price"] = row_of("price", 3.0)
    with refuses("a.price = an input that is shared too: allowed is one or the other"):
        read("toy", written)
    for name, result in (("kind", "lottery"), ("currency", "Euro")):
        with refuses(f"{name} = '{result}'"):
            read("toy", entry() | {name: result})
    with refuses("options = none"):
        read("toy", entry() | {"options": {}})


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, "4", True, None])
def test_changes_are_checked_on_every_way_in(value) -> None:
    scenario = toy()
    for change in (scenario.with_values, lambda changes: scenario.cost("a", changes)):
        with refuses(f"a.price = {value!r}") as caught:
            change({"a.price": value})
        assert "allowed is 0 or more (USD/h)" in str(caught.value)
        with refuses("input = 'a.prise': allowed is one of a.price"):
            change({"a.prise": 1.0})
    with refuses("input = 'mfu': allowed is one of trainium.mfu, gpu.mfu"):
        tco.scenario("pretrain-70b").with_values({"mfu": 0.4})
    with refuses("option = 'c': allowed is one of a, b"):
        scenario.cost("c")
    with refuses("scenario = 'lora': allowed is one of lora-13b"):
        tco.scenario("lora")


def test_a_worked_scenario_stays_as_it_is_for_everybody() -> None:
    name, worked = next(iter(tco.scenarios().items()))
    option = worked.options["trainium"]
    for mapping in (tco.scenarios(), worked.shared, worked.options, option.inputs, worked.inputs):
        key = next(iter(mapping))
        with pytest.raises(TypeError, match="does not support item assignment"):
            mapping[key] = None
    assert tco.scenario(name) == read(name, content("tco_scenarios.yaml")[name])


def test_a_first_result_takes_the_port_and_one_run() -> None:
    job, hours = tco.scenario("pretrain-70b"), 7 * 24
    for option in job.options:
        run = job.cost(option).hours / hours
        assert job.weeks_to_result(option) == pytest.approx(
            job.inputs[f"{option}.weeks"].value + run
        )
        later = job.weeks_to_result(option, {f"{option}.weeks": np.array([0.0, 30.0])})
        assert later == pytest.approx([run, 30 + run])
    assert job.with_values({"runs": 1}).due_weeks == job.due_weeks == 24
    with pytest.raises(tco.InputError, match="'service': allowed is 'job'"):
        tco.scenario("chat-service").weeks_to_result("trainium")


def test_prices_of_what_is_not_there_are_refused() -> None:
    names = sorted({key.split(".price.")[0] for key in facts.figures() if ".price." in key})
    with refuses("instance = 'trn9.48xlarge': allowed is one of trn") as caught:
        tco.price_of("trn9.48xlarge", "on_demand")
    assert any(name in caught.value.allowed for name in names)
    with refuses("purchase = 'lease': allowed is one of on_demand, capacity_block"):
        tco.price_of(names[0], "lease")
    ways = "on_demand capacity_block savings_plan reserved spot owned".split()
    priced = {key for key, item in facts.figures().items() if item.value is not None}
    unpriced = [(n, w) for n in names for w in ways if f"{n}.price.{w}" not in priced]
    for name, way in unpriced:
        with refuses(f"price = none for {name}, {way}: allowed is") as caught:
            tco.price_of(name, way)
        assert "give your offer as an input" in str(caught.value)
    assert unpriced
    with refuses("figure = 'trn1.32xlarge.price'"):
        tco.quote("trn1.32xlarge.price")


def test_published_rows_span_the_range_and_name_the_chip() -> None:
    low, high = "training.trn1.gpt3_46b_mfu", "training.trn1.gpt3_175b_mfu"
    middle = "training.trn1.gpt3_23b_mfu"
    result = tco.quote(middle, rows={"Trainium1": [low, middle, high]})
    assert (result.low, result.value, result.high, result.chip) == (
        0.277, 0.2965, 0.3314, "Trainium1")  # fmt: skip
    assert result.at(0.3, tco.FIELDS["mfu"]).chip == "", "what somebody typed was measured nowhere"
    with refuses(f"rows = rows without the figure itself: allowed is {middle} among them"):
        tco.quote(middle, rows={"Trainium1": [low, high]})
    for name in ("lora-13b", "pretrain-70b"):
        for option, chip in (("trainium", "Trainium1"), ("gpu", "H100")):
            mfu = tco.scenario(name).inputs_of(option)["mfu"]
            values = [facts.figure(key).number for key, _ in mfu.rows]
            assert (mfu.low, mfu.high, mfu.chip) == (min(values), max(values), chip)


def test_engineers_have_one_pay() -> None:
    pays = {item.inputs["pay"] for item in tco.scenarios().values()}
    assert len(pays) == 1 and pays.pop().source == judgements.JUDGEMENTS["week_pay"].value
    one = toy(operations=10.0, pay=400.0).cost("a")
    assert one.lines["operations"] == 100.0


def test_other_servers_bring_price_peak_and_step_of_billing() -> None:
    base = tco.scenario("pretrain-70b")
    other = base.with_instance("gpu", "p6-b200.48xlarge", "on_demand")
    old, new = base.options["gpu"], other.options["gpu"]
    assert (new.context.instance, new.context.purchase, new.context.region) == (
        "p6-b200.48xlarge", "on_demand", "us-east-1")  # fmt: skip
    changed = {name for name, item in new.inputs.items() if item != old.inputs[name]}
    assert changed == {"price", "peak", "billing_step"} and new.inputs["billing_step"].value == 0
    assert other.options["trainium"] == base.options["trainium"]
    # A run of a day is bought by the day, one of a month by the week.
    lora = tco.scenario("lora-13b").with_instance("gpu", "p5.4xlarge", "on_demand")
    for scenario, step in ((lora, 24), (other, 168)):
        name = scenario.options["gpu"].context.instance
        back = scenario.with_instance("gpu", name, "capacity_block")
        assert back.inputs["gpu.billing_step"].value == step
    query = tco.to_query(other)
    assert tco.from_query(query) == other
    with refuses("price = none for trn2.48xlarge, on_demand: allowed is one of capacity_block"):
        base.with_instance("trainium", "trn2.48xlarge", "on_demand")
    with refuses("Its throughput was measured on this instance alone"):
        tco.scenario("chat-service").with_instance("gpu", "p5.48xlarge", "on_demand")
    warned = tco.warnings(other, "trainium", "gpu")
    assert [item.text for item in warned if item.kind == "generation"] == [
        "the speed of trainium was measured on Trainium1, and the price is that of Trainium2",
        "the speed of gpu was measured on H100, and the price is that of B200"]  # fmt: skip


def test_ways_to_buy_bill_what_they_reserve() -> None:
    base = tco.scenario("pretrain-70b")
    by_name = {way.name: way for way in tco.ways(base, "gpu")}
    demand, block, plan, year, years = by_name.values()
    # Two runs of six weeks on 64 servers; a year of 8,766 hours.
    assert (block.hours, block.money) == pytest.approx((129024, 129024 * 41.528))
    assert (block.up_front, block.bound, block.verdict) == (0.5, 42, "not cheaper")
    assert (demand.money, demand.up_front) == pytest.approx((demand.hours * 55.04, 0))
    assert (plan.price, plan.bound, plan.verdict) == (None, 42, "unknown")
    assert (year.hours, years.hours) == (64 * 8766, 3 * 64 * 8766)
    assert year.pays_below == pytest.approx(block.money / year.hours)
    # With 72 % off, 55.04 is 15.41 an hour: above what would pay, so that no rate of AWS's can.
    assert year.lowest == pytest.approx(15.4112) and year.verdict == "not cheaper"
    assert {way.name: way.verdict for way in tco.ways(base, "trainium")}[year.name] == "unknown"
    night = tco.ways(tco.scenario("overnight-batch"), "trainium")
    assert (night[-1].name, night[-1].price, night[-1].verdict) == (
        "reserved, term not named", 8.197, "cheaper")  # fmt: skip


def test_a_late_week_costs_reserved_servers_and_the_team() -> None:
    base = tco.scenario("pretrain-70b")
    team = 3 * base.inputs["pay"].value
    servers = 64 * 35.7608 * 168 * (1 + base.inputs["support"].value)
    assert tco.late_week(base, "trainium") == pytest.approx(servers + team)
    assert tco.late_week(base.with_instance("gpu", "p5.48xlarge", "on_demand"), "gpu") == team
    with refuses("kind = 'service'"):
        tco.late_week(tco.scenario("chat-service"), "gpu")


def test_a_quoted_figure_keeps_its_standing() -> None:
    key = next(k for k, f in facts.figures().items() if ".price.on_demand" in k and f.value)
    figure, result = facts.figure(key), tco.quote(key, spread=0.1)
    assert (result.source, result.status, result.date) == (key, figure.status, figure.date)
    assert (result.low, result.high) == pytest.approx((figure.number * 0.9, figure.number * 1.1))
    assert parse({"figure": key, "spread": 0.1}, "a.price") == result
    assert tco.price_of(key.split(".price.")[0], "on_demand", 0.1) == result


@with_drawn(st.floats(0.01, 100), st.sampled_from(["trainium.mfu", "starts", "queue", "work"]))
@settings(max_examples=60, deadline=None)
def test_a_changed_value_takes_its_range_along_within_what_is_allowed(factor, path) -> None:
    scenario = tco.scenario("pretrain-70b")
    field, before = scenario.field(path), scenario.inputs[path]
    value = max(min((before.value or 1.0) * factor, field.most), field.least)
    after = scenario.with_values({path: value}).inputs[path]
    assert after.value == value and after.low <= value <= after.high
    for end in (after.low, after.high):
        field.check(end)


def test_a_changed_value_has_no_source() -> None:
    """A price that somebody typed is not the one of the price list."""
    scenario = tco.scenario("pretrain-70b")
    before = scenario.inputs["gpu.price"]
    assert before.source and before.status != "assumption"
    assert scenario.with_values({"gpu.price": before.value}).inputs["gpu.price"] == before
    changed = scenario.with_values({"gpu.price": 2 * before.value})
    after = changed.inputs["gpu.price"]
    assert (after.status, after.source, after.date) == ("assumption", "", None)
    assert f"{before.value:g}, {before.status}" in after.note
    result = tco.warnings(changed, "trainium", "gpu")
    assert ("gpu.price",) in [item.paths for item in result if item.kind == "price"]


# Links


@with_drawn(st.data())
@settings(max_examples=40, deadline=None)
def test_a_link_holds_what_was_changed(data) -> None:
    name = data.draw(st.sampled_from(list(tco.scenarios())))
    scenario = tco.scenario(name)
    paths = data.draw(st.lists(st.sampled_from(list(scenario.inputs)), unique=True, max_size=6))
    changes = {}
    for path in paths:
        item, field = scenario.inputs[path], scenario.field(path)
        most = min(field.most, 4 * item.value or 1.0)
        least = max(field.least, 0.5 * item.value)
        changes[path] = data.draw(st.floats(least, most, allow_subnormal=False))
    # Seldom checkpoints of a run that fails often are refused: not what is asked here.
    changed = scenario.with_values(changes)
    back = tco.from_query(tco.to_query(changed))
    assert back.name == name
    for path, item in changed.inputs.items():
        assert back.inputs[path].value == pytest.approx(item.value, rel=1e-11)
        # The range of a link is the file's, moved along once.
        assert back.inputs[path].low <= back.inputs[path].value <= back.inputs[path].high
    for option in scenario.options:
        assert back.cost(option).total == pytest.approx(changed.cost(option).total, rel=1e-2)
    assert tco.from_query("?" + tco.to_query(back)).inputs == back.inputs


def test_a_link_of_nothing_is_the_first_scenario_and_bad_ones_are_refused() -> None:
    first = next(iter(tco.scenarios()))
    assert tco.from_query("").name == first
    assert tco.to_query(tco.scenario(first)) == f"scenario={first}"
    for query, message in {
        "scenario=none": "scenario = 'none'",
        "runs=many": "runs = 'many': allowed is 1 or more (runs). Give a number",
        "runs=": "runs = ''",
        "runs=0": "runs = 0: allowed is 1 or more (runs)",
        "runs=nan": "runs = nan",
        "trainium.mfu=1.2": "trainium.mfu = 1.2: allowed is more than 0 and at most 1 (ratio)",
        "trainium.mfo=0.2": "input = 'trainium.mfo': allowed is one of trainium.mfu",
    }.items():
        with refuses(message):
            tco.from_query(query)
    with refuses("currency = EUR: allowed is USD. A link holds no rate"):
        tco.to_query(tco.scenario(first).in_currency("EUR", 0.9))


# Warnings


def kinds(scenario: tco.Scenario, today: datetime.date = TODAY) -> list[str]:
    return [item.kind for item in tco.warnings(scenario, "a", "b", today)]


def in_context(**changes: str) -> tco.Scenario:
    written = entry()
    written["options"]["b"]["context"] |= changes
    return read("toy", written)


def test_equal_dated_measured_options_raise_no_warning() -> None:
    assert kinds(toy()) == []
    limit = datetime.timedelta(days=facts.LIMITS["price"])
    assert kinds(toy(), TODAY + limit) == []


@pytest.mark.parametrize(
    "kind, changes",
    [
        ("region", {"region": "elsewhere-2"}),
        ("purchase", {"purchase": "spot"}),
        ("precision", {"precision": "fp8"}),
        ("quality", {"quality": ""}),
        ("quality", {"quality": "another test"}),
    ],
)
def test_another_context_is_warned_of(kind, changes) -> None:
    (result,) = tco.warnings(in_context(**changes), "a", "b", TODAY)
    assert result.kind == kind
    assert "b" in result.text and str(result).startswith(f"{kind}: ")
    if changes.get("quality") != "":
        assert next(iter(changes.values())) in result.text


def price(**more) -> dict:
    return {"price": row_of("price", 10.0, source="https://example.org", **more)}


@pytest.mark.parametrize(
    "kind, a, path",
    [
        ("price", price(status="primary"), "a.price"),
        ("date", price(status="primary", date=TODAY - datetime.timedelta(days=40)), "a.price"),
        ("vendor claim", price(status="vendor-claim", date=TODAY), "a.price"),
        ("peak for measured", {"units_per_second": 1.0}, "a.units_per_second"),
        (
            "throughput of others",
            {"units_per_second": row_of("units_per_second", 1.0, status="derived", source="s")},
            "a.units_per_second",
        ),
    ],
)
def test_an_input_that_misleads_is_warned_of(kind, a, path) -> None:
    (result,) = tco.warnings(toy(a=a), "a", "b", TODAY)
    assert result.kind == kind and path in result.paths


def test_a_throughput_that_a_vendor_claims_is_not_called_measured() -> None:
    claimed = row_of("units_per_second", 1.0, status="vendor-claim", source="s", date=TODAY)
    texts = [w.text for w in tco.warnings(toy(a={"units_per_second": claimed}), "a", "b", TODAY)]
    assert "the throughput of a was claimed by others, on other work" in texts


def test_an_old_price_is_warned_of_for_each_option() -> None:
    late = TODAY + datetime.timedelta(days=facts.LIMITS["price"] + 1)
    result = tco.warnings(toy(), "a", "b", late)
    assert [item.kind for item in result] == ["old price", "old price"]
    assert [item.paths for item in result] == [("a.price",), ("b.price",)]
    assert f"{facts.LIMITS['price'] + 1} days ago" in result[0].text
    assert str(TODAY) in result[0].text


def test_work_that_differs_is_warned_of() -> None:
    result = tco.warnings(toy(a={"work": 3600.0}, b={"work": 1800.0}), "a", "b", TODAY)
    assert [item.kind for item in result] == ["work"]
    assert result[0].paths == ("a.work", "b.work")
    assert "3600 for a and 1800 for b" in result[0].text


def test_a_share_of_the_peak_is_no_measurement() -> None:
    written = entry()
    del written["options"]["a"]["inputs"]["units_per_second"]
    measured = {"status": "measured", "source": "https://example.org"}
    written["options"]["a"]["inputs"] |= {
        "peak": row_of("peak", 10.0),
        "flop_per_unit": row_of("flop_per_unit", 5.0),
        "mfu": row_of("mfu", 0.5, **measured),
    }
    assert kinds(read("toy", written)) == []
    written["options"]["a"]["inputs"]["mfu"] = row_of("mfu", 0.5)
    assert kinds(read("toy", written)) == ["peak for measured"]
    written["options"]["a"]["inputs"]["mfu"] = row_of("mfu", 1.0, **measured)
    assert kinds(read("toy", written)) == ["peak for measured"]


# What stands beside the models


def test_the_fastest_point_that_keeps_the_latency() -> None:
    points = [tco.Point(1, 0.1, 10.0), tco.Point(8, 0.4, 20.0), tco.Point(64, 2.1, 30.0)]
    assert tco.fastest_within(points, 0.4).batch == 8
    assert tco.fastest_within(points, 10).batch == 64
    for latency in (0.05, math.nan):
        with refuses(f"latency_s = {latency:g}: allowed is 0.1 or more (s)"):
            tco.fastest_within(points, latency)
    with refuses("latency_s = 1"):
        tco.fastest_within([], 1.0)


def test_owned_machines_cost_their_parts() -> None:
    good = {
        "purchase": 876.6 * 1000, "years": 5.0, "power_kw": 10.0, "pue": 1.25,
        "energy_price": 0.1, "upkeep": 0.05, "carbon_kg_per_kwh": 0.4, "residual": 0.5,
        "interest": 0.08, "space": 146.1, "staff": 8766.0,
    }  # fmt: skip
    result = tco.owning_cost(**good)
    assert result.capital_per_hour == pytest.approx(10.0)
    assert result.upkeep_per_hour == pytest.approx(5.0)
    assert (result.energy_per_hour, result.kwh_per_hour) == pytest.approx((1.25, 12.5))
    # 8 % of three quarters of 876,600 a year; 146.1 for each of 10 kW a month of 730.5 hours.
    assert result.interest_per_hour == pytest.approx(6.0)
    assert (result.space_per_hour, result.staff_per_hour) == pytest.approx((2.0, 1.0))
    assert result.price == pytest.approx(16.25 + 9.0)
    assert result.carbon_kg_per_hour == pytest.approx(5.0)
    for name in good:
        for bad in (-1.0, math.nan, math.inf):
            with refuses(f"{name} = {bad:g}: allowed is"):
                tco.owning_cost(**good | {name: bad})
        with refuses(f"{name} = '1': allowed is"):
            tco.owning_cost(**good | {name: "1"})
    for name, bad in (("pue", 0.9), ("residual", 1.1), ("years", 0.0)):
        with refuses(f"{name} = {bad:g}"):
            tco.owning_cost(**good | {name: bad})
