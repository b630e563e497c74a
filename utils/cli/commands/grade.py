"""Grade a folder of submissions, each in a sandbox; writes a table, reports and a gradebook."""

import argparse
import math
import shutil
import sys
from pathlib import Path

from utils.cli import grading
from utils.cli.install import system_packages
from utils.labs.grading.batch import grade
from utils.labs.grading.confine import Limits
from utils.labs.grading.gradebook import GradebookError
from utils.labs.grading.sandbox import SandboxError

GO_ON = "the same command goes on where it stopped"


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return number


def _count(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return int(text)


def main(argv: list[str]) -> int:
    """Run the command; returns its exit status."""
    if argv and argv[0] in grading.VERBS:
        return grading.main(argv)
    parser = argparse.ArgumentParser(
        prog="course.py grade",
        description=__doc__,
        epilog=f"With results, `course.py grade VERB --help`: {', '.join(grading.VERBS)}.",
    )
    parser.add_argument("folder", type=Path, help="one folder or notebook per student")
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    parser.add_argument("--lab", help="such as lab03; otherwise found from the notebooks")
    parser.add_argument("--seed", help="private; drawn and kept in OUT/seed.txt if not given")
    parser.add_argument("--jobs", type=_count, default=2, help="submissions at a time (default 2)")
    parser.add_argument(
        "--seconds", type=_positive, default=60, help="time for one exercise (default 60)"
    )
    parser.add_argument(
        "--again",
        action="append",
        default=[],
        metavar="NAME",
        help="grade this student or exercise again, with new inputs; may be given several times",
    )
    parser.add_argument(
        "--scheduler",
        default="",
        metavar="tcp://HOST:PORT",
        help="let the workers of this Dask scheduler do the work (utils/labs/grading/CLUSTER.md)",
    )
    given = parser.parse_args(argv)
    if not given.scheduler and not shutil.which("bwrap"):
        system_packages(["bubblewrap"])  # where apt can; otherwise the sandbox says what to do
    try:
        rows = grade(
            given.folder,
            given.out,
            lab_name=given.lab,
            seed=given.seed,
            jobs=given.jobs,
            limits=Limits(seconds=given.seconds),
            again=given.again,
            say=lambda text: print(text, flush=True),
            scheduler=given.scheduler,
        )
    except (ValueError, SandboxError, GradebookError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\nstopped; what is graded is kept: {GO_ON}", file=sys.stderr)
        return 130
    except OSError as error:
        reason = error.strerror or error
        print(
            f"{given.out} cannot be written ({reason}); what is graded is kept:"
            f" make room, then {GO_ON}",
            file=sys.stderr,
        )
        return 1
    troubled = [row for row in rows if row.record.status != "graded"]
    print(f"{len(rows)} submissions, {len(troubled)} with problems: see {given.out / 'class.html'}")
    return 0
