"""The wheels of the tools: equal when built twice, and of use where the course is not."""

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from utils.cli import wheels
from utils.cli.home import Home

SCRIPT = "import torch\nx = torch.ones(2).cuda()\n"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheels.build("trn-audit", tmp_path_factory.mktemp("dist"), Home(wheels.ROOT))


def test_a_wheel_built_twice_is_equal(built: Path, tmp_path: Path) -> None:
    again = wheels.build("trn-audit", tmp_path, Home(wheels.ROOT))
    assert again.name == built.name and again.read_bytes() == built.read_bytes()


def test_an_unknown_wheel_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no wheel 'trn'; there are trn-audit"):
        wheels.build("trn", tmp_path, Home(wheels.ROOT))


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Outside of the course, with nothing of it on the path."""
    words = [sys.executable, "-P", *arguments]
    environment = {"PYTHONPATH": "site", "HOME": str(folder), "PATH": "/usr/bin:/bin"}
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)


def test_the_audit_works_without_the_course(built: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(built) as wheel:
        wheel.extractall(tmp_path / "site")
        names = wheel.namelist()
    assert not [name for name in names if "/labs" in name or ".ipynb" in name]
    (tmp_path / "train.py").write_text(SCRIPT)
    done = run(tmp_path, "-m", "trn_audit.audit", "train.py")
    assert done.returncode == 1 and "cuda-move" in done.stdout, done.stderr
    code = "import sys, trn_audit.audit, trn_audit.xla.dryrun.start\nprint('utils' in sys.modules)"
    assert run(tmp_path, "-c", code).stdout == "False\n"


@pytest.mark.exhaustive
def test_a_clean_environment_installs_it(built: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "clean", with_pip=True)
    programs = tmp_path / "clean" / "bin"
    subprocess.run([programs / "pip", "install", "--quiet", built], check=True)
    (tmp_path / "train.py").write_text(SCRIPT)
    words = [programs / "trn-audit", "train.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and "cuda-move" in done.stdout
    words = [programs / "trn-dryrun", "train.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and "needs torch and torch-xla" in done.stderr
