"""`python -m utils.audit PATH`: the report on the standard output, an exit code for CI."""

import argparse
import os
import sys
import time
from collections.abc import Callable

from utils.audit.audit_report import table, to_json, to_sarif
from utils.audit.audited_files import audit
from utils.audit.rules import SEVERITIES, TARGETS

FORMATS = {"table": table, "json": to_json, "sarif": to_sarif}


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m utils.audit",
        description="Find what will not port from CUDA PyTorch to XLA and Neuron. Nothing is run.",
        epilog="Exit code: 0 nothing at that level, 1 findings at or above it, 2 nothing to read."
        " Files that cannot be parsed are listed and do not change it.",
    )
    parser.add_argument("path", help="a file or a folder")
    parser.add_argument("--format", choices=FORMATS, default="table")
    parser.add_argument("--fail-on", choices=(*reversed(SEVERITIES), "never"), default="error")
    parser.add_argument("--target", choices=TARGETS, default=TARGETS[0])
    given = parser.parse_args(arguments)
    try:
        report = audit(given.path, min(4, os.cpu_count() or 1), given.target, _progress())
    except OSError as problem:
        print(problem, file=sys.stderr)
        return 2
    if not report.files:
        print(
            f"nothing to audit in {given.path!r}: no Python file, no notebook, no requirements",
            file=sys.stderr,
        )
        return 2
    try:
        print(FORMATS[given.format](report), flush=True)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return int(given.fail_on != "never" and bool(report.at_least(given.fail_on)))


def _progress() -> Callable[[int, int], None]:
    """After two seconds says on stderr, once a second, how many files have been read."""
    next_at = time.monotonic() + 2

    def say(done: int, count: int) -> None:
        nonlocal next_at
        if time.monotonic() >= next_at:
            next_at = time.monotonic() + 1
            print(f"audit: {done} of {count} files read", file=sys.stderr, flush=True)

    return say


if __name__ == "__main__":
    sys.exit(main())
