"""For maintainers: write both lock files anew; only the packages named (--all: all) may change.

`lock` alone keeps every version and follows pyproject.toml; `lock numpy` also frees numpy. Where a
version stands in the way, uv says whose: name that package too. Needs the network. The lock of uv
itself is not kept, because it names addresses.
"""

import argparse
import re
import tempfile
import tomllib
from collections.abc import Collection
from pathlib import Path

from utils.cli import builds, install
from utils.cli.home import LOCKS, Home
from utils.cli.installers import Uv

NEEDS = "nothing"
ROOT = Path(__file__).resolve().parents[3]
HEADER = "# Written by `python3 course.py lock` from pyproject.toml; do not edit.\n"


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser("course.py lock", description=__doc__.splitlines()[0])
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="may change its version")
    parser.add_argument("--all", action="store_true", help="every version may change")
    given = parser.parse_args(arguments)
    home = Home(ROOT)
    present = "" if given.all else home.lock("everything")
    project = (ROOT / "pyproject.toml").read_text()
    environments = tomllib.loads(project)["tool"]["uv"]["environments"]
    with install.alone(home, print) as held, tempfile.TemporaryDirectory() as folder:
        uv = Uv(home, print, held)
        uv.fetch()
        copy = Path(folder)
        (copy / "pyproject.toml").write_text(constrain(project, present, given.packages))
        uv("lock", "--quiet", "--project", copy, step="resolve pyproject.toml")
        for needs, name in LOCKS.items():
            groups = ["--all-groups"] if needs == "everything" else []
            target = copy / name
            options = ["--quiet", "--project", copy, "--locked", "--no-emit-project", "--no-header"]
            options += ["--format", "requirements.txt", "--output-file", target, *groups]
            uv("export", *options, step=f"write {name}")
            text = HEADER + shorten(target.read_text(), environments)
            (ROOT / name).write_text(text)
            print(f"Wrote {name}: {len(builds.packages(text))} packages")
    return 0


def shorten(lock: str, environments: Collection[str]) -> str:
    """The lock without the markers that hold in every environment of pyproject.toml.

    >>> shorten("x==1 ; (a == 2) or (a == 1) \\\\", ["a == 1", "a == 2"])
    'x==1 \\\\'
    """
    every = {frozenset(environment.split(" and ")) for environment in environments}

    def marker(match: re.Match[str]) -> str:
        parts = {frozenset(part.strip("()").split(" and ")) for part in match[1].split(" or ")}
        return "" if parts == every else match[0]

    return re.sub(r" ; (.*)(?= \\$)", marker, lock, flags=re.MULTILINE)


def constrain(project: str, lock: str, free: Collection[str]) -> str:
    """pyproject.toml with the versions of `lock` as constraints, without the packages in `free`.

    >>> print(constrain("[tool.uv]\\npackage = false\\n", "a==1\\nb==2\\n", ["b"]))
    [tool.uv]
    constraint-dependencies = ["a==1"]
    package = false
    <BLANKLINE>
    """
    pins = [
        entry.partition("\\")[0].strip()
        for name, entries in builds.packages(lock).items()
        if name not in free
        for entry in entries
    ]
    listed = ", ".join(f'"{pin}"' for pin in pins)
    text = project.replace("[tool.uv]\n", f"[tool.uv]\nconstraint-dependencies = [{listed}]\n", 1)
    tomllib.loads(text)
    return text
