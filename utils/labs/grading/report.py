"""What people read after a grading: one table, one page per student, one page on the class, and one
on similar answers.

The same marks give the same bytes: no times, no dates. Texts from submissions are escaped by the
templates.
"""

import base64
import hashlib
import heapq
import re
import statistics
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from utils.course.misconceptions import misconceptions
from utils.labs import Criterion
from utils.labs.grading import similar
from utils.labs.grading.lab import Exercise, Lab
from utils.labs.grading.marking import Mark
from utils.labs.grading.records import Graded
from utils.labs.grading.similar import Similar
from utils.labs.grading.spreadsheets import csv_text

Person = tuple[str, str]
"""Name and slug."""
TEMPLATES = Path(__file__).with_name("templates")
STATES = ("passed", "tried", "not attempted", "error")
MOST_OBSTACLES, MOST_NAMED, MOST_ROWS = 5, 20, 500
"""On the class page: sentences for an exercise, names in a list, rows in the table of students."""
MOST_KNOWN = 20_000
"""Messages whose sentence is remembered."""
LEAST_CORRELATED = 10
"""Students from which on a correlation is shown."""


def mark_text(mark: Mark) -> str:
    """A mark as plain text, for the learner."""
    lines = [f"{mark.state}: {mark.points:g} of {mark.exercise.points:g} points"]
    lines += [mark.cause] if mark.cause else []
    for c, won, most in scores(mark):
        # What a right answer measured helps nobody but those who will be given the same inputs.
        text = c.measured and not c.passed
        numbers = f" (measured {c.measured}, asked for {c.target})" if text else ""
        lines.append(f"{_result(c)}: {c.name}, {won:g} of {most:g} points{numbers}")
        lines += [f"  {c.message}"] if c.message and not c.passed else []
    lines += [f"note: {note}" for note in mark.notes]
    return "\n".join(lines) + "\n"


def all_notes(row: Graded) -> list[str]:
    """Everything worth a remark, as in the table; what holds for several exercises is said once."""
    results: dict[str, list[str]] = {}
    for mark in row.record.marks:
        name = mark.exercise.name
        by_hand = ["points given by hand"] if name in row.by_hand else []
        for text in [mark.cause, *mark.notes, *by_hand]:
            results.setdefault(text, []).append(name)
    results.pop("", None)
    return [*row.record.notes, *(f"{', '.join(names)}: {text}" for text, names in results.items())]


def table(lab: Lab, rows: Iterable[Graded]) -> str:
    """The class as CSV, one row per student."""
    names = [exercise.name for exercise in lab.exercises]
    lines = [["student", "id", "late", "status", "total", "max", *names, "notes"]]
    for row in rows:
        record = row.record
        about = [record.student, record.id, "late" if record.late else "", record.status]
        points = [row.total, lab.points, *(row.points[name] for name in names)]
        notes = "; ".join([*all_notes(row), *record.signs])
        lines.append([*about, *(f"{value:g}" for value in points), notes])
    return csv_text(lines)


def student_page(lab: Lab, row: Graded) -> str:
    """What one student reads, as HTML."""
    return _render(
        "student.html", lab=lab, row=row, scores=scores, result=_result, how_points=HOW_POINTS
    )


HOW_POINTS = (
    "The points of an exercise are shared among its criteria. One that is met with every input"
    " earns its points; of one that asks for many values, a part that is right earns a part:"
    " nothing up to half of them, then more with each value, nine tenths at most."
)


def scores(mark: Mark) -> list[tuple[Criterion, float, float]]:
    """Each criterion of a mark with the points that it earned and those that it can earn.

    An exercise that ended in an error earned nothing, whatever its criteria say.
    """
    weights = sum(c.weight for c in mark.criteria)
    nothing = mark.state == "error"
    rows = []
    for c in mark.criteria:
        most = mark.exercise.points * c.weight / weights
        share = 0.0 if nothing else 1.0 if c.passed else c.share
        rows.append((c, round(most * share, 2), round(most, 2)))
    return rows


def _result(c: Criterion) -> str:
    return "met" if c.passed else "met in part" if c.share else "not met"


# The class


@dataclass
class _Exercise:
    """What is known of one exercise in the class so far.

    last: for how many it is the last one that they tried. wrong: by what a check says, how many
    students, and the first of them.
    """

    exercise: Exercise
    states: Counter[str] = field(default_factory=Counter)
    points: array = field(default_factory=lambda: array("d"))
    last: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    who: dict[str, list[Person]] = field(default_factory=lambda: defaultdict(list))


class ClassSummary:
    """The class page, to which rows are added one by one: what it holds does not grow with the
    class, but for a few numbers of each student.
    """

    def __init__(self, lab: Lab):
        self.lab = lab
        self._exercises = [_Exercise(exercise) for exercise in lab.exercises]
        self._most = lab.points
        self._totals = array("d")
        self._submissions = self._weak = 0
        # Heaps, the one with the most points first: of all, and of those who tried something.
        self._fewest: list[tuple[float, int, Graded]] = []
        self._weakest: list[tuple[float, int, Graded]] = []
        self._silent: dict[str, list[Person]] = {"not graded": [], "tried no exercise": []}
        self._signs: dict[str, tuple[int, list[tuple[str, str, str]]]] = {}
        self._sentences: dict[tuple[str, str, str], str] = {}

    def add(self, row: Graded) -> None:
        """Count one student in."""
        self._submissions += 1
        _keep(self._fewest, row, self._submissions, MOST_ROWS)
        for kind, text in _signs(row):
            count, entries = self._signs.get(kind, (0, []))
            if count < MOST_NAMED:
                entries.append((row.record.student, row.record.slug, text))
            self._signs[kind] = (count + 1, entries)
        if row.record.status == "not graded":
            self._silent["not graded"].append((row.record.student, row.record.slug))
            return
        self._totals.append(row.total)
        tried = [k for k, mark in enumerate(row.record.marks) if mark.state != "not attempted"]
        if tried:
            self._exercises[tried[-1]].last += 1
            if row.total < self._most / 2:
                self._weak += 1
                _keep(self._weakest, row, self._submissions, MOST_NAMED)
        else:
            self._silent["tried no exercise"].append((row.record.student, row.record.slug))
        for about, mark in zip(self._exercises, row.record.marks, strict=True):
            about.states[mark.state] += 1
            about.points.append(row.points[about.exercise.name])
            for text in self._wrong(mark):
                about.wrong[text] += 1
                if about.wrong[text] <= MOST_NAMED:
                    about.who[text].append((row.record.student, row.record.slug))

    def _wrong(self, mark: Mark) -> dict[str, None]:
        """What the checks say is wrong with an answer, each once."""
        failed = [(c.name, c.message) for c in mark.criteria if not c.passed and c.message]
        text = dict.fromkeys(self._sentence(mark.exercise.id, *item) for item in failed)
        return text | (
            {f"could not be judged: {_numberless(mark.cause)}": None} if mark.cause else {}
        )

    def _sentence(self, exercise_id: str, name: str, message: str) -> str:
        """The sentence of the record of misconceptions that a message comes from; of another
        message its words, without the numbers, which differ between students.
        """
        key = (exercise_id, name, message)
        if key not in self._sentences:
            if len(self._sentences) > MOST_KNOWN:
                self._sentences.clear()
            lab, _, exercise = exercise_id.partition(".")
            own = [r for r in misconceptions(lab) if exercise in {a.exercise for a in r.answers}]
            texts = [r.sentence for r in own if r.is_in(message)]
            self._sentences[key] = (
                max(texts, key=len) if texts else f"{name}: {_numberless(message)}"
            )
        return self._sentences[key]

    def page(self, similar: bool = False) -> str:
        """The page as HTML. similar: whether there is a page on similar answers to link to."""
        totals = self._totals
        spread = Counter(min(int(10 * total / self._most), 9) for total in totals)
        rows = [row for _, _, row in sorted(self._fewest, key=lambda entry: -entry[1])]
        weakest = [row for _, _, row in sorted(self._weakest, key=lambda entry: entry[:2])[::-1]]
        last = max(self._exercises, key=lambda about: about.last)
        stops = last is not self._exercises[-1] and last.last > 0
        return _render(
            "class.html",
            script=True,
            lab=self.lab,
            similar=similar,
            submissions=self._submissions,
            ungraded=self._submissions - len(totals),
            most=self._most,
            least=LEAST_CORRELATED,
            mean=statistics.fmean(totals) if totals else 0,
            median=statistics.median(totals) if totals else 0,
            spread=[
                (10 * k, spread[k], 100 * spread[k] / len(totals)) for k in range(10) if totals
            ],
            exercises=[self._about(about) for about in self._exercises],
            stops=f"{last.exercise.name}: {last.last} of {len(totals)}" if stops else "",
            weak=self._weak,
            weakest=[(r.record.student, r.record.slug, self._reason(r)) for r in weakest],
            silent=[(why, len(w), w[:MOST_NAMED]) for why, w in self._silent.items() if w],
            signs=[(kind, SIGNS[kind], *result) for kind, result in sorted(self._signs.items())],
            rows=rows,
        )

    def _about(self, about: _Exercise) -> dict[str, Any]:
        """One exercise in the class.

        easiness: the mean share of its points. discrimination: the correlation of its points with
        those in the other exercises, None where there are too few students or no differences: near
        0 or below, the exercise does not tell the strong from the weak.
        """
        own, states = about.points, about.states
        others = [total - points for total, points in zip(self._totals, own, strict=True)]
        enough = len(own) >= LEAST_CORRELATED and len(set(own)) > 1 and len(set(others)) > 1
        wrong = sorted(about.wrong.items(), key=lambda item: (-item[1], item[0]))
        return {
            "exercise": about.exercise,
            "shares": [(s, states[s], 100 * states[s] / max(1, len(own))) for s in STATES],
            "easiness": 100 * statistics.fmean(own) / about.exercise.points if own else None,
            "discrimination": statistics.correlation(own, others) if enough else None,
            "last": about.last,
            "obstacles": [(t, count, about.who[t]) for t, count in wrong[:MOST_OBSTACLES]],
            "others": len(wrong[MOST_OBSTACLES:]),
        }

    def _reason(self, row: Graded) -> str:
        """Why somebody may need help, as the end of a sentence that begins with the name."""
        tried = [mark for mark in row.record.marks if mark.state != "not attempted"]
        text = f"has {row.total:g} of {self._most:g} points"
        if tried[-1] is not row.record.marks[-1]:
            text += f", stopped after {tried[-1].exercise.name}"
        if broken := [mark.exercise.name for mark in tried if mark.state == "error"]:
            text += f", and {_join_names(broken)} ended in an error"
        wrong = [
            (about.wrong[output], mark.exercise.name, output)
            for about, mark in zip(self._exercises, row.record.marks, strict=True)
            for output in self._wrong(mark)
            if mark.state == "tried"
        ]
        if wrong:
            count, name, output = max(wrong)
            others = f" and {count - 1} others" if count > 2 else ""
            text += f"; the check of {name} told them{others}: {output}"
        return text if text.endswith(("?", ".", "!")) else f"{text}."


def _numberless(text: str) -> str:
    return re.sub(r"\d(?:[\d.,]*\d)?(?:e[+-]?\d+)?", "…", text)


def _keep(heap: list[tuple[float, int, Graded]], row: Graded, number: int, most: int) -> None:
    """Keep the rows with the fewest points, of equal ones the first."""
    entry = (-row.total, -number, row)
    (heapq.heappush if len(heap) < most else heapq.heappushpop)(heap, entry)


def _join_names(names: list[str]) -> str:
    """
    >>> _join_names(["ex1"]), _join_names(["ex1", "ex2", "ex4"])
    ('ex1', 'ex1, ex2 and ex4')
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


SIGNS = {
    "looks into the check": "Its code names what leads to the check or changes what that counts"
    " with. Honest code rarely has a reason to.",
    "points held back": "What it did, or its cells name, can forge what the check counts. Its"
    " points wait for you: give them by hand in formgrader if there is a good reason.",
    "replaced the course's own code": "The parts were put back before the answer was called.",
    "wrote results of its own": "Only the grader's code writes there; what it wrote was refused.",
    "equals the published solution": "Anybody may read solutions/. Ask how the answer works.",
    "other": "What the grader noted besides.",
}
"""Kinds of signs, and why each is one."""


def _signs(row: Graded) -> Iterator[tuple[str, str]]:
    for text in row.record.signs:
        kind, _, rest = text.partition(": ")
        yield (kind, rest) if kind in SIGNS else ("other", text)
    for mark in row.record.marks:
        name = mark.exercise.name
        if "held back" in mark.cause:
            yield "points held back", f"{name}: {mark.cause}"
        for note in mark.notes:
            if "replaced parts of the course's own code" in note:
                yield "replaced the course's own code", f"{name}: {note}"
            elif "results that are not the check's" in note:
                yield "wrote results of its own", f"{name}: {note}"
            elif note.startswith("equals the published solution"):
                yield "equals the published solution", f"{name}, {note.partition(', ')[2]}"


def class_page(lab: Lab, rows: Iterable[Graded], similar: bool = False) -> str:
    """For the instructor, as HTML: how the points are spread, where the class is stuck, what it
    gets wrong, who may need help, what looks odd, and who did what.

    Of a class of any size it names at most some hundreds; the table has all. similar: whether
    there is a page on similar answers to link to.
    """
    summary = ClassSummary(lab)
    for row in rows:
        summary.add(row)
    return summary.page(similar)


def similar_page(lab: Lab, out: Path, result: Similar) -> str:
    """For the instructor, as HTML: answers that resemble each other, side by side."""
    names = [exercise.name for exercise in lab.exercises]
    pairs = Counter(pair.exercise for pair in result.pairs)
    alike = result.like_published
    return _render(
        "similar.html",
        lab=lab,
        least=similar.LEAST,
        common_least=similar.COMMON_LEAST,
        measured=similar.MEASURED,
        students=len(result.students),
        class_pairs=sum(n * (n - 1) // 2 for n in result.judged.values()),
        counts=[(name, result.judged[name], pairs[name], len(alike[name])) for name in names],
        pairs=len(result.pairs),
        evidence=list(similar.evidence(lab, out, result)),
        like_published=[
            (n, len(alike[n]), [(s, result.students[k]) for s, k in alike[n][:MOST_NAMED]])
            for n in names
            if alike[n]
        ],
    )


def similar_table(result: Similar) -> str:
    """All similar answers as CSV: a row for each pair of forms, with everybody who handed one of
    them in, then those that resemble the published solution.
    """
    names = [student for student, _ in result.students]
    lines = [["exercise", "share", "shared fingerprints", "students", "similar to"]]
    for pair in result.pairs:
        sides = ("; ".join(names[k] for k in who) for who in (pair.ones, pair.others))
        lines.append([pair.exercise, f"{pair.share:.2f}", str(pair.shared), *sides])
    for name, alike in result.like_published.items():
        for share, student in alike:
            lines.append([name, f"{share:.2f}", "", names[student], "the published solution"])
    return csv_text(lines)


def _render(template: str, script: bool = False, **values: Any) -> str:
    """script: whether the tables of the page can be sorted; without scripts it is as it is."""
    code = (TEMPLATES / "sort.js").read_text(encoding="utf-8") if script else ""
    values["script_hash"] = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    return _templates().get_template(template).render(notes_of=all_notes, script=code, **values)


@cache
def _templates() -> Any:
    """The templates, each of which is compiled once."""
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
    return environment
