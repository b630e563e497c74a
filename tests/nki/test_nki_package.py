"""Which `nki` is found: the course's, the official one, or the empty placeholder of the index."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from utils.course.catalog import ROOT

SAY = """
from utils.nki import simulator
print(simulator.use())
import nki
print(simulator.is_ours(), hasattr(nki, "simulate"))
"""


def run(path: Path | None = None, program: str = SAY, **variables: str) -> str:
    """What a fresh Python prints that has `path` before everything else."""
    folders = [str(path)] if path else []
    environment = {k: v for k, v in os.environ.items() if k != "COURSE_NKI"} | variables
    environment["PYTHONPATH"] = os.pathsep.join([*folders, str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True
    )
    return done.stdout


@pytest.fixture
def official(tmp_path: Path) -> Path:
    package = tmp_path / "nki"
    (package / "language").mkdir(parents=True)
    (package / "__init__.py").write_text("def jit(function): return function\n")
    (package / "language" / "__init__.py").write_text("")
    return tmp_path


@pytest.fixture
def placeholder(tmp_path: Path) -> Path:
    (tmp_path / "nki").mkdir()
    (tmp_path / "nki" / "__init__.py").write_text("")
    return tmp_path


def test_where_there_is_none_ours_is_found() -> None:
    assert "the course's simulator" in run() and run().endswith("True True\n")


def test_the_official_package_wins_and_what_it_lacks_is_said(official: Path) -> None:
    text = run(official)
    assert "the official package" in text and "COURSE_NKI=course" in text
    assert text.endswith("False False\n")


def test_ours_can_be_asked_for(official: Path) -> None:
    text = run(official, COURSE_NKI="course")
    assert "placeholder" not in text and text.endswith("True True\n")


def test_the_empty_placeholder_is_recognised_and_explained(placeholder: Path) -> None:
    text = run(placeholder)
    assert "placeholder" in text and "pip uninstall nki" in text and text.endswith("True True\n")


def test_a_check_says_that_it_needs_ours(official: Path) -> None:
    text = run(
        official,
        """
from utils.labs import observe_case
print(observe_case("lab09.ex1", lambda a, b: a, {"rows": 4, "columns": 4, "dtype": "float32"}))
""",
    )
    assert "COURSE_NKI=course" in text


def test_a_kernel_file_runs_with_the_package_folder_alone(tmp_path: Path) -> None:
    """As AWS's tools would run it, without a word about the course."""
    kernel = tmp_path / "kernel.py"
    kernel.write_text(
        "import sys\n"
        "import nki, nki.language as nl, nki.isa as nisa, nki.typing\n"
        "import numpy as np\n"
        "@nki.jit\n"
        "def copy(x):\n"
        "    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
        "    nisa.dma_copy(dst=out, src=x)\n"
        "    return out\n"
        "print(nki.simulate(copy)(np.ones((2, 2), np.float32)).sum(), 'torch' in sys.modules)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT / "utils/nki/package")}
    done = subprocess.run(
        [sys.executable, str(kernel)],
        capture_output=True, text=True, env=environment, cwd=tmp_path, check=True,
    )  # fmt: skip
    assert done.stdout == "4.0 False\n"
