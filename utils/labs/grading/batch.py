"""Grade a folder: read each submission, run it in sandboxes, judge, record, report."""

import json
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from utils.course import catalog
from utils.labs.grading import (
    answers,
    attempts,
    folders,
    lab,
    marking,
    report,
    sandbox,
    scan,
    submissions,
)
from utils.labs.grading.answers import Notebook
from utils.labs.grading.attempts import Attempts, Setting
from utils.labs.grading.confine import Limits
from utils.labs.grading.gradebook import Book, Score
from utils.labs.grading.lab import Lab
from utils.labs.grading.marking import Mark
from utils.labs.grading.report import Row
from utils.labs.grading.sandbox import Slots
from utils.labs.grading.submissions import NotANotebook, Submission


@dataclass(frozen=True)
class Result:
    """One submission after its sandboxes, with a mark for each exercise.

    problem: why it could not be graded, if so. noise: what its sandboxes printed themselves.
    """

    submission: Submission
    notebook: Notebook
    marks: list[Mark]
    notes: tuple[str, ...]
    problem: str = ""
    attempts: Attempts = field(default_factory=dict)
    seconds: float = 0.0
    noise: str = ""

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
    say: Callable[[str], None] = lambda text: None,
) -> list[Row]:
    """Grade every submission in `folder` and write tables, reports and gradebook to `out`.

    Without `seed` the one in `out/seed.txt` is used, or one is drawn and kept there, so that
    grading again gives the same. Raises ValueError for folders that cannot be used, SandboxError if
    there is no sandbox.
    """
    folder, out, root = folder.resolve(), out.resolve(), root.resolve()
    folders.check(folder, out, root)
    with folders.claimed(out):
        seed = folders.known_seed(out, seed)
        host = sandbox.prepare()
        handed_in = submissions.find(folder)
        chosen = lab.load(root, lab_name or _guess(handed_in, root))
        seed = folders.keep_seed(out, seed)
        cases = {e.id: marking.cases(e.id, seed) for e in chosen.exercises}
        setting = Setting(chosen, cases, root, host, limits or Limits())
        book = Book(chosen, root, out)
        slots = Slots(jobs)

        def grade_one(submission: Submission) -> Result:
            with slots.take() as slot:
                return grade_submission(submission, setting, slot)

        rows, log = [], []
        pool = ThreadPoolExecutor(slots.jobs)
        try:
            for result in pool.map(grade_one, handed_in):
                scores = book.record(result.submission.slug, result.notebook, result.marks)
                row = _row(result, scores)
                rows.append(row)
                log.append(_log(result))
                say(f"{len(rows)}/{len(handed_in)} {row.student}: {row.total:g}, {row.status}")
        finally:
            pool.shutdown(cancel_futures=True)
        _write(out, chosen, rows, log)
        return rows


def _guess(handed_in: list[Submission], root: Path) -> str:
    names = [entry.name for entry in catalog.labs(root)]
    if len(names) == 1:
        return names[0]
    contents = [file.content for s in handed_in for file in submissions.read(s.path)[0]]
    return answers.lab_of(contents, names)


def grade_submission(submission: Submission, setting: Setting, slot: int) -> Result:
    """Read, run and judge one submission. slot: tells those that run at the same time apart."""
    started = time.monotonic()
    files, notes = submissions.read(submission.path)
    exercises = setting.lab.exercises
    try:
        notebook = answers.read(files, setting.lab)
    except NotANotebook as error:
        nothing = [Mark(exercise, "not attempted", 0.0) for exercise in exercises]
        return Result(submission, answers.untouched(setting.lab), nothing, tuple(notes), str(error))
    made, noise = attempts.run_all(notebook, setting, slot)
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


def _row(result: Result, scores: dict[str, Score]) -> Row:
    notes: tuple[str, ...] = ()
    if result.problem:
        status, notes = "not graded", (f"not graded: {result.problem}",)
    elif result.notebook.doubt or any(mark.cause for mark in result.marks):
        status = "graded with problems"
    else:
        status = "graded"
    return Row(
        result.submission.student,
        result.submission.slug,
        status,
        tuple(result.marks),
        {m.exercise.name: scores[m.exercise.name].points for m in result.marks},
        frozenset(name for name, score in scores.items() if score.manual),
        (*notes, *result.notes),
        result.signs,
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


def _write(out: Path, chosen: Lab, rows: list[Row], log: list[dict[str, Any]]) -> None:
    reports = out / "reports"
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir()
    for row in rows:
        page = report.student_page(chosen, row)
        (reports / f"{row.slug}.html").write_text(page, encoding="utf-8")
    (out / "class.html").write_text(report.class_page(chosen, rows), encoding="utf-8")
    (out / "gradebook.csv").write_text(report.table(chosen, rows), encoding="utf-8")
    entries = "".join(json.dumps(entry, default=str) + "\n" for entry in log)
    (out / "log.jsonl").write_text(entries, encoding="utf-8")
    (out / "log.jsonl").chmod(0o600)
