"""What a sandbox consists of, in the words of bubblewrap's command line: what a submission sees
and what it may use.
"""

import ast
import errno
import os
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from utils.labs.grading.lab import Lab, parse_python

# Numbers of x86-64, the only platform that torch-xla is built for. sched_setaffinity is among them
# because each sandbox has its own processors: a fork bomb must not slow another submission.
_DENIED = {
    "shmget": 29, "msgget": 68, "ptrace": 101, "pivot_root": 155, "chroot": 161, "mount": 165,
    "umount2": 166, "init_module": 175, "sched_setaffinity": 203, "kexec_load": 246, "add_key": 248,
    "request_key": 249, "keyctl": 250, "unshare": 272, "perf_event_open": 298, "setns": 308,
    "process_vm_readv": 310, "process_vm_writev": 311, "finit_module": 313, "memfd_create": 319,
    "bpf": 321, "userfaultfd": 323, "io_uring_setup": 425, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "pidfd_getfd": 438, "mount_setattr": 442, "memfd_secret": 447,
}  # fmt: skip
_SOCKET, _CLONE, _CLONE3 = 41, 56, 435
_FAMILIES = (1, 2, 10, 16)  # unix, IPv4, IPv6, netlink: what a network namespace isolates
# Every CLONE_NEW* flag but CLONE_NEWTIME, which in clone is a bit of the exit signal.
_NAMESPACES = 0x7E020000

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _ARGUMENT_0 = 0, 4, 16  # offsets in struct seccomp_data
_ALLOW, _KILL = 0x7FFF0000, 0x80000000


def _refuse(code: int) -> int:
    return 0x00050000 | code


def program() -> bytes:
    """The system calls that a submission may not make, for the kernel's seccomp filter: an array of
    `struct sock_filter`.

    Namespaces do not cover everything: a filter also keeps a submission from memory that no limit
    counts (memfd, System V segments), from sockets that no network namespace holds (vsock), from
    debugging a neighbour and from large, rarely used parts of the kernel.
    """
    lines: list[tuple[int, int, int, int]] = []

    def when(test: int, value: int, result: int) -> None:
        lines.extend([(test, 0, 1, value), (_RETURN, 0, 0, result)])

    lines.extend([(_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, 0xC000003E), (_RETURN, 0, 0, _KILL)])
    lines.append((_LOAD, 0, 0, _NUMBER))
    when(_AT_LEAST, 0x40000000, _refuse(errno.ENOSYS))  # the x32 numbers of the same calls
    for number in _DENIED.values():
        when(_EQUAL, number, _refuse(errno.EPERM))
    # The C library falls back to clone, whose flags a filter can see.
    when(_EQUAL, _CLONE3, _refuse(errno.ENOSYS))
    lines.extend([(_EQUAL, 0, 4, _CLONE), (_LOAD, 0, 0, _ARGUMENT_0)])
    when(_ANY_BIT, _NAMESPACES, _refuse(errno.EPERM))
    lines.append((_RETURN, 0, 0, _ALLOW))
    lines.extend([(_EQUAL, 0, 2 + 2 * len(_FAMILIES), _SOCKET), (_LOAD, 0, 0, _ARGUMENT_0)])
    for family in _FAMILIES:
        when(_EQUAL, family, _ALLOW)
    lines.append((_RETURN, 0, 0, _refuse(errno.EAFNOSUPPORT)))
    lines.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


COURSE = Path("/course")


@dataclass(frozen=True)
class Limits:
    """What one submission may use. seconds: for one attempt at one exercise, cells included."""

    seconds: float = 60.0
    memory_bytes: int = 4 << 30
    processes: int = 256
    files_bytes: int = 256 << 20


@dataclass(frozen=True)
class Host:
    """How a sandbox is made on this machine.

    root: whether it runs as root without a user namespace and changes to a user of its own;
    otherwise it lies in a user namespace.
    """

    bwrap: str
    root: bool


def highest_uid() -> int:
    """A user id near the upper end of those that there are here, far from any that is in use."""
    rows = [list(map(int, line.split())) for line in Path("/proc/self/uid_map").open()]
    first, _, count = max(rows, key=lambda row: row[2])
    return min(first + count, 2**31) - 10_000


def spare_uid(slot: int) -> int:
    """A user id of this sandbox alone, because the kernel counts the processes of a user."""
    return highest_uid() - (os.getpid() % 500) * 16 - slot % 16


def rlimits(limits: Limits) -> dict[str, int]:
    """The kernel's limits for every process of a submission, by name."""
    return {
        # Not RLIMIT_AS: torch_xla maps several times the memory that it uses.
        "RLIMIT_DATA": limits.memory_bytes * 3 // 4,
        "RLIMIT_FSIZE": limits.files_bytes,
        "RLIMIT_NPROC": limits.processes,
        "RLIMIT_NOFILE": 1024,
        "RLIMIT_CORE": 0,
        "RLIMIT_MSGQUEUE": 0,
    }


def command(host: Host, shown: list[str], cwd: str, limits: Limits) -> list[str]:
    """The arguments of bubblewrap up to the program to run. shown: what `mounts` gives."""
    size = str(limits.files_bytes)
    room = ["--perms", "1777", "--size", size, "--tmpfs"]
    environment = {
        "HF_HUB_OFFLINE": "1",
        "HOME": "/tmp",
        "IPYTHONDIR": "/tmp/.ipython",
        "LANG": "C.UTF-8",
        "LOGNAME": "learner",
        "MPLBACKEND": "agg",
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        # There is no network: an installation must not try again and again.
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INDEX": "1",
        "PIP_RETRIES": "0",
        "PJRT_DEVICE": "CPU",
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": str(COURSE),
        "TF_CPP_MIN_LOG_LEVEL": "1",
        "UV_OFFLINE": "1",
        "USER": "learner",
    }
    if host.root:
        rights = ["--cap-drop", "ALL"]
        for name in ("CAP_SETUID", "CAP_SETGID", "CAP_KILL"):
            rights += ["--cap-add", name]
    else:
        rights = ["--unshare-user", "--uid", "1000", "--gid", "1000"]
    words = [
        *rights,
        *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
        *("--unshare-cgroup-try", "--hostname", "sandbox"),
        *("--die-with-parent", "--new-session", "--clearenv"),
        *(word for key, value in environment.items() for word in ("--setenv", key, value)),
        *_system(),
        *("--proc", "/proc", "--dev", "/dev", *room, "/dev/shm", *room, "/tmp"),
    ]
    for folder in _python_folders():
        if not folder.is_relative_to("/usr"):
            words += _read_only(folder, folder)
    words += shown
    if cwd != "/tmp":
        words += [*room, cwd]
    return [*words, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", cwd, "--"]


def _python_folders() -> list[Path]:
    places = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix]
    return [Path(place) for place in dict.fromkeys(places)]


def shown_folders(root: Path) -> list[Path]:
    """The folders of this machine that a submission can read."""
    return [Path("/usr"), *(folder.resolve() for folder in _python_folders()), root / "utils"]


def _system() -> list[str]:
    words = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib64", "lib32"):
        path = Path("/", name)
        if path.is_symlink():
            words += ["--symlink", os.readlink(path), str(path)]
        elif path.exists():
            words += ["--ro-bind", str(path), str(path)]
    for name in ("ld.so.cache", "localtime", "alternatives"):
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return words


def mounts(lab: Lab, root: Path, modules: tuple[str, ...] = ()) -> list[str]:
    """The part of the course that a submission sees: `utils`, and of the exercises what observing
    this lab's answers and running its cells needs. modules: what else its cells import.
    """
    utils, inside = root / "utils", COURSE / "utils"
    words = _read_only(utils, inside)
    words += ["--tmpfs", str(inside / "labs")]
    # Solutions of kernels that labs ask for too.
    puzzles = str(inside / "nki" / "puzzles")
    words += ["--tmpfs", puzzles, "--remount-ro", puzzles]
    shown = [Path("labs", "grading", name) for name in ("__init__.py", "runner.py", "child.py")]
    shown += exercise_modules(lab, utils, modules)
    for path in shown:
        words += _read_only(utils / path, inside / path)
    return words


def exercise_modules(lab: Lab, utils: Path, modules: tuple[str, ...] = ()) -> list[Path]:
    """The files below `utils/labs` that the lab's observers and cells, `modules` and the
    runner import, by their paths in `utils`.
    """
    observing = f"utils.labs.{lab.name}.observe"
    waiting = ["utils.labs.guard", "utils.labs.audit_hook", observing, *lab.modules, *modules]
    results: set[Path] = set()
    while waiting:
        names = waiting.pop().split(".")
        # Importing a module imports the packages above it. "from a import b": b may be a module.
        for length in range(2, len(names) + 1):
            stem = Path(*names[1:length])
            for path in (stem / "__init__.py", stem.with_suffix(".py")):
                if names[:2] == ["utils", "labs"] and (utils / path).is_file():
                    if path not in results:
                        results.add(path)
                        waiting += _imports((utils / path).read_text(encoding="utf-8"))
    return sorted(results)


def files(contents: dict[Path, int]) -> list[str]:
    """Files below the course's folder that everybody in the sandbox can read and nobody can write.

    contents: by the place of a file, the descriptor to read it from.
    """
    words = []
    for place, descriptor in contents.items():
        inside = COURSE / place
        words += ["--dir", str(inside.parent.parent), "--dir", str(inside.parent)]
        words += ["--perms", "0444", "--ro-bind-data", str(descriptor), str(inside)]
    return words


def _imports(source: str) -> Iterator[str]:
    for node in ast.walk(parse_python(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _read_only(outside: Path, inside: Path) -> list[str]:
    # Without --dir bubblewrap makes the folders above a mount readable to root alone.
    return ["--dir", str(inside.parent), "--ro-bind", str(outside), str(inside)]
