"""The plugin of pytest: budgets fail with what grew, and baselines are written whole."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from utils.nki.tool import plugin

ROOT = Path(__file__).resolve().parents[2]
TESTS = f"""
import numpy as np
from utils.nki import simulator
simulator.use()
import nki
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from kernels_for_tool import scaled

def test_budget(nki_close, nki_budget):
    x = np.ones((128, 256), np.float32)
    nki_close(nki.simulate(scaled)(x), 2 * x)
    made = nki_budget(scaled, nki.Shape((128, 256), "bfloat16"), width=WIDTH)
    assert made.seconds > 0
"""


def ran(folder: Path, width: int, *words: str) -> tuple[int, str]:
    (folder / "test_it.py").write_text(TESTS.replace("WIDTH", str(width)))
    (folder / "pytest.ini").write_text("[pytest]\n")
    options = ("-p", "no:cacheprovider", "-p", "utils.nki.tool.plugin", "-q", "test_it.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *words], cwd=folder, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
    )  # fmt: skip
    return done.returncode, done.stdout


def test_a_budget_is_written_held_and_broken(tmp_path) -> None:
    code, out = ran(tmp_path, 256, "--nki-update-baseline")
    assert code == 0, out
    kept = json.loads((tmp_path / plugin.DEFAULT).read_text())
    assert set(kept["test_it.py::test_budget"]) == {
        "as_compiled_s", "as_written_s", "hbm_read_bytes", "hbm_written_bytes",
    }  # fmt: skip
    code, out = ran(tmp_path, 64, "--nki-baseline", plugin.DEFAULT)
    assert code == 1 and "test_it.py::test_budget grew:" in out and "as_compiled_s" in out


def test_what_grew_is_said_and_what_shrank_is_not() -> None:
    before = {"k": {"as_written_s": 2.0, "hbm_read_bytes": 100, "hbm_written_bytes": 0}}
    assert plugin.excess("k", {"as_written_s": 1.0, "hbm_read_bytes": 100}, before) == ""
    text = plugin.excess("k", {"as_written_s": 2.02, "hbm_written_bytes": 8}, before)
    assert "as_written_s: 2 to 2.02, +1.0%" in text and "hbm_written_bytes: 0 to 8" in text
    assert plugin.excess("k", {"as_written_s": 2.02}, before, slack=0.02) == ""
    assert "no baseline" in plugin.excess("new", {}, before)


def test_baselines_are_added_and_a_broken_file_is_said(tmp_path) -> None:
    file = tmp_path / "b.json"
    for key, value in (("a", 1.0), ("b", 2.0), ("a", 3.0)):
        plugin.update(file, key, {"as_written_s": value})
    assert plugin.read(file) == {"a": {"as_written_s": 3.0}, "b": {"as_written_s": 2.0}}
    file.write_text('["a"]')
    with pytest.raises(pytest.UsageError, match="no baselines"):
        plugin.read(file)
