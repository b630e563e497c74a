"""Hold the estimated times of NKI kernels against measurements that were published.

Prints a table and one line for each criterion; the exit status is 1 if one is not met. Kernels are
traced at their full size, which takes some minutes for all of them. What was measured, by whom and
where, is in utils/facts/data/nki_measurements.yaml.

With --published the sources that were measured run as they are published, from a folder of their
repositories (utils/nki/validation/published.py says how to make it), as written and as compiled;
--accuracy shows what was recorded of them. These errors, of the half that no constant was fitted
to, say what an estimate is worth.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

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
    parser.add_argument(
        "--published", type=Path, metavar="FOLDER", help="run the published sources in a folder"
    )
    parser.add_argument(
        "--accuracy", action="store_true", help="show what was recorded of published sources"
    )
    given = parser.parse_args(arguments)
    if given.published or given.accuracy:
        return _published_accuracy(given)
    try:
        rows = nki_validation.select(given.row, given.target)
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


def _published_accuracy(given: argparse.Namespace) -> int:
    """The accuracy on published sources: 1 where a source is not there or an aim is not met."""
    from utils.nki.validation import accuracy
    from utils.nki.validation.published import published

    rows = [
        it
        for it in published().values()
        if given.row in (None, it.id, it.ladder) and given.target in (None, it.target)
    ]
    if not rows:
        print(f"no published source is {given.row!r}; there are {', '.join(published())}",
              file=sys.stderr)  # fmt: skip
        return 1
    try:
        result = (
            accuracy.compare(rows, given.published, before=_say)
            if given.published
            else accuracy.recorded(rows)
        )
    except (FileNotFoundError, LookupError) as error:
        print(error.args[0], file=sys.stderr)
        return 1
    print(result)
    if given.published and given.record:
        accuracy.record(result)
    if result.unmet():
        print("\nnot met:", *result.unmet(), sep="\n  ")
    return 1 if result.unmet() else 0


def _say(it: Any) -> None:
    print(f"{it.id} ...", file=sys.stderr, flush=True)
