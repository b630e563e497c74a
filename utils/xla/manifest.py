"""A manifest of a cache folder: the SHA-256 of every file, by which damage is noticed.

The entries of a persistent compile cache carry no checksum of their own, so whoever shares one
writes a manifest when it is known to be good, and checks it before use. A manifest notices
accident, not malice: who can change an entry can change the manifest beside it. An entry that is
compiled anew has other bytes, though it is as good, so it needs a new manifest. Standard library
only.
"""

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

NAME = "manifest.json"
QUARANTINE = "quarantine"


@dataclass(frozen=True)
class Difference:
    """One file that is not as the manifest says.

    file: its path below the folder, with slashes.
    kind: "size", "changed" (same size, other content), "missing", or "unknown" (not in the
        manifest).
    """

    file: str
    kind: str


@dataclass(frozen=True)
class Usage:
    """What a cache folder holds: its entries, their bytes, and when the least and the most recently
    used was last read or written, in seconds since 1970 (None where there is no entry)."""

    entries: int
    size_bytes: int
    oldest: float | None
    newest: float | None


def write(folder: Path) -> Path:
    """Write the manifest of `folder` into it, whole or not at all; returns its path.

    FileNotFoundError if there is no such folder.
    """
    folder = Path(folder)
    known = {name: _describe(folder / name) for name in _files(folder)}
    target = folder / NAME
    half = folder / f".{NAME}.{os.getpid()}.part"
    with open(half, "w", encoding="utf-8") as file:
        json.dump(known, file, indent=1, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    os.replace(half, target)
    return target


def check(folder: Path) -> list[Difference]:
    """Compare `folder` with its manifest; an empty list if every file is as it was.

    FileNotFoundError if there is no manifest, ValueError if it cannot be read: in both cases
    nothing is known about the entries.
    """
    folder = Path(folder)
    known = _read(folder)
    present = set(_files(folder))
    results = [Difference(name, "missing") for name in known.keys() - present]
    results += [Difference(name, "unknown") for name in present - known.keys()]
    for name in present & known.keys():
        path = folder / name
        if path.stat().st_size != known[name]["bytes"]:
            results.append(Difference(name, "size"))
        elif _describe(path) != known[name]:
            results.append(Difference(name, "changed"))
    return sorted(results, key=lambda item: item.file)


def quarantine(folder: Path, differences: Iterable[Difference]) -> list[Path]:
    """Move the files of `differences` that are there out of the way, below `folder`/quarantine,
    where no cache looks for them; returns where they are now.

    A cache then misses them and compiles them again.
    """
    folder = Path(folder)
    moved = []
    for difference in differences:
        source, target = folder / difference.file, folder / QUARANTINE / difference.file
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(source, target)
            moved.append(target)
    return moved


def usage(folder: Path) -> Usage:
    """How many entries a cache folder has, how large and how old; none where there is no folder."""
    folder = Path(folder)
    states = [(folder / name).stat() for name in _files(folder)] if folder.is_dir() else []
    times = [_last_used(state) for state in states]
    total = sum(state.st_size for state in states)
    return Usage(len(states), total, min(times, default=None), max(times, default=None))


def prune(folder: Path, most_bytes: int) -> list[str]:
    """Remove the least recently used entries until at most `most_bytes` are left; returns the
    removed, the least recently used first.

    The time of use is the later of access and change. Linux notes an access once a day (relatime),
    and not at all on a disk mounted with noatime. Write the manifest anew afterwards.
    """
    if most_bytes < 0:
        raise ValueError(f"most_bytes is {most_bytes}, but a size is never negative")
    folder = Path(folder)
    states = {name: (folder / name).stat() for name in _files(folder)}
    left = sum(state.st_size for state in states.values())
    removed = []
    for name in sorted(states, key=lambda name: (_last_used(states[name]), name)):
        if left <= most_bytes:
            break
        (folder / name).unlink()
        left -= states[name].st_size
        removed.append(name)
    return removed


def _last_used(state: os.stat_result) -> float:
    return max(state.st_atime, state.st_mtime)


def _files(folder: Path) -> list[str]:
    """Every file below `folder` but the manifest, one half written, and what is in quarantine."""
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    names = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    return sorted(
        name.as_posix()
        for name in names
        if name.parts[0] not in (NAME, QUARANTINE)
        and not (name.parts[0].startswith(f".{NAME}.") and name.suffix == ".part")
    )


def _describe(path: Path) -> dict[str, int | str]:
    with open(path, "rb", opener=_quietly) as file:
        digest = hashlib.file_digest(file, "sha256")
    return {"sha256": digest.hexdigest(), "bytes": path.stat().st_size}


def _quietly(path: str, flags: int) -> int:
    """Open a file without noting the access: a check is no use, and `prune` goes by use."""
    try:
        return os.open(path, flags | os.O_NOATIME)
    except PermissionError:  # Only the owner of a file may do that.
        return os.open(path, flags)


def _read(folder: Path) -> dict[str, dict[str, int | str]]:
    path = folder / NAME
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        if not all({"sha256", "bytes"} == item.keys() for item in known.values()):
            raise ValueError
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{folder} has no {NAME}: write one with manifest.write while the cache is known to be"
            " good"
        ) from None
    except (ValueError, AttributeError):
        raise ValueError(
            f"{path} is no manifest: empty the cache, fill it again, and write a new one"
        ) from None
    return known
