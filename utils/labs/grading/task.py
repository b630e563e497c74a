"""One submission: what is to be done with it, and what came of it. Both are plain values, so that
they can travel to another process or machine and back.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path

from utils.labs import Facts
from utils.labs.grading import answers, attempts, marking, scan
from utils.labs.grading.answers import Notebook
from utils.labs.grading.attempts import Attempts, Setting
from utils.labs.grading.confine import Host, Limits
from utils.labs.grading.lab import Exercise, Lab
from utils.labs.grading.marking import Mark
from utils.labs.grading.sandbox import SandboxError
from utils.labs.grading.submissions import File, NotANotebook, Submission


@dataclass(frozen=True)
class Task:
    """A submission to grade. lab: its name. cases: the hidden ones, by exercise id."""

    submission: Submission
    files: tuple[File, ...]
    notes: tuple[str, ...]
    lab: str
    exercises: tuple[Exercise, ...]
    cases: dict[str, list[Facts]]
    limits: Limits


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


@dataclass(frozen=True)
class Place:
    """Where submissions of a lab are graded: the course in `root`, on this machine."""

    lab: Lab
    root: Path
    host: Host


def run(task: Task, place: Place, slot: int) -> Result:
    """Run and judge one submission. slot: tells those that run at the same time apart.

    Raises SandboxError if no sandbox works here; one that only this submission breaks costs its
    points alone.
    """
    started = time.monotonic()
    chosen, submission = place.lab, task.submission
    setting = Setting(chosen, task.exercises, task.cases, place.root, place.host, task.limits)
    untouched = answers.blank(chosen)
    nothing = [Mark(exercise, "not attempted", 0.0) for exercise in task.exercises]
    try:
        notebook = answers.read(list(task.files), chosen)
    except NotANotebook as error:
        return Result(submission, untouched, nothing, task.notes, str(error))
    try:
        made, noise = attempts.run_all(notebook, setting, slot)
    except SandboxError as error:
        attempts.run_all(untouched, setting, slot)
        failed = f"{error}; grade again to try it once more"
        return Result(submission, notebook, nothing, task.notes, failed, failed=True)
    marks = [
        marking.mark(
            exercise,
            notebook,
            task.cases[exercise.id],
            made.get((exercise.id, "full")),
            made.get((exercise.id, "own")),
            chosen.published.get(exercise.name),
            task.limits,
        )
        for exercise in task.exercises
    ]
    notes = (*task.notes, *notebook.notes)
    seconds = time.monotonic() - started
    return Result(submission, notebook, marks, notes, "", made, seconds, noise)


def not_run(task: Task, chosen: Lab, reason: str) -> Result:
    """What is known of a submission that could not be run, which may be the grader's fault."""
    nothing = [Mark(exercise, "not attempted", 0.0) for exercise in task.exercises]
    untouched = answers.blank(chosen)
    return Result(task.submission, untouched, nothing, task.notes, reason, failed=True)
