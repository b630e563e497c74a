"""What a sandbox reported, read as data that may be forged or broken."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from utils.labs import Facts


@dataclass
class Attempt:
    """What is known of one attempt at an exercise.

    which: "full" (the notebook down to the check) or "own" (given cells and the exercise's answer
    cell).
    ended: "finished", "exit N", "signal N", "timeout", "flood", or what the watchdog stopped it
    for.
    cell, case: the cell and the case that were begun last. seen: what was observed, by case.
    errors: (cell, type, line) of the cells that raised.
    """

    which: str
    ended: str = "died"
    cell: int | None = None
    case: int | None = None
    finished: bool = False
    seen: dict[int, Facts] = field(default_factory=dict)
    errors: list[tuple[int, str, int]] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    output: str = ""
    output_bytes: int = 0
    processes: int = 0


def attempts_of(messages: Iterable[dict[str, Any]]) -> dict[tuple[str, str], Attempt]:
    """The runner's messages, by exercise id and attempt."""
    found: dict[tuple[str, str], Attempt] = {}
    for message in messages:
        exercise, which = message.get("exercise"), message.get("attempt")
        if not isinstance(exercise, str) or not isinstance(which, str):
            continue
        attempt = found.setdefault((exercise, which), Attempt(which))
        # The envelope is the supervisor's word; "line" is what the learner's process wrote.
        attempt.ended = message.get("ended", attempt.ended)
        attempt.output = message.get("output", attempt.output)
        attempt.output_bytes = message.get("output_bytes", attempt.output_bytes)
        attempt.processes = message.get("most_processes", attempt.processes)
        if "line" in message:
            _read_line(attempt, message["line"])
    return found


def _read_line(attempt: Attempt, text: str) -> None:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        return
    if not isinstance(line, dict):
        return
    if _whole(line.get("cell")):
        attempt.cell = line["cell"]
    if _whole(line.get("cell_error")):
        kind, number = line.get("type"), line.get("line")
        attempt.errors.append((line["cell_error"], str(kind), number if _whole(number) else 0))
    if isinstance(line.get("replaced"), list):
        names = [str(name)[:80] for name in line["replaced"][:20]]
        attempt.replaced = sorted({*attempt.replaced, *names})[:20]
    if _whole(line.get("case")):
        attempt.case = line["case"]
        if isinstance(line.get("seen"), dict):
            attempt.seen.setdefault(line["case"], line["seen"])
    attempt.finished |= line.get("end") is True


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**6
