"""Make a teacher's folder for a class: `class new FOLDER` writes syllabus, guide, slides, exam."""

import argparse
import random
import sys
from pathlib import Path

NEEDS = "learner"


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser("course.py class", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    new = verbs.add_parser("new", help="write the folder of a new class")
    new.add_argument("folder", type=Path)
    new.add_argument(
        "--track",
        default="half-day",
        help="workshop (90 minutes), half-day (the default), two-days, course (a semester), or"
        " another of `course.py home`",
    )
    new.add_argument("--seed", type=int, help="of the exam; drawn and named if not given")
    new.add_argument("--people", type=Path, help="names, one a line: an exam for each, and a table")
    new.add_argument("--start", default="09:00", help="when a day begins; default 09:00")
    new.add_argument("--date", default="[DATE]", help="as text, for the announcements")
    new.add_argument("--place", default="[PLACE]", help="as text, for the announcements")
    given = parser.parse_args(arguments)

    from utils.cli.teaching import kit  # late: --help needs no packages

    seed = random.randrange(10_000) if given.seed is None else given.seed
    try:
        people = kit.read_people(given.people) if given.people else []
        files = kit.new(
            given.folder, given.track, seed, people, given.start, given.date, given.place
        )
    except (ValueError, OSError) as error:
        print(f"course.py class: {error}", file=sys.stderr)
        return 1
    for name in files:
        print(f"  {given.folder / name}")
    print(f"{len(files)} files, exam of seed {seed}; begin with {given.folder / 'README.md'}")
    return 0
