"""Show the build of torch, or choose it: slim (the default), full (with GPU libraries) or cpu."""

import argparse
from pathlib import Path

from utils.cli import builds, install
from utils.cli.home import Home, SetupError, read_record
from utils.xla import defaults

NEEDS = "nothing"
ROOT = Path(__file__).resolve().parents[3]


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser("course.py torch", description=__doc__)
    parser.add_argument("build", nargs="?", choices=builds.BUILDS)
    build = parser.parse_args(arguments).build
    home, driver = Home(ROOT), builds.driver()
    record = read_record(home)
    if not defaults.has_xla():
        raise SetupError(
            f"for {defaults.machine()} there is one build of torch, and `start` installs it."
        )
    if not build:
        print(describe(record.choice, driver, installed=bool(record.complete)))
        return 0
    if build == "slim" and driver:
        raise SetupError(
            f"found {driver}, a GPU or Neuron driver, with which torch would call the stand-ins.\n"
            "This machine can have the full build or the official CPU one: course.py torch full"
        )
    needs = "everything" if "everything" in record.complete else "learner"
    install.ensure(home, needs, print, choice=build)
    return 0


def describe(choice: str, driver: str, installed: bool) -> str:
    """The builds with a mark at the one in use."""
    in_use = builds.choose(choice, driver)
    when = "installed" if installed else "to be installed"
    lines = [
        f"{'*' if build == in_use else ' '} {build:5} {what}"
        for build, what in builds.BUILDS.items()
    ]
    return "\n".join([*lines, f"* is {when}" + (f"; found {driver}" if driver else "")])
