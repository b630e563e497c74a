"""Grade a folder: read each submission, run it in sandboxes, judge, record, report.

Each submission is on disk for good the moment it is done (`records`). A grading that ended early,
for whatever reason, goes on where it stopped; tables and pages are made of the records.
"""

import json
import secrets
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from utils.course import catalog
from utils.course.files import private_file, replace_file
from utils.labs import Facts
from utils.labs.grading import (
    answers,
    folders,
    lab,
    marking,
    records,
    report,
    sandbox,
    similar,
    submissions,
)
from utils.labs.grading.confine import Limits
from utils.labs.grading.gradebook import Book
from utils.labs.grading.lab import Exercise, Lab
from utils.labs.grading.marking import Mark
from utils.labs.grading.records import Graded, Record
from utils.labs.grading.sandbox import Slots
from utils.labs.grading.submissions import Submission
from utils.labs.grading.task import Place, Result, Task, run

Say = Callable[[str], None]
RATE_AFTER_S = 10.0
"""From when on a rate says something."""
PAGES_EVERY_S = 60.0
PAGES_REST = 20
"""How old tables and pages get while a grading runs, in seconds, and how many times as long as
making them at least is waited until they are made again.
"""


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
    scheduler: str = "",
) -> list[Graded]:
    """Grade every submission in `folder` and write records, tables, reports and gradebook to `out`.

    What `out` holds a record of, of the same content, lab and seed, is not graded again, unless its
    student or an exercise is named in `again`. Whoever is graded again gets new hidden inputs.
    Without `seed` the one in `out/seed.txt` is used, or one is drawn and kept there. scheduler: the
    address of a Dask scheduler, whose workers do the work instead of this machine. Returns the rows
    of `folder`. Raises ValueError for folders that cannot be used and a scheduler that does not
    answer, SandboxError if there is no sandbox; what was graded until then stays.
    """
    folder, out, root = folder.resolve(), out.resolve(), root.resolve()
    folders.check(folder, out, root)
    with folders.claim(out):
        seed = folders.known_seed(out, seed)
        known = {record.entry: replace(record, log={}) for record in records.read(out)}
        handed_in = submissions.find(folder, known.values(), lab_name)
        chosen = lab.load(root, lab_name or _guess(handed_in, root))
        whose, which = _to_grade_again(list(again), handed_in, chosen)
        limits = limits or Limits()
        with _pool(chosen, root, jobs, scheduler, say) as pool:
            seed = folders.keep_seed(out, seed)
            cases = _cases(chosen.exercises, seed)
            other_seed = secrets.token_hex(16)
            other_cases = _cases(chosen.exercises, other_seed) if known else {}
            book = Book(chosen, root, out)
            keys: dict[str, tuple[str, str]] = {}
            progress = Progress(len(handed_in), known)

            def to_do() -> Iterator[Record | Task]:
                for submission in handed_in:
                    files, notes = submission.read()
                    key = records.key_of(files, notes, chosen, root, seed)
                    before = known.get(submission.path.name)
                    asked = submission.slug in whose
                    same = before is not None and before.key == key
                    if before and same and not asked:
                        yield before
                        continue
                    # Only some exercises again if the others are known as they are now.
                    named = which if asked and same else ()
                    # Whoever hands in again has read a report on the inputs of this seed.
                    read = before is not None and bool(before.key) and before.seed == seed
                    new = asked and (same or not which) or read and not same
                    keys[submission.slug] = key, other_seed if new else seed
                    yield Task(
                        submission,
                        tuple(files),
                        tuple(notes),
                        chosen.name,
                        named or chosen.exercises,
                        other_cases if new else cases,
                        limits,
                    )

            done: set[str] = set()
            pages_at = time.monotonic() + PAGES_EVERY_S
            try:
                with closing(_as_they_end(to_do(), pool)) as results:
                    for result in results:
                        if isinstance(result, Result):
                            slug = result.submission.slug
                            key, use = keys.pop(slug)
                            before = known.get(result.submission.path.name)
                            marks = result.marks
                            if before and len(marks) < len(chosen.exercises):
                                marks = _merge(marks, before)
                            key = "" if result.failed else key
                            result = replace(result, marks=marks, key=key, seed=use)
                        record = result if isinstance(result, Record) else _keep(result, book, out)
                        done.add(record.slug)
                        say(progress.line(record, isinstance(result, Result)))
                        begun = time.monotonic()
                        if begun > pages_at:
                            write(out, chosen, book)
                            took = time.monotonic() - begun
                            pages_at = time.monotonic() + max(PAGES_EVERY_S, PAGES_REST * took)
            except BaseException:
                write(out, chosen, book)
                raise
        rows = write(out, chosen, book, ended=True)
        return [row for row in rows if row.record.slug in done]


@dataclass
class Progress:
    """What is said of each submission that is done. known: what earlier gradings knew."""

    submissions: int
    known: Mapping[str, Record]
    started: float = field(default_factory=time.monotonic)
    done: int = 0
    graded: int = 0
    failed: int = 0

    def line(self, record: Record, new: bool) -> str:
        """new: whether it was graded now, not by an earlier grading."""
        self.done += 1
        self.graded += new
        self.failed += record.status == "not graded"
        text = (
            f"{self.done}/{self.submissions} {record.student}: {record.points:g}, {record.status}"
        )
        before = self.known.get(record.entry)
        if before and before.points != record.points:
            text += f" ({before.points:g} before)"
        seconds = time.monotonic() - self.started
        if seconds > RATE_AFTER_S and self.graded:
            rate = 60 * self.graded / seconds
            left = (self.submissions - self.done) / rate
            text += f" · {rate:.3g} a minute, {left:.0f} min left"
        return text + (f" · {self.failed} not graded so far" if self.failed else "")


def _keep(result: Result, book: Book, out: Path) -> Record:
    # The gradebook first: what has a record is in both.
    submission = result.submission
    book.record(submission.slug, result.notebook, result.marks, submission.submitted)
    record = _record(result)
    records.keep(out, record)
    return record


def _cases(exercises: Iterable[Exercise], seed: str) -> dict[str, list[Facts]]:
    return {e.id: marking.cases(e.id, seed) for e in exercises}


def _to_grade_again(
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


def _merge(marks: list[Mark], before: Record) -> list[Mark]:
    new = {mark.exercise.id: mark for mark in marks}
    return [new.get(mark.exercise.id, mark) for mark in before.marks]


class Pool(Protocol):
    """Who runs tasks. capacity: how many are worth being handed over at a time."""

    @property
    def capacity(self) -> int: ...

    def submit(self, task: Task) -> "Future[Result]": ...


@dataclass(frozen=True)
class Here:
    """Runs tasks on this machine, in threads that start sandboxes."""

    place: Place
    slots: Slots
    threads: ThreadPoolExecutor

    @property
    def capacity(self) -> int:
        return 2 * self.slots.jobs

    def submit(self, task: Task) -> "Future[Result]":
        return self.threads.submit(self._run, task)

    def _run(self, task: Task) -> Result:
        with self.slots.take() as slot:
            return run(task, self.place, slot)


@contextmanager
def _pool(chosen: Lab, root: Path, jobs: int, scheduler: str, say: Say) -> Iterator[Pool]:
    if scheduler:
        from utils.labs.grading import cluster  # late: distributed takes a second to import

        with cluster.connect(scheduler, chosen, root, say) as pool:
            yield pool
        return
    slots = Slots(jobs)
    threads = ThreadPoolExecutor(slots.jobs)
    try:
        yield Here(Place(chosen, root, sandbox.prepare()), slots, threads)
    finally:
        threads.shutdown(cancel_futures=True)


def _as_they_end(
    todo: Iterator[Record | Task], pool: Pool
) -> Generator[Record | Result, None, None]:
    """What comes of each, as they end; never more than a few are held."""
    running: set[Future[Result]] = set()
    try:
        while True:
            for item in todo:
                if isinstance(item, Record):
                    yield item
                    continue
                running.add(pool.submit(item))
                if len(running) >= pool.capacity:
                    break
            if not running:
                return
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                yield future.result()
    finally:
        for future in running:
            future.cancel()


def _guess(handed_in: list[Submission], root: Path) -> str:
    names = [entry.name for entry in catalog.labs(root)]
    if len(names) == 1:
        return names[0]
    contents = [file.content for s in handed_in for file in s.read()[0]]
    return answers.lab_of(contents, names)


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


def write(out: Path, chosen: Lab, book: Book, ended: bool = False) -> list[Graded]:
    """Make the table, the pages and the log of what is graded so far; returns all rows.

    Also while a grading runs: each file is replaced whole. ended: whether it is the end of one, at
    which similar answers are looked for too.
    """
    rows = []
    half = out / ".log.jsonl"
    with open(half, "w", encoding="utf-8", opener=private_file) as log:
        for row in book.graded(records.read(out)):
            log.write(json.dumps(row.record.log) + "\n")
            row = replace(row, record=replace(row.record, log={}))  # or all of them stay in memory
            rows.append(row)
            page = report.student_page(chosen, row)
            replace_file(out / "reports" / f"{row.record.slug}.html", page)
    half.replace(out / "log.jsonl")
    similar_page = out / "similar.html"
    if ended:
        result = similar.compare(chosen, out, ((r.record.student, r.record.slug) for r in rows))
        page = report.similar_page(chosen, out, result)
        replace_file(similar_page, page, private=True)
        replace_file(out / "similar.csv", report.similar_table(result), private=True)
    page = report.class_page(chosen, rows, similar=similar_page.exists())
    replace_file(out / "class.html", page)
    replace_file(out / "gradebook.csv", report.table(chosen, rows))
    return rows
