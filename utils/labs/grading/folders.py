"""The folders of a grading: whether they can be used, who uses them, and the seed kept there."""

import fcntl
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from utils.labs.grading.confine import shown_folders


def check(folder: Path, out: Path, root: Path) -> None:
    """Raise ValueError if these folders cannot be graded from or written to."""
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder: give the one that holds the submissions")
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file: --out is a folder")
    if out.is_relative_to(folder) or folder.is_relative_to(out):
        raise ValueError(f"{out} and {folder} lie in each other: choose an --out beside it")
    if out.exists() and any(out.iterdir()) and not (out / "seed.txt").exists():
        raise ValueError(f"{out} holds other files: choose an empty or a new folder for --out")
    for place in (folder, out, root / "solutions"):
        for shown in shown_folders(root):
            if place.is_relative_to(shown):
                raise ValueError(f"{place} lies in {shown}, which submissions can read: move it")


@contextmanager
def claim(out: Path) -> Iterator[None]:
    """Make the folder for the results and keep other gradings out of it."""
    made = not out.exists()
    try:
        out.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=out).close()
        descriptor = os.open(out, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise ValueError(
            f"{out} cannot be written ({error.strerror}): choose another --out"
        ) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise ValueError(f"another grading is writing to {out}: wait for its end") from None
    try:
        yield
    finally:
        os.close(descriptor)
        if made:
            with suppress(OSError):  # it is not empty
                out.rmdir()


def known_seed(out: Path, seed: str | None) -> str | None:
    """The seed that was given or kept; None if there is none yet."""
    file = out / "seed.txt"
    if seed is None:
        if not file.exists():
            return None
        seed = file.read_text()
        if not seed.strip():
            raise ValueError(f"{file} is blank: delete it to draw a new seed")
    if not seed.strip():
        raise ValueError("the seed is blank: anybody could draw the hidden cases")
    return seed.strip()


def keep_seed(out: Path, seed: str | None) -> str:
    """The seed, drawn if there is none, kept for the next grading."""
    file = out / "seed.txt"
    seed = seed or secrets.token_hex(16)
    file.write_text(f"{seed}\n")
    # Who knows the seed knows the hidden inputs.
    file.chmod(0o600)
    return seed
