"""The models against what others published: comparisons, a training run, failures, checkpoints."""

import math

import numpy as np
import pytest

from tests.cost.tco_toy import toy
from tests.facts.test_costs_facts import COMPUTED, DISAGREES
from utils.cost import tco
from utils.cost.tco import cases
from utils.facts import figure

CHECKED = {name: cases.check(item) for name, item in cases.cases().items()}
COMPARED = {name: item for name, item in CHECKED.items() if item.comparison}


def test_every_case_has_one_of_four_verdicts_and_most_that_can_be_computed_follow() -> None:
    verdicts = [item.verdict for item in CHECKED.values()]
    every = {cases.FOLLOWS, cases.DIFFERS, cases.LACKS, cases.SILENT}
    assert set(verdicts) == every
    assert verdicts.count(cases.FOLLOWS) >= 8
    differing = {name for name, item in CHECKED.items() if item.verdict == cases.DIFFERS}
    assert differing == DISAGREES


@pytest.mark.parametrize("name", COMPARED)
def test_a_saving_is_that_of_prices_and_throughputs_alone(name: str) -> None:
    result = COMPARED[name]
    low, high = result.comparison.interval()
    assert low <= result.comparison.saving <= high or result.looked_up
    assert high - low < 0.15 * result.comparison.ratio or result.looked_up, "no range hides a case"
    if name in COMPUTED:
        assert result.comparison.saving == pytest.approx(COMPUTED[name], rel=1e-9)
        assert not result.looked_up
    for option, cost in result.comparison.best.items():
        side = getattr(result.case, option)
        assert cost.lines["work"] == pytest.approx(cost.total, rel=1e-12)
        if side.hours:
            assert cost.hours == pytest.approx(side.hours)


@pytest.mark.parametrize("name", sorted(DISAGREES | {"llama4-maverick-trn2-p5"}))
def test_a_case_that_does_not_follow_is_explained_in_its_data(name: str) -> None:
    result = CHECKED[name]
    assert result.otherwise == ("subject", "baseline"), "its costs are not those of its inputs"
    assert "stated cost is another" in result.why
    assert result.case.missing and result.case.differs and result.case.note


def test_stated_costs_follow_elsewhere() -> None:
    others = {name for name, item in COMPARED.items() if item.otherwise}
    assert others == DISAGREES | {"llama4-maverick-trn2-p5"}


@pytest.mark.parametrize("name", [n for n, item in CHECKED.items() if not item.comparison])
def test_a_case_without_enough_inputs_names_them(name: str) -> None:
    result = CHECKED[name]
    assert result.verdict == cases.LACKS and result.computed == "-"
    for path in result.lacking:
        option, what = path.split(".")
        side = getattr(result.case, option)
        assert getattr(side, what) is None and path in result.why
        assert what == "price" or side.hours is None
    with pytest.raises(tco.InputError) as caught:
        cases.scenario(result.case)
    assert caught.value.field == ", ".join(result.lacking)
    assert result.case.missing, "the data says what a reader would need"


def test_a_price_that_is_left_out_is_that_of_the_case_s_day() -> None:
    """AWS lowered the GPU's price between the paper and today: the paper's saving is the older."""
    paper = cases.case("ndtl-trn1-p4d")
    price = cases.scenario(paper).inputs["baseline.price"]
    today = figure("p4d.24xlarge.price.on_demand")
    assert price.value == price.high > price.low == today.number
    assert price.date != today.date
    now = cases.scenario(paper).with_values({"baseline.price": price.low})
    assert cases.check(paper).verdict == cases.FOLLOWS
    assert tco.compare(now).saving < paper.saving[1] - 0.2


def test_the_table_has_every_case_with_its_source() -> None:
    table = cases.table()
    text, marked = repr(table), table._repr_markdown_()
    assert len(text.splitlines()) == len(cases.cases()) + 1
    for name, item in cases.cases().items():
        assert name in text and item.source in text
        assert item.source in marked
    (row,) = cases.table("moe-trn1-p5en-spot").rows
    assert row.case.stated == "0.62 to 0.65" and row.verdict in repr(row)
    with pytest.raises(tco.InputError, match="'moe-trn1-p5en'.*one of moe-trn"):
        cases.table("moe-trn1-p5en")


# What is no comparison, but published with its inputs


@pytest.mark.parametrize("hours, minutes", [(24, 117), (6, 57), (0.25, 9.1)])
def test_the_best_interval_is_daly_s(hours: float, minutes: float) -> None:
    """Daly 2006, captions of figures 3 to 5: checkpoints of 5 minutes, one failure in so many
    hours; he rounds, and his solution is a series."""
    assert tco.best_interval(5 / 60, 1 / hours) * 60 == pytest.approx(minutes, rel=0.01)


@pytest.mark.parametrize("hours", [24, 6, 0.25])
def test_the_best_interval_is_daly_s_series(hours: float) -> None:
    """Daly 2006: sqrt(2 d M) (1 + x / 3 + x^2 / 9) - d with x = sqrt(d / 2 M)."""
    write = 5 / 60
    part = math.sqrt(write / (2 * hours))
    series = math.sqrt(2 * write * hours) * (1 + part / 3 + part**2 / 9) - write
    assert tco.best_interval(write, 1 / hours) == pytest.approx(series, rel=part**3)


def effective(write_s: float, restart_minutes: float) -> float:
    """Share of Llama 3's cluster time that trains, with the best interval for those two."""
    given = "failures.llama3_405b."
    rate = figure(given + "all").number / figure(given + "duration").to("h")
    every = tco.best_interval(write_s / 3600, rate)
    return 1000 / tco.expected_hours(1000, every, write_s / 3600, restart_minutes / 60, rate)


def test_the_effective_time_of_llama_3_follows_if_checkpoints_take_seconds() -> None:
    """Over 90 % with one interruption in three hours. How long a checkpoint and a restart took is
    not published: it follows with seconds and minutes, not with a minute and a quarter of an hour.
    """
    published = figure("failures.llama3_405b.effective_time").number
    generator = np.random.default_rng(0)
    writes, restarts = generator.uniform(2, 30, 200), generator.uniform(3, 20, 200)
    draws = [effective(write, restart) for write, restart in zip(writes, restarts, strict=True)]
    low, high = np.quantile(draws, [0.05, 0.95])
    assert low < published < high
    assert effective(10, 5) > published > effective(60, 15)
    assert effective(0.001, 0) == pytest.approx(1, abs=0.01)


def mpt_7b() -> tco.Scenario:
    """MosaicML's MPT-7B, https://www.databricks.com/blog/mpt-7b and the model's card: 1e12 tokens
    on 440 A100 of 40 GB in 9.5 days for about 200,000 USD. The throughput is the one that they
    publish for 8 GPUs; how it scales to 55 such servers, and what failures took, are assumed.
    """
    speed = 8 * figure("training.a100.mpt_7b_40gb").number
    server = {"units_per_second": speed, "price": figure("p4d.24xlarge.price.on_demand").number}
    return toy(
        a=server, b=server, work=1e12, instances=55.0,
        scaling=(0.85, 0.7, 1.0), checkpoint_every=(1.0, 0.5, 2.0),
        checkpoint_write=(0.02, 0.0, 0.05), restart=(0.5, 0.2, 1.0), failures=(1.4, 0.5, 12.0),
        startup=(1.0, 0.2, 4.0),
    )  # fmt: skip


def test_the_days_of_mpt_7b_follow_and_its_cost_lacks_the_price() -> None:
    scenario = mpt_7b()
    drawn = tco.sample(scenario)
    cost = scenario.cost("a", drawn)
    low, high = np.quantile(cost.hours / 24, [0.05, 0.95])
    assert low < 9.5 < high
    assert high / low < 1.4, "an interval that says something"
    # At the list price of a server on demand it costs more in every draw: what they paid for an
    # hour is the input that is missing.
    assert np.min(cost.total) > 200_000
