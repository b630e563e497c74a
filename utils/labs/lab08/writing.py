"""How `write` of exercise 2 runs: it is killed, the disk is full, the power fails."""

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from utils.labs import Answer, Facts
from utils.labs.forbidden import forbid
from utils.labs.lab08.storing import SHUT, files, make_folder, state
from utils.training.checkpoint.kills import die, full_at_byte, kill_at_byte


def write_apart(_: Answer, write: Answer, case: Facts, scratch: Path) -> str:
    """Write what `all_else` finds, in a process of its own: nothing but files is left of it.

    Returns what `write` raised when the disk was full.
    """
    os.chdir(make_folder(scratch, "before"))
    one, two, _ = case["steps"]
    with forbid("lab08.ex2", *SHUT):
        folder = make_folder(scratch, "damage")
        write(folder, one, state(case, one), 2)
        shutil.copytree(folder, scratch / "older", symlinks=True)
        write(folder, two, state(case, two), 2)
        for place, kill in enumerate(case["kills"]):
            _kill(write, case, make_folder(scratch, f"kill{place}"), kill)
        _power(write, case, make_folder(scratch, "power"))
        return _full(write, case, make_folder(scratch, "full"))


def _kill(write: Answer, case: Facts, folder: Path, kill: Facts) -> None:
    """Write one checkpoint and die in the next, in a copy of this process."""
    events = {"rename": ("os.rename", "os.link"), "remove": ("os.remove", "os.truncate")}
    if process := os.fork():
        os.waitpid(process, 0)
        return
    try:
        write(folder, kill["last"], state(case, kill["last"]), 1)
        if "share" in kill:
            kill_at_byte(int(kill["share"] * case["bytes"]))
        else:
            fatal = events[kill["at"]]
            sys.addaudithook(lambda event, _: die() if event in fatal else None)
        write(folder, kill["new"], state(case, kill["new"]), 1)
    finally:
        die()


def _full(write: Answer, case: Facts, folder: Path) -> str:
    """The disk takes no more in the middle of a write; returns what that raises."""
    one, two, _ = case["steps"]
    write(folder, one, state(case, one), 1)
    full_at_byte(int(case["full"] * case["bytes"]))
    try:
        write(folder, two, state(case, two), 1)
    except Exception as error:
        return type(error).__name__
    return ""


def _power(write: Answer, case: Facts, folder: Path) -> None:
    """A write comes back, then the power fails: files that were not forced to the disk since they
    were written last are empty.
    """
    one, two, _ = case["steps"]
    write(folder, one, state(case, one), 2)
    before, forced = files(folder), {}
    with _watching(("fsync", "fdatasync", "sync"), lambda: forced.update(_open_files())):
        write(folder, two, state(case, two), 2)
    for item, content in files(folder).items():
        known = forced.get((item.stat().st_dev, item.stat().st_ino))
        if before.get(item) != content and known != len(content):
            os.truncate(item, 0)


@contextlib.contextmanager
def _watching(names: tuple[str, ...], seen: Callable[[], Any]) -> Iterator[None]:
    """Calls `seen` before each call of a function in C with such a name, however it was
    imported.
    """

    def look(_: Any, event: str, function: Any) -> None:
        if event == "c_call" and getattr(function, "__name__", "") in names:
            seen()

    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(None)


def _open_files() -> dict[tuple[int, int], int]:
    """The size of each file that this process has open, by device and inode."""
    results = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            stat = os.fstat(int(name))
            results[stat.st_dev, stat.st_ino] = stat.st_size
    return results
