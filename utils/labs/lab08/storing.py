"""What `latest` of exercise 2 finds: in whole files, in damaged ones, in what `writing` left."""

import contextlib
import os
import pickle
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from utils.labs import Answer, Facts
from utils.labs.forbidden import forbid
from utils.labs.plain import describe, number

SHUT = (
    "utils.training.checkpoint.background",
    "utils.training.checkpoint.files",
    "utils.training.checkpoint.folder",
)
FOREIGN = ("notes.txt", "core", ".nfs0000000001")
"""Files of somebody else that may lie in the folder."""

EDGE = 64
"""Bytes at either end of a file of which each has a bit flipped."""

Snapshot = dict[Path, bytes]


def state(case: Facts, step: int) -> bytes:
    """What is to be stored after a step."""
    content = random.Random(f"{case['seed']} {step}").randbytes(case["bytes"] + step)
    return pickle.dumps({"step": step, "weights": content})


def all_else(latest: Answer, write: Answer, case: Facts, scratch: Path, raised: str) -> Facts:
    """What is found in whole files, and in those that `write_apart` left.

    raised: what `write_apart` returned.
    """
    os.chdir(make_folder(scratch, "elsewhere"))
    one, two, three = case["steps"]
    with forbid("lab08.ex2", *SHUT):
        trials = _Trials(write, latest, case)
        full = scratch / "full"
        return {
            "plain": list(trials.plain(make_folder(scratch, "plain"))),
            "kept": trials.kept_bytes,
            "damage": list(trials.damage(scratch / "damage", scratch / "older")),
            "killed": [
                trials.after_kill(scratch / f"kill{place}", kill)
                for place, kill in enumerate(case["kills"])
            ],
            "full": {
                "raised": raised,
                "response": trials.read_back(full, one, two),
                "again": trials.again(full, three),
            },
            "power": {"response": trials.read_back(scratch / "power", one, two)},
        }


def make_folder(scratch: Path, name: str) -> Path:
    """A new, empty folder. Raises FileExistsError if there is one of that name."""
    folder = scratch / name
    folder.mkdir()
    return folder


def files(folder: Path) -> Snapshot:
    """Everything that lies in a folder and below it, each file with its bytes."""
    return {item: item.read_bytes() for item in sorted(folder.rglob("*")) if item.is_file()}


def _put_back(folder: Path, before: Snapshot) -> None:
    for file in [item for item in files(folder) if item not in before]:
        file.unlink()
    for file, content in before.items():
        file.write_bytes(content)


class _Trials:
    def __init__(self, write: Answer, latest: Answer, case: Facts) -> None:
        self.write, self.latest, self.case = write, latest, case
        self.kept_bytes: list[int] = []

    def put(self, folder: Path, step: int, keep: int = 2) -> None:
        self.write(folder, step, state(self.case, step), keep)

    def read_back(self, folder: Path, *stored: int) -> Facts:
        """What `latest` says: {"step": one of those stored or None}, or what it is instead."""
        try:
            result = self.latest(folder)
        except Exception as error:
            return {"raised": type(error).__name__, "value": isinstance(error, ValueError)}
        if result is None:
            return {"step": None}
        if not isinstance(result, tuple | list) or len(result) != 2:
            return {"other": describe(result)}
        step, content = result
        if type(step) is not int or not isinstance(content, bytes | bytearray | memoryview):
            return {"other": f"({describe(step)}, {describe(content)})"}
        right = step in stored and bytes(content) == state(self.case, step)
        return {"step": number(step), "right": right}

    def plain(self, folder: Path) -> Iterator[Facts]:
        """Whole files, of growing steps, with foreign ones between, and times that lie."""
        yield {"what": "empty", "response": self.read_back(folder)}
        one, two, three = self.case["steps"]
        self.put(folder, one)
        yield {"what": "one", "response": self.read_back(folder, one)}
        with _writing_outside(folder) as outside:
            self.put(folder, one)
        yield {"what": "outside", "response": {"files": len(outside)}}
        self.put(folder, two)
        yield {"what": "two", "response": self.read_back(folder, one, two)}
        written = files(folder)
        for age, item in enumerate(sorted(written, key=lambda entry: entry.stat().st_mtime_ns)):
            os.utime(item, (1e9 - age, 1e9 - age))
        yield {"what": "times", "response": self.read_back(folder, one, two)}
        for name in FOREIGN:
            (folder / name).write_bytes(b"\x80not a checkpoint")
        (folder / "older").mkdir()
        yield {"what": "foreign", "response": self.read_back(folder, one, two)}
        self.put(folder, three)
        yield {"what": "three", "response": self.read_back(folder, two, three)}
        gone = [name for name in FOREIGN if not (folder / name).exists()]
        yield {"what": "spared", "response": {"files": len(gone)}}
        for step in range(three + 1, three + 4):
            self.put(folder, step)
        sizes = [len(c) for entry, c in files(folder).items() if entry.name not in FOREIGN]
        self.kept_bytes = [sum(sizes), 2 * len(state(self.case, three))]

    def damage(self, folder: Path, before: Path) -> Iterator[Facts]:
        """The newest of two checkpoints is damaged, each time in another way.

        before: the folder as it was when only the older one was there.
        """
        one, two, _ = self.case["steps"]
        older = {folder / entry.relative_to(before): c for entry, c in files(before).items()}
        whole = files(folder)
        newer = {entry: c for entry, c in whole.items() if c and older.get(entry) != c}
        largest = max(newer, key=lambda entry: len(newer[entry]), default=None)
        for harm in self.case["harms"] if largest else []:
            assert largest is not None
            for place, content in _damage(newer, largest, harm):
                place.write_bytes(content)
            yield {"what": harm, "response": self.read_back(folder, one, two)}
            _put_back(folder, whole)
        # Names, lengths and sums stand at the beginning or the end of a file.
        for item, content in newer.items():
            for at in sorted({*range(len(content))[:EDGE], *range(len(content))[-EDGE:]}):
                harm = {"kind": "flip", "share": round(at / len(content), 4)}
                changed = bytearray(content)
                changed[at] ^= 1 << (at + self.case["seed"]) % 8
                item.write_bytes(changed)
                yield {"what": harm, "response": self.read_back(folder, one, two)}
                item.write_bytes(content)
        for item in whole:
            item.write_bytes(whole[item][: len(whole[item]) // 2])
        yield {"what": {"kind": "all"}, "response": self.read_back(folder, one, two)}

    def after_kill(self, folder: Path, kill: Facts) -> Facts:
        response = self.read_back(folder, kill["last"], kill["new"])
        return {"response": response, "again": self.again(folder, kill["new"] + 1)}

    def again(self, folder: Path, step: int) -> Facts:
        """What `latest` says after one more write."""
        try:
            self.put(folder, step, 1)
        except Exception as error:
            return {"raised": type(error).__name__}
        return self.read_back(folder, step)


def _damage(newer: Snapshot, largest: Path, harm: Facts) -> Iterator[tuple[Path, bytes]]:
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
        for item in newer:
            place, content = item, newer[item]
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
