"""Hostile submissions: each gets a fair row with the cause, costs nobody else a point and leaves
nothing behind.
"""

import csv
import dataclasses
import hashlib
import json
import os
import re
import socket
import stat
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

import utils.labs
from tests.labs import hostile
from tests.labs.hostile import Expected
from utils.labs.grading import batch, confine, sandbox
from utils.labs.grading.records import Graded as Row

SECONDS = 5  # as answers.yaml says; ten times what the honest ones take on a busy machine
LIMITS = confine.Limits(seconds=SECONDS, memory_bytes=512 << 20, processes=64, files_bytes=32 << 20)
UNREAD = "not graded"
PROBLEMS = "graded with problems"

EXPECTED: dict[str, Expected] = {name: known for name, (_, known, _) in hostile.ANSWERS.items()}
EXPECTED |= {
    "deleted-answer": (0, 8, "graded", "answer cell of ex1 was deleted; put back as released"),
    "deleted-check": (4, 8, "graded", "check of ex1 was deleted; put back as released; check of ex2"
                      " was deleted"),
    "duplicated-answer": (4, 8, "graded", "answer cell of ex1 exists 2 times; the last one that"
                          " defines the function counts"),
    "edited-check": (0, 8, "graded", "check of ex1 was edited; the released one counts"),
    "no-metadata": (4, 8, "graded", "answer of ex1 taken from the cell that defines double; answer"
                    " of ex2 taken"),
    "not-a-notebook": (0, 0, UNREAD, "^not graded: lab99_sums.ipynb: it is no notebook .not JSON"),
    "nothing": (0, 0, UNREAD, "no notebook was found"),
    "too-deep": (0, 0, UNREAD, "lab.ipynb: it is no notebook .nested too deeply"),
    "too-many-cells": (0, 0, UNREAD, "it has 1000.. cells; at most 1000 are read"),
    "odd-types": (4, 8, "graded", ""),
    "link": (0, 0, UNREAD, "lab99_sums.ipynb is a link; links are not followed"),
    "pipe": (0, 0, UNREAD, "lab99_sums.ipynb was not read: it is not a regular file"),
    "fair": (4, 8, "graded", ""),
    "last": (4, 8, "graded", ""),
}  # fmt: skip
"""By student: points of ex1 and ex2, status (None: either), and what the notes must say."""


def not_as(expected: Mapping[str, Expected], table: dict[str, dict[str, str]]) -> list[Any]:
    """The rows of a gradebook that are not as expected."""
    wrong = []
    for student, (one, two, status, notes) in expected.items():
        row = table[student]
        points = [float(row[name]) for name in ("ex1", "ex2", "total")]
        if (
            points != [one, two, one + two]
            or row["status"] != (status or row["status"])
            or not re.search(notes, row["notes"])
        ):
            wrong.append((student, row))
    return wrong


@dataclass(frozen=True)
class Graded:
    """The one grading that all tests below look at."""

    rows: dict[str, Row]
    table: dict[str, dict[str, str]]
    out: Path
    before: dict[str, str]
    after: dict[str, str]
    left_behind: dict[int, str]
    connections: int


def tree(top: Path, without: Path) -> dict[str, str]:
    """Every file below `top` but those of `without`: path to kind, mode and content."""
    results = {}
    for folder, folders, files in os.walk(top):
        folders[:] = [f for f in folders if Path(folder, f) != without and f != "__pycache__"]
        for name in [*folders, *files]:
            path = Path(folder, name)
            status = path.lstat()
            digest = ""
            if stat.S_ISREG(status.st_mode):
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
            results[str(path)] = f"{status.st_mode:o} {digest}"
    return results


def leftovers(root: Path) -> dict[int, str]:
    """Processes of this test's sandboxes that are still there: id to name."""
    spare = {confine.spare_uid(slot) for slot in range(16)}
    results = {p.pid: p.name() for p in psutil.Process().children(recursive=True)}
    for process in psutil.process_iter(["uids", "cmdline", "name"]):
        mine = str(root) in " ".join(process.info["cmdline"] or [])
        if process.info["uids"].real in spare or (process.info["name"] == "bwrap" and mine):
            results[process.pid] = process.info["name"]
    return results


def fill(makers: dict, inbox: Path, root: Path, out: Path, port: int) -> None:
    for name, make in makers.items():
        make(inbox / name)
    places = [inbox / "fair" / "lab99_sums.ipynb", out / "gradebook.db", out / "gradebook.csv"]
    places += [root / "solutions" / "x", "/course/utils/xla/env.py", "/usr/x", "/etc/passwd", "/x"]
    known = {
        "ROOT": repr(str(root)),
        "PLACES": repr([str(place) for place in places]),
        "PORT": str(port),
        "PREFIXES": f"*{[sys.prefix, sys.base_prefix]!r}",
    }
    for path in inbox.glob("*/*.ipynb"):
        if path.is_file() and not path.is_symlink():
            text = path.read_bytes()
            for name, value in known.items():
                text = text.replace(name.encode(), json.dumps(value)[1:-1].encode())
            path.write_bytes(text)


def grade_all(makers: dict, base: Path, monkeypatch: pytest.MonkeyPatch) -> Graded:
    root, inbox, out = base / "course", base / "inbox", base / "out"
    hostile.build_course(root)
    inbox.mkdir()
    home, temporary = base / "home", base / "temporary"
    home.mkdir()
    temporary.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    exercises = [*utils.labs.__path__, str(hostile.REPOSITORY / "tests" / "labs")]
    monkeypatch.setattr(utils.labs, "__path__", exercises)
    with socket.create_server(("127.0.0.1", 0)) as server:
        fill(makers, inbox, root, out, server.getsockname()[1])
        before = tree(base, out)
        running = leftovers(root)  # what other tests of this process have started
        rows = batch.grade(inbox, out, root, seed="hostile", jobs=2, limits=LIMITS)
        after = tree(base, out)
        left_behind = dict(leftovers(root).items() - running.items())
        server.setblocking(False)
        connections = 0
        try:
            server.accept()
            connections = 1
        except BlockingIOError:
            pass
    with (out / "gradebook.csv").open() as file:
        table = {row["student"]: row for row in csv.DictReader(file)}
    by_name = {row.record.student: row for row in rows}
    return Graded(by_name, table, out, before, after, left_behind, connections)


def honest(folder: Path) -> None:
    hostile.hand_in(folder, hostile.notebook())


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graded]:
    base = tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as monkeypatch:
        makers = hostile.MAKERS | {"fair": honest, "last": honest}
        assert {*makers} == {*EXPECTED}
        yield grade_all(makers, base, monkeypatch)


# Those that try to get out of the sandbox or to use it up; the others do not depend on its kind.
ESCAPES = "stopper killer fork-bomb memory-family reader writer network exit daemon".split()


@pytest.fixture(scope="module")
def graded_in_user_namespaces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graded]:
    """The sandbox that an ordinary user gets, whoever runs the tests."""
    host = dataclasses.replace(sandbox.prepare(), root=False)
    makers = {name: hostile.MAKERS[name] for name in ESCAPES} | {"fair": honest}
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(sandbox, "prepare", lambda: host)
        monkeypatch.setattr(sandbox, "GRACE_SECONDS", 4)
        yield grade_all(makers, tmp_path_factory.mktemp("namespaces"), monkeypatch)


@pytest.mark.parametrize("student", EXPECTED)
def test_fair_row_with_cause(graded: Graded, student: str) -> None:
    assert not_as({student: EXPECTED[student]}, graded.table) == []


def test_user_namespaces_hold_as_well(graded_in_user_namespaces: Graded) -> None:
    graded = graded_in_user_namespaces
    assert set(graded.table) == {*ESCAPES, "fair"}
    # Without a limit on processes, a submission may take the supervisor along or outlive it on a
    # busy machine; that costs only its own points.
    ended = (
        "^ex1: (its sandbox died|it kept the sandbox from coming to an end"
        "|no result within 5 s: an endless loop, or too slow)$"
    )
    expected = {name: (*row[:3], f"{row[3]}|{ended}") for name, row in EXPECTED.items()}
    assert not_as({name: expected[name] for name in graded.table}, graded.table) == []
    harmless(graded)


def harmless(graded: Graded) -> None:
    """No process is left, nothing outside of the results has changed, nobody reached the network,
    and what was tried gave nothing.
    """
    assert (graded.left_behind, graded.connections) == ({}, 0)
    assert graded.before == graded.after
    for student in {"reader", "writer", "network"} & graded.rows.keys():
        criterion = graded.rows[student].record.marks[0].criteria[0]
        assert (criterion.passed, criterion.measured) == (False, "[]")


def test_nothing_is_left_and_nothing_was_reached(graded: Graded) -> None:
    harmless(graded)


def test_output_is_dropped_while_it_is_made(graded: Graded) -> None:
    entries = map(json.loads, (graded.out / "log.jsonl").read_text().splitlines())
    entry = next(e for e in entries if e["student"] == "output")
    assert entry["attempts"][0]["output_bytes"] == 100_000_100
    assert len(json.dumps(entry)) < 20_000
    assert sum(f.stat().st_size for f in graded.out.rglob("*") if f.is_file()) < 3_000_000


def test_reports_hold_no_markup_of_a_submission(graded: Graded) -> None:
    page = (graded.out / "reports" / "markup.html").read_text()
    assert "<script" not in page
    assert "<b>" not in (graded.out / "class.html").read_text()
    assert "&lt;b&gt;bold.ipynb is a link" in (graded.out / "class.html").read_text()
    assert "(not shown)" in page and "alert(1)" not in page
    assert "<script>alert(1)</script>" in graded.rows["markup"].record.marks[0].private


def test_reports_hold_no_hidden_input(graded: Graded) -> None:
    private = graded.rows["leaker"].record.marks[0].private
    hidden = re.search(r"the hidden input is (\d+)", private)[1]
    published = [p for p in graded.out.rglob("*") if p.suffix in (".html", ".csv", ".ipynb")]
    assert len(published) > len(EXPECTED)
    for path in published:
        if "leaker" in str(path) or path.name in ("class.html", "gradebook.csv"):
            assert f"Hidden{hidden}" not in path.read_text()
            assert f"input is {hidden}" not in path.read_text()
