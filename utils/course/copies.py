"""The learner's own copies of lessons and labs: made, brought up to date, restored.

They lie in work/, which git ignores, in the same tree as the course, so that links and relative
paths between them lead where they did. `work/.published` holds the editions that they were made
from: with these a new edition is merged into what a learner edited (`merge`).

A kill at any point loses nothing: files are written whole or not at all, the learner's before the
edition that it was made from, and what is moved keeps its content under another name. Doing it
again then ends where it would have ended.

Edits in `notebooks/` and `labs/` themselves, where earlier courses had learners work, are taken
over: only of notebooks that a Jupyter saved (the course itself writes another form), that git knows
and sees changed, and only if nothing else in the tree is changed, as it would be by somebody who
works on the course. What lay there is kept in work/taken-over, and git restores the file. Without
git the file stays where it is. COURSE_MAINTAINER=1 ends all this: then `notebooks/` and `labs/` are
published as they are.

Standard library only.
"""

import errno
import fcntl
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from utils.course import merge
from utils.course.catalog import ROOT
from utils.course.merge import Damaged, Notebook

FOLDER, PUBLISHED, TAKEN_OVER = "work", ".published", "taken-over"
SECONDS = 300


class CopiesError(Exception):
    """Something cannot be done; the text says what, that nothing is lost, and what to do."""


@dataclass(frozen=True)
class Change:
    """What was done with a file. `name`: its place in work/; `notes`: more to know about it."""

    done: str
    name: str
    notes: tuple[str, ...] = ()


# ---- files


def folder(root: Path = ROOT) -> Path:
    """Where the copies lie."""
    return root / FOLDER


def edition(root: Path, name: str) -> Path:
    """Where the edition lies that a copy was made from."""
    return folder(root) / PUBLISHED / name


@contextmanager
def alone(root: Path) -> Iterator[None]:
    """Keep a second command out of work/; an error of the disk becomes a CopiesError."""
    try:
        folder(root).mkdir(exist_ok=True)
        with open(folder(root) / ".lock", "a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
            except OSError:
                pass  # some network file systems have no locks
            yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        place = f" ({error.filename})" if error.filename else ""
        reason = "the disk is full" if full else f"{error.strerror or error}{place}"
        advice = "free some space" if full else "fix that"
        raise CopiesError(f"{reason}. Nothing is lost: {advice}, then do the same again") from error


def read_file(path: Path) -> bytes | None:
    """The content of a file, or None if there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def put(path: Path, content: bytes, before: bytes | None = None, aside: Path | None = None) -> bool:
    """Write a file, whole or not at all. False: it is no longer as it was `before`; not written.

    aside: where the present file is moved to first, if it is to be kept.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    try:
        with open(part, "wb") as file:
            file.write(content)
            if before is not None:  # what is replaced may be an answer: first be sure of the new
                file.flush()
                os.fsync(file.fileno())
        if before is not None and read_file(path) != before:
            return False
        if aside:
            os.replace(path, aside)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return True


def free(path: Path, ending: str, content: bytes | None = None) -> Path:
    """The first of name.ending-1.ipynb, ... that does not exist, or that holds `content`."""
    number = 1
    while True:
        candidate = path.with_name(f"{path.stem}.{ending}-{number}{path.suffix}")
        present = read_file(candidate)
        if present is None or present == content:
            return candidate
        number += 1


def notebook_of(name: str, content: bytes | None) -> Notebook | None:
    """A notebook's content as one; None for other files, damaged ones and none at all."""
    if content is None or not name.endswith(".ipynb"):
        return None
    try:
        return merge.read(content)
    except Damaged:
        return None


def same(name: str, one: bytes | None, other: bytes | None) -> bool:
    """Whether two files hold the same, of notebooks: whether no cell's text differs."""
    first, second = notebook_of(name, one), notebook_of(name, other)
    if first is None or second is None:
        return one == other
    return merge.contents(first) == merge.contents(second)


# ---- git


def git(root: Path, *arguments: str) -> subprocess.CompletedProcess[bytes] | None:
    """Run git; None if there is no git, or if it does not end."""
    asks_nothing = {"GIT_TERMINAL_PROMPT": "0", "GIT_SSH_COMMAND": "ssh -oBatchMode=yes"}
    command, env = ["git", "-C", str(root), *arguments], asks_nothing | os.environ
    try:
        return subprocess.run(command, env=env, capture_output=True, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None


def is_clone(root: Path) -> bool:
    """Whether the course's folder is the top of a git repository with at least one commit."""
    top = git(root, "rev-parse", "--show-prefix", "HEAD")
    return top is not None and top.returncode == 0 and top.stdout.startswith(b"\n")


def changed_files(root: Path) -> list[str]:
    """The files that git knows and that differ from the last commit."""
    diff = git(root, "diff", "--name-only", "-z", "HEAD")
    names = diff.stdout.decode(errors="replace").split("\0") if diff else []
    return [name for name in names if name]


def read_committed(root: Path, name: str) -> bytes | None:
    """A file as it was committed last; None where it was not, or where there is no git."""
    shown = git(root, "show", f"HEAD:{name}") if is_clone(root) else None
    return shown.stdout if shown and shown.returncode == 0 else None


def pull(root: Path = ROOT) -> str:
    """Fetch the newest course, if this is a clone of it. Returns what happened, in a sentence."""
    if not is_clone(root):
        return "The course's folder is not a git clone: its present version counts as the newest."
    if names := changed_files(root):
        shown = ", ".join(names[:3]) + (" and more" if len(names) > 3 else "")
        return f"Nothing was fetched, because files of the course are changed here: {shown}."
    done = git(root, "pull", "--ff-only", "--quiet")
    if done is None:
        return f"Nothing was fetched: no answer within {SECONDS} s. What is here counts."
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["git says nothing"]
        return f"Nothing was fetched: {lines[0]}. What is here counts."
    return "The course's folder is up to date."


# ---- what the course publishes


def _is_maintained() -> bool:
    return os.environ.get("COURSE_MAINTAINER") == "1"


def sources(root: Path) -> list[str]:
    """The places of all lessons, labs and scripts; whatever else lies there is not the course's."""
    paths = sorted((root / "notebooks").glob("*.ipynb"))
    paths += sorted(p for p in (root / "labs").glob("*/*.ipynb") if p.stem == p.parent.name)
    paths += sorted((root / "notebooks" / "scripts").glob("*.*"))
    return [path.relative_to(root).as_posix() for path in paths if path.is_file()]


def course_key(name: str, content: bytes | None) -> tuple[str, str] | None:
    """(kind, number) of a lesson or lab, which a new name does not change; (kind, name) of a page;
    None for what is no notebook of the course.
    """
    notebook = notebook_of(name, content)
    course = notebook["metadata"].get("course") if notebook else None
    if not isinstance(course, dict) or "kind" not in course:
        return None
    number = str(course.get("number", "-"))
    return str(course["kind"]), number if number.isdigit() else PurePosixPath(name).stem


def read_release(root: Path, name: str) -> bytes | None:
    """A file as learners get it now; None if what lies there was not made by the course."""
    content = read_file(root / name)
    if not name.endswith(".ipynb"):
        return content
    notebook = notebook_of(name, content)
    if notebook is None or merge.saved_by_jupyter(notebook) and not _is_maintained():
        return _as_published(name, read_committed(root, name))
    return _as_published(name, content)


def _as_published(name: str, content: bytes | None) -> bytes | None:
    notebook = notebook_of(name, content)
    if notebook is None or course_key(name, content) is None:
        return None
    return merge.write(merge.learner_copy(notebook, name.count("/")))


# ---- bringing up to date


def sync(root: Path = ROOT) -> list[Change]:
    """Take over old edits, then bring work/ to what the course's folder holds."""
    changes = take_over(root)
    names = sources(root)
    new = {name: content for name in names if (content := read_release(root, name)) is not None}
    store = folder(root) / PUBLISHED
    paths = [path for path in store.rglob("*") if path.is_file() and not path.name.startswith(".")]
    gone = {path.relative_to(store).as_posix() for path in paths}.difference(names)
    places = {
        course_key(name, content): name
        for name, content in new.items()
        if not edition(root, name).exists()
    }
    for name in sorted(gone):
        key = course_key(name, read_file(edition(root, name)))
        if key and key in places:
            changes += _rename(root, name, places[key])
        else:
            changes += _retire(root, name)
    for name, content in new.items():
        changes += _bring_up(root, name, content)
    return changes


def _bring_up(root: Path, name: str, new: bytes) -> list[Change]:
    path, base = folder(root) / name, read_file(edition(root, name))
    mine = read_file(path)
    if mine is None:
        put(path, new)
        put(edition(root, name), new)
        return [Change("added", name)]
    notebook, aside, changes = notebook_of(name, mine), None, []
    if name.endswith(".ipynb") and notebook is None:
        fresh, aside, why = new, free(path, "damaged"), "it is not a notebook any more"
    elif base == new:
        return []
    elif mine in (base, new):
        fresh, changes = new, [] if same(name, mine, new) else [Change("replaced", name)]
    elif notebook is not None:
        theirs = merge.read(new)
        before = notebook_of(name, base) or {**theirs, "cells": []}
        merged = merge.merge(before, notebook, theirs)
        fresh = merge.write(merged.notebook)
        if merged.notes or merge.contents(merged.notebook) != merge.contents(notebook):
            untouched = merge.contents(before) == merge.contents(notebook)
            changes = [Change("replaced" if untouched else "merged", name, merged.notes)]
    else:
        fresh, aside, why = new, free(path, "before"), "changed in the course and by you"
    if aside:
        changes = [Change("kept beside", name, (f"{why}; it is now {aside.name}",))]
    if fresh != mine and not put(path, fresh, mine, aside):
        return _bring_up(root, name, new)  # it was saved meanwhile
    put(edition(root, name), new)
    return changes


def _rename(root: Path, old: str, new: str) -> list[Change]:
    """Move a copy to its new name, then its edition; what both changed is merged there later."""
    here, there = folder(root) / old, folder(root) / new
    changes = []
    there.parent.mkdir(parents=True, exist_ok=True)
    if here.exists():
        if there.exists():
            aside = free(there, "before")
            os.replace(there, aside)
            changes = [Change("kept beside", new, (f"a file of yours is now {aside.name}",))]
        os.replace(here, there)
    edition(root, new).parent.mkdir(parents=True, exist_ok=True)
    os.replace(edition(root, old), edition(root, new))
    _remove_empty(here.parent, edition(root, old).parent)
    return [*changes, Change("renamed", new, (f"it was {old}",))]


def _retire(root: Path, name: str) -> list[Change]:
    """A file that is no longer in the course goes, unless it was edited."""
    path = folder(root) / name
    mine, changes = read_file(path), []
    if mine is not None and same(name, mine, read_file(edition(root, name))):
        path.unlink()
        changes = [Change("removed", name)]
    elif mine is not None:
        changes = [Change("kept", name, ("no longer in the course; yours stays",))]
    edition(root, name).unlink()
    _remove_empty(path.parent, edition(root, name).parent)
    return changes


def _remove_empty(*folders: Path) -> None:
    for path in folders:
        try:
            path.rmdir()
        except OSError:
            pass  # something of the learner's is in it


# ---- what comes from elsewhere


def bring(
    root: Path, name: str, mine: bytes, base: bytes | None, ending: str, newer: bool = False
) -> list[Change]:
    """Put a learner's file from elsewhere into work/. If another one is there, it comes beside it.

    base: the edition that it was made from; ending: such as "imported", for its name beside;
    newer: it was made from what is there, and takes its place.
    """
    if mine == base:
        return []
    path, store = folder(root) / name, edition(root, name)
    present, here = read_file(path), read_file(store)
    if present is not None and not newer and not same(name, present, mine):
        if base is not None and same(name, mine, base):
            return []  # it was never edited
        if here is None or not same(name, present, here):
            aside = free(path, ending, mine)
            if read_file(aside) is not None:
                return []
            put(aside, mine)
            return [Change("kept beside", name, (f"another is here; yours is now {aside.name}",))]
    if present is None or not same(name, present, mine):
        if not put(path, mine, present):
            return bring(root, name, mine, base, ending)  # as what it is now
    if base is not None:
        put(store, base)
    return [] if present is not None and same(name, present, mine) else [Change(ending, name)]


def take_over(root: Path, old: Path | None = None) -> list[Change]:
    """Bring what a learner edited in `notebooks/` and `labs/` into work/; see above for when.

    old: another folder with the course, in which nothing is changed.
    """
    place = old or root
    if _is_maintained():
        return []
    saved = {}
    for name in sources(place):
        content = read_file(place / name)
        notebook = notebook_of(name, content)
        if content and notebook and merge.saved_by_jupyter(notebook) and course_key(name, content):
            saved[name] = content
    if mends := not old and bool(saved) and is_clone(root):
        names = changed_files(root)
        others = [name for name in names if name not in saved and (root / name).exists()]
        saved = {name: content for name, content in saved.items() if name in names}
        if others:
            note = f"it stays in the course's folder, because {others[0]} is changed there, too"
            return [Change("not taken over", name, (note,)) for name in saved]
    changes = []
    for name, content in saved.items():
        kept = folder(root) / TAKEN_OVER / name
        if not mends and read_file(kept) == content:
            continue
        mine = merge.write(merge.learner_copy(merge.read(content), name.count("/")))
        base = _as_published(name, read_committed(place, name))
        changes += bring(root, name, mine, base, "taken-over")
        if read_file(kept) not in (None, content):
            kept = free(kept, "before", content)
        put(kept, content)  # all of it, with outputs
        if mends and read_file(root / name) == content:
            done = git(root, "checkout", "--quiet", "HEAD", "--", name)
            if done and done.returncode == 0:
                note = f"what you had there is now {kept.relative_to(root).as_posix()}"
                changes.append(Change("as the course has it again", name, (note,)))
    return changes


# ---- a fresh copy


def restore(what: str, root: Path = ROOT) -> Change:
    """Put a fresh copy in the place of a lab or lesson, and keep the old one beside it.

    what: such as "lab03", "03" (the lab), "lesson03", "claims" or a file's name.
    """
    names = sources(root)
    stem = PurePosixPath(what).name.removesuffix(".ipynb")
    number = stem.removeprefix("lesson")
    starts = [f"{name}_" for name in (stem, f"lab{stem}", number)]
    stems = {name: PurePosixPath(name).stem for name in names}
    matches = [n for start in starts for n in names if f"{stems[n]}_".startswith(start)]
    if not stem or not matches:
        known = ", ".join(stems[name].partition("_")[0] for name in names if "/lab" in name)
        raise CopiesError(
            f"no lesson or lab is called {what!r}; there is {known}, lesson00 and so on"
        )
    name = matches[0]
    new = read_release(root, name)
    if new is None:
        raise CopiesError(f"{name} in the course's folder is changed or damaged: no copy is made")
    path = folder(root) / name
    mine = read_file(path)
    if mine == new:
        return Change("fresh already", name)
    notes: tuple[str, ...] = ()
    if mine is None:
        put(path, new)
    else:
        aside = free(path, "before")
        if not put(path, new, mine, aside):
            return restore(what, root)
        notes = (f"your copy from before is now {aside.relative_to(root).as_posix()}",)
    put(edition(root, name), new)
    return Change("fresh", name, notes)


# ---- in words


def summary(changes: list[Change]) -> str:
    """The changes in few lines: files by what was done with them, and each thing to know."""
    lines = []
    for done in dict.fromkeys(change.done for change in changes):
        names = [change.name for change in changes if change.done == done]
        shown = ", ".join(names) if len(names) <= 4 else f"{len(names)} files"
        lines.append(f"{done}: {shown}")
        for change in changes:
            if change.done == done:
                lines += [f"  {PurePosixPath(change.name).name}: {note}" for note in change.notes]
    return "\n".join(lines)
