"""Save tensors that lie sharded on several devices, and load them on another number of devices.

The work is done by `torch.distributed.checkpoint` (DCP) with torch_xla's planners: each shard is
written as it lies, and a list of all of them, with their places in the whole tensor, goes with
them. Who loads says how the tensors are sharded now, and gets the parts that it needs. Around it
stands what a folder of several files needs: a manifest of checksums, and one rename when all is
complete. torch and torch_xla are imported late: they take seconds to load.
"""

import contextlib
import os
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from utils.training.checkpoint.files import Damaged, Torn, sync_folder
from utils.xla import manifest

USE_ANOTHER = "load the folder of an earlier step"


@dataclass(frozen=True)
class Chunk:
    """A part of a tensor in a file: where it begins in the whole tensor, its shape, and the bytes
    of the file that hold it, serialisation included."""

    name: str
    offsets: tuple[int, ...]
    shape: tuple[int, ...]
    file: str
    begin_bytes: int
    size_bytes: int


def save(folder: Path, state: dict[str, Any]) -> Path:
    """Save the tensors of `state` shard by shard in the new folder `folder`.

    state: a dict, perhaps of dicts, of tensors on the XLA device (under `xr.use_spmd()`), sharded
        by `mark_sharding` or not, and of plain values.

    Raises: FileExistsError if there is such a folder: a folder cannot replace another in one step.
    """
    import torch.distributed.checkpoint as dcp
    from torch_xla.experimental.distributed_checkpoint import SPMDSavePlanner

    folder = Path(folder)
    if folder.exists():
        raise FileExistsError(f"{folder.name} is there already: give each step a folder of its own")
    half = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    try:
        with _quiet():
            dcp.save(
                state,
                storage_writer=dcp.FileSystemWriter(half, sync_files=True),
                planner=SPMDSavePlanner(),
                no_dist=True,  # one process drives all devices here
            )
        manifest.write(half)
        sync_folder(half)
        os.rename(half, folder)
    except BaseException:
        shutil.rmtree(half, ignore_errors=True)
        raise
    sync_folder(folder.parent)
    return folder


def load(folder: Path, state: dict[str, Any]) -> dict[str, Any]:
    """Fill `state` from `folder`, in place: its tensors are on the device and sharded as they are
    to be, on any number of devices; returns it.

    Raises: Torn or Damaged if a file is not as it was written, before anything is loaded.
    """
    import torch.distributed.checkpoint as dcp
    from torch_xla.experimental.distributed_checkpoint import SPMDLoadPlanner

    check(folder)
    with _quiet():
        dcp.load(
            state,
            storage_reader=dcp.FileSystemReader(folder),
            planner=SPMDLoadPlanner(),
            no_dist=True,
        )
    return state


def check(folder: Path) -> None:
    """Compare the files of `folder` with its manifest.

    Raises: FileNotFoundError if there is no such folder, Torn if a file is missing or has another
    length, Damaged if it has other content.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}: give one that sharded.save wrote")
    try:
        differences = manifest.check(folder)
    except FileNotFoundError as error:
        raise Torn(folder, "has no manifest, which is written last", USE_ANOTHER) from error
    except ValueError as error:
        raise Damaged(folder, "has a manifest that cannot be read", USE_ANOTHER) from error
    if differences:
        files = ", ".join(f"{difference.file}: {difference.kind}" for difference in differences)
        torn = any(difference.kind in ("missing", "size") for difference in differences)
        kind = Torn if torn else Damaged
        raise kind(folder, f"is not as it was written ({files})", USE_ANOTHER)


def layout(folder: Path) -> tuple[Chunk, ...]:
    """Every chunk of every tensor in `folder`, by name and place."""
    import torch.distributed.checkpoint as dcp

    described = dcp.FileSystemReader(folder).read_metadata()
    results = []
    for name, tensor in described.state_dict_metadata.items():
        for chunk in getattr(tensor, "chunks", ()):
            where = next(
                place
                for index, place in described.storage_data.items()
                if index.fqn == name and index.offset == chunk.offsets
            )
            results.append(
                Chunk(
                    name, tuple(chunk.offsets), tuple(chunk.sizes),
                    where.relative_path, where.offset, where.length,
                )
            )  # fmt: skip
    return tuple(sorted(results, key=lambda item: (item.name, item.offsets)))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    # torch_xla 2.9's planners use what torch 2.9 deprecates, and without a process group torch
    # says that it assumes one process, as is meant here.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield
