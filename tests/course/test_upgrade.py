"""A learner's folder as version 0.2.0 left it becomes today's course, and nothing is lost.

0.2.0 had no work/ and no `update`: learners edited labs/ itself. lab03_of_0_2.json is its lab 03.
"""

import importlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from utils.cli.commands import start
from utils.cli.home import Home, read_record
from utils.course import copies, merge, progress
from utils.course.catalog import ROOT

LAB = "labs/lab03_lazy_tensors/lab03_lazy_tensors.ipynb"
RECORDED = Path(__file__).with_name("lab03_of_0_2.json")
FIRST_OF_0_2 = "ed7c4e7"
"""The commit at which 0.2.0 stood, where a clone has all history."""
POINTS = {"lab03.ex1": 8, "lab03.ex2": 5}
ENVIRONMENT = {"choice": "slim", "python": "3.12", "busy": False, "complete": {"learner": "0" * 64}}

import_command: Any = importlib.import_module("utils.cli.commands.import")


def git(folder: Path, *arguments: str) -> int:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    return subprocess.run(["git", *who, *arguments], cwd=folder, capture_output=True).returncode


def answers(number: int) -> dict[str, str]:
    """What the learner wrote into each answer cell of a lab."""
    return {f"ex{k}-code": f"# mine, lab {number}, exercise {k}" for k in range(1, 6)}


def solve(path: Path, number: int) -> None:
    """Answer a lab in Jupyter, and save it."""
    lab = json.loads(path.read_text("utf-8"))
    for cell in lab["cells"]:
        if cell["id"] in answers(number):
            cell["source"] = answers(number)[cell["id"]]
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "a result"}]
    lab["metadata"]["language_info"] = merge.LANGUAGE
    path.write_text(json.dumps(lab, indent=1))


def new_edition(folder: Path) -> None:
    for name in ("labs", "notebooks"):
        shutil.rmtree(folder / name, ignore_errors=True)
        shutil.copytree(ROOT / name, folder / name)
    (folder / ".gitignore").write_text((ROOT / ".gitignore").read_text())


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A learner's clone of 0.2.0 with answers, points and an environment; its origin is newer."""
    origin = tmp_path / "origin"
    (origin / LAB).parent.mkdir(parents=True)
    shutil.copy(RECORDED, origin / LAB)
    (origin / "notebooks").mkdir()
    (origin / "notebooks" / "03_lazy_tensors.ipynb").write_text("{}")
    (origin / ".gitignore").write_text(".venv/\n.progress.json*\n")
    assert [git(origin, *w) for w in (["init"], ["add", "."], ["commit", "-m", "0.2.0"])] == [0] * 3
    assert git(tmp_path, "clone", "origin", "old") == 0
    learner = tmp_path / "old"
    solve(learner / LAB, 3)
    learn(learner)
    new_edition(origin)
    assert [git(origin, *w) for w in (["add", "."], ["commit", "-m", "today"])] == [0, 0]
    return learner


def learn(folder: Path) -> None:
    """Points and an environment, as 0.2.0 wrote them."""
    entries = {name: {"points": p, "attempts": 2, "state": "tried"} for name, p in POINTS.items()}
    (folder / ".progress.json").write_text(json.dumps({"format": 1, "exercises": entries}))
    (folder / ".venv").mkdir(exist_ok=True)
    Home(folder).marker.write_text(json.dumps({**ENVIRONMENT, "stand_ins": {}}))


def assert_nothing_is_lost(root: Path, numbers: list[int]) -> None:
    for number in numbers:
        (path,) = copies.folder(root).glob(f"labs/lab{number:02}_*/*.ipynb")
        lab = merge.read(path.read_bytes())
        cells = {cell["id"]: "".join(cell["source"]) for cell in lab["cells"]}
        wrote = {k: v for k, v in answers(number).items() if k in cells}
        assert len(wrote) > 1 and wrote.items() <= cells.items(), number
        (new,) = (ROOT / "labs").glob(f"lab{number:02}_*/*.ipynb")
        ids = {cell["id"] for cell in json.loads(new.read_text("utf-8"))["cells"]}
        assert ids <= set(cells)  # all of today's cells are there
    assert {name: entry["points"] for name, entry in progress.entries(root).items()} == POINTS


def test_git_refuses_to_pull_over_answers_and_a_second_clone_imports_the_folder(
    old: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (old / LAB).read_bytes()
    assert git(old, "pull", "--ff-only") != 0 and (old / LAB).read_bytes() == before
    new = old.with_name("new")
    assert git(old.parent, "clone", "origin", "new") == 0
    monkeypatch.setattr(import_command, "ROOT", new)
    monkeypatch.setenv("COURSE_PROGRESS", str(new / ".progress.json"))
    assert import_command.main([str(old)]) == 0
    assert_nothing_is_lost(new, [3])
    assert (old / LAB).read_bytes() == before
    after = {path: path.read_bytes() for path in copies.folder(new).rglob("*.ipynb")}
    assert import_command.main([str(old)]) == 0  # again, and nothing changes
    assert {path: path.read_bytes() for path in copies.folder(new).rglob("*.ipynb")} == after
    assert "All of it was here already." in capsys.readouterr().out


def test_in_the_same_folder_the_first_start_takes_the_answers_over(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after unpacking today's files over those of 0.2.0 but for what the learner edited."""
    edited = (old / LAB).read_bytes()
    new_edition(old)
    (old / LAB).write_bytes(edited)
    monkeypatch.setenv("COURSE_PROGRESS", str(old / ".progress.json"))
    assert read_record(Home(old)).python == "3.12"  # its environment is known as the course's own
    shutil.rmtree(old / ".git")
    start.bring_up_copies(old)
    assert_nothing_is_lost(old, [3])
    assert (copies.folder(old) / copies.TAKEN_OVER / LAB).read_bytes() == edited


@pytest.mark.exhaustive
def test_the_whole_of_0_2_comes_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All its labs, answered, from the history of this repository."""
    old, new = tmp_path / "old", tmp_path / "new"
    if git(ROOT, "cat-file", "-e", FIRST_OF_0_2):
        pytest.skip("this clone has no history")
    assert git(tmp_path, "clone", "--no-checkout", str(ROOT), "old") == 0
    assert git(old, "checkout", FIRST_OF_0_2) == 0
    paths = sorted((old / "labs").glob("*/*.ipynb"))
    for path in paths:
        solve(path, int(path.name[3:5]))
    learn(old)
    assert len(paths) == 15 and git(tmp_path, "clone", str(ROOT), "new") == 0
    monkeypatch.setattr(import_command, "ROOT", new)
    monkeypatch.setenv("COURSE_PROGRESS", str(new / ".progress.json"))
    assert import_command.main([str(old)]) == 0
    assert_nothing_is_lost(new, list(range(1, 16)))
