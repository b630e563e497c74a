"""What people read after a grading: one table, one page per student, one page on the class.

The same marks give the same bytes: no times, no dates. Texts from submissions are escaped by the
templates.
"""

import csv
import io
import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from utils.labs.grading.lab import Exercise, Lab
from utils.labs.grading.marking import Mark

TEMPLATES = Path(__file__).with_name("templates")
STATES = ("passed", "tried", "not attempted", "error")
MOST_OBSTACLES, MOST_NAMED = 3, 20
LEAST_CORRELATED = 10
"""Students from which on a correlation is shown."""


@dataclass(frozen=True)
class Row:
    """One student: how the grading went and what counts.

    status: "graded", "graded with problems" or "not graded". points: by exercise, as in the
    gradebook. by_hand: the exercises whose points a person gave. private: remarks for the
    instructor only. id, late: what the learning platform wrote into the name of the file.
    """

    student: str
    slug: str
    status: str
    marks: tuple[Mark, ...]
    points: dict[str, float]
    by_hand: frozenset[str]
    notes: tuple[str, ...]
    private: tuple[str, ...] = ()
    id: str = ""
    late: bool = False

    @property
    def total(self) -> float:
        """Points in all exercises together."""
        return round(sum(self.points.values()), 2)


def mark_text(mark: Mark) -> str:
    """A mark as plain text, for the learner."""
    lines = [f"{mark.state}: {mark.points:g} of {mark.exercise.points:g} points"]
    lines += [mark.cause] if mark.cause else []
    for c in mark.criteria:
        # What a right answer measured helps nobody but those who will be given the same inputs.
        told = c.measured and not c.passed
        numbers = f" (measured {c.measured}, asked for {c.target})" if told else ""
        lines.append(f"{'met' if c.passed else 'not met'}: {c.name}{numbers}")
        lines += [f"  {c.message}"] if c.message and not c.passed else []
    lines += [f"note: {note}" for note in mark.notes]
    return "\n".join(lines) + "\n"


def all_notes(row: Row) -> list[str]:
    """Everything worth a remark, as in the table; what holds for several exercises is said once."""
    results: dict[str, list[str]] = {}
    for mark in row.marks:
        name = mark.exercise.name
        by_hand = ["points given by hand"] if name in row.by_hand else []
        for text in [mark.cause, *mark.notes, *by_hand]:
            results.setdefault(text, []).append(name)
    results.pop("", None)
    return [*row.notes, *(f"{', '.join(names)}: {text}" for text, names in results.items())]


def table(lab: Lab, rows: Iterable[Row]) -> str:
    """The class as CSV, one row per student."""
    names = [exercise.name for exercise in lab.exercises]
    total = sum(exercise.points for exercise in lab.exercises)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["student", "id", "late", "status", "total", "max", *names, "notes"])
    for row in rows:
        points = [f"{row.points[name]:g}" for name in names]
        notes = _cell("; ".join([*all_notes(row), *row.private]))
        about = [_cell(row.student), row.id, "late" if row.late else "", row.status]
        writer.writerow([*about, f"{row.total:g}", f"{total:g}", *points, notes])
    return file.getvalue()


def _cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula.

    >>> _cell("=1+1")
    "'=1+1"
    """
    return f"'{text}" if text.lstrip()[:1] in ("=", "+", "-", "@", "|", "%") else text


def student_page(lab: Lab, row: Row) -> str:
    """What one student reads, as HTML."""
    return _render("student.html", lab=lab, row=row)


def class_page(lab: Lab, rows: list[Row]) -> str:
    """For the instructor: how the points are spread, where the class is stuck, who may need help, a
    heat map, and what looks odd.
    """
    graded = [row for row in rows if row.status != "not graded"]
    most = sum(exercise.points for exercise in lab.exercises)
    totals = [row.total for row in graded]
    spread = Counter(min(int(10 * total / most), 9) for total in totals)
    return _render(
        "class.html",
        lab=lab,
        rows=rows,
        exercises=[_about(k, exercise, graded) for k, exercise in enumerate(lab.exercises)],
        ungraded=len(rows) - len(graded),
        most=most,
        least=LEAST_CORRELATED,
        mean=statistics.mean(totals) if totals else 0,
        median=statistics.median(totals) if totals else 0,
        spread=[(10 * k, spread[k], 100 * spread[k] / len(totals)) for k in range(10) if totals],
        weakest=sorted((r for r in graded if r.total < most / 2), key=lambda r: r.total)[
            :MOST_NAMED
        ],
        signs=[row for row in rows if row.private],
    )


def _about(k: int, exercise: Exercise, graded: list[Row]) -> dict[str, Any]:
    """One exercise in the class.

    easiness: the mean share of its points. discrimination: the correlation of its points with
    those in the other exercises, None where there are too few students or no differences: near 0 or
    below, the exercise does not tell the strong from the weak.
    """
    marks = [row.marks[k] for row in graded]
    states = Counter(mark.state for mark in marks)
    own = [row.points[exercise.name] for row in graded]
    others = [row.total - points for row, points in zip(graded, own, strict=True)]
    enough = len(own) >= LEAST_CORRELATED and len(set(own)) > 1 and len(set(others)) > 1
    return {
        "exercise": exercise,
        "shares": [
            (state, states[state], 100 * states[state] / max(1, len(marks))) for state in STATES
        ],
        "easiness": 100 * statistics.mean(own) / exercise.points if own else None,
        "discrimination": statistics.correlation(own, others) if enough else None,
        "obstacles": _obstacles(marks),
    }


def _obstacles(marks: list[Mark]) -> list[tuple[str, str, int]]:
    """The criteria that most answers fail, each with its most frequent message and their number."""
    failed = [(c.name, c.message) for m in marks for c in m.criteria if not c.passed]
    failed += [("could not be judged", m.cause) for m in marks if m.cause]
    counts = sorted(Counter(failed).items(), key=lambda item: (-item[1], item[0]))
    return [(name, text, count) for (name, text), count in counts[:MOST_OBSTACLES]]


def _render(template: str, **values: Any) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["number"] = lambda value: f"{value:g}"
    environment.filters["link"] = lambda slug: quote(f"reports/{slug}.html")
    return environment.get_template(template).render(notes_of=all_notes, **values)
