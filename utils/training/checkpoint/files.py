"""One file that is whole or not there: written aside, forced to the disk, renamed, and checked by
its length and SHA-256 when it is read. Standard library only.

A file begins with one line of text, which `head -1` shows: the format, the number of bytes that
follow and their SHA-256. The sum notices accident, not malice: who can change the bytes can change
the line.
"""

import contextlib
import errno
import hashlib
import json
import os
from pathlib import Path

FORMAT = "course checkpoint 1"
CHUNK_BYTES = 1 << 20
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class CheckpointError(RuntimeError):
    """A checkpoint cannot be used. `path` is its file, `found` what is wrong with it."""

    def __init__(self, path: Path, result: str, do: str) -> None:
        super().__init__(f"{path.name} {result}: {do}")
        self.path, self.found = path, result


class Torn(CheckpointError):
    """The file ends early: whatever wrote it was stopped, or the disk was full."""


class Damaged(CheckpointError):
    """The file has its length, or more, and other bytes than were written."""


class NotSaved(OSError):
    """The disk took no new checkpoint. What was there before is as it was."""


USE_ANOTHER = "load an earlier checkpoint (checkpoint.latest finds the newest good one)"


def write(path: Path, content: bytes) -> None:
    """Put `content` at `path`, whole or not at all, also if the process is killed or the power
    fails at any moment. What was at `path` stays until the new file is complete.

    Raises: NotSaved if the disk has no room; other OSErrors as they come.
    """
    path = Path(path)
    half = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        _write_through(half, header(content) + content)
        os.replace(half, path)  # atomic only within one folder of one file system
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(half)
        if isinstance(error, OSError) and error.errno in FULL:
            raise NotSaved(
                error.errno,
                f"no room for {len(content):,} bytes of {path.name} ({os.strerror(error.errno)});"
                " older checkpoints are untouched: free some space or keep fewer of them",
            ) from error
        raise
    # The rename is an entry of the folder, which has to reach the disk like any other data.
    sync_folder(path.parent)


def read(path: Path) -> bytes:
    """The content that was written to `path`.

    Raises: Torn or Damaged if it is not what was written; FileNotFoundError if there is none.
    """
    path = Path(path)
    stored = path.read_bytes()
    line, newline, content = stored.partition(b"\n")
    if newline and stored[: len(line) + 1] == header(content):
        return content
    raise _diagnose(path, stored, line, content, bool(newline))


def header(content: bytes) -> bytes:
    """The first line of the file that holds `content`."""
    sha256 = hashlib.sha256(content).hexdigest()
    return json.dumps({"format": FORMAT, "bytes": len(content), "sha256": sha256}).encode() + b"\n"


def sync_folder(folder: Path) -> None:
    """Force the entries of a folder, such as a rename within it, to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_through(path: Path, stored: bytes) -> None:
    # os.write and not a Python file: what it returns says how much the system has taken, and
    # nothing is left in a buffer of ours.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        left = memoryview(stored)
        while left:
            left = left[os.write(descriptor, left[:CHUNK_BYTES]) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _diagnose(
    path: Path, stored: bytes, line: bytes, content: bytes, whole_line: bool
) -> CheckpointError:
    if not stored:
        return Torn(path, "is empty", USE_ANOTHER)
    if not whole_line and _begins_like_ours(stored):
        return Torn(path, f"ends after {len(stored)} bytes, within its first line", USE_ANOTHER)
    try:
        stated = json.loads(line)
        expected, kind = stated["bytes"], stated["format"]
        if type(expected) is not int or "sha256" not in stated:
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        return Damaged(path, "has no first line of a checkpoint of this course", USE_ANOTHER)
    if kind != FORMAT:
        return Damaged(path, f"has format {kind!r}, known is {FORMAT!r}", USE_ANOTHER)
    if len(content) < expected:
        result = f"is torn, it holds {len(content):,} of {expected:,} bytes"
        return Torn(path, result, USE_ANOTHER)
    if len(content) > expected:
        return Damaged(path, f"holds {len(content):,} bytes, not {expected:,}", USE_ANOTHER)
    return Damaged(path, "does not have the SHA-256 that was written with it", USE_ANOTHER)


def _begins_like_ours(stored: bytes) -> bool:
    beginning = b'{"format": "' + FORMAT.encode() + b'"'
    return stored.startswith(beginning) or beginning.startswith(stored)
