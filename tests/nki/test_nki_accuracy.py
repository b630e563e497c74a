"""Published texts: where they lie, how older dialects run, and what the report says of them."""

import json
from dataclasses import replace
from pathlib import Path

import nki
import numpy as np
import pytest

from utils.cli.commands import nki_validation as command
from utils.nki.simulator.launch import run
from utils.nki.simulator.profile import profile
from utils.nki.validation import accuracy, measurements, report
from utils.nki.validation import published as texts
from utils.nki.validation.accuracy import Accuracy, Figures, Row, source_kind
from utils.nki.validation.estimates import SECONDS
from utils.nki.validation.published import (
    described_ids,
    failures,
    fitted_rows,
    order_reasons,
    published,
    repositories,
)

EVERY = published()
OLD = """
import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl

ROWS = 64

@nki.jit
def kernel(x, w, row):
    import neuronxcc.nki.language as nl
    out = nl.ndarray((2, 128, 256), dtype=np.float32, buffer=nl.shared_hbm)
    tiles = nl.ndarray((2, nl.par_dim(128), 256), dtype=np.float32, buffer=nl.sbuf)
    sums = nl.zeros((2, nl.par_dim(128), 256), dtype=np.float32, buffer=nl.psum)
    weights = nl.load(w)
    wide = nl.load(row).broadcast_to((128, 256))
    i, j = nl.arange(128)[:, None], nl.arange(256)[None, :]
    for n in nl.affine_range(2):
        tiles[n, i, j] = nl.load(x[n, i, j], mask=128 * n + i < 128 + ROWS)
        tiles[n, i, j] = nisa.tensor_scalar(
            data=tiles[n, i, j], op0=np.multiply, operand0=2.0, mask=128 * n + i < 128 + ROWS
        )
        for k in nl.affine_range(2):
            sums[n, i, j] += nisa.nc_matmul(
                weights[64 * k + nl.arange(64)[:, None], nl.arange(128)[None, :]],
                tiles[n, 64 * k + nl.arange(64)[:, None], j],
            ) if 128 * n + 64 * k < 128 + ROWS else nisa.nc_matmul(
                weights[nl.arange(64)[:, None], nl.arange(128)[None, :]],
                tiles[n, nl.arange(64)[:, None], j],
            )
        total = nl.copy(sums[n, i, j]) + wide
        nl.store(out[n, i, j], value=nl.exp(total * 0.001))
    return out
"""


def row(value: float, result: float, *, held_out: bool = True, name: str = "it", **changes) -> Row:
    fields = {"ladder": "stairs", "busy": ("tensor",), "value": value, "unit": "ms", **changes}
    it = replace(EVERY["gemm-0"], id=name, **fields)
    made = Figures(result, "tensor", 0, 0)
    return Row(it, held_out, "as published", Figures(2 * result, "dma", 0, 0), made)


def folder_with(tmp_path: Path, text: str) -> tuple[Path, texts.Published]:
    it = replace(
        EVERY["nkibench-silu"],
        inputs=("float32 2x128x256", "float32 128x128", "float32 1x256"),
        path="kernel.py",
    )
    place = tmp_path / it.repository.folder
    place.mkdir()
    (place / "kernel.py").write_text(text)
    return tmp_path, it


@pytest.mark.parametrize("it", EVERY.values(), ids=lambda it: it.id)
def test_a_published_row_is_complete(it: texts.Published) -> None:
    assert it.of in repositories() and len(it.repository.commit) == 40
    assert it.target in ("trn1", "trn2") and it.value > 0
    assert it.unit in SECONDS or (it.unit == "%" and it.quantity == "mfu")
    assert set(it.busy) <= {"tensor", "vector", "scalar", "gpsimd", "dma"}
    assert it.given() and it.path.endswith((".py", ".rst"))
    known = measurements().get(it.id)
    if known is not None:
        assert (known.value, known.unit, known.ladder) == (it.value, it.unit, it.ladder)


def test_every_measurement_says_on_which_text_its_estimate_rests() -> None:
    known = set(measurements())
    assert described_ids() <= known and set(failures()) <= known
    assert not described_ids() & set(EVERY) and not set(failures()) & set(EVERY)
    kinds = {source_kind(name) for name in known}
    assert kinds == {"published", "described", "rewrite"}


def test_halves_are_drawn_by_the_seed_and_a_text_is_drawn_whole(monkeypatch) -> None:
    half = fitted_rows()
    content = texts._content()
    assert {*content["suggested"], *content["constants"]} < half < set(EVERY)

    def texts_of(names) -> set:
        chosen = [EVERY[name] for name in names]
        return {(it.of, it.path, it.function, it.candidate, it.block) for it in chosen}

    held = set(EVERY) - half
    drawn = len(texts_of(EVERY)) // 2
    assert drawn <= len(texts_of(half)) <= drawn + len(content["constants"])
    assert not texts_of(half) & texts_of(held)
    monkeypatch.setitem(content["halves"], "seed", content["halves"]["seed"] + 1)
    assert fitted_rows() != half


def test_an_older_dialect_computes_what_it_says(tmp_path) -> None:
    folder, it = folder_with(tmp_path, OLD)
    kernel, text = texts.kernel_of(replace(it, set={"ROWS": 128}), folder)
    assert text == "as published, in an older dialect"
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 128, 256), np.float32)
    w, line = rng.standard_normal((128, 128), np.float32), np.ones((1, 256), np.float32)
    (result,) = [nki.simulate(kernel)(x, w, line)]
    sums = np.einsum("km,nkj->nmj", w, 2 * x)
    assert result == pytest.approx(np.exp((sums + 1) * 0.001), rel=1e-4)


def test_products_marked_as_transposes_go_through_the_array_once(tmp_path) -> None:
    text = OLD.replace(
        "tiles[n, 64 * k + nl.arange(64)[:, None], j],\n",
        "tiles[n, 64 * k + nl.arange(64)[:, None], j], is_transpose=True,\n",
    )
    text = text.replace(
        "tiles[n, nl.arange(64)[:, None], j],\n",
        "tiles[n, nl.arange(64)[:, None], j], is_moving_onezero=True,\n",
    )
    folder, it = folder_with(tmp_path, text)
    kernel, _ = texts.kernel_of(it, folder)
    program = run(kernel, tuple(it.given()), {}, values=False, target="trn1")
    products = [i for i in program.instructions if i.checked.spec.name == "nc_matmul"]
    assert [i.checked.cycles for i in products] == [256, 256, 256, 512], "known ones take two"
    assert products[0].args["moving"].dtype == nki.language.tfloat32


def test_masks_cut_transfers_and_constants_are_set(tmp_path) -> None:
    folder, it = folder_with(tmp_path, OLD)
    kernel, _ = texts.kernel_of(it, folder)
    counts = profile(kernel, target="trn1")(*it.given())
    assert counts.hbm_read == (128 + 64) * 256 * 4 + 128 * 128 * 4 + 256 * 4
    program = run(kernel, tuple(it.given()), {}, values=False, target="trn1")
    assert program.count("nc_matmul") == 4 and program.count("nc_stream_shuffle") == 4


def test_a_text_that_is_not_there_says_what_to_fetch(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match="git clone https://github.com/zhang677/AccelOpt"):
        texts.kernel_of(EVERY["nkibench-silu"], tmp_path)
    assert command.main(["--published", str(tmp_path), "--row", "nkibench-silu"]) == 1


def test_kernels_are_found_in_pages_and_traces(tmp_path) -> None:
    page = "Text\n\n.. code-block:: python\n\n   @nki.jit\n   def f(): pass\n\nMore.\n"
    assert texts._blocks(page) == ["@nki.jit\ndef f(): pass\n\n"]
    trace = "C(parent=C(parent=None, code='first'), code='second')"
    assert texts._candidates(trace) == ["first", "second"]


def test_whole_times_of_profiles_hold_what_passes_outside_of_the_kernel(tmp_path) -> None:
    folder, it = folder_with(tmp_path, OLD)
    whole, kernel = (
        accuracy.estimate(it, folder),
        accuracy.estimate(replace(it, total=False), folder),
    )
    assert it.outside == pytest.approx(13.3e-6) and kernel.measured.outside == 0
    for way in accuracy.WAYS:
        more = getattr(whole, way).value - getattr(kernel, way).value
        assert more == pytest.approx(it.outside / SECONDS[it.unit], abs=2e-5)


def test_errors_are_of_times_and_of_both_halves() -> None:
    result = Accuracy((row(10, 11), row(10, 7), row(10, 12, held_out=False)))
    assert result.errors("as_compiled", True) == pytest.approx([0.1, 0.3])
    assert result.errors("as_written", False) == pytest.approx([1.4])
    assert row(50, 40, unit="%").error("as_compiled") == pytest.approx(0.25), "a longer time"
    assert result.busiest("as_compiled", True) == (2, 2)
    assert result.busiest("as_written", True) == (0, 2)
    assert "as compiled, held out: 2 rows, median error 20.0%, worst 30.0% (it)" in repr(result)


def test_pairs_count_as_measured() -> None:
    rows = (row(1, 5, name="a"), row(2, 6, name="b"), row(3, 4, name="c"), row(3, 9, name="d"))
    assert Accuracy(rows).pairs("as_compiled") == (5, [("a", "c"), ("b", "c")])
    tied = (row(1, 5, name="a"), row(2, 5, name="b"), row(2, 5, name="c", ladder="other"))
    assert Accuracy(tied).pairs("as_compiled") == (1, [("a", "b")])
    shares = (row(50, 40, unit="%"), row(60, 50, unit="%"))
    assert Accuracy(shares).pairs("as_compiled") == (1, [])


def test_pairs_are_shown_all_and_without_those_that_are_close() -> None:
    rows = (
        row(1, 5, name="a"), row(1.05, 5, name="b", held_out=False),
        row(2, 4, name="c", held_out=False), row(2.2, 6, name="d"),
    )  # fmt: skip
    every, apart = Accuracy(rows).order_lines("as_compiled")
    assert every == (
        "as compiled: 3 of 6 pairs in order, 3 of 5 with a row held out; "
        "not: a and b; a and c; b and c"
    )
    assert apart == (
        "as compiled: 3 of 5 pairs measured more than 5% apart in order, 3 of 4 with a row held "
        "out; not: a and c; b and c"
    )
    assert every in repr(Accuracy(rows)) and apart in repr(Accuracy(rows))


def test_a_row_whose_measured_text_is_another_one_counts_nothing() -> None:
    other = row(10, 90, name="b", other_text="the source names another kernel")
    found = Accuracy((row(10, 11), other))
    assert found.errors("as_compiled", True) == pytest.approx([0.1])
    assert found.busiest("as_compiled", True) == (1, 1)
    assert found.pairs("as_compiled") == (0, []) and found.reasons() == []
    shown = repr(found)
    assert "b: not counted, the source names another kernel" in shown
    assert "not counted" in next(line for line in shown.splitlines() if line.startswith("b "))


def test_what_is_not_reached_is_said() -> None:
    assert Accuracy((row(10, 10),)).unmet() == []
    far = Accuracy((row(10, 20),)).unmet()
    assert far == ["median: 100.0%, aimed at at most 10%", "worst: 100.0%, aimed at at most 35%"]


def test_far_rows_come_with_a_reason() -> None:
    rows = (row(10, 20, note="the clock"), row(10, 30, name="b"), row(10, 11, name="c", note="no"))
    assert Accuracy(rows).reasons() == ["it: the clock", "b: why is not known"]
    recorded = accuracy.recorded().reasons()
    assert accuracy.UNKNOWN not in {text.partition(": ")[2] for text in recorded}


def test_pairs_that_are_not_in_order_come_with_a_reason() -> None:
    pair = {"gemm-0", "gemm-1"}
    rows = (row(10, 12, name="gemm-0"), row(11, 11, name="gemm-1"), row(12, 10, name="c"))
    first, others = Accuracy(rows).reasons()
    assert first == f"gemm-0 and gemm-1: {order_reasons()[frozenset(pair)]}"
    assert others == f"gemm-0 and c; gemm-1 and c: {accuracy.UNKNOWN}"
    recorded = accuracy.recorded().reasons()
    for rows_of, why in order_reasons().items():
        assert len({EVERY[name].ladder for name in rows_of}) == 1
        assert any(text.endswith(why) for text in recorded), "it explains a pair"


def test_a_row_that_does_not_fit_is_no_error_as_written() -> None:
    result = Accuracy((replace(row(10, 11), as_written=None),))
    assert result.errors("as_written", True) == []
    assert "as written these do not fit into the memories: it" in repr(result)


def test_records_say_which_text_ran(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(report, "FILE", tmp_path / "kept.json")
    made = row(20.99, 21, name="gemm-0")
    accuracy.record(Accuracy((made,)))
    entry = json.loads((tmp_path / "kept.json").read_text())["published"]["gemm-0"]
    assert entry["text"].startswith("ucb-bar/autocomp@dd26a5656bcd:examples/")
    with pytest.raises(LookupError, match="no estimate of gemm-1 is recorded; run python3"):
        accuracy.recorded([EVERY["gemm-0"], EVERY["gemm-1"]])
    (again,) = accuracy.recorded([EVERY["gemm-0"]]).rows
    assert again.as_compiled == made.as_compiled and again.as_written == made.as_written


def test_every_published_row_has_a_recorded_estimate(capsys) -> None:
    result = accuracy.recorded()
    assert len(result.rows) == len(EVERY)
    assert command.main(["--accuracy"]) == (1 if result.unmet() else 0)
    shown = capsys.readouterr().out
    assert "as compiled, held out" in shown and "pairs in order" in shown
