"""What the files and folders that a learning platform hands out for grading are called.

- Canvas, "Download Submissions": `doejane_LATE_12_345_lab03.ipynb`, that is name, mark, user,
  attachment, file. An anonymous one begins with `anon_` and a code. A file of the same name that is
  handed in again ends in `-1`, `-2`.
  github.com/instructure/canvas-lms, lib/content_zipper.rb
- Moodle, "Download all submissions": folder `Jane Doe_123_assignsubmission_file`, before Moodle 4.1
  with `_` at its end; without folders the name of the file follows. 123 is the participant's number
  in this one assignment.
  github.com/moodle/moodle, mod/assign/classes/downloader.php
- Blackboard, "Assignment File Download": `Lab 3_jdoe_attempt_2026-11-20-23-58-07_lab03.ipynb`, and
  a text file of the same name without its last part. It has no public description; the names are
  those of scripts that read them.
- Gradescope, "Export Submissions": folders `submission_4711`, and `submission_metadata.yml`, which
  says whose they are. It has no public description either.
- nbgrader's exchange: `jane+lab03_lazy_tensors+2026-11-20 22:58:07.1 UTC+random` in `inbound/`, or
  `jane/lab03_lazy_tensors/timestamp.txt` where `nbgrader collect` puts them.
  nbgrader.readthedocs.io, exchange; nbgrader/exchange/default/submit.py
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import yaml

METADATA = "submission_metadata.yml"
_MOST_METADATA_BYTES = 50 << 20
# Students choose the last part of a name: whatever it looks like, the first match counts, so that
# nobody hands in for another.
_MOODLE = re.compile(
    r"(?P<name>[^_]+)_(?P<id>\d+)_assignsubmission_(?:file|onlinetext)(?:_(?P<part>.*))?$",
    re.DOTALL,
)
_CANVAS = re.compile(
    r"(?P<name>[^_]+?)(?P<late>_late)?_(?P<id>[1-9]\d*)_(?P<file>[1-9]\d*)_(?P<part>.*)$",
    re.IGNORECASE,
)
_ANONYMOUS = re.compile(
    r"(?P<late>late_)?(?P<name>anon)_(?P<id>\w+?)_(?P<file>\d+)_(?P<part>.*)$", re.IGNORECASE
)
_AGAIN = re.compile(r"-(\d+)(\.\w+)?$")
_BLACKBOARD = re.compile(
    r"(?P<assignment>.+?)_(?P<id>[^_]+)_attempt_(?P<time>\d{4}(?:-\d\d){5})(?:_(?P<part>.*))?$"
)
_NBGRADER = re.compile(r"(?P<id>[^+]+)\+(?P<assignment>[^+]+)\+(?P<time>[^+]+)(?:\+[^+]*)?$")
_GRADESCOPE = re.compile(r"submission_(\d+)$")


@dataclass(frozen=True)
class Entry:
    """One file or folder: whose it is, and which of a person's attempts.

    platform: "canvas", "moodle", "blackboard", "gradescope", "nbgrader", or "" for any other name.
    id: by which the platform knows the person. submitted: the time in ISO format, without an offset
    where the platform wrote its own local time; "" where it says none. attempt: greater for later
    ones. part, version: of several files of one attempt, which file and how new.
    """

    name: str
    platform: str = ""
    id: str = ""
    late: bool = False
    submitted: str = ""
    assignment: str = ""
    attempt: str = ""
    part: str = ""
    version: tuple[int, int] = (0, 0)


def entry_of(name: str) -> Entry:
    """What the name of a file or folder tells.

    >>> entry_of("doejane_LATE_12_345_lab03-2.ipynb")
    Entry(name='doejane', platform='canvas', id='12', late=True, ... version=(2, 345))
    >>> entry_of("Lab 3_jdoe_attempt_2026-11-20-23-58-07_lab03.ipynb").submitted
    '2026-11-20T23:58:07'
    >>> entry_of("jane.ipynb")
    Entry(name='jane', platform='', ...)
    """
    stem = re.sub(r"\.(ipynb|zip|txt|html)$", "", name, flags=re.IGNORECASE)
    if match := _MOODLE.match(stem):
        return Entry(match["name"], "moodle", match["id"], part=name)
    if match := _BLACKBOARD.match(stem):
        time = _blackboard_time(match["time"])
        user, at, attempt = match["id"], match["assignment"], match["time"]
        return Entry(user, "blackboard", user, False, time, at, attempt, part=name)
    if match := _ANONYMOUS.match(name) or _CANVAS.match(name):
        again = _AGAIN.search(match["part"])
        part = _AGAIN.sub(r"\2", match["part"])
        version = (int(again[1]) if again else 0, int(match["file"]))
        late = bool(match["late"])
        return Entry(match["name"], "canvas", match["id"], late, part=part, version=version)
    if (match := _NBGRADER.match(name)) and (time := to_iso(match["time"])):
        return Entry(match["id"], "nbgrader", match["id"], False, time, match["assignment"], time)
    if _GRADESCOPE.match(name):
        return Entry(name, "gradescope")
    return Entry(plain(name))


def plain(name: str) -> str:
    """The name of a file that is a notebook or zip file, without its ending."""
    return re.sub(r"\.(ipynb|zip)$", "", name, flags=re.IGNORECASE)


def submission_number(name: str) -> str:
    """Gradescope's number of a submission; "" if the name is none of its names."""
    match = _GRADESCOPE.match(name)
    return match[1] if match else ""


def person(name: str, identity: str) -> tuple[str, str]:
    """What is the same for all that one person handed in: platform and id, else the name itself."""
    platform = entry_of(name).platform
    return (platform, identity) if platform and identity else ("", name)


def entries(folder: Path, names: Iterable[str], lab: str | None = None) -> dict[str, Entry]:
    """What is known of each file and folder; those for other labs, if they say so, are left out.

    Raises ValueError if several assignments lie there and `lab` does not say which.
    """
    metadata = _gradescope(folder / METADATA)
    results = {name: entry_of(name) for name in names}
    # Canvas numbers each file: hw_3_2026_jane.ipynb and hw_3_2026_bo.ipynb are not its names.
    files = Counter(e.version[1] for e in results.values() if e.platform == "canvas")
    for name, entry in results.items():
        if entry.platform == "canvas" and files[entry.version[1]] > 1:
            results[name] = Entry(plain(name))
    for name, entry in results.items():
        if entry.platform == "gradescope":
            results[name] = metadata.get(name, Entry(name))
    others = [name for name, entry in results.items() if not entry.platform]
    times = {name: _timestamp(folder / name, lab) for name in others}
    if all(times.values()):  # otherwise somebody handed in such a file, to be early
        results |= {name: Entry(results[name].name, submitted=times[name]) for name in others}
    exchanged = {e.assignment for e in results.values() if e.platform == "nbgrader"}
    if lab:
        exchanged = {name for name in exchanged if name.startswith(lab)}
    if len(exchanged) > 1:
        which = ", ".join(sorted(exchanged))
        raise ValueError(f"{folder} holds submissions to {which}: say which with --lab")
    return {
        # Bytes that are no text are escaped: ids stand in tables.
        name: replace(entry, id=entry.id.encode("utf-8", "backslashreplace").decode())
        for name, entry in results.items()
        if entry.platform != "nbgrader" or entry.assignment in exchanged
    }


def counting(names: list[str], known: dict[str, Entry]) -> tuple[list[str], list[str]]:
    """Of what one person handed in: what counts, the first most, and notes on what does not.

    The last attempt counts with all its files.
    """
    last = max(known[name].attempt for name in names)
    newest: dict[str, str] = {}
    for name in sorted(names, key=lambda n: (known[n].version, n)):
        if known[name].attempt == last:
            newest[known[name].part] = name
    counts = sorted(newest.values(), key=lambda n: (not n.endswith((".ipynb", ".zip")), n))
    attempts = len({known[name].attempt for name in names})
    notes = [f"{attempts} attempts; the last one counts ({last})"] if attempts > 1 else []
    older = [n for n in names if n not in counts and known[n].attempt == last]
    return counts, [*notes, *(f"an attempt before the last does not count: {n}" for n in older)]


def to_iso(text: str) -> str:
    """nbgrader's time as ISO time; "" if it is none.

    >>> to_iso("2026-11-20 22:58:07.100000 UTC")
    '2026-11-20T22:58:07+00:00'
    """
    try:
        day, clock, zone = text.split()
        moment = datetime.fromisoformat(f"{day} {clock[:8]}").replace(tzinfo=ZoneInfo(zone))
    except (ValueError, OSError):  # ZoneInfo: no such file, a folder, or a name that leads out
        return ""
    return moment.isoformat()


def _blackboard_time(text: str) -> str:
    try:
        return datetime.strptime(text, "%Y-%m-%d-%H-%M-%S").isoformat()
    except ValueError:
        return ""


def _timestamp(path: Path, lab: str | None) -> str:
    """The time beside what `nbgrader collect` brought; "" where several labs lie there."""
    if path.is_symlink() or not path.is_dir():
        return ""
    files = [path / "timestamp.txt", *sorted(path.glob(f"{lab or ''}*/timestamp.txt"))]
    times = []
    for file in files:
        if file.is_file() and not file.is_symlink() and not file.parent.is_symlink():
            with file.open(encoding="utf-8", errors="replace") as text:
                times.append(to_iso(text.read(100)))
    return times[0] if len(times) == 1 else ""


def _gradescope(path: Path) -> dict[str, Entry]:
    if not path.is_file() or path.is_symlink() or path.stat().st_size > _MOST_METADATA_BYTES:
        return {}
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times faster, where it is
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
    except (ValueError, yaml.YAMLError) as error:
        raise ValueError(f"{path} cannot be read ({error}): export it again") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds no table of submissions: export it again")
    return {
        name: _submission_of(name, about)
        for name, about in content.items()
        if isinstance(name, str) and isinstance(about, dict)
    }


def _submission_of(name: str, about: dict[str, Any]) -> Entry:
    people = [p for p in about.get(":submitters") or [] if isinstance(p, dict)]
    ids = [str(p.get(":sid") or p.get(":email") or "") for p in people]
    time = about.get(":created_at")
    moment = time.isoformat(timespec="seconds") if isinstance(time, datetime) else ""
    return Entry(
        " & ".join(str(p.get(":name") or "?") for p in people) or name,
        "gradescope",
        " ".join(filter(None, ids)),
        submitted=moment,
        attempt=moment,
        part=name,
    )
