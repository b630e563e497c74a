"""Make the course's environment and keep it as the locks say: quiet, repeatable, interruptible.

uv makes the environment and installs what it is given. What is here is what no stock tool does:

- decide which build of torch this machine gets, and tell before the first byte how much is
  downloaded and whether the disk has room (`announce`, `check_space`)
- go on after an interruption: uv takes half a package for a whole one, so an environment that was
  cut off while packages were written is made again, from the cache (`make_environment`)
- let one set-up at a time work in the folder, and wait for an installer that outlived its launcher
  (`alone`)
- start at once, and without a network, where nothing is missing (`ensure`, `is_complete`)
- take the GPU libraries away again, write the stand-ins, see that torch loads, and install the real
  libraries where it does not (`install`, `finish`, `rescue`)

Standard library only.
"""

import contextlib
import fcntl
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from os import W_OK, access

from utils.cli import builds, bundles, standins
from utils.cli.home import Home, Record, SetupError, environment, read_record, works, write_record
from utils.cli.installers import Say, Uv, system_packages
from utils.xla.defaults import has_xla

__all__ = ["Home", "SetupError", "ensure", "environment", "system_packages"]

# Measured with Python 3.11: what an empty environment downloads, and what it then occupies.
DOWNLOAD_MB = {"slim": 1100, "full": 4400, "cpu": 540, builds.PLAIN: 300, "tests": 180}
DISK_MB = {"slim": 2850, "full": 7950, "cpu": 2150, builds.PLAIN: 1200, "tests": 760}

# What the course needs of the pair: that both load, and that a graph is compiled and run.
TRIAL = """
import torch, torch_xla
ones = torch.ones(2, 2, device="xla")
assert (ones @ ones).sum().item() == 8
"""
TRIAL_OF_TORCH = "import torch; assert torch.ones(2, 2).sum().item() == 4"


def ensure(home: Home, needs: str, say: Say, *, choice: str = "", recheck: bool = False) -> Record:
    """Bring the environment to what `needs` ("learner" or "everything") asks, with torch as
    `choice` says.

    Without `choice` the one made last stays (see `builds.BUILDS`). `recheck` tries torch again
    even if nothing has changed. Raises SetupError; what was done is kept, and the next call goes
    on from there.
    """
    before = read_record(home)
    choice = choice or before.choice
    driver = builds.driver()
    build = builds.choose(choice, driver, has_xla())
    if is_complete(home, before, needs, build) and not recheck:
        untouchable = not access(home.venv, W_OK) or not home.uv.exists()
        if untouchable or Uv(home, say, 0).audit(builds.selection(home.lock(needs), build)):
            return before
    with alone(home, say) as held:
        bundles.check(home, needs, build)
        steps = Steps(home, say, Uv(home, say, held), needs)
        if driver and build == "full":
            say(f"Found {driver}, a GPU or Neuron driver: torch comes with its GPU libraries.")
        # Read again: another set-up may have worked while this one waited.
        record = steps.make_environment(read_record(home))
        if is_complete(home, record, needs, build) and not recheck:
            # Only a package is missing that somebody removed.
            return steps.install(record, build)
        steps.announce(build, record)
        record = steps.install(record, build)
        return steps.finish(record, build, choice, recheck)


def _pair(build: str) -> str:
    """
    >>> _pair("slim"), _pair("plain")
    ('torch with torch-xla', 'torch')
    """
    return "torch" if build == builds.PLAIN else "torch with torch-xla"


def is_complete(home: Home, record: Record, needs: str, build: str) -> bool:
    """Was all of `needs` installed, from the present lock and with this build, and does Python
    run?"""
    same = record.complete.get(needs) == home.fingerprint(needs, build)
    return same and not record.busy and works(home, record)


def still_to_come(home: Home, record: Record, needs: str, build: str, mb: dict[str, int]) -> int:
    """How many of `mb` (`DOWNLOAD_MB` or `DISK_MB`) are left, as far as the record tells."""
    if not record.complete:
        total = mb[build]
    elif build == "full" and not any(home.site(record.python).glob("nvidia_cublas_cu12-*")):
        total = mb["full"] - mb["slim"]
    else:
        total = 0
    return total + (mb["tests"] if needs == "everything" and needs not in record.complete else 0)


def check_space(home: Home, needed_mb: int) -> None:
    """SetupError if the disk has less room than that."""
    free_mb = shutil.disk_usage(home.root).free // 10**6
    if free_mb < needed_mb:
        raise SetupError(
            f"{home.root} has {free_mb} MB free, and this needs about {needed_mb} MB.\n"
            "Free some space or move the folder to a larger disk; then type the same command again."
        )


@contextlib.contextmanager
def alone(home: Home, say: Say) -> Iterator[int]:
    """Wait until no other set-up works in this folder; yields the lock's file descriptor.

    The programs inherit it, so that an installer which outlives a killed course.py is waited for
    too.
    """
    try:
        home.tools.mkdir(exist_ok=True)
        file = open(home.tools / "lock", "w")
    except OSError as error:
        raise SetupError(
            f"{home.root} cannot be written ({error.strerror}): use a copy of the course elsewhere."
        ) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another set-up is running in this folder; waiting until it ends.")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


@dataclass(frozen=True)
class Steps:
    """The steps of a set-up; each leaves a state from which the next call can go on."""

    home: Home
    say: Say
    uv: Uv
    needs: str

    def make_environment(self, record: Record) -> Record:
        """Make .venv if there is none that works.

        One that was interrupted while packages were written may hold half a package that looks
        whole: it is made again, from uv's cache, in seconds.
        """
        self.uv.fetch()
        if record.python and not record.busy and works(self.home, record):
            return record
        if record.python:
            self.say("Making the environment again: it was interrupted, or its Python has changed.")
        self.home.venv.mkdir(exist_ok=True)
        python = f"{sys.version_info[0]}.{sys.version_info[1]}"
        # The mark comes first and stays, so that the folder is known as ours at every moment.
        record = write_record(self.home, Record(record.choice, python, busy=True))
        for path in self.home.venv.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path != self.home.marker:
                path.unlink()
        # Relocatable, because the course's folder may be moved.
        options = ("--quiet", "--no-project", "--allow-existing", "--relocatable")
        python_of = ("--python", sys.executable, self.home.venv)
        self.uv("venv", *options, *python_of, step="make the environment")
        return write_record(self.home, record, busy=False)

    def announce(self, build: str, record: Record) -> None:
        """Say what is to be done and how much it downloads; SetupError if the disk is too full."""
        check_space(self.home, still_to_come(self.home, record, self.needs, build, DISK_MB))
        size = still_to_come(self.home, record, self.needs, build, DOWNLOAD_MB)
        if not record.complete:
            what = f"{size} MB to download, once, less what is here already"
            if self.home.wheels.is_dir():
                what = "from the folder wheels/, without a network"
            self.say(f"Installing {_pair(build)} and JupyterLab ({what}).")
        elif size:
            self.say(f"Installing what is not there yet ({size} MB to download, once).")
        else:
            self.say("Bringing the environment up to date.")

    def install(self, record: Record, build: str) -> Record:
        """Install what `build` selects from the lock, and remove the GPU libraries that it does
        not."""
        lock = self.home.lock(self.needs)
        site = self.home.site(record.python)
        official = any(site.glob("torch-*+cpu.dist-info"))
        record = write_record(self.home, record, busy=True)
        try:
            if build == "cpu" and not official:
                self.install_official_torch(lock)
            swap = ["--reinstall-package", "torch"] if official and build != "cpu" else []
            self.uv.install(builds.selection(lock, build), *swap)
            unwanted = builds.omitted_by(build, builds.packages(lock)) - {"torch"}
            present = [
                name
                for name in sorted(unwanted)
                if any(site.glob(f"{name.replace('-', '_')}-*.dist-info"))
            ]
            if present:
                self.uv.pip("uninstall", *present, step="remove the GPU libraries")
                if environment(self.home)["UV_CACHE_DIR"] == str(self.home.tools / "cache"):
                    self.uv("cache", "clean", *present, step="free their space")
        except SetupError:
            # uv changes nothing until all is fetched: after a refusal the environment is whole.
            write_record(self.home, record, busy=False)
            raise
        return write_record(self.home, record, busy=False)

    def install_official_torch(self, lock: str) -> None:
        """Install the locked version of torch as PyTorch's own server has it for the CPU."""
        pin = builds.packages(lock)["torch"][0].split()[0]
        options = ("--no-deps", "--torch-backend", "cpu", "--reinstall-package", "torch", pin)
        try:
            self.uv.pip("install", *options, step="fetch the official CPU build of torch")
        except SetupError as error:
            raise SetupError(
                f"{error}\nThis build needs PyTorch's own server; the environment is as it was."
            ) from None

    def finish(self, record: Record, build: str, choice: str, recheck: bool) -> Record:
        """Write the stand-ins, see that torch and torch_xla load, and note what is complete."""
        fingerprints = {
            set_: self.home.fingerprint(set_, build) for set_ in ("learner", self.needs)
        }
        tried = record.complete.get("learner") == fingerprints["learner"] and not recheck
        if not tried:
            record = self.write_stand_ins(record, build)
            self.say(f"Testing {_pair(build)} (10 s).")
            if not self.python_runs(TRIAL_OF_TORCH if build == builds.PLAIN else TRIAL):
                return self.rescue(record, build)
        complete = record.complete | fingerprints
        record = write_record(self.home, record, choice=choice, complete=complete)
        self.say("The environment is ready.")
        return record

    def write_stand_ins(self, record: Record, build: str) -> Record:
        """Write what `build` needs and remove what it does not; noted first, so that none is
        forgotten."""
        if build == builds.PLAIN:  # nothing there asks for these libraries
            return record
        site = self.home.site(record.python)
        soname = f"libpython{record.python}.so.1.0"
        missing = not self.python_runs(f"import ctypes; ctypes.CDLL('{soname}')")
        files = standins.libpython(site, soname) if missing else {}
        kept = dict(record.stand_ins)
        if build == "slim":
            files |= standins.cuda(site)
        else:
            standins.remove(site, {path: kept.pop(path) for path in list(kept) if "nvidia" in path})
        record = write_record(self.home, record, stand_ins=kept | standins.digests(files))
        standins.write(site, files)
        return record

    def rescue(self, record: Record, build: str) -> Record:
        """torch did not load: without GPU libraries install them; with them, say what to do."""
        if build == "slim":
            self.say("torch does not load without its GPU libraries here.")
            self.announce("full", record)
            record = self.install(record, "full")
            return self.finish(record, "full", "full", recheck=True)
        modules = "torch" if build == builds.PLAIN else "torch, torch_xla"
        raise SetupError(
            "The packages are installed but do not load. To see why:\n"
            f"  {self.home.python} -c 'import {modules}'\n"
            "To install everything afresh: python3 course.py clean, then the same command again."
        )

    def python_runs(self, code: str) -> bool:
        """Whether the environment's Python runs this without an error, on the CPU."""
        command = [str(self.home.python), "-Pc", code]
        env = environment(self.home) | {"PJRT_DEVICE": "CPU"}
        answer = subprocess.run(command, env=env, cwd=self.home.root, capture_output=True)
        return answer.returncode == 0
