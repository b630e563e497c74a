"""What the recorded wrong answers of an exercise give for a case: a judge knows a misconception by
what its own code returns, and needs no formula for it.

Where `solutions/` was deleted there is nothing that the records change, and no wrong way is known.
"""

import ast
import contextlib
import dis
import json
import math
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property, lru_cache
from types import CodeType
from typing import Any

from utils.course import catalog
from utils.course.misconceptions import WrongAnswer, wrong_answers
from utils.labs import Answer, Facts, observe_case, observer, split_id
from utils.labs.forbidden import trusted
from utils.labs.values import Ways

_KNOWN_BY = ("the check stopped", "belongs to the course")
"""Said of an answer that never ends, or calls what is closed: it is known by that, and not run."""


def replies(exercise_id: str, case: Facts, like: Facts | None = None) -> list[tuple[str, Facts]]:
    """The sentence of each recorded wrong answer that returns something for a case, and its facts,
    in the order of the records; first those that have most in common with the facts `like`.
    """
    with _ONE_AT_A_TIME:
        result = list(_replies(exercise_id, json.dumps(case)))
    return sorted(result, key=lambda pair: -_common(pair[1], like)) if like else result


def _common(some: Any, other: Any) -> int:
    """How many values are the same at the same place of two results.

    >>> _common({"a": [1, 2], "b": "text"}, {"a": [1.0, 3], "b": "text", "c": 4})
    2
    """
    if isinstance(some, dict) and isinstance(other, dict):
        return sum(_common(some[key], other[key]) for key in some.keys() & other.keys())
    if isinstance(some, list) and isinstance(other, list):
        return sum(map(_common, some, other))
    if isinstance(some, int | float) and isinstance(other, int | float):
        return math.isclose(some, other)
    return some == other


_ONE_AT_A_TIME = threading.RLock()
"""A grader judges in several threads."""


@lru_cache(128)
def _replies(exercise_id: str, case: str) -> tuple[tuple[str, Facts], ...]:
    results = []
    token = trusted.set(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for says, answer in _answers(exercise_id):
                seen = observe_case(exercise_id, answer, json.loads(case))
                if "facts" in seen:
                    results.append((says, json.loads(json.dumps(seen["facts"]))))
    finally:
        trusted.reset(token)
    return tuple(results)


def column(name: str) -> Callable[[Facts], list[Any]]:
    """What gives the entry of that name of each response in the facts of an answer."""
    return lambda facts: [item[name] for item in facts["response"]]


class Known(Sequence[Ways]):
    """For each value of a case the wrong numbers that are known, with the sentence to each. Nothing
    is run before one is asked for.

    numbers: the values in the facts of an answer, in the order in which the judge asks for them.
    like: all facts of the answer that is judged, if several ways may give the same numbers: first
        are those that have most in common with it.
    fields: what the sentences leave open.
    """

    def __init__(
        self,
        exercise_id: str,
        case: Facts,
        numbers: Callable[[Facts], Sequence[Any]] = lambda facts: facts["response"],
        like: Facts | None = None,
        **fields: object,
    ) -> None:
        self._asked = exercise_id, case, like
        self._numbers, self._fields = numbers, fields

    @cached_property
    def _rows(self) -> list[tuple[str, Sequence[Any]]]:
        rows = []
        for says, facts in replies(*self._asked):
            with contextlib.suppress(LookupError, TypeError, ValueError):  # of another form
                rows.append((says.format(**self._fields), self._numbers(facts)))
        return rows

    def __len__(self) -> int:
        return max((len(values) for _, values in self._rows), default=0)

    def __getitem__(self, place: Any) -> Any:
        pairs = [(says, values[place]) for says, values in self._rows if place < len(values)]
        return [(says, value) for says, value in pairs if isinstance(value, int | float)]


def message_of(
    exercise_id: str,
    case: Facts,
    alike: Callable[[Facts], float],
    otherwise: str,
    like: Any = None,  # facts; any, because `fields` may come as a dict of texts
    **fields: object,
) -> str:
    """The sentence of the recorded wrong answer whose facts are most alike, of several the first;
    otherwise this one. like, fields: as those of `Known`.
    """
    best, result = 0.0, otherwise
    for says, facts in replies(exercise_id, case, like):
        with contextlib.suppress(LookupError, TypeError, ValueError):  # of another form
            likeness, text = alike(facts), says.format(**fields)
            if likeness > best:
                best, result = likeness, text
    return result


@cache
def _answers(exercise_id: str) -> tuple[tuple[str, Answer], ...]:
    lab, name = split_id(exercise_id)
    paths = catalog.lab_notebooks(catalog.ROOT, lab)
    cells = catalog.read_notebook(paths[0])["cells"] if paths else []
    code = {cell["id"]: catalog.text(cell) for cell in cells if cell["cell_type"] == "code"}
    answers = []
    for wrong in wrong_answers(lab):
        if wrong.exercise == name and not any(text in wrong.says for text in _KNOWN_BY):
            # Nothing is known of it without a solution to change, or if it needs torch.
            with contextlib.suppress(ValueError):
                answers.append((wrong.says, _function(exercise_id, wrong, code)))
    return tuple(answers)


def _function(exercise_id: str, wrong: WrongAnswer, code: dict[str, str]) -> Answer:
    source = compile(wrong.source(code[f"{wrong.exercise}-code"]), "<recorded>", "exec")
    statements = [
        statement
        for cell, text in code.items()
        if not cell.endswith(("-code", "-check"))
        for statement in ast.parse(text).body
    ]
    space: dict[str, Any] = {"__name__": "recorded", "print": lambda *_, **__: None}
    needed = _dependencies(source, {name: s for s in statements for name in _bound(s)})
    body = [statement for statement in statements if statement in needed]
    if any(ast.unparse(statement).startswith(_SLOW) for statement in body):
        raise ValueError("a grader must not wait for torch")
    exec(compile(ast.Module(body, []), "<given>", "exec"), space)
    exec(source, space)
    return space[observer(exercise_id).answer]


_SLOW = ("import torch", "from torch")


def _dependencies(code: CodeType, known: dict[str, ast.stmt]) -> list[ast.stmt]:
    """The statements that bind what code uses, and what these use in turn."""
    result: list[ast.stmt] = []
    waiting = [code]
    while waiting:
        current = waiting.pop()
        waiting += [const for const in current.co_consts if isinstance(const, CodeType)]
        for name in _used(current):
            if name in known and known[name] not in result:
                result.append(known[name])
                waiting.append(compile(ast.Module([known[name]], []), "<given>", "exec"))
    return result


def _used(code: CodeType) -> Iterator[str]:
    names = ("LOAD_GLOBAL", "LOAD_NAME")
    return (step.argval for step in dis.get_instructions(code) if step.opname in names)


def _bound(statement: ast.stmt) -> list[str]:
    """What an import, a definition or a constant of a notebook binds; of all else nothing."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in statement.names]
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Assign) and not any(
        isinstance(node, ast.Call) for node in ast.walk(statement.value)
    ):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)]
    return []
