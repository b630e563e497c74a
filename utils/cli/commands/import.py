"""Bring in what `export` wrote on another machine; nothing that is here is lost."""

import argparse
import sys
from pathlib import Path

from utils.course import copies
from utils.course.catalog import ROOT

NEEDS = "learner"


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    from utils.course import parcel  # late: it needs a package, which --help does not

    parser = argparse.ArgumentParser("course.py import", description=__doc__)
    parser.add_argument("file", type=Path, help="or the folder of an older course, without work/")
    file = parser.parse_args(arguments).file
    try:
        with copies.alone(ROOT):
            changes, note = parcel.import_(file, ROOT)
            changes += copies.sync(ROOT)
    except copies.CopiesError as error:
        print(error, file=sys.stderr)
        return 1
    print(copies.told(changes) or "All of it was here already.")
    print(note or "Of the points, the better ones count.")
    return 0
