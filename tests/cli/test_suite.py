"""`course.py test`: what a change reaches, who runs what, and what is said while and after."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from utils.cli import suite
from utils.cli.commands import test as command
from utils.course.catalog import ROOT

TEST_FILES = {
    "test_one.py": "def test_a(): pass\ndef test_b(): assert False, 'on purpose'\n",
    "test_two.py": "def test_c(worker_id): note('two', worker_id)\n"
    "def test_d(worker_id): note('two', worker_id)\n",
    "test_three.py": "import pytest\n@pytest.mark.exhaustive\ndef test_e(): pass\n",
}
NOTE = "def note(*words):\n    print(*words, file=open('notes', 'a'))\n"


@pytest.fixture(scope="module")
def units() -> dict[str, set[str]]:
    return {
        unit: {path.relative_to(ROOT).as_posix() for path in files}
        for unit, files in suite.Reads().units().items()
    }


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A run of small test files with the plugin of the course and that of workers only."""
    for name, content in TEST_FILES.items():
        (folder / name).write_text(NOTE + content)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = exhaustive\naddopts = -q\n")
    plugins = ("-p", "xdist.plugin", "-p", "tests.plugin")
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )


def test_exhaustive_tests_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    assert "1 failed, 3 passed, 1 deselected" in run_pytest(tmp_path).stdout
    assert "1 failed, 4 passed" in run_pytest(tmp_path, "--exhaustive").stdout


def test_properties_are_tried_with_half_of_their_examples_by_day(tmp_path: Path) -> None:
    program = """
from hypothesis import given, settings, strategies
@given(strategies.integers())
@settings(max_examples=40, database=None)
def test_property(number): print(file=open("drawn", "a"))
"""
    (tmp_path / "test_property.py").write_text(program)
    for options, expected in ((), 20), (("--exhaustive",), 40):
        (tmp_path / "drawn").unlink(missing_ok=True)
        run_pytest(tmp_path, "test_property.py", *options)
        assert (tmp_path / "drawn").read_text() == "\n" * expected


def test_a_run_of_a_size_says_how_far_it_is_what_failed_and_where_the_time_went(
    tmp_path: Path,
) -> None:
    done = run_pytest(tmp_path, "--size=quick", "-n", "2", "--dist", "loadfile")
    assert done.returncode == 1, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert "FAILED test_one.py::test_b (call)" in lines
    assert any(re.match(r"100%  4 of 4 tests, 1 failed, \d+ s", line) for line in lines)
    assert any(re.fullmatch(r"  all +4 +\d+ +100%", line) for line in lines)
    assert "The slowest 4:" in lines
    assert "on purpose" in done.stdout
    # A file's tests stay with one worker.
    assert len(set((tmp_path / "notes").read_text().splitlines())) == 1


def test_only_the_named_units_are_run(tmp_path: Path) -> None:
    (tmp_path / "units").write_text("test_two.py\ntest_three.py")
    assert "2 passed, 3 deselected" in run_pytest(tmp_path, "--units=units").stdout


def test_after_the_limit_no_unit_is_begun_and_its_name_is_told(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"test_{number}.py").write_text("def test(): pass\n")
    names = [*sorted(path.name for path in tmp_path.glob("test_?.py")), "test_one.py"]
    (tmp_path / "units").write_text("\n".join(names))
    workers = ("-n", "2", "--dist", "loadfile")
    options = ("--size=quick", "--units=units", "--limit=0.0001")
    lines = run_pytest(tmp_path, *workers, *options).stdout.splitlines()
    assert "  test_one.py" in lines[lines.index("LEFT OUT, because time was up:") :]
    assert not any("test_one.py::" in line for line in lines)
    assert f"Run them too: {suite.WITHOUT_LIMIT}" in lines


def test_the_longest_come_first_as_recorded_or_guessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite, "DURATIONS", tmp_path / "durations.json")
    counts = {"tests/nki/test_a.py": 900, "labs/a.ipynb": 1, "tests/labs/test_lab01.py": 10}
    assert suite.estimate(counts)["tests/nki/test_a.py"] == pytest.approx(90)
    suite.record({"tests/repo/test_repo.py": 61.26, "tests/gone.py": 3.0})
    assert json.loads(suite.DURATIONS.read_text()) == {"tests/repo/test_repo.py": 61.3}
    assert suite.estimate({"tests/repo/test_repo.py": 1})["tests/repo/test_repo.py"] == 61.3


def test_a_unit_reads_what_it_imports_by_whatever_way(units: dict[str, set[str]]) -> None:
    for unit in ("tests/chip/test_mx.py", "tests/labs/test_labs.py::lab10"):
        assert "utils/chip/mx.py" in units[unit], unit
    assert "utils/chip/mx.py" not in units["tests/cli/test_install.py"]
    # Loaded by a name made at run time, as data, by a mention in a text.
    lab = next(path for path in units if path.startswith("solutions/lab07"))
    judge = "utils/labs/lab07/judge.py"
    assert {unit for unit in units if judge in units[unit]} >= {
        lab,
        lab.replace("solutions/", "labs/"),
        "tests/labs/test_labs.py::lab07",
        "tests/labs/test_lab07.py",
    }
    assert judge not in units["tests/labs/test_labs.py::lab06"]
    assert lab in units["tests/labs/test_lab07.py"]
    data = next((ROOT / "utils" / "facts" / "data").iterdir()).relative_to(ROOT).as_posix()
    assert data in units["notebooks/13_tco.ipynb"]
    assert "README.md" in units["tests/course/test_readme.py"]
    assert "tests/conftest.py" in units["tests/chip/test_mx.py"]


def test_each_notebook_and_each_test_file_is_a_unit(units: dict[str, set[str]]) -> None:
    notebooks = {u for u in units if u.endswith(".ipynb")}
    assert {unit.partition("/")[0] for unit in notebooks} == {"notebooks", "solutions", "labs"}
    files = {p.relative_to(ROOT).as_posix() for p in (ROOT / "tests").rglob("test_*.py")}
    assert files - {unit.partition("::")[0] for unit in units} == {suite.NOTEBOOK_TESTS}


@pytest.fixture
def reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, set[Path]]:
    """A core, a test file and a notebook, of 10 s each, that read a.py and their own file."""
    names = ["tests/repo/test_repo.py", "tests/chip/test_mx.py", "notebooks/03.ipynb"]
    monkeypatch.setattr(suite, "estimate", lambda tests: dict.fromkeys(tests, 10.0))
    return {name: {Path("/r/a.py"), Path("/r", name)} for name in names}


def test_without_a_change_the_core_runs(reads: dict[str, set[Path]]) -> None:
    choice = suite.choose(set(), reads, set(), 100)
    assert choice.run == ["tests/repo/test_repo.py"] and choice.left_out == []


def test_what_reads_a_changed_file_runs_and_what_passed_as_it_is_does_not(reads) -> None:
    choice = suite.choose({Path("/r/a.py")}, reads, {"notebooks/03.ipynb"}, 100)
    assert choice.run == ["tests/repo/test_repo.py", "tests/chip/test_mx.py"]
    assert choice.green == ["notebooks/03.ipynb"]
    assert "1 notebooks passed as they are" in choice.describe(1)


def test_what_does_not_fit_is_named_with_the_command_and_what_changed_comes_first(reads) -> None:
    changed = {Path("/r/a.py"), Path("/r/notebooks/03.ipynb")}
    choice = suite.choose(changed, reads, set(), 20)
    assert choice.run == ["tests/repo/test_repo.py", "notebooks/03.ipynb"]
    assert choice.left_out == ["tests/chip/test_mx.py"]
    text = choice.describe(2)
    assert "  tests/chip/test_mx.py" in text and "course.py test --quick --no-limit" in text


def test_changes_are_those_since_main_with_untracked_files(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    assert suite.changed_files(tmp_path) is None
    git("init", "-b", "main")
    for name in ("same", "committed", "edited"):
        (tmp_path / name).write_text("1")
    git("add", ".")
    git("commit", "-m", "first")
    assert suite.changed_files(tmp_path) == set()
    git("checkout", "-b", "branch")
    (tmp_path / "committed").write_text("2")
    git("commit", "-am", "second")
    (tmp_path / "edited").write_text("2")
    (tmp_path / "new").write_text("1")
    names = {path.name for path in suite.changed_files(tmp_path) or ()}
    assert names == {"committed", "edited", "new"}


def test_a_notebook_that_passed_is_forgotten_when_a_file_that_it_reads_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Fake:
        root = tmp_path

        def units(self) -> dict[str, set[Path]]:
            return {"notebooks/03.ipynb": {tmp_path / "a"}, "tests/test_a.py": {tmp_path / "a"}}

    monkeypatch.setattr(suite, "GREEN", tmp_path / "tools" / "green.json")
    (tmp_path / "a").write_text("1")
    before = suite.hashes_of_notebooks(Fake())
    assert list(before) == ["notebooks/03.ipynb"]
    suite.remember_green(before)
    suite.remember_green({"notebooks/04.ipynb": "other"})
    assert suite.read_green() == before | {"notebooks/04.ipynb": "other"}
    (tmp_path / "a").write_text("2")
    assert suite.hashes_of_notebooks(Fake()) != before


@pytest.mark.parametrize(
    ("arguments", "there", "missing"),
    [
        ([], ["tests", "utils", "notebooks", "--size=default", "--nbval"], ["--exhaustive"]),
        (["--exhaustive"], ["tests", "--exhaustive", "--size=exhaustive"], []),
        (["--record"], ["tests", "--record"], []),
        (["tests/chip", "-x"], ["tests/chip", "-x"], ["utils", "--size=default", "-n"]),
        (["--exhaustive", "tests/labs"], ["tests/labs", "--exhaustive"], ["utils"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_the_verb_hands_pytest_what_the_size_means(
    arguments: list[str], there: list[str], missing: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "system_packages", lambda wanted: [])
    monkeypatch.setattr(command, "_pytest", lambda given, folder: handed.extend(given) or 0)
    handed: list[str] = []
    assert command.main(arguments) == 0
    assert set(there) <= set(handed) and not set(missing) & set(handed)


def test_quick_hands_pytest_the_files_and_the_units(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def note(given: list[str], folder: Path) -> int:
        (units,) = [a.partition("=")[2] for a in given if a.startswith("--units=")]
        handed[:] = [given, Path(units).read_text().splitlines()]
        return 0

    handed: list[list[str]] = []
    monkeypatch.setattr(command, "system_packages", lambda wanted: [])
    monkeypatch.setattr(command, "_pytest", note)
    monkeypatch.setattr(suite, "changed_files", lambda: {ROOT / "utils/labs/lab07/judge.py"})
    monkeypatch.setattr(suite, "read_green", lambda: {})
    assert command.main(["--quick", "--no-limit"]) == 0
    arguments, units = handed
    assert "tests/labs/test_labs.py" in arguments and suite.NOTEBOOK_TESTS in arguments
    assert "tests/labs/test_labs.py::lab07" in units and "tests/repo/test_repo.py" in units
    assert "tests/labs/test_labs.py::lab06" not in units
    assert "1 files differ from main" in capsys.readouterr().out
