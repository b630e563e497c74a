"""Takes a lab from a learner's folder to where `course.py grade` reads it.

Whoever owns the folder may have put anything there while this runs: links, pipes, files without
end. Nothing is followed, and nothing is read but a plain file of a limited size.
"""

import json
import os
import stat
from pathlib import Path

from utils.course import copies
from utils.course.catalog import Lab
from utils.labs.grading.submissions import MAX_NOTEBOOK_BYTES


class NotHandedIn(ValueError):
    """Why nothing was handed in, for the learner."""


def read_plain(folder: Path, names: tuple[str, ...], most_bytes: int) -> tuple[bytes, float]:
    """The content of folder/names... and when it was written. Raises OSError or NotHandedIn; no
    link below the folder is followed."""
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in names[:-1]:
            below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
            os.close(place)
            place = below
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe would wait for a writer
        descriptor = os.open(names[-1], flags, dir_fd=place)
    finally:
        os.close(place)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise NotHandedIn(f"{names[-1]} is no plain file")
    with open(descriptor, "rb") as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise NotHandedIn(f"{names[-1]} is larger than {most_bytes >> 20} MiB: clear its outputs")
    return content, status.st_mtime


def place_of(lab: Lab) -> tuple[str, str, str]:
    """Where a lab lies in work/."""
    return "labs", lab.path.parent.name, lab.path.name


def hand_in(work: Path, submissions: Path, name: str, lab: Lab) -> Path:
    """Copy somebody's lab to submissions/NAME/. Raises NotHandedIn; an earlier copy is replaced."""
    try:
        content, _ = read_plain(work, place_of(lab), MAX_NOTEBOOK_BYTES)
    except OSError as error:
        reason = error.strerror or str(error)
        raise NotHandedIn(
            f"there is no file {'/'.join(place_of(lab))} to read in your folder work/ ({reason})"
        ) from None
    try:
        cells = json.loads(content)["cells"]
    except (ValueError, KeyError, TypeError, RecursionError):
        cells = None
    if not isinstance(cells, list):
        raise NotHandedIn(f"{lab.path.name} is damaged: open it, save it, then hand it in again")
    target = submissions / name / lab.path.name
    copies.put(target, content)
    return target
