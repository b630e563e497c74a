"""What people read after a grading: one table, one page per student, one page on the class.

The same marks give the same bytes: no times, no dates. Texts from submissions are escaped by the
templates.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from utils.labs.grading.lab import Lab
from utils.labs.grading.marking import Mark

TEMPLATES = Path(__file__).with_name("templates")
STATES = ("passed", "tried", "not attempted", "error")


@dataclass(frozen=True)
class Row:
    """One student: how the grading went and what counts.

    status: "graded", "graded with problems" or "not graded". points: by exercise, as in the
    gradebook. by_hand: the exercises whose points a person gave. private: remarks for the
    instructor's table only.
    """

    student: str
    slug: str
    status: str
    marks: tuple[Mark, ...]
    points: dict[str, float]
    by_hand: frozenset[str]
    notes: tuple[str, ...]
    private: tuple[str, ...] = ()

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
    writer.writerow(["student", "status", "total", "max", *names, "notes"])
    for row in rows:
        points = [f"{row.points[name]:g}" for name in names]
        notes = _cell("; ".join([*all_notes(row), *row.private]))
        writer.writerow(
            [_cell(row.student), row.status, f"{row.total:g}", f"{total:g}", *points, notes]
        )
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
    """Where the class is stuck: shares and the most frequent obstacle of every exercise, and a heat
    map.
    """
    graded = [row for row in rows if row.status != "not graded"]
    exercises = []
    for k, exercise in enumerate(lab.exercises):
        marks = [row.marks[k] for row in graded]
        states = Counter(mark.state for mark in marks)
        exercises.append(
            {
                "exercise": exercise,
                "shares": [
                    (state, states[state], 100 * states[state] / max(1, len(marks)))
                    for state in STATES
                ],
                "obstacle": _obstacle(marks),
            }
        )
    ungraded = len(rows) - len(graded)
    return _render("class.html", lab=lab, rows=rows, exercises=exercises, ungraded=ungraded)


def _obstacle(marks: list[Mark]) -> tuple[str, str, int] | None:
    """The criterion that most answers fail, its most frequent message, and how many fail it."""
    failed = [(c.name, c.message) for m in marks for c in m.criteria if not c.passed]
    failed += [("could not be judged", m.cause) for m in marks if m.cause]
    if not failed:
        return None
    name, count = _most_frequent(name for name, _ in failed)
    return name, _most_frequent(text for which, text in failed if which == name)[0], count


def _most_frequent(texts: Iterable[str]) -> tuple[str, int]:
    return min(Counter(texts).items(), key=lambda item: (-item[1], item[0]))


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
