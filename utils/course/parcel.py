"""The learner's work and progress in one zip file, for another machine and back.

Each machine remembers which contents of a file were carried (`SEEN`, by their digests), and the zip
tells it: what lies here and was seen there has been gone on with there, and is replaced. What
comes from a file is not trusted: nothing is written outside of work/, nothing over what is
there, and nothing at all if the file holds anything that an export does not.
"""

import hashlib
import json
import os
import stat
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from utils.course import copies, progress
from utils.course.catalog import ROOT
from utils.course.copies import FOLDER, PUBLISHED, Change, CopiesError

PROGRESS, SEEN = "progress.json", "seen.json"
FILES, BYTES = 20_000, 500_000_000
"""The most that an import takes."""

Seen = dict[str, list[str]]


def export(file: Path, root: Path = ROOT) -> int:
    """Write work/ and the progress into a new zip file; returns the number of its files."""
    if file.exists():
        raise CopiesError(f"{file} exists: name a file that does not")
    work, recorded = copies.folder(root), progress.progress_file(root)
    part = file.with_name(f".{file.name}.part")
    count, seen = 0, _read_seen(copies.read_file(work / f".{SEEN}"))
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(work.rglob("*")):
                name = PurePosixPath(path.relative_to(work))
                if path.is_file() and not path.is_symlink() and _is_carried(name):
                    content = path.read_bytes()
                    archive.writestr(f"{FOLDER}/{name.as_posix()}", content)
                    _remember(seen, name.as_posix(), content)
                    count += 1
            archive.writestr(SEEN, json.dumps(seen))
            if recorded.is_file():
                archive.writestr(PROGRESS, recorded.read_bytes())
        os.replace(part, file)
        copies.put(work / f".{SEEN}", json.dumps(seen).encode())
    finally:
        part.unlink(missing_ok=True)
    return count


def _is_carried(name: PurePosixPath) -> bool:
    """Whether an export holds a file of work/: none that begin with a dot, as ".." does, except
    for editions.
    """
    parts = name.parts[1:] if name.parts[0] == PUBLISHED else name.parts
    return not any(part.startswith(".") or part == "__pycache__" for part in parts)


def import_(file: Path, root: Path = ROOT) -> tuple[list[Change], str]:
    """Bring in what `export` wrote: what differs from what is here comes beside it; of points the
    better ones count. Returns the changes, and a note on the progress, or "".

    file: or the folder of a course in which somebody worked before there was work/.
    """
    if file.is_dir():
        if copies.folder(file).exists() or not (file / "notebooks").is_dir():
            raise CopiesError(f"{file} is not a course folder without {FOLDER}/: use export there")
        changes = copies.take_over(root, file)
        return changes, _join(copies.read_file(file / ".progress.json"), root)
    try:
        with zipfile.ZipFile(file) as archive:
            names = _check(archive, copies.folder(root).resolve())
            changes, work = [], copies.folder(root)
            inside = archive.namelist()
            here = _read_seen(copies.read_file(work / f".{SEEN}"))
            there = _read_seen(archive.read(SEEN) if SEEN in inside else None)
            for name in sorted(names):
                if name.startswith(f"{PUBLISHED}/"):
                    continue
                content, present = archive.read(names[name]), copies.read_file(work / name)
                edition = names.get(f"{PUBLISHED}/{name}")
                base = archive.read(edition) if edition else None
                # Seen before, and gone on with here, perhaps under the new name of its lesson.
                known = _digest(content) in here.get(name, [])
                if known and (present is not None or base and not (root / name).exists()):
                    continue
                # Both must know it: a file from elsewhere can claim to have seen anything.
                both = {*here.get(name, [])} & {*there.get(name, [])}
                newer = present is not None and _digest(present) in both
                changes += copies.bring(root, name, content, base, "imported", newer)
                _remember(here, name, content)
            for name in there:
                here[name] = sorted({*here.get(name, []), *there[name]})
            copies.put(work / f".{SEEN}", json.dumps(here).encode())
            recorded = archive.read(PROGRESS) if PROGRESS in inside else None
    except (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, EOFError) as error:
        raise CopiesError(f"{file} is not a zip file, or it is damaged ({error})") from None
    return changes, _join(recorded, root)


def _join(recorded: bytes | None, root: Path) -> str:
    try:
        return progress.join(recorded, root) if recorded else ""
    except ValueError as error:
        return f"its progress was not brought in: {error}"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _remember(seen: Seen, name: str, content: bytes) -> None:
    seen[name] = sorted({*seen.get(name, []), _digest(content)})


def _read_seen(content: bytes | None) -> Seen:
    """What was carried so far; none if the file makes no sense, which costs copies kept beside."""
    try:
        seen = json.loads(content or b"{}")
        return {str(name): [str(digest) for digest in seen[name]] for name in seen}
    except (ValueError, TypeError, RecursionError):
        return {}


def _check(archive: zipfile.ZipFile, work: Path) -> dict[str, zipfile.ZipInfo]:
    """{place in work/: its entry}; CopiesError if the archive is not what `export` writes."""
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    if len(entries) > FILES or sum(entry.file_size for entry in entries) > BYTES:
        raise CopiesError(f"more than {FILES:,} files or {BYTES / 1e6:,.0f} MB: nothing brought in")
    names = {}
    for entry in entries:
        name = PurePosixPath(entry.filename)
        mode = entry.external_attr >> 16
        plain = not stat.S_IFMT(mode) or stat.S_ISREG(mode)
        inside = len(name.parts) > 1 and name.parts[0] == FOLDER
        place = name.relative_to(FOLDER) if inside else name
        if entry.filename in (PROGRESS, SEEN) and plain:
            continue
        inside = inside and (work / place).resolve().is_relative_to(work)  # links of the learner's
        if not plain or not inside or "\\" in entry.filename or not _is_carried(place):
            raise CopiesError(f"{entry.filename!r} does not belong here: nothing brought in")
        names[place.as_posix()] = entry
    if not entries:
        raise CopiesError("the file is not an export of this course: it holds no work")
    if broken := archive.testzip():
        raise CopiesError(f"the file is damaged, at {broken}: nothing brought in")
    return names
