"""The sandbox that a submission runs in, made by bubblewrap, and the watchdog outside it.

Inside there are read-only copies of nothing but Python, its packages and the part of `utils` that
observes; no network, no home, no judge, no solution, no other submission. The watchdog limits what
the kernel does not: memory of all processes together, their number, and the time of the whole run.
"""

import contextlib
import json
import os
import platform
import queue
import selectors
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from utils.labs.grading import confine
from utils.labs.grading.answers import Earlier
from utils.labs.grading.confine import COURSE, Host, Limits, command, mounts, rlimits, spare_uid
from utils.labs.grading.lab import Lab

STARTUP_SECONDS = 120
# Beyond the time of an attempt, for cleaning up after it: the runner is heard of at least then.
GRACE_SECONDS = 15
CHANNEL_BYTES = 128 << 20
# A look at all processes costs 3 ms, and a sandbox lives for some ten seconds.
LOOK_EVERY_S = 0.25
_NOISE_BYTES = 1 << 16


class SandboxError(RuntimeError):
    """The sandbox cannot be made here; nothing is graded without it. The text says what to do."""


@dataclass(frozen=True)
class Outcome:
    """What came out of a sandbox.

    messages: of the runner, in order. ended: "complete", "died", or what the watchdog stopped it
    for ("memory", "processes", "time", "flood"). noise: the first bytes of what the runner itself
    printed.
    """

    messages: tuple[dict[str, Any], ...]
    ended: str
    noise: str


def prepare() -> Host:
    """Find bubblewrap and try it. Raises SandboxError."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise SandboxError("grading needs Linux on x86-64: its sandbox is made of kernel features")
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise SandboxError(
            "bubblewrap is missing, and submissions are never run without a sandbox:"
            " install it (Debian, Ubuntu: sudo apt-get install bubblewrap) and grade again"
        )
    reasons = []
    for root in [True, False] if os.geteuid() == 0 else [False]:
        host = Host(bwrap, root)
        try:
            with seccomp() as program:
                full = [bwrap, "--seccomp", str(program), *command(host, [], "/tmp", Limits())]
                full += [sys.executable, "-I", "-c", "pass"]
                tried = subprocess.run(
                    full, pass_fds=[program], capture_output=True, text=True, timeout=60
                )
        except (OSError, subprocess.SubprocessError) as error:
            reasons.append(str(error))
            continue
        if tried.returncode == 0:
            return host
        reasons.append(tried.stderr.strip()[-300:] or f"exit status {tried.returncode}")
    raise SandboxError(
        f"the sandbox does not start ({'; '.join(reasons)}), and submissions are never run without"
        " it. It needs bubblewrap 0.8 or newer and a kernel that lets this user make namespaces:"
        " in a container, start the container with more rights; on Ubuntu 24.04 grade as root or"
        " allow user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0)"
    )


def run(
    host: Host,
    lab: Lab,
    root: Path,
    request: dict[str, Any],
    limits: Limits,
    slot: int,
    earlier: Earlier,
) -> Outcome:
    """Run a request of `runner` in a sandbox of its own. `slot` tells sandboxes that run at the
    same time apart; `earlier` is what lies beside the lab in there.
    """
    cwd = COURSE / "labs" / lab.path.parent.name
    writable = ["/tmp", "/dev/shm", str(cwd)]
    uid = spare_uid(slot) if host.root else None
    request = {
        **request,
        "seconds": limits.seconds,
        "cwd": str(cwd),
        "writable": writable,
        "uid": uid,
        "limits": rlimits(limits),
    }
    results, results_in = os.pipe()
    with contextlib.ExitStack() as stack:
        program = stack.enter_context(seccomp())
        task = stack.enter_context(_memory(json.dumps(request).encode()))
        contents = {
            Path("labs", place): stack.enter_context(_memory(content))
            for place, content in earlier.files.items()
        }
        shown = [*mounts(lab, root, earlier.modules), *confine.files(contents)]
        words = [
            host.bwrap,
            *("--seccomp", str(program)),
            *command(host, shown, str(cwd), limits),
            *(sys.executable, "-B", "-P", "-s", "-m", "utils.labs.grading.runner", str(results_in)),
        ]
        process = subprocess.Popen(
            words,
            stdin=task,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=[program, results_in, *contents.values()],
        )
        os.close(results_in)
        errors = process.stderr
        assert errors is not None  # it was asked for
        try:
            return _watch(process, results, errors.fileno(), limits)
        finally:
            end(process.pid, process)
            errors.close()
            os.close(results)


def _watch(process: subprocess.Popen, results: int, errors: int, limits: Limits) -> Outcome:
    channel = {results: bytearray(), errors: bytearray()}
    ended, look_at = "died", time.monotonic()
    deadline = time.monotonic() + STARTUP_SECONDS
    with selectors.DefaultSelector() as selector:
        for descriptor in channel:
            os.set_blocking(descriptor, False)
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select(0.1):
                chunk = os.read(key.fd, 1 << 16)
                if not chunk:
                    selector.unregister(key.fd)
                elif key.fd == results:
                    channel[key.fd] += chunk
                    deadline = time.monotonic() + limits.seconds + GRACE_SECONDS
                else:
                    channel[key.fd] += chunk[: _NOISE_BYTES - len(channel[key.fd])]
            stop = None
            if time.monotonic() > look_at:  # a look costs milliseconds; lines may come faster
                stop, look_at = _excess(process.pid, limits), time.monotonic() + LOOK_EVERY_S
            if len(channel[results]) > CHANNEL_BYTES:
                stop = "flood"
            if time.monotonic() > deadline:
                stop = "time"
            if stop:
                ended = stop
                break
            # A closed channel means the end, even if somebody holds the other pipe open.
            if results not in selector.get_map():
                break
    messages = tuple(_messages(bytes(channel[results])))
    if ended == "died" and messages and messages[-1].get("complete"):
        ended = "complete"
    noise = bytes(channel[errors]).decode("utf-8", "replace")
    return Outcome(messages, ended, noise)


def _messages(data: bytes) -> Iterator[dict[str, Any]]:
    for line in data.split(b"\n"):
        with contextlib.suppress(ValueError, RecursionError):
            message = json.loads(line)
            if isinstance(message, dict):
                yield message


def _family(pid: int) -> list[Any]:
    import psutil

    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _excess(pid: int, limits: Limits) -> str | None:
    """What a sandbox has too much of: "memory", "processes" or None."""
    import psutil

    family = _family(pid)
    # The kernel refuses more processes first; this is for kernels that count them differently.
    if len(family) > limits.processes + 8:
        return "processes"
    resident = 0
    for process in family:
        with contextlib.suppress(psutil.Error, OSError):
            resident += process.memory_info().rss
    if resident <= limits.memory_bytes:
        return None
    shared_once = 0
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            try:
                shared_once += process.memory_full_info().pss
            except (psutil.AccessDenied, OSError):
                shared_once += process.memory_info().rss
    return "memory" if shared_once > limits.memory_bytes else None


def end(pid: int, process: subprocess.Popen | None = None) -> None:
    """Kill the sandbox with all it holds: its first process takes the others along."""
    import psutil

    process = process or psutil.Process(pid)
    family = _family(pid)
    for member in family[:1]:
        with contextlib.suppress(psutil.Error):
            member.kill()
    try:
        # bubblewrap outside ends when its child has; killed before, it would leave that one to
        # nobody.
        process.wait(10)
    except (subprocess.TimeoutExpired, psutil.TimeoutExpired):
        process.kill()
        process.wait()
    _, alive = psutil.wait_procs(family, timeout=20)
    if alive:
        raise SandboxError(f"processes {[p.pid for p in alive]} of a submission could not be ended")


@contextlib.contextmanager
def _memory(data: bytes) -> Iterator[int]:
    """A file descriptor to read `data` from; no file anywhere."""
    descriptor = os.memfd_create("grading", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def seccomp() -> contextlib.AbstractContextManager[int]:
    """A file descriptor with the filter of `confine.program`, for bubblewrap."""
    return _memory(confine.program())


class Slots:
    """Places for sandboxes that run at the same time, each with its own share of the processors."""

    def __init__(self, jobs: int):
        processors = sorted(os.sched_getaffinity(0))
        self.jobs = max(1, min(jobs, len(processors), 16))
        self._free: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._share = [processors[k :: self.jobs] for k in range(self.jobs)]
        for slot in range(self.jobs):
            self._free.put(slot)

    @contextlib.contextmanager
    def take(self) -> Iterator[int]:
        """A free place; what this thread starts meanwhile stays on the place's processors."""
        slot = self._free.get()
        before = os.sched_getaffinity(0)
        try:
            os.sched_setaffinity(0, self._share[slot])
            yield slot
        finally:
            os.sched_setaffinity(0, before)
            self._free.put(slot)
