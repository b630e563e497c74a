"""The learner's progress: one readable JSON file, the board of a lab, and reset.

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
from utils.course.catalog import ROOT, Exercise
from utils.course.shown import Shown, columns, html_table, in_html

FORMAT: Literal[1] = 1


class Entry(TypedDict):
    """What is recorded of one exercise: the best points, the last state."""

    points: int | float
    attempts: int
    state: NotRequired[str]
    versions: NotRequired[dict[str, str]]


Entries = dict[str, Entry]


class Document(TypedDict):
    """The content of a progress file; an older one has exercises only.

    lessons: such as {"03": "done"}. guesses: such as {"03": {"nodes": 8}}, None for a result that
    was shown without one. track: a key of `tracks.yaml`, "" before one is chosen.
    """

    format: Literal[1]
    exercises: Entries
    lessons: NotRequired[dict[str, Literal["begun", "done"]]]
    guesses: NotRequired[dict[str, dict[str, int | float | None]]]
    track: NotRequired[str]


_unsaved: dict[Path, Document] = {}
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


def nothing() -> Document:
    """Progress before the first step."""
    return Document(format=FORMAT, exercises={}, lessons={}, guesses={}, track="")


def read(content: bytes) -> Document:
    """The content of a progress file. Raises ValueError if it is none."""
    return Document(**{**nothing(), **msgspec.json.decode(content, type=Document)})


def _load(path: Path) -> tuple[Document, str]:
    """What a progress file holds, and a note; a file that makes no sense is moved aside."""
    if path in _unsaved:
        return _unsaved[path], ""
    if path.is_dir():
        return nothing(), f"progress cannot be read: {path.name} is a folder. Move or remove it"
    try:
        content = path.read_bytes()
        if not content.strip():  # made by `touch`, say: nothing is lost
            return nothing(), ""
        return read(content), ""
    except FileNotFoundError:
        return nothing(), ""
    except OSError as error:
        return nothing(), f"progress cannot be read: {error.strerror} ({path.name})"
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass  # no JSON, or not such a document
    aside = _free(path, "broken")
    try:
        path.rename(aside)
    except OSError as error:
        return nothing(), f"{path.name} is damaged and cannot be moved aside ({error.strerror})"
    return nothing(), (
        f"{path.name} was damaged: it was renamed to {aside.name}, and a new one was begun."
        " Run the checks again to record your points"
    )


def _write(path: Path, content: Document) -> None:
    """Replace the file in one step: a reader sees the old content or the new, never a part."""
    document = {
        **content,
        "exercises": dict(sorted(content["exercises"].items())),
        "lessons": dict(sorted(content["lessons"].items())),
    }
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
def _lock(path: Path) -> Iterator[None]:
    """Keep a second notebook out while this one reads, changes and writes."""
    with open(path.with_name(f"{path.name}.lock"), "a", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError:
            pass  # Some network file systems have no locks; writing stays atomic there.
        yield


def _update(root: Path, change: Callable[[Document], Document]) -> str:
    """Apply `change` to what is stored. Returns a note for the learner, or ""."""
    path = progress_file(root)
    if path in _unsaved:
        _unsaved[path] = change(_unsaved[path])
        return ""
    try:
        with _lock(path):
            document, note = _load(path)
            _write(path, change(document))
        return note
    except OSError as error:
        _unsaved[path] = change(_load(path)[0])
        if path.is_dir():
            reason = f"{path} is a folder. Move or remove it, then restart the kernel"
        else:
            reason = f"{path.parent} is not writable ({error.strerror})"
        return f"progress lasts only as long as this notebook runs: {reason}"


def document(root: Path = ROOT) -> tuple[Document, str]:
    """All that is recorded, and a note for the learner, or ""."""
    return _load(progress_file(root))


def entries(root: Path = ROOT) -> Entries:
    """What is recorded of exercises: exercise id to {"points", "state", "attempts", "versions"}."""
    return document(root)[0]["exercises"]


def entry(exercise_id: str, root: Path = ROOT) -> Entry:
    """What is recorded of one exercise; no points and no attempts before the first."""
    return entries(root).get(exercise_id, Entry(points=0, attempts=0))


def record(exercise_id: str, state: str, points: float, root: Path = ROOT) -> str:
    """Add one attempt; the last state and the best points are kept. Returns a note, or ""."""

    def change(old: Document) -> Document:
        before = old["exercises"].get(exercise_id, Entry(points=0.0, attempts=0))
        after = Entry(
            points=max(points, before["points"]),
            state=state,
            attempts=before["attempts"] + 1,
            versions=versions(root),
        )
        return {**old, "exercises": {**old["exercises"], exercise_id: after}}

    return _update(root, change)


def begin_lesson(lesson: str, root: Path = ROOT) -> str:
    """Record that a lesson such as "lesson03" is being taken. Returns a note, or ""."""
    return _lesson(lesson, "begun", root)


def finish_lesson(lesson: str, root: Path = ROOT) -> str:
    """Record that a lesson such as "lesson03" was taken to its end. Returns a note, or ""."""
    return _lesson(lesson, "done", root)


def _lesson(lesson: str, state: Literal["begun", "done"], root: Path) -> str:
    number = lesson.removeprefix("lesson")
    if document(root)[0]["lessons"].get(number) in (state, "done"):
        return ""
    return _update(root, lambda old: {**old, "lessons": {**old["lessons"], number: state}})


def record_guesses(lesson: str, guesses: dict[str, int | float | None], root: Path = ROOT) -> str:
    """Record what was predicted in a lesson such as "lesson03". Returns a note, or ""."""
    number = lesson.removeprefix("lesson")

    def change(old: Document) -> Document:
        before = old["guesses"].get(number, {})
        return {**old, "guesses": {**old["guesses"], number: {**before, **guesses}}}

    return _update(root, change)


def choose(track: str, root: Path = ROOT) -> str:
    """Record which track the learner is on. Returns a note, or ""."""
    return _update(root, lambda old: {**old, "track": track})


def join(content: bytes, root: Path = ROOT) -> str:
    """Join what another progress file records, keeping the better points. Returns a note, or "".

    Raises ValueError if `content` is no progress file.
    """
    other = read(content)

    def change(old: Document) -> Document:
        mine = old["exercises"]
        better = {
            item: entry
            for item, entry in other["exercises"].items()
            if item not in mine or entry["points"] > mine[item]["points"]
        }
        done = {item: state for item, state in old["lessons"].items() if state == "done"}
        return {
            **old,
            "exercises": {**mine, **better},
            "lessons": {**old["lessons"], **other["lessons"], **done},
            "guesses": {**other["guesses"], **old["guesses"]},
            "track": old["track"] or other["track"],
        }

    return _update(root, change)


EVERYTHING = "all"


def _matches(target: str, exercise_id: str) -> bool:
    return target in (EVERYTHING, exercise_id, exercise_id.partition(".")[0])


def _names(document: Document) -> list[str]:
    """What there is progress in: "lab03.ex2", "lesson03"."""
    return [*document["exercises"], *(f"lesson{number}" for number in document["lessons"])]


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
        elif target != EVERYTHING and target not in _names(document(root)[0]):
            catalog.lab(target, root)
    except catalog.CatalogError as error:
        return Shown(f"nothing was reset: {error}")
    gone = [item for item in _names(document(root)[0]) if _matches(target, item)]
    if not gone:
        place = "any lab" if target == EVERYTHING else target
        return Shown(f"nothing was reset: there is no progress in {place} yet")

    def change(old: Document) -> Document:
        if path not in _unsaved:
            _write(_free(path, "backup"), old)
        kept = {item: e for item, e in old["exercises"].items() if not _matches(target, item)}
        lessons = {n: s for n, s in old["lessons"].items() if not _matches(target, f"lesson{n}")}
        guesses = {n: g for n, g in old["guesses"].items() if not _matches(target, f"lesson{n}")}
        return {**old, "exercises": kept, "lessons": lessons, "guesses": guesses}

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
    old = kept["exercises"]
    back = sorted(set(_names(kept)) - set(_names(document(root)[0])))

    def change(now: Document) -> Document:
        better = {
            item: entry
            for item, entry in now["exercises"].items()
            if item not in old or entry["points"] >= old[item]["points"]
        }
        lessons = {**now["lessons"], **kept["lessons"]}
        guesses = {**kept["guesses"], **now["guesses"]}
        return {**now, "exercises": {**old, **better}, "lessons": lessons, "guesses": guesses}

    note = _update(root, change)
    backups[-1].unlink(missing_ok=True)
    return Shown("\n".join(filter(None, (f"restored: {', '.join(back) or 'nothing'}", note))))


SYMBOLS = {"passed": "●", "tried": "◐", "not tried": "○"}


def exercise_state(exercise: Exercise, entry: Entry | None) -> str:
    """One of `SYMBOLS`."""
    if not entry:
        return "not tried"
    return "passed" if entry["points"] >= exercise.points else "tried"


EXERCISE_HEAD = ("state", "exercise", "title", "points", "attempts", "time")


def exercise_row(exercise: Exercise, entry: Entry | None) -> tuple[str, ...]:
    """What is shown of an exercise, under `EXERCISE_HEAD`."""
    state = exercise_state(exercise, entry)
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
    """The exercises of the lab `name`, and the next open one."""
    if not isinstance(name, str) or not name:
        call = f"board({name!r})" if name else "board()"
        page = "notebooks/00_start_here.ipynb"
        return Shown(f'{call}: name a lab, as in board("lab03"); {page} shows the whole course')
    try:
        lab = catalog.lab(name, root)
    except catalog.CatalogError as error:
        return Shown(str(error))
    everything, note = document(root)
    done = everything["exercises"]
    won = sum(done[exercise.id]["points"] for exercise in lab.exercises if exercise.id in done)
    left = [e for e in lab.exercises if exercise_state(e, done.get(e.id)) != "passed"]
    caption = f"{lab.name} · {lab.title} · {won:g} / {lab.points:g} points" + (
        f" · {sum(element.minutes for element in left)} min left" if left else " · complete"
    )
    rows = [exercise_row(exercise, done.get(exercise.id)) for exercise in lab.exercises]
    if left:
        last = f"next: {left[0].id} · {left[0].title} · {left[0].minutes} min"
    else:
        last = "all exercises are passed"
    ending = [last, *([note] if note else [])]
    html = html_table(EXERCISE_HEAD, rows, caption)
    html += "".join(f"<p>{in_html(line)}</p>" for line in ending)
    return Shown("\n".join([caption, *columns(rows), *ending]), html)
