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
from tests.labs.hostile import inside, odd_files
from tests.labs.test_grading_hostile import (
    PROBLEMS,
    SLOW,
    Graded,
    grade_all,
    harmless,
    honest,
    not_as,
)
from utils.labs.grading import attempts
from utils.labs.grading.attempts import attempts_of

HELD = ": its points are held back until an instructor has looked at it"
REACHED = f"ex1: it reached into the process that observes it{HELD}"
COPIED = f"ex1: it runs code of the course, which it was to write itself, under another name{HELD}"
LOOKS = "looks into the check: ex1-code line"
PLAIN = "the observation holds more than plain values"

# student: points of ex1 and ex2, status, and what the notes must say.
ALWAYS = {
    # Each of these had full marks before.
    "tracer": (0, 8, PROBLEMS, REACHED),
    "profiler": (0, 8, PROBLEMS, REACHED),
    "ctypes-writer": (0, 8, PROBLEMS, REACHED),
    # What a cell names, those below it can use.
    "signing-child": (0, 0, PROBLEMS, f"ex1: it ended its process .*; ex2: its cells name.*{HELD}"),
    "other-package": (0, 8, PROBLEMS, COPIED),
    "run-path": (0, 8, PROBLEMS, COPIED),
    # Text that is executed may name anything: what lies below it is held back too.
    "executed-source": (0, 0, PROBLEMS, f"ex1: it runs code of the course.*{HELD}"),
    "imported-again": (0, 8, PROBLEMS, COPIED),
    "reloaded": (0, 8, PROBLEMS, COPIED),
    "copied-function": (0, 8, PROBLEMS, COPIED),
    "read-when-called": (0, 8, PROBLEMS, REACHED),
    "counter": (4, 0, PROBLEMS, f"ex2: its cells name what leads into the functions that.*{HELD}"),
    "collected-counter": (4, 0, PROBLEMS, REACHED.replace("ex1", "ex2")),
    # Python raises no event here: that names are put together is what can be seen.
    "hidden-counter": (4, 0, PROBLEMS, f"ex2: its cells name what leads into.*{HELD}"),
    "getter-counter": (4, 0, PROBLEMS, f"ex2: its cells name what leads into.*{HELD}"),
    # A cell of exercise 1 cost exercise 2 its points.
    "replaced-modules": (0, 8, "graded", "ex2: the notebook down to its check earns less than"),
    "closed-door": (0, 8, PROBLEMS, "ex1: it raised RuntimeError in line 3"),
    "living-dictionary": (0, 8, PROBLEMS, ""),
    "many-notebooks": (0, 8, PROBLEMS, r"not copy \(1\).ipynb, .*, 296 more"),
    "broken-letters": (0, 8, "graded", "raised (Syntax|Value)Error"),
    "fair": (4, 8, "graded", "^$"),
}
AT_NIGHT = {
    "frame-walker": (0, 0, PROBLEMS, LOOKS),
    "traceback-walker": (0, 8, "graded", LOOKS),
    "collector": (0, 8, "graded", LOOKS),
    "audit-hook": (0, 8, PROBLEMS, LOOKS),
    "watching-thread": (0, 8, "graded", LOOKS),
    "key-catcher": (0, 8, "graded", ""),
    "patched-builtins": (0, 8, PROBLEMS, LOOKS),
    "middleman": (0, 8, PROBLEMS, "results that are not the check's; refused"),
    "other-doors": (0, 8, "graded", ""),
    "twins": (0, 8, "graded", ""),
    "last-words": (0, 8, "graded", ""),
    "import-hook": (0, 8, "graded", "its cells replaced parts of the course's own code"),
    "startup-files": (4, 8, "graded", ""),
    "cell-rewriter": (0, 8, "graded", "ex2: the notebook down to its check was stopped"),
    "parent-writer": (0, 8, "graded", ""),
    "other-sockets": (0, 8, "graded", ""),
    "agreeable-number": (0, 8, "graded", ""),
    "other-each-time": (0, 8, "graded", ""),
    "class-liar": (0, 8, PROBLEMS, f"ex1: it raised TypeError.*{LOOKS}"),
    "no-number": (0, 8, "graded", ""),
    "gigantic-number": (0, 8, PROBLEMS, "ex1: it raised ValueError"),
    "broad-value": (0, 8, PROBLEMS, "ex1: it raised ValueError"),
    "long-text": (0, 8, PROBLEMS, "ex1: it raised ValueError"),
    "odd-letters": (0, 8, PROBLEMS, "ex1: it raised an exception of another library or its own"),
    "wild-error": (0, 8, PROBLEMS, f"ex1: {SLOW}"),
    "chain-of-errors": (0, 8, PROBLEMS, "ex1: it raised ValueError in line 7"),
    "hostile-answer": (0, 8, "graded", ""),
    "coroutine": (0, 8, PROBLEMS, "ex1: it raised TypeError"),
    "homoglyph": (0, 8, PROBLEMS, "ex1: there is no function double when its check is reached"),
    "asker": (0, 8, PROBLEMS, "ex1: it raised EOFError in line 3"),
    "breakpoint": (0, 8, PROBLEMS, "ex1: it raised an exception of another library or its own"),
    "deaf": (0, 8, PROBLEMS, f"ex1: {SLOW}"),
    # It stands in no folder any more, from which the observer could import.
    "spoiler": (0, 8, PROBLEMS, "ex1: it raised FileNotFoundError"),
    "no-builtins": (4, 8, "graded", "ex2: the notebook down to its check earns less than"),
    "closer": (0, 8, PROBLEMS, "ex1: it ended its process with exit status 70"),
    "self-limiter": (4, 8, "graded", ""),
    "aborter": (0, 8, PROBLEMS, "ex1: its process was killed by SIGABRT"),
    "many-files": (4, 8, "graded", ""),
    "hidden-memory": (0, 8, PROBLEMS, "ex1: it raised PermissionError in line 5"),
    "thread-bomb": (4, 8, "graded", ""),
    "resetter": (0, 8, PROBLEMS, "ex1: there is no function double when its check is reached"),
    "magics": (4, 8, "graded", "^$"),
    "self-editor": (0, 8, "graded", ""),
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
MAKERS = (
    {name: hostile.answering(ex1=source) for name, source in inside.BODIES.items()}
    | {name: hostile.answering(ex2=source) for name, source in inside.COUNTING.items()}
    | odd_files.MAKERS
    | {"fair": honest}
)


@pytest.fixture(scope="module")
def graded(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Graded]:
    makers = {name: MAKERS[name] for name in request.param}
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield grade_all(makers, tmp_path_factory.mktemp("reaching"), monkeypatch)


def test_every_maker_has_an_expectation() -> None:
    assert {*ALWAYS, *AT_NIGHT} == {*MAKERS}


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
