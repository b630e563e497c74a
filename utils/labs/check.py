"""The instant check: `check("lab03.ex2")` runs the learner's answer and shows a card, and
`check.failing_case()` returns the arguments of the call that failed.

A check never interrupts "Run All": whatever happens is said on the card. With COURSE_STRICT=1
(tests) anything but a pass raises CheckFailed.
"""

import difflib
import json
import os
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from utils.course import catalog, progress, tracks
from utils.course.catalog import ROOT, Exercise
from utils.course.cells import cells
from utils.course.shown import Shown, columns, html_table, in_html
from utils.labs import Answer, Facts, Verdict, decide, judge, observe_case, observer, rerun, where

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
    instead = cells.left_over(name)
    if instead is not None:
        names = ", ".join(f"`{other}`" for other in instead)
        now = f"defines {names}" if instead else "defines nothing, or ended in a SyntaxError"
        return (
            f"no cell defines `{name}` any more: the cell that did {now} since its last run. Name"
            f" the answer `{name}` again, run its cell, then this one"
        )
    answer = namespace[name]
    if not callable(answer):
        return (
            f"`{name}` is {_shorten(repr(answer))} ({type(answer).__name__}), not a function:"
            " run the cell above again"
        )
    return answer


def _rename(name: str, namespace: dict[str, Any]) -> str:
    """What to say if the last cell that was run defines nearly the same name and not `name`."""
    cells = namespace.get("In")
    for cell in reversed(cells if isinstance(cells, list) else []):
        defined = re.findall(r"^def (\w+)", cell, re.MULTILINE) if isinstance(cell, str) else []
        if name in defined:
            break
        if near := difflib.get_close_matches(name, defined, 1, 0.8):
            return (
                f"a cell that you ran later defines `{near[0]}`: this check uses the `{name}` of an"
                " earlier run"
            )
    return ""


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


def _next_step(exercise: Exercise, verdict: Verdict, attempts: int, root: Path) -> str:
    if verdict.state == "not attempted":
        return (
            "next: replace the line that raises NotImplementedError, run the cell, then this check"
        )
    # Nothing is to be won here any more, so no hint.
    if verdict.state == "passed" or progress.entry(exercise.id, root)["points"] >= exercise.points:
        return _after(exercise, root)
    if verdict.state == "error":  # its form is at fault, of which no hint speaks
        return "next: change the answer, run its cell, then this check"
    hint = min(max(attempts, 1), 3)
    return f"next: open hint {hint} of 3 below, change the answer, run its cell, then this check"


def _after(exercise: Exercise, root: Path) -> str:
    """The next exercise of the lab that is open, those before this one last; the quiz if none is.

    An exercise is open until it has its full points. Of a lab of which the learner's track has a
    part, only that counts.
    """
    lab = exercise.id.partition(".")[0]
    document = progress.document(root)[0]
    track = tracks.tracks(root).get(document["track"])
    stops = {stop.id for stop in track.stops} if track else set()
    siblings = catalog.exercises(lab, root)
    if exercise.id in stops:
        siblings = tuple(sibling for sibling in siblings if sibling.id in stops)
    done = document["exercises"]
    here = [sibling.id for sibling in siblings].index(exercise.id)
    for other in (*siblings[here + 1 :], *siblings[:here]):
        if other.id not in done or done[other.id]["points"] < other.points:
            return f"next: {other.id} · {other.title}"
    if len(siblings) < len(catalog.exercises(lab, root)):
        return f"every exercise of your track in {lab} is passed; next: press Continue in lesson 00"
    return f"every exercise of {lab} is passed; next: the quiz below"


_COMMON = {
    "NoneType": "something here is None: a function without `return` gives None",
    "same device": "one tensor is on another device than the rest: move it with `.to(device)`",
    "XLA tensor": "one tensor is on the CPU, the rest on XLA: move it with `.to(device)`",
}
"""What often stands behind an exception, by a part of its text."""
_AFTERWARDS = ("TypeError", "AttributeError", "KeyError", "IndexError", "ValueError")
"""What an observer may raise that uses what an answer returned."""


def _diagnosis(verdict: Verdict) -> tuple[str, int]:
    """What is wrong, in a sentence, and the place of the criterion that says so."""
    if verdict.error:
        name = observer(verdict.exercise).answer
        kind, _, text = verdict.error.partition(": ")
        called = text.replace(".__init__", "")  # of a class
        own = f"{name}() takes" in called or f"{name}() missing" in called
        common = next((why for part, why in _COMMON.items() if part in text), "")
        if kind.startswith("what the answer returned"):
            common = "does it have the form that the task asks for?"
        elif own:
            common = f"the check calls `{name}` as the task says: keep the line with `def`"
        elif not common and kind in _AFTERWARDS and "(line " not in text:
            common = f"the check used what `{name}` returned: does it have the form asked for?"
        return verdict.error + bool(common) * f": {common}", -1
    failed = [place for place, item in enumerate(verdict.criteria) if not item.passed]
    if not failed:
        return "", -1
    telling = [place for place in failed if verdict.criteria[place].message]
    here = [place for place in telling if verdict.cases[place] == verdict.failing_case]
    place = [*here, *telling, *failed][0]
    item = verdict.criteria[place]
    return f"{item.name}: {item.message or 'not met'}", place


def _others(verdict: Verdict, first: int) -> list[str]:
    """What the criteria say that are not met, but for the first; and for which case, if they are
    met in the smallest case that fails. A case or sentence that was told is not repeated.
    """
    response, text = [], [verdict.failing_case]
    sentences = {verdict.criteria[first].message} if verdict.criteria else set()
    for item, case in zip(verdict.criteria, verdict.cases, strict=True):
        words = "" if item.passed or case in text else f"for {_words(verdict.exercise, case)}"
        text += [case] * bool(words)
        message = "" if item.passed or item.message in sentences else item.message
        sentences.add(message)
        if words or message:
            response.append(": ".join(filter(None, (item.name, words, message))))
    return response


def card(exercise: Exercise, verdict: Verdict, attempts: int, note: str, root: Path) -> Card:
    """The card of a verdict: the diagnosis, what was measured and what is asked for, yours beside
    what is expected in the smallest case that fails, the next step.
    """
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
    diagnosis, place = _diagnosis(verdict)
    case, values = "", []
    if verdict.failing_case is not None:
        what = "this happened for" if verdict.error else "smallest case that fails:"
        case = f"{what} {_words(exercise.id, verdict.failing_case)}"
        at_hand = place >= 0 and verdict.cases[place] == verdict.failing_case
        values = list(verdict.criteria[place].rows) if at_hand else []
    response = [case] if case and not values else []
    response += _others(verdict, place)
    if case:
        response.append(_to_run(exercise.id))
    best = progress.entry(exercise.id, root)["points"]
    if best > verdict.points:
        response.append(f"your best so far, {best:g} of {exercise.points:g}, is kept")
    response.append(_next_step(exercise, verdict, attempts, root))
    if note:
        response.append(f"note: {note}")
    named = ("for", "yours", "expected")
    beside = [f"  {case}", *columns([named, *values], indent="    ")] if values else []
    lines = [*columns(text_rows), *beside, *(f"  {line}" for line in response)]
    text = "\n".join([*filter(None, [diagnosis]), head, *lines])
    html = f"<div><b>{in_html(diagnosis)}</b></div>" if diagnosis else ""
    html += (
        html_table(("", "criterion", "measured", "target", "result"), rows, head)
        if rows
        else f"<b>{in_html(head)}</b>"
    )
    html += html_table(named, values, case) if values else ""
    html += "".join(f"<div>{in_html(line)}</div>" for line in response)
    return Card(text, html, verdict)


def _to_run(exercise_id: str) -> str:
    """The line that makes the call of the failing case again."""
    asked = observer(exercise_id)
    if asked.apart:
        return "`check.failing_case()` returns that case"
    return f"`{asked.answer}(*check.failing_case())` makes that call again"


_failed: dict[str, tuple[Answer, Verdict]] = {}
"""The last answer to each exercise, if it failed in a case; that of the last check comes last."""


def failing_case(exercise_id: str = "") -> Any:
    """The arguments of the call that failed, in the smallest case that fails of the last check, or
    of the last check of an exercise. Of an answer that runs in another process, the case itself.

    Raises: LookupError if no case failed.
    """
    if exercise_id not in _failed and (exercise_id or not _failed):
        raise LookupError(
            f"no case of {exercise_id or 'an exercise'} failed since this notebook was started:"
            " run a check first"
        )
    name = exercise_id or list(_failed)[-1]
    answer, verdict = _failed[name]
    case = verdict.failing_case or {}
    if observer(name).apart:
        return case
    place = _diagnosis(verdict)[1]
    stopped = "stopped by you" in verdict.error  # it would not end now, either
    call = verdict.criteria[place].call if place >= 0 else stopped - 1
    return rerun.arguments(name, answer, case, call)


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
    _failed.pop(exercise_id, None)
    if verdict.failing_case is not None:
        _failed[exercise_id] = answer, verdict
    note = ""
    if verdict.state != "not attempted":
        note = progress.record(exercise_id, verdict.state, verdict.points, root)
    if verdict.state == "tried" and verdict.failing_case and not observer(exercise_id).apart:
        if spoilt := rerun.changed_input(exercise_id, answer, verdict.failing_case):
            spoilt = f"`{name}` changes its input `{spoilt}` in place: work on a copy"
            note = "; ".join(filter(None, (note, spoilt)))
    note = "; ".join(filter(None, (note, _rename(name, namespace))))
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


check.failing_case = failing_case  # type: ignore[attr-defined]
