"""Hold the estimated times of NKI kernels against measurements that were published.

Prints a table and one line for each criterion; the exit status is 1 if one is not met. Kernels are
traced at their full size, which takes some minutes for all of them. What was measured, by whom and
where, is in utils/facts/data/nki_measurements.yaml.
"""

import argparse
import sys

from utils.nki import validation as nki_validation

NEEDS = "learner"


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser("course.py nki-validation", description=__doc__)
    parser.add_argument(
        "--row",
        metavar="NAME",
        help="only one measurement, ladder or kernel, such as guide-hoisted, gemm or exp.exp",
    )
    parser.add_argument("--target", choices=("trn1", "trn2"), help="only those of one chip")
    parser.add_argument(
        "--record",
        action="store_true",
        help="for maintainers: keep the estimates in utils/facts/data/nki_validation.json",
    )
    given = parser.parse_args(arguments)
    try:
        rows = nki_validation.chosen(given.row, given.target)
    except LookupError as error:
        print(error.args[0], file=sys.stderr)
        return 1
    report = nki_validation.compare(rows, before=_say)
    print(report)
    if given.record:
        nki_validation.record(report)
    if report.failures:
        print("\nnot met:", *report.failures, sep="\n  ")
    return 1 if report.failures else 0


def _say(it: nki_validation.Measurement) -> None:
    print(f"{it.id} ...", file=sys.stderr, flush=True)
