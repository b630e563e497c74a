"""Make the learners' labs and the tables of README and guide from notebooks; --check compares."""

import argparse
import sys

from utils.course import labgen, readme
from utils.course.catalog import ROOT, CatalogError


def _check() -> int:
    faults = labgen.drift(ROOT)
    faults += [f"{file}: the table is not current" for file in readme.stale(ROOT)]
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        print("to make them: python3 course.py labs", file=sys.stderr)
        return 1
    count = len(list((ROOT / "labs").glob("lab*/*.ipynb")))
    print(f"{count} labs, their solutions and the tables of README and guide are current")
    return 0


def _write() -> int:
    changed = [str(path.relative_to(ROOT)) for path in labgen.write(ROOT)]
    changed += map(str, readme.write(ROOT))
    print(f"written: {', '.join(changed)}" if changed else "everything was current")
    leftover = labgen.drift(ROOT)
    for fault in leftover:
        print(fault, file=sys.stderr)
    return 1 if leftover else 0


def main(argv: list[str]) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="course.py labs", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="change nothing; 1 if anything is stale"
    )
    arguments = parser.parse_args(argv)
    try:
        return _check() if arguments.check else _write()
    except CatalogError as error:
        print(error, file=sys.stderr)
        return 1
