"""Attempts at exercises: run in sandboxes, and what those reported, read as data that may be forged
or broken.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from utils.labs import Facts
from utils.labs.grading import sandbox
from utils.labs.grading.answers import Notebook
from utils.labs.grading.child import FACTS_CHARS
from utils.labs.grading.confine import Host, Limits
from utils.labs.grading.lab import Cell, Exercise, Lab
from utils.labs.grading.runner import FAULT
from utils.labs.grading.sandbox import Outcome

MOST_CHARS, MOST_VALUES = FACTS_CHARS + 1024, 1 << 15
MOST_ITEMS, MOST_TEXT, MOST_DEPTH, MOST_DIGITS = 1 << 11, 1 << 16, 16, 40
"""Several times what the observations of all labs come to."""
FAULT_ENDED = f"exit {FAULT}"
Attempts = dict[tuple[str, str], "Attempt"]
"""By exercise id and kind of attempt, in the order in which they were begun."""


@dataclass(frozen=True)
class Setting:
    """What is the same for all submissions of a grading.

    exercises: which of the lab are graded. cases: their hidden cases by exercise id. root: the
    course's folder. environment: variables that are set in the sandbox too.
    """

    lab: Lab
    exercises: tuple[Exercise, ...]
    cases: dict[str, list[Facts]]
    root: Path
    host: Host
    limits: Limits
    environment: dict[str, str] = field(default_factory=dict)


@dataclass
class Attempt:
    """What is known of one attempt at an exercise.

    which: "full" (the notebook down to the check) or "own" (given cells and the exercise's answer
    cell).
    ended: "finished", "exit N", "signal N", "timeout", "flood", or what the watchdog stopped it
    for.
    cell, case: the cell and the case that were begun last. seen: what was observed, by case.
    errors: (cell, type, line) of the cells that raised. replaced: the course's own code that its
    cells replaced; reached: that the answer replaced while it was called. noticed: how it reached
    for what observes it, or what of the course's own code it runs as its own. refused: lines of the
    report that did not come from the grader's code.
    """

    which: str
    ended: str = "died"
    cell: int | None = None
    case: int | None = None
    finished: bool = False
    seen: dict[int, Facts] = field(default_factory=dict)
    errors: list[tuple[int, str, int]] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    reached: list[str] = field(default_factory=list)
    noticed: list[str] = field(default_factory=list)
    refused: int = 0
    output: str = ""
    output_bytes: int = 0
    processes: int = 0


def run_all(notebook: Notebook, setting: Setting, slot: int) -> tuple[Attempts, str]:
    """All attempts at all exercises of a submission, and what its sandboxes printed themselves.

    If a sandbox dies, or what one exercise left behind keeps the next from being begun, a new one
    goes on with what was not come to. Raises SandboxError if a sandbox fails twice before any code
    of the submission runs in it.
    """
    jobs = [job(exercise, setting, cells_of(exercise, notebook)) for exercise in setting.exercises]
    attempts: Attempts = {}
    noise, failed = "", False
    while jobs:
        outcome = run_jobs(jobs, notebook, setting, slot)
        noise += outcome.noise
        reported, fault = _before_fault(attempts_of(outcome.messages))
        attempts |= reported
        begun = bool(reported) or not fault and bool(outcome.messages)
        if not begun and failed:
            reason = fault or outcome.noise or outcome.ended
            raise sandbox.SandboxError(f"its sandbox fails before its code runs: {reason[-800:]}")
        failed = not begun
        if fault:
            jobs = _not_reported(jobs, reported)
        elif begun and outcome.ended == "complete":
            break
        elif begun:
            jobs = _rest(jobs, reported, outcome)
    return attempts, noise


def cells_of(exercise: Exercise, notebook: Notebook) -> dict[str, list[Cell]]:
    """The cells of each attempt at an exercise; "own" is made if "full" does not end."""
    full, own = notebook.above(exercise.name), notebook.alone(exercise.name)
    return {"full": full} if own == full else {"full": full, "own": own}


def job(exercise: Exercise, setting: Setting, cells: dict[str, list[Cell]]) -> dict[str, Any]:
    """What a runner is asked to do for an exercise. cells: to run, by attempt."""
    attempts = {which: [{"source": c.source} for c in run] for which, run in cells.items()}
    return {"id": exercise.id, "cases": setting.cases[exercise.id], "attempts": attempts}


def run_jobs(
    jobs: list[dict[str, Any]], notebook: Notebook, setting: Setting, slot: int
) -> Outcome:
    """What one sandbox says of these jobs. slot: tells those that run at the same time apart."""
    request = {
        "lab": setting.lab.name,
        "modules": setting.lab.modules,
        "environment": setting.lab.environment | setting.environment,
        "exercises": jobs,
    }
    return sandbox.run(
        setting.host, setting.lab, setting.root, request, setting.limits, slot, notebook.earlier
    )


def _before_fault(reported: Attempts) -> tuple[Attempts, str]:
    """The attempts before the first one that failed in the grader's own code, before any cell ran,
    and what that one printed: for it a submission's other exercises may be to blame, not its own.
    """
    good: Attempts = {}
    for key, attempt in reported.items():
        if attempt.ended == FAULT_ENDED and attempt.cell is None:
            return good, attempt.output or FAULT_ENDED
        good[key] = attempt
    return good, ""


def _not_reported(jobs: list[dict[str, Any]], reported: Attempts) -> list[dict[str, Any]]:
    """The jobs without the attempts that are known."""
    rest = []
    for item in jobs:
        left = {
            w: cells for w, cells in item["attempts"].items() if (item["id"], w) not in reported
        }
        rest += [{**item, "attempts": left}] if left else []
    return rest


def _rest(jobs: list[dict[str, Any]], reported: Attempts, outcome: Outcome) -> list[dict[str, Any]]:
    """The jobs that a sandbox left undone, and in `reported` what it died of."""
    last = list(reported)[-1] if reported else (jobs[0]["id"], next(iter(jobs[0]["attempts"])))
    attempt = reported.setdefault(last, Attempt(last[1]))
    if attempt.ended == "died":
        attempt.ended = outcome.ended
    position = next(k for k, job in enumerate(jobs) if job["id"] == last[0])
    left = jobs[position]["attempts"]
    again = {"own": left["own"]} if last[1] == "full" and "own" in left else {}
    rest = jobs[position + 1 :]
    return [{**jobs[position], "attempts": again}, *rest] if again else rest


def attempts_of(messages: Iterable[dict[str, Any]]) -> Attempts:
    """The runner's messages, by exercise id and attempt."""
    attempts: Attempts = {}
    for message in messages:
        exercise, which = message.get("exercise"), message.get("attempt")
        if not isinstance(exercise, str) or not isinstance(which, str):
            continue
        attempt = attempts.setdefault((exercise, which), Attempt(which))
        # The envelope is the supervisor's word; "line" is what the learner's process wrote.
        attempt.ended = message.get("ended", attempt.ended)
        attempt.output = message.get("output", attempt.output)
        attempt.output_bytes = message.get("output_bytes", attempt.output_bytes)
        attempt.processes = message.get("most_processes", attempt.processes)
        attempt.refused = message.get("refused", attempt.refused)
        if "line" in message:
            _read_line(attempt, message["line"])
    return attempts


def _read_line(attempt: Attempt, text: str) -> None:
    try:
        line = _parse(text)
    except (ValueError, RecursionError):
        return
    if not isinstance(line, dict):
        return
    if _whole(line.get("cell")):
        attempt.cell = line["cell"]
    if _whole(line.get("cell_error")):
        number = line["line"] if _whole(line.get("line")) else 0
        attempt.errors.append((line["cell_error"], str(line.get("type")), number))
    if isinstance(line.get("replaced"), list):
        names = [str(name)[:80] for name in line["replaced"][:20]]
        known = attempt.reached if "case" in line else attempt.replaced
        known[:] = sorted({*known, *names})[:20]
    if isinstance(line.get("noticed"), list):
        names = [str(name)[:160] for name in line["noticed"][:20]]
        attempt.noticed = sorted({*attempt.noticed, *names})[:20]
    if _whole(line.get("case")):
        attempt.case = line["case"]
        if isinstance(line.get("seen"), dict):
            attempt.seen.setdefault(line["case"], line["seen"])
    attempt.finished |= line.get("end") is True


def _parse(text: str) -> Any:
    """A line of a report. Raises ValueError for one that is larger, in any way, than observations
    are: a judge may take the square of what it reads, in memory and time.
    """
    if len(text) > MOST_CHARS or sum(map(text.count, ",[{")) > MOST_VALUES:
        raise ValueError("the line holds too much")  # of which most is not even read
    line = json.loads(text, parse_int=_integer)
    level = [line]
    for _ in range(MOST_DEPTH):
        inside = [v for v in level if isinstance(v, list | dict)]
        if any(isinstance(v, str) and len(v) > MOST_TEXT for v in level):
            raise ValueError("a text of the line is too long")
        if any(len(v) > MOST_ITEMS for v in inside):
            raise ValueError("a list of the line is too long")
        level = [item for v in inside for item in (v.values() if isinstance(v, dict) else v)]
    if level:
        raise ValueError("the line is nested too deeply")
    return line


def _integer(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError("a number of the line is too long")
    return int(digits)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**6
