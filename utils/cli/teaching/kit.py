"""The class folder: syllabus, guide, slides, sheet, exam, rubric, announcements and check-list."""

import csv
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from utils.cli.teaching import exam, slides
from utils.course import catalog
from utils.course.catalog import ROOT, Exercise, Lesson
from utils.course.glossary import glossary
from utils.course.lesson import FOLDER as PREDICTIONS
from utils.course.lesson import predictions
from utils.course.misconceptions import misconceptions
from utils.course.shown import in_html
from utils.course.tracks import Stop, Track, duration, names_of, tracks
from utils.facts.records import read_as, read_yaml

HERE = Path(__file__).parent
SITTING, BREAK, LUNCH, NOON = 85, 15, 60, 12 * 60
"""Minutes without a break, of a break and of lunch; when lunch may begin, in minutes of the day."""
TERMS = 18
"""Terms of the glossary on the student's sheet."""
_PASSING = r"\*\*Measured.*?(?=\n\n(?!- )|\Z)"
USUAL, GUESSES = 3, 2
"""Wrong answers of an exercise, and wrong numbers of a prediction, that the guide lists."""


class KitError(ValueError):
    """The folder cannot be made; the message says why, and what to do."""


@dataclass(frozen=True)
class Plan:
    """What the class does: a track, its lessons, and the exercises of its labs in their order."""

    track: Track
    start: str

    @property
    def lessons(self) -> list[Lesson]:
        """The lessons of the track's stops, each once, in their order."""
        numbers = dict.fromkeys(stop.notebook.number for stop in self.track.stops)
        known = {lesson.number: lesson for lesson in catalog.lessons()}
        return [known[number] for number in numbers if number in known]

    @property
    def minutes(self) -> int:
        """Of all stops of the track."""
        return sum(stop.minutes for stop in self.track.stops)

    @property
    def points(self) -> float:
        """The most that the exercises of the track earn."""
        return sum(exercise.points for exercise in self.exercises)

    @property
    def exercises(self) -> list[Exercise]:
        """Those of the track, in its order."""
        return [stop.exercise for stop in self.track.stops if stop.exercise]

    @property
    def labs(self) -> list[str]:
        """Such as "lab03", in their order."""
        return list(dict.fromkeys(item.id.partition(".")[0] for item in self.exercises))

    def exercises_of(self, number: str) -> list[Exercise]:
        """Those of a lab; number: its two digits, such as "03"."""
        return [item for item in self.exercises if item.id.startswith(f"lab{number}.")]


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question that learners ask, and an answer."""

    question: str
    answer: str


class Advice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the guide says of a lesson. say: how to begin, and what to dwell on. skip: what can go
    when time is short. wrong: what goes wrong in the room, beyond the predictions and exercises,
    whose records say it themselves."""

    say: str
    skip: str
    wrong: str
    questions: list[Asked]


@cache
def advice() -> dict[str, Advice]:
    """By the number of the lesson; a lesson without an entry is taught from its slides."""
    path = HERE / "guide.yaml"
    return read_as(dict[str, Advice], read_yaml(path), path.name)


def new(
    folder: Path, track: str, seed: int, people: Sequence[str] = (), start: str = "09:00",
    date: str = "[DATE]", place: str = "[PLACE]",
) -> list[str]:  # fmt: skip
    """Write the folder of a class; returns the names of its files.

    people: names, for an exam version each and a table to fill. start: of a day, on a clock.
    Raises KitError if the folder holds something, or the track, a name or the time is not valid.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise KitError(f"{folder} is not empty, and nothing in it is replaced: name a new folder")
    known = tracks()
    if track not in known:
        raise KitError(f"there is no track {track!r}; there are {', '.join(known)}")
    if not re.fullmatch(r"([01]?\d|2[0-3]):[0-5]\d", start):
        raise KitError(f"{start!r} is not a time of the day: write one such as 09:00")
    plan = Plan(known[track], start)
    versions = exam.versions([lesson.number for lesson in plan.lessons], seed, people)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".class-") as name:
        work = Path(name) / "class"
        for sub in ("slides", "exam"):
            (work / sub).mkdir(parents=True)
        _write(work, plan, versions, {"seed": seed, "date": date, "place": place})
        if people:
            _write_people(work / "people.csv", plan, people)
        if folder.exists():
            folder.rmdir()
        shutil.move(work, folder)
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def read_people(path: Path) -> list[str]:
    """Names, one a line. Raises KitError for an empty file, a name twice, or what is no name."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise KitError(f"{path} cannot be read as text in UTF-8: {error}") from None
    names = [" ".join(line.split()) for line in lines if line.strip()]
    if not names:
        raise KitError(f"{path} has no names: write one on each line")
    if twice := [name for name in names if names.count(name) > 1]:
        raise KitError(f"{path} has {twice[0]!r} twice: add something that tells them apart")
    if strange := [name for name in names if re.search(r"[<>|;,\t]|^[=+@-]", name)]:
        raise KitError(f"{path}: {strange[0]!r} is no name: write one on each line, without , ; |")
    return names


def timetable(stops: Sequence[Stop], start: str, whole_day: bool) -> list[tuple[str, int, str]]:
    """(from, minutes, what) of a day, with breaks, and with lunch if it is a whole day."""
    hours, minutes = map(int, start.split(":"))
    now, sitting, eaten, rows = hours * 60 + minutes, 0, not whole_day, []

    def add(length: int, what: str) -> None:
        nonlocal now
        rows.append((f"{now // 60:02}:{now % 60:02}", length, what))
        now += length

    for stop in stops:
        if sitting and sitting + stop.minutes > SITTING + 5:
            lunch = not eaten and now + stop.minutes / 2 >= NOON
            eaten = eaten or lunch
            add(LUNCH if lunch else BREAK, "Lunch" if lunch else "Break")
            sitting = 0
        lab = f"Lab {stop.notebook.number}, " if stop.exercise else f"Lesson {stop.id}: "
        number = f"exercise {stop.id.partition('.ex')[2]}: " if stop.exercise else ""
        add(stop.minutes, f"{lab}{number}{stop.title}")
        sitting += stop.minutes
    rows.append((f"{now // 60:02}:{now % 60:02}", 0, "End"))
    return rows


def weeks(track: Track) -> Iterator[tuple[int, str, int, str, int]]:
    """(week, lessons, minutes in class, labs, minutes of homework) of a track in weeks."""
    for week, stops in enumerate(track.parts, start=1):
        lessons = [stop for stop in stops if not stop.exercise]
        tasks = [stop for stop in stops if stop.exercise]
        labs = [f"lab {lab.number}" for lab, _ in groupby(tasks, key=lambda stop: stop.notebook)]
        titles = "; ".join(f"{stop.id} {stop.title}" for stop in lessons)
        yield (
            week, titles, sum(stop.minutes for stop in lessons), ", ".join(labs),
            sum(stop.minutes for stop in tasks),
        )  # fmt: skip


def objectives(lesson: Lesson, exercises: Sequence[Exercise] = ()) -> list[str]:
    """What a lesson promises, an item each, as Markdown; with some exercises of its lab alone, only
    what names one of them or none."""
    own = {exercise.id.partition(".ex")[2] for exercise in exercises}
    for cell in catalog.read_notebook(lesson.path)["cells"]:
        if cell.get("id") == "objectives":
            promises = re.findall(r"^- (.*)$", catalog.text(cell), re.MULTILINE)
            items = [slides.plain(item) for item in promises]
            return [item for item in items if not own or not _proofs(item) or _proofs(item) & own]
    return []


def _proofs(item: str) -> set[str]:
    """Numbers of the exercises that prove a promise."""
    return set(re.findall(r"\d+", " ".join(re.findall(r"exercises? ([\d, and]+)", item))))


def criteria(exercise: Exercise) -> str:
    """How the task of an exercise says that it is measured and passed, as Markdown."""
    lab, _, name = exercise.id.partition(".")
    for path in catalog.lab_notebooks(ROOT, lab):
        for cell in catalog.read_notebook(path)["cells"]:
            if cell.get("id") == f"{name}-task":
                text = re.search(_PASSING, catalog.text(cell), re.DOTALL)
                return " ".join(re.sub(r"\n+- ", " · ", text[0]).split()) if text else ""
    return ""


def wrong_answers(exercise: Exercise) -> list[tuple[str, str]]:
    """(what learners write, what the check says) of the first usual wrong answers."""
    lab, _, name = exercise.id.partition(".")
    rows = []
    for record in misconceptions(lab):
        own = [answer.wrong for answer in record.answers if answer.exercise == name]
        if record.usual and own:
            rows.append((own[0], record.sentence))
    return rows[:USUAL]


def guesses(lesson: Lesson) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """(what a lesson asks for, the number it shows, the first [(wrong number, what it tells)])."""
    name = f"lesson{lesson.number}"
    if not (PREDICTIONS / f"{name}.yaml").is_file():
        return []
    right: dict[str, str] = {}
    for slide in slides.slides(lesson):
        right |= slide.measured
    return [
        (item.what, right.get(item.what, ""), rows[:GUESSES])
        for item in predictions(name).values()
        if (rows := slides.wrong_numbers(item))
    ]


def terms(lessons: Sequence[Lesson]) -> list[tuple[str, str]]:
    """Terms of the glossary that most of these lessons use, with the first sentence of each."""
    cells = [cell for lesson in lessons for cell in catalog.read_notebook(lesson.path)["cells"]]
    text = "\n".join(catalog.text(cell) for cell in cells if cell["cell_type"] == "markdown")
    uses = {term: len(re.findall(rf"\b{re.escape(term)}\b", text)) for term in glossary()}
    often = sorted(uses, key=lambda term: -uses[term])[:TERMS]
    first = {term: re.split(r"(?<=\.) ", glossary()[term])[0] for term in often}
    return sorted(first.items(), key=lambda item: item[0].lower())


def _write(work: Path, plan: Plan, versions: list[exam.Version], facts: dict[str, Any]) -> None:
    """Every page of the folder; `facts` are for all pages."""
    import mistune  # late: only pages need it, and --help does not
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(HERE / "pages"),
        autoescape=lambda name: bool(name) and ".html" in str(name),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    convert = mistune.create_markdown(plugins=["table"])

    def to_html(text: str) -> str:
        # What scrolls on a phone is reached by keyboard.
        return str(convert(text)).replace("<table>", '<table tabindex="0">')

    environment.filters |= {
        "duration": duration,
        "code": lambda text: Markup(in_html(text)),
        "markdown": to_html,
        # Headings of a section are below that of its slide.
        "below": lambda text: re.sub(r"^#+ ", "### ", text, flags=re.MULTILINE),
    }
    environment.globals |= {
        "plan": plan, "versions": versions, "advice": advice(), "objectives": objectives,
        "criteria": criteria, "wrong_answers": wrong_answers, "guesses": guesses, "terms": terms,
        "timetable": timetable, "weeks": weeks, "names_of": names_of,
        "wrong_numbers": slides.wrong_numbers, **facts,
    }  # fmt: skip

    def page(target: str, template: str, **more: Any) -> None:
        text = environment.get_template(template).render(**more)
        (work / target).write_text(text, encoding="utf-8")

    for name in ("README", "announcements"):
        page(f"{name}.md", f"{name}.md.j2")
    for name in ("checklist", "syllabus", "guide", "rubric", "student_sheet"):
        body = to_html(environment.get_template(f"{name}.md.j2").render())
        title = name.replace("_", " ").capitalize()
        page(f"{name}.html", "base.html.j2", body=body, title=title, kind=name)
    page("exam/exam.html", "exam.html.j2")
    page("exam/key.html", "key.html.j2")
    for lesson in plan.lessons:
        name = lesson.path.stem
        page(f"slides/{name}.html", "slides.html.j2", lesson=lesson, slides=slides.slides(lesson))


def _write_people(path: Path, plan: Plan, people: Sequence[str]) -> None:
    """A table with a row for each person, to fill by hand or in a spreadsheet."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        most = [
            f"{lab} (of {sum(e.points for e in plan.exercises_of(lab[3:])):g})" for lab in plan.labs
        ]
        writer.writerow(["name", "set up", *most, "exam", "remarks"])
        writer.writerows([name] + [""] * (len(plan.labs) + 3) for name in people)
