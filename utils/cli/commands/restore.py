"""Put a fresh copy of a lab or lesson into work/, such as lab03 or lesson03; keeps the old one."""

import argparse
import sys

from utils.course import copies
from utils.course.catalog import ROOT

NEEDS = "nothing"


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser("course.py restore", description=__doc__)
    parser.add_argument("what", help="lab03, lesson03, claims, or the name of a file")
    what = parser.parse_args(arguments).what
    try:
        with copies.alone(ROOT):
            change = copies.restore(what, ROOT)
    except copies.CopiesError as error:
        print(error, file=sys.stderr)
        return 1
    print(copies.summary([change]))
    return 0
