"""What a million tokens cost: identities, directions, a hand-made case, and published runs."""

import math
import re
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from utils.chip.hardware import machine
from utils.cli.commands import tokens as verb
from utils.cost.planner.architecture import architecture
from utils.facts import figures
from utils.facts.records import content
from utils.serving import published, tokens
from utils.serving.tokens import Level, Mix, Point, Replica, at_level, offline, part

CASES = content(tokens.CASES)
MODEL = architecture("llama-3.1-8b")
ASSUMED = tokens.assumptions("trainium2")
ONE = Replica(MODEL, machine("trainium2"), ASSUMED, usd_per_hour=2.0)

mixes = st.builds(Mix, st.integers(1, 8000), st.integers(2, 2000))
replicas = st.builds(
    lambda chips, usd: replace(ONE, machine=part(ONE.machine, chips), usd_per_hour=usd),
    st.sampled_from([1, 2, 4, 16]), st.floats(0.1, 50),
)  # fmt: skip
points = st.builds(Point, replicas, mixes, st.integers(1, 200), st.floats(0.05, 0.98))


def test_a_step_and_a_prompt_by_hand() -> None:
    """1,000 tokens read and 3 written by 2 slots of a replica that has no shares to lose."""
    plain = tokens.Assumptions(1.0, 1.0, 1000.0, 0.0, 8)
    point = Point(replace(ONE, assumed=plain, usd_per_hour=3600.0), Mix(1000, 3), 2, load=0.5)
    weights = 2 * (8030261248 - 128256 * 4096)
    step_s = (weights + 2 * 1002 * 131072) / 2.9e12 + 0.032
    matrices, scores = 8030261248 - 2 * 128256 * 4096 - 65 * 4096, 4 * 500 * 4096 * 32
    prompt_s = (1000 * (2 * matrices + scores) + 2 * 128256 * 4096) / 667e12 + 0.032
    assert point.step_s == pytest.approx(step_s) and point.prompt_s == pytest.approx(prompt_s)
    assert point.cycle_s == pytest.approx(2 * prompt_s + 2 * step_s)
    assert point.token_s == pytest.approx(step_s + prompt_s / 2)
    assert point.requests_per_s == pytest.approx(0.5 * 2 / point.cycle_s)
    # A dollar a second, half of it idle: a request costs two seconds' worth for each of its own.
    assert point.usd_per_request == pytest.approx(2 * (prompt_s + step_s))
    assert point.usd_per_million_in == pytest.approx(2 * prompt_s / 1000 * 1e6)
    assert point.usd_per_million_out == pytest.approx(2 * step_s / 3 * 1e6)
    text = 2 * 1003 * 2 * 32 * 8 * 128
    fits = (96 * 2**30 - 2 * 8030261248) / text
    assert point.replica.largest_batch(Mix(1000, 3)) == math.floor(fits)


@given(points)
def test_dollars_of_tokens_are_those_of_requests_and_of_hours(point: Point) -> None:
    mix = point.mix
    of_tokens = (
        mix.tokens_in * point.usd_per_million_in + mix.tokens_out * point.usd_per_million_out
    )
    assert of_tokens == pytest.approx(1e6 * point.usd_per_request)
    hour = point.requests_per_s * 3600 * point.usd_per_request
    assert hour == pytest.approx(point.replica.usd_per_hour)
    assert point.tokens_out_per_s == pytest.approx(point.requests_per_s * mix.tokens_out)


@given(points, st.floats(0.01, 0.9))
def test_more_load_costs_less_and_makes_the_first_token_later(point: Point, part: float) -> None:
    less = replace(point, load=point.load * part)
    assert less.usd_per_million_out > point.usd_per_million_out
    assert less.usd_per_million_in > point.usd_per_million_in
    assert less.first_s() <= point.first_s() < replace(point, load=1.0).first_s() == math.inf
    assert point.first_s(0.5) <= point.first_s(0.95) <= point.first_s(0.999)
    assert less.token_s == point.token_s


@given(points)
def test_more_slots_write_more_tokens_and_each_later(point: Point) -> None:
    more = replace(point, batch=point.batch + 1)
    assert more.tokens_out_per_s > point.tokens_out_per_s and more.token_s > point.token_s
    longer = replace(point, mix=Mix(point.mix.tokens_in + 100, point.mix.tokens_out))
    assert longer.requests_per_s < point.requests_per_s
    assert longer.usd_per_request > point.usd_per_request


@settings(max_examples=30)
@given(replicas, mixes, st.floats(0.05, 5), st.floats(0.005, 0.2), st.floats(0.2, 1))
def test_the_best_point_keeps_its_level_and_a_stricter_one_costs_more(
    replica, mix, first_s, token_s, stricter
) -> None:
    level = Level(first_s, token_s)
    best, batch = at_level(replica, mix, level), offline(replica, mix)
    hard = at_level(replica, mix, Level(first_s * stricter, token_s * stricter))
    assume(best)
    assert best.first_s(level.share) <= first_s and best.token_s <= token_s
    assert best.batch <= min(replica.largest_batch(mix), replica.assumed.slots)
    assert best.requests_per_s < batch.requests_per_s
    assert best.usd_per_request > batch.usd_per_request
    if hard:
        assert hard.requests_per_s <= best.requests_per_s


def test_the_menu_of_a_model_at_a_level() -> None:
    mix, level = Mix(1500, 250), Level(first_s=1.0, token_s=0.05)
    names = ["trn1.32xlarge", "trn2.48xlarge", "trn3-ultraserver-gen2", "p5.48xlarge"]
    offers = {offer.instance: offer for offer in tokens.menu("llama-3.1-70b", mix, level, names)}
    assert [*offers] == names
    for offer in offers.values():
        assert offer.replicas * offer.chips == machine(offer.instance).chips
        assert offer.online.token_s <= 0.05 and 0 < offer.saving < 1
        # A batch run pays its start back when it has saved that much time of all replicas.
        requests = offer.break_even_requests(0.5)
        saved = requests / offer.online.requests_per_s - requests / offer.batch.requests_per_s
        assert saved == pytest.approx(0.5 * 3600 * offer.replicas)
    assert "no price (capacity_block) is published" in str(offers["trn3-ultraserver-gen2"])
    priced = offers["trn2.48xlarge"].online.replica
    assert priced.usd_per_hour * 16 / priced.machine.chips == pytest.approx(35.7608)
    worse = tokens.menu("llama-3.1-70b", mix, level, ["p5.48xlarge"], how="worst")[0]
    better = tokens.menu("llama-3.1-70b", mix, level, ["p5.48xlarge"], how="best")[0]
    usd = [item.online.usd_per_request for item in (better, offers["p5.48xlarge"], worse)]
    assert usd == sorted(usd) and usd[2] > 2 * usd[0]
    none = tokens.menu("llama-3.1-405b", mix, level, ["trn1.32xlarge"])[0]
    assert str(none).endswith("not within this level") and none.saving is None
    assert none.break_even_requests(1) is None


def test_the_verb_shows_ranges_batches_and_every_error(capsys) -> None:
    level = ["--model=llama-3.1-70b", "--first=2", "--start=30"]
    assert verb.main(level) == 0
    text = capsys.readouterr().out
    last = r"^ +(\S+large) .* ([\d,]+)$"
    requests = {name: number.replace(",", "") for name, number in re.findall(last, text, re.M)}
    assert {"trn1.32xlarge", "trn2.48xlarge", "p5.48xlarge"} <= {*requests} and "no price" in text
    assert verb.main([*level, "--peak=1"]) == 0  # a steady load leaves a batch less to save
    steady = {name: number.replace(",", "")
              for name, number in re.findall(last, capsys.readouterr().out, re.M)}  # fmt: skip
    assert all(int(steady[name]) > int(requests[name]) > 0 for name in steady)
    assert verb.main(["--published"]) == 0
    assert capsys.readouterr().out == "\n".join(
        [*map(str, published.rows()), published.summary(), ""]
    )
    for wrong, message in (("--model=gpt-5", "no architecture"), ("--peak=0.5", "1 or more")):
        assert verb.main([wrong]) == 1 and message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Mix(0, 5), "1 token or more"),
        (lambda: Level(0, 1), "seconds are above 0"),
        (lambda: Point(ONE, Mix(1, 2), 0), "batch is 1 or more"),
        (lambda: Point(ONE, Mix(1, 2), 1, 1.1), "load above 0"),
        (lambda: replace(ASSUMED, memory=1.2), "shares are above 0"),
        (lambda: replace(ASSUMED, slots=0), "slots 1 or more"),
        (lambda: tokens.assumptions("h100", "nice"), "'value', 'best' or 'worst'"),
    ],
)
def test_what_makes_no_sense_is_refused(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


# Published runs


def test_every_published_figure_has_its_error_and_the_worst_is_named() -> None:
    rows = published.rows()
    printed = [
        (name, key)
        for name, case in CASES["cases"].items()
        for key in ("first_ms", "token_ms", "fact")
        if key in case
    ]
    assert len(rows) == len(printed) > 50 and all(row.source.startswith("https://") for row in rows)
    assert sum(row.chosen for row in rows) == 5
    named = {case.get("fact") for case in CASES["cases"].values()}
    known = {key for key, item in figures("inference.").items() if item.unit == "tokens/s"}
    mixtures = {key for key in known if "llama4" in key or "qwen3" in key}  # the model is dense
    assert named - {None} == known - mixtures
    gpu = next(row for row in rows if row.case == "h100-8b-even")
    assert gpu.chosen and abs(gpu.error) < 0.1  # as its assumption says
    held_out = [row.factor for row in rows if not row.chosen]
    assert sorted(held_out)[len(held_out) // 2] < 1.35
    assert "trn1-13b-even, first token, ms" in published.summary()
    assert "chosen after it" in str(next(row for row in rows if row.chosen))
    for name, key in printed:  # what is quoted is what is used
        quote = CASES["cases"][name].get("quote", "")
        if key != "fact":
            assert (
                f"{CASES['cases'][name][key]:.1f}" in quote
                or str(CASES["cases"][name][key]) in quote
            )


def test_assumptions_are_what_the_chosen_figures_give() -> None:
    """The shares of the peak, and the share of the bandwidth and the time of a layer, together."""
    cases = CASES["cases"]
    plain = tokens.Assumptions(1.0, 1.0, 0.0, 0.0, 1)

    def bare(name: str) -> Point:
        point = published.point(cases[name])
        return replace(point, replica=replace(point.replica, assumed=plain))

    steps = [bare("trn1-8b-write-alone").step_s, bare("trn1-70b-write-alone").step_s]
    seen = [
        cases[name]["token_ms"] / 1e3 for name in ("trn1-8b-write-alone", "trn1-70b-write-alone")
    ]
    # 32 layers and 80: step / share + layers * layer = seen
    share = (80 * steps[0] - 32 * steps[1]) / (80 * seen[0] - 32 * seen[1])
    layer_us = (seen[0] - steps[0] / share) / 32 * 1e6
    assert (round(share, 2), round(layer_us)) == (0.93, 163)
    shares = [
        bare(name).prompt_s / (cases[name]["first_ms"] / 1e3 - layers * layer_us / 1e6)
        for name, layers in (("trn1-8b-alone", 32), ("trn1-70b-alone", 80))
    ]
    assert [round(item, 2) for item in shares] == [0.14, 0.18]
    for family in CASES["inputs"].values():
        assert all(entry["low"] <= entry["value"] <= entry["high"] for entry in family.values())
