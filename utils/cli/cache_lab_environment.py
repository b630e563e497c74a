"""The second environment of the cache lab: torch 2.7.1 with torch-xla 2.7.0 on Python 3.11, a pair
that loads on a CPU what it wrote to its persistent compile cache.

It lies in .tools/cache-lab, is made on demand by the same steps as the course's own environment,
and goes with `course.py clean`. Standard library only.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from utils.cli import builds, install, installers, standins
from utils.cli.home import Home, Record, SetupError, environment, read_record, write_record
from utils.cli.installers import Say, Uv
from utils.course.files import replace_file

PYTHON = (3, 11)
PINS = ("torch==2.7.1", "torch-xla==2.7.0", "numpy")
LOCK = Path("utils", "facts", "data", "cache_lab.lock")

# The disk is measured; the downloads are the sizes of the wheels, rounded.
DOWNLOAD_MB = {"slim": 950, "full": 3100}
DISK_MB = {"slim": 2200, "full": 5600}


class LabHome(Home):
    """The folder of the course, with the second environment in the place of the first."""

    @property
    def venv(self) -> Path:
        """The second environment."""
        return self.tools / "cache-lab"

    def lock(self, needs: str) -> str:
        """Its lock, the same for all needs."""
        return (self.root / LOCK).read_text()


class Steps(install.Steps):
    """The steps of the course's set-up, with what is different for this pair."""

    def announce(self, build: str, record: Record) -> None:
        """Say what it downloads and occupies; SetupError if the disk is too full."""
        install.check_space(self.home, DISK_MB[build])
        self.say(
            f"Installing torch 2.7.1 and torch-xla 2.7.0 beside the course's own pair "
            f"({DOWNLOAD_MB[build]} MB to download, once; {DISK_MB[build]} MB on the disk)."
        )

    def write_stand_ins(self, record: Record, build: str) -> Record:
        """torch 2.7 looks for one library in another folder than torch 2.9."""
        record = super().write_stand_ins(record, build)
        site, path = self.home.site(record.python), "cusparselt/lib/libcusparseLt.so.0"
        if build != "slim" or (site / path).exists():
            return record
        files = {path: (site / "nvidia" / path).read_bytes()}
        standins.write(site, files)
        stand_ins = record.stand_ins | standins.digests(files)
        return write_record(self.home, record, stand_ins=stand_ins)


def ready(home: LabHome) -> bool:
    """Is the environment complete? Asks no network."""
    record = read_record(home)
    return install.is_complete(home, record, "learner", _build(record))


def ensure(home: LabHome, say: Say) -> None:
    """Make the environment, or go on where an interrupted call stopped; SetupError if that fails.

    It takes the Python that runs it, which must be 3.11: see `python_3_11`.
    """
    if ready(home):
        return
    with install.alone(home, say) as held:
        steps = Steps(home, say, Uv(home, say, held), "learner")
        record = steps.make_environment(read_record(home))
        build = _build(record)
        steps.announce(build, record)
        record = steps.install(record, build)
        steps.finish(record, build, record.choice, recheck=False)


def _build(record: Record) -> str:
    """The build of torch: slim, unless it did not load here or a driver forbids it."""
    return builds.choose(record.choice, builds.driver())


def remove(home: LabHome, say: Say) -> None:
    """Delete the environment; one that this course did not make stays, with a SetupError."""
    read_record(home)
    if home.venv.exists():
        shutil.rmtree(home.venv)
        say("Removed the environment of the cache lab.")
    else:
        say("There is no environment of the cache lab.")


def python_3_11(home: LabHome, say: Say) -> str:
    """The path of a Python 3.11: this one, one of the machine, or one that uv fetches.

    torch-xla 2.7.0 has no build for a later Python. SetupError says what was tried.
    """
    if sys.version_info[:2] == PYTHON:
        return sys.executable
    for name in ("python3.11", "/usr/bin/python3.11"):
        path = shutil.which(name)
        if path and _version(path) == PYTHON:
            return path
    say("No Python 3.11 on this machine; uv fetches one into .tools (30 MB).")
    env = environment(home) | {
        "UV_PYTHON_DOWNLOADS": "manual",
        "UV_PYTHON_INSTALL_DIR": str(home.tools / "python"),
    }
    try:
        with install.alone(home, say) as held:
            Uv(home, say, held).fetch()
            command = [str(home.uv), "python", "install", "--no-bin", "3.11"]
            installers.run(command, env, "fetch Python 3.11", cwd=home.root, held=held)
            command = [str(home.uv), "python", "find", "--managed-python", "3.11"]
            result = installers.run(command, env, "find Python 3.11", cwd=home.root, held=held)
    except SetupError as error:
        here = ".".join(map(str, sys.version_info[:2]))
        raise SetupError(
            f"the cache lab needs Python 3.11 (torch-xla 2.7.0 has no build for {here}), and this "
            f"machine has none on its PATH.\n{error}\n"
            "Install Python 3.11, as with: apt-get install python3.11; then repeat the command."
        ) from None
    return result.strip()


def _version(python: str) -> tuple[int, int] | None:
    code = "import sys; print(*sys.version_info[:2])"
    try:
        answer = subprocess.run([python, "-Ic", code], capture_output=True, text=True)
    except OSError:
        return None
    words = answer.stdout.split()
    return (int(words[0]), int(words[1])) if len(words) == 2 else None


def write_lock(home: LabHome, say: Say) -> None:
    """For maintainers: resolve `PINS` anew, with the versions of the course's own lock where both
    have a package. Needs the network."""
    own = builds.packages(Home(home.root).lock("learner"))
    torch_only = builds.omitted_by("cpu", own) | {"torch", "torch-xla", "setuptools"}
    pins = [
        entry.partition("\\")[0].strip()
        for name, entries in own.items()
        if name not in torch_only
        for entry in entries
    ]
    with install.alone(home, say) as held, tempfile.TemporaryDirectory() as folder:
        uv = Uv(home, say, held)
        uv.fetch()
        given, constraints = Path(folder, "packages.in"), Path(folder, "versions.txt")
        given.write_text("\n".join(PINS))
        constraints.write_text("\n".join(pins))
        options = ["--quiet", "--generate-hashes", "--no-header", "--no-annotate"]
        options += ["--python-version", "3.11", "--python-platform", "x86_64-unknown-linux-gnu"]
        options += ["--no-emit-index-url", "--constraints", str(constraints), str(given)]
        text = uv("pip", "compile", *options, step="resolve the cache lab's packages")
    header = "# Written by `python3 course.py cache-lab --lock`; do not edit.\n"
    replace_file(home.root / LOCK, header + text)
    say(f"Wrote {LOCK}: {len(builds.packages(text))} packages")
