"""Runs a program that nobody here has written, so that it ends and leaves nothing behind.

With bubblewrap (or else `unshare`) it has a process namespace of its own, which ends as a whole,
and no network; with bubblewrap it can also write in its scratch folder only, where new files in
/tmp and at home go, too. It can still read what this user can: this bounds a careless program, not
a hostile one.
"""

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_LOOK_EVERY_S = 0.2
_MARK = "TRN_DRYRUN"


@dataclass(frozen=True)
class Bounds:
    """seconds: of the whole run. memory_bytes: resident, of all processes together. processes: how
    many at a time. file_bytes: of one file. disk_bytes: of all that lies in its scratch folder, the
    copy included. network: whether it may reach one.
    """

    seconds: float = 300.0
    memory_bytes: int = 8 << 30
    processes: int = 64
    file_bytes: int = 1 << 30
    disk_bytes: int = 4 << 30
    network: bool = False

    def __post_init__(self) -> None:
        for name in ("seconds", "memory_bytes", "processes", "file_bytes", "disk_bytes"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name)!r}, and must be more than 0")


@dataclass(frozen=True)
class Ended:
    """why: "itself", "time", "memory", "processes" or "disk"; status: that of its exit, negative
    for a signal.
    """

    why: str
    status: int


def confinement(scratch: Path, bounds: Bounds) -> tuple[list[str], str]:
    """The words to put before a command, and what they achieve, for the report."""
    no_network = [] if bounds.network else ["--unshare-net"]
    words = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for folder in ("/run", "/dev/shm"):  # these lie in memory
        words += ["--size", str(bounds.memory_bytes), "--tmpfs", folder]
    words += ["--unshare-pid", "--unshare-ipc", *no_network, "--die-with-parent", "--new-session"]
    last = ["--bind", str(scratch), str(scratch), "--"]
    network = "with network" if bounds.network else "no network"
    for private in (_private_folders(scratch), []):
        if _works([*words, *private, *last]):
            return [
                *words,
                *private,
                *last,
            ], f"bubblewrap: writes in a scratch copy only, {network}"
    words = ["unshare", "--user", "--map-current-user", "--pid", "--fork", "--kill-child"]
    words += [] if bounds.network else ["--net"]
    if _works(words):
        return words, f"unshare: {network}; files outside the scratch copy are not protected"
    return [], "a process group only: network and files outside the scratch copy are not protected"


def _private_folders(scratch: Path) -> list[str]:
    """The words that give it folders of its own for temporary files and at home: it finds there
    what lies there, read-only, and can add to it what ends with the scratch folder.
    """
    home = Path(os.environ.get("HOME") or "/").resolve()
    folders = [Path("/tmp").resolve(), Path("/var/tmp").resolve(), home]  # noqa: S108 - hidden
    words: list[str] = []
    for number, folder in enumerate(dict.fromkeys(folders)):
        above = (other for other in folders if other != folder)
        if folder == Path("/") or any(folder.is_relative_to(other) for other in above):
            continue
        copy, original = scratch / "private" / str(number), Path("/run/dryrun", str(number))
        with contextlib.suppress(OSError):  # there is no such folder, or it cannot be read
            _link_all(folder, copy, original, (scratch, home / ".cache"))
            words += ["--ro-bind", str(folder), str(original), "--bind", str(copy), str(folder)]
    return words


def _link_all(folder: Path, copy: Path, original: Path, apart: Sequence[Path]) -> None:
    # Links, because a mount for each entry takes seconds where there are a thousand.
    copy.mkdir(parents=True)
    for name in os.listdir(folder):
        if folder / name == apart[0]:
            (copy / name).mkdir()  # the scratch folder is mounted there
        elif any(path.is_relative_to(folder / name) for path in apart):
            _link_all(folder / name, copy / name, original / name, apart)
        else:
            (copy / name).symlink_to(original / name)


def _works(words: Sequence[str]) -> bool:
    if shutil.which(words[0]) is None:
        return False
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        tried = subprocess.run([*words, "true"], capture_output=True, timeout=20)
        return tried.returncode == 0
    return False


def limit_this_process(bounds: Bounds) -> None:
    """The kernel's limits, for this process and all that it starts."""
    for name, value in (
        (resource.RLIMIT_FSIZE, bounds.file_bytes),
        (resource.RLIMIT_CORE, 0),
        # Not the address space: torch_xla maps several times the memory that it uses.
        (resource.RLIMIT_DATA, bounds.memory_bytes),
        (resource.RLIMIT_CPU, int(bounds.seconds * (os.cpu_count() or 1)) + 1),
    ):
        hard = resource.getrlimit(name)[1]
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (least, least))


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    cwd: Path,
    output: Path,
    bounds: Bounds,
    scratch: Path | None = None,
    look: Callable[[bool], None] | None = None,
) -> Ended:
    """Run a command, confined already, until it ends or exceeds a bound; then nothing of it lives.

    output: the file that takes what it prints. scratch: the folder that it fills, if any. look: is
    called several times a second, and with True at the end.
    """
    mark = f"{_MARK}={uuid.uuid4()}"
    with output.open("wb") as printed:
        process = subprocess.Popen(
            command,
            env={**environment, _MARK: mark.partition("=")[2]},
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = time.monotonic() + bounds.seconds
    why = "itself"
    look_at_disk = 0.0
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK_EVERY_S)
                break
            if look:
                look(False)
            members = _family(process.pid)
            if time.monotonic() > deadline:
                why = "time"
            elif len(members) > bounds.processes:
                why = "processes"
            elif sum(members.values()) > bounds.memory_bytes:
                why = "memory"
            elif scratch and time.monotonic() > look_at_disk:
                began = time.monotonic()
                if _write(scratch) > bounds.disk_bytes:
                    why = "disk"
                # A folder of many files takes a while: at most a tenth of the time goes there.
                look_at_disk = time.monotonic() + max(0.5, 9 * (time.monotonic() - began))
            if why != "itself":
                break
    finally:
        _end(process, mark)
        if look:
            look(True)
    return Ended(why, process.returncode)


def _write(folder: Path) -> int:
    """Bytes on the disk of all files in a folder; links are not followed."""
    total = 0
    with contextlib.suppress(FileNotFoundError, PermissionError), os.scandir(folder) as entries:
        for entry in entries:
            # A file may go between two looks.
            with contextlib.suppress(FileNotFoundError):
                if entry.is_dir(follow_symlinks=False):
                    total += _write(Path(entry.path))
                else:
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
    return total


def _end(process: subprocess.Popen, mark: str) -> None:
    # First the children, found while their parents still live: the first process of a namespace
    # takes all the others along, whatever session they have moved to.
    members = _family(process.pid)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for member in members:
        with contextlib.suppress(ProcessLookupError):
            os.kill(member, signal.SIGKILL)
    process.wait()
    # Where there is no namespace, one whose parents have ended is known by its environment only.
    while left := _mark(mark):
        for member in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)
        time.sleep(0.01)


def _mark(mark: str) -> list[int]:
    results = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                variables = Path("/proc", entry, "environ").read_bytes().split(b"\0")
                results += [int(entry)] if mark.encode() in variables else []
    return results


def _family(pid: int) -> dict[int, int]:
    """Resident bytes of a process and all its descendants, by process id."""
    page = os.sysconf("SC_PAGE_SIZE")
    parents: dict[int, int] = {}
    resident: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            # A process may end between two looks.
            with contextlib.suppress(OSError, ValueError, IndexError):
                words = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
                parents[int(entry)], resident[int(entry)] = int(words[1]), int(words[21]) * page
    result = {pid} if pid in parents else set()
    while more := {child for child, parent in parents.items() if parent in result} - result:
        result |= more
    return {member: resident[member] for member in result}
