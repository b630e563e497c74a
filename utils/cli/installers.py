"""Run pip, uv and apt-get quietly: their words are shown only if they fail.

pip fetches uv, of the version in pyproject.toml, into .tools; uv does all else, with the settings
that a class made for pip. Standard library only.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path

from utils.cli.home import Home, SetupError, environment

Say = Callable[[str], None]


def run(
    command: Sequence[object],
    env: Mapping[str, str],
    step: str,
    *,
    cwd: Path,
    held: int | None = None,
) -> str:
    """Run a program to its end and return what it wrote; SetupError("could not STEP ...") if it
    fails.

    `held` is a file descriptor that the program keeps open, such as a lock's.
    """
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(
            list(map(str, command)),
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=[] if held is None else [held],
        )
        try:
            code = _wait(process)
        except BaseException:
            process.terminate()
            process.wait()
            raise
        output.seek(0)
        text = output.read()
    if code:
        words = "\n".join(f"  {line}" for line in text.rstrip().splitlines()[-12:])
        raise SetupError(
            f"could not {step}. {Path(str(command[0])).name} says:\n{words}\n"
            "What is done is kept: remove the cause, then type the same command again."
        )
    return text


def _wait(process: subprocess.Popen) -> int:
    """Wait for the process; on a terminal, show meanwhile how much it has written."""
    while sys.stderr.isatty():
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(timeout=1)
            print("\r" + " " * 24 + "\r", end="", file=sys.stderr, flush=True)
            return code
        if written := _written_mb(process.pid):
            print(f"\r  {written} MB unpacked", end="", file=sys.stderr, flush=True)
    return process.wait()


def _written_mb(pid: int) -> int:
    """Megabytes that a child has written so far; 0 where the kernel does not tell."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("wchar:")).split()[1]) // 10**6
    return 0


# What pip and uv call the same thing: a class behind a mirror or a proxy has told it to pip alone.
PIP_TO_UV = {"index-url": "UV_DEFAULT_INDEX", "cert": "SSL_CERT_FILE", "proxy": "ALL_PROXY"}


def settings_of_pip(config_list: str) -> dict[str, str]:
    """The variables for uv that say what `pip config list` says.

    >>> settings_of_pip("global.index-url='https://mirror.example/simple'\\nglobal.timeout='60'")
    {'UV_DEFAULT_INDEX': 'https://mirror.example/simple'}
    """
    pairs = (line.partition("=") for line in config_list.splitlines())
    named = ((key.rpartition(".")[2], value.strip("'\"")) for key, _, value in pairs)
    return {PIP_TO_UV[name]: value for name, value in named if name in PIP_TO_UV}


# The course's own environment has no pip, and the Python that it was made with has one. A search
# through importlib.util would have setuptools give up its own distutils, on Python 3.11.
PYTHON = (
    sys.executable
    if PathFinder.find_spec("pip")
    else getattr(sys, "_base_executable", sys.executable)
)
PIP = (PYTHON, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input")


def pip_environment(home: Home) -> dict[str, str]:
    """The variables for pip: a user's setting of these two contradicts a folder of ours."""
    return environment(home) | {"PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"}


def uv_requirement(home: Home) -> str:
    """The uv that pyproject.toml asks for, as a requirement."""
    project = tomllib.loads((home.root / "pyproject.toml").read_text())
    return "uv" + project["tool"]["uv"]["required-version"]


@dataclass(frozen=True)
class Uv:
    """The uv of the course, on its environment; `held` is the lock's descriptor (see `run`).

    Where the folder has the wheels of a bundle, everything comes from them, and no network is used.
    """

    home: Home
    say: Say
    held: int

    def fetch(self) -> None:
        """Put the pinned uv into .tools; pip's --target needs neither the venv module nor root."""
        wanted = uv_requirement(self.home)
        with contextlib.suppress(OSError, IndexError):
            answer = subprocess.run([self.home.uv, "--version"], capture_output=True, text=True)
            if f"uv=={answer.stdout.split()[1]}" == wanted:
                return
        self.say("Fetching the installer uv (25 MB).")
        command = [*PIP, "install", "--upgrade", "--target", str(self.home.tools), wanted]
        run(
            [*command, *self._sources()],
            pip_environment(self.home),
            "fetch uv",
            cwd=self.home.root,
            held=self.held,
        )

    def __call__(self, *arguments: object, step: str) -> str:
        """`uv ARGUMENTS`, and what it wrote; raises as `run`."""
        env = settings_of_pip(_pip_config()) | environment(self.home)
        command = [self.home.uv, *arguments]
        return run(command, env, step, cwd=self.home.root, held=self.held)

    def _sources(self) -> list[object]:
        wheels = self.home.wheels
        return ["--no-index", "--find-links", wheels] if wheels.is_dir() else []

    def pip(self, verb: str, *arguments: object, step: str) -> str:
        """`uv pip VERB` on the environment."""
        if verb == "install":
            arguments = (*self._sources(), *arguments)
        return self("pip", verb, "--python", self.home.python, *arguments, step=step)

    def audit(self, requirements: str) -> bool:
        """Is all of `requirements` installed? Asks no network where it is."""
        with _as_file(requirements) as path:
            command = [str(self.home.uv), "pip", "install", "--python", str(self.home.python)]
            command += ["--no-deps", "--require-hashes", "--offline", "--dry-run"]
            answer = subprocess.run(
                [*command, "--requirement", path],
                env=environment(self.home),
                cwd=self.home.root,
                capture_output=True,
                text=True,
            )
        return "Would make no changes" in answer.stderr

    def install(self, requirements: str, *options: str) -> None:
        """Install exactly `requirements`, a lock's text with hashes."""
        with _as_file(requirements) as path:
            exactly = ("--no-deps", "--require-hashes", *options, "--requirement", path)
            self.pip("install", *exactly, step="install the packages")


@contextlib.contextmanager
def _as_file(text: str) -> Iterator[str]:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(text)
        file.flush()
        yield file.name


def _pip_config() -> str:
    command = [sys.executable, "-m", "pip", "config", "list"]
    return subprocess.run(command, capture_output=True, text=True).stdout


def system_packages(names: Sequence[str]) -> list[str]:
    """Install Debian packages that are missing, if apt-get may be used; returns those still
    missing.

    May be used means: as root, or with a sudo that asks for no password.
    """
    missing = [name for name in names if not _is_installed(name)]
    if not missing or not shutil.which("apt-get"):
        return missing
    sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if sudo and not _quietly(["sudo", "-n", "true"]):
        return missing
    apt = [*sudo, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    # One by one: a name that this distribution does not know would stop the others.
    installs = [[*apt, "install", "-y", "--no-install-recommends", name] for name in missing]
    refused = [install for install in installs if not _quietly(install)]
    # A list of packages that is there and fresh enough saves fetching it again.
    if refused and _quietly([*apt, "update"]):
        for install in refused:
            _quietly(install)
    return [name for name in missing if not _is_installed(name)]


def _is_installed(name: str) -> bool:
    query = ["dpkg-query", "--show", "--showformat=${db:Status-Status}", name]
    try:
        return subprocess.run(query, capture_output=True, text=True).stdout == "installed"
    except OSError:
        return False


def _quietly(command: list[str]) -> bool:
    try:
        return (
            subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL).returncode == 0
        )
    except OSError:
        return False
