"""From what a learning platform exports to what it imports: nobody lost, nobody mixed up."""

import csv
import io
import json
import os
import re
import socket
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.labs import hostile
from utils.cli import grading
from utils.course import catalog
from utils.labs.grading import attempts, batch, downloads, folders, lab, report, submissions
from utils.labs.grading.marking import Mark
from utils.labs.grading.platforms import feedback, policy, tables, total
from utils.labs.grading.platforms.policy import Late
from utils.labs.grading.platforms.results import Results
from utils.labs.grading.records import Graded, Record
from utils.labs.grading.spreadsheets import cell

BERLIN = ZoneInfo("Europe/Berlin")
LATE = {"due": "2026-11-20 23:59", "zone": "Europe/Berlin", "penalty": {"percent": "10"}}


# What platforms hand out


def put(folder: Path, *names: str) -> Path:
    """Files of these names, or folders where the name ends in a slash."""
    for name in names:
        path = folder / name
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.write_text("{}")
    return folder


def test_canvas_knows_two_people_of_one_name(tmp_path: Path) -> None:
    put(
        tmp_path, "doejane_12_345_lab03.ipynb", "doejane_LATE_15_346_lab03.ipynb", "liáng_7_1_x.zip"
    )
    result = submissions.find(tmp_path)
    assert [(s.student, s.id, s.late) for s in result] == [
        ("doejane (12)", "12", False),
        ("doejane (15)", "15", True),
        ("liáng", "7", False),
    ]
    assert len({s.slug for s in result}) == 3


def test_of_several_attempts_the_last_counts_and_it_is_said(tmp_path: Path) -> None:
    put(
        tmp_path / "canvas",
        "doejane_12_99_lab03.ipynb",
        "doejane_12_345_lab03-10.ipynb",
        "doejane_12_200_lab03-2.ipynb",
        "doejane_12_346_data.csv",
    )
    (result,) = submissions.find(tmp_path / "canvas")
    assert result.path.name == "doejane_12_345_lab03-10.ipynb"
    assert [path.name for path in result.more] == ["doejane_12_346_data.csv"]
    assert [note[:44] for note in result.notes] == [
        "an attempt before the last does not count: d"
    ] * 2
    start = "Lab 3_jdoe_attempt_2026-11-"
    put(tmp_path / "bb", f"{start}19-09-00-00.txt", f"{start}19-09-00-00_lab03.ipynb")
    put(tmp_path / "bb", f"{start}20-23-58-07.txt", f"{start}20-23-58-07_my work_2.ipynb")
    (result,) = submissions.find(tmp_path / "bb")
    assert (result.id, result.submitted) == ("jdoe", "2026-11-20T23:58:07")
    assert result.path.name.endswith("_my work_2.ipynb")
    assert result.read()[1] == ["2 attempts; the last one counts (2026-11-20-23-58-07)"]
    assert [file.name for file in result.read()[0]] == [result.path.name]


@pytest.mark.parametrize(
    "entry",
    [
        "Zoë Núñez_123_assignsubmission_file_/",
        "Zoë Núñez_123_assignsubmission_file/",
        "Zoë Núñez_123_assignsubmission_file_lab 03 (1).ipynb",
    ],
)
def test_moodle_folders_and_files_of_one_person_are_one_submission(
    tmp_path: Path, entry: str
) -> None:
    put(tmp_path, entry, "Zoë Núñez_123_assignsubmission_onlinetext_/onlinetext.html")
    put(tmp_path, "Zoë Núñez_124_assignsubmission_file_/lab03.ipynb")
    result = submissions.find(tmp_path)
    assert [(s.student, s.id, len(s.more)) for s in result] == [
        ("Zoë Núñez (123)", "123", 1),
        ("Zoë Núñez (124)", "124", 0),
    ]


@pytest.mark.parametrize(
    ("entry", "owner"),
    [
        ("L_eve_attempt_2026-11-20-09-00-00_x_jdoe_attempt_2027-01-01-00-00-00_a.ipynb", "eve"),
        ("Eve_7_assignsubmission_file_Jo_9_assignsubmission_file_", "7"),
        ("eve_12_345_Jo_9_assignsubmission_file_.ipynb", "12"),
        ("eve_12_345_jo_13_346_a.ipynb", "12"),
        ("eve_12_345_eve_LATE_13_346_a.ipynb", "12"),
    ],
)
def test_what_a_file_is_called_makes_it_nobody_elses(entry: str, owner: str) -> None:
    assert downloads.entry_of(entry).id == owner


def test_an_id_is_text_and_no_formula(results: Results, tmp_path: Path) -> None:
    odd = [f"L_{user}_attempt_2026-11-20-09-00-00_a.ipynb" for user in ("=1+1", "\udce4", "\udce5")]
    result = submissions.find(put(tmp_path / "in", *odd))
    assert sorted(s.id for s in result) == ["=1+1", "\\udce4", "\\udce5"]
    marks = graded(results, "jo").students[0].record.marks
    rows = [
        Graded(hostile.record_of(s.student, marks, slug=s.slug, id=s.id), {"ex1": 4, "ex2": 8})
        for s in result
    ]
    text = report.table(results.lab, rows).encode().decode()
    assert "\n'=1+1,'=1+1," in text


def test_names_that_only_look_like_canvas_stay_apart(tmp_path: Path) -> None:
    put(tmp_path, "hw_3_2026_jane.ipynb", "hw_3_2026_bo.ipynb", "lab_03_1_cem.ipynb")
    matches = [(s.student, s.id) for s in submissions.find(tmp_path)]
    assert matches == [("hw_3_2026_bo", ""), ("hw_3_2026_jane", ""), ("lab_03_1_cem", "")]


METADATA = """submission_71:
  :submitters:
  - :name: Ann Lee
    :sid: '100'
    :email: ann@uni.example
  :created_at: 2026-11-20 22:58:07.250000000 Z
submission_72:
  :submitters:
  - :name: Ann Lee
    :sid: '200'
    :email: lee@uni.example
  - :name: Bo
    :email: bo@uni.example
"""


def test_gradescope_says_in_one_file_whose_they_are(tmp_path: Path) -> None:
    put(tmp_path, "submission_71/lab03.ipynb", "submission_72/lab03.ipynb", "submission_73/")
    (tmp_path / downloads.METADATA).write_text(METADATA)
    assert sorted((s.student, s.id, s.submitted) for s in submissions.find(tmp_path)) == [
        ("Ann Lee", "100", "2026-11-20T22:58:07+00:00"),
        ("Ann Lee & Bo", "200 bo@uni.example", ""),
        ("submission_73", "", ""),
    ]
    (tmp_path / downloads.METADATA).write_text("a: [")
    with pytest.raises(ValueError, match="export it again"):
        submissions.find(tmp_path)


def test_nbgraders_exchange_holds_all_labs_and_all_attempts(tmp_path: Path) -> None:
    put(tmp_path, "ann+lab03_lazy+2026-11-20 22:58:07.1 UTC+Xy-_=/a.ipynb")
    put(tmp_path, "ann+lab03_lazy+2026-11-20 23:00:00.3 UTC+Z/")
    put(
        tmp_path,
        "bo+lab04_more+2026-11-20 09:00:00.0 UTC/",
        "bo+lab03_lazy+2026-11-20 08:00:00 UTC/",
    )
    matches = [
        (s.id, s.path.name[:34], s.submitted) for s in submissions.find(tmp_path, (), "lab03")
    ]
    assert matches == [
        ("ann", "ann+lab03_lazy+2026-11-20 23:00:00", "2026-11-20T23:00:00+00:00"),
        ("bo", "bo+lab03_lazy+2026-11-20 08:00:00 "[:34], "2026-11-20T08:00:00+00:00"),
    ]
    with pytest.raises(ValueError, match="lab03_lazy, lab04_more: say which with --lab"):
        submissions.find(tmp_path)


def test_what_nbgrader_collected_has_times_unless_a_student_made_the_file(tmp_path: Path) -> None:
    put(tmp_path, "ann/lab03_lazy/a.ipynb", "ann/lab04_more/a.ipynb", "bo/lab03_lazy/a.ipynb")
    for name in ("ann/lab03_lazy", "ann/lab04_more", "bo/lab03_lazy"):
        (tmp_path / name / "timestamp.txt").write_text("2026-11-20 22:58:07.000001 UTC\n")
    result = submissions.find(tmp_path, (), "lab03")
    assert {s.submitted for s in result} == {"2026-11-20T22:58:07+00:00"}
    assert {s.submitted for s in submissions.find(tmp_path)} == {""}
    (tmp_path / "bo" / "lab03_lazy" / "timestamp.txt").unlink()
    assert {s.submitted for s in submissions.find(tmp_path, (), "lab03")} == {""}


def known_as(result: submissions.Submission) -> Record:
    about = (result.path.name, result.student, result.slug, "key", "seed", "graded", ())
    return Record(*about, id=result.id)


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("doejane_12_99_lab03.ipynb", "doejane_LATE_12_345_lab03-1.ipynb"),
        (
            "L_jdoe_attempt_2026-11-19-09-00-00_a.ipynb",
            "L_jdoe_attempt_2026-11-20-09-00-00_a.ipynb",
        ),
        ("jdoe+lab03+2026-11-19 09:00:00 UTC+a/", "jdoe+lab03+2026-11-20 09:00:00 UTC+b/"),
        ("Jo_5_assignsubmission_file_/", "Jo_5_assignsubmission_file_a.zip"),
    ],
)
def test_a_later_download_gives_nobody_a_second_row(tmp_path: Path, first: str, later: str) -> None:
    (before,) = submissions.find(put(tmp_path / "a", first))
    names = [later, "doejane_77_1_a.ipynb", "Jo_6_assignsubmission_file_/"]
    after = submissions.find(put(tmp_path / "b", *names), [known_as(before)])
    (again,) = [s for s in after if s.id == before.id]
    assert (again.student, again.slug) == (before.student, before.slug)
    assert len({s.slug for s in after}) == 3


# What platforms take


@pytest.fixture
def results(root: Path, tmp_path: Path) -> Results:
    """Lab 99 of 12 points, without students and without a gradebook."""
    chosen = lab.load(root, "lab99")
    return Results(tmp_path, chosen, None, ())  # type: ignore[arg-type]


def graded(results: Results, *entries: str, points: float = 9, **about: Any) -> Results:
    """Students with these files, who all have the same points, the second exercise the rest."""
    students = []
    for entry in entries:
        known = downloads.entry_of(entry)
        marks = tuple(Mark(e, "passed", e.points) for e in results.lab.exercises)
        fields: dict[str, Any] = {"status": "graded", "id": known.id, "late": known.late} | about
        fields.setdefault("submitted", known.submitted)
        record = Record(entry, known.name, entry, "key", "seed", marks=marks, **fields)
        students.append(Graded(record, {"ex1": 4.0, "ex2": points - 4}))
    return replace(results, students=(*results.students, *students))


def filled(
    results: Results, platform: str, content: bytes, late: dict[str, Late] | None = None, **how: Any
) -> tuple[tables.Filled, list[list[str]]]:
    """What the platform gets, also as rows."""
    path = results.out / "class.csv"
    path.write_bytes(content)
    known = tables.FORMATS[platform]
    table = tables.read(path, known)
    column = tables.column_for(table, known, results.lab.name, how.pop("column", ""))
    made = tables.fill(table, platform, column, results, late or {}, **how)
    separator = known.separator or table.separator
    text = made.content.decode(table.encoding)
    return made, list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))


CANVAS = """\
Student,ID,SIS User ID,SIS Login ID,Section,Lab 98 (4710),Lab 99 (4711),Current Score
,,,,,,Manual Posting,
    Points Possible,,,,,10.00,12.00,(read only)
"Doe, Jane",12,S12,jdoe,A,7.00,,70
"Doe, Jane",15,S15,jdoe2,A,,,
"Núñez, Zoë",16,S16,zoe@uni.example,B,,3.00,
"=HYPERLINK(""http://x"",""y"")",17,S17,eve,B,,,
"Student, Test",99,,x1,A,,,
"""


def test_canvas_gets_its_ids_and_its_column_back(results: Results) -> None:
    names = ("doejane_12_1_a.ipynb", "doejane_LATE_15_2_a.ipynb", "eve_17_3_a.ipynb")
    results = graded(results, *names, "gone_404_4_a.ipynb", "Zoë Núñez.ipynb")
    late = {names[1]: Late(percent=20)}
    made, rows = filled(results, "canvas", CANVAS.encode(), late)
    kept = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Lab 99 (4711)"]
    assert rows[0] == kept
    assert rows[1][5] == "Manual Posting" and rows[2][0] == "    Points Possible"
    assert [(row[1], row[3], row[5]) for row in rows[3:]] == [
        ("12", "jdoe", "9"),
        ("15", "jdoe2", "7.2"),
        ("16", "zoe@uni.example", "9"),
        ("17", "eve", "9"),
        ("99", "x1", ""),
    ]
    assert rows[6][0] == """'=HYPERLINK("http://x","y")"""
    assert made.unmatched == ("gone",) and made.absent == ("Student, Test (99)",)
    assert made.ungraded == made.remarks == ()


MOODLE = (
    "Identifier,Full name,ID number,Email address,Status,Grade,Maximum Grade,Grade can be changed,"
    "Last modified (submission),Last modified (grade),Feedback comments\r\n"
    'Participant 123,Zoë Núñez,,z@uni.example,Submitted,,100.00,Yes,"Saturday, 21 November 2026,'
    ' 12:30 AM",-,\r\n'
    'Participant 124,Zoë Núñez,,n@uni.example,Submitted,,100.00,Yes,"samedi 21",-,"<p>-1</p>"\r\n'
    "Participant 125,+cmd|' /C calc'!A0,,e@uni.example,No submission,,100.00,Yes,-,-,\r\n"
)


@pytest.mark.parametrize("separator", [",", ";"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_moodle_gets_its_worksheet_back(results: Results, separator: str, encoding: str) -> None:
    rows = list(csv.reader(io.StringIO(MOODLE, newline="")))
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=separator).writerows(rows)
    folders = [f"Zoë Núñez_{n}_assignsubmission_file_" for n in (123, 124)]
    made, after = filled(graded(results, *folders), "moodle", file.getvalue().encode(encoding))
    rows[1][5] = rows[2][5] = "9"
    rows[3][1] = "'" + rows[3][1]
    assert after == rows
    assert made.content.startswith(b"\xef\xbb\xbf") == (encoding == "utf-8-sig")
    assert b"Participant 123," in made.content and b"\r\n" in made.content
    assert made.absent == ("+cmd|' /C calc'!A0 (Participant 125)",) and not made.unmatched
    assert made.remarks[0].startswith("Grade holds 100 points at most, the lab 12: ")
    made, after = filled(graded(results, *folders), "moodle", MOODLE.encode(), scale=True)
    assert [row[5] for row in after[1:]] == ["75", "75", ""] and not made.remarks


def test_moodle_tells_when_it_was_submitted_where_it_speaks_english(results: Results) -> None:
    path = results.out / "class.csv"
    path.write_text(MOODLE)
    known = tables.FORMATS["moodle"]
    assert tables.times(tables.read(path, known), known) == {"123": "2026-11-21T00:30:00"}
    path.write_text(CANVAS)
    assert tables.times(tables.read(path, tables.FORMATS["canvas"]), tables.FORMATS["canvas"]) == {}


BLACKBOARD = [
    ["Last Name", "First Name", "Username", "Student ID", "Lab 99 [Total Pts: 12 Score] |55"],
    ["Doe", "Jane", "jdoe", "0012", ""],
    ["Müller", "Jürgen", "jm-7", "0013", "4"],
    ["@SUM(A1)", "x", "-x", "0014", "In Progress"],
]


@pytest.mark.parametrize(
    ("encoding", "separator"), [("utf-16", "\t"), ("utf-8-sig", ","), ("cp1252", ",")]
)
def test_blackboard_gets_its_file_back(results: Results, encoding: str, separator: str) -> None:
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=separator).writerows(BLACKBOARD)
    attempt = "_attempt_2026-11-20-23-58-07_a.ipynb"
    results = graded(results, f"Lab_jdoe{attempt}", f"Lab_-x{attempt}", "Jürgen Müller.zip")
    made, rows = filled(results, "blackboard", file.getvalue().encode(encoding))
    assert [row[2:] for row in rows] == [
        BLACKBOARD[0][2:],
        ["jdoe", "0012", "9"],
        ["jm-7", "0013", "9"],
        ["-x", "0014", "9"],
    ]
    assert rows[3][0] == "'@SUM(A1)" and rows[2][1] == "Jürgen"
    assert made.unmatched == made.absent == made.remarks == ()
    assert (b'"jdoe"' in made.content) == (separator == ",")


GRADESCOPE = """\
First Name,Last Name,SID,Email,Total Score,Max Points,Status,Submission ID,Submission Time
Ann,Lee,100,ann@uni.example,,12.0,Ungraded,71,2026-11-20 22:58:07 +0000
Ann,Lee,200,lee@uni.example,,12.0,Ungraded,72,
Bo,,,bo@uni.example,,12.0,Ungraded,72,
Cem,,300,cem@uni.example,,12.0,Missing,,
"""


def test_gradescope_finds_groups_and_hands_marks_out_itself(
    results: Results, tmp_path: Path
) -> None:
    results = graded(results, "submission_71", id="100")
    results = graded(results, "submission_72", id="200 bo@uni.example", points=6)
    late = {"submission_72": Late(percent=50, remark="late: 1 day begun")}
    made, rows = filled(results, "gradescope", GRADESCOPE.encode(), late)
    assert [row[4] for row in rows[1:]] == ["9", "3", "3", ""]
    # Cem has no submission, hence no number: a row without one is nobody's.
    assert made.students == {"submission_71": [0], "submission_72": [1, 2]}

    results = graded(results, "jane.ipynb")
    packed, without = tables.autograder(results, late)
    assert without == ["jane"]
    home = tmp_path / "autograder"
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert set(archive.namelist()) >= {"setup.sh", "run_autograder"}
        archive.extractall(home / "source")
    number = home / "submission_metadata.json"
    number.write_text('{"assignment": {"id": 71}, "id": 72}')
    command = [sys.executable, "source/run_autograder"]
    subprocess.run(command, cwd=home, check=True)
    result = json.loads((home / "results" / "results.json").read_text())
    assert (result["score"], result["output"][:17]) == (3, "late: 1 day begun")
    assert [(t["score"], t["max_score"]) for t in result["tests"]] == [(4, 4), (2, 8)]
    number.write_text('{"id": 73}')
    refused = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)
    assert refused.returncode and "submission 73 is not among those" in refused.stderr


def test_nbgrader_gets_the_columns_of_its_own_export(results: Results) -> None:
    from nbgrader.plugins import export

    results = graded(results, "ann+lab99_sums+2026-11-20 22:58:07 UTC+x")
    results = replace(results, book=SimpleNamespace(assignment="lab99_sums"))  # type: ignore[arg-type]
    text = tables.nbgrader_table(results, {results.students[0].record.slug: Late(percent=10)})
    (row,) = csv.DictReader(io.StringIO(text))
    assert (row["student_id"], row["raw_score"], row["score"]) == ("ann", "9", "8.1")
    source = Path(export.__file__).read_text()
    keys = re.search(r"keys = \[(.*?)\]", source, re.DOTALL)
    assert keys and re.findall(r"\"(\w+)\"", keys[1]) == list(row)


def test_nobody_is_guessed(results: Results) -> None:
    """Numbers of another platform are no ids, and of two of one name neither gets the points."""
    results = graded(results, "Ann_12_assignsubmission_file_", "Jane Doe.ipynb", "EVE.zip")
    results = graded(results, "eve.ipynb")
    made, rows = filled(results, "canvas", CANVAS.encode())
    assert not any(row[5] for row in rows[3:] if row[1] != "16")
    assert made.students == {} and len(made.unmatched) == 4 and len(made.absent) == 5


def test_a_name_that_only_looks_like_canvas_is_a_name(results: Results) -> None:
    results = graded(results, "hw_3_2026_jane.ipynb", id="")
    results = replace(results, students=(named(results.students[0], "Jane Roe"),))
    made, _ = filled(results, "canvas", b'Student,ID,Lab 99 (1)\n"Roe, Jane",3,\n')
    assert list(made.students.values()) == [[0]]
    rules = read(results, LATE)
    (late,) = policy.decide(rules, [results.students[0].record], {}).values()
    assert late.remark == "time of submission unknown: no penalty taken"


def test_what_was_not_graded_is_no_zero(results: Results) -> None:
    results = graded(results, "doejane_12_1_a.ipynb", status="not graded")
    made, rows = filled(results, "canvas", CANVAS.encode())
    assert made.ungraded == ("doejane",) and rows[3][5] == ""
    person = replace(results.students[0], by_hand=frozenset({"ex1"}))
    made, rows = filled(replace(results, students=(person,)), "canvas", CANVAS.encode())
    assert made.ungraded == () and rows[3][5] == "9"


@pytest.mark.parametrize(
    ("platform", "text", "column", "message"),
    [
        ("canvas", "Name,Points\nAnn,3\n", "", "has no column ID,.*it has Name, Points"),
        ("canvas", "", "", "has no column ID"),
        ("canvas", "Student,ID,Quiz (1),Lab 9 (2)\n", "", r"lab99.*one of Quiz \(1\), Lab 9"),
        ("canvas", "Student,ID,Quiz (1),Lab 9 (2)\n", "Exam", "0 columns fit Exam"),
        ("moodle", "Identifier,Note\n", "", "0 columns fit Grade: .*one of Identifier, Note"),
    ],
)
def test_a_table_that_does_not_fit_is_named(
    results: Results, platform: str, text: str, column: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        filled(results, platform, text.encode(), column=column)


def test_a_column_can_be_named(results: Results) -> None:
    results = graded(results, "doejane_12_1_a.ipynb")
    text = "Student,ID,Lab 99 (1),Lab 99 again (2)\nDoe,12,,\n"
    _, rows = filled(results, "canvas", text.encode(), column="again")
    assert rows == [["Student", "ID", "Lab 99 again (2)"], ["Doe", "12", "9"]]


@pytest.mark.parametrize(
    "text", ["=1", " =1", "@SUM(A1)", "+cmd|'x'!A0", "-2+3(", "\t=1", "%a=", "\r1"]
)
def test_no_cell_is_a_formula(text: str) -> None:
    assert cell(text) == f"'{text}"


# Late


@pytest.mark.parametrize(
    ("submitted", "percent"),
    [
        ("2026-11-20T23:59:00", 0),
        ("2026-11-21T00:14:00+01:00", 0),  # within the grace
        ("2026-11-20T23:15:00+00:00", 10),
        ("2026-11-21T23:59:00", 10),
        ("2026-11-21T23:59:01", 20),
        ("2027-01-01T00:00:00", 50),
    ],
)
def test_a_penalty_for_each_day_begun(results: Results, submitted: str, percent: float) -> None:
    rules = read(results, LATE | {"grace_minutes": 15, "penalty": {"percent": 10, "most": 50}})
    results = graded(results, "ann", submitted=submitted)
    (late,) = policy.decide(rules, [s.record for s in results.students], {}).values()
    assert (late.percent, late.known) == (percent, True)
    assert late.after(10) == 10 - percent / 10


def read(results: Results, content: dict[str, Any]) -> policy.Policy:
    path = results.out / "policy.yaml"
    path.write_text(json.dumps(content))  # JSON is YAML
    return policy.read(path)


def test_an_hour_stays_an_hour_when_clocks_change(results: Results) -> None:
    rules = read(
        results, LATE | {"due": "2026-10-25 01:30", "penalty": {"percent": 1, "per": "hour"}}
    )
    results = graded(results, "ann", submitted="2026-10-25T03:30:00")
    (late,) = policy.decide(rules, [results.students[0].record], {}).values()
    assert late.percent == 3


def test_who_is_excepted_and_whose_time_is_unknown(results: Results) -> None:
    exceptions = {"JO": {"due": "2026-11-27 23:59"}, "12": {"free": "true"}}
    rules = read(results, LATE | {"exceptions": exceptions})
    week = "2026-11-26T10:00:00"
    results = graded(results, "jo", submitted=week)
    results = graded(results, "x_12_1_a.ipynb", "x_LATE_13_1_a.ipynb", "x_14_1_a.ipynb", "bo", "cy")
    known = [s.record for s in results.students]
    late = policy.decide(rules, known, {"bo": week, "cy": "yesterday"})
    assert {slug: taken.percent for slug, taken in late.items() if taken.percent} == {"bo": 60}
    assert [slug for slug, taken in late.items() if not taken.known] == [
        "x_LATE_13_1_a.ipynb",
        "cy",
    ]
    assert [taken.remark for taken in late.values()] == [
        "own due date",
        "free of penalties",
        "marked late, but when is unknown: no penalty taken",
        "not marked late by Canvas",
        "late: 6 days begun",
        "'yesterday' is no time; write it as 2026-11-20 23:59: no penalty taken",
    ]
    table = list(csv.DictReader(io.StringIO(tables.late_table(results, late))))
    assert [(row["raw"], row["points"]) for row in table if row["student"] == "bo"] == [
        ("9", "3.6")
    ]
    for name, whom in (("eve", "nobody here"), ("x", "several students")):
        with pytest.raises(ValueError, match=f"exceptions: {name} is {whom}"):
            policy.decide(read(results, LATE | {"exceptions": {name: {}}}), known, {})
    with pytest.raises(ValueError, match="times: x is several students"):
        policy.decide(rules, known, {"x": week})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"due": "20.11.2026"}, "'20.11.2026' is no time; write it as 2026-11-20 23:59"),
        ({"zone": "Europe/Berlim"}, "no time zone; such as Europe/Berlin or UTC"),
        ({"zone": "../../etc/passwd"}, "no time zone"),
        ({"penalty": {"percent": "x"}}, r"\$.penalty.percent"),
        ({"penalty": {"percent": 101}}, r"<= 100.*\$.penalty.percent"),
        ({"penalty": {"percent": 1, "per": "week"}}, r"'week'.*\$.penalty.per"),
        ({"grace": 3}, "unknown field `grace`"),
        ({"exceptions": {"jo": {"due": "soon"}}}, "'soon' is no time"),
        ({"grace_minutes": -1}, r"\$.grace_minutes"),
    ],
)
def test_a_policy_says_what_is_wrong_with_it(
    results: Results, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=f"policy.yaml is no policy: .*{message}"):
        read(results, LATE | change)


def test_times_need_their_columns(results: Results) -> None:
    path = results.out / "times.csv"
    path.write_text("\ufeffstudent,submitted\nJo,2026-11-20 10:00\n")
    assert policy.read_times(path) == {"jo": "2026-11-20 10:00"}
    path.write_text("name,when\n")
    with pytest.raises(ValueError, match="columns student and submitted; it has name, when"):
        policy.read_times(path)


def test_the_page_for_instructors_is_true(results: Results) -> None:
    page = (hostile.REPOSITORY / "utils" / "labs" / "grading" / "PLATFORMS.md").read_text()
    (example,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (results.out / "policy.yaml").write_text(example)
    rules = policy.read(results.out / "policy.yaml")
    assert (rules.penalty.most, rules.exceptions["12"].free) == (50, True)
    assert textwrap.indent(example, "    ") in (policy.__doc__ or "")
    commands = re.findall(r"`course.py grade ([^`]*)`", page)
    verbs = [words.split() for words in commands if words.split()[0] in grading.VERBS]
    assert {words[0] for words in verbs} == set(grading.VERBS) and len(verbs) >= 9
    for words in verbs:
        grading.parser_of_verbs().parse_args(words)


# Totals


def test_labs_are_added_up_by_id_else_by_name(results: Results) -> None:
    other = replace(results, lab=replace(results.lab, name="lab98"))
    first = graded(results, "doejane_12_1_a.ipynb", "doejane_15_2_a.ipynb", "Bo.ipynb")
    first = graded(first, "Jo_5_assignsubmission_file_", "Al_1_assignsubmission_file_")
    second = graded(other, "doejane_12_9_a-1.ipynb", "bo", "Jo_7_assignsubmission_file_", points=5)
    second = graded(second, "Al_1_assignsubmission_file_", "Al_2_assignsubmission_file_")
    students = total.add_up([(first, {"Bo.ipynb": Late(percent=10)}), (second, {})])
    text = total.table(students, {"lab99": 12, "lab98": 12})
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0][2:7] == ["lab99", "lab99 before penalty", "lab98", "total", "max"]
    assert [[row[0], row[1], *row[2:6], row[7]] for row in rows[1:]] == [
        ["Al", "", "9", "9", "missing", "9", "lab98"],
        ["Al", "", "missing", "missing", "9", "9", "lab99"],
        ["Al", "", "missing", "missing", "9", "9", "lab99"],
        ["Bo", "", "8.1", "9", "5", "13.1", ""],
        ["doejane", "12", "9", "9", "5", "14", ""],
        ["doejane", "15", "9", "9", "missing", "9", "lab98"],
        ["Jo", "", "9", "9", "5", "14", ""],
    ]
    assert rows[2][8] == "lab98: another student has this name; add up by hand"
    with pytest.raises(ValueError, match="lab99 comes twice"):
        total.add_up([(first, {}), (first, {})])


def test_each_of_a_group_gets_the_points(results: Results) -> None:
    pair = graded(results, "submission_72", id="200 bo@x")
    pair = replace(pair, students=tuple(named(s, "Ann Lee & Bo") for s in pair.students))
    alone = graded(
        replace(results, lab=replace(results.lab, name="lab98")), "submission_9", id="200"
    )
    alone = replace(alone, students=tuple(named(s, "Ann Lee") for s in alone.students))
    students = total.add_up([(pair, {}), (alone, {})])
    assert [(s.name, s.id, s.points) for s in students] == [
        ("Ann Lee", "200", {"lab99": 9, "lab98": 9}),
        ("Bo", "bo@x", {"lab99": 9}),
    ]


def named(student: Graded, name: str) -> Graded:
    return replace(student, record=replace(student.record, student=name))


# A whole grading


ZOE = ["Zoë Núñez_123_assignsubmission_file_", "Zoë Núñez_124_assignsubmission_file_"]
EXCHANGED = "ann+lab99_sums+2026-11-20 22:58:07.1 UTC+x"
WRONG = "def double(number):\n    return '<b>' + str(number)"


@pytest.fixture(scope="module")
def out(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of results that tests only add to: two people of one name from Moodle, one of them
    late and half wrong, a file that is no notebook, and one person from nbgrader's exchange.
    """
    base = tmp_path_factory.mktemp("whole")
    own = {"cell_type": "code", "source": "'```<script>'", "metadata": {}, "id": "own"}
    half = hostile.notebook(ex1=WRONG)
    half["cells"].append(own)
    hostile.hand_in(base / "in" / ZOE[0], hostile.notebook())
    hostile.hand_in(base / "in" / ZOE[1], half)
    put(base / "in", "=Eve_125_assignsubmission_file_/a.ipynb")
    hostile.hand_in(base / "in" / EXCHANGED, hostile.notebook())
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(attempts, "run_all", hostile.run_here)
        monkeypatch.setattr(catalog, "ROOT", root)
        batch.grade(base / "in", base / "out", root, seed="s", jobs=1)
        (base / "out" / "policy.yaml").write_text(json.dumps(LATE))
        yield base / "out"


def test_from_moodle_to_moodle(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (out.parent / "sheet.csv").write_text(MOODLE)
    assert grading.main(["export", "moodle", str(out)]) == 1
    assert "needs --class FILE" in capsys.readouterr().err
    words = ["export", "moodle", str(out), "--class", str(out.parent / "sheet.csv")]
    assert grading.main(words) == 0
    message = capsys.readouterr()
    assert "points of 3 students in Grade" in message.out
    assert "1 graded here, not in" in message.out and "sheet.csv: ann" in message.out
    assert "1 not graded; left as they are: =Eve" in message.out
    assert "without a time of submission" in message.err and "Zoë Núñez (124)" in message.err
    rows = list(csv.DictReader((out / "moodle.csv").open(newline="")))
    assert [(row["Identifier"], row["Grade"]) for row in rows] == [
        ("Participant 123", "10.8"),
        ("Participant 124", "8"),
        ("Participant 125", ""),
    ]
    late = list(csv.DictReader((out / "late.csv").open()))
    assert sorted((row["id"], row["raw"], row["points"]) for row in late if row["raw"] != "0") == [
        ("123", "12", "10.8"),
        ("124", "8", "8"),
        ("ann", "12", "12"),
    ]
    assert grading.main([*words, "--to", words[-1]]) == 1
    assert grading.main(["total", str(out)]) == 0
    assert ",missing,remarks\n" in capsys.readouterr().out
    assert grading.main(["total", str(out.parent)]) == 1
    assert "holds no results" in capsys.readouterr().err
    with folders.claim(out):
        assert grading.main(words) == 1
    assert "another grading is writing to" in capsys.readouterr().err


def test_moodle_finds_everybody_in_the_feedback(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = tmp_path / "feedback"
    (out / "times.csv").write_text("student,submitted\n124,2026-11-22 10:00\nbob,\n")
    assert grading.main(["feedback", str(out), "--to", str(to), "--for", "moodle"]) == 0
    assert "1 in " in (message := capsys.readouterr().err) and "not graded here: bob" in message
    (out / "times.csv").unlink()
    with zipfile.ZipFile(tmp_path / "feedback.zip") as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
    # Moodle splits a folder's name at four underscores: name, number, kind, plugin, rest.
    parts = {tuple(name.partition("/")[0].split("_", 4)[1:4]) for name in names}
    assert parts == {(n, "assignsubmission", "file") for n in ("123", "124", "125")}
    files = sorted(path.name for path in (to / ZOE[1]).iterdir())
    assert files == ["lab99_sums.html", "lab99_sums_marked.ipynb"]
    page = (to / ZOE[1] / files[0]).read_text()
    assert "late: 2 days begun; 20 % of the points are taken off: 6.4 points count" in page
    notebook = json.loads((to / ZOE[1] / files[1]).read_text())
    ids = [item["id"] for item in notebook["cells"]]
    assert ids[0] == "marks" and ids.index("ex1-check-marks") == ids.index("ex1-check") + 1
    texts = {item["id"]: "".join(item["source"]) for item in notebook["cells"]}
    assert WRONG in texts["ex1-code"] and "0 of 4 points" in texts["ex1-check-marks"]
    assert "8 of 12 points" in texts["marks"] and "6.4 points count" in texts["marks"]
    assert "'```<script>'" in texts.values()
    import nbformat

    nbformat.validate(nbformat.from_dict(notebook))
    eve = "=Eve_125_assignsubmission_file_"
    assert [path.name for path in (to / eve).iterdir()] == ["lab99_sums.html"]
    assert grading.main(["feedback", str(out), "--to", str(to)]) == 1


def test_canvas_gets_files_of_the_names_it_gave(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feedback, "annotate", lambda *a: {"cells": []})
    names = ["doejane_LATE_12_345_my lab-1.ipynb", "bo.ipynb", "anon_a1B2c_7_x.ipynb"]
    results = graded(results, *names)
    without = feedback.release(results, {}, tmp_path / "to", "canvas")
    assert without == ["bo", "anon"]
    with zipfile.ZipFile(tmp_path / "to.zip") as archive:
        assert sorted(archive.namelist()) == [names[0].replace("ipynb", "html"), names[0]]
        # Canvas takes the first two numbers between underscores for user and attachment.
        for name in archive.namelist():
            assert re.findall(r"(?<=_)\d+(?=_)", name) == ["12", "345"]


def test_marks_are_given_without_names(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert grading.main(["by-hand", str(out)]) == 0
    first = (out / "codes.csv").read_text()
    assert (out / "codes.csv").stat().st_mode & 0o077 == 0
    code_of = {row["id"]: row["code"] for row in csv.DictReader(io.StringIO(first))}
    assert len(set(code_of.values())) == 4
    files = sorted(path.name for path in (out / "by_hand").iterdir())
    assert files == sorted(["marks.csv", *(f"{code_of[n]}.ipynb" for n in ("123", "124", "ann"))])
    for path in (out / "by_hand").iterdir():
        assert "Zo" not in path.read_text() and "124" not in path.read_text()
    table = out / "by_hand" / "marks.csv"
    assert grading.main(["by-hand", str(out)]) == 0 and (out / "codes.csv").read_text() == first
    given = out.parent / "given.csv"
    for text, message in (("5", "give points from 0 to 4"), ("-1", "from 0 to 4"), ("x", "is x")):
        given.write_text(f"code;ex1;ex2\n{code_of['124']};{text};\n")
        assert grading.main(["by-hand", str(out), "--marks", str(given)]) == 1
        assert message in capsys.readouterr().err
    given.write_text(f"code;ex1;ex2\n{code_of['124']};2,5;\n{code_of['123']};4;8\n")
    assert grading.main(["by-hand", str(out), "--marks", str(given)]) == 0
    assert "points of 1 students changed" in capsys.readouterr().out
    assert "ex1: points given by hand" in (out / "gradebook.csv").read_text()
    assert (
        grading.main(["by-hand", str(out)]) == 0 and f"{code_of['124']},2.5,8" in table.read_text()
    )
    given.write_text("code,ex1\nZZZZZZ,1\n")
    assert grading.main(["by-hand", str(out), "--marks", str(given)]) == 1
    assert "ZZZZZZ is none of the codes" in capsys.readouterr().err


def test_codes_differ_where_names_do_not(out: Path) -> None:
    many = [f"s{k}" for k in range(3000)]
    codes = feedback.codes(out, many)
    assert len(set(codes.values())) == 3000
    assert {len(code) for code in codes.values()} <= {6, 7}
    assert feedback.codes(out, many[:5]) == {name: codes[name] for name in many[:5]}


def test_formgrader_shows_the_class_and_its_marks(out: Path, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["-W", "ignore", "-m", "jupyter", "server", "--no-browser", "--allow-root"]
    words += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0", "--ServerApp.root_dir=."]
    words += ["--IdentityProvider.token=", "--ServerApp.password="]
    words += ["--ServerApp.jpserver_extensions=nbgrader.server_extensions.formgrader=True"]
    # No other extensions: they take seconds to start.
    own = {"HOME": str(tmp_path), "JUPYTER_NO_CONFIG": "1", "JUPYTER_RUNTIME_DIR": str(tmp_path)}
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, *words], cwd=out, env={**os.environ, **own}, stdout=log, stderr=log
        )

    def get(path: str) -> str:
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/formgrader/{path}") as page:
                    return str(page.read().decode())
            except urllib.error.HTTPError:
                raise
            except OSError:
                assert server.poll() is None, (tmp_path / "log").read_text()
                time.sleep(0.1)

    try:
        (assignment,) = json.loads(get("api/assignments"))
        assert (assignment["name"], assignment["num_submissions"]) == ("lab99_sums", 4)
        shown = json.loads(get("api/submissions/lab99_sums"))
        times = {item["student"]: item["timestamp"] for item in shown}
        assert "2026-11-20T22:58:07" in str(times.pop("ann")) and set(times.values()) == {None}
        students = json.loads(get("api/submitted_notebooks/lab99_sums/lab99_sums"))
        (zoe,) = [s for s in students if "Zo" in s["student"] and s["score"] == 12]
        page = re.sub(r"<[^>]*>", "", get(f"submissions/{zoe['id']}"))
        assert "passed: 8 of 8 points" in page and "def mean(read, count)" in page
    finally:
        server.terminate()
        server.wait()
