"""Exercise 2 as it runs in processes of its own: checkpoints are written, and what can befall a
file befalls it.
"""

import contextlib
import os
import pickle
import random
import resource
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from utils.checkpoint.kills import die, full_at_byte, killed_at_byte
from utils.exercises import Answer, Facts
from utils.exercises.closed import closed
from utils.exercises.plain import describe, number

SHUT = ("utils.checkpoint.background", "utils.checkpoint.files", "utils.checkpoint.folder")
FOREIGN = ("notes.txt", "core", ".nfs0000000001")
"""Files of somebody else that may lie in the folder."""

EDGE = 64
"""Bytes at either end of a file of which each has a bit flipped."""

Snapshot = dict[Path, bytes]


def state(case: Facts, step: int) -> bytes:
    """What is to be stored after a step."""
    content = random.Random(f"{case['seed']} {step}").randbytes(case["bytes"] + step)
    return pickle.dumps({"step": step, "weights": content})


def killed(_: Answer, write: Answer, case: Facts, folder: Path, kill: Facts) -> None:
    """Write one checkpoint and die in the next; returns if it could not be killed."""
    os.chdir(folder.parent)
    with closed("lab08.ex2", *SHUT):
        write(folder, kill["last"], state(case, kill["last"]), 1)
        events = {"rename": ("os.rename", "os.link"), "remove": ("os.remove", "os.truncate")}
        if "share" in kill:
            killed_at_byte(int(kill["share"] * case["bytes"]))
        else:
            fatal = events[kill["at"]]
            sys.addaudithook(lambda event, _: die() if event in fatal else None)
        write(folder, kill["new"], state(case, kill["new"]), 1)


def all_else(latest: Answer, write: Answer, case: Facts, scratch: Path) -> Facts:
    """Everything but the kills, and what is found after these in the folders kill0, kill1, ..."""
    os.chdir(_made(scratch, "elsewhere"))
    with closed("lab08.ex2", *SHUT):
        trials = _Trials(write, latest, case)
        return {
            "plain": list(trials.plain(_made(scratch, "plain"))),
            "kept": trials.kept_bytes,
            "damage": list(trials.damage(_made(scratch, "damage"))),
            "killed": [
                trials.after_kill(scratch / f"kill{place}", kill)
                for place, kill in enumerate(case["kills"])
            ],
            "full": trials.full(_made(scratch, "full")),
            "power": trials.power(_made(scratch, "power")),
        }


def _made(scratch: Path, name: str) -> Path:
    folder = scratch / name
    folder.mkdir()
    return folder


def _files(folder: Path) -> Snapshot:
    return {each: each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file()}


def _put_back(folder: Path, before: Snapshot) -> None:
    for each in [each for each in _files(folder) if each not in before]:
        each.unlink()
    for each, content in before.items():
        each.write_bytes(content)


class _Trials:
    def __init__(self, write: Answer, latest: Answer, case: Facts) -> None:
        self.write, self.latest, self.case = write, latest, case
        self.kept_bytes: list[int] = []

    def put(self, folder: Path, step: int, keep: int = 2) -> None:
        self.write(folder, step, state(self.case, step), keep)

    def said(self, folder: Path, *stored: int) -> Facts:
        """What `latest` says: {"step": one of those stored or None}, or what it is instead."""
        try:
            found = self.latest(folder)
        except Exception as error:
            return {"raised": type(error).__name__, "value": isinstance(error, ValueError)}
        if found is None:
            return {"step": None}
        if not isinstance(found, tuple | list) or len(found) != 2:
            return {"other": describe(found)}
        step, content = found
        if type(step) is not int or not isinstance(content, bytes | bytearray | memoryview):
            return {"other": f"({describe(step)}, {describe(content)})"}
        right = step in stored and bytes(content) == state(self.case, step)
        return {"step": number(step), "right": right}

    def plain(self, folder: Path) -> Iterator[Facts]:
        """Whole files, of growing steps, with foreign ones between, and times that lie."""
        yield {"what": "empty", "said": self.said(folder)}
        one, two, three = self.case["steps"]
        self.put(folder, one)
        yield {"what": "one", "said": self.said(folder, one)}
        with _writing_outside(folder) as outside:
            self.put(folder, one)
        yield {"what": "outside", "said": {"files": len(outside)}}
        self.put(folder, two)
        yield {"what": "two", "said": self.said(folder, one, two)}
        written = _files(folder)
        for age, each in enumerate(sorted(written, key=lambda each: each.stat().st_mtime_ns)):
            os.utime(each, (1e9 - age, 1e9 - age))
        yield {"what": "times", "said": self.said(folder, one, two)}
        for name in FOREIGN:
            (folder / name).write_bytes(b"\x80not a checkpoint")
        (folder / "older").mkdir()
        yield {"what": "foreign", "said": self.said(folder, one, two)}
        self.put(folder, three)
        yield {"what": "three", "said": self.said(folder, two, three)}
        gone = [name for name in FOREIGN if not (folder / name).exists()]
        yield {"what": "spared", "said": {"files": len(gone)}}
        for step in range(three + 1, three + 4):
            self.put(folder, step)
        sizes = [len(c) for each, c in _files(folder).items() if each.name not in FOREIGN]
        self.kept_bytes = [sum(sizes), 2 * len(state(self.case, three))]

    def damage(self, folder: Path) -> Iterator[Facts]:
        """The newest of two checkpoints is damaged, each time in another way."""
        one, two, _ = self.case["steps"]
        self.put(folder, one)
        older = _files(folder)
        self.put(folder, two)
        whole = _files(folder)
        newer = {each: content for each, content in whole.items() if older.get(each) != content}
        largest = max(newer, key=lambda each: len(newer[each]), default=None)
        for harm in self.case["harms"] if largest else []:
            for place, content in _harmed(newer, largest, harm):
                place.write_bytes(content)
            yield {"what": harm, "said": self.said(folder, one, two)}
            _put_back(folder, whole)
        # Names, lengths and sums stand at the beginning or the end of a file.
        for each, content in newer.items():
            for at in sorted({*range(len(content))[:EDGE], *range(len(content))[-EDGE:]}):
                harm = {"kind": "flip", "share": round(at / len(content), 4)}
                changed = bytearray(content)
                changed[at] ^= 1 << (at + self.case["seed"]) % 8
                each.write_bytes(changed)
                yield {"what": harm, "said": self.said(folder, one, two)}
                each.write_bytes(content)
        for each in whole:
            each.write_bytes(whole[each][: len(whole[each]) // 2])
        yield {"what": {"kind": "all"}, "said": self.said(folder, one, two)}

    def after_kill(self, folder: Path, kill: Facts) -> Facts:
        said = self.said(folder, kill["last"], kill["new"])
        return {"said": said, "again": self._again(folder, kill["new"] + 1)}

    def _again(self, folder: Path, step: int) -> Facts:
        """What `latest` says after one more write."""
        try:
            self.put(folder, step, 1)
        except Exception as error:
            return {"raised": type(error).__name__}
        return self.said(folder, step)

    def full(self, folder: Path) -> Facts:
        """The disk takes no more in the middle of a write."""
        one, two, three = self.case["steps"]
        self.put(folder, one, 1)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        full_at_byte(int(self.case["full"] * self.case["bytes"]))
        raised = ""
        try:
            self.put(folder, two, 1)
        except Exception as error:
            raised = type(error).__name__
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        said = self.said(folder, one, two)
        return {"raised": raised, "said": said, "again": self._again(folder, three)}

    def power(self, folder: Path) -> Facts:
        """A write comes back, then the power fails: files that were not forced to the disk since
        they were written last are empty.
        """
        one, two, _ = self.case["steps"]
        self.put(folder, one)
        before, forced = _files(folder), {}
        with _watching(("fsync", "fdatasync", "sync"), lambda: forced.update(_open_files())):
            self.put(folder, two)
        for each, content in _files(folder).items():
            known = forced.get((each.stat().st_dev, each.stat().st_ino))
            if before.get(each) != content and known != len(content):
                os.truncate(each, 0)
        return {"said": self.said(folder, one, two)}


def _harmed(newer: Snapshot, largest: Path, harm: Facts) -> Iterator[tuple[Path, bytes]]:
    """The files that a harm changes, with their content after it."""
    kind, share = harm["kind"], harm.get("share", 0.0)
    place, content = largest, newer[largest]
    if kind == "cut":
        at = len(content) - 1 if share == 1 else int(share * len(content))
        yield place, content[:at]
    elif kind == "longer":
        yield place, content + content[-40:]
    else:
        # In any of the files that were written, at this share of all bytes.
        at = int(share * sum(map(len, newer.values())))
        for each in newer:
            place, content = each, newer[each]
            if at < len(content):
                break
            at -= len(content)
        changed = bytearray(content)
        if kind == "flip":
            changed[at] ^= 1 << harm["bit"]
        elif kind == "zeros":
            changed[at : at + 64] = bytes(len(changed[at : at + 64]))
        else:
            other = next((k for k in range(at + 1, len(content)) if content[k] != content[at]), at)
            changed[at], changed[other] = changed[other], changed[at]
        yield place, bytes(changed)


@contextlib.contextmanager
def _writing_outside(folder: Path) -> Iterator[list[str]]:
    """The files outside of a folder that are opened for writing within the block."""
    outside: list[str] = []
    on = [True]

    def look(event: str, arguments: tuple) -> None:
        if on[0] and event == "open" and isinstance(arguments[0], str):
            path = os.path.abspath(arguments[0])
            writes = arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if writes and not path.startswith((f"{folder}{os.sep}", "/dev/")):
                outside.append(path)

    sys.addaudithook(look)  # it stays for as long as the process lives
    try:
        yield outside
    finally:
        on[0] = False


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
    found = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            stat = os.fstat(int(name))
            found[stat.st_dev, stat.st_ino] = stat.st_size
    return found
