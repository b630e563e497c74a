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
    parser.add_argument("file", type=Path, help="from export, or the folder of an older course")
    file = parser.parse_args(arguments).file
    try:
        with copies.alone(ROOT):
            changes, note = parcel.import_(file, ROOT)
            changes += copies.sync(ROOT)
    except copies.CopiesError as error:
        print(error, file=sys.stderr)
        return 1
    print(copies.summary(changes) or "All of it was here already.")
    print(note or "Where both have points for an exercise, the higher ones are kept.")
    return 0
