"""Run every test in one pytest session; arguments go to pytest and then only they are run."""

import ctypes
import os
import shutil
import subprocess
import sys

from utils.cli.install import system_packages
from utils.course.catalog import ROOT
from utils.course.runner import kernel_environment, side_by_side

PROGRAMS = {"chromium": "chromium", "bubblewrap": "bwrap"}
"""What the tests start beside Python: Debian package to program."""

LIBRARIES = {"libatomic1": "libatomic.so.1"}
"""What those programs load and a minimal system lacks: Debian package to library."""

WORKERS = 2

EVERYTHING = (
    "tests",
    "utils",
    "notebooks",
    "solutions",
    "--doctest-modules",
    "--nbval",
    # A notebook's cells share one kernel, so a notebook must not be split among workers.
    *("-n", str(WORKERS), "--dist", "loadfile"),
)
NBVAL = (
    "--nbval-current-env",
    "--nbval-cell-timeout=120",
    "--nbval-sanitize-with=tests/nbval_sanitize.cfg",
)


def _announce_missing(missing: list[str]) -> None:
    names = " ".join(missing)
    print(
        f"\n*** NOT INSTALLED, and not to be had here without help: {names}\n"
        f"*** Tests that need it cannot pass. As an administrator: apt-get install {names}\n",
        file=sys.stderr,
        flush=True,
    )


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def main(argv: list[str]) -> int:
    wanted = [package for package, program in PROGRAMS.items() if not shutil.which(program)]
    wanted += [package for package, library in LIBRARIES.items() if not _loads(library)]
    if missing := system_packages(wanted):
        _announce_missing(missing)
    base = {key: value for key, value in os.environ.items() if key != "COURSE_PROGRESS"}
    base |= side_by_side(WORKERS) | {"COURSE_STRICT": "1"}
    with kernel_environment(base) as environment:
        command = [sys.executable, "-m", "pytest", *NBVAL, *(argv or EVERYTHING)]
        return subprocess.run(command, cwd=ROOT, env=environment).returncode
