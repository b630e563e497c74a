"""Grade a folder: find, pour, run in sandboxes, judge, record, report."""

import json
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from utils.course import catalog
from utils.course.earlier import Wanted
from utils.labs import Facts
from utils.labs.grading import (
    beside,
    choose,
    folders,
    inbox,
    lab,
    marking,
    pour,
    report,
    sandbox,
    scan,
)
from utils.labs.grading.attempts import Attempt, attempts_of
from utils.labs.grading.beside import Beside
from utils.labs.grading.confine import Host, Limits
from utils.labs.grading.gradebook import Book, Score
from utils.labs.grading.inbox import Submission
from utils.labs.grading.lab import Cell, Lab
from utils.labs.grading.marking import Mark
from utils.labs.grading.notebook import NotANotebook
from utils.labs.grading.pour import Poured
from utils.labs.grading.report import Row
from utils.labs.grading.runner import FAULT
from utils.labs.grading.sandbox import Outcome, Slots

FAULT_ENDED = f"exit {FAULT}"


@dataclass(frozen=True)
class Run:
    """One submission after its sandboxes.

    problem: why it could not be graded, if so. doubt: why a person should look at which of its
    notebooks counts. earlier: the cells of earlier labs that it uses.
    """

    submission: Submission
    poured: Poured
    notes: tuple[str, ...]
    problem: str
    attempts: dict[tuple[str, str], Attempt]
    seconds: float
    noise: str = ""
    doubt: str = ""
    earlier: tuple[Cell, ...] = ()


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
    limits = limits or Limits()
    folder, out, root = folder.resolve(), out.resolve(), root.resolve()
    folders.check(folder, out, root)
    with folders.claimed(out):
        seed = folders.known_seed(out, seed)
        host = sandbox.prepare()
        submissions = inbox.find(folder)
        chosen = lab.load(root, lab_name or _guess(submissions, root))
        seed = folders.keep_seed(out, seed)
        hidden = {e.id: marking.cases(e.id, seed) for e in chosen.exercises}
        used = beside.used_by(chosen, root)
        book = Book(chosen, root, out)
        slots = Slots(jobs)

        def one(submission: Submission) -> Run:
            with slots.take() as slot:
                return _run(submission, chosen, used, hidden, root, host, limits, slot)

        rows, log = [], []
        pool = ThreadPoolExecutor(slots.jobs)
        try:
            for run in pool.map(one, submissions):
                marks = _marks(run, chosen, hidden, limits)
                scores = book.record(run.submission.slug, run.poured, marks)
                rows.append(_row(run, marks, scores))
                log.append(_log(run, marks))
                row = rows[-1]
                say(f"{len(rows)}/{len(submissions)} {row.student}: {row.total:g}, {row.status}")
        finally:
            pool.shutdown(cancel_futures=True)
        _write(out, chosen, rows, log)
        return rows


def _guess(submissions: list[Submission], root: Path) -> str:
    names = [each.name for each in catalog.labs(root)]
    if len(names) == 1:
        return names[0]
    contents = (file.content for s in submissions for file in inbox.read(s.path)[0])
    return choose.lab_of(contents, names)


def _run(
    submission: Submission,
    chosen: Lab,
    used: list[tuple[Wanted, Lab]],
    hidden: dict[str, list[Facts]],
    root: Path,
    host: Host,
    limits: Limits,
    slot: int,
) -> Run:
    """Read, pour and run one submission."""
    started = time.monotonic()
    files, notes = inbox.read(submission.path)
    try:
        choice = choose.choose(files, chosen)
    except NotANotebook as error:
        return Run(submission, pour.untouched(chosen), tuple(notes), str(error), {}, 0.0)
    poured = pour.pour(choice.cells, chosen)
    others = beside.find(files, used)
    attempts, noise = _attempts(poured, chosen, others, hidden, root, host, limits, slot)
    doubts = filter(None, [choice.doubt])
    notes = (*notes, *doubts, *choice.notes, *poured.notes, *others.notes)
    seconds = time.monotonic() - started
    doubt = choice.doubt
    return Run(submission, poured, notes, "", attempts, seconds, noise, doubt, others.cells)


def _attempts(
    poured: Poured,
    chosen: Lab,
    others: Beside,
    hidden: dict[str, list[Facts]],
    root: Path,
    host: Host,
    limits: Limits,
    slot: int,
) -> tuple[dict[tuple[str, str], Attempt], str]:
    """Run all exercises; if a sandbox dies, go on in a new one with what it had not come to."""
    todo = [_job(e, poured, hidden[e.id]) for e in chosen.exercises]
    attempts: dict[tuple[str, str], Attempt] = {}
    noise = ""
    while todo:
        request = {"lab": chosen.name, "modules": chosen.modules, "exercises": todo}
        outcome = sandbox.run(host, chosen, root, request, limits, slot, others)
        noise += outcome.noise
        found = attempts_of(outcome.messages)
        _trust(outcome, found)
        attempts |= found
        if outcome.ended == "complete":
            break
        todo = _rest(todo, found, outcome)
    return attempts, noise


def _job(exercise: lab.Exercise, poured: Poured, cases: list[Facts]) -> dict:
    full = poured.above(exercise.name)
    own = marking.alone_cells(exercise, poured)
    attempts = {"full": full} if own == full else {"full": full, "own": own}
    cells = {which: [{"source": c.source} for c in found] for which, found in attempts.items()}
    return {"id": exercise.id, "cases": cases, "attempts": cells}


def _trust(outcome: Outcome, found: dict[tuple[str, str], Attempt]) -> None:
    """Raise SandboxError if the grader failed before learner code ran: nobody may pay for that."""
    fault = next((a for a in found.values() if a.ended == FAULT_ENDED and a.cell is None), None)
    if not outcome.messages or fault:
        reason = fault.output if fault else outcome.noise or outcome.ended
        raise sandbox.SandboxError(f"the sandbox fails before the submission: {reason[-800:]}")


def _rest(todo: list[dict], found: dict[tuple[str, str], Attempt], outcome: Outcome) -> list[dict]:
    """The jobs that a sandbox left undone, and in `found` what it died of."""
    last = list(found)[-1] if found else (todo[0]["id"], next(iter(todo[0]["attempts"])))
    attempt = found.setdefault(last, Attempt(last[1]))
    if attempt.ended == "died":
        attempt.ended = outcome.ended
    position = next(k for k, job in enumerate(todo) if job["id"] == last[0])
    left = todo[position]["attempts"]
    again = {"own": left["own"]} if last[1] == "full" and "own" in left else {}
    rest = todo[position + 1 :]
    return [{**todo[position], "attempts": again}, *rest] if again else rest


def _marks(run: Run, chosen: Lab, hidden: dict[str, list[Facts]], limits: Limits) -> list[Mark]:
    if run.problem:
        return [Mark(e, "not attempted", 0.0) for e in chosen.exercises]
    return [
        marking.mark(
            e,
            run.poured,
            hidden[e.id],
            run.attempts.get((e.id, "full")),
            run.attempts.get((e.id, "own")),
            chosen.published.get(e.name),
            limits,
        )
        for e in chosen.exercises
    ]


def _row(run: Run, marks: list[Mark], scores: dict[str, Score]) -> Row:
    notes = (f"not graded: {run.problem}",) if run.problem else ()
    if run.problem:
        status = "not graded"
    else:
        troubled = run.doubt or any(m.cause for m in marks)
        status = "graded with problems" if troubled else "graded"
    points = {m.exercise.name: scores[m.exercise.name].points for m in marks}
    by_hand = frozenset(name for name, score in scores.items() if score.manual)
    submission = run.submission
    return Row(
        submission.student,
        submission.slug,
        status,
        tuple(marks),
        points,
        by_hand,
        (*notes, *run.notes),
        _signs(run),
    )


def _signs(run: Run) -> tuple[str, ...]:
    found = scan.signs((*run.poured.cells, *run.earlier))
    return (f"looks into the check: {', '.join(found)}",) if found else ()


def _log(run: Run, marks: list[Mark]) -> dict:
    """For the instructor only: seconds, raw errors, failing cases, first lines of output."""
    return {
        "student": run.submission.student,
        "seconds": round(run.seconds, 1),
        "private": {m.exercise.name: m.private for m in marks if m.private},
        "attempts": [
            {"exercise": exercise, **asdict(attempt)}
            for (exercise, _), attempt in run.attempts.items()
        ],
        "signs": _signs(run),
        "noise": run.noise,
    }


def _write(out: Path, chosen: Lab, rows: list[Row], log: list[dict]) -> None:
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
