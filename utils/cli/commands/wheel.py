"""Build the wheel of a tool for use without the course: trn-audit with trn-dryrun, or trn-nki."""

import argparse
import sys
from pathlib import Path

from utils.cli import install, wheels
from utils.cli.home import Home, SetupError
from utils.cli.installers import Uv


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser("course.py wheel", description=__doc__)
    parser.add_argument("name", choices=wheels.TOOLS)
    parser.add_argument("--to", type=Path, default=Path("dist"), help="a folder; default: dist")
    given = parser.parse_args(arguments)
    home = Home(wheels.ROOT)
    try:
        with install.alone(home, print) as held:
            Uv(home, print, held).fetch()
        print(wheels.build(given.name, given.to, home))
    except (OSError, SetupError) as error:
        print(f"course.py wheel: {error}", file=sys.stderr)
        return 1
    return 0
