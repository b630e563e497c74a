"""A release: checked, complete, and equal when it is built twice."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from utils.cli import bom, builds, bundles, wheels
from utils.cli.commands import release
from utils.cli.home import LOCKS, SetupError

ROOT = Path(__file__).resolve().parents[2]
VERSION = bundles.version(ROOT)
WHOLE = """
from functools import partial
from pathlib import Path
from utils.cli.commands import release
from utils.cli.site import building
building.build = partial(building.build, explorables="")
release.build(release.ROOT, Path({out!r}))
"""


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two builds, with one of the wheels and without the site, for the sake of time."""
    folder = tmp_path_factory.mktemp("release")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wheels, "TOOLS", {"trn-audit": wheels.TOOLS["trn-audit"]})
        first = release.build(ROOT, folder / "first", site=False)
        older = folder / "second" / "SHA256SUMS"  # it is replaced
        older.parent.mkdir()
        older.touch()
        second = release.build(ROOT, folder / "second", site=False)
    return first, second


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_built_twice_it_is_equal_and_whole(two: tuple[Path, Path]) -> None:
    first, second = map(contents, two)
    assert first == second
    assert set(first) == {
        f"trn_audit-{VERSION}-py3-none-any.whl",
        f"trainium-course-{VERSION}.tar",
        "Containerfile",
        "sbom.cdx.json",
        "NOTES.md",
        "SHA256SUMS",
    }
    sums = dict(reversed(line.split()) for line in first.pop("SHA256SUMS").decode().splitlines())
    assert sums == {name: hashlib.sha256(content).hexdigest() for name, content in first.items()}
    done = subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=two[0], capture_output=True)
    assert done.returncode == 0
    assert [path.name for path in two[0].parent.iterdir() if path.name.startswith(".")] == []


@pytest.mark.exhaustive
def test_with_all_wheels_and_the_site_it_is_equal_too(tmp_path: Path) -> None:
    """In two processes, as Sphinx wants; without recorded sliders, which take minutes."""
    for name in ("first", "second"):
        code = WHOLE.format(out=str(tmp_path / name))
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    first, second = (contents(tmp_path / name) for name in ("first", "second"))
    assert first == second and len(first) == 8


def test_the_bill_names_every_package_with_its_files_and_what_needs_it() -> None:
    learner, everything = ((ROOT / LOCKS[needs]).read_text() for needs in LOCKS)
    bill = bom.bill(ROOT / "pyproject.toml", learner, everything, 0)
    assert bill["metadata"]["timestamp"] == "1970-01-01T00:00:00Z"
    parts = bill["components"]
    assert len(parts) == sum(map(len, builds.packages(everything).values()))
    refs = {part["bom-ref"] for part in parts}
    assert len(refs) == len(parts)
    assert all(part["hashes"] and re.fullmatch(r"pkg:pypi/\S+@\S+", part["purl"]) for part in parts)
    required = {part["name"] for part in parts if part["scope"] == "required"}
    assert required == set(builds.packages(learner))
    root, *others = bill["dependencies"]
    assert {dependency["ref"] for dependency in others} == refs
    assert all(set(dependency["dependsOn"]) <= refs for dependency in bill["dependencies"])
    direct = {ref.removeprefix("pkg:pypi/").partition("@")[0] for ref in root["dependsOn"]}
    assert {"torch", "jupyterlab", "pytest"} <= direct and "sympy" not in direct
    needed = {ref for dependency in bill["dependencies"] for ref in dependency["dependsOn"]}
    assert needed == refs  # nothing is there that nobody needs
    assert (
        bill["serialNumber"]
        == bom.bill(ROOT / "pyproject.toml", learner, everything, 9)["serialNumber"]
    )


def test_notes_are_the_part_of_the_changelog() -> None:
    log = "# Changelog\n\n## Unreleased\n\n- Soon.\n\n## 1.0 (2026-01-02)\n\n- First.\n"
    assert release.notes(log, "1.0") == "# 1.0\n\n- First.\n"
    assert release.notes(log, "2.0") == "# 2.0\n\n- Soon.\n"
    with pytest.raises(ValueError, match="says nothing of 2.0"):
        release.notes(log.replace("Unreleased", "Later"), "2.0")


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    """A folder that may be released as 1.0."""
    (tmp_path / "CHANGELOG.md").write_text("## 1.0 (2026-01-02)\n\n- First.\n")
    (tmp_path / "CITATION.cff").write_text("version: 1.0\n")
    commit(tmp_path, "init")
    return tmp_path


def commit(root: Path, *before: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in ([before] if before else []) + [["add", "."], [*who, "commit", "-m", "more"]]:
        subprocess.run(["git", *words], cwd=root, check=True, capture_output=True)


def test_nothing_is_released_that_is_not_ready(ready: Path) -> None:
    assert release.faults(ready, "1.0") == []
    (ready / "more").touch()
    subprocess.run(["git", "tag", "v1.0"], cwd=ready, check=True)
    assert [fault.partition(":")[0] for fault in release.faults(ready, "1.0")] == [
        "files are changed or not known to git",
        "there is a tag v1.0",
    ]
    (ready / "CHANGELOG.md").write_text("## Unreleased\n")
    commit(ready)
    faults = release.faults(ready, "1.1")
    assert [fault.split()[0] for fault in faults] == [
        "CHANGELOG.md",
        "CHANGELOG.md",
        "CITATION.cff",
    ]


def test_the_tag_is_set_last_and_only_if_all_went_well(
    ready: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path_factory.mktemp("out")

    def build(root: Path, to: Path, bundle: bool) -> Path:
        to.mkdir(parents=True)
        (to / "NOTES.md").write_text("# 1.0\n\n- First.\n")
        (to / "SHA256SUMS").touch()
        return to

    monkeypatch.setattr(release, "ROOT", ready)
    monkeypatch.setattr(bundles, "version", lambda root: "1.0")
    monkeypatch.setattr(release, "build", lambda *given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        release.main(["--to", str(out), "--no-tests"])
    tags = ["tag", "--list", "--format=%(objecttype) %(contents)"]
    assert bundles.git(ready, *tags) == ""
    monkeypatch.setattr(release, "build", build)
    assert release.main(["--to", str(out / "draft"), "--draft"]) == 0
    assert bundles.git(ready, *tags) == ""
    user = {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org"}
    for name, value in user.items():
        monkeypatch.setenv(name, value)
    assert release.main(["--to", str(out), "--no-tests"]) == 0
    assert bundles.git(ready, *tags).strip() == "tag # 1.0\n\n- First."
    assert release.main(["--to", str(out), "--no-tests"]) == 1


def test_a_folder_of_other_things_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(SetupError, match="holds something else"):
        release.build(ROOT, tmp_path)
