"""Kill this process at a chosen moment, as `kill -9` would: no handler, no clean-up, no flush.

The moments within a save are calls of the operating system, so the process dies between two real
ones. A kill is not a power cut: what the system has been given survives it, forced to the disk or
not (see `utils.training.checkpoint.powercut`).
"""

import os
import resource
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

MOMENTS = {
    "step": "before a training step",
    "write": "half of the bytes are written",
    "fsync": "all bytes are written, nothing is forced to the disk",
    "replace": "the file is on the disk under its temporary name",
    "renamed": "the file has its name, the folder is not yet on the disk",
    "unlink": "the new checkpoint is safe, an old one is about to be removed",
}


@dataclass(frozen=True)
class Kill:
    """Where to die: the `count`-th time, from 1, that `moment` of `MOMENTS` comes."""

    moment: str
    count: int

    def __post_init__(self) -> None:
        if self.moment not in MOMENTS or type(self.count) is not int or self.count < 1:
            raise ValueError(f"{self}: the moment is one of {', '.join(MOMENTS)}, the count from 1")

    def arm(self) -> Callable[[int], None]:
        """Make the calls of this process deadly; returns what to call before each step."""
        left = iter(range(self.count - 1, -1, -1))

        def now(moment: str) -> bool:
            return moment == self.moment and next(left, -1) == 0

        def deadly(name: str, moment: str) -> None:
            real = getattr(os, name)

            def call(*arguments: Any, **options: Any) -> Any:
                if now(moment):
                    die()
                return real(*arguments, **options)

            setattr(os, name, call)

        def write(descriptor: int, content: bytes) -> int:
            if now("write"):
                real_write(descriptor, content[: len(content) // 2])
                die()
            return real_write(descriptor, content)

        def fsync(descriptor: int) -> None:
            folder = os.path.isdir(f"/proc/self/fd/{descriptor}")
            if now("renamed" if folder else "fsync"):
                die()
            real_fsync(descriptor)

        real_write, real_fsync = os.write, os.fsync
        vars(os).update(write=write, fsync=fsync)
        deadly("replace", "replace")
        deadly("unlink", "unlink")

        def before_step(step: int) -> None:
            if now("step"):
                die()

        return before_step


def die() -> NoReturn:
    """End this process at once by SIGKILL."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("a process outlived SIGKILL")


def kill_at_byte(limit_bytes: int) -> None:
    """From now on the kernel kills this process when a file of it would grow beyond `limit_bytes`,
    whoever writes it, Python or not: SIGXFSZ, in the middle of the write."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it, and raises OSError instead
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))


def full_at_byte(limit_bytes: int) -> None:
    """From now on no file of this process can grow beyond `limit_bytes`: a write to one is cut
    short, and the next raises OSError (EFBIG), as on a disk that is full."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
