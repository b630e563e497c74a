"""What an exercise is: cases, an observation of the learner's answer, and a judgement.

The three parts are apart so that the same exercise serves two places. In a notebook,
`utils.labs.check` runs all three in one process. At grading, cases and judgement stay in the
grader's process and only the observation runs beside the learner's code, in a sandbox: hidden
inputs and verdicts are never in reach of a submission.

A lab is a package `utils.labs.labNN` with two modules:

- `observe.py`: `OBSERVERS`, exercise name to `Observer`. The only one that a sandbox can see.
- `judge.py`: `JUDGES`, exercise name to `Judge`.

`grading` runs folders of submissions in sandboxes.

May import: every room below. Used by: cli, the notebooks of labs.
"""

import importlib
import random
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

Facts = dict[str, Any]
"""What is known of one run of an answer: plain JSON values, because it crosses a process border at
grading.
"""

Answer = Callable[..., Any]
"""A learner's function."""


@dataclass(frozen=True)
class Observer:
    """How to run a learner's answer.

    answer: the name of the function that the learner writes.
    observe: called with that function and one case; returns what was seen, as plain JSON values.
    apart: whether no call can be shown: the answer runs in another process, whose arguments nobody
        can have here, or is a class, of which a case makes many calls.
    """

    answer: str
    observe: Callable[[Answer, Facts], Facts]
    apart: bool = False


@dataclass(frozen=True)
class Criterion:
    """One graded statement about an answer.

    name: what is looked at, such as "mean loss".
    weight: its share of the exercise's points, relative to the other criteria.
    passed: whether the answer meets it.
    measured, target: the number found and the number asked for, as text.
    message: if not passed, the likely misconception and the next step; shown to the learner.
    rows: the first wrong values as text, (for which input, yours, expected); on cards only, because
        at grading inputs stay hidden.
    share: if not passed, the share of its points that what is right of it earns.
    call: which call of the answer shows what is wrong, counted from 0 within the case.
    """

    name: str
    weight: int
    passed: bool
    measured: str = ""
    target: str = ""
    message: str = ""
    rows: tuple[tuple[str, str, str], ...] = ()
    share: float = 0.0
    call: int = 0


@dataclass(frozen=True)
class Judge:
    """How to make cases and judge what was observed.

    cases: draws the cases, smallest first, from a random generator; plain JSON values.
    judge: called with one case and its facts; returns the same criteria in the same order for every
        case.
    words: says a case as a learner reads it, on cards only; None: its keys and values.
    """

    cases: Callable[[random.Random], list[Facts]]
    judge: Callable[[Facts, Facts], list[Criterion]]
    words: Callable[[Facts], str] | None = None


@dataclass(frozen=True)
class Verdict:
    """The result of one exercise.

    state: "passed", "tried" (some criterion not met), "error" (the answer raised) or "not
        attempted".
    points, max_points: points won and points to win.
    criteria: what the smallest case that fails says of each criterion; one that is met there but
        not in a later case is as the first such case says it. Its share is the smallest of all.
    failing_case: the smallest case that fails, or None.
    error: for state "error", what was raised and where, in one line.
    cases: for each criterion, the case that it is taken from; at grading they stay hidden.
    """

    exercise: str
    state: str
    points: float
    max_points: float
    criteria: tuple[Criterion, ...] = field(default=())
    failing_case: Facts | None = None
    error: str = ""
    cases: tuple[Facts, ...] = field(default=(), repr=False)


def split_id(exercise_id: str) -> tuple[str, str]:
    """
    >>> split_id("lab03.ex2")
    ('lab03', 'ex2')
    """
    lab, _, name = exercise_id.partition(".")
    if not lab.startswith("lab") or not name:
        raise ValueError(
            f"exercise id {exercise_id!r} is not of the form 'labNN.exN', such as 'lab03.ex2'"
        )
    return lab, name


def _member(exercise_id: str, module: str, table: str) -> Any:
    lab, name = split_id(exercise_id)
    try:
        members = getattr(importlib.import_module(f"utils.labs.{lab}.{module}"), table)
    except ModuleNotFoundError as missing:
        if missing.name and missing.name.startswith("utils.labs"):
            raise ValueError(f"there is no {lab}: exercise id {exercise_id!r} names it") from None
        raise
    if name not in members:
        raise ValueError(f"{lab} has no exercise {name!r}; it has {', '.join(members)}")
    return members[name]


def observer(exercise_id: str) -> Observer:
    """The `Observer` of an exercise such as "lab03.ex2"."""
    return _member(exercise_id, "observe", "OBSERVERS")


def judge(exercise_id: str) -> Judge:
    """The `Judge` of an exercise such as "lab03.ex2"."""
    return _member(exercise_id, "judge", "JUDGES")


def where(error: BaseException, answer: Callable[..., Any]) -> str:
    """The last place of a traceback that lies in the answer's own cell: "line 7: y = x.itm()"."""
    code = getattr(answer, "__code__", None) or getattr(answer.__init__, "__code__", None)
    cell = getattr(code, "co_filename", None)  # of a class, what its instances begin with
    own = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == cell]
    return f"line {own[-1].lineno}: {own[-1].line}".rstrip(": ") if own else ""


def observe_case(exercise_id: str, answer: Callable[..., Any], case: Facts) -> Facts:
    """Run an answer on one case.

    Returns {"facts": ...}, {"error": text} or {"not_attempted": True}.

    Whatever the answer raises is a result, not a failure of the check; KeyboardInterrupt passes
    through, so that a learner can stop an endless answer.
    """
    try:
        return {"facts": observer(exercise_id).observe(answer, dict(case))}
    except NotImplementedError as error:
        # The stub of another exercise raises too, if an answer calls it: that is an error.
        if str(error).startswith(f"{exercise_id}: not attempted"):
            return {"not_attempted": True}
        caught: BaseException = error
    except (Exception, SystemExit) as error:
        caught = error
    text = f"{type(caught).__name__}: {caught}"[:500]
    place = where(caught, answer)
    return {"error": f"{text} ({place})" if place else text}


def decide(
    exercise_id: str, cases: list[Facts], observations: list[Facts], max_points: float
) -> Verdict:
    """Judge the observations of an answer, one per case in the same order.

    Points are `max_points` shared among the criteria by weight. A criterion counts when every case
    meets it, and in part if it names a share: the smallest of all cases. An answer that raises in
    any case wins nothing: the smallest such case is reported.
    """
    if not cases or len(cases) != len(observations):
        raise ValueError(f"{len(cases)} cases but {len(observations)} observations")
    for case, seen in zip(cases, observations, strict=True):
        if seen.get("not_attempted"):
            return Verdict(exercise_id, "not attempted", 0.0, max_points)
        if "error" in seen:
            return Verdict(
                exercise_id, "error", 0.0, max_points, failing_case=case, error=str(seen["error"])
            )
    judged = [
        judge(exercise_id).judge(case, seen["facts"])
        for case, seen in zip(cases, observations, strict=True)
    ]
    failing = next(
        (place for place, row in enumerate(judged) if not all(c.passed for c in row)), None
    )
    shown = len(cases) - 1 if failing is None else failing
    places = [
        next((place for place in range(shown, len(cases)) if not row[place].passed), shown)
        for row in zip(*judged, strict=True)
    ]
    shares = [min(1.0 if c.passed else c.share for c in row) for row in zip(*judged, strict=True)]
    criteria = [
        replace(judged[place][number], share=0.0 if judged[place][number].passed else share)
        for number, (place, share) in enumerate(zip(places, shares, strict=True))
    ]
    whole = sum(c.weight for c in criteria)
    won = sum(c.weight * share for c, share in zip(criteria, shares, strict=True)) / whole
    return Verdict(
        exercise_id,
        "passed" if failing is None else "tried",
        round(max_points * won, 2),
        max_points,
        tuple(criteria),
        None if failing is None else cases[failing],
        cases=tuple(cases[place] for place in places),
    )
