"""Make or repair the environment and start nothing (--everything: with tests and grading).

Unlike the other commands it tries torch again even if nothing seems to have changed.
"""

import argparse
from pathlib import Path

from utils.cli import install

NEEDS = "nothing"
ROOT = Path(__file__).resolve().parents[3]


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser("course.py setup", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--everything", action="store_true", help="also what tests and grading need"
    )
    needs = "everything" if parser.parse_args(arguments).everything else "learner"
    install.ensure(install.Home(ROOT), needs, print, recheck=True)
    return 0
