"""What is graded stays graded: kills, a full disk, Ctrl-C, going on, and grading again."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.labs import hostile
from utils.cli.commands import grade as command
from utils.labs.grading import attempts, batch, merge, records, sandbox
from utils.labs.grading.answers import Notebook
from utils.labs.grading.attempts import Attempts, Setting
from utils.labs.grading.gradebook import Book
from utils.labs.grading.platforms.results import load as results_of

WRONG = hostile.WRONG
NO_MEAN = "def mean(read, count):\n    return -1"
CLASS = {"ann": {}, "bob": {"ex1": WRONG}, "cem": {"ex2": NO_MEAN}, "dee": {}}
POINTS = {"ann": 12, "bob": 8, "cem": 6, "dee": 12}


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    for name, answers in CLASS.items():
        hostile.hand_in(tmp_path / "inbox" / name, hostile.notebook(**answers))
    return tmp_path / "inbox"


@pytest.fixture(autouse=True)
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The sandbox replaced: answers run here, because what is tested is what happens around it.
    Returns the exercises of each run.
    """
    runs: list[tuple[str, ...]] = []

    def run_all(notebook: Notebook, setting: Setting, slot: int) -> tuple[Attempts, str]:
        runs.append(tuple(e.name for e in setting.exercises))
        return hostile.run_here(notebook, setting, slot)

    monkeypatch.setattr(attempts, "run_all", run_all)
    return runs


def grade(inbox: Path, root: Path, **options: Any) -> dict[str, float]:
    rows = batch.grade(inbox, inbox.parent / "out", root, seed="s", jobs=1, **options)
    return {row.record.student: row.total for row in rows}


def results(out: Path) -> dict[str, bytes]:
    files = [*out.glob("*.csv"), *out.glob("*.html"), *out.glob("reports/*")]
    return {str(file.relative_to(out)): file.read_bytes() for file in files}


def at_call(number: int, function: Callable, what: Callable[[], Any]) -> Callable:
    """The function, before whose call of that number something happens."""
    left = iter(range(number))

    def called(*args: Any, **kwargs: Any) -> Any:
        if next(left, None) is None:
            what()
        return function(*args, **kwargs)

    return called


def full() -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


STEPS = [
    *((os, "fsync", k) for k in range(10)),  # within a file: a record, a report, a table
    *((os, "replace", k) for k in range(10)),  # before it is there
    *((Book, "record", k) for k in range(4)),
    *((records, "keep", k) for k in range(4)),  # after the gradebook, before the record
]
OFTEN = {("fsync", 2), ("fsync", 6), ("replace", 1), ("replace", 9), ("record", 3), ("keep", 2)}


def steps() -> list[Any]:
    """All steps at night, some of each kind always: nbgrader takes a second a submission."""
    night = (pytest.mark.exhaustive,)
    return [
        pytest.param(*step, marks=() if step[1:] in OFTEN else night, id=f"{step[1]}-{step[2]}")
        for step in STEPS
    ]


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, dict[str, bytes]]:
    """What a grading gives that nothing stops: made by the first test that asks for it."""
    return {}


@pytest.mark.parametrize(("owner", "name", "number"), steps())
def test_a_grading_that_is_killed_goes_on_and_ends_the_same(
    owner: Any, name: str, number: int, inbox: Path, root: Path, ran: list, undisturbed: dict
) -> None:
    child = os.fork()
    if child == 0:
        setattr(owner, name, at_call(number, getattr(owner, name), lambda: os._exit(9)))
        try:
            grade(inbox, root)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    there = {record.student for record in records.read(inbox.parent / "out")}
    assert grade(inbox, root) == POINTS
    assert len(ran) == len(POINTS) - len(there)
    after = results(inbox.parent / "out")
    if not undisturbed:
        shutil.rmtree(inbox.parent / "out")
        grade(inbox, root)
        undisturbed |= results(inbox.parent / "out")
    assert after == undisturbed


@pytest.mark.parametrize(("owner", "name", "number"), steps())
def test_a_full_disk_is_one_sentence_and_loses_nothing(
    owner: Any,
    name: str,
    number: int,
    inbox: Path,
    root: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command, "grade", lambda *a, **k: batch.grade(*a, root=root, **k))
    arguments = [str(inbox), "--out", str(inbox.parent / "out"), "--seed", "s", "--jobs", "1"]
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, at_call(number, getattr(owner, name), full))
        assert command.main(arguments) == 1
    text = capsys.readouterr().err
    assert "No space left on device" in text and "the same command goes on" in text
    before = {record.student: record.points for record in records.read(inbox.parent / "out")}
    assert before.items() <= POINTS.items()
    assert command.main(arguments) == 0
    assert grade(inbox, root) == POINTS
    assert not [*(inbox.parent / "out").rglob("*.half")]


def test_ctrl_c_keeps_what_is_graded(
    inbox: Path, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "grade", lambda *a, **k: batch.grade(*a, root=root, **k))

    def stop() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(records, "keep", at_call(2, records.keep, stop))
    assert command.main([str(inbox), "--out", str(inbox.parent / "out"), "--jobs", "1"]) == 130
    assert "what is graded is kept" in capsys.readouterr().err
    assert (inbox.parent / "out" / "gradebook.csv").read_text().count("\n") == 3


def test_only_what_changed_is_graded_again(inbox: Path, root: Path, ran: list) -> None:
    grade(inbox, root)
    hostile.hand_in(inbox / "bob", hostile.notebook())
    hostile.hand_in(inbox / "eva", hostile.notebook())
    ran.clear()
    assert grade(inbox, root) == POINTS | {"bob": 12, "eva": 12}
    assert len(ran) == 2


def test_who_left_the_folder_stays_in_the_book(inbox: Path, root: Path) -> None:
    grade(inbox, root)
    shutil.rmtree(inbox / "ann")
    assert set(grade(inbox, root)) == {"bob", "cem", "dee"}
    assert "ann,,,graded,12" in (inbox.parent / "out" / "gradebook.csv").read_text()


def test_another_of_the_same_name_takes_nothing_from_the_first(inbox: Path, root: Path) -> None:
    grade(inbox, root)
    shutil.copy(inbox / "bob" / "lab99_sums.ipynb", inbox / "ann.ipynb")
    assert grade(inbox, root) == POINTS | {"ann.ipynb": 8}
    slugs = {record.entry: record.slug for record in records.read(inbox.parent / "out")}
    assert slugs["ann"] == "ann" and slugs["ann.ipynb"] == "ann.ipynb"


def test_a_student_and_an_exercise_can_be_graded_again(
    inbox: Path, root: Path, ran: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    grade(inbox, root)
    out = inbox.parent / "out"
    seeds = {record.student: record.seed for record in records.read(out)}
    ran.clear()
    texts: list[str] = []
    assert grade(inbox, root, again=["bob"], say=texts.append) == POINTS
    assert ran == [("ex1", "ex2")] and not [line for line in texts if "before" in line]
    ran.clear()
    hostile.hand_in(inbox / "cem", hostile.notebook())
    assert grade(inbox, root, again=["lab99.ex2"], say=texts.append) == POINTS | {"cem": 12}
    assert sorted(ran) == [("ex1", "ex2"), ("ex2",), ("ex2",), ("ex2",)]
    assert [line.split(" ", 1)[1] for line in texts if "before" in line] == [
        "cem: 12, graded (6 before)"
    ]
    drawn = {record.student: record.seed for record in records.read(out)}
    assert {name for name in seeds if drawn[name] != "s"} == {"ann", "bob", "cem", "dee"}


def test_who_hands_in_again_gets_new_inputs(inbox: Path, root: Path) -> None:
    grade(inbox, root)
    hostile.hand_in(inbox / "cem", hostile.notebook())
    assert grade(inbox, root) == POINTS | {"cem": 12}
    drawn = {record.student: record.seed for record in records.read(inbox.parent / "out")}
    assert {name for name, seed in drawn.items() if seed != "s"} == {"cem"}
    rows = batch.grade(inbox, inbox.parent / "out", root, seed="another", jobs=1)
    assert len(rows) == len(POINTS)
    kept = records.read(inbox.parent / "out")
    assert {record.seed for record in kept} == {"another"}


def test_a_name_that_nobody_has_is_refused(inbox: Path, root: Path) -> None:
    with pytest.raises(ValueError, match=r"--again eva: .* lab99.ex1, lab99.ex2, .* ann"):
        grade(inbox, root, again=["eva"])


def test_a_submission_that_breaks_its_sandbox_costs_its_own_row(
    inbox: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_all, broken = attempts.run_all, True

    def breaks(notebook: Notebook, setting: Setting, slot: int) -> tuple[Attempts, str]:
        if broken and notebook.answer("ex1").source == WRONG:
            raise sandbox.SandboxError("its sandbox fails before its code runs: died")
        return run_all(notebook, setting, slot)

    monkeypatch.setattr(attempts, "run_all", breaks)
    assert grade(inbox, root) == POINTS | {"bob": 0}
    table = (inbox.parent / "out" / "gradebook.csv").read_text()
    assert "bob,,,not graded,0,12,0,0,not graded: its sandbox fails before its code runs" in table
    broken = False
    assert grade(inbox, root) == POINTS


def test_where_no_sandbox_works_nobody_pays(
    inbox: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(notebook: Notebook, setting: Setting, slot: int) -> tuple[Attempts, str]:
        raise sandbox.SandboxError("no more processes")

    monkeypatch.setattr(attempts, "run_all", fails)
    with pytest.raises(sandbox.SandboxError):
        grade(inbox, root)
    assert [*records.read(inbox.parent / "out")] == []


def test_folders_that_were_graded_apart_are_joined(inbox: Path, root: Path, tmp_path: Path) -> None:
    outs = [tmp_path / "monday", tmp_path / "tuesday"]
    batch.grade(inbox, outs[0], root, seed="s", jobs=1)
    for name in ("ann", "cem"):
        shutil.rmtree(inbox / name)
    hostile.hand_in(inbox / "bob", hostile.notebook())  # handed in again, and right now
    hostile.hand_in(inbox / "eva", hostile.notebook(ex2=NO_MEAN))
    batch.grade(inbox, outs[1], root, seed="s", jobs=1)
    results_of(outs[0], root).book.give("ann", {"ex2": 3.0})

    count, conflicts = merge.merge(outs, tmp_path / "joined", root)
    joined = results_of(tmp_path / "joined", root)
    expected = POINTS | {"ann": 7.0, "bob": 12, "eva": 6}
    assert {s.record.student: s.total for s in joined.students} == expected
    assert count == 5 and len(conflicts) == 1 and conflicts[0].startswith("bob: ")
    assert conflicts[0].endswith("tuesday counts")
    assert {s.record.student for s in joined.students if s.by_hand} == {"ann"}

    before = results(tmp_path / "joined")
    assert merge.merge(outs[1:], tmp_path / "joined", root) == (5, [])
    assert results(tmp_path / "joined") == before
    assert len(before) == 5 + len(["gradebook.csv", "similar.csv", "class.html", "similar.html"])


def test_folders_without_results_are_not_joined(tmp_path: Path, root: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="holds no results: give the --out of an earlier"):
        merge.merge([tmp_path / "empty"], tmp_path / "joined", root)
