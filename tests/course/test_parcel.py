"""Work carried to another machine in one file: nothing is overwritten or lies outside."""

import importlib
import json
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.course.test_copies import (
    FIRST_EDITION,
    LAB,
    LESSON,
    SECOND_EDITION,
    clone,
    copy_of,
    edit,
    kill_at,
    state,
    texts,
    write_course,
)
from utils.cli.commands import export
from utils.course import copies, merge, parcel, progress
from utils.course.copies import CopiesError

__all__ = ["clone"]  # a fixture

import_command: Any = importlib.import_module("utils.cli.commands.import")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    root = tmp_path / "here"
    write_course(root, *FIRST_EDITION)
    copies.sync(root)
    edit(copies.folder(root) / LAB, ex1="answer 42")
    (copies.folder(root) / "mine.txt").write_text("mine")
    return root


@pytest.fixture
def there(tmp_path: Path) -> Path:
    root = tmp_path / "there"
    write_course(root, *SECOND_EDITION)
    return root


def test_work_and_progress_go_to_another_machine_and_back(
    here: Path, there: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COURSE_PROGRESS", str(here / "progress.json"))
    progress.record("lab01.ex1", "passed", 10, here)
    progress.record("lab01.ex2", "tried", 2, here)
    monkeypatch.setattr(export, "ROOT", here)
    monkeypatch.setattr(import_command, "ROOT", there)
    file = here.with_name("a.zip")
    assert export.main([str(file)]) == 0 and export.main([str(file)]) == 1
    assert "exists: name a file that does not" in capsys.readouterr().err
    monkeypatch.setenv("COURSE_PROGRESS", str(there / "progress.json"))
    progress.record("lab01.ex2", "passed", 8, there)
    assert import_command.main([str(file)]) == 0
    after = state(there)
    assert after["mine.txt"] == b"mine"
    # It was made from the first edition, and this machine has the second: merged, not replaced.
    lab = texts(merge.read(after[LAB]))
    assert lab[0] == "answer 42" and lab[-1] == "new check" and LESSON not in after
    assert {k: v["points"] for k, v in progress.entries(there).items()} == {
        "lab01.ex1": 10,
        "lab01.ex2": 8,
    }
    assert import_command.main([str(file)]) == 0
    assert state(there) == after
    assert "All of it was here already." in capsys.readouterr().out
    # And back: what was gone on with there takes the place of what was carried there.
    edit(copies.folder(there) / LAB, ex1="answer 43")
    back = file.with_name("b.zip")
    parcel.export(back, there)
    write_course(here, *SECOND_EDITION)
    parcel.import_(back, here)
    copies.sync(here)
    after, other = state(here), state(there)
    assert after[LAB] == other[LAB] and not [name for name in after if "imported-" in name]
    assert parcel.import_(file, here)[0] == []


def test_the_folder_of_an_older_course_is_brought_into_a_fresh_one(
    clone: Path, there: Path, progress_file: Path
) -> None:
    """Where git refuses to pull over edited notebooks, a second clone helps."""
    entry = {"points": 5, "attempts": 1}
    (clone / ".progress.json").write_text(
        json.dumps({"format": 1, "exercises": {"lab01.ex1": entry}})
    )
    before = (clone / LAB).read_bytes()
    for _ in range(2):
        assert parcel.import_(clone, there)[1] == ""
        copies.sync(there)
        lab = texts(merge.read(state(there)[LAB]))
        assert lab[0] == "answer 42" and lab[2:] == ["answer 43", "new check"]
        assert "predict(41)" in texts(merge.read(state(there)["notebooks/01_new.ipynb"]))
        assert not [name for name in state(there) if "-1." in name]
    assert (clone / LAB).read_bytes() == before and progress.entries(there)["lab01.ex1"] == entry
    with pytest.raises(CopiesError, match="export there"):
        parcel.import_(there, clone)


def test_what_is_here_and_differs_stays_and_the_other_comes_beside(here: Path, there: Path) -> None:
    parcel.export(file := here.with_name("a.zip"), here)
    write_course(there, *FIRST_EDITION)
    copies.sync(there)
    edit(copies.folder(there) / LAB, ex1="answer 43")
    edit(copies.folder(there) / LESSON, a="predict(41)")
    changes, note = parcel.import_(file, there)
    assert [change.done for change in changes] == ["kept beside", "imported"] and note == ""
    assert "yours is now lab01_x.imported-1.ipynb" in copies.summary(changes)
    after = state(there)
    beside = after[LAB.replace(".ipynb", ".imported-1.ipynb")]
    assert b"answer 43" in after[LAB] and b"answer 42" in beside
    assert b"predict(41)" in after[LESSON]


def test_a_kill_while_importing_loses_nothing(here: Path, there: Path) -> None:
    parcel.export(file := here.with_name("a.zip"), here)
    whole = copy_of(there, 0)
    parcel.import_(file, whole)
    for at in range(1, 200):
        copy = copy_of(there, at)
        if not kill_at(lambda copy=copy: parcel.import_(file, copy), at):
            break
        parcel.import_(file, copy)
        assert state(copy) == state(whole)
    assert 10 < at < 199


def hostile(file: Path, name: str, mode: int = stat.S_IFREG | 0o644, content: str = "x") -> None:
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("work/good.txt", "good")
        entry = zipfile.ZipInfo(name)
        entry.external_attr = mode << 16
        archive.writestr(entry, content)


@pytest.mark.parametrize(
    "name",
    ["../a", "work/../../a", "/etc/a", "work/..", "work", "a", "work\\..\\a", "work/.lock"]
    + [
        "work/notebooks/.ipynb_checkpoints/a",
        "work/linked/a",
        "course.py",
        "work/a\\..\\b",
        "work/a/../b",
    ],
)
def test_a_zip_that_is_no_export_writes_nothing(here: Path, tmp_path: Path, name: str) -> None:
    (copies.folder(here) / "linked").symlink_to(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    hostile(file := tmp_path / "h.zip", name)
    with pytest.raises(CopiesError, match="nothing brought in"):
        parcel.import_(file, here)
    assert sorted(tmp_path.rglob("*")) == sorted([*before, file])


def test_links_bombs_and_damaged_files_are_refused(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "h.zip"
    before = state(here)
    hostile(file, "work/a", stat.S_IFLNK | 0o777, "/etc/passwd")
    with pytest.raises(CopiesError, match="'work/a' does not belong here"):
        parcel.import_(file, here)
    hostile(file, "work/a")
    whole = file.read_bytes()
    monkeypatch.setattr(import_command, "ROOT", here)
    for content in (b"", b"PK", whole[: len(whole) // 2], whole.replace(b"good", b"evil", 2)):
        file.write_bytes(content)
        assert import_command.main([str(file)]) == 1
        assert "damaged" in capsys.readouterr().err
    assert import_command.main([str(tmp_path / "none.zip")]) == 1
    monkeypatch.setattr(parcel, "BYTES", 4)
    file.write_bytes(whole)
    with pytest.raises(CopiesError, match="nothing brought in"):
        parcel.import_(file, here)
    assert {k: v for k, v in state(here).items() if k != ".lock"} == before


def test_progress_that_makes_no_sense_is_not_taken(here: Path, progress_file: Path) -> None:
    progress.record("lab01.ex1", "passed", 5, here)
    hostile(file := here.with_name("h.zip"), "progress.json", content=json.dumps({"format": 2}))
    changes, note = parcel.import_(file, here)
    assert [change.name for change in changes] == ["good.txt"]
    assert note.startswith("its progress was not brought in: ")
    assert progress.entries(here)["lab01.ex1"]["points"] == 5
