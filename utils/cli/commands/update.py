"""Bring new lessons and fixes into your copies in work/, and keep every answer of yours."""

import argparse
import sys

from utils.course import copies
from utils.course.catalog import ROOT

NEEDS = "nothing"


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser("course.py update", description=__doc__)
    parser.add_argument(
        "--no-pull", action="store_true", help="fetch nothing: take what is in this folder"
    )
    fetch = not parser.parse_args(arguments).no_pull
    try:
        with copies.alone(ROOT):
            changes = copies.take_over(ROOT)  # what is edited there would stop git
            if fetch:
                print(copies.pull(ROOT), flush=True)
            changes += copies.sync(ROOT)
    except copies.CopiesError as error:
        print(error, file=sys.stderr)
        return 1
    print(copies.summary(changes) or "Your copies were up to date.")
    if changes:
        print("Reload what is open in JupyterLab: File, Reload Notebook from Disk.")
    return 0
