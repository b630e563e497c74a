"""Find the submissions in a folder, who handed them in, and what their files hold.

A submission is a folder (`jane/any/depth/lab.ipynb`) or a file (`jane.ipynb`, `jane.zip`), or
several of both where a learning platform names them as one person's (`downloads`). Zip files are
read in memory; links are never followed; nothing is unpacked to disk.
"""

import hashlib
import io
import json
import os
import re
import stat
import unicodedata
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from utils.labs.grading import downloads

MAX_NOTEBOOK_BYTES = 20 << 20
MAX_SUBMISSION_BYTES = 60 << 20
MAX_ENTRIES = 2000
MAX_NOTES = 5
MAX_CELLS = 1000
MAX_SOURCE_CHARS = 1 << 20
_IGNORED = re.compile(rf"\.|__MACOSX$|{re.escape(downloads.METADATA)}$")


class NotANotebook(ValueError):
    """A file that cannot be graded; the text says why."""


@dataclass(frozen=True)
class File:
    """A file that may be the notebook: its name inside the submission and its bytes."""

    name: str
    content: bytes


@dataclass(frozen=True)
class Submission:
    """What one student handed in: the name as shown, the same as a file name, and where it lies.

    No two submissions have the same `slug`. id: by which the learning platform knows the student,
    late: whether it says so, submitted: the time in ISO format; empty where its names do not tell.
    more: further files of the same attempt. notes: what of this person was left out.
    """

    student: str
    slug: str
    path: Path
    id: str = ""
    late: bool = False
    submitted: str = ""
    more: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()

    def read(self) -> tuple[list[File], list[str]]:
        """As the function `read`, of all that was handed in."""
        files, notes = read(self.path)
        for path in self.more:
            more = read(path)
            files, notes = [*files, *more[0]], [*notes, *more[1]]
        return files, [*self.notes, *notes]


class Known(Protocol):
    """A submission of an earlier grading, whose student keeps name and slug."""

    @property
    def entry(self) -> str: ...
    @property
    def student(self) -> str: ...
    @property
    def slug(self) -> str: ...
    @property
    def id(self) -> str: ...


@dataclass(frozen=True)
class SubmittedCell:
    """A cell of a file: its type such as "code", its source, and what may name it in the lab."""

    type: str
    source: str
    names: tuple[str, ...] = ()


def find(
    folder: Path, known: Iterable[Known] = (), lab_name: str | None = None
) -> list[Submission]:
    """All submissions below `folder`, by name. Raises ValueError if there is none.

    known: who was graded before keeps name and slug, whoever else came. lab_name: such as "lab03";
    what says that it belongs to another lab is left out.
    """
    names = sorted(e for e in os.listdir(folder) if not _IGNORED.match(e))
    entries = downloads.entries(folder, names, lab_name)
    if not entries:
        raise ValueError(
            f"{folder} holds no submissions: expected one folder or notebook a student"
        )
    people: dict[tuple[str, str], list[str]] = {}
    for name, entry in entries.items():
        people.setdefault(downloads.person(name, entry.id), []).append(name)
    called = {downloads.person(k.entry, k.id): (k.student, k.slug) for k in known}
    owners = {p: downloads.counting(own, entries) for p, own in people.items()}
    first = {p: counts[0] for p, (counts, _) in owners.items()}
    students = dict(zip(people, _students(first, entries), strict=True))
    new = [students[p] for p in people if p not in called]
    slugs = slugs_of(new, [slug for _, slug in called.values()])
    called = {p: (_printable(s), slugs.get(s, "")) for p, s in students.items()} | called
    result = []
    for p, (counts, notes) in owners.items():
        own = [entries[name] for name in counts]
        paths = [folder / name for name in counts]
        result.append(
            Submission(
                *called[p],
                paths[0],
                own[0].id,
                any(entry.late for entry in own),
                own[0].submitted,
                tuple(paths[1:]),
                tuple(notes),
            )
        )
    return sorted(result, key=lambda submission: submission.slug)


def _students(
    first: Mapping[tuple[str, str], str], entries: Mapping[str, downloads.Entry]
) -> list[str]:
    """A name for each person, no two of them equal."""
    names = [unicodedata.normalize("NFC", entries[e].name) for e in first.values()]
    count = Counter(names)
    # Two people of one name are told apart by the platform's id; two entries of one name (jane/ and
    # jane.ipynb) stay apart under their full names.
    labels = [
        n if count[n] == 1 else f"{n} ({entries[e].id})" if entries[e].id else e
        for n, e in zip(names, first.values(), strict=True)
    ]
    count = Counter(labels)
    return [n if count[n] == 1 else e for n, e in zip(labels, first.values(), strict=True)]


def _printable(name: str) -> str:
    shown = "".join(c if c.isprintable() else "?" for c in name)
    return shown[:120] or "?"


def slugs_of(names: list[str], others: Iterable[str] = ()) -> dict[str, str]:
    """A file name for each student, letters, digits, dots and dashes only; no two are equal,
    whatever the case, and none is one of the `others`.

    >>> slugs_of(["jane", "../jane"])
    {'jane': 'jane', '../jane': 'jane-59d0ad3a'}
    """
    slugs: dict[str, str] = {}
    taken = {slug.casefold() for slug in others}
    # Names that need no change come first, so that nobody can take theirs.
    for name in sorted(names, key=lambda n: (_plain(n) != n, n)):
        slug, digest = _plain(name), hashlib.sha256(name.encode("utf-8", "surrogateescape"))
        length = 8
        while slug != name or slug.casefold() in taken:
            slug = f"{_plain(name)}-{digest.hexdigest()[:length]}"
            if slug.casefold() not in taken:
                break
            length += 8
        slugs[name] = slug
        taken.add(slug.casefold())
    return {name: slugs[name] for name in names}


def _plain(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name).strip(".-")[:60] or "student"


def read(path: Path) -> tuple[list[File], list[str]]:
    """The notebooks of a submission, and notes on what was met and not read, with the reason."""
    files: list[File] = []
    notes: list[str] = []
    mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        return [], [f"{_printable(path.name)} is a link; links are not followed"]
    if stat.S_ISDIR(mode):
        _walk(path, files, notes)
    else:
        _take(path, _printable(path.name), files, notes)
    if len(notes) > MAX_NOTES:
        notes[MAX_NOTES:] = [f"{len(notes) - MAX_NOTES} more remarks of this kind"]
    return files, notes


def _walk(top: Path, files: list[File], notes: list[str]) -> None:
    met = 0
    for folder, folders, names in os.walk(top):
        folders[:] = sorted(f for f in folders if not _IGNORED.match(f))
        for name in [*folders, *sorted(names)]:
            met += 1
            if met > MAX_ENTRIES:
                notes.append(f"more than {MAX_ENTRIES} files; the rest was not looked at")
                return
            path = Path(folder, name)
            inside = _printable(str(path.relative_to(top)))
            if path.is_symlink():
                notes.append(f"{inside} is a link; links are not followed")
            elif name not in folders and not _IGNORED.match(name):
                _take(path, inside, files, notes)


def _take(path: Path, name: str, files: list[File], notes: list[str]) -> None:
    suffix = path.suffix.lower()
    if suffix not in (".ipynb", ".zip"):
        return
    try:
        content = _read(path)
    except (OSError, ValueError) as error:
        notes.append(f"{name} was not read: {getattr(error, 'strerror', None) or error}")
        return
    if suffix == ".ipynb" or len(content) > MAX_NOTEBOOK_BYTES:
        _keep(File(name, content), files, notes)
    else:
        _unzip(name, content, files, notes)


def _keep(file: File, files: list[File], notes: list[str]) -> None:
    if len(file.content) > MAX_NOTEBOOK_BYTES:
        notes.append(f"{file.name} was not read: it is larger than {MAX_NOTEBOOK_BYTES >> 20} MB")
    elif sum(len(f.content) for f in files) + len(file.content) > MAX_SUBMISSION_BYTES:
        notes.append(f"{file.name} was not read: the rest is {MAX_SUBMISSION_BYTES >> 20} MB")
    else:
        files.append(file)


def _read(path: Path) -> bytes:
    # O_NONBLOCK: opening a named pipe would wait for ever. O_NOFOLLOW: the entry may have become a
    # link.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is not a regular file")
        return file.read(MAX_NOTEBOOK_BYTES + 1)


def _unzip(name: str, content: bytes, files: list[File], notes: list[str]) -> None:
    try:
        unpacked = 0
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.infolist()[:MAX_ENTRIES]:
                inside = f"{name}: {_printable(member.filename)}"
                parts = member.filename.split("/")
                if not parts[-1].lower().endswith(".ipynb") or any(map(_IGNORED.match, parts)):
                    continue
                if stat.S_ISLNK(member.external_attr >> 16):
                    notes.append(f"{inside} is a link; links are not followed")
                    continue
                unpacked += min(member.file_size, MAX_NOTEBOOK_BYTES)
                if unpacked > MAX_SUBMISSION_BYTES:
                    notes.append(f"{name} holds more than {MAX_SUBMISSION_BYTES >> 20} MB")
                    return
                with archive.open(member) as file:
                    _keep(File(inside, file.read(MAX_NOTEBOOK_BYTES + 1)), files, notes)
    # RuntimeError: encrypted, or a kind of compression that zipfile does not know.
    except (OSError, ValueError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        notes.append(f"{name} was not read: {error}")


def parse(content: bytes) -> list[SubmittedCell]:
    """The cells of a notebook file. Raises NotANotebook."""
    if not content.strip():
        raise NotANotebook("it is empty")
    try:
        notebook = json.loads(decode(content)[0])
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else "not JSON"
        raise NotANotebook(f"it is no notebook ({reason})") from None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise NotANotebook("it is no notebook of format 4 (it has no list of cells)")
    if len(cells) > MAX_CELLS:
        raise NotANotebook(f"it has {len(cells)} cells; at most {MAX_CELLS} are read")
    parsed = [_cell(cell) for cell in cells if isinstance(cell, dict)]
    if sum(len(cell.source) for cell in parsed) > MAX_SOURCE_CHARS:
        raise NotANotebook(f"its cells hold more than {MAX_SOURCE_CHARS:,} characters")
    return parsed


def decode(content: bytes) -> tuple[str, str]:
    """The text of a notebook file, and the name of its encoding if that is not UTF-8."""
    encoding = json.detect_encoding(content)
    try:
        return content.decode(encoding), "" if encoding.startswith("utf-8") else encoding.upper()
    except UnicodeDecodeError:
        return content.decode("cp1252"), "Windows-1252"


def _cell(raw: dict[str, Any]) -> SubmittedCell:
    source = raw.get("source", "")
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    metadata = _table(raw.get("metadata"))
    # Colab keeps the id of a cell in its metadata.
    names = [_table(metadata.get("nbgrader")).get("grade_id"), raw.get("id"), metadata.get("id")]
    # Whatever ends its lines: an editor on Windows changes no answer.
    source = re.sub(r"\r\n?", "\n", source) if isinstance(source, str) else ""
    return SubmittedCell(
        str(raw.get("cell_type")),
        # A lone surrogate is valid JSON but cannot be written to a file again.
        source.encode("utf-8", "replace").decode("utf-8"),
        tuple(name for name in names if isinstance(name, str)),
    )


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
