"""The wheels of the tools: equal when built twice, and of use where the course is not."""

import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from utils.cli import wheels
from utils.cli.home import Home

SCRIPT = "import torch\nx = torch.ones(2).cuda()\n"


KERNEL = """import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def copy(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
"""
TEST = """import nki, numpy as np
from kernel import copy

def test_copy(nki_close, nki_budget):
    x = np.ones((2, 3), np.float32)
    nki_close(nki.simulate(copy)(x), x)
    nki_budget(copy, nki.Shape((2, 3)))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheels.build("trn-audit", tmp_path_factory.mktemp("dist"), Home(wheels.ROOT))


def test_a_wheel_built_twice_is_equal(built: Path, tmp_path: Path) -> None:
    again = wheels.build("trn-audit", tmp_path, Home(wheels.ROOT))
    assert again.name == built.name and again.read_bytes() == built.read_bytes()


def test_an_unknown_wheel_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no wheel 'trn'; there are trn-audit, trn-nki"):
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


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with trn-nki and the packages of this one; its folder, with two files."""
    folder, home = tmp_path_factory.mktemp("nki"), Home(wheels.ROOT)
    wheel = wheels.build("trn-nki", folder / "dist", home)
    again = wheels.build("trn-nki", folder / "again", home)
    assert again.read_bytes() == wheel.read_bytes()
    quiet = {"check": True, "capture_output": True, "cwd": folder}
    subprocess.run([home.uv, "venv", "-q", "--offline", "-p", sys.executable, "env"], **quiet)
    words = ["pip", "install", "-q", "--offline", "--no-deps", "-p", "env/bin/python", wheel]
    subprocess.run([home.uv, *words], **quiet)
    (site,) = (folder / "env").glob("lib/python*/site-packages")
    (site / "zz-borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (folder / "kernel.py").write_text(KERNEL)
    (folder / "test_kernel.py").write_text(TEST)
    return folder


def nki(folder: Path, *words: str, program: str = "nki") -> subprocess.CompletedProcess[str]:
    environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin", "NO_COLOR": "1"}
    return subprocess.run(
        [folder / "env" / "bin" / program, *words],
        cwd=folder, env=environment, capture_output=True, text=True,
    )  # fmt: skip


def test_kernels_need_neither_course_nor_torch(kernels: Path) -> None:
    code = "import kernel, nki, sys; print(nki.__file__, {'torch', 'utils'} & {*sys.modules})"
    out = nki(kernels, "-c", code, program="python").stdout
    assert "site-packages/trn_nki/nki/package/nki/" in out and out.endswith("set()\n")


COMMANDS = (
    ("profile kernel.py::copy --shape 128x64 --html p.html --record r.json", 0, "written: p"),
    ("check kernel.py", 0, "nothing found"),
    ("compare kernel.py::copy kernel.py::copy --shape 4x4", 0, "values: equal"),
    ("tune kernel.py::copy --shape 4x4 --param nl=1 --jobs 1", 1, "raised AttributeError"),
    ("measure", 2, "no NeuronCore"),
    ("docs reference.md", 0, "written: reference.md"),
)


def test_every_command_works_without_the_course(kernels: Path) -> None:
    """In one process, which starts once; the script itself is tried with the first."""
    assert "the course's simulator" in nki(kernels, "--version").stdout
    code = "from trn_nki.nki.tool.__main__ import main\nfor words in {}: print(main(words), '|')"
    done = nki(kernels, "-c", code.format([w.split() for w, *_ in COMMANDS]), program="python")
    parts = done.stdout.split("|\n")
    for (words, status, text), output in zip(COMMANDS, parts, strict=False):
        assert output.endswith(f"{status} ") and (text in output or text in done.stderr), words


def test_pytest_finds_the_plugin(kernels: Path) -> None:
    (kernels / "pytest.ini").write_text("[pytest]\n")
    others = ("cacheprovider", "nbval", "xdist", "hypothesispytest", "moto", "anyio", "locust")
    leave = [word for name in others for word in ("-p", f"no:{name}")]
    words = ("-m", "pytest", "-q", *leave, "test_kernel.py")
    done = nki(kernels, *words, "--nki-update-baseline", program="python")
    assert done.returncode == 0, done.stdout
    assert (kernels / "nki-baseline.json").exists()


def test_awss_package_beside_it_stays_whole_and_is_named(kernels: Path) -> None:
    """Its files are not ours to overwrite, and the command still finds the simulator."""
    (site,) = (kernels / "env").glob("lib/python*/site-packages")
    official = site / "nki"
    (official / "language").mkdir(parents=True)
    (official / "__init__.py").write_text("WHOSE = 'theirs'\ndef jit(f): return f\n")
    (official / "language" / "__init__.py").write_text("")
    try:
        out = nki(kernels, "-c", "import nki; print(nki.WHOSE)", program="python").stdout
        assert out == "theirs\n"
        done = nki(kernels, "profile", "kernel.py::copy", "--shape", "4x4")
        assert done.returncode == 0 and "AWS's package nki is installed here too" in done.stderr
        assert "AWS's package" in nki(kernels, "--version").stdout
    finally:
        shutil.rmtree(official)


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
