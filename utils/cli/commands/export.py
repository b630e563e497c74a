"""Write your copies and your progress into one file, to go on with on another machine."""

import argparse
import sys
import time
from pathlib import Path

from utils.course import copies
from utils.course.catalog import ROOT

NEEDS = "learner"


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    from utils.course import parcel  # late: it needs a package, which --help does not

    parser = argparse.ArgumentParser("course.py export", description=__doc__)
    default = Path(f"trainium-course-{time.strftime('%Y-%m-%d-%H%M%S')}.zip")
    parser.add_argument("file", nargs="?", type=Path, default=default)
    file = parser.parse_args(arguments).file.absolute()
    try:
        with copies.alone(ROOT):
            count = parcel.export(file, ROOT)
    except copies.CopiesError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{count} files and your progress are in {file}")
    print(f"On the other machine: python3 course.py import {file.name}")
    return 0
