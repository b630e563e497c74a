"""Several labs in one table, a row for each student."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from utils.labs.grading import downloads
from utils.labs.grading.platforms.policy import Late
from utils.labs.grading.platforms.results import Results, platform_of, same
from utils.labs.grading.records import Graded
from utils.labs.grading.spreadsheets import csv_text


@dataclass
class Student:
    """One student's points by lab: those earned, and those that count."""

    name: str
    id: str = ""
    raw: dict[str, float] = field(default_factory=dict)
    points: dict[str, float] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


def add_up(labs: Sequence[tuple[Results, Mapping[str, Late]]]) -> list[Student]:
    """Students of several labs, by name. They are the same where a platform's id is the same, and
    otherwise where the name is, if nobody else in a lab has it.

    Moodle's numbers differ from one assignment to the next, so its students are found by name.
    Raises ValueError if a lab comes twice.
    """
    twice = [name for name, n in Counter(r.lab.name for r, _ in labs).items() if n > 1]
    if twice:
        raise ValueError(f"{twice[0]} comes twice: merge its folders first, or give one of them")
    students: dict[tuple[str, ...], Student] = {}
    for results, late in labs:
        lab = results.lab.name
        everyone = [(g, who) for g in results.students for who in _people(g)]
        count = Counter(key for _, (key, _, _) in everyone)
        for graded, (key, name, identity) in everyone:
            clear = count[key] == 1
            at = key if clear else (*key, lab, graded.record.slug)
            student = students.setdefault(at, Student(name, identity))
            student.raw[lab] = graded.total
            student.points[lab] = late.get(graded.record.slug, Late()).after(graded.total)
            if not clear:
                student.remarks.append(f"{lab}: another student has this name; add up by hand")
            if not graded.counts:
                student.remarks.append(f"{lab}: not graded")
    return sorted(students.values(), key=lambda s: (same(s.name), s.id))


def _people(graded: Graded) -> list[tuple[tuple[str, ...], str, str]]:
    """For each person of a submission: what is the same in all labs, the name, the id."""
    record = graded.record
    platform = platform_of(record)
    if platform == "moodle":
        name = downloads.entry_of(record.entry).name
        return [(("name", same(name)), name, "")]
    ids = record.id.split() if platform == "gradescope" else [record.id] if record.id else []
    names = record.student.split(" & ") if len(ids) > 1 else [record.student]
    if ids and len(ids) == len(names):
        return [((platform, same(i)), name, i) for i, name in zip(ids, names, strict=True)]
    return [(("name", same(record.student)), record.student, record.id)]


def table(students: Sequence[Student], most: Mapping[str, float]) -> str:
    """The table as CSV. most: the points of each lab. Where a penalty was taken, the points that
    were earned stand beside those that count; a lab that was not handed in is "missing" and counts
    nothing.
    """
    cut = {lab for s in students for lab in s.raw if s.raw[lab] != s.points[lab]}
    columns = [(lab, raw) for lab in most for raw in ([False, True] if lab in cut else [False])]
    heads = [f"{lab} before penalty" if raw else lab for lab, raw in columns]
    rows = [["student", "id", *heads, "total", "max", "missing", "remarks"]]
    for s in students:
        values = [(s.raw if raw else s.points).get(lab) for lab, raw in columns]
        cells = ["missing" if value is None else f"{value:g}" for value in values]
        total = f"{round(sum(s.points.values()), 2):g}"
        missing = " ".join(lab for lab in most if lab not in s.points)
        about = [total, f"{sum(most.values()):g}", missing, "; ".join(s.remarks)]
        rows.append([s.name, s.id, *cells, *about])
    return csv_text(rows)
