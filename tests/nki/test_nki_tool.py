"""The command `nki`: what it says, what it refuses, and with which exit status."""

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.browser import launch, violations
from utils.nki.simulator import instructions
from utils.nki.simulator.arrays import Shape
from utils.nki.simulator.table import TABLE
from utils.nki.tool import close, figures, page
from utils.nki.tool.__main__ import main
from utils.nki.tool.asked import shape_of, shape_text
from utils.nki.tool.failures import Refused

FILE = Path(__file__).with_name("kernels_for_tool.py")
SHAPE = ("--shape", "128x512:bfloat16")
assert instructions


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of the command."""
    status = main([str(word) for word in words])
    return status, *capsys.readouterr()


def test_a_profile_is_text_a_trace_and_a_record(capsys, tmp_path) -> None:
    trace, record = tmp_path / "t.json", tmp_path / "r.json"
    status, out, _ = run(
        capsys, "profile", f"{FILE}::scaled", *SHAPE, "--arg", "width=256",
        "--perfetto", trace, "--record", record,
    )  # fmt: skip
    assert status == 0 and "scaled: an estimate" in out and "as compiled:" in out
    assert json.loads(trace.read_text())["traceEvents"]
    kept = figures.read_figures(record)
    assert kept.shapes == ["128x512:bfloat16"] and kept.arguments == {"width": "256"}
    assert kept.hbm_read_bytes == kept.hbm_written_bytes == 128 * 512 * 2
    assert kept.instructions["dma dma_copy"] == 4


@pytest.mark.parametrize(("words", "status", "text"), [
    (["profile", "nowhere.py::k"], 2, "there is no file 'nowhere.py'"),
    (["profile", f"{FILE}"], 2, "write FILE::KERNEL"),
    (["profile", f"{FILE}::cake"], 2, "has no cake; its kernels: scaled, wide_is_wrong"),
    (["profile", f"{FILE}::scaled"], 1, "missing a required argument: 'x'"),
    (["profile", f"{FILE}::scaled", "--shape", "200x512"], 1, "128"),
    (["profile", f"{FILE}::without_end", "--shape", "4x4", "--limit", "0.3"], 1, "after 0.3 s"),
    (["profile", f"{FILE}::ends_the_process", "--shape", "4x4", "--arg", "how=2"], 1,
     f"raised ZeroDivisionError: how is 2 (at {FILE}:"),
    (["check", f"{FILE}", *SHAPE], 2, "shapes are for one kernel"),
    (["compare", f"{FILE}::scaled", "r.json"], 2, "not one of each"),
    (["compare", "r.json", "r.json"], 2, "no record of nki profile --record"),
    (["tune", f"{FILE}::scaled", "--param", "a=1", "--param", "a=2"], 2, "twice"),
    (["measure", "--read", f"{FILE}"], 2, "no record of nki measure"),
    ([], 2, ""),
])  # fmt: skip
def test_what_cannot_be_done_is_said_with_a_status(
    words, status, text, capsys, tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result, _, err = run(capsys, *words)
    assert result == status and text in err, err


def test_a_wrong_or_missing_shape_says_how_to_write_one(capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(capsys, "profile", f"{FILE}::scaled", "--shape", "4xx")
    assert "'4xx' is no shape; write sizes and a type" in capsys.readouterr().err
    status, _, err = run(capsys, "profile", f"{FILE}::scaled")
    assert status == 1 and "missing a required argument: 'x'" in err
    assert "--shape gives an array" in err


@pytest.mark.parametrize("text", ["", "x", "0x4", "4x", "4x-1", "4x4:int", "4 x 4", "4x4:"])
def test_a_shape_that_is_none_is_refused(text: str) -> None:
    if text == "4x4:":
        assert shape_of(text) == Shape((4, 4))
        return
    with pytest.raises(Refused, match="shape|data type"):
        shape_of(text)


@given(
    st.lists(st.integers(1, 9999), min_size=1, max_size=5),
    st.sampled_from(("float32", "bfloat16", "int8", "float8_e4m3")),
)
def test_a_shape_is_read_as_it_is_written(sizes: list[int], dtype: str) -> None:
    shape = Shape(tuple(sizes), dtype)
    assert shape_of(shape_text(shape)) == shape


@pytest.mark.parametrize(("text", "status", "message"), [
    ("def f(:\n", 2, ":1 is not valid Python"),
    ("import nki\n@nki.jit\ndef k(x, s={}): ...\n", 1, ":3: compiles to something else"),
    ("x = 1\n", 0, "nothing found"),
    ("raise OSError('at import')\n", 1, "OSError: at import"),
    ("\0", 2, "not valid Python"),
])  # fmt: skip
def test_a_file_is_checked_with_lines(text, status, message, capsys, tmp_path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(text)
    what = f"{file}::k" if "raise" in text else file
    result, out, err = run(capsys, "check", what)
    assert result == status and message in out + err


def test_a_check_runs_a_kernel_under_all_rules(capsys) -> None:
    status, out, _ = run(capsys, "check", f"{FILE}::scaled", *SHAPE)
    assert "scaled: ran under all rules" in out
    status, out, _ = run(capsys, "check", f"{FILE}::scaled", *SHAPE, "--arg", "width=300")
    assert status == 1 and "Fix:" in out and f"{FILE}:" in out


def test_an_older_version_has_its_rules(capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("COURSE_NKI_API", "0.7")  # put back afterwards
    file = tmp_path / "kernel.py"
    file.write_text(
        "import nki\nimport nki.language as nl\n\n\n@nki.jit\ndef kernel(x):\n"
        "    for i in nl.affine_range(2):\n        assert x is not None\n    return x\n"
    )
    status, out, _ = run(capsys, "check", file)
    assert status == 1 and "under a name that is deprecated" in out and "is not None" not in out
    status, out, _ = run(capsys, "check", file, "--api", "0.6")
    assert status == 1 and "deprecated" not in out and "is not None" in out
    with pytest.raises(SystemExit):
        run(capsys, "--api", "0.9", "check", file)


def test_two_kernels_are_compared_by_value_time_and_traffic(capsys, tmp_path) -> None:
    pair = (f"{FILE}::scaled", f"{FILE}::wide_is_wrong")
    status, out, _ = run(capsys, "compare", *pair, *SHAPE)
    assert status == 0 and "values: equal" in out and "1.000" in out
    status, out, _ = run(capsys, "compare", *pair, *SHAPE, "--arg", "width=512")
    assert status == 1 and "values: different" in out and "elements are off" in out


def test_two_records_are_compared(capsys, tmp_path) -> None:
    for width in (128, 512):
        run(
            capsys, "profile", f"{FILE}::scaled", *SHAPE, "--arg", f"width={width}",
            "--record", tmp_path / f"{width}.json",
        )  # fmt: skip
    status, out, _ = run(capsys, "compare", tmp_path / "128.json", tmp_path / "512.json")
    assert status == 0 and "0.250" in out and "values: not compared" in out
    text = (tmp_path / "128.json").read_text()
    (tmp_path / "bad.json").write_text(text.replace("uncertainty", "certainty"))
    status, _, err = run(capsys, "compare", tmp_path / "bad.json", tmp_path / "512.json")
    assert status == 2 and "certainty" in err


def test_the_reference_has_every_instruction_and_every_published_row(capsys, tmp_path) -> None:
    out = tmp_path / "reference.md"
    assert run(capsys, "docs", out)[0] == 0
    text = out.read_text()
    for name, spec in TABLE.items():
        assert f"\n## {name}\n" in text and spec.cost_source in text
    assert "| measurement |" in text


@settings(max_examples=25)
@given(
    st.sampled_from(("float32", "bfloat16", "float16")),
    st.integers(1, 512),
    st.integers(0, 2**32 - 1),
)
def test_a_rounded_product_is_close_and_a_wrong_element_is_not(dtype, depth, seed) -> None:
    rng = np.random.default_rng(seed)
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    left = rng.standard_normal((16, depth)).astype(kind)
    right = rng.standard_normal((depth, 24)).astype(kind)
    exact = left.astype(np.float64) @ right.astype(np.float64)
    actual = (left.astype(np.float32) @ right.astype(np.float32)).astype(kind)
    assert close.differences(actual, exact, dtype, depth) == ""
    actual[3, 5] += np.sqrt(np.mean(exact**2)).astype(kind)
    assert "the worst at [3, 5]" in close.differences(actual, exact, dtype, depth)


def test_what_no_tolerance_may_hide() -> None:
    ones = np.ones((2, 3), np.float32)
    assert "shape (2, 3), expected (3, 2)" in close.differences(ones, ones.T)
    assert "1 of 6" in close.differences(ones, np.where(np.eye(2, 3, 2) > 0, np.nan, ones))
    assert close.differences(ones * np.inf, ones * np.inf) == ""
    assert "6 of 6" in close.differences(ones * np.inf, -ones * np.inf)
    whole = np.arange(6, dtype=np.int32)
    assert "6 of 6" in close.differences(whole + 1, whole)
    with pytest.raises(AssertionError, match="allowed is"):
        close.nki_close(ones, 1.001 * ones)


def test_upgrade_is_a_command_with_options_of_its_own(capsys, tmp_path) -> None:
    file = tmp_path / "k.py"
    file.write_text("import neuronxcc.nki as nki\n")
    assert main(["upgrade", "--write", str(file)]) == 0 and file.read_text() == "import nki\n"


def test_a_page_joins_what_cannot_be_seen_and_escapes_what_a_kernel_says() -> None:
    many = [(i / 1e5, i / 1e5 + 5e-6, "copy", "k.py:1") for i in range(100_000)]
    bars = page._joined(many, 1.0)
    assert len(bars) <= page.MOST_BARS and sum(bar[3] for bar in bars) == len(many)
    assert bars[0][0] == 0 and bars[-1][1] == many[-1][1]


def test_a_page_is_whole_in_a_browser(capsys, tmp_path) -> None:
    """At two widths, light and dark, by keyboard, without a request to anywhere."""
    source = tmp_path / "k.py"
    text = FILE.read_text().replace("op0=nl.multiply,", "op0=nl.multiply, name='<b>&',", 1)
    source.write_text(text)
    out = tmp_path / "p.html"
    assert run(capsys, "profile", f"{source}::scaled", *SHAPE, "--html", out)[0] == 0
    assert "<b>&" not in out.read_text()
    with launch() as browser:
        for width, scheme in ((390, "light"), (1280, "dark")):
            context = browser.new_context(
                viewport={"width": width, "height": 900}, color_scheme=scheme
            )
            shown, errors, asked = context.new_page(), [], []
            shown.on("pageerror", lambda error, errors=errors: errors.append(str(error)))
            shown.on("request", lambda request, asked=asked: asked.append(request.url))
            shown.goto(out.as_uri())
            before = shown.locator("#chart rect").count()
            shown.focus("#chart")
            for key in ("ArrowRight", "ArrowDown", "+"):
                shown.keyboard.press(key)
            assert "DMA: dma_copy, from" in shown.text_content("#said")
            shown.keyboard.press("ArrowUp")
            assert "Vector Engine: <b>&" in shown.text_content("#said")
            shown.keyboard.press("0")
            assert shown.locator("#chart rect").count() == before + 1  # the chosen one's frame
            assert shown.evaluate("document.documentElement.scrollWidth") <= width
            assert errors == [] and asked == [out.as_uri()] and not violations(shown)
