"""From what a sandbox said to a mark: hidden cases, verdict, and the cause in words.

Everything from a sandbox may be forged or broken. It is read as data only, and whatever it makes a
judge do ends as a verdict with a cause. Hidden inputs stay in `Mark.private`, which goes to the
instructor's log; every other text is for the learner.
"""

import builtins
import ctypes
import math
import random
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from utils.labs import Criterion, Facts, Verdict, decide, judge
from utils.labs.check import PUBLIC_SEED
from utils.labs.grading import display, scan
from utils.labs.grading.answers import Notebook
from utils.labs.grading.attempts import Attempt
from utils.labs.grading.confine import Limits
from utils.labs.grading.lab import Cell, Exercise, same_code

JUDGE_SECONDS = 20
COPY = "a copy of "
TEXT_CHARS = 300
# Exceptions whose names say something and cannot carry a message; other names are a submission's
# own words.
_KNOWN = {
    n for n, v in vars(builtins).items() if isinstance(v, type) and issubclass(v, BaseException)
} | {"NkiValidationError"}


@dataclass(frozen=True)
class Mark:
    """The result of one exercise. Every text but `private` may be shown to the learner.

    state: as in `Verdict`. cause: for state "error" why, in one line. notes: what else is worth
    knowing.
    """

    exercise: Exercise
    state: str
    points: float
    criteria: tuple[Criterion, ...] = ()
    cause: str = ""
    notes: tuple[str, ...] = ()
    private: str = ""


def cases(exercise_id: str, seed: str) -> list[Facts]:
    """The hidden cases of an exercise: the same for everyone in one grading."""
    lab, _, name = exercise_id.partition(".")
    return judge(exercise_id).cases(random.Random(f"{seed}/{lab}/{name}"))


def mark(
    exercise: Exercise,
    notebook: Notebook,
    hidden: list[Facts],
    full: Attempt | None,
    own: Attempt | None,
    published: str | None,
    limits: Limits,
) -> Mark:
    """Judge an exercise by its attempts; `published` is its published solution, if known."""
    notes: tuple[str, ...] = ()
    same = published and same_code(notebook.answer(exercise.name).source, published)
    if same:
        notes = (f"equals the published solution, {same} aside",)
    above, alone = notebook.above(exercise.name), notebook.alone(exercise.name)
    first = _mark_of(exercise, notebook, hidden, full, above, notes, limits)
    if own is None:
        return first
    if full is None or not _is_finished(full):
        begun = above[full.cell : full.cell + 1] if full and full.cell is not None else []
        cell = notebook.label(begun[0]) if begun else "a cell"
        ended = _ended(full, limits) if full else "it was not run"
        reason = f"was stopped ({ended}; last cell begun: {cell})"
    else:
        reason = f"earns less than without other cells ({first.cause or first.state})"
    if _is_finished(own):
        text = f"the notebook down to its check {reason}, so it was graded with its own answer cell"
        notes = (*notes, f"{text} only")
    second = _mark_of(exercise, notebook, hidden, own, alone, notes, limits)
    return first if full and _is_finished(full) and second.points <= first.points else second


def _is_finished(attempt: Attempt) -> bool:
    return attempt.ended == "finished" and attempt.finished


def _mark_of(
    exercise: Exercise,
    notebook: Notebook,
    hidden: list[Facts],
    attempt: Attempt | None,
    cells: list[Cell],
    notes: tuple[str, ...],
    limits: Limits,
) -> Mark:
    """Judge an exercise by one attempt with these cells."""
    if attempt is None:
        return Mark(exercise, "error", 0.0, cause="it was not run", notes=notes)
    notes = (*notes, *_notes(attempt, cells, notebook, limits))
    if not _is_finished(attempt):
        cause = _ended(attempt, limits)
        private = f"case {attempt.case}, output: {attempt.output[:TEXT_CHARS]!r}"
        return Mark(exercise, "error", 0.0, (), cause, notes, private)
    result = _judge(exercise, cells, hidden, attempt, notes)
    did = list(_did(attempt))
    if result.points and scan.reaches_counters(cells):
        did.append("its cells name what leads into the functions that observe it")
    names = ", ".join((*attempt.reached, *attempt.noticed))
    if did and result.points:
        # Whatever it counts may be forged: a person decides, in nbgrader's formgrader for instance.
        private = f"worth {result.points:g} points if that is fair; {names}"
        cause = f"{' and '.join(did)}: its points are held back until an instructor has looked"
        cause += " at it"
        private = "; ".join(filter(None, (private, result.private)))
        return replace(result, state="error", points=0.0, cause=cause, private=private)
    return replace(result, private="; ".join(filter(None, (result.private, names))))


def _did(attempt: Attempt) -> Iterator[str]:
    """What an answer did for which a person should look at it."""
    if attempt.reached:
        yield (
            f"while it was called it replaced {len(attempt.reached)} parts of the course's own code"
        )
    copies = [name for name in attempt.noticed if name.startswith(COPY)]
    if copies:
        yield "it runs code of the course, which it was to write itself, under another name"
    if len(copies) < len(attempt.noticed):
        yield "it reached into the process that observes it"


def _ended(attempt: Attempt, limits: Limits) -> str:
    kind, _, number = str(attempt.ended).partition(" ")
    if kind == "signal" and number.isdigit():
        try:
            return f"its process was killed by {signal.Signals(int(number)).name}"
        except ValueError:
            return f"its process was killed by signal {number}"
    if kind == "exit":
        return f"it ended its process with exit status {number}"
    return {
        "timeout": f"no result within {limits.seconds:g} s: an endless loop, or too slow",
        "time": "it kept the sandbox from coming to an end",
        "memory": f"it used more memory than allowed ({limits.memory_bytes / 2**30:g} GB)",
        "processes": f"it started more processes than allowed ({limits.processes})",
        "flood": "it wrote too much into the channel of the results",
        "finished": "it left without a result",
    }.get(kind, "its sandbox died")


def _notes(
    attempt: Attempt, cells: list[Cell], notebook: Notebook, limits: Limits
) -> Iterator[str]:
    for index, kind, number in attempt.errors[:5]:
        if index < len(cells) and kind != "NotImplementedError":
            yield f"{notebook.label(cells[index])} raised {_exception(kind)}" + (
                f" in line {number}" if number else ""
            )
    if attempt.replaced:
        count = len(attempt.replaced)
        yield f"its cells replaced parts of the course's own code; put back: {count}"
    if attempt.refused:
        yield f"its process wrote {attempt.refused} results that are not the check's; refused"
    if attempt.output_bytes > 1_000_000:
        yield "it printed more than 1 MB; dropped"
    if attempt.processes >= limits.processes:
        yield f"it started as many processes as are allowed ({limits.processes})"


def _exception(name: str) -> str:
    return name if name in _KNOWN else "an exception of another library or its own"


def _judge(
    exercise: Exercise,
    cells: list[Cell],
    hidden: list[Facts],
    attempt: Attempt,
    notes: tuple[str, ...],
) -> Mark:
    seen = [attempt.seen.get(k, {}) for k in range(len(hidden))]
    if any("missing" in item for item in seen):
        cause = f"there is no function {exercise.function} when its check is reached"
        return Mark(exercise, "error", 0.0, (), cause, notes)
    try:
        with _time_limit(JUDGE_SECONDS):
            verdict = decide(exercise.id, hidden, seen, exercise.points)
            _hold(verdict, exercise)
    except Exception as error:  # a judge may trip over forged facts in any way
        cause = "what it returned cannot be judged: it is not of the form that the task asks for"
        return Mark(
            exercise, "error", 0.0, (), cause, notes, f"{type(error).__name__}: {error}"[:500]
        )
    private = f"case {verdict.failing_case}; {verdict.error[:2000]}" if verdict.failing_case else ""
    whole = verdict.criteria
    # Cut afterwards: of a text that is cut nobody knows any more that it was taken over.
    messages = [_short(_for_the_learner(c, seen)) for c in whole]
    texts = [text for c in messages if not c.passed for text in (c.measured, c.target, c.message)]
    others = [PUBLIC_SEED, "another", "one more"]
    plain = display.without_inputs(
        texts, hidden, lambda: [cases(exercise.id, other) for other in others]
    )
    criteria = tuple(
        replace(c, measured=plain(c.measured), target=plain(c.target), message=plain(c.message))
        for c in messages
    )
    changed = [
        c for c, published in zip(map(_short, whole), criteria, strict=True) if c != published
    ]
    private += "".join(f"; {c.name}: measured {c.measured!r}, {c.message!r}" for c in changed)
    cause = _exception_text(verdict.error, cells) if verdict.state == "error" else ""
    return Mark(exercise, verdict.state, verdict.points, criteria, cause, notes, private)


def _hold(verdict: Verdict, exercise: Exercise) -> None:
    if verdict.state not in ("passed", "tried", "error", "not attempted"):
        raise ValueError(f"unknown state {verdict.state!r}")
    if not (math.isfinite(verdict.points) and 0 <= verdict.points <= exercise.points):
        raise ValueError(f"{verdict.points} of {exercise.points} points")


def _short(c: Criterion) -> Criterion:
    def cut(value: Any) -> str:
        text = str(value)
        return text if len(text) <= TEXT_CHARS else text[: TEXT_CHARS - 3] + "..."

    measured, target, message = cut(c.measured), cut(c.target), cut(c.message)
    return Criterion(
        c.name, c.weight, bool(c.passed), measured, target, message, share=float(c.share)
    )


def _for_the_learner(c: Criterion, seen: list[Facts]) -> Criterion:
    measured, message = display.visible(str(c.measured)), display.message(str(c.message), seen)
    return replace(c, measured=measured, message=message)


def _exception_text(error: str, cells: list[Cell]) -> str:
    """What an answer raised, without its message, which could hold a hidden input.

    A line is shown if it stands there word by word in the learner's own cells.
    """
    error = error[:2000]  # may be forged, and the pattern below takes its time with long ones
    name = re.split(r"\W", error, maxsplit=1)[0]
    place = re.search(r"\(line (\d{1,5}): (.*)\)\Z", error, re.DOTALL)
    if place:
        number, text = int(place[1]), place[2].strip()
        for cell in cells:
            lines = cell.source.split("\n")
            if 0 < number <= len(lines) and text and lines[number - 1].strip() == text:
                line = "".join(c if c.isprintable() else "?" for c in text[:120])
                return f"it raised {_exception(name)} in line {number} of its cell: {line}"
    return f"it raised {_exception(name)}"


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Stop a judge that forged facts keep busy, with `TimeoutError`.

    Works in any thread, as those of a Dask worker, where no signal arrives. A single call into C
    ends before it is stopped, as with a signal.
    """
    judging, lock, over = threading.get_ident(), threading.Lock(), False

    def stop() -> None:
        with lock:
            if not over:
                raised = ctypes.py_object(TimeoutError)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(judging), raised)

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    try:
        timer.start()
        yield
    finally:
        with lock:
            over = True
        timer.cancel()
