"""The timing model is held against published measurements, and the holding itself is right."""

import datetime
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from utils.cli.commands import nki_validation as command
from utils.nki import validation as nki_validation
from utils.nki.simulator.arrays import Shape
from utils.nki.simulator.launch import run
from utils.nki.validation import (
    CLASSES,
    Comparison,
    Estimate,
    Measurement,
    Report,
    compare,
    measurements,
    report,
    select,
    spearman,
)
from utils.nki.validation.estimates import QUANTITIES, SECONDS, kernel_of
from utils.nki.validation.measurements import FILE

ROOT = Path(__file__).resolve().parents[2]
EVERY = list(measurements().values())
every = pytest.mark.parametrize("it", EVERY, ids=lambda it: it.id)
ENGINES = {"tensor", "vector", "scalar", "gpsimd", "dma"}

IT = Measurement(
    id="it",
    kernel="exp.exp",
    inputs=("float32 4x96",),
    target="trn2",
    schedule="list",
    quantity="seconds",
    value=10.0,
    unit="us",
    kind="hard",
    source="dma-overview",
    where="here",
    busiest="tensor",
    active={"tensor": 99.9, "dma": 99.2, "vector": 98.0},
)


def against(result: float, engine: str = "tensor", **changes) -> Comparison:
    return Comparison(replace(IT, **changes), Estimate(result, engine, {engine: 99.0}))


@every
def test_a_measurement_is_complete(it: Measurement) -> None:
    assert it.kind in CLASSES and it.target in ("trn1", "trn2")
    assert it.schedule in ("list", "as written")
    assert it.quantity in QUANTITIES and it.value > 0
    assert it.unit in SECONDS or (it.unit == "%" and it.quantity in ("mfu", "rate"))
    assert it.where, "where on the page"
    assert set(it.active) <= ENGINES and it.busiest in {None, *ENGINES}
    assert set(it.hbm) in (set(), {"read", "written"})
    assert it.note or it.kind != "kept out", "says why it is not compared"


@every
def test_a_measurement_names_a_kernel_and_arrays_that_exist(it: Measurement) -> None:
    assert callable(kernel_of(it.kernel))
    assert all(math.prod(shape) > 0 for shape, _ in it.shapes())


def test_sources_are_addresses_with_a_day_and_all_are_used() -> None:
    sources = yaml.safe_load(FILE.read_text(encoding="utf-8"))["sources"]
    assert set(sources) == {it.source for it in EVERY}
    for source in sources.values():
        assert source["url"].startswith("https://") and type(source["date"]) is datetime.date


def test_names_are_unique_and_there_is_enough_of_each_class() -> None:
    entries = yaml.safe_load(FILE.read_text(encoding="utf-8"))["measurements"]
    assert len(entries) == len(EVERY)
    assert {it.kind for it in EVERY} == set(CLASSES)
    assert sum(it.kind == "generalise" for it in EVERY) >= 5


def test_spearman_counts_order_not_size() -> None:
    assert spearman([1, 2, 3], [1, 10, 1000]) == 1
    assert spearman([1, 2, 3], [3, 2, 1]) == -1
    assert spearman([1, 2, 2, 3], [1, 2, 2, 3]) == 1
    # Two neighbours swapped in six: 1 - 6 * 2 / (6 * 35).
    assert spearman([1, 2, 3, 4, 5, 6], [2, 1, 3, 4, 5, 6]) == pytest.approx(1 - 12 / 210)


@pytest.mark.parametrize(
    ("kind", "value", "holds", "verdict"),
    [
        ("hard", 10.4, True, "within 5%"),
        ("hard", 9.4, False, "off by more than 5%"),
        ("soft", 11.4, True, "within 15%"),
        ("soft", 8.4, False, "off by more than 15%"),
        ("bound", 10.0, True, "below"),
        ("bound", 10.1, False, "above the limit"),
        ("rank", 99.0, None, "see ladder"),
        ("generalise", 99.0, None, "not fitted"),
        ("kept out", 99.0, None, "not compared"),
    ],
)
def test_each_class_has_its_criterion(kind: str, value: float, holds, verdict: str) -> None:
    result = against(value, kind=kind)
    assert result.holds is holds and result.verdict == verdict
    assert result.error == pytest.approx(value / 10 - 1)


def test_engines_that_were_about_equally_busy_count_as_the_busiest() -> None:
    assert against(10, "dma").names_the_busiest is True
    assert against(10, "vector").names_the_busiest is False
    assert against(10, "vector", kind="generalise").names_the_busiest is None
    assert against(10, "vector", busiest=None).names_the_busiest is None


def test_a_report_says_what_is_not_met() -> None:
    good = Report((against(10), against(10, kind="generalise", value=20.0)))
    assert good.failures == []
    assert "hard, within 5%: 1 of 1; error 0.0% in the middle, 0.0% at most" in good.summary
    assert "never looked at when fitting: 1; error 50.0% in the middle, 50.0% at most" in (
        good.summary
    )
    bad = Report((against(12, "vector"),))
    assert bad.failures == [
        "it: +20.0%, off by more than 5%",
        "it: busiest is vector, published dma or tensor",
    ]
    assert "vector, published dma or tensor" in repr(bad)


def test_a_ladder_has_to_be_ranked_as_measured() -> None:
    def ladder(*estimates: float) -> Report:
        steps = [(1.0, "rank"), (2.0, "rank"), (3.0, "rank"), (2.5, "generalise")]
        return Report(
            tuple(
                against(result, ladder="stairs", value=value, kind=kind)
                for result, (value, kind) in zip(estimates, steps, strict=True)
            )
        )

    assert ladder(1, 4, 9, 0).ladders == {"stairs": 1}
    assert ladder(1, 9, 4, 5).failures == ["ladder stairs: correlation of ranks 0.50"]


def test_a_report_is_a_table_with_sources() -> None:
    shown = Report((against(10),))._repr_markdown_()
    assert "| [it](https://github.com/aws-neuron/" in shown
    assert "| 10 us | 10 us | +0.0% | hard | within 5% | tensor |" in shown
    assert "- busiest engine: 1 of 1" in shown


def test_rows_are_chosen_by_name_number_ladder_kernel_and_chip() -> None:
    assert {it.id for it in select("guide-hoisted")} == {"guide-hoisted"}
    assert {it.row for it in select("12")} == {12}
    assert len(select("gemm")) == 6
    assert {it.target for it in select(target="trn1")} == {"trn1"}
    with pytest.raises(LookupError, match="no measurement is 'cake' on trn1; there are guide-"):
        select("cake", "trn1")


@pytest.mark.parametrize("it", [it for it in EVERY if it.row in (6, 7)], ids=lambda it: it.id)
def test_the_smallest_kernels_are_estimated_as_well_as_claimed(it: Measurement) -> None:
    assert compare([it]).failures == []


@pytest.mark.parametrize("name", ["add-columns-1000", "add-columns-2000", "bench-transpose-matmul"])
def test_a_kernel_moves_the_bytes_that_the_profiler_counted(name: str) -> None:
    """Where the compiler spilled nothing: so our kernel fetches what the measured one did."""
    it = measurements()[name]
    inputs = tuple(Shape(*shape) for shape in it.shapes())
    program = run(kernel_of(it.kernel), inputs, it.arguments, values=False, target=it.target)
    moved = {"read": 0, "written": 0}
    for instruction in program.instructions:
        if instruction.checked.spec.name == "dma_copy":
            for name, way in (("src", "read"), ("dst", "written")):
                tensor = instruction.args[name]
                if not tensor.storage.on_chip:
                    moved[way] += tensor.size * tensor.dtype.itemsize
    assert moved == pytest.approx(it.hbm, rel=1e-3)


def test_the_rate_of_transfers_rises_with_the_length_of_rows() -> None:
    report = compare(select("transfer"))
    assert report.ladders["transfer"] >= nki_validation.LEAST_CORRELATION
    rates = [comparison.estimate.value for comparison in report.comparisons]
    assert max(rates) == 100 and min(rates) < 10


def test_the_best_measured_product_is_estimated_as_well_as_claimed() -> None:
    assert compare(select("pipeline-two-level")).failures == []


def test_the_command_prints_the_table_and_fails_if_a_criterion_does(capsys, monkeypatch) -> None:
    assert command.main(["--row", "exp-4-activation"]) == 0
    assert "hard, within 5%: 1 of 1" in capsys.readouterr().out
    monkeypatch.setattr(nki_validation, "compare", lambda *_, **__: Report((against(12),)))
    assert command.main(["--row", "exp-4-activation"]) == 1
    assert "not met:\n  it: +20.0%, off by more than 5%" in capsys.readouterr().out
    assert command.main(["--row", "cake"]) == 1
    assert "no measurement is 'cake'" in capsys.readouterr().err


def test_every_measurement_has_a_recorded_estimate() -> None:
    report = nki_validation.recorded()
    assert [comparison.measured.id for comparison in report.comparisons] == [it.id for it in EVERY]
    assert report.ladders and "hard, within 5%" in repr(report)


@pytest.mark.parametrize(
    "name", ["exp-4-all", "exp-128-all", "exp-4-activation", "pipeline-two-level"]
)
def test_what_is_recorded_is_what_is_estimated_now(name: str) -> None:
    it = measurements()[name]
    (kept,), (now,) = nki_validation.recorded([it]).comparisons, compare([it]).comparisons
    again = "the timing model has changed: run python3 course.py nki-validation --record"
    assert kept.estimate.value == pytest.approx(now.estimate.value, rel=2e-3), again
    assert kept.estimate.busiest == now.estimate.busiest, again


def test_recording_some_keeps_the_others(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(report, "FILE", tmp_path / "kept.json")
    with pytest.raises(LookupError, match="exp-4-all is recorded; run python3 course.py"):
        nki_validation.recorded([measurements()["exp-4-all"]])
    for name, value in (("exp-4-all", 1.23456), ("exp-128-all", 2.0), ("exp-4-all", 3.0)):
        made = Comparison(measurements()[name], Estimate(value, "scalar", {"dma": 0.0}))
        nki_validation.record(Report((made,)))
    result = nki_validation.recorded(measurements()[name] for name in ("exp-128-all", "exp-4-all"))
    assert [comparison.estimate.value for comparison in result.comparisons] == [2.0, 3.0]


def test_the_command_records_when_it_is_asked(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(report, "FILE", tmp_path / "kept.json")
    assert command.main(["--row", "exp-4-activation", "--record"]) == 0
    assert repr(nki_validation.recorded(select("exp-4-activation"))) in capsys.readouterr().out


def test_the_verb_is_there() -> None:
    asked = [sys.executable, ROOT / "course.py", "--inside", "nki-validation", "--help"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "--row" in done.stdout
