"""Progress is one readable file that survives restarts, damage, and two notebooks at once."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from utils.course import progress
from utils.course.progress import (
    begin_lesson,
    board,
    choose,
    document,
    entries,
    finish_lesson,
    join,
    nothing,
    record,
    reset,
    undo_reset,
)


def test_the_best_points_and_the_last_state_are_kept(course: Path, progress_file: Path) -> None:
    assert record("lab99.ex2", "tried", 6.0, course) == ""
    record("lab99.ex2", "error", 0.0, course)
    stored = json.loads(progress_file.read_text())["exercises"]["lab99.ex2"]
    assert (stored["points"], stored["state"], stored["attempts"]) == (6.0, "error", 2)
    assert stored["versions"]["torch"] == "2.9.1"
    assert set(stored["versions"]) == {"torch", "torch-xla", "course"}


def test_without_the_variable_the_file_lies_in_the_course_root(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("COURSE_PROGRESS")
    record("lab99.ex1", "passed", 4.0, tmp_path)
    assert (tmp_path / ".progress.json").is_file()


def test_progress_survives_the_process(course: Path, progress_file: Path) -> None:
    code = "from utils.course.progress import record; record('lab99.ex1', 'passed', 4.0)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    assert entries(course)["lab99.ex1"]["points"] == 4.0


def test_two_processes_at_once_lose_nothing(course: Path, progress_file: Path) -> None:
    code = (
        "import sys; from utils.course.progress import record\n"
        "for i in range(25): record('lab99.ex1', 'tried', 1.0); record(sys.argv[1], 'tried', i)"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, f"lab99.own{n}"], cwd=ROOT) for n in (1, 2)
    ]
    assert [process.wait() for process in running] == [0, 0]
    assert entries(course)["lab99.ex1"]["attempts"] == 50
    assert entries(course)["lab99.own2"]["points"] == 24
    assert not list(progress_file.parent.glob(f"{progress_file.name}.??????"))


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"format": 7, "exercises": {}}',
        '{"format": 1, "exercises": {"a": 3}}',
        '{"format": 1, "exercises": {}, "lessons": {"03": "half"}}',
    ],
)
def test_a_damaged_file_is_moved_aside_and_said(
    course: Path, progress_file: Path, content: str
) -> None:
    progress_file.write_text(content)
    note = record("lab99.ex1", "passed", 4.0, course)
    assert "was damaged: it was renamed to progress.json.broken-1" in note
    assert (progress_file.parent / "progress.json.broken-1").read_text() == content
    assert entries(course)["lab99.ex1"]["points"] == 4.0
    progress_file.write_text(content)
    assert "broken-2" in repr(board("lab99", course))


def test_where_nothing_can_be_written_it_is_said_once(course: Path, monkeypatch) -> None:
    monkeypatch.setenv("COURSE_PROGRESS", str(course / "notebooks" / "99_counting.ipynb" / "p"))
    assert "is not writable" in record("lab99.ex1", "tried", 1.0, course)
    assert record("lab99.ex1", "passed", 4.0, course) == ""
    assert entries(course)["lab99.ex1"]["attempts"] == 2
    assert "● passed" in repr(board("lab99", course))
    assert "forgotten: lab99.ex1" in repr(reset("all", course))
    assert entries(course) == {}


def test_the_board_shows_states_points_minutes_and_the_next_step(course: Path) -> None:
    assert repr(board("lab99", course)).splitlines() == [
        "lab99 · Sums · 0 / 12 points · 15 min left",
        "  ○ not tried  lab99.ex1  Twice  0 / 4 points    5 min left",
        "  ○ not tried  lab99.ex2  Mean   0 / 8 points    10 min left",
        "next: lab99.ex1 · Twice · 5 min",
    ]
    record("lab99.ex1", "passed", 4.0, course)
    record("lab99.ex2", "tried", 6.0, course)
    record("lab99.ex2", "tried", 2.0, course)
    text = repr(board("lab99", course))
    assert "lab99 · Sums · 10 / 12 points · 10 min left" in text
    assert "● passed  lab99.ex1  Twice  4 / 4 points  1 attempt" in text
    assert "◐ tried   lab99.ex2  Mean   6 / 8 points  2 attempts  10 min left" in text
    assert "next: lab99.ex2 · Mean" in text
    record("lab99.ex2", "passed", 8.0, course)
    assert "complete" in repr(board("lab99", course))
    assert "all exercises are passed" in repr(board("lab99", course))


def test_the_board_has_an_html_twin_and_knows_its_labs(course: Path) -> None:
    html = board("lab99", course)._repr_html_()
    assert "<caption" in html and "not tried" in html and 'scope="col"' in html
    assert "there is no lab 'lab42'; there is: lab99" in repr(board("lab42", course))


@pytest.mark.parametrize(
    ("target", "left"),
    [("lab99.ex1", ["lab98.ex1", "lab99.ex2"]), ("lab99", ["lab98.ex1"]), ("all", [])],
)
def test_reset_forgets_what_it_names_and_can_be_undone(course: Path, target: str, left) -> None:
    for item in ("lab98.ex1", "lab99.ex1", "lab99.ex2"):
        record(item, "tried", 2.0, course)
    text = repr(reset(target, course))
    assert "forgotten: " in text and "to undo: from utils.course.progress import undo_reset" in text
    assert sorted(entries(course)) == left
    record("lab99.ex1", "tried", 3.0, course)
    undo_reset(course)
    assert sorted(entries(course)) == ["lab98.ex1", "lab99.ex1", "lab99.ex2"]
    assert entries(course)["lab99.ex1"]["points"] == 3.0
    assert "no reset to undo" in repr(undo_reset(course))


def test_reset_of_the_unknown_or_the_untried_changes_nothing(course: Path) -> None:
    assert "there is no exercise 'lab99.ex8'" in repr(reset("lab99.ex8", course))
    assert "there is no progress in lab99 yet" in repr(reset("lab99", course))
    assert "there is no progress in any lab yet" in repr(reset("all", course))
    assert progress.entries(course) == {}


def test_lessons_are_begun_and_done_once_and_forgotten_by_name_or_with_all(
    course: Path, progress_file: Path
) -> None:
    progress_file.write_text('{"format": 1, "exercises": {}}')  # as an older course wrote it
    for recorded, state in (
        (begin_lesson, "begun"),
        (finish_lesson, "done"),
        (begin_lesson, "done"),
    ):
        assert recorded("lesson99", course) == ""
        assert document(course)[0]["lessons"] == {"99": state}
    choose("kernels", course)
    for target in ("lesson99", "all"):
        assert "forgotten: lesson99" in repr(reset(target, course))
        assert document(course)[0] == {**nothing(), "track": "kernels"}
        begin_lesson("lesson99", course)
        assert "restored: nothing" in repr(undo_reset(course))
        assert document(course)[0]["lessons"] == {"99": "done"}


def test_what_is_joined_is_the_better_of_both(course: Path, progress_file: Path) -> None:
    finish_lesson("lesson01", course)
    begin_lesson("lesson02", course)
    other = {"01": "begun", "02": "done", "03": "begun"}
    content = {"format": 1, "exercises": {}, "lessons": other, "track": "serving"}
    assert join(json.dumps(content).encode(), course) == ""
    assert document(course)[0]["lessons"] == {"01": "done", "02": "done", "03": "begun"}
    assert document(course)[0]["track"] == "serving"


@pytest.mark.parametrize("target", ["", 3, None])
def test_reset_has_to_be_told_what(course: Path, target) -> None:
    record("lab99.ex1", "passed", 4.0, course)
    text = repr(reset(target, course))
    assert text.startswith("nothing was reset") and 'reset("all") forgets everything' in text
    assert list(entries(course)) == ["lab99.ex1"]


def test_an_empty_file_is_no_progress_and_no_damage(course: Path, progress_file: Path) -> None:
    progress_file.write_text("\n")
    assert "damaged" not in repr(board("lab99", course))
    assert record("lab99.ex1", "passed", 4.0, course) == ""
    assert not list(progress_file.parent.glob("*broken*"))


def test_a_folder_in_place_of_the_file_is_named_as_such(course: Path, progress_file: Path) -> None:
    progress_file.mkdir()
    assert "progress.json is a folder" in repr(board("lab99", course))
    assert "progress.json is a folder. Move or remove it" in record("lab99.ex1", "a", 1, course)
    assert progress_file.is_dir()


def test_the_board_of_no_lab_is_one_sentence(course: Path) -> None:
    says = 'name a lab, as in board("lab03"); notebooks/00_start_here.ipynb shows the whole course'
    assert (repr(board(3, course)), repr(board())) == (f"board(3): {says}", f"board(): {says}")
    html = board("lab99", course)._repr_html_()
    assert 'scope="col"' in html and "attempts</th>" not in html, "no exercise was tried yet"
