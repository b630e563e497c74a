"""Submissions that reach for what observes them, run the course's own code as theirs, pretend to be
other values, wreck where they run, or are odd as files: no undeserved point, and no row but theirs.

By default those run that once earned points, or that new code refuses; all of them exhaustively.
"""

import json
import re
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from tests.labs import hostile
from tests.labs.hostile import Expected, odd_files
from tests.labs.test_grading_hostile import PROBLEMS, Graded, grade_all, harmless, honest, not_as
from utils.labs.grading import attempts
from utils.labs.grading.attempts import attempts_of

# student: points of ex1 and ex2, status, and what the notes must say.
INSIDE = hostile.answers_of("inside.yaml")
ALWAYS: dict[str, Expected] = {name: known for name, (_, known, day) in INSIDE.items() if day}
ALWAYS |= {
    "many-notebooks": (0, 8, PROBLEMS, r"not copy \(1\).ipynb, .*, 296 more"),
    "broken-letters": (0, 8, "graded", "raised (Syntax|Value)Error"),
    "fair": (4, 8, "graded", "^$"),
}
AT_NIGHT = {name: known for name, (_, known, day) in INSIDE.items() if not day}
AT_NIGHT |= {
    "magics": (4, 8, "graded", "^$"),
    "zip-bomb": (0, 0, "not graded", "it is larger than 20 MB"),
    "zip-of-elsewhere": (4, 8, "graded", "more.zip was not read"),
    "same-ids": (4, 8, "graded", ""),
    "huge-metadata": (4, 8, "graded", "^$"),
    "numbers-of-no-size": (0, 0, "not graded", "it is no notebook"),
    "deep-source": (4, 8, "graded", "^$"),
    "long-line": (4, 8, "graded", "^$"),
    "folders-in-folders": (4, 8, "graded", "again is a link; links are not followed"),
    "fair": (4, 8, "graded", "^$"),
}
MAKERS = {name: make for name, (make, _, _) in INSIDE.items()} | odd_files.MAKERS | {"fair": honest}


@pytest.fixture(scope="module")
def graded(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Graded]:
    assert {*ALWAYS, *AT_NIGHT} == {*MAKERS}
    makers = {name: MAKERS[name] for name in request.param}
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield grade_all(makers, tmp_path_factory.mktemp("reaching"), monkeypatch)


@pytest.mark.parametrize(
    ("graded", "expected"),
    [(ALWAYS, ALWAYS), pytest.param(AT_NIGHT, AT_NIGHT, marks=pytest.mark.exhaustive)],
    ids=["always", "at night"],
    indirect=["graded"],
)
def test_nobody_is_deceived_and_nobody_else_pays(graded: Graded, expected: dict) -> None:
    assert not_as(expected, graded.table) == []
    harmless(graded)
    pages = [p for p in graded.out.rglob("*") if p.suffix in (".html", ".csv", ".jsonl")]
    assert len(pages) > len(expected)
    # What commands a terminal or turns a line around is nobody's name here.
    assert not [p for p in pages if re.search("[\x1b\u202e\ud800-\udfff]", p.read_text())]


@pytest.mark.parametrize("size", [10_000, 1_000_000])
@pytest.mark.parametrize(
    "value",
    [
        *("[" * 99, "[],", "[0,", '{"a":[', "9", "0.1,", "1e9,", '"x",', '"\\ud800'),
        "[[[[[[[[[]]]]]]]]],",
    ],
)
def test_what_a_judge_reads_is_bounded(value: str, size: int) -> None:
    """Whatever fills a line: at most some megabytes are used to read it, and nothing of a size that
    a judge could square is handed on.
    """
    inner = (value * (size // len(value))).rstrip(",")
    closing = {"[0,": "]", '{"a":[': "]}", "[" * 99: "]" * 99}.get(value, "")
    inner += closing * (size // len(value))
    text = f'{{"case": 0, "seen": {{"facts": {{"value": [{inner}]}}}}}}'
    tracemalloc.start()
    try:
        made = attempts_of([{"exercise": "lab99.ex1", "attempt": "full", "line": text}])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4_000_000
    seen = made["lab99.ex1", "full"].seen
    assert not seen or len(seen[0]["facts"]["value"]) <= attempts.MOST_ITEMS


def test_what_observations_are_is_read() -> None:
    value = [[k, k / 7, str(k), None] for k in range(1000)]
    text = json.dumps({"case": 0, "seen": {"facts": {"value": value}}})
    made = attempts_of([{"exercise": "lab99.ex1", "attempt": "full", "line": text}])
    assert made["lab99.ex1", "full"].seen[0]["facts"]["value"] == value
