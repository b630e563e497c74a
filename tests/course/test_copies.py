"""The learner's copies: no update, kill or full disk loses what somebody wrote in them."""

import builtins
import errno
import io
import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from utils.cli.commands import restore, start, update
from utils.course import catalog, copies, merge
from utils.course.catalog import ROOT
from utils.course.copies import CopiesError
from utils.course.merge import Notebook

LAB, LESSON = "labs/lab01_x/lab01_x.ipynb", "notebooks/01_x.ipynb"


def cell(name: str, source: str, kind: str = "code", **more: Any) -> dict[str, Any]:
    made = {"cell_type": kind, "id": name, "metadata": {}, "source": source.splitlines(True)}
    return made | ({"execution_count": None, "outputs": []} if kind == "code" else {}) | more


def notebook(*cells: dict[str, Any], kind: str = "lesson", number: str = "01") -> Notebook:
    course = {"kind": kind, "number": number}
    metadata = {"course": course, "language_info": {"name": "python"}}
    return {"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def texts(made: Notebook) -> list[str]:
    return [catalog.text(item) for item in made["cells"]]


# ---- merging


@st.composite
def notebooks(draw: st.DrawFn, extra: str = "") -> Notebook:
    names = draw(st.lists(st.sampled_from([*"abcde", *extra]), unique=True))
    cells = [
        cell(name, name + draw(st.sampled_from("123")), draw(st.sampled_from(["code", "markdown"])))
        for name in names
    ]
    return notebook(*cells)


@given(notebooks(), notebooks("xyz"), notebooks("pq"))
def test_a_merge_loses_no_text_of_the_learner_and_doing_it_again_changes_nothing(
    base: Notebook, mine: Notebook, theirs: Notebook
) -> None:
    merged = merge.merge(base, mine, theirs).notebook
    old = {item["id"]: merge.content(item) for item in base["cells"]}
    written = [c for c in mine["cells"] if merge.content(c) != old.get(c["id"])]
    assert {merge.content(item) for item in written} <= set(merge.contents(merged))
    new = [c for c in theirs["cells"] if merge.content(c) != old.get(c["id"])]
    assert all(any(text in shown for shown in texts(merged)) for text in map(catalog.text, new))
    # Once more with the old edition, as after a kill, and with the new one, as on the next day.
    assert merge.merge(base, merged, theirs).notebook == merged
    assert merge.merge(theirs, merged, theirs).notebook == merged
    nbformat.validate(nbformat.from_dict(merged))
    assert len({item["id"] for item in merged["cells"]}) == len(merged["cells"])


@given(notebooks(), notebooks("xyz"))
def test_what_one_side_left_alone_is_as_the_other_has_it(one: Notebook, other: Notebook) -> None:
    assert merge.merge(one, one, other).notebook == other
    assert merge.merge(one, other, one).notebook == other


def test_the_learners_cell_stays_and_the_new_one_stands_below_it_as_text() -> None:
    base = notebook(cell("a", "def f(): ..."), cell("b", "check(f)"))
    ran = {"execution_count": 3, "outputs": [{"output_type": "stream", "name": "o", "text": "7"}]}
    mine = notebook(
        cell("a", "def f(): return 7", **ran), cell("own", "f()"), cell("b", "check(f)")
    )
    theirs = notebook(cell("a", 'def f():\n    "New."'), cell("new", "1"), cell("b", "check(f, 2)"))
    merged = merge.merge(base, mine, theirs)
    first, shown, *rest = merged.notebook["cells"]
    assert first["outputs"] == ran["outputs"] and shown["cell_type"] == "markdown"
    assert '```python\ndef f():\n    "New."\n```' in catalog.text(shown)
    assert [catalog.text(item) for item in rest] == ["f()", "1", "check(f, 2)"]
    assert merged.notes == ("a: changed in the course and by you",)
    # The next change takes the place of what is shown now, unless the learner wrote into it.
    again = merge.merge(theirs, merged.notebook, notebook(cell("a", "newest")))
    assert [t for t in texts(again.notebook) if "New." in t] == []
    shown["source"] = [*shown["source"], "mine too"]
    again = merge.merge(theirs, merged.notebook, notebook(cell("a", "newest")))
    assert sum("mine too" in text or "newest" in text for text in texts(again.notebook)) == 2


def test_cells_without_ids_are_known_by_what_they_are() -> None:
    graded = {"nbgrader": {"grade_id": "b"}}
    base = notebook(cell("a", "1"), cell("b", "stub", metadata=graded))
    mine = notebook(cell("", "1"), cell("", "answer", metadata=graded), cell("", "own"))
    theirs = notebook(cell("a", "2"), cell("b", "stub", metadata=graded))
    assert texts(merge.merge(base, mine, theirs).notebook) == ["2", "answer", "own"]


@pytest.mark.parametrize("name", copies.sources(ROOT))
def test_a_published_copy_is_as_jupyterlab_writes_it_and_every_path_in_it_leads_somewhere(
    name: str,
) -> None:
    """JupyterLab asks "save changes?" where the kernel's own facts differ from the file's."""
    from ipykernel.ipkernel import IPythonKernel

    if not name.endswith(".ipynb"):
        return
    content = copies._as_published(name, (ROOT / name).read_bytes())
    made = nbformat.reads(content.decode(), as_version=4)
    assert nbformat.writes(made) + "\n" == content.decode()
    assert made.metadata.language_info == IPythonKernel.language_info
    assert all(not c.get("outputs") and c.get("execution_count") is None for c in made.cells)
    assert not any("outputs_hidden" in c.metadata.get("jupyter", {}) for c in made.cells)
    original = merge.read((ROOT / name).read_bytes())
    pairs = [pair for pair in zip(texts(original), texts(made), strict=True) if len({*pair}) == 2]
    assert all(before == after.replace("../../utils", "../utils") for before, after in pairs)


# ---- a course, and a learner in it


def write_course(root: Path, *files: tuple[str, Notebook | str]) -> None:
    for folder in ("notebooks", "labs"):
        shutil.rmtree(root / folder, ignore_errors=True)
    for name, content in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        made = content.encode() if isinstance(content, str) else merge.write(content)
        (root / name).write_bytes(made)


FIRST_EDITION: tuple[tuple[str, Notebook | str], ...] = (
    (LESSON, notebook(cell("a", "predict(None)"), cell("b", "old prose", "markdown"))),
    ("notebooks/02_y.ipynb", notebook(cell("a", "1"), number="02")),
    ("notebooks/03_z.ipynb", notebook(cell("a", "1"), number="03")),
    ("notebooks/scripts/s.py", "1\n"),
    (LAB, notebook(cell("ex1", "stub"), cell("ex2", "stub"), cell("c", "check"), kind="lab")),
)
SECOND_EDITION: tuple[tuple[str, Notebook | str], ...] = (
    ("notebooks/01_new.ipynb", notebook(cell("a", "predict(None)"), cell("b", "new", "markdown"))),
    ("notebooks/02_y.ipynb", notebook(cell("a", "2"), number="02")),
    ("notebooks/04_n.ipynb", notebook(cell("a", "1"), number="04")),
    ("notebooks/scripts/s.py", "2\n"),
    (LAB, notebook(cell("ex1", "new stub"), cell("c", "new check"), kind="lab")),
)
ANSWERS = ("predict(41)", "answer 42", "answer 43", "answer 44", "not a notebook 45", "script 46")


def edit(path: Path, **sources: str) -> None:
    made = json.loads(path.read_text())
    for item in made["cells"]:
        item["source"] = sources.get(item["id"], item["source"])
    path.write_text(json.dumps(made, indent=1))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A course whose learner has answered, and whose folder now holds the second edition."""
    root = tmp_path / "course"
    write_course(root, *FIRST_EDITION)
    assert {change.done for change in copies.sync(root)} == {"added"}
    work = copies.folder(root)
    edit(work / LESSON, a="predict(41)")
    edit(work / LAB, ex1="answer 42", ex2="answer 43")
    edit(work / "notebooks/03_z.ipynb", a="answer 44")
    (work / "notebooks/02_y.ipynb").write_text("not a notebook 45")
    (work / "notebooks/scripts/s.py").write_text("script 46")
    write_course(root, *SECOND_EDITION)
    return root


def state(root: Path) -> dict[str, bytes]:
    work = copies.folder(root)
    paths = [p for p in sorted(work.rglob("*")) if p.is_file() and p.suffix != ".part"]
    return {path.relative_to(work).as_posix(): path.read_bytes() for path in paths}


def assert_all_answers_are_there(root: Path) -> None:
    all_of_it = b"\n".join(state(root).values()).decode()
    assert [answer for answer in ANSWERS if answer not in all_of_it] == []


def test_an_update_brings_everything_new_and_keeps_every_answer(root: Path) -> None:
    message = copies.summary(copies.sync(root)).splitlines()
    work, after = copies.folder(root), state(root)
    lab, lesson = merge.read(after[LAB]), merge.read(after["notebooks/01_new.ipynb"])
    assert texts(lab)[0] == "answer 42" and "new stub" in texts(lab)[1]
    assert texts(lab)[2:] == ["answer 43", "new check"]
    assert texts(lesson) == ["predict(41)", "new"] and not (work / LESSON).exists()
    assert after["notebooks/02_y.damaged-1.ipynb"] == b"not a notebook 45"
    assert after["notebooks/scripts/s.before-1.py"] == b"script 46"
    assert after["notebooks/scripts/s.py"] == b"2\n"
    assert "answer 44" in after["notebooks/03_z.ipynb"].decode()
    assert [line for line in message if line.startswith("  lab01")] == [
        "  lab01_x.ipynb: ex1: changed in the course and by you",
        "  lab01_x.ipynb: ex2: no longer in the course; yours stays",
    ]
    assert "merged: notebooks/01_new.ipynb, labs/lab01_x/lab01_x.ipynb" in message
    assert_all_answers_are_there(root)
    assert copies.sync(root) == [] and state(root) == after


def test_untouched_copies_follow_and_leave_with_the_course(root: Path) -> None:
    shutil.rmtree(copies.folder(root))
    write_course(root, *FIRST_EDITION)
    copies.sync(root)
    write_course(root, *SECOND_EDITION)
    copies.sync(root)
    fresh = root.with_name("fresh")
    write_course(fresh, *SECOND_EDITION)
    copies.sync(fresh)
    assert state(root) == state(fresh)


OPEN = open
STEPS: tuple[tuple[Any, str], ...] = (
    *((os, name) for name in ("replace", "fsync", "rmdir")),
    *((Path, name) for name in ("unlink", "mkdir")),
    *((module, "open") for module in (builtins, io)),
)


def interrupt(act: Callable[[], Any], at: int, stop: Callable[[], None]) -> bool:
    """Act, and call `stop` in place of the step of that number on the disk. Was it reached?"""
    count = itertools.count(1)

    def counted(step: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*arguments: Any, **named: Any) -> Any:
            # A file that was opened for writing is empty then.
            file = step(*arguments, **named) if step is OPEN else None
            if next(count) == at:
                stop()
            return file or step(*arguments, **named)

        return instead

    with pytest.MonkeyPatch.context() as patch:
        for owner, name in STEPS:
            patch.setattr(owner, name, counted(getattr(owner, name)))
        act()
    return next(count) > at


def kill_at(act: Callable[[], Any], at: int) -> bool:
    """Act in a process that is killed at a step; whether it was."""
    pid = os.fork()
    if pid == 0:
        try:
            interrupt(act, at, lambda: os._exit(9))
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9


def copy_of(root: Path, number: int) -> Path:
    return Path(shutil.copytree(root, root.with_name(f"copy{number}")))


def test_a_kill_at_any_point_loses_nothing_and_the_next_update_ends_the_same(root: Path) -> None:
    whole = copy_of(root, 0)
    copies.sync(whole)
    for at in itertools.count(1):
        copy = copy_of(root, at)
        if not kill_at(lambda copy=copy: copies.sync(copy), at):
            break
        assert_all_answers_are_there(copy)
        copies.sync(copy)
        assert state(copy) == state(whole), at
    assert at > 30


def test_a_full_disk_at_any_point_is_told_and_loses_nothing(root: Path) -> None:
    whole = copy_of(root, 0)
    copies.sync(whole)

    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for at in itertools.count(1):
        copy = copy_of(root, at)
        try:
            with copies.alone(copy):
                if not interrupt(lambda copy=copy: copies.sync(copy), at, full):
                    break
        except CopiesError as error:
            assert str(error).startswith("the disk is full. Nothing is lost: free some space")
        assert_all_answers_are_there(copy)
        copies.sync(copy)
        assert {k: v for k, v in state(copy).items() if k != ".lock"} == state(whole), at


def test_a_copy_that_is_saved_meanwhile_is_merged_once_more(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real = copies.folder(root) / LAB, os.fsync

    def save_meanwhile(file: int) -> None:
        monkeypatch.setattr(os, "fsync", real)
        edit(path, c="last word")

    copies._rename(root, LESSON, "notebooks/01_new.ipynb")
    monkeypatch.setattr(os, "fsync", save_meanwhile)
    copies._bring_up(root, LAB, copies.read_release(root, LAB) or b"")
    assert "last word" in path.read_text() and "new check" in path.read_text()


def test_restore_brings_a_fresh_copy_and_keeps_the_old_one(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(restore, "ROOT", root)
    for what in ("lab01", "lesson01", "01", "02_y.ipynb", LAB):
        assert restore.main([what]) == 0
    out = capsys.readouterr().out
    assert "your copy from before is now work/labs/lab01_x/lab01_x.before-1.ipynb" in out
    assert out.count("fresh already: ") == 2
    after = state(root)
    assert texts(merge.read(after[LAB])) == ["new stub", "new check"]
    assert_all_answers_are_there(root)
    edit(copies.folder(root) / LAB, ex1="answer 47")
    for at in itertools.count(1):
        copy = copy_of(root, at)
        if not kill_at(lambda copy=copy: copies.restore("lab01", copy), at):
            break
        assert b"answer 47" in b"".join(state(copy).values())
        copies.sync(copy)
        assert (copies.folder(copy) / LAB).exists()
    assert restore.main(["lab77"]) == 1 and "there is lab01" in capsys.readouterr().err


# ---- old working copies, and git


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def save_as_jupyter(path: Path, **sources: str) -> None:
    edit(path, **sources)
    made = json.loads(path.read_text())
    made["metadata"]["language_info"] = merge.LANGUAGE
    path.write_text(json.dumps(made, indent=1))


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A learner's clone in which a lab and a lesson were edited, and an origin that went on."""
    origin = tmp_path / "origin"
    write_course(origin, *FIRST_EDITION)
    (origin / ".gitignore").write_text("work/\n")
    git(tmp_path, "init", "--quiet", "origin")
    git(origin, "add", ".")
    git(origin, "commit", "--quiet", "-m", "first")
    git(tmp_path, "clone", "--quiet", "origin", "clone")
    write_course(origin, *SECOND_EDITION)
    git(origin, "add", ".")
    git(origin, "commit", "--quiet", "-m", "second")
    save_as_jupyter(tmp_path / "clone" / LAB, ex1="answer 42", ex2="answer 43")
    save_as_jupyter(tmp_path / "clone" / LESSON, a="predict(41)")
    return tmp_path / "clone"


def test_old_working_copies_are_taken_over_and_the_course_can_be_pulled(
    clone: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(update, "ROOT", clone)
    start.bring_up_copies(clone)
    assert "Your own copies of lessons and labs are in work/" in capsys.readouterr().out
    assert copies.changed_files(clone) == []
    assert texts(merge.read(state(clone)[LAB])) == ["answer 42", "answer 43", "check"]
    assert update.main([]) == 0
    assert "The course's folder is up to date" in capsys.readouterr().out
    after = state(clone)
    assert "answer 42" in texts(merge.read(after[LAB])) and LESSON not in after
    assert texts(merge.read(after["notebooks/01_new.ipynb"])) == ["predict(41)", "new"]
    assert b"answer 42" in after[f"taken-over/{LAB}"]
    shutil.rmtree(clone.with_name("origin"))
    assert update.main([]) == 0
    out = capsys.readouterr().out
    assert "Nothing was fetched: " in out and "Your copies were up to date." in out


def test_a_kill_while_old_copies_are_taken_over_loses_nothing(clone: Path) -> None:
    whole = copy_of(clone, 0)
    copies.sync(whole)
    for at in itertools.count(1):
        copy = copy_of(clone, at)
        if not kill_at(lambda copy=copy: copies.take_over(copy), at):
            break
        copies.sync(copy)
        assert state(copy) == state(whole) and copies.changed_files(copy) == []


def test_who_works_on_the_course_is_not_robbed(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (clone / LAB).read_bytes()
    script = clone / "notebooks" / "scripts" / "s.py"
    script.write_text("mine")
    message = copies.summary(copies.sync(clone))
    assert "s.py is changed there" in message and (clone / LAB).read_bytes() == before
    assert texts(merge.read(state(clone)[LAB]))[0] == "stub"
    assert "are changed here: " in copies.pull(clone)
    git(clone, "checkout", "--quiet", "notebooks/scripts")
    monkeypatch.setenv("COURSE_MAINTAINER", "1")
    copies.sync(clone)
    assert (clone / LAB).read_bytes() == before
    assert texts(merge.read(state(clone)[LAB]))[0] == "answer 42"


def test_without_git_old_working_copies_are_copied_once_and_never_lost(root: Path) -> None:
    shutil.rmtree(copies.folder(root))
    write_course(root, *FIRST_EDITION)
    save_as_jupyter(root / LAB, ex1="answer 42")
    copies.sync(root)
    edit(copies.folder(root) / LAB, ex2="answer 43")
    assert copies.sync(root) == []
    write_course(root, *SECOND_EDITION)
    copies.sync(root)
    assert {"answer 42", "answer 43"} <= set(texts(merge.read(state(root)[LAB])))
    assert copies.pull(root).startswith("The course's folder is not a git clone")
