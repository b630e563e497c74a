"""The bundle: one file that installs the course where there is no network."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from utils.cli import bundles, installers
from utils.cli.commands import bundle
from utils.cli.home import Home, SetupError

ROOT = Path(__file__).resolve().parents[2]
CODE = (
    "course.py",
    "pyproject.toml",
    "utils/__init__.py",
    "utils/cli",
    "utils/course",
    "utils/xla",
)
TORCH = """
class ones:
    def __init__(self, *size, device=None): pass
    def __matmul__(self, other): return self
    def sum(self): return self
    def item(self): return 8
"""
UV = f'#!/bin/sh\nexec {ROOT}/.tools/bin/uv "$@"\n'
NOWHERE = dict.fromkeys(("http_proxy", "https_proxy", "ALL_PROXY"), "http://127.0.0.1:9")
PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


def write_wheel(folder: Path, name: str, version: str, files: dict[str, str]) -> str:
    """Write a wheel; returns its line for a lock."""
    about = f"{name}-{version}.dist-info"
    files = files | {
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = "".join(f"{place},,\n" for place in (*files, f"{about}/RECORD"))
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for place, text in (files | {f"{about}/RECORD": lines}).items():
            entry = zipfile.ZipInfo(place)
            entry.external_attr = 0o100755 << 16
            archive.writestr(entry, text)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{name.replace('_', '-')}=={version} \\\n    --hash=sha256:{digest}\n"


def without_network(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """In a network of its own with nothing in it, where the kernel gives one; else with a proxy
    that refuses."""
    alone = ["unshare", "--map-root-user", "--net"]
    try:
        can = subprocess.run([*alone, "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        can = False
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("UV_", "PIP_"))}
    words = [*(alone if can else []), *command]
    return subprocess.run(words, cwd=cwd, env=kept | NOWHERE, capture_output=True, text=True)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a bundle of the course's own set-up with a torch of ten lines."""
    folder = tmp_path_factory.mktemp("bundle")
    index, root = folder / "index", folder / "course"
    index.mkdir()
    lock = write_wheel(index, "torch", "2.9.1", {"torch.py": TORCH})
    lock += write_wheel(index, "torch_xla", "2.9.0", {"torch_xla.py": ""})
    write_wheel(index, "uv", "0.13.8", {"uv-0.13.8.data/scripts/uv": UV})
    for name in CODE:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, root / name)
    for name in ("requirements.lock", "requirements-dev.lock"):
        (root / name).write_text(lock)
    (root / "not-of-the-course").write_text("a learner's")
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init"], ["add", "*.py", "*.toml", "*.lock"], [*who, "commit", "-m", "all"]):
        subprocess.run(["git", *words], cwd=root, check=True, capture_output=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_NO_INDEX", "1")
        patch.setenv("PIP_FIND_LINKS", str(index))
        out = bundles.make(Home(root), "slim", folder / "dist", print)
        again = bundles.make(Home(root), "slim", folder / "again", print)
    assert out.read_bytes() == again.read_bytes()
    assert list((folder / "dist").iterdir()) == [out]
    assert out.name == f"trainium-course-{bundles.version(ROOT)}-linux-x86_64-py{PYTHON}.tar"
    return unpack(out)


def unpack(out: Path) -> Path:
    with tarfile.open(out) as tar:
        tar.extractall(out.parent, filter="data")
    return out.parent / out.name.partition("-linux")[0]


def test_the_same_command_installs_it_without_a_network(unpacked: Path) -> None:
    assert not (unpacked / "not-of-the-course").exists()
    done = without_network(installers.PYTHON, "course.py", "setup", cwd=unpacked)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "(from the folder wheels/, without a network)" in done.stdout
    assert done.stdout.endswith("The environment is ready.\n")
    packages = {path.name for path in Home(unpacked).site(PYTHON).glob("*.dist-info")}
    assert packages == {"torch-2.9.1.dist-info", "torch_xla-2.9.0.dist-info"}


def test_a_wheel_that_was_changed_on_the_way_is_refused(unpacked: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(unpacked, tmp_path / "course", symlinks=True)
    for name in (".venv", ".tools/cache"):
        shutil.rmtree(folder / name, ignore_errors=True)
    write_wheel(folder / "wheels", "torch", "2.9.1", {"torch.py": "changed = True"})
    done = without_network(installers.PYTHON, "course.py", "setup", cwd=folder)
    assert done.returncode == 1 and "Hash mismatch" in done.stderr


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("python", "3.99", f"made for python 3.99, and this is python {PYTHON}"),
        ("machine", "Linux on aarch64", "made for machine Linux on aarch64"),
        ("build", "full", "made for build full, and this is build slim"),
        ("lock", "0", "are of another version of the course, or lack what tests and grading need"),
    ],
)
def test_wheels_that_do_not_fit_are_refused_in_words(
    unpacked: Path, tmp_path: Path, key: str, value: str, message: str
) -> None:
    home = Home(tmp_path)
    shutil.copytree(unpacked / "wheels", home.wheels)
    shutil.copy(unpacked / "requirements.lock", tmp_path)
    bundles.check(home, "learner", "slim")
    note = home.wheels / bundles.NOTE
    note.write_text(json.dumps(json.loads(note.read_text()) | {key: value}))
    with pytest.raises(SetupError, match=message) as error:
        bundles.check(home, "learner", "slim")
    assert "remove that folder" in str(error.value)


def test_a_folder_that_is_no_clone_makes_none(tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "requirements.lock").write_text("")
    with pytest.raises(SetupError, match="needs the course as a git clone"):
        bundles.make(Home(tmp_path), "slim", tmp_path / "dist", print)


@pytest.mark.exhaustive
def test_the_whole_course_installs_without_a_network(tmp_path: Path) -> None:
    """Its wheels come from the package index: 1.2 GB."""
    assert bundle.main(["--to", str(tmp_path)]) == 0
    folder = unpack(*tmp_path.glob("*.tar"))
    done = without_network(
        installers.PYTHON, "course.py", "run", "notebooks/claims.ipynb", cwd=folder
    )
    assert done.returncode == 0, done.stdout + done.stderr
