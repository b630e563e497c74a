"""The record of runs on this machine, on the disk before AWS hears of a run.

A line is one event of a run: "begin" before the first call that could start something, "started"
with what AWS said, "ended" when nothing of it runs any more.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from utils.course.catalog import ROOT

VARIABLE = "COURSE_LAUNCHES"
BEGIN = {"where", "region", "instance", "until"}
"""What the first event of a run tells beside its name."""

Event = dict[str, Any]


def path() -> Path:
    """$COURSE_LAUNCHES if set, else .launches.jsonl in the course."""
    return Path(os.environ.get(VARIABLE) or ROOT / ".launches.jsonl")


@contextmanager
def alone() -> Iterator[None]:
    """Within, no other launcher with this record starts anything. A killed one holds no lock.

    Raises:
        OSError: if another one is, or the record cannot be opened.
    """
    with open(path(), "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BlockingIOError(
                "another launcher is at work on this machine: Ctrl-C there ends its run, or wait "
                "until its hours are over"
            ) from None
        yield


def write(event: str, run: str, **what: Any) -> None:
    """Append an event; returns when it is on the disk.

    Raises:
        OSError: if it cannot be written; then nothing may be started.
    """
    line = json.dumps({"event": event, "run": run, **what}, default=str).encode() + b"\n"
    with open(path(), "a+b") as file:
        if file.tell() and os.pread(file.fileno(), 1, file.tell() - 1) != b"\n":
            line = b"\n" + line  # the last event was cut off, and must not swallow this one
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def note(say: Callable[[str], None], event: str, run: str, **what: Any) -> None:
    """Append an event after the start: a full disk is no reason to leave something running."""
    try:
        write(event, run, **what)
    except OSError as error:
        say(f"could not record '{event}' of run {run}: {error}")


def events() -> Iterator[Event]:
    """All events, oldest first; what is none, such as a line cut off by a crash, is left out."""
    if not path().exists():
        return
    for line in path().read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and all(isinstance(event.get(k), str) for k in ("event", "run")):
            if event["event"] != "begin" or event.keys() >= BEGIN:
                yield event


def open_runs() -> dict[str, Event]:
    """Runs that began and of which no end is recorded: the first event of each, by run."""
    result: dict[str, Event] = {}
    for event in events():
        if event["event"] == "begin":
            result[event["run"]] = event
        elif event["event"] == "ended":
            result.pop(event["run"], None)
    return result


def runs() -> set[str]:
    """All runs that were begun on this machine."""
    return {event["run"] for event in events()}
