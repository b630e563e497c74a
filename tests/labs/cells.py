"""Run the cells of a lab and judge answers to its exercises, as the tests of every lab do."""

import contextlib
import json
import linecache
import random
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from utils.course import catalog, earlier
from utils.course.catalog import ROOT
from utils.course.earlier import Earlier, Problem
from utils.course.misconceptions import WrongAnswer, apply_diff, is_diff, wrong_answers
from utils.labs import Facts, Verdict, decide, judge, observe_case, observer

SEEDS = [
    "a private one",
    *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in ("public", "another")),
]
"""Cases that an answer is tried with: of one seed by day, of three by night."""

NOT_RUN = ("setup", "quiz", "board")


def run_cell(source: str, name: str, names: dict) -> None:
    """Execute `source` in the namespace `names`, as the file `name`, such as "<ex1-code>".

    Afterwards Python knows the source of the code, as in a notebook.
    """
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), names)


def code_of(lab: str) -> dict[str, str]:
    """The code cells of a lab with solutions, such as "lab03": id to source."""
    (path,) = catalog.lab_notebooks(ROOT, lab)
    cells = catalog.read_notebook(path)["cells"]
    return {cell["id"]: catalog.text(cell) for cell in cells if cell["cell_type"] == "code"}


@cache
def right_answers(lab: str) -> dict[str, str]:
    """The answers of a lab's published solution, by exercise such as "ex1"."""
    return {
        name.removesuffix("-code"): source
        for name, source in code_of(lab).items()
        if name.endswith("-code")
    }


class Wrong(NamedTuple):
    """An answer that must be refused: exercise id, what is wrong, its source, its record."""

    exercise: str
    name: str
    source: str
    record: WrongAnswer

    @property
    def id(self) -> str:
        return f"{self.exercise}-{self.name.replace(' ', '-')}"


@cache
def wrong_entries(lab: str) -> list[Wrong]:
    """Every wrong answer to a lab's exercises that is kept in its records of misconceptions."""
    return [
        Wrong(
            f"{lab}.{wrong_answer.exercise}",
            wrong_answer.wrong,
            wrong_answer.source(right_answers(lab)[wrong_answer.exercise]),
            wrong_answer,
        )
        for wrong_answer in wrong_answers(lab)
    ]


RIGHT_WAYS = Path(__file__).with_name("right_ways")


def right_ways(lab: str) -> list[tuple[str, str, str]]:
    """Other right answers to a lab's exercises: exercise id, what is different, source."""
    path = RIGHT_WAYS / f"{lab}.yaml"
    ways = yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {}
    return [
        (f"{lab}.{exercise}", way, apply_diff(right_answers(lab)[exercise], c) if is_diff(c) else c)
        for exercise, codes in ways.items()
        for way, c in codes.items()
    ]


def names_of(lab: str) -> dict:
    """What the notebook of a lab with solutions defines, without running its checks."""
    results: dict = {"__name__": "notebook"}
    (path,) = catalog.lab_notebooks(ROOT, lab)
    with contextlib.chdir(path.parent):  # as Jupyter does
        for name, source in code_of(lab).items():
            if name not in NOT_RUN and not name.endswith("-check"):
                run_cell(source, f"<{name}>", results)
    return results


def answer_from(source: str, exercise_id: str, names: dict) -> Callable[..., Any]:
    """The answer that `source` defines, in a copy of the names that a notebook has."""
    own = dict(names)
    run_cell(source, "<answer>", own)
    return own[observer(exercise_id).answer]


def cases_of(exercise_id: str, seed: object) -> list[Facts]:
    """The cases of a seed, each time as new objects: drawing them takes a moment."""
    return deepcopy(_cases(exercise_id, str(seed)))


@cache
def _cases(exercise_id: str, seed: str) -> list[Facts]:
    return judge(exercise_id).cases(random.Random(seed))


def verdict_of(exercise_id: str, answer: Callable[..., Any], seed: object) -> Verdict:
    """The verdict on all cases of a seed, out of 10 points, with the facts as JSON as at
    grading.
    """
    cases = cases_of(exercise_id, seed)
    seen = [json.loads(json.dumps(observe_case(exercise_id, answer, case))) for case in cases]
    return decide(exercise_id, cases, seen, 10.0)


def changed(answer: str, *changes: tuple[str, str], everywhere: bool = False) -> str:
    """The source of an answer with each old text replaced by the new one.

    The old text must occur once, so that a change is the one that is meant; everywhere: once or
    more, and all are replaced.
    """
    for old, new in changes:
        count = answer.count(old)
        assert count == 1 or (everywhere and count), f"{old!r} occurs {count} times in {answer}"
        answer = answer.replace(old, new)
    return answer


def with_part(mine: Earlier, exercise_id: str, *changes: tuple[str, str]) -> Earlier:
    """Earlier answers in which the one to an exercise has been changed."""
    wanted = next(item for item in earlier.WANTED["lab15"] if item.id == exercise_id)
    cells = code_of(wanted.lab)
    cells[wanted.cell] = changed(cells[wanted.cell], *changes)
    result = earlier.functions_of(wanted, list(cells.items()))
    if isinstance(result, Problem):
        return Earlier(dict(mine.functions), [*mine.problems, result])
    return Earlier({**mine.functions, **result}, list(mine.problems))
