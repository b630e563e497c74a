"""Run the tests: all once, or with --quick or --exhaustive; other arguments go to pytest.

`course.py test` runs everything once. `--quick` runs lints, the rules of the repository and what
the files changed since main reach, within three minutes; with `--no-limit` all that they reach.
`--exhaustive` adds second executions of lessons, more seeds, and public repositories if
COURSE_AUDIT_REPOS names a folder with them. `--record` stores how long each part takes, by which
work is shared between the workers. With any other argument only that is run.
"""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from utils.cli import suite
from utils.cli.install import system_packages
from utils.course import kernel_server
from utils.course.catalog import ROOT
from utils.course.runner import kernel_environment, side_by_side

PROGRAMS = {"chromium": "chromium", "bubblewrap": "bwrap"}
"""What the tests start beside Python: Debian package to program."""

LIBRARIES = {"libatomic1": "libatomic.so.1"}
"""What those programs load and a minimal system lacks: Debian package to library."""

WORKERS = 3
"""More than the two cores of CI: tests wait for kernels, browsers and sandboxes."""
QUICK_S, QUICK_LIMIT_S = 220, 150
"""Seconds of both workers that fit three minutes beside start and collection; and seconds of the
clock after which nothing is begun, because the recorded seconds are those of another machine.
"""

NO_LIMIT = "--no-limit"
OWN = ("--quick", "--exhaustive", "--record", NO_LIMIT)

PARALLEL = ("-n", str(WORKERS), "--dist", "loadfile")
NOTEBOOKS_TOO = ("--doctest-modules", "--nbval")
EVERYTHING = ("tests", "utils", "notebooks")
SETTINGS = (
    *("-p", "tests.plugin"),
    "--nbval-kernel-name=python3",
    "--nbval-cell-timeout=120",
    "--nbval-sanitize-with=tests/nbval_sanitize.cfg",
)
PRELOADED = (
    *("utils.xla.fresh.preload", "ipykernel.kernelapp"),
    *("matplotlib.pyplot", "pandas", "pint"),
)
"""What nearly all notebooks import; none uses a device or starts a thread when it is imported."""


def main(argv: list[str]) -> int:
    """Run the tests that the arguments name; returns pytest's exit status."""
    own = [argument for argument in argv if argument in OWN]
    others = [argument for argument in argv if argument not in OWN]
    wanted = [package for package, program in PROGRAMS.items() if not shutil.which(program)]
    wanted += [package for package, library in LIBRARIES.items() if not _loads(library)]
    if missing := system_packages(wanted):
        _announce_missing(missing)
    with tempfile.TemporaryDirectory(prefix="course-test-") as folder:
        if others:
            passed = [a for a in own if a in ("--exhaustive", "--record")]
            return _pytest([*passed, *others], Path(folder))
        if "--quick" in own:
            return _pytest(_quick(Path(folder), NO_LIMIT in own), Path(folder))
        size = (
            ["--size=exhaustive", "--exhaustive"] if "--exhaustive" in own else ["--size=default"]
        )
        record = ["--record"] if "--record" in own else []
        return _pytest([*EVERYTHING, *NOTEBOOKS_TOO, *PARALLEL, *size, *record], Path(folder))


def _quick(folder: Path, no_limit: bool) -> list[str]:
    """Arguments of pytest for what the changed files reach; says what that is."""
    changed = suite.changed_files()
    if changed is None:
        print("No git history here, so nothing is known to have changed: lints and rules only.")
    reads = suite.Reads()
    hashes, recorded = suite.hashes_of_notebooks(reads), suite.read_green()
    green = {notebook for notebook, digest in hashes.items() if recorded.get(notebook) == digest}
    seconds = float("inf") if no_limit else QUICK_S
    choice = suite.choose(changed or set(), reads.units(), green, seconds)
    print(choice.describe(len(changed or ())), flush=True)
    units = folder / "units"
    units.write_text("\n".join(choice.run), encoding="utf-8")
    limit = [] if no_limit else [f"--limit={QUICK_LIMIT_S}"]
    sized = ["--size=quick", f"--units={units}", *limit]
    return [*choice.paths(), *NOTEBOOKS_TOO, *PARALLEL, *sized]


def _pytest(arguments: list[str], folder: Path) -> int:
    base = {key: value for key, value in os.environ.items() if key != "COURSE_PROGRESS"}
    base |= side_by_side(WORKERS) | {"COURSE_STRICT": "1"}
    server = folder / "kernels"
    with ExitStack() as stack:
        environment = stack.enter_context(kernel_environment(base, server))
        if any("notebooks" in argument or ".ipynb" in argument for argument in arguments):
            environment[kernel_server.VARIABLE] = str(server)
            stack.enter_context(kernel_server.serve(server, dict(environment), PRELOADED))
        command = [sys.executable, "-m", "pytest", *SETTINGS, *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment).returncode


def _announce_missing(missing: list[str]) -> None:
    names = " ".join(missing)
    print(
        f"\n*** NOT INSTALLED, and this user cannot install it: {names}\n"
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
