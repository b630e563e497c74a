"""The CSV file that a learning platform exported, filled with points, so that it can import it.

Columns, ids, separator and encoding stay as they are, because each platform finds students and
assignments by them:

- Canvas: `ID`, and the assignment's column with its number, `Lab 3 (4711)`. Other assignments are
  left out, so that nothing that changed meanwhile is written over.
  github.com/instructure/canvas-lms, lib/gradebook_exporter.rb, gradebook_importer.rb
- Moodle's grading worksheet: `Identifier` with the participant's number, `Grade`, and
  `Last modified (grade)`, by which Moodle refuses what was graded later; separated by commas.
  github.com/moodle/moodle, mod/assign/feedback/offline/importgradeslib.php
- Blackboard's Grade Center: `Username`, and the column with its number,
  `Lab 3 [Total Pts: 40 Score] |4711`; tabs in UTF-16 or quoted commas. library.blackboard.com,
  Uploading or Downloading Grade Center Items for Working Offline
- Gradescope imports no marks, but runs an autograder for each submission: `autograder` packs one
  that hands out the marks found here. gradescope-autograders.readthedocs.io, specs. Its table of
  scores is filled for other gradebooks.
- nbgrader's export plugin writes what `nbgrader_table` does, which adds the penalties of a policy.
  nbgrader.readthedocs.io, plugins, ExportPlugin
"""

import codecs
import csv
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from utils.labs.grading import downloads
from utils.labs.grading.platforms.policy import Late
from utils.labs.grading.platforms.results import Results, platform_of, same
from utils.labs.grading.records import Graded, Record
from utils.labs.grading.report import mark_text
from utils.labs.grading.spreadsheets import cell, csv_text


@dataclass(frozen=True)
class Format:
    """A platform's table: the column of its ids, further columns that name a student, the column
    that takes the points if it is always the same, and a pattern for the columns of assignments.

    kept: the columns to write, all if empty; assignments but the one that is filled never are.
    submitted: the column with the time of submission, and how it is written.
    """

    id: str
    logins: tuple[str, ...] = ()
    names: tuple[tuple[str, ...], ...] = ()
    column: str = ""
    assignments: str = ""
    kept: frozenset[str] = frozenset()
    most: str = ""
    submitted: tuple[str, str] = ("", "")
    separator: str = ""
    quoting: int = csv.QUOTE_MINIMAL


_CANVAS_PEOPLE = ("Student", "LastName", "FirstName", "ID", "SIS User ID", "SIS Login ID")
FORMATS = {
    "canvas": Format(
        "ID",
        ("SIS User ID", "SIS Login ID", "Integration ID"),
        (("Student",), ("FirstName", "LastName")),
        assignments=r"\(\d+\)$",
        kept=frozenset({*_CANVAS_PEOPLE, "Integration ID", "Root Account", "Section"}),
    ),
    "moodle": Format(
        "Identifier",
        ("ID number", "Email address", "Username"),
        (("Full name",), ("First name", "Last name")),
        "Grade",
        most="Maximum Grade",
        submitted=("Last modified (submission)", "%A, %d %B %Y, %I:%M %p"),
        separator=",",
    ),
    "blackboard": Format(
        "Username",
        ("Student ID",),
        (("First Name", "Last Name"),),
        assignments=r"\|\d+$",
        quoting=csv.QUOTE_ALL,
    ),
    "gradescope": Format(
        "Submission ID",
        ("SID", "Email"),
        (("Name",), ("First Name", "Last Name")),
        "Total Score",
        most="Max Points",
    ),
}


@dataclass(frozen=True)
class Table:
    """A class file as it was read."""

    header: list[str]
    rows: list[list[str]]
    encoding: str
    separator: str
    line_end: str

    def get(self, row: list[str], column: str) -> str:
        """What a row holds in a column; "" if either ends before it."""
        k = self.header.index(column) if column in self.header else len(row)
        return row[k].strip() if k < len(row) else ""


@dataclass(frozen=True)
class Filled:
    """A table with points. students: by slug, the row of each. unmatched: graded students whom the
    table does not name. absent: people of the table who handed in nothing. ungraded: who did, but
    could not be graded, so that their cells stay as they were. remarks: what else to look at.
    """

    content: bytes
    students: dict[str, list[int]]
    unmatched: tuple[str, ...]
    absent: tuple[str, ...]
    ungraded: tuple[str, ...]
    remarks: tuple[str, ...]


def read(path: Path, known: Format) -> Table:
    """Read a class file. Raises ValueError if it lacks the column of the platform's ids."""
    content = path.read_bytes()
    encoding = "utf-8"
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif content.startswith(codecs.BOM_UTF8):
        encoding = "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        encoding = "cp1252"
        text = content.decode(encoding, "replace")
    first: list[str] = []
    for separator in (",", ";", "\t"):
        try:
            lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
        except csv.Error as error:
            raise ValueError(f"{path} is no CSV file: {error}") from None
        header = [name.strip() for name in lines[0]] if lines else []
        if known.id in header:
            rows = [line for line in lines[1:] if any(line)]
            end = "\r\n" if "\r\n" in text else "\n"
            return Table(header, rows, encoding, separator, end)
        first = first or header
    raise ValueError(
        f"{path} has no column {known.id}, by which students are found; it has"
        f" {', '.join(first) or 'none'}: give the file as the platform exports it"
    )


def column_for(table: Table, known: Format, lab: str, wanted: str = "") -> str:
    """The column that takes the points. Raises ValueError if that is not clear."""
    pattern = known.assignments or f"^{re.escape(known.column)}$"
    columns = [name for name in table.header if re.search(pattern, name)]
    text = wanted or known.column
    number = lab.removeprefix("lab").lstrip("0")
    if wanted in table.header:
        return wanted
    if text:
        match = [name for name in (table.header if wanted else columns) if text in name]
    else:
        match = [n for n in columns if re.search(rf"\blab[\s_-]*0*{number}\b", n, re.IGNORECASE)]
    if len(match) == 1:
        return match[0]
    raise ValueError(
        f"{len(match)} columns fit {text or lab}: say which takes the points with --column, one of"
        f" {', '.join(columns) or ', '.join(table.header)}"
    )


def times(table: Table, known: Format) -> dict[str, str]:
    """Times of submission that the table tells, by id; those in another language are left out."""
    column, pattern = known.submitted
    results: dict[str, str] = {}
    for row in table.rows if column else ():
        try:
            time = datetime.strptime(table.get(row, column), pattern)
        except ValueError:
            continue
        results[same(_id_in(table.get(row, known.id)))] = time.isoformat()
    return results


def fill(
    table: Table,
    platform: str,
    column: str,
    results: Results,
    late: Mapping[str, Late],
    scale: bool = False,
) -> Filled:
    """Write the points of each student into one column.

    late: what is taken off, by slug. scale: whether points become shares of what the column holds
    at most; otherwise a difference between the two is a remark.
    """
    known = FORMATS[platform]
    people = [k for k, row in enumerate(table.rows) if table.get(row, known.id)]
    most = _most(table, known, column)
    remarks = []
    factor = 1.0
    if most and most != results.lab.points and scale:
        factor = most / results.lab.points
    elif most and most != results.lab.points:
        remarks.append(
            f"{column} holds {most:g} points at most, the lab {results.lab.points:g}: points are"
            " written as they are; --scale makes them shares"
        )
    owners = _owners(table, platform, people, results.students)
    rows = [list(row) + [""] * (len(table.header) - len(row)) for row in table.rows]
    at = table.header.index(column)
    ungraded = []
    for student in results.students:
        record = student.record
        for k in owners.get(record.slug, ()):
            if student.counts:
                points = late.get(record.slug, Late()).after(student.total)
                rows[k][at] = f"{round(points * factor, 2):g}"
            else:
                ungraded.append(record.student)
    taken = {k for own in owners.values() for k in own}
    return Filled(
        _write(table, known, column, rows),
        owners,
        tuple(s.record.student for s in results.students if s.record.slug not in owners),
        tuple(_show(table, known, table.rows[k]) for k in people if k not in taken),
        tuple(dict.fromkeys(ungraded)),
        tuple(remarks),
    )


def _owners(
    table: Table, platform: str, people: list[int], students: tuple[Graded, ...]
) -> dict[str, list[int]]:
    """The rows of each student, by slug: found by id, else by a name that only one row has."""
    known = FORMATS[platform]
    by_id: dict[str, list[int]] = {}
    by_name: dict[str, set[int]] = {}
    for k in people:
        row = table.rows[k]
        by_id.setdefault(same(_id_in(table.get(row, known.id))), []).append(k)
        for name in _names(table, known, row):
            by_name.setdefault(name, set()).add(k)
    owners: dict[str, list[int]] = {}
    for student in students:
        record = student.record
        came_from = platform_of(record)
        identity = record.id if came_from == platform else ""
        if platform == "gradescope":
            identity = downloads.submission_number(record.entry)
        if identity and same(identity) in by_id:
            results = by_id[same(identity)]
        elif came_from == platform != "gradescope":
            results = []  # the platform knows this student by an id that the table does not have
        else:
            results = _rows_by_name(record, came_from, by_name)
        if results:
            owners[record.slug] = results
    claims = Counter(k for own in owners.values() for k in own)
    return {slug: own for slug, own in owners.items() if all(claims[k] == 1 for k in own)}


def _rows_by_name(record: Record, came_from: str, by_name: Mapping[str, set[int]]) -> list[int]:
    # Numbers of Canvas and Moodle mean something else anywhere else.
    ids = record.id.split() if came_from not in ("canvas", "moodle") else []
    for names in (ids, record.student.split(" & ")):
        rows = [by_name.get(same(name), set()) for name in names]
        if rows and all(len(row) == 1 for row in rows):
            return sorted(set.union(*rows))
    return []


def _id_in(text: str) -> str:
    """Moodle writes "Participant 123"; others the id alone."""
    match = re.fullmatch(r"\D+ (\d+)", text)
    return match[1] if match else text


def _names(table: Table, known: Format, row: list[str]) -> set[str]:
    logins = [table.get(row, column) for column in (known.id, *known.logins)]
    names = [*logins, *(login.partition("@")[0] for login in logins)]
    for columns in known.names:
        parts = [table.get(row, column) for column in columns]
        full = " ".join(parts)
        last, comma, rest = full.partition(",")
        names += [full, f"{rest} {last}" if comma else ""]
        names += [", ".join(reversed(parts))] if len(parts) > 1 and all(parts) else []
    return {same(name) for name in names} - {""}


def _show(table: Table, known: Format, row: list[str]) -> str:
    for columns in known.names:
        if full := " ".join(filter(None, (table.get(row, column) for column in columns))):
            return f"{full} ({table.get(row, known.id)})"
    return table.get(row, known.id)


def _most(table: Table, known: Format, column: str) -> float | None:
    """The points that a column holds at most, as far as the table tells."""
    texts = [table.get(row, known.most) for row in table.rows]
    if match := re.search(r"\[Total Pts: (?:up to )?([\d.,]+)", column):
        texts = [match[1]]
    elif known is FORMATS["canvas"]:
        head = [row for row in table.rows if not table.get(row, known.id)]
        texts = [table.get(row, column) for row in head if row[0].strip() == "Points Possible"]
    for text in texts:
        try:
            return float(text.replace(",", "."))
        except ValueError:
            continue
    return None


def _write(table: Table, known: Format, column: str, rows: list[list[str]]) -> bytes:
    others = known.assignments
    kept = [
        k
        for k, name in enumerate(table.header)
        if name == column
        or ((not known.kept or name in known.kept) and not (others and re.search(others, name)))
    ]
    file = io.StringIO(newline="")
    separator = known.separator or table.separator
    quoting = csv.QUOTE_MINIMAL if separator == "\t" else known.quoting
    writer = csv.writer(
        file,
        delimiter=separator,
        lineterminator=table.line_end,
        quoting=quoting,  # type: ignore[arg-type]
    )
    for row in (table.header, *rows):
        writer.writerow([cell(row[k]) for k in kept])
    return file.getvalue().encode(table.encoding)


NBGRADER_COLUMNS = (
    "assignment,duedate,timestamp,student_id,last_name,first_name,email,raw_score,"
    "late_submission_penalty,score,max_score"
).split(",")


def nbgrader_table(results: Results, late: Mapping[str, Late], due: str = "") -> str:
    """The columns of nbgrader's own export, with the penalties of a policy."""
    rows = [NBGRADER_COLUMNS]
    for student in results.students:
        record, taken = student.record, late.get(student.record.slug, Late())
        after = taken.after(student.total)
        about = [due, taken.submitted or record.submitted, record.id or record.student, "", "", ""]
        scores = [student.total, round(student.total - after, 2), after, results.lab.points]
        rows.append([results.book.assignment, *about, *(f"{score:g}" for score in scores)])
    return csv_text(rows)


def late_table(results: Results, late: Mapping[str, Late]) -> str:
    """Points before and after the policy, one row a student."""
    rows = [["student", "id", "submitted", "raw", "percent off", "points", "remark"]]
    for student in results.students:
        record, taken = student.record, late[student.record.slug]
        points = [f"{student.total:g}", f"{taken.percent:g}", f"{taken.after(student.total):g}"]
        rows.append([record.student, record.id, taken.submitted, *points, taken.remark])
    return csv_text(rows)


SETUP = "#!/usr/bin/env bash\napt-get update && apt-get install -y python3\n"
RUN = '''#!/usr/bin/env python3
"""Hand out the marks of this submission, which were found elsewhere."""
import json, pathlib, shutil, sys

number = json.load(open("submission_metadata.json"))["id"]
result = pathlib.Path("source/results", f"{number}.json")
if not result.exists():
    sys.exit(f"submission {number} is not among those that were graded: grade it, pack again")
pathlib.Path("results").mkdir(exist_ok=True)
shutil.copy(result, "results/results.json")
'''


def autograder(results: Results, late: Mapping[str, Late]) -> tuple[bytes, list[str]]:
    """A zip file that Gradescope takes as an autograder, and the students that have none of its
    submissions. Each submission gets the marks that were found here.
    """
    packed = io.BytesIO()
    without = []
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (("setup.sh", SETUP), ("run_autograder", RUN)):
            info = zipfile.ZipInfo(name)
            info.external_attr = 0o755 << 16
            archive.writestr(info, text)
        for student in results.students:
            number = downloads.submission_number(student.record.entry)
            if not number or not student.counts:
                without.append(student.record.student)
                continue
            content = _result(student, late.get(student.record.slug, Late()))
            archive.writestr(f"results/{number}.json", json.dumps(content))
    return packed.getvalue(), without


def _result(student: Graded, taken: Late) -> dict[str, object]:
    tests = [
        {
            "name": f"{mark.exercise.name}: {mark.exercise.title}",
            "score": student.points[mark.exercise.name],
            "max_score": mark.exercise.points,
            "output": mark_text(mark),
        }
        for mark in student.record.marks
    ]
    text = f"{taken.remark}; {taken.percent:g} % of the points are taken off"
    output = text if taken.percent else taken.remark
    return {"score": taken.after(student.total), "output": output, "tests": tests}
