"""Kernels of older NKI, brought to 0.7: what is rewritten, that values stay, and what is said."""

import ast
import os
import subprocess
from pathlib import Path

import nki
import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from utils.nki.simulator import capacity, launch
from utils.nki.simulator.errors import NkiValidationError
from utils.nki.upgrade import main, upgrade
from utils.nki.validation import published

HEAD = """\
import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


"""
TRIALS = yaml.safe_load(Path(__file__).with_name("upgrade_trials.yaml").read_text())

SOFTMAX = '''@nki.jit(mode="trace")
def kernel(x):
    """Softmax of the rows of x (R, C): exp(x - max) / sum."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows, columns = x.shape
    i_p = nl.arange(128)[:, None]  # partitions
    i_f = nl.arange(columns)[None, :]
    for i in nl.affine_range((rows + 127) // 128):
        # the last tile is cut by the mask
        tile = nl.load(x[i * 128 + i_p, i_f], mask=(i * 128 + i_p < rows))
        most = nisa.tensor_reduce(np.max, tile, axis=[1])
        shifted = nisa.tensor_scalar(tile, np.subtract, most)
        e = nisa.activation(op=nl.exp, data=shifted, dtype=nl.float32)
        total = nisa.tensor_reduce(np.add, e, axis=1)
        result = e / 2.0 * 2.0
        nl.store(
            out[i * 128 + i_p, i_f],
            value=nisa.tensor_scalar(result, nl.multiply, nisa.reciprocal(total)),
            mask=(i * 128 + i_p < rows),
        )
    return out
'''
PRODUCT = """@nki.jit
def kernel(a, b):
    k, m = a.shape
    _, n = b.shape
    out = nl.ndarray((m, n), dtype=a.dtype, buffer=nl.shared_hbm)
    i_k, i_m = nl.mgrid[0:128, 0:m]
    i_n = nl.arange(n)[None, :]
    blocks = nl.ndarray((k // 128, nl.par_dim(128), n), dtype=b.dtype, buffer=nl.sbuf)
    for i in nl.sequential_range(k // 128):
        blocks[i, :, :] = nl.load(b[i * 128 + i_k, i_n])
    total = nl.zeros((nl.par_dim(m), n), dtype=nl.float32, buffer=nl.psum)
    for i in nl.affine_range(k // 128):
        stationary = nl.load(a[i * 128 + i_k, i_m])
        total += nisa.nc_matmul(moving=blocks[i, 0:128, 0:n], stationary=stationary)
    done = nisa.tensor_copy(total, dtype=a.dtype)
    nl.store(out, value=done)
    return out
"""


def kernel_of(text: str, name: str = "kernel"):
    """A kernel of the upgraded text."""
    place: dict = {"__name__": "upgraded"}
    exec(compile(upgrade(HEAD + text).source, "<upgraded>", "exec"), place)
    return place[name]


@pytest.mark.parametrize("rows", [128, 200, 300])
def test_a_masked_softmax_gives_what_numpy_gives(rows) -> None:
    x = np.random.default_rng(rows).standard_normal((rows, 40)).astype(np.float32)
    e = np.exp(x - x.max(1, keepdims=True))
    result = nki.simulate(kernel_of(SOFTMAX))(x)
    np.testing.assert_allclose(result, e / e.sum(1, keepdims=True), rtol=1e-5)


def test_a_product_with_blocks_and_sums_gives_what_numpy_gives() -> None:
    rng = np.random.default_rng(1)
    a = rng.standard_normal((256, 64)).astype(np.float32)
    b = rng.standard_normal((256, 96)).astype(np.float32)
    program = launch.run(kernel_of(PRODUCT), (a, b), {})
    np.testing.assert_allclose(program.results, a.T @ b, rtol=1e-4, atol=1e-4)
    assert program.count("nc_matmul") == 2 and program.count("memset") == 0


def test_comments_stay_and_nothing_is_left_of_these_kernels() -> None:
    for text, words in ((SOFTMAX, ["# the last tile", "Softmax of the rows"]), (PRODUCT, [])):
        result = upgrade(HEAD + text)
        assert result.remarks == () and result.edits
        assert all(word in result.source for word in words)
        assert "neuronxcc" not in result.source and "affine_range" not in result.source
        again = upgrade(result.source)
        assert again.source == result.source and again.edits == ()


CASES = {
    "namespace": ("from neuronxcc import nki", "import nki"),
    "options": (
        "@nki.jit(mode='torchxla', debug_kernel=True)\ndef k(x): pass",
        "debug_kernel=True)",
    ),
    "sub-kernel": ("@nki.trace\ndef k(x): pass", "\ndef k(x): pass"),
    "compiler": ("@nki.compiler.enable_stack_allocator\n@nki.jit\ndef k(x): pass", "@nki.jit"),
    "memory": ("a = nl.ndarray((2, 2), nl.float32, buffer='psum')", "buffer=nl.psum"),
    "step": ("i = nl.arange(4)[None, :]\ny = x[0:2, 2 * i + 1]", "x[0:2, (1):(1) + 4 * 2:2]"),
    "joined": (
        "y = x[nl.arange(8)[:, None, None], 16 * nl.arange(4)[None, :, None]"
        " + nl.arange(16)[None, None, :]]",
        "x[0:8, 0:64]",
    ),
    "memset": ("t = nisa.memset((128, 4), 0.0, dtype=nl.bfloat16)", "memset(dst=t, value=0.0)"),
    "one by one": ("def k(x):\n    t = nl.load(x)\n    t -= 2.0", "op0=nl.subtract, operand0=2.0"),
    "broadcast": (
        "def k(x):\n    t = nl.load(x)\n    u = t.broadcast_to((8, 4))",
        "broadcast_to(t",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_form_is_rewritten(case) -> None:
    before, after = CASES[case]
    result = upgrade(HEAD + before)
    assert after.replace("(1):(1) +", "1:1 +") in result.source.replace("(1):(1) +", "1:1 +")
    ast.parse(result.source)


LEFT = {
    "two walks": (
        "i = nl.arange(4)[:, None]\nj = nl.arange(4)[None, :]\ny = x[i + j, j]",
        "slices",
    ),
    "turned": ("i = nl.arange(4)[None, :]\nj = nl.arange(4)[:, None]\ny = x[i, j]", "arange"),
    "loop_reduce": ("y = nl.loop_reduce(t, op=nl.add, loop_indices=[i])", "loop_reduce"),
    "grid": ("y = nl.program_id(1)", "second dimension of the grid"),
    "mask": ("y = nl.load(x, mask=where(x))", "mask="),
    "no shape": ("y = nisa.iota(expr, dtype=nl.int32)", "dtype= of nki.isa.iota"),
    "private": ("from neuronxcc.nki._private_kernels import softmax", "no place in today's"),
    "allocator": ("t = nl.ndarray((2, 2), nl.float32, buffer=nki.compiler.sbuf.alloc(f))", "sbuf"),
}


@pytest.mark.parametrize("case", LEFT)
def test_what_is_not_rewritten_is_said_with_its_line(case) -> None:
    before, word = LEFT[case]
    result = upgrade(HEAD + before)
    assert result.remarks, result.source
    lines = result.source.splitlines()
    assert any(word in str(remark) for remark in result.remarks), result.remarks
    for remark in result.remarks:
        assert remark.page.startswith("https://") and lines[remark.line - 1].strip()


def test_walks_of_one_kernel_are_none_of_the_next() -> None:
    one = "def one(x):\n    i = nl.arange(4)[:, None]\n    y = x[i, 0]\n\n\n"
    text = one + "def two(x, i):\n    y = x[i, 0]\n"
    assert "def two(x, i):\n    y = x[i, 0]" in upgrade(HEAD + text).source


@settings(max_examples=30)
@given(st.text(st.sampled_from("ab =+-*()[]:,\n#1"), max_size=40))
def test_a_source_without_nki_stays_to_the_byte(text) -> None:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        with pytest.raises(ValueError, match="no Python"):
            upgrade(text)
        return
    assert upgrade(text).source == text


def test_the_command_shows_writes_and_tells(tmp_path, capsys) -> None:
    file, broken = tmp_path / "kernels.py", tmp_path / "broken.py"
    file.write_text(HEAD + SOFTMAX)
    broken.write_text("def (")
    assert main([str(file)]) == 0
    out = capsys.readouterr().out
    assert "-import neuronxcc.nki as nki\n" in out and "+import nki\n" in out
    assert "0 left" in out
    assert "neuronxcc" in file.read_text()
    assert main(["--write", str(file)]) == 0 and "neuronxcc" not in file.read_text()
    file.write_text(HEAD + LEFT["loop_reduce"][0])
    assert main([str(file)]) == 1 and f"{file}:7:" in capsys.readouterr().out
    assert main([str(broken), str(tmp_path / "none.py")]) == 2
    assert "no Python" in capsys.readouterr().err


def test_the_table_of_trials_is_about_texts_that_are_named() -> None:
    assert set(TRIALS["texts"]) <= set(published.published())
    results = [entry["result"] for entry in TRIALS["texts"].values()]
    assert len(results) >= 25 and sum(r == "runs" for r in results) >= len(results) / 2


def test_public_kernels_go_as_recorded() -> None:
    """COURSE_NKI_REPOS names the folder of `nki-validation --published`."""
    folder = os.environ.get("COURSE_NKI_REPOS")
    if not folder:
        pytest.skip("COURSE_NKI_REPOS names no folder with the public repositories")
    for name, wanted in TRIALS["texts"].items():
        it = published.published()[name]
        text = published.text_of(it, Path(folder))
        result = upgrade((TRIALS["head"] if it.candidate is not None else "") + text)
        place: dict = {"__name__": "upgraded"}
        exec(compile(result.source, name, "exec"), place)
        value = "runs"
        try:
            with capacity.spilling():
                launch.run(place[it.function], tuple(it.given()), it.arguments)
        except NkiValidationError:
            value = "refused"
        counts = {"edits": len(result.edits), "left": len(result.remarks), "result": value}
        assert counts == {key: wanted[key] for key in counts}, name


def test_samples_that_are_zero_on_older_versions_are_diagnosed_as_recorded() -> None:
    """COURSE_NKI_REPOS holds `aws-neuron+nki-samples/repo`, a bare clone."""
    folder = os.environ.get("COURSE_NKI_REPOS")
    samples = TRIALS["samples"]
    place = Path(folder or "", samples["repository"].replace("/", "+"), "repo")
    if not folder or not place.exists():
        pytest.skip("COURSE_NKI_REPOS names no folder with the samples")
    for name, wanted in samples["files"].items():
        words = ["git", "--git-dir", place, "show", f"{samples['commit']}:{name}"]
        text = subprocess.check_output(words, text=True)
        result = upgrade(text)
        assert (len(result.edits), len(result.remarks)) == (wanted["edits"], wanted["left"]), name
        assert any(wanted["cause"] in remark.what for remark in result.remarks), name


def test_a_harness_that_returns_zeros_is_named_with_what_takes_its_place() -> None:
    text = "def check(a):\n    return nki.baremetal()(kernel)(a)\n"
    (remark,) = upgrade(HEAD + text).remarks
    assert remark.line == HEAD.count("\n") + 2 and "nki.baremetal" in remark.what
