"""The instant check: `check("lab03.ex2")` runs the learner's answer and shows a card.

A check never interrupts "Run All": whatever happens is said on the card. With COURSE_STRICT=1
(tests) anything but a pass raises CheckFailed.
"""

import difflib
import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from utils.course import catalog, progress
from utils.course.catalog import ROOT, Exercise
from utils.course.shown import Shown, columns, html_table, in_html
from utils.labs import Facts, Verdict, decide, judge, observe_case, observer, where

PUBLIC_SEED = "public"
"""Learners see the same cases at every run; grading draws others from a private seed."""

LIMIT = 160
"""Characters of a case that a card shows."""


class CheckFailed(AssertionError):
    """In strict mode: an exercise is not passed. The text is the card."""


@dataclass(frozen=True, repr=False)
class Card(Shown):
    """What a check shows, and the verdict behind it (None if nothing could be run)."""

    verdict: Verdict | None = None


def _shorten(text: str) -> str:
    return text if len(text) <= LIMIT else text[: LIMIT - 3] + "..."


def case_in_words(case: Facts) -> str:
    """A case as a reader says it; the seed of its random numbers tells nothing.

    >>> case_in_words({"log_every": 10, "steps": 20, "seed": 7})
    'log every = 10, steps = 20'
    """
    response = (
        f"{key.replace('_', ' ')} = {value!r}" for key, value in case.items() if key != "seed"
    )
    return _shorten(", ".join(response))


def _words(exercise_id: str, case: Facts) -> str:
    words = judge(exercise_id).words
    return _shorten(words(case)) if words else case_in_words(case)


def _number(value: float, unit: str) -> str:
    return f"{value:g} {unit}{'' if value == 1 else 's'}"


def find_answer(name: str, namespace: dict[str, Any]) -> Callable[..., Any] | str:
    """The function called `name`, or a sentence that says why there is none."""
    if name not in namespace:
        return f"`{name}` is not defined in this notebook: run the cell above, then this one"
    answer = namespace[name]
    if not callable(answer):
        return (
            f"`{name}` is {_shorten(repr(answer))} ({type(answer).__name__}), not a function:"
            " run the cell above again"
        )
    return answer


def _plain(observation: Facts) -> Facts:
    """The observation as it looks after crossing a process border, as it does at grading."""
    try:
        return json.loads(json.dumps(observation))
    except (TypeError, ValueError) as error:
        return {"error": f"the answer returned something that cannot be compared: {error}"}


def run(exercise_id: str, answer: Callable[..., Any], points: float, seed: str) -> Verdict:
    """Judge the answer on the cases drawn from `seed`; the first case that raises is the last.

    So is the one during which the learner interrupts an answer that does not end.
    """
    cases = judge(exercise_id).cases(random.Random(seed))
    seen: list[Facts] = []
    for case in cases:
        try:
            seen.append(_plain(observe_case(exercise_id, answer, case)))
        except KeyboardInterrupt as stop:
            place = where(stop, answer)
            seen.append({"error": f"stopped by you in {place}" if place else "stopped by you"})
        if "facts" not in seen[-1]:
            break
    seen += seen[-1:] * (len(cases) - len(seen))
    try:
        return decide(exercise_id, cases, seen, points)
    except Exception as error:
        text = f"what the answer returned cannot be judged: {type(error).__name__}: {error}"
        return Verdict(exercise_id, "error", 0.0, points, failing_case=cases[0], error=text)


def _next_step(verdict: Verdict, attempts: int) -> str:
    if verdict.state == "passed":
        return ""
    if verdict.state == "not attempted":
        return (
            "next: replace the line that raises NotImplementedError, run the cell, then this check"
        )
    hint = min(max(attempts, 1), 3)
    return f"next: open hint {hint} of 3 below, change the answer, run its cell, then this check"


def _after(exercise: Exercise, root: Path) -> str:
    """The exercise that follows in the lab, or that all are passed."""
    lab = exercise.id.partition(".")[0]
    siblings = catalog.exercises(lab, root)
    done = progress.entries(root)
    if all(
        sibling.id in done and done[sibling.id]["points"] >= sibling.points for sibling in siblings
    ):
        return f"every exercise of {lab} is passed; next: the quiz below"
    later = siblings[[sibling.id for sibling in siblings].index(exercise.id) + 1 :]
    return f"next: {later[0].id} · {later[0].title}" if later else "next: the quiz below"


def _messages(verdict: Verdict) -> Iterator[str]:
    """What each criterion that is not met says; if it is met in the smallest case that fails, for
    which case it says so.
    """
    for item, case in zip(verdict.criteria, verdict.cases, strict=True):
        if item.passed:
            continue
        if case != verdict.failing_case:
            words = _words(verdict.exercise, case)
            yield f"{item.name}: for {words}: {item.message or 'not met'}"
        elif item.message:
            yield f"{item.name}: {item.message}"


def card(exercise: Exercise, verdict: Verdict, attempts: int, note: str, root: Path) -> Card:
    """The card of a verdict: measured, target, smallest case that fails, message, next step."""
    head = (
        f"{exercise.id} · {exercise.title} · {verdict.state}"
        f" · {verdict.points:g} of {_number(verdict.max_points, 'point')}"
    )
    results = [
        ("✓", "ok") if item.passed else ("✗", "not yet" + later * " in a larger case")
        for item, later in zip(
            verdict.criteria, (case != verdict.failing_case for case in verdict.cases), strict=True
        )
    ]
    rows = [
        (mark, item.name, item.measured, item.target, result)
        for item, (mark, result) in zip(verdict.criteria, results, strict=True)
    ]
    text_rows = [
        (mark, name, measured and f"measured {measured}", target and f"target {target}", result)
        for mark, name, measured, target, result in rows
    ]
    response = []
    if verdict.error:
        response.append(verdict.error)
    if verdict.failing_case is not None:
        what = "this happened for" if verdict.error else "smallest case that fails:"
        response.append(f"{what} {_words(exercise.id, verdict.failing_case)}")
    response += _messages(verdict)
    best = progress.entry(exercise.id, root)["points"]
    if best > verdict.points:
        response.append(f"your best so far, {best:g} of {exercise.points:g}, is kept")
    response.append(_next_step(verdict, attempts) or _after(exercise, root))
    if note:
        response.append(f"note: {note}")
    text = "\n".join([head, *columns(text_rows), *(f"  {line}" for line in response)])
    table = (
        html_table(("", "criterion", "measured", "target", "result"), rows, head)
        if rows
        else f"<b>{in_html(head)}</b>"
    )
    html = table + "".join(f"<div>{in_html(line)}</div>" for line in response)
    return Card(text, html, verdict)


def _unknown(exercise_id: object, error: str, root: Path) -> str:
    """What is wrong with an exercise id, and the one that may be meant."""
    ids = [exercise.id for lab in catalog.labs(root) for exercise in lab.exercises]
    if not isinstance(exercise_id, str) or not exercise_id:
        example = f'check("{ids[0]}")' if ids else "its id"
        response = "check()" if exercise_id == "" else f"check({exercise_id!r})"
        return f"{response}: say which exercise is to be checked, such as {example}"
    near = difflib.get_close_matches(exercise_id, ids, 1, 0.4)
    meant = f'. Did you mean check("{near[0]}")?' if near else ""
    return f"check({exercise_id!r}): {error}{meant}"


def _check(exercise_id: str, namespace: dict[str, Any], root: Path) -> Card:
    try:
        exercise = catalog.exercise(exercise_id, root)
        name = observer(exercise_id).answer
    except ValueError as error:
        return Card(_unknown(exercise_id, str(error), root))
    answer = find_answer(name, namespace)
    if isinstance(answer, str):
        points = _number(exercise.points, "point")
        return Card(f"{exercise.id} · {exercise.title} · not defined · 0 of {points}\n  {answer}")
    verdict = run(exercise_id, answer, exercise.points, PUBLIC_SEED)
    note = ""
    if verdict.state != "not attempted":
        note = progress.record(exercise_id, verdict.state, verdict.points, root)
    attempts = progress.entry(exercise_id, root)["attempts"] or 1
    return card(exercise, verdict, attempts, note, root)


def check(
    exercise_id: str = "", namespace: dict[str, Any] | None = None, root: Path = ROOT
) -> Card:
    """Check the answer to an exercise such as "lab03.ex2", record the result and return the card.

    The answer is looked up by name among the notebook's variables, or in `namespace`.
    Raises CheckFailed only if COURSE_STRICT=1 is set and the exercise is not passed.
    """
    if namespace is None:
        import __main__

        namespace = vars(__main__)
    result = _check(exercise_id, namespace, root)
    if os.environ.get("COURSE_STRICT") == "1" and (
        result.verdict is None or result.verdict.state != "passed"
    ):
        raise CheckFailed(result.text)
    return result
