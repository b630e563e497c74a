"""The learner's progress: one readable JSON file, the board that shows it, and reset.

The environment variable COURSE_PROGRESS names another file; tests, papermill, nbval and grading
use it, so that they never touch a learner's own progress.
"""

import fcntl
import json
import os
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Literal, NotRequired, TypedDict

import msgspec

from utils.course import catalog
from utils.course.catalog import ROOT, Exercise, Lab
from utils.course.shown import Shown, columns, html_table, in_html

FORMAT = 1


class Entry(TypedDict):
    """What is recorded of one exercise: the best points, the last state."""

    points: int | float
    attempts: int
    state: NotRequired[str]
    versions: NotRequired[dict[str, str]]


Entries = dict[str, Entry]


class _Document(TypedDict):
    """The content of a progress file."""

    format: Literal[1]
    exercises: Entries


_unsaved: dict[Path, Entries] = {}
"""Progress of this process where the file cannot be written: it lasts as long as the kernel."""


def progress_file(root: Path = ROOT) -> Path:
    """Where progress is kept: $COURSE_PROGRESS if set, else .progress.json in the course root."""
    return Path(os.environ.get("COURSE_PROGRESS") or root / ".progress.json").absolute()


def versions(root: Path = ROOT) -> dict[str, str]:
    """The versions that a result was obtained with; "none" for what is not installed."""
    results = {}
    for package in ("torch", "torch-xla"):
        try:
            results[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            results[package] = "none"
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
        results["course"] = project["project"]["version"]
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        results["course"] = "none"
    return results


def _free(path: Path, ending: str) -> Path:
    """The first of path.ending-1, path.ending-2, ... that does not exist."""
    number = 1
    while (candidate := path.with_name(f"{path.name}.{ending}-{number}")).exists():
        number += 1
    return candidate


def _load(path: Path) -> tuple[Entries, str]:
    """The entries of a progress file, and a note; a file that makes no sense is moved aside."""
    if path in _unsaved:
        return _unsaved[path], ""
    if path.is_dir():
        return {}, f"progress cannot be read: {path.name} is a folder. Move or remove it"
    try:
        content = path.read_bytes()
        if not content.strip():  # made by `touch`, say: nothing is lost
            return {}, ""
        return msgspec.json.decode(content, type=_Document)["exercises"], ""
    except FileNotFoundError:
        return {}, ""
    except OSError as error:
        return {}, f"progress cannot be read: {error.strerror} ({path.name})"
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass  # no JSON, or not such a document
    aside = _free(path, "broken")
    try:
        path.rename(aside)
    except OSError as error:
        return {}, f"{path.name} is damaged and cannot be moved aside ({error.strerror})"
    return {}, (
        f"{path.name} was damaged: it now lies beside it as {aside.name}, and a new one was begun."
        " Run the checks again to fill it"
    )


def _write(path: Path, entries: Entries) -> None:
    """Replace the file in one step: a reader sees the old content or the new, never a part."""
    document = {"format": FORMAT, "exercises": dict(sorted(entries.items()))}
    handle, name = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=2, ensure_ascii=False)
            file.write("\n")
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep a second notebook out while this one reads, changes and writes."""
    with open(path.with_name(f"{path.name}.lock"), "a", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError:
            pass  # Some network file systems have no locks; writing stays atomic there.
        yield


def _update(root: Path, change: Callable[[Entries], Entries]) -> str:
    """Apply `change` to the stored entries. Returns a note for the learner, or ""."""
    path = progress_file(root)
    if path in _unsaved:
        _unsaved[path] = change(_unsaved[path])
        return ""
    try:
        with _locked(path):
            entries, note = _load(path)
            _write(path, change(entries))
        return note
    except OSError as error:
        _unsaved[path] = change(_load(path)[0])
        if path.is_dir():
            reason = f"{path} is a folder. Move or remove it, then restart the kernel"
        else:
            reason = f"{path.parent} is not writable ({error.strerror})"
        return f"progress lasts only as long as this notebook runs: {reason}"


def entries(root: Path = ROOT) -> Entries:
    """What is recorded: exercise id to {"points", "state", "attempts", "versions"}."""
    return _load(progress_file(root))[0]


def entry(exercise_id: str, root: Path = ROOT) -> Entry:
    """What is recorded of one exercise; no points and no attempts before the first."""
    return entries(root).get(exercise_id, Entry(points=0, attempts=0))


def record(exercise_id: str, state: str, points: float, root: Path = ROOT) -> str:
    """Add one attempt; the last state and the best points are kept. Returns a note, or ""."""

    def change(old: Entries) -> Entries:
        before = old.get(exercise_id, Entry(points=0.0, attempts=0))
        after = Entry(
            points=max(points, before["points"]),
            state=state,
            attempts=before["attempts"] + 1,
            versions=versions(root),
        )
        return {**old, exercise_id: after}

    return _update(root, change)


def join(content: bytes, root: Path = ROOT) -> str:
    """Join what another progress file records, keeping the better points. Returns a note, or "".

    Raises ValueError if `content` is no progress file.
    """
    other = msgspec.json.decode(content, type=_Document)["exercises"]

    def change(old: Entries) -> Entries:
        better = {
            item: entry
            for item, entry in other.items()
            if item not in old or entry["points"] > old[item]["points"]
        }
        return {**old, **better}

    return _update(root, change)


EVERYTHING = "all"


def _matches(target: str, exercise_id: str) -> bool:
    return target in (EVERYTHING, exercise_id, exercise_id.partition(".")[0])


def reset(target: str = "", root: Path = ROOT) -> Shown:
    """Forget an exercise ("lab03.ex2"), a lab ("lab03") or everything ("all"); keeps a backup."""
    path = progress_file(root)
    if not isinstance(target, str) or not target:
        text = "nothing was reset" if target == "" else f"nothing was reset by reset({target!r})"
        return Shown(
            f'{text}: name an exercise, as in reset("lab03.ex2"), or a lab, as in reset("lab03");'
            f' reset("{EVERYTHING}") forgets everything'
        )
    try:
        if "." in target:
            catalog.exercise(target, root)
        elif target != EVERYTHING:
            catalog.lab(target, root)
    except catalog.CatalogError as error:
        return Shown(f"nothing was reset: {error}")
    gone = [item for item in entries(root) if _matches(target, item)]
    if not gone:
        place = "any lab" if target == EVERYTHING else target
        return Shown(f"nothing was reset: there is no progress in {place} yet")

    def change(old: Entries) -> Entries:
        if path not in _unsaved:
            _write(_free(path, "backup"), old)
        return {item: entry for item, entry in old.items() if not _matches(target, item)}

    note = _update(root, change)
    undo = "to undo: from utils.course.progress import undo_reset; undo_reset()"
    return Shown("\n".join(filter(None, (f"forgotten: {', '.join(sorted(gone))}", undo, note))))


def undo_reset(root: Path = ROOT) -> Shown:
    """Bring back what the last reset forgot. Better results reached since then stay."""
    path = progress_file(root)
    backups = sorted(
        path.parent.glob(f"{path.name}.backup-*"),
        key=lambda item: int(item.name.rpartition("-")[2]),
    )
    if not backups:
        return Shown("there is no reset to undo")
    kept = _load(backups[-1])[0]
    back = sorted(set(kept) - set(entries(root)))

    def change(now: Entries) -> Entries:
        better = {
            item: entry
            for item, entry in now.items()
            if item not in kept or entry["points"] >= kept[item]["points"]
        }
        return {**kept, **better}

    note = _update(root, change)
    backups[-1].unlink(missing_ok=True)
    return Shown("\n".join(filter(None, (f"back again: {', '.join(back) or 'nothing'}", note))))


SYMBOLS = {"passed": "●", "tried": "◐", "not tried": "○"}


def _state(exercise: Exercise, entry: Entry | None) -> str:
    if not entry:
        return "not tried"
    return "passed" if entry["points"] >= exercise.points else "tried"


def _row(exercise: Exercise, entry: Entry | None) -> tuple[str, ...]:
    state = _state(exercise, entry)
    won, attempts = (entry["points"], entry["attempts"]) if entry else (0, 0)
    return (
        f"{SYMBOLS[state]} {state}",
        exercise.id,
        exercise.title,
        f"{won:g} / {exercise.points:g} points",
        f"{attempts} attempt{'' if attempts == 1 else 's'}" if attempts else "",
        "" if state == "passed" else f"{exercise.minutes} min left",
    )


def board(name: str = "", root: Path = ROOT) -> Shown:
    """The board: every exercise of every lab, or of the lab `name`, and the next open one."""
    if not isinstance(name, str):
        return Shown(f'board({name!r}): name a lab, as in board("lab03"), or none: board()')
    try:
        shown: tuple[Lab, ...] = (catalog.lab(name, root),) if name else catalog.labs(root)
    except catalog.CatalogError as error:
        return Shown(str(error))
    done, note = _load(progress_file(root))
    lines, tables = [], []
    for lab in shown:
        won = sum(done[exercise.id]["points"] for exercise in lab.exercises if exercise.id in done)
        left = [e for e in lab.exercises if _state(e, done.get(e.id)) != "passed"]
        caption = f"{lab.name} · {lab.title} · {won:g} / {lab.points:g} points" + (
            f" · {sum(element.minutes for element in left)} min left" if left else " · complete"
        )
        rows = [_row(exercise, done.get(exercise.id)) for exercise in lab.exercises]
        lines += [caption, *columns(rows)]
        head = ("state", "exercise", "title", "points", "attempts", "time")
        tables.append(html_table(head, rows, caption))
    open_ones = [
        (lab, exercise)
        for lab in shown
        for exercise in lab.exercises
        if _state(exercise, done.get(exercise.id)) != "passed"
    ]
    if open_ones:
        lab, item = open_ones[0]
        last = f"next: {item.id} · {item.title} · {item.minutes} min · {lab.path.relative_to(root)}"
    else:
        last = "all exercises are passed" if shown else "there are no labs here"
    ending = [last, *([note] if note else [])]
    html = "".join(tables) + "".join(f"<p>{in_html(line)}</p>" for line in ending)
    return Shown("\n".join([*lines, *ending]), html)
