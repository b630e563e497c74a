"""Kernels of lesson 09 keep to what compiles, and its script runs where only its path is set."""

import os
import re
import subprocess
import sys

from utils.course import catalog
from utils.course.catalog import ROOT
from utils.nki import simulator
from utils.nki.simulator.lint import lint_source

SCRIPT = ROOT / "notebooks" / "scripts" / "nki_gelu.py"
ON_THE_HOST = {"warned", "explore_view"}


def kernels() -> str:
    """All cells of the lesson in which NKI is spoken, as one file."""
    notebook = catalog.read_notebook(ROOT / "notebooks" / "09_nki_basics.ipynb")
    cells = [catalog.text(item) for item in notebook["cells"] if item["cell_type"] == "code"]
    imports = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n"
    return "\n".join([imports, *(item for item in cells if re.search(r"\b(nisa|nl)\.", item))])


def test_kernels_of_the_lesson_would_compile_as_far_as_the_lint_knows() -> None:
    source = kernels()
    assert source.count("@nki.jit") >= 12
    lines = source.splitlines()
    results: dict[str, list[str]] = {}
    for item in lint_source(source):
        inside = [line for line in lines[: item.line] if line.startswith("def ")][-1]
        results.setdefault(inside[4 : inside.index("(")], []).append(str(item))
    assert results.keys() <= ON_THE_HOST, results


def test_the_script_is_clean_and_right_to_a_few_roundings() -> None:
    assert lint_source(SCRIPT.read_text(encoding="utf-8")) == []
    done = subprocess.run(
        [sys.executable, str(SCRIPT)],
        env=os.environ | {"PYTHONPATH": str(simulator.PACKAGE)},
        capture_output=True,
        text=True,
        check=True,
    )
    error = re.search(r"the largest error is ([\d.]+) roundings of FP32", done.stdout)
    assert error and 0 < float(error[1]) <= 4, done.stdout
