"""Grading: reading submissions, their answers, marking, the gradebook and the reports."""

import csv
import json
import os
import random
import re
import shutil
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import utils.labs
from tests.labs import hostile
from tests.labs.cells import right_ways
from utils.cli.commands import grade as command
from utils.course import catalog
from utils.labs import Criterion, Verdict
from utils.labs.grading import (
    answers,
    batch,
    display,
    folders,
    lab,
    marking,
    report,
    sandbox,
    scan,
    submissions,
)
from utils.labs.grading.attempts import Attempt, attempts_of
from utils.labs.grading.confine import Limits
from utils.labs.grading.records import Graded as Row
from utils.labs.grading.submissions import File, NotANotebook

WRONG = hostile.WRONG

pytestmark = pytest.mark.usefixtures("root")


@pytest.fixture
def lab99(root: Path) -> lab.Lab:
    return lab.load(root, "lab99")


def filled(lab99: lab.Lab, made: hostile.Notebook) -> answers.Notebook:
    """Lab 99 with the answers of a notebook."""
    return answers.fill(submissions.parse(json.dumps(made).encode()), lab99)


def kinds(result: answers.Notebook) -> list[str]:
    return [c.id for c in result.cells if c.kind != "text"]


# Submissions


def test_one_submission_for_each_folder_and_file(tmp_path: Path) -> None:
    for name in ("jane", "Bob_123_assignsubmission_file_", ".hidden", "__MACOSX"):
        (tmp_path / name).mkdir()
    for name in ("ann.ipynb", "leekim_LATE_1_2_lab99 (3).ipynb"):
        (tmp_path / name).write_text("{}")
    result = submissions.find(tmp_path)
    assert [s.student for s in result] == ["Bob", "ann", "jane", "leekim"]
    assert [s.id for s in result] == ["123", "", "", "1"]
    assert [s.late for s in result] == [False, False, False, True]


def test_an_empty_inbox_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no submissions"):
        submissions.find(tmp_path)


def test_two_entries_of_one_name_stay_apart(tmp_path: Path) -> None:
    (tmp_path / "jane").mkdir()
    (tmp_path / "jane.ipynb").write_text("{}")
    result = submissions.find(tmp_path)
    assert [s.student for s in result] == ["jane", "jane.ipynb"]
    assert [s.slug for s in result] == ["jane", "jane.ipynb"]


@pytest.mark.parametrize(
    "names",
    [
        ["a/b", "a-b", "a b", "A b"],
        ["..", ".", "...", ""],
        ["Jo", "jo", "JO"],
        ["x" * 300, "x" * 301],
        ["Zoë", "張偉", "a\nb", "\udce4", "a\x00b"],
        ["*", "[a]", "{b}", "-rf", "=1+1"],
    ],
)
def test_file_names_are_safe_and_differ(names: list[str]) -> None:
    slugs = list(submissions.slugs_of(names).values())
    assert len({s.casefold() for s in slugs}) == len(names)
    for slug in slugs:
        assert slug.strip(".-") and len(slug) < 140
        assert not set(slug) & set('/\\*?[]{}:"<>|= \n\x00')
        slug.encode()


def test_a_name_cannot_take_the_file_name_of_another() -> None:
    other = submissions.slugs_of(["a b"])["a b"]
    slugs = submissions.slugs_of(["a b", other])
    assert slugs[other] == other
    assert slugs["a b"] != other


def test_zip_files_are_read_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "jane.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../lab99.ipynb", "{}")
        archive.writestr("work/lab99.ipynb", "{}")
        archive.writestr("__MACOSX/lab99.ipynb", "{}")
        archive.writestr("big.ipynb", bytes(submissions.MAX_NOTEBOOK_BYTES + 1))
    files, notes = submissions.read(path)
    assert files == [File("jane.zip: work/lab99.ipynb", b"{}")]
    assert notes == ["jane.zip: big.ipynb was not read: it is larger than 20 MB"]
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["jane.zip"]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 broken", b"x" * 100])
def test_broken_zip_files_are_noted(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "jane.zip").write_bytes(content)
    files, notes = submissions.read(tmp_path / "jane.zip")
    assert files == []
    assert notes[0].startswith("jane.zip was not read: ")


def test_a_large_notebook_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "jane.ipynb").open("wb") as file:
        file.truncate(submissions.MAX_NOTEBOOK_BYTES + 1)
    files, notes = submissions.read(tmp_path / "jane.ipynb")
    assert (files, notes) == ([], ["jane.ipynb was not read: it is larger than 20 MB"])


# The answers of a submission


def test_the_solution_pours_without_a_note(lab99: lab.Lab) -> None:
    result = filled(lab99, hostile.notebook())
    assert result.notes == ()
    assert kinds(result) == ["setup", "ex1-code", "ex1-check", "ex2-code", "ex2-check"]
    assert result.answer("ex1").source == hostile.RIGHT["ex1"]


def test_own_cells_keep_their_places(lab99: lab.Lab) -> None:
    made = hostile.notebook()
    for position, source in ((0, "a = 1"), (3, "b = 2"), (len(made["cells"]), "c = 3")):
        made["cells"].insert(position, {"cell_type": "code", "source": source, "metadata": {}})
    result = filled(lab99, made)
    own = {c.id: c.source for c in result.cells if c.kind == "extra"}
    assert own == {"own cell 1": "a = 1", "own cell 2": "b = 2", "own cell 3": "c = 3"}
    assert [c.id for c in result.above("ex1")] == ["own cell 1", "setup", "own cell 2", "ex1-code"]


def test_an_answer_in_another_cell_counts(lab99: lab.Lab) -> None:
    made = hostile.notebook(ex1="# moved below")
    own = {"cell_type": "code", "source": hostile.RIGHT["ex1"], "metadata": {}, "id": "z"}
    made["cells"].insert(made["cells"].index(hostile.cell(made, "ex1-check")), own)
    result = filled(lab99, made)
    assert result.answer("ex1").source == hostile.RIGHT["ex1"]
    assert result.notes == ("answer of ex1 taken from the cell that defines double",)


def test_an_editor_on_windows_changes_nothing(lab99: lab.Lab) -> None:
    made = hostile.notebook()
    for item in made["cells"]:
        item["source"] = item["source"].replace("\n", "\r\n")
    assert filled(lab99, made) == filled(lab99, hostile.notebook())


def test_given_cells_come_from_the_release(lab99: lab.Lab) -> None:
    made = hostile.notebook()
    hostile.cell(made, "setup")["source"] = "import math"
    result = filled(lab99, made)
    assert [c.id for c in result.above("ex1")] == ["setup", "edited setup", "ex1-code"]
    assert result.above("ex1")[0].source == lab99.cells[1].source
    assert result.notes == (
        "given cell setup was edited; the released one runs first, then the edited one",
    )


def test_a_grade_id_of_another_cell_gives_no_rights(lab99: lab.Lab) -> None:
    made = hostile.notebook()
    own = {"cell_type": "code", "source": "4.0", "id": "q"}
    own["metadata"] = {"nbgrader": {"grade_id": "ex1-check", "grade": True, "points": 99}}
    made["cells"].append(own)
    result = filled(lab99, made)
    assert [c.source for c in result.cells if c.id == "ex1-check"] == ['check("lab99.ex1")']
    assert "check of ex1 was edited; the released one counts" in result.notes


@pytest.mark.parametrize(
    "content, reason",
    [
        (b"", "empty"),
        (b"\xff\xfe", "not JSON"),
        (b"[1]", "no list of cells"),
        (b'{"cells": 3}', "no list of cells"),
        (b'{"worksheets": [{"cells": []}]}', "no list of cells"),
        (b'{"cells": [' + b"9" * 5000 + b"]}", "not JSON"),
        (b"[" * 200_000, "nested too deeply"),
    ],
)
def test_what_is_no_notebook(content: bytes, reason: str) -> None:
    with pytest.raises(NotANotebook, match=reason):
        submissions.parse(content)


def test_the_best_fit_of_several_notebooks_is_taken(lab99: lab.Lab) -> None:
    made = hostile.notebook()
    right = json.dumps(made).encode()
    other = json.dumps({"cells": [{"cell_type": "code", "source": "double = 2"}]}).encode()
    files = [File("a.ipynb", other), File("b.ipynb", right), File("c.ipynb", b"nonsense")]
    choice = answers.choose(files, lab99)
    assert choice.cells == filled(lab99, made).cells
    assert choice.notes == ("took b.ipynb, the best fit of 3 notebooks",)
    assert choice.doubt == ""


def test_a_stub_is_no_answer_when_one_of_several_notebooks_is_taken(lab99: lab.Lab) -> None:
    untouched = {c.exercise: c.source for c in lab99.cells if c.kind == "answer"}
    made = hostile.notebook(ex2=untouched["ex2"])
    del hostile.cell(made, "ex1-check")["source"]
    released = hostile.notebook(**untouched)
    files = [
        File("copy.ipynb", json.dumps(made).encode()),
        File("lab99_sums.ipynb", json.dumps(released).encode()),
    ]
    choice = answers.choose(files, lab99)
    assert choice.cells == filled(lab99, made).cells
    assert choice.doubt == ""


def test_a_definition_below_the_check_is_noted(lab99: lab.Lab) -> None:
    made = hostile.notebook()
    made["cells"].append({"cell_type": "code", "source": WRONG, "metadata": {}, "id": "z"})
    result = filled(lab99, made)
    assert result.answer("ex1").source == hostile.RIGHT["ex1"]
    note = "double is defined again below its check; the answer cell counts"
    assert result.notes == (note,)


@pytest.mark.parametrize(
    "encoding, name", [("utf-16", "UTF-16"), ("utf-32-le", "UTF-32-LE"), ("cp1252", "Windows-1252")]
)
def test_other_encodings_are_read_with_a_note(lab99: lab.Lab, encoding: str, name: str) -> None:
    made = hostile.notebook(ex1="# doppelt größer\n" + hostile.RIGHT["ex1"])
    content = json.dumps(made, ensure_ascii=False).encode(encoding)
    choice = answers.choose([File("a.ipynb", content)], lab99)
    assert choice.cells == filled(lab99, made).cells
    assert choice.notes == (f"a.ipynb is written in {name}, not in UTF-8",)
    assert answers.lab_of([content], ["lab98", "lab99"]) == "lab99"


def test_a_notebook_of_something_else_is_refused(lab99: lab.Lab) -> None:
    other = json.dumps({"cells": [{"cell_type": "code", "source": "x = 2"}]}).encode()
    with pytest.raises(NotANotebook, match="a.ipynb holds nothing of lab99"):
        answers.choose([File("a.ipynb", other)], lab99)


def test_which_lab_a_folder_is_about() -> None:
    one, two = b'check(\\"lab03.ex1\\")', b'"id": "lab04.ex1"'
    assert answers.lab_of([one, one, two], ["lab03", "lab04"]) == "lab03"
    with pytest.raises(ValueError, match="add --lab, one of lab03, lab04"):
        answers.lab_of([one, two], ["lab03", "lab04"])


# Marking


def attempt_of(*seen: Any) -> Attempt:
    return Attempt("full", "finished", seen=dict(enumerate(seen)), finished=True)


def marked(lab99: lab.Lab, attempt: Attempt, exercise: int = 0) -> marking.Mark:
    chosen = lab99.exercises[exercise]
    hidden = marking.cases(chosen.id, "s")
    return marking.mark(chosen, answers.blank(lab99), hidden, attempt, None, None, Limits())


def test_cases_depend_on_the_seed_only() -> None:
    assert marking.cases("lab99.ex1", "a") == marking.cases("lab99.ex1", "a")
    drawn = {json.dumps(marking.cases("lab99.ex1", str(seed))) for seed in range(20)}
    assert len(drawn) > 5


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"value": None},
        {"value": float("nan")},
        {"value": float("inf")},
        {"value": {"a": []}},
        {"value": "9" * 100_000},
        {"value": True},
        {"other": 1},
    ],
)
def test_forged_facts_win_nothing(lab99: lab.Lab, facts: dict[str, Any]) -> None:
    mark = marked(lab99, attempt_of({"facts": facts}, {"facts": facts}))
    assert (mark.points, mark.state in ("tried", "error")) == (0.0, True)
    assert all(len(c.measured) <= marking.TEXT_CHARS for c in mark.criteria)


@pytest.mark.parametrize("seen", [{}, {"facts": 3}, {"facts": None}, {"error": {"a": 1}}])
def test_forged_observations_win_nothing(lab99: lab.Lab, seen: dict[str, Any]) -> None:
    mark = marked(lab99, attempt_of(seen, seen))
    assert (mark.state, mark.points) == ("error", 0.0)
    assert mark.cause


def test_a_judge_that_raises_costs_only_its_exercise(lab99: lab.Lab) -> None:
    facts = {"facts": {"mean": "text", "reads": []}}
    mark = marked(lab99, attempt_of(facts, facts), exercise=1)
    assert mark.cause.startswith("what it returned cannot be judged")
    assert "ValueError" in mark.private


def test_a_judge_that_gives_too_much_is_not_believed(
    lab99: lab.Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.labs.lab99 import judge

    generous = [Criterion("value", 3, True), Criterion("other", -1, False)]
    table = {"ex1": utils.labs.Judge(judge.double_cases, lambda case, facts: generous)}
    monkeypatch.setattr("utils.labs.lab99.judge.JUDGES", table)
    facts = {"facts": {}}
    mark = marked(lab99, attempt_of(facts, facts))
    assert (mark.state, mark.points) == ("error", 0.0)


def test_an_answer_that_ends_itself_has_no_points(lab99: lab.Lab) -> None:
    attempt = attempt_of({"facts": {"value": 1}})
    attempt.ended = "exit 0"
    assert marked(lab99, attempt).cause == "it ended its process with exit status 0"


@pytest.mark.parametrize(
    "line", ["", "[", "3", "[]", '{"case": -1, "seen": {}}', '{"case": true}', "[" * 100_000]
)
def test_nonsense_of_a_submission_is_dropped(line: str) -> None:
    envelope = {"exercise": "lab99.ex1", "attempt": "full"}
    result = attempts_of([envelope | {"line": line}, {"line": line}, {"exercise": 3}])
    assert result == {("lab99.ex1", "full"): Attempt("full")}


def test_the_first_report_of_a_case_counts() -> None:
    envelope = {"exercise": "lab99.ex1", "attempt": "full"}
    lines = [json.dumps({"case": 0, "seen": {"facts": {"value": k}}}) for k in (1, 2)]
    result = attempts_of(envelope | {"line": line} for line in lines)
    assert result[("lab99.ex1", "full")].seen == {0: {"facts": {"value": 1}}}


@pytest.mark.parametrize(
    "error, shown",
    [
        ("TypeError: 7 (line 2: return number)", "TypeError in line 2 of its cell: return number"),
        ("TypeError: 7 (line 2: 714)", "TypeError"),
        ("NkiValidationError: 7", "NkiValidationError"),
        ("Secret714: 7", "an exception of another library or its own"),
        ("714", "an exception of another library or its own"),
    ],
)
def test_errors_are_shown_without_their_message(lab99: lab.Lab, error: str, shown: str) -> None:
    chosen = lab99.exercises[0]
    notebook = filled(lab99, hostile.notebook(ex1=WRONG))
    hidden = marking.cases(chosen.id, "s")
    attempt = attempt_of({"error": error}, {"error": error})
    mark = marking.mark(chosen, notebook, hidden, attempt, None, None, Limits())
    assert mark.cause == f"it raised {shown}"
    assert error in mark.private


@pytest.mark.parametrize(
    "value, measured",
    [
        ("a list of 3", "a list of 3"),
        ("a Hidden", "(not shown)"),
        ("a Hidden_7_14", "(not shown)"),
        ("0.123456789", "0.1234568"),
        ("1 2 3 4 5 6 7", "(not shown)"),
        ("1.2.3.4.5.6.7.8", "(not shown)"),
        ("\u00a0\u200b", "(not shown)"),
    ],
)
def test_texts_of_an_observation_are_not_shown(lab99: lab.Lab, value: str, measured: str) -> None:
    facts = {"facts": {"value": value}}
    mark = marked(lab99, attempt_of(facts, facts))
    assert mark.criteria[0].measured == measured
    assert value == measured or repr(value) in mark.private


def test_a_message_repeats_no_text_of_an_observation() -> None:
    facts = [{"facts": {"returned": {"kind": "a Hidden714", "items": ["a list of 2", "f"]}}}]
    text = "returned a Hidden714: of the list of 2, item 1 is f, not 3.14159265358979"
    expected = "returned (not shown): of the list of 2, item 1 is (not shown), not 3.141593"
    assert display.message(text, facts) == expected


def test_a_long_text_of_an_observation_is_not_shown_in_part(
    lab99: lab.Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is cut off at the end, what was taken over is recognised before."""
    secret = "Hidden714 " * 200
    result = Criterion("value", 1, False, "1", "2", f"returned {secret}: return a number")
    monkeypatch.setattr(
        marking, "decide", lambda *_: Verdict("lab99.ex1", "tried", 0, 4, (result,))
    )
    mark = marked(lab99, attempt_of({"facts": {"kind": secret}}))
    assert mark.criteria[0].message == "returned (not shown): return a number"


@pytest.mark.parametrize(
    "line, sign",
    [
        ("sys._getframe(1)", "_getframe"),
        ("f.__closure__", "__closure__"),
        ("f.__func__.__globals__", "__globals__"),
        ("getattr(sys, '_getframe')", "_getframe"),
        ("gc.get_objects()", "get_objects"),
        ("inspect.stack()", "inspect.stack"),
        ("print(OBSERVERS)", "OBSERVERS"),
        ("import utils.labs.lab03.observe", "imports utils.labs.lab03.observe"),
        ("from utils.labs import training", "imports utils.labs.training"),
        ("from utils.labs.lab15 import lives", "imports utils.labs.lab15.lives"),
        ("watch._kill_at = None", "_kill_at"),
        ("watch._journal.note({})", "_journal"),
        ("import json; json.dumps = print", "sets json.dumps"),
        ("import torch_xla as t; t.a.b = 1", "sets t.a.b"),
        ("import builtins; setattr(builtins, 'sum', max)", "sets attributes of builtins"),
        ("def __reduce__(self): return print, ()", "__reduce__"),
        ("os.environ['PYTHONPATH'] = 'here'", "PYTHONPATH"),
        ("context.set_forkserver_preload(['mine'])", "set_forkserver_preload"),
        ("import cloudpickle; cloudpickle.dumps = print", "sets cloudpickle.dumps"),
        ("sys.modules['utils.xla.spmd']", "sys.modules"),
    ],
)
def test_signs_of_looking_into_the_check(line: str, sign: str) -> None:
    cell = lab.Cell("ex2-code", "answer", f"%matplotlib inline\n{line}")
    assert scan.signs([cell]) == (f"ex2-code line 2 ({sign})",)


def test_what_a_given_cell_imports_is_the_courses_in_the_cells_below() -> None:
    given = lab.Cell("imports", "given", "from utils.xla.meter import Meter\nMeter.own = 1")
    cell = lab.Cell("ex1-code", "answer", "Meter.compiles = 0")
    assert scan.signs([given, cell]) == ("ex1-code line 1 (sets Meter.compiles)",)
    assert scan.signs([cell]) == ()


def test_what_a_given_cell_imports_of_the_exercises_may_be_imported_again() -> None:
    line = "from utils.labs.lab11 import decoder"
    given, cell = lab.Cell("imports", "given", line), lab.Cell("ex1-code", "answer", line)
    assert scan.signs([given, cell]) == ()
    assert scan.signs([cell]) == ("ex1-code line 1 (imports utils.labs.lab11.decoder)",)


def test_signs_are_found_where_only_ipython_can_read() -> None:
    cell = lab.Cell("own cell 1", "extra", "x = %who\nsys._getframe()")
    assert scan.signs([cell]) == ("own cell 1 line 2 (_getframe)",)


def test_honest_code_shows_no_sign() -> None:
    source = "import torch_xla\nx.grad = None\nfrom utils.xla.meter import Meter\nself.code = 1"
    assert scan.signs([lab.Cell("a", "answer", source), lab.Cell("b", "extra", "f(")]) == ()
    assert scan.signs(lab.load(hostile.REPOSITORY, "lab03").cells) == ()


def test_equal_to_the_published_solution() -> None:
    published = "def f(x):\n    'Doc.'\n    return x + 1  # comment"
    assert lab.same_code("def f(x):\n\n    return (x+1)", published)
    assert not lab.same_code("def f(y):\n    return y + 1", published)
    assert not lab.same_code("def f(x:", published)
    assert not lab.same_code("x = " + "(" * 5000, published)


def test_a_renamed_copy_of_a_longer_solution_is_noted_and_independent_answers_are_not() -> None:
    published = """def mean(read, count):
    total = 0
    for k in range(count):
        value = read(k)
        if value:
            total += value
    return total / count"""
    renamed = re.sub(r"\b(total|value|k|count)\b", r"my_\1", published)
    assert lab.same_code(renamed, published) == "names, comments and docstrings"
    assert not lab.same_code(renamed.replace("if my_value", "if not my_value"), published)
    labs = catalog.labs(hostile.REPOSITORY)
    official = {
        name: lab.load(hostile.REPOSITORY, name).published for name in (e.name for e in labs)
    }
    ways = [(way[0].split("."), way[2]) for name in official for way in right_ways(name)]
    alarms = [name for (name, ex), source in ways if lab.same_code(source, official[name][ex])]
    assert len(ways) > 150 and alarms == []


# A whole grading


@dataclass(frozen=True)
class Graded:
    """A grading that several tests look at and none changes."""

    folder: Path
    out: Path
    rows: dict[str, Row]

    def text(self, name: str) -> str:
        """What a file of the results holds."""
        return (self.out / name).read_text()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One submission."""
    hostile.hand_in(tmp_path / "inbox" / "ann", hostile.notebook())
    return tmp_path / "inbox"


@pytest.fixture(scope="module")
def graded(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Graded:
    """Four students: one right who looks into the check, one with a right and a wrong notebook, one
    who did half and has a broken cell, one who handed in nothing.
    """
    base = tmp_path_factory.mktemp("graded")
    folder, out = base / "in[box]", base / "o[u]t"
    looks = "import sys\n" + hostile.RIGHT["ex1"] + " + 0 * len(sys.modules)"
    hostile.hand_in(folder / "ann", hostile.notebook(ex1=looks))
    hostile.hand_in(folder / "=bob", hostile.notebook(ex1=WRONG))
    hostile.hand_in(folder / "=bob", hostile.notebook(), "new.ipynb")
    stub = "def mean(read, count):\n    raise NotImplementedError('lab99.ex2: not attempted yet')"
    half = hostile.notebook(ex2=stub)
    broken = {"cell_type": "code", "source": "for i in range(3", "metadata": {}, "id": "z"}
    half["cells"].insert(half["cells"].index(hostile.cell(half, "ex1-check")) + 1, broken)
    hostile.hand_in(folder / "Zoë", half)
    (folder / "nobody").mkdir()
    rows = batch.grade(folder, out, root, seed=" s\n")
    return Graded(folder, out, {row.record.student: row for row in rows})


def outputs(out: Path) -> dict[str, bytes]:
    files = [*out.glob("*.csv"), *out.glob("*.html"), *out.glob("reports/*"), out / "seed.txt"]
    return {str(f.relative_to(out)): f.read_bytes() for f in files}


def test_one_row_for_each_student(graded: Graded) -> None:
    lines = graded.text("gradebook.csv").splitlines()
    assert lines[0] == "student,id,late,status,total,max,ex1,ex2,notes"
    assert sorted(line.split(",")[:8] for line in lines[1:]) == [
        ["'=bob", "", "", "graded with problems", "8", "12", "0", "8"],
        ["Zoë", "", "", "graded", "4", "12", "4", "0"],
        ["ann", "", "", "graded", "12", "12", "4", "8"],
        ["nobody", "", "", "not graded", "0", "12", "0", "0"],
    ]


def test_grading_again_gives_the_same_bytes(
    graded: Graded, root: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """By the seed that was kept; and nbgrader keeps quiet."""
    first = outputs(graded.out)
    assert len(first) == 9
    rows = batch.grade(graded.folder, graded.out, root)
    assert {row.record.student: row for row in rows} == graded.rows
    assert outputs(graded.out) == first
    assert (graded.out / "seed.txt").stat().st_mode & 0o077 == 0
    assert capfd.readouterr() == ("", "")


def test_two_notebooks_with_different_answers_are_named(graded: Graded) -> None:
    note = "2 notebooks with different answers; took lab99_sums.ipynb, not new.ipynb"
    assert graded.rows["=bob"].record.notes == (note,)


def test_own_cells_are_named_as_their_author_knows_them(graded: Graded) -> None:
    table = graded.text("gradebook.csv")
    note = "ex2: your cell after ex1-check (`for i in range(3`) raised SyntaxError in line 1"
    assert table.count("raised SyntaxError") == table.count(note) == 1


def test_a_sign_is_for_the_instructor_only(graded: Graded) -> None:
    sign = "looks into the check: ex1-code line 3 (sys.modules)"
    assert sign in graded.text("gradebook.csv")
    assert sign in graded.text("log.jsonl").replace('", "', ", ")
    assert "looks into" not in graded.text("reports/ann.html")


def test_a_score_given_by_hand_survives(graded: Graded, root: Path, tmp_path: Path) -> None:
    from nbgrader.api import Gradebook

    out, slug = tmp_path / "out", graded.rows["=bob"].record.slug
    shutil.copytree(graded.out, out)
    shutil.copytree(graded.folder / "=bob", tmp_path / "inbox" / "=bob")
    with Gradebook(f"sqlite:///{out / 'gradebook.db'}") as book:
        book.find_grade("ex1-check", "lab99_sums", "lab99_sums", slug).manual_score = 3
        book.db.commit()
    for _ in range(2):
        (row,) = batch.grade(tmp_path / "inbox", out, root)
        assert (row.points, row.total, row.by_hand) == ({"ex1": 3, "ex2": 8}, 11, {"ex1"})
    page = (out / "reports" / f"{slug}.html").read_text()
    assert "given by hand (the checks gave 0)" in page
    assert "ex1: points given by hand" in (out / "gradebook.csv").read_text()


def test_the_class_page_says_where_it_is_stuck(graded: Graded) -> None:
    page = graded.text("class.html")
    assert "4 submissions, of which 1 could not be graded and count nowhere below." in page
    assert "<summary><strong>1</strong>: value: add it to itself</summary>" in page
    assert "Mean 8.0, median 8.0 of 12 points." in page
    assert "<h3>looks into the check: 1 student</h3>" in page
    assert '<a href="reports/ann.html">ann</a>: ex1-code line 3 (sys.modules)' in page
    needs_help = "has 4 of 12 points, stopped after ex1."
    assert f'<a href="reports/Zo%C3%AB.html">Zoë</a> {needs_help}' in page
    assert '1 was not graded: <a href="reports/nobody.html">nobody</a>.' in page
    assert "<h2>" not in graded.text("reports/nobody.html")
    assert "<h2>" in graded.text("reports/ann.html")


def test_an_exercise_that_tells_nobody_apart_is_seen(lab99: lab.Lab) -> None:
    def row(k: int) -> Row:
        points = {"ex1": 4.0 * (k % 2), "ex2": 8.0 * (k >= 6)}
        marks = tuple(
            marking.Mark(e, "passed" if points[e.name] else "tried", points[e.name])
            for e in lab99.exercises
        )
        return Row(hostile.record_of(f"s{k}", marks), points)

    rows = [row(k) for k in range(12)]

    def about(rows: list[Row]) -> list[dict[str, Any]]:
        summary = report.ClassSummary(lab99)
        for row in rows:
            summary.add(row)
        return [summary._about(exercise) for exercise in summary._exercises]

    first, second = about(rows)
    assert (first["easiness"], second["easiness"]) == (50, 50)
    assert first["discrimination"] == second["discrimination"] == pytest.approx(0)
    for other in rows[:6]:
        other.points["ex1"] = 0
    assert about(rows)[0]["discrimination"] == pytest.approx(3**-0.5)
    assert about(rows[:9])[0]["discrimination"] is None


def nbgrader(out: Path, home: Path, *words: object) -> None:
    """Run one of nbgrader's own commands in a folder of results."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "nbgrader", *map(str, words)],
        cwd=out,
        env={**os.environ, "PATH": path, "HOME": str(home)},
        check=True,
        capture_output=True,
    )


def test_what_is_right_is_told_without_numbers(graded: Graded) -> None:
    right, half = graded.rows["ann"], graded.rows["=bob"]
    assert {c.measured for m in right.record.marks for c in m.criteria} != {""}
    assert "measured" not in report.mark_text(right.record.marks[0])
    assert "measured" in report.mark_text(half.record.marks[0])


def test_nbgrader_makes_feedback_of_it_wherever_it_lies(graded: Graded, tmp_path: Path) -> None:
    shutil.copytree(graded.out, tmp_path / "moved")
    nbgrader(tmp_path / "moved", tmp_path, "generate_feedback", "lab99_sums", "--student=ann")
    (page,) = (tmp_path / "moved" / "feedback").rglob("*.html")
    assert "passed: 8 of 8 points" in page.read_text()


def test_nbgraders_own_export_agrees(graded: Graded, tmp_path: Path) -> None:
    table = tmp_path / "export.csv"
    nbgrader(graded.out, tmp_path, "export", "--to", table)
    with table.open() as file:
        exported = {r["student_id"]: r for r in csv.DictReader(file)}
    rows = graded.rows.values()
    assert {s: float(r["score"]) for s, r in exported.items()} == {
        r.record.slug: r.total for r in rows
    }
    assert {float(r["max_score"]) for r in exported.values()} == {12.0}


@pytest.mark.parametrize("inside", ["inbox/out", "."])
def test_folders_in_each_other_are_refused(root: Path, folder: Path, inside: str) -> None:
    out = folder / "out" if inside == "inbox/out" else folder.parent
    with pytest.raises(ValueError, match="lie in each other"):
        batch.grade(folder, out, root)


def test_a_folder_with_other_files_is_not_written_to(root: Path, folder: Path) -> None:
    with pytest.raises(ValueError, match="holds other files"):
        batch.grade(folder, root, root)


def test_without_a_sandbox_nothing_is_graded(
    root: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(sandbox.SandboxError, match="apt-get install bubblewrap"):
        batch.grade(folder, tmp_path / "out", root)
    assert not (tmp_path / "out").exists()


def test_a_kernel_without_namespaces_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse = tmp_path / "bwrap"
    refuse.write_text("#!/bin/sh\necho 'Creating new namespace failed' >&2\nexit 1\n")
    refuse.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda name: str(refuse))
    with pytest.raises(sandbox.SandboxError, match="Creating new namespace failed.*sysctl"):
        sandbox.prepare()


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([str(tmp_path / "none"), "--out", str(tmp_path / "out")]) == 1
    assert "is not a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["--jobs", "0"], ["--seconds", "0"], ["--seconds", "-1"], ["--seconds", "nan"]]
)
def test_numbers_that_make_no_sense_are_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command.main(["folder", "--out", "out", *words])
    assert "is not a number above 0" in capsys.readouterr().err


def test_a_bad_out_is_one_sentence_before_any_sandbox(
    root: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "prepare", lambda: pytest.fail("a sandbox was made"))
    file, out = tmp_path / "file", tmp_path / "out"
    file.write_text("")
    for place, reason in ((file, "is a file"), (Path("/proc/none"), "cannot be written")):
        with pytest.raises(ValueError, match=reason):
            batch.grade(folder, place, root)
    with pytest.raises(ValueError, match="the seed is blank"):
        batch.grade(folder, out, root, seed=" ")
    assert not out.exists()
    with folders.claim(out):
        with pytest.raises(ValueError, match="another grading is writing to"):
            batch.grade(folder, out, root)
        (out / "seed.txt").write_text("\n")
    with pytest.raises(ValueError, match="seed.txt is blank"):
        batch.grade(folder, out, root)


def test_random_hidden_cases_do_not_touch_the_global_generator() -> None:
    random.seed(5)
    expected = random.Random(5).random()
    marking.cases("lab99.ex2", "s")
    assert random.random() == expected


def test_source_is_parsed_in_several_threads_at_once() -> None:
    source = "\n".join(f"def f{n}(x): return [x + {n} for x in range({n})]" for n in range(400))
    with ThreadPoolExecutor(4) as pool:
        trees = list(pool.map(lab.parse_python, [source] * 40))
    assert {len(tree.body) for tree in trees} == {400}


@pytest.mark.parametrize("own_thread", [False, True], ids=["main thread", "a worker's thread"])
def test_a_judge_that_does_not_end_is_stopped_in_every_thread(own_thread: bool) -> None:
    def judge_for_ever() -> str:
        try:
            with marking._time_limit(0.05):
                while True:
                    sum(range(100))
        except TimeoutError:
            return "stopped"

    if own_thread:
        with ThreadPoolExecutor(1) as threads:
            assert threads.submit(judge_for_ever).result() == "stopped"
    else:
        assert judge_for_ever() == "stopped"


def test_what_follows_a_judge_is_not_stopped() -> None:
    for k in range(100):
        try:
            with marking._time_limit(k / 50_000):
                sum(range(100))
        except TimeoutError:
            pass
        assert sum(range(2_000)) == 1_999_000
