"""pyproject.toml, both locks, environment.yml and what is installed say the same."""

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from utils.cli import builds
from utils.cli.commands.lock import constrain
from utils.cli.home import LOCKS
from utils.xla import env

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text())
LEARNER = PROJECT["project"]["dependencies"]
EVERYTHING = LEARNER + [r for group in PROJECT["dependency-groups"].values() for r in group]
DIRECT = {"learner": LEARNER, "everything": EVERYTHING}


def table(requirements):
    return {canonicalize_name(r.name): r.specifier for r in map(Requirement, requirements)}


def locked(needs):
    """{package: its versions} of a lock."""
    text = (ROOT / LOCKS[needs]).read_text()
    return {
        name: {entry.split("==")[1].split()[0] for entry in entries}
        for name, entries in builds.packages(text).items()
    }


def test_the_groups_are_those_that_course_py_knows():
    assert set(PROJECT["dependency-groups"]) == {"grade", "hub", "test"}
    assert len(EVERYTHING) > len(LEARNER) > 20


def test_environment_yml_lists_what_pyproject_lists():
    (pip,) = [part["pip"] for part in CONDA["dependencies"] if isinstance(part, dict)]
    assert table(pip) == table(EVERYTHING)


def test_environment_yml_has_a_python_that_is_supported():
    (python,) = [part for part in CONDA["dependencies"] if str(part).startswith("python=")]
    assert Version(python.partition("=")[2]) in SpecifierSet(PROJECT["project"]["requires-python"])


@pytest.mark.parametrize("needs", LOCKS)
def test_a_lock_has_every_direct_dependency_in_an_allowed_version(needs):
    versions = locked(needs)
    for name, allowed in table(DIRECT[needs]).items():
        assert versions[name] and all(Version(v) in allowed for v in versions[name]), name


@pytest.mark.parametrize("needs", LOCKS)
def test_a_lock_has_a_hash_for_every_entry_and_no_address(needs):
    text = (ROOT / LOCKS[needs]).read_text()
    entries = [entry for several in builds.packages(text).values() for entry in several]
    assert len(entries) > 100
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry) for entry in entries)
    assert not re.search(r"https?://|file:|index-url|find-links", text)


@pytest.mark.parametrize("needs", LOCKS)
def test_nothing_in_a_lock_is_overlooked(needs):
    """Every line belongs to an entry that `builds.packages` found, or is a comment at the top."""
    text = (ROOT / LOCKS[needs]).read_text()
    entries = "".join(e for several in builds.packages(text).values() for e in several)
    assert text.endswith(entries)
    head = text.removesuffix(entries).splitlines()
    assert head and all(line.startswith("#") for line in head)
    assert builds.selection(text, "full") == entries


def test_the_learner_lock_is_part_of_the_other():
    learner, everything = locked("learner"), locked("everything")
    assert learner.items() <= everything.items()
    assert len(everything) > len(learner)
    assert not {"pytest", "nbgrader", "playwright"} & set(learner)


def test_slim_leaves_out_the_gpu_libraries_and_nothing_else():
    names = set(locked("learner"))
    gone = builds.omitted_by("slim", names)
    assert len(gone) == 13
    assert {name for name in gone if not name.startswith("nvidia-")} == {"triton"}
    assert set(builds.KEPT) == {n for n in names if n.startswith("nvidia-")} - gone


def test_what_is_installed_is_what_pyproject_allows():
    for name, allowed in table(EVERYTHING).items():
        assert importlib.metadata.version(name) in allowed, name


def test_the_report_of_the_notebooks_asks_for_the_locked_pair():
    assert {name: {version} for name, version in env.PAIR.items()} == {
        name: locked("learner")[name] for name in env.PAIR
    }


def test_lock_keeps_every_version_but_the_freed():
    project = (ROOT / "pyproject.toml").read_text()
    lock = (ROOT / LOCKS["everything"]).read_text()
    pins = tomllib.loads(constrain(project, lock, ["numpy"]))["tool"]["uv"]
    names = {Requirement(pin).name for pin in pins["constraint-dependencies"]}
    assert names == set(locked("everything")) - {"numpy"}
