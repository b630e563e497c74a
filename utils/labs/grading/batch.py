"""Grade a folder: read each submission, run it in sandboxes, judge, record, report.

Each submission is on disk for good the moment it is done (`records`). A grading that ended early,
for whatever reason, goes on where it stopped; tables and pages are made of the records.
"""

import json
import secrets
import time
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from utils.course import catalog
from utils.labs.grading import (
    answers,
    attempts,
    folders,
    lab,
    marking,
    records,
    report,
    sandbox,
    scan,
    similar,
    submissions,
)
from utils.labs.grading.answers import Notebook
from utils.labs.grading.attempts import Attempts, Setting
from utils.labs.grading.confine import Host, Limits
from utils.labs.grading.gradebook import Book, Score
from utils.labs.grading.lab import Exercise, Lab
from utils.labs.grading.marking import Mark
from utils.labs.grading.records import Record
from utils.labs.grading.report import Row
from utils.labs.grading.sandbox import SandboxError, Slots
from utils.labs.grading.submissions import File, NotANotebook, Submission

Say = Callable[[str], None]
T = TypeVar("T")
PAGES_EVERY_S = 60.0
"""How old tables and pages get while a grading runs."""


@dataclass(frozen=True)
class Result:
    """One submission after its sandboxes, with a mark for each exercise.

    problem: why it could not be graded, if so; failed: whether that may be the grader's fault.
    noise: what its sandboxes printed themselves. key, seed: as in `Record`.
    """

    submission: Submission
    notebook: Notebook
    marks: list[Mark]
    notes: tuple[str, ...]
    problem: str = ""
    attempts: Attempts = field(default_factory=dict)
    seconds: float = 0.0
    noise: str = ""
    failed: bool = False
    key: str = ""
    seed: str = ""

    @property
    def signs(self) -> tuple[str, ...]:
        """For the instructor: what in its cells looks into the check."""
        signs = scan.signs((*self.notebook.cells, *self.notebook.earlier.cells))
        return (f"looks into the check: {', '.join(signs)}",) if signs else ()


def grade(
    folder: Path,
    out: Path,
    root: Path = catalog.ROOT,
    lab_name: str | None = None,
    seed: str | None = None,
    jobs: int = 2,
    limits: Limits | None = None,
    again: Iterable[str] = (),
    say: Say = lambda text: None,
) -> list[Row]:
    """Grade every submission in `folder` and write records, tables, reports and gradebook to `out`.

    What `out` holds a record of, of the same content, lab and seed, is not graded again, unless its
    student or an exercise is named in `again`: then with new hidden inputs. Without `seed` the one
    in `out/seed.txt` is used, or one is drawn and kept there. Returns the rows of `folder`. Raises
    ValueError for folders that cannot be used, SandboxError if there is no sandbox; what was graded
    until then stays.
    """
    folder, out, root = folder.resolve(), out.resolve(), root.resolve()
    folders.check(folder, out, root)
    with folders.claimed(out):
        seed = folders.known_seed(out, seed)
        host = sandbox.prepare()
        known = {record.entry: replace(record, log={}) for record in records.read(out)}
        handed_in = submissions.find(folder, known.values(), lab_name)
        chosen = lab.load(root, lab_name or _guess(handed_in, root))
        whose, which = _asked_again(list(again), handed_in, chosen)
        seed = folders.keep_seed(out, seed)
        limits = limits or Limits()
        setting = _setting(chosen, chosen.exercises, seed, root, host, limits)
        other_seed = secrets.token_hex(16)
        fresh = _setting(chosen, which or chosen.exercises, other_seed, root, host, limits)
        book = Book(chosen, root, out)
        slots = Slots(jobs)

        def grade_one(submission: Submission) -> Record | Result:
            files, notes = submission.read()
            key = records.key_of(files, notes, chosen, root, seed)
            before = known.get(submission.path.name)
            asked = submission.slug in whose
            if before and before.key == key and not asked:
                return before
            # Only some exercises again if the others are known as they are now.
            part = before if before and before.key == key and asked else None
            drawn, use = (other_seed, fresh) if asked and (part or not which) else (seed, setting)
            with slots.take() as slot:
                result = grade_submission(submission, files, notes, use, slot)
            marks = _merged(result.marks, part) if part else result.marks
            key = "" if result.failed else key
            return replace(result, marks=marks, key=key, seed=drawn)

        done: set[str] = set()
        written = time.monotonic()
        try:
            with closing(_as_they_end(grade_one, handed_in, slots.jobs)) as results:
                for result in results:
                    record = result if isinstance(result, Record) else _keep(result, book, out)
                    done.add(record.slug)
                    text = f"{record.student}: {record.points:g}, {record.status}"
                    before = known.get(record.entry)
                    if before and before.points != record.points:
                        text += f" ({before.points:g} before)"
                    say(f"{len(done)}/{len(handed_in)} {text}")
                    if time.monotonic() - written > PAGES_EVERY_S:
                        write(out, chosen, book)
                        written = time.monotonic()
        except BaseException:
            write(out, chosen, book)
            raise
        rows = write(out, chosen, book, ended=True)
        return [row for row in rows if row.slug in done]


def _keep(result: Result, book: Book, out: Path) -> Record:
    # The gradebook first: what has a record is in both.
    submission = result.submission
    book.record(submission.slug, result.notebook, result.marks, submission.submitted)
    record = _record(result)
    records.keep(out, record)
    return record


def _setting(
    chosen: Lab, graded: tuple[Exercise, ...], seed: str, root: Path, host: Host, limits: Limits
) -> Setting:
    cases = {e.id: marking.cases(e.id, seed) for e in graded}
    return Setting(chosen, graded, cases, root, host, limits)


def _asked_again(
    again: list[str], handed_in: list[Submission], chosen: Lab
) -> tuple[set[str], tuple[Exercise, ...]]:
    """Whose submissions to grade again, and which exercises; none means all of them."""
    students = {name: s.slug for s in handed_in for name in (s.student, s.slug, s.path.name)}
    exercises = {name: e for e in chosen.exercises for name in (e.id, e.name)}
    unknown = [name for name in again if name not in students and name not in exercises]
    if unknown:
        raise ValueError(
            f"--again {unknown[0]}: there is neither such a student nor such an exercise; exercises"
            f" are {', '.join(e.id for e in chosen.exercises)}, students such as"
            f" {handed_in[0].student}"
        )
    named = tuple(exercises[name] for name in again if name in exercises)
    some = [students[name] for name in again if name in students]
    whose = set(some or (s.slug for s in handed_in if named))
    return whose, named


def _merged(marks: list[Mark], before: Record) -> list[Mark]:
    new = {mark.exercise.id: mark for mark in marks}
    return [new.get(mark.exercise.id, mark) for mark in before.marks]


def _as_they_end(
    work: Callable[[Submission], T], todo: list[Submission], jobs: int
) -> Generator[T, None, None]:
    """What `work` returns for each, as they end; never more than a few are held."""
    rest = iter(todo)
    pool = ThreadPoolExecutor(jobs)
    running: set[Future[T]] = set()
    try:
        while True:
            for submission in rest:
                running.add(pool.submit(work, submission))
                if len(running) >= 2 * jobs:
                    break
            if not running:
                return
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _guess(handed_in: list[Submission], root: Path) -> str:
    names = [entry.name for entry in catalog.labs(root)]
    if len(names) == 1:
        return names[0]
    contents = [file.content for s in handed_in for file in s.read()[0]]
    return answers.lab_of(contents, names)


def grade_submission(
    submission: Submission, files: list[File], notes: list[str], setting: Setting, slot: int
) -> Result:
    """Run and judge one submission. slot: tells those that run at the same time apart.

    Raises SandboxError if no sandbox works here; one that only this submission breaks costs its
    points alone.
    """
    started = time.monotonic()
    exercises = setting.exercises
    untouched = answers.untouched(setting.lab)
    nothing = [Mark(exercise, "not attempted", 0.0) for exercise in exercises]
    try:
        notebook = answers.read(files, setting.lab)
    except NotANotebook as error:
        return Result(submission, untouched, nothing, tuple(notes), str(error))
    try:
        made, noise = attempts.run_all(notebook, setting, slot)
    except SandboxError as error:
        attempts.run_all(untouched, setting, slot)
        failed = f"{error}; grade again to try it once more"
        return Result(submission, notebook, nothing, tuple(notes), failed, failed=True)
    marks = [
        marking.mark(
            exercise,
            notebook,
            setting.cases[exercise.id],
            made.get((exercise.id, "full")),
            made.get((exercise.id, "own")),
            setting.lab.published.get(exercise.name),
            setting.limits,
        )
        for exercise in exercises
    ]
    return Result(
        submission,
        notebook,
        marks,
        (*notes, *notebook.notes),
        attempts=made,
        seconds=time.monotonic() - started,
        noise=noise,
    )


def _record(result: Result) -> Record:
    notes: tuple[str, ...] = ()
    if result.problem:
        status, notes = "not graded", (f"not graded: {result.problem}",)
    elif result.notebook.doubt or any(mark.cause for mark in result.marks):
        status = "graded with problems"
    else:
        status = "graded"
    return Record(
        result.submission.path.name,
        result.submission.student,
        result.submission.slug,
        result.key,
        result.seed,
        status,
        tuple(result.marks),
        (*notes, *result.notes),
        result.signs,
        result.submission.id,
        result.submission.late,
        _log(result),
        result.submission.submitted,
    )


def _row(record: Record, scores: dict[str, Score]) -> Row:
    return Row(
        record.student,
        record.slug,
        record.status,
        record.marks,
        {m.exercise.name: scores[m.exercise.name].points for m in record.marks},
        frozenset(name for name, score in scores.items() if score.manual),
        record.notes,
        record.signs,
        record.id,
        record.late,
    )


def _log(result: Result) -> dict[str, Any]:
    """For the instructor only: seconds, raw errors, failing cases, first lines of output."""
    return {
        "student": result.submission.student,
        "seconds": round(result.seconds, 1),
        "private": {m.exercise.name: m.private for m in result.marks if m.private},
        "attempts": [
            {"exercise": exercise, **asdict(attempt)}
            for (exercise, _), attempt in result.attempts.items()
        ],
        "signs": result.signs,
        "noise": result.noise,
    }


def write(out: Path, chosen: Lab, book: Book, ended: bool = False) -> list[Row]:
    """Make the table, the pages and the log of what is graded so far; returns all rows.

    Also while a grading runs: each file is replaced whole. ended: whether it is the end of one, at
    which similar answers are looked for too.
    """
    rows = []
    half = out / ".log.jsonl"
    with open(half, "w", encoding="utf-8", opener=records.private_file) as log:
        slugs = [record.slug for record in records.read(out)]
        for record, scores in zip(records.read(out), book.scores(slugs), strict=True):
            row = _row(record, scores)
            rows.append(row)
            log.write(json.dumps(record.log) + "\n")
            page = report.student_page(chosen, row)
            records.replace_file(out / "reports" / f"{row.slug}.html", page)
    half.replace(out / "log.jsonl")
    similar_page = out / "similar.html"
    if ended:
        found = similar.compare(chosen, out, ((row.student, row.slug) for row in rows))
        page = report.similar_page(chosen, out, found)
        records.replace_file(similar_page, page, private=True)
        records.replace_file(out / "similar.csv", similar.table(found), private=True)
    page = report.class_page(chosen, rows, similar=similar_page.exists())
    records.replace_file(out / "class.html", page)
    records.replace_file(out / "gradebook.csv", report.table(chosen, rows))
    return rows
