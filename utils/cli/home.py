"""Where the course's environment lies, what it remembers about itself, and the variables it runs
with.

.venv/trainium-course.json is the mark that .venv is the course's own; without it the folder is
never touched. Why not uv alone: it cannot tell a folder of ours from a learner's, nor whether it
was interrupted half way through a package, nor which files beside its packages the course wrote.
Standard library only.
"""

import dataclasses
import hashlib
import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from utils.course.files import replace_file

LOCKS = {"learner": "requirements.lock", "everything": "requirements-dev.lock"}


class SetupError(Exception):
    """A step of the set-up failed; the message says which, and what to do."""


@dataclass(frozen=True)
class Home:
    """Where things lie, given the folder of the course."""

    root: Path

    @property
    def tools(self) -> Path:
        """The installer, its cache and the lock of the set-up."""
        return self.root / ".tools"

    @property
    def uv(self) -> Path:
        """The course's own uv."""
        return self.tools / "bin" / "uv"

    @property
    def wheels(self) -> Path:
        """The packages of a bundle, where the folder comes from one; see `bundles`."""
        return self.root / "wheels"

    @property
    def venv(self) -> Path:
        """The environment."""
        return self.root / ".venv"

    @property
    def python(self) -> Path:
        """The Python of the environment."""
        return self.venv / "bin" / "python"

    @property
    def marker(self) -> Path:
        """The file with the record."""
        return self.venv / "trainium-course.json"

    def site(self, python: str) -> Path:
        """site-packages for `python`, such as "3.11"."""
        return self.venv / "lib" / f"python{python}" / "site-packages"

    def lock(self, needs: str) -> str:
        """The text of the lock file for "learner" or "everything"."""
        return (self.root / LOCKS[needs]).read_text()

    def fingerprint(self, needs: str, build: str) -> str:
        """What a set is installed from: it changes with the lock and with the build of torch."""
        return hashlib.sha256(f"{build}\n{self.lock(needs)}".encode()).hexdigest()


@dataclass(frozen=True)
class Record:
    """What the environment remembers.

    choice     the build of torch that was asked for last: see `builds.BUILDS`
    python     the version it was made with, such as "3.11"; empty if there is no environment
    busy       packages are being written; still true later, it tells of an interruption
    complete   {"learner" or "everything": the fingerprint it was installed from}
    stand_ins  {path below site-packages: sha256} of the libraries that were written
    """

    choice: str = "slim"
    python: str = ""
    busy: bool = False
    complete: dict[str, str] = field(default_factory=dict)
    stand_ins: dict[str, str] = field(default_factory=dict)


def read_record(home: Home) -> Record:
    """The record of the environment; SetupError if there is a .venv that is not the course's
    own."""
    if not os.path.lexists(home.venv):
        return Record()
    try:
        return Record(**json.loads(home.marker.read_text()))
    except (OSError, ValueError, TypeError):
        raise SetupError(
            f"{home.venv} exists, but this course did not make it, so it stays as it is.\n"
            "Rename or remove it, or use a fresh copy of the course; then repeat the command."
        ) from None


def write_record(home: Home, record: Record, **changes: Any) -> Record:
    """Write `record` with `changes`, whole or not at all, and return it."""
    record = dataclasses.replace(record, **changes)
    replace_file(home.marker, json.dumps(dataclasses.asdict(record), indent=1) + "\n")
    return record


def works(home: Home, record: Record) -> bool:
    """Does the environment's Python run, and is it still of the version it was made with?"""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run([home.python, "-Ic", code], capture_output=True, text=True)
    except OSError:
        return False
    return answer.stdout.strip() == record.python


# Settings of the outer shell that would change what the course's Python or uv does.
FOREIGN = set(
    "PYTHONDONTWRITEBYTECODE PYTHONPATH PYTHONHOME UV_PROJECT_ENVIRONMENT UV_SYSTEM_PYTHON "
    "UV_TARGET UV_PREFIX UV_TORCH_BACKEND UV_EXCLUDE_NEWER".split()
)

# Where Debian, Fedora and SUSE keep the certificates that this machine trusts.
CERTIFICATES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
)


def environment(home: Home) -> dict[str, str]:
    """The environment variables for everything that the course starts."""
    env = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    path = [str(home.venv / "bin"), *env.get("PATH", os.defpath).split(os.pathsep)]
    env["PATH"] = os.pathsep.join(dict.fromkeys(path))
    env.setdefault("PJRT_DEVICE", "CPU")
    # Within the folder: `clean` frees it all, and .venv shares its space through hard links.
    env.setdefault("UV_CACHE_DIR", str(home.tools / "cache"))
    # pip trusts what the machine trusts, a school's proxy for instance; uv does so when told.
    if any(map(os.path.exists, CERTIFICATES)):
        env.setdefault("UV_SYSTEM_CERTS", "true")
    return env | {
        "JUPYTER_PLATFORM_DIRS": "1",
        "PYTHONNOUSERSITE": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "VIRTUAL_ENV": str(home.venv),
        # For a script of the user's that a dry run starts.
        "COURSE_USER_PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
