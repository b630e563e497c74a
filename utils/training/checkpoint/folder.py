"""A folder of checkpoints: the newest good one is found, old ones go, and one process writes.

torch is imported late: it takes seconds to load.
"""

import errno
import fcntl
import io
import os
import pickle
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from utils.training.checkpoint import files
from utils.training.checkpoint.files import CheckpointError, Damaged, NotSaved
from utils.training.checkpoint.states import on_host

_NAME = re.compile(r"step-(\d{8}|[1-9]\d{8,})\.ckpt")
_HALF = re.compile(r"\.step-\d{8,}\.ckpt\.\d+\.part")
LOCK = ".lock"


class NoneGood(CheckpointError):
    """There are checkpoints, and none of them can be loaded. `refused` has the error of each."""

    def __init__(self, folder: Path, refused: tuple[CheckpointError, ...]) -> None:
        reasons = "; ".join(f"{error.path.name} {error.found}" for error in refused)
        super().__init__(
            folder,
            f"has {len(refused)} checkpoints and none is good ({reasons})",
            "bring one back from a copy, or empty the folder to begin anew",
        )
        self.refused = refused


@dataclass(frozen=True)
class Found:
    """The newest good checkpoint.

    step: training steps done when it was saved. state: what was saved, tensors on the CPU.
    refused: the errors of newer ones that are torn or damaged, the newest first.
    """

    step: int
    state: Any
    path: Path
    refused: tuple[CheckpointError, ...] = ()


def path_of(folder: Path, step: int) -> Path:
    """Where the checkpoint after `step` steps is, or would be.

    >>> path_of(Path("run"), 12).name
    'step-00000012.ckpt'
    """
    if type(step) is not int or step < 0:
        raise ValueError(f"step is {step!r}: give the number of steps done, an int of 0 or more")
    return Path(folder) / f"step-{step:08d}.ckpt"


def steps(folder: Path) -> list[int]:
    """The steps after which there is a checkpoint, good or not, ascending; [] without a folder.

    Raises: NotADirectoryError if `folder` is a file.
    """
    folder = Path(folder)
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        names = []
    except NotADirectoryError as error:
        raise _no_folder(folder, error) from None
    return sorted(int(match[1]) for name in names if (match := _NAME.fullmatch(name)))


def encode(state: Any) -> bytes:
    """The bytes of a state of tensors, numbers, texts, lists, tuples and dicts.

    Tensors are copied to the host first, so that the file can be read where there is no device.
    """
    import torch

    buffer = io.BytesIO()
    torch.save(on_host(state), buffer)
    return buffer.getvalue()


def save(folder: Path, step: int, state: Any, keep: int = 3) -> Path:
    """Save `state` after `step` steps, then remove all but the newest `keep` checkpoints.

    folder: made if it is not there. keep: 1 or more; 2 leave one when the newest goes bad later.

    Raises: files.NotSaved if the disk is full or may not be written: nothing is removed then, and
    the folder is as it was; NotADirectoryError if `folder` is a file.
    """
    return write(folder, step, encode(state), keep)


def write(folder: Path, step: int, content: bytes, keep: int = 3) -> Path:
    """`save` for a state that is already `encode`."""
    if type(keep) is not int or keep < 1:
        raise ValueError(f"keep is {keep!r}: at least 1 checkpoint has to stay")
    folder, path = Path(folder), path_of(folder, step)
    with _alone(folder):
        files.write(path, content)
        # Only now, with the new one safe, may an old one go.
        for old in [other for other in steps(folder) if other < step][::-1][keep - 1 :]:
            os.unlink(path_of(folder, old))
    return path


def load(path: Path) -> Any:
    """The state that was saved at `path`, tensors on the CPU.

    Only tensors and plain values are read (weights_only): a checkpoint cannot bring code along.

    Raises: files.Torn, files.Damaged, FileNotFoundError.
    """
    import torch

    path = Path(path)
    content = files.read(path)
    try:
        return torch.load(io.BytesIO(content), weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        result = f"is whole, but torch cannot read it ({str(error).splitlines()[0]})"
        raise Damaged(path, result, "save tensors, numbers, texts, lists and dicts only") from error


def latest(folder: Path) -> Found | None:
    """The newest checkpoint that is good, or None if there never was one.

    Raises: NoneGood if there are some and none is good. To begin at step 0 then would be a silent
    loss, so it is left to a person.
    """
    refused: list[CheckpointError] = []
    for step in reversed(steps(folder)):
        path = path_of(folder, step)
        try:
            return Found(step, load(path), path, tuple(refused))
        except CheckpointError as error:
            refused.append(error)
        except FileNotFoundError:  # Its writer has saved a newer one and removed this one.
            return latest(folder)
    if refused:
        raise NoneGood(Path(folder), tuple(refused))
    return None


def set_aside(refused: tuple[CheckpointError, ...]) -> list[Path]:
    """Rename files that cannot be used to *.bad: kept as evidence, never counted or loaded."""
    targets = []
    for error in refused:
        target = error.path.with_name(error.path.name + ".bad")
        os.replace(error.path, target)
        targets.append(target)
    return targets


def _no_folder(folder: Path, error: OSError) -> NotADirectoryError:
    what = "is a file" if folder.is_file() else "lies below a file"
    do = "give a folder of checkpoints, or one that is not there yet"
    return NotADirectoryError(error.errno, f"{folder.name} {what}: {do}")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Make the folder, hold its lock, which the system frees when its holder dies, and remove what
    dead writers left half written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open(folder / LOCK, "w", encoding="utf-8")  # noqa: SIM115
    except (FileExistsError, NotADirectoryError) as error:
        raise _no_folder(folder, error) from None
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        result = f"{folder.name} may not be written ({os.strerror(error.errno)})"
        do = "allow this user to write there, or save elsewhere"
        raise NotSaved(error.errno, f"{result}; older checkpoints are untouched: {do}") from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in os.listdir(folder):
            if _HALF.fullmatch(name):
                os.unlink(folder / name)
        yield
