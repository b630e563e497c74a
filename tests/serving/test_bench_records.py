"""Records and their files, fidelity, money: values held to known ones, errors that help."""

import dataclasses
import datetime
import json
import math
from typing import get_args, get_origin, get_type_hints

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from utils.cost import tco
from utils.facts import Unknown, figure
from utils.serving import bench
from utils.serving.bench import environment

positive = st.floats(1e-9, 1e6)
words = st.text(min_size=1, max_size=12)


def build(kind: type, **known: st.SearchStrategy) -> st.SearchStrategy:
    """A strategy for a dataclass of the records; times are above 0."""
    return st.builds(
        kind,
        **{
            field.name: values(get_type_hints(kind)[field.name])
            for field in dataclasses.fields(kind)
        }
        | known,
    )


def values(kind: object) -> st.SearchStrategy:
    plain = {float: positive, int: st.integers(1, 10**6), bool: st.booleans(), str: words}
    if kind in plain:
        return plain[kind]
    if kind is type(None):
        return st.none()
    if kind == bench.Given:
        return st.builds(bench.Given, positive, words, words.filter(str.strip))
    if dataclasses.is_dataclass(kind):
        return build(kind)
    origin, inside = get_origin(kind), get_args(kind)
    if origin is tuple:
        return st.lists(values(inside[0]), min_size=1, max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(words, values(inside[1]), max_size=3)
    return st.one_of(*map(values, inside))


ROUND = st.lists(positive, min_size=1, max_size=3).map(tuple)
# A first call to each round.
RECORDS = build(bench.Record, rounds=st.tuples(ROUND, ROUND), first_s=st.tuples(positive, positive))


@settings(max_examples=150)
@given(RECORDS)
def test_a_record_survives_its_file(record: bench.Record) -> None:
    again = bench.from_json(bench.to_json(record))
    assert again == record
    # 1, 1.0 and True are equal, and a setting is one of them.
    assert [type(setting) for setting in again.settings.values()] == [
        type(setting) for setting in record.settings.values()
    ]


def record(**changes) -> bench.Record:
    where = environment.Environment(
        date="2026-11-22T10:00:00+00:00",
        kind="cpu",
        device="cpu",
        machine=None,
        cpu="a CPU",
        cores=2,
        threads=1,
        system="Linux 6",
        versions={"python": "3.11.7"},
        variables={},
        load=0.1,
        revision=None,
    )
    fields = {"what": "mlp", "settings": {"batch": 1}, "environment": where}
    fields |= {"rounds": ((0.1, 0.2),)} | changes
    return bench.Record(**({"first_s": (1.0,) * len(fields["rounds"])} | fields))


def test_a_value_that_json_does_not_have_is_kept() -> None:
    wrong = bench.fidelity([[1.0, 2.0]], [[1.0, math.nan]])
    text = bench.to_json(record(fidelity=wrong))
    assert '"max_difference": "inf"' in text
    assert bench.from_json(text).fidelity == wrong


def test_a_file_is_written_whole_and_read_again(tmp_path) -> None:
    path = tmp_path / "record.json"
    bench.save(record(), path)
    assert bench.load(path) == record()
    assert [item.name for item in tmp_path.iterdir()] == ["record.json"]


def changed(change) -> str:
    content = json.loads(bench.to_json(record()))
    change(content)
    return json.dumps(content)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "x.json is no JSON .*may be cut off"),
        (bench.to_json(record())[:200], "x.json is no JSON .*may be cut off"),
        ("[1, 2]", "is no record of a benchmark"),
        ('{"format": "other", "version": 2}', "is no record of a benchmark"),
        (changed(lambda c: c.update(version=3)), "has version 3, this course reads 2: update"),
        (changed(lambda c: c.update(version=0)), "has version 0, this course reads 2: record it"),
        (changed(lambda c: c.pop("record")), "Expected `object`, got `null`"),
        (changed(lambda c: c["record"].pop("rounds")), "missing required field `rounds`"),
        (changed(lambda c: c["record"].update(extra=1)), "has other fields than a record: 'extra'"),
        (
            changed(lambda c: c["record"]["environment"].update(more=1)),
            "a record: 'more'; record it",
        ),
        (changed(lambda c: c["record"].pop("rates")), "has other fields than a record: 'rates'"),
        (
            changed(lambda c: c["record"]["rounds"][0].append("0.3")),
            r"Expected `float`, got `str` - at `\$.rounds\[0\]\[2\]`; record it anew",
        ),
        (
            changed(lambda c: c["record"]["rounds"][0].append(True)),
            r"Expected `float`, got `bool` - at `\$.rounds\[0\]\[2\]`",
        ),
        (
            changed(lambda c: c["record"]["environment"].update(cores=2.0)),
            r"Expected `int`, got `float` - at `\$.environment.cores`",
        ),
        (
            changed(lambda c: c["record"].update(cold={"process_s": 1})),
            r"missing required field `import_s` - at `\$.cold`",
        ),
        (changed(lambda c: c["record"].update(rounds=[])), "rounds: at least one round"),
        (changed(lambda c: c["record"]["rounds"][0].append(-1)), "a time is not above 0 s"),
        (changed(lambda c: c["record"]["rounds"][0].append(math.inf)), "above 0 s and finite"),
        (changed(lambda c: c["record"]["first_s"].append(1)), "first_s: 2 for 1 rounds"),
    ],
)
def test_what_is_no_record_is_refused_with_its_place(text: str, says: str) -> None:
    with pytest.raises(bench.Unreadable, match=says):
        bench.from_json(text, "x.json")


def test_a_missing_or_binary_file_is_unreadable(tmp_path) -> None:
    path = tmp_path / "record.json"
    with pytest.raises(bench.Unreadable, match="cannot be read"):
        bench.load(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(bench.Unreadable, match="cannot be read"):
        bench.load(path)


def test_the_environment_says_what_is_here(monkeypatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_a=1")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "is nobody's business")
    moment = datetime.datetime(
        2026, 11, 22, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=2))
    )
    result = environment.here("xla", moment)
    assert result.date == "2026-11-22T10:00:00+00:00"
    assert (
        result.versions["torch"] == torch.__version__.partition("+")[0] or "+" in torch.__version__
    )
    assert {"python", "torch", "torch-xla", "numpy"} <= set(result.versions)
    assert result.cores >= 1 and result.threads >= 1 and result.cpu
    assert environment.here("cpu").device == "cpu"
    assert result.variables["XLA_FLAGS"] == "--xla_a=1"
    assert not [name for name in result.variables if name.startswith("AWS")]
    assert result.load >= 0


@pytest.mark.parametrize(("load", "warned"), [(0.3, False), (2.0, False), (2.1, True)])
def test_a_busy_machine_is_told(load: float, warned: bool) -> None:
    where = dataclasses.replace(record().environment, load=load)
    assert ("CAUTION: other programs" in str(record(environment=where))) is warned


def test_money_says_at_which_rate_and_a_missing_part_why() -> None:
    rates = tuple(bench.Rate(item, 1, 1, 24, 2.0, (0.1,) * 24) for item in (1, 4))
    bill = bench.usd_per_million(48, bench.Given(1, "USD/h", "a bill"))
    text = str(record(rates=rates, usd_per_million=bill, missing={"cold": "no time"}))
    assert "at the highest rate, which a queue of users never keeps up: batch 4, 1 under" in text
    assert "throughput of a few calls (24 or more)" in text
    assert text.endswith("not measured, cold: no time")


# Fidelity


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(2, 9), st.floats(0, 20))
def test_kl_is_scipys_entropy_of_the_probabilities(seed, rows, classes, spread) -> None:
    a, b = np.random.default_rng(seed).normal(0, spread, (2, rows, classes))
    p, q = (np.exp(item) / np.exp(item).sum(-1, keepdims=True) for item in (a, b))
    expected = stats.entropy(p, q, axis=-1)
    result = bench.fidelity(a, b)
    assert result.kl == pytest.approx(expected.mean(), rel=1e-6, abs=1e-12)
    assert result.kl_max == pytest.approx(expected.max(), rel=1e-6, abs=1e-12)
    assert result.max_difference == np.abs(a - b).max()
    assert result.top1_agreement == (a.argmax(-1) == b.argmax(-1)).mean()


def test_a_constant_added_to_a_row_changes_no_probability() -> None:
    logits = np.random.default_rng(0).normal(size=(3, 5))
    result = bench.fidelity(logits, logits + [[1.0], [-2.0], [0.5]])
    assert result.max_difference == pytest.approx(2) and result.kl_max < 1e-12
    assert result.top1_agreement == 1 and not result.bit_exact


def test_one_bad_row_is_seen_in_the_worst_and_not_in_the_mean() -> None:
    logits = np.zeros((1000, 4))
    logits[:, 0] = 5
    wrong = logits.copy()
    wrong[17] = wrong[17, ::-1]
    result = bench.fidelity(logits, wrong)
    assert result.kl < 0.01 < 4 < result.kl_max
    assert result.top1_agreement == 0.999


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_candidate_that_is_no_number_is_as_far_as_can_be(bad: float) -> None:
    result = bench.fidelity([[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0, bad]])
    assert (result.max_difference, result.kl_max, result.top1_agreement) == (
        math.inf,
        math.inf,
        0.5,
    )


def test_masked_classes_agree_where_both_are_masked() -> None:
    masked = [[1.0, -math.inf, 2.0]]
    assert dataclasses.astuple(bench.fidelity(masked, masked)) == (1, 0, 0, 0, 1, True)
    open_ = bench.fidelity(masked, [[1.0, -5.0, 2.0]])
    assert open_.max_difference == math.inf and 0 < open_.kl < 0.01
    closed = bench.fidelity([[1.0, -5.0, 2.0]], masked)
    assert closed.kl == math.inf


def test_bits_are_those_of_the_type() -> None:
    logits = torch.tensor([[1.0, 2.0]])
    assert not bench.fidelity(logits, logits.double()).bit_exact
    assert not bench.fidelity(torch.zeros(1, 2), -torch.zeros(1, 2)).bit_exact
    half = logits.bfloat16()
    assert bench.fidelity(half, half.clone()).bit_exact


@pytest.mark.parametrize(
    ("reference", "candidate", "says"),
    [
        ([[1.0, 2.0]], [[1.0], [2.0]], r"shape \(1, 2\) and the candidate \(2, 1\)"),
        ([], [], "there are no logits"),
        ([[math.nan, 1.0]], [[1.0, 1.0]], "the reference has a row that is no number"),
        ([[-math.inf, -math.inf]], [[1.0, 1.0]], "the reference has a row that is no number"),
    ],
)
def test_what_cannot_be_compared_is_refused(reference, candidate, says) -> None:
    with pytest.raises(ValueError, match=says):
        bench.fidelity(reference, candidate)


# Money and energy


@given(st.floats(1e-3, 1e6), st.floats(0, 1e3), st.floats(0.05, 1))
def test_money_is_price_over_what_an_hour_yields(rate: float, price: float, load: float) -> None:
    result = bench.usd_per_million(rate, bench.Given(price, "USD/h", "a bill"), load)
    assert result.value == pytest.approx(price / (rate * load * 3600) * 1e6, rel=1e-9)
    assert (result.unit, result.source) == ("USD/million", "price: a bill")


def test_a_price_and_a_power_of_the_facts_say_so() -> None:
    price = figure("trn1.2xlarge.price.on_demand")
    result = bench.usd_per_million(10, price)
    assert result.value == pytest.approx(price.number / 36000 * 1e6)
    assert price.key in result.source and price.status in result.source
    estimate = figure("trainium2.power")
    energy = bench.joules_per_query(10, estimate)
    assert energy.value == pytest.approx(estimate.number / 10)
    assert "third-party-estimate" in energy.source
    in_kilowatts = bench.Given(0.5, "kW", "meter at the socket")
    assert bench.joules_per_query(50, in_kilowatts).value == pytest.approx(10)


def test_nothing_is_invented() -> None:
    with pytest.raises(ValueError, match="500 has no source: give a figure"):
        bench.joules_per_query(10, 500)
    with pytest.raises(ValueError, match="has no source: say where"):
        bench.Given(500, "W", " ")
    with pytest.raises(Unknown, match="is not known"):
        bench.joules_per_query(10, figure("trainium1.power"))
    with pytest.raises(ValueError, match="cannot be given in W"):
        bench.joules_per_query(10, bench.Given(3, "USD/h", "a bill"))


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan])
def test_a_throughput_of_nothing_has_no_price(rate: float) -> None:
    with pytest.raises(tco.InputError):
        bench.usd_per_million(rate, bench.Given(1, "USD/h", "a bill"))
    with pytest.raises(ValueError, match="above 0"):
        bench.joules_per_query(rate, bench.Given(1, "W", "a meter"))
