"""Who may log in to the hub, and how the server of one person is started and ended."""

import asyncio
import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jupyterhub.auth import Authenticator
from jupyterhub.spawner import LocalProcessSpawner
from tornado.netutil import bind_unix_socket
from traitlets import Any as AnyTrait

from utils.cli.hub.people import right
from utils.cli.hub.settings import Settings
from utils.labs.grading import confine, sandbox

COURSE_PARTS = ("utils", "notebooks", "labs", "course.py", "pyproject.toml", "README.md")
"""What a learner's server sees of the course: no solutions, no tests, no history."""
DROPPED = ("--die-with-parent", "--clearenv")
"""A server outlives a hub that was killed, which finds it again. Tokens come in the environment:
whoever is on the machine could read an argument."""


class ClassAuthenticator(Authenticator):
    """Knows the people of the class file."""

    settings: Settings = AnyTrait().tag(config=True)  # type: ignore[assignment]

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self._one_at_a_time = asyncio.Lock()

    async def authenticate(self, handler: Any, data: dict[str, str]) -> str | None:
        """The name, if the password is right. One try at a time: guessing in parallel is no
        faster."""
        name = data["username"].strip().lower()
        async with self._one_at_a_time:
            known = self.settings.people
            passed = await asyncio.to_thread(right, known, name, data["password"])
        return name if passed else None


class SandboxSpawner(LocalProcessSpawner):
    """Starts the server of one person in a sandbox of bubblewrap."""

    settings: Settings = AnyTrait().tag(config=True)  # type: ignore[assignment]

    def user_env(self, env: dict[str, str]) -> dict[str, str]:
        """Nothing of an account of the machine: nobody has one."""
        return env

    async def start(self) -> str:
        """Start the server; returns the address of its socket."""
        settings, name = self.settings, self.user.name
        await self.stop()
        work = settings.people.work(name)
        uid = settings.uid(name)
        await asyncio.to_thread(own, work, uid)
        address = settings.run / name
        listener = bind_unix_socket(str(address), mode=0o600)
        # JupyterHub takes an address for host and port, and adds a port; the proxy takes both for
        # the name of the socket.
        with contextlib.suppress(FileExistsError):
            address.with_name(f"{name}:80").symlink_to(name)
        log = settings.people.folder / "logs" / f"{name}.log"
        log.parent.mkdir(exist_ok=True)
        with listener, sandbox.seccomp() as program, open(log, "wb") as output:
            descriptors = [program, listener.fileno()]
            words = command(settings, work, program)
            words += [sys.executable, "-P", "-m", "utils.cli.hub.person"]
            words += [str(listener.fileno()), str(uid), *limits(settings), *self.get_args()]
            self.proc = subprocess.Popen(
                words,
                env=self.get_env(),
                pass_fds=descriptors,
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        self.pid = self.proc.pid
        settings.pid_file(name).write_text(str(self.pid))
        return f"http+unix://{quote(str(address), safe='')}"

    async def stop(self, now: bool = False) -> None:
        """End the sandbox and all in it; what is saved is on the disk."""
        self.settings.pid_file(self.user.name).unlink(missing_ok=True)
        if self.pid and await self.poll() is None:
            await asyncio.to_thread(sandbox.end, self.pid, self.proc)
            await self.poll()
        for place in (self.user.name, f"{self.user.name}:80"):
            (self.settings.run / place).unlink(missing_ok=True)


def command(settings: Settings, work: Path, program: int) -> list[str]:
    """The arguments of bubblewrap for the server of the person with this folder."""
    root = settings.root
    shown = ["--dir", str(root)]
    for part in COURSE_PARTS:
        shown += ["--ro-bind-try", str(root / part), str(root / part)]
    hub = str(settings.hub_socket.parent)
    shown += ["--bind", str(work), str(root / "work")]
    shown += ["--dir", str(settings.run), "--ro-bind", hub, hub]
    shown += ["--setenv", "PYTHONPATH", str(root), "--setenv", "HOME", str(root / "work" / ".home")]
    shown += ["--setenv", "COURSE_PROGRESS", str(root / "work" / ".progress.json")]
    inside = confine.command(settings.host, shown, "/tmp", settings.limits)
    kept = [word for word in inside if word not in DROPPED]
    return [settings.host.bwrap, "--seccomp", str(program), *kept]


def limits(settings: Settings) -> list[str]:
    """The limits of the kernel for every process of a person, as arguments of `person`."""
    known = confine.rlimits(settings.limits)
    return [",".join(f"{name}={value}" for name, value in known.items())]


def own(work: Path, uid: int) -> None:
    """Make somebody's folder, and give it to its user id where each person has one."""
    work.mkdir(parents=True, exist_ok=True)
    if uid and work.stat().st_uid != uid:
        for folder, folders, files in os.walk(work):
            for name in [*folders, *files]:
                os.chown(os.path.join(folder, name), uid, uid, follow_symlinks=False)
        os.chown(work, uid, uid)
