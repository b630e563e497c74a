"""`nki check FILE`: what may not compile, with lines; with shapes, also a run under all rules."""

import argparse
import warnings
from pathlib import Path

from utils.nki.simulator.launch import run
from utils.nki.simulator.lint import Finding, lint_source
from utils.nki.simulator.lint.source import MayNotCompile
from utils.nki.tool.asked import Asked, existing, made_arrays, place_of
from utils.nki.tool.failures import FINE, FOUND, KernelFailed, Refused, author_errors, time_limit
from utils.nki.tool.profiling import add_call, call_of


def add(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("what", nargs="+", help="files, or FILE::KERNEL with shapes to run it")
    add_call(parser)


def findings_in(path: Path) -> list[Finding]:
    """What the lint says of a file. Raises Refused if it is no Python."""
    try:
        return lint_source(path.read_text(encoding="utf-8"), str(path))
    except SyntaxError as error:
        raise Refused(f"{path}:{error.lineno} is not valid Python: {error.msg}") from None
    except (UnicodeDecodeError, ValueError) as error:
        raise Refused(f"{path} is not valid Python: {error}") from None


def doubts_of(asked: Asked, limit_s: float, target: str | None) -> list[str]:
    """Warnings of one run with made numbers. Raises KernelFailed for a rule that is broken."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with time_limit(limit_s):
            kernel, arguments = asked.kernel()
            arrays = made_arrays(asked.shapes)
            with author_errors():
                run(kernel, tuple(arrays), arguments, target=target)
    # What the lint said of the source stands above already.
    return [str(item.message) for item in caught if not issubclass(item.category, MayNotCompile)]


def main(given: argparse.Namespace) -> int:
    """Run the command; returns its exit status."""
    result = 0
    for text in given.what:
        path = place_of(text)[0] if "::" in text else existing(text)
        findings = findings_in(path)
        for finding in findings:
            print(finding)
        result += len(findings)
        if "::" in text:
            result += _ran(given, text)
        elif given.shape:
            raise Refused(f"{text}: shapes are for one kernel; write {text}::KERNEL")
    if not result:
        print("nothing found")
    return FOUND if result else FINE


def _ran(given: argparse.Namespace, text: str) -> int:
    """Runs a kernel, prints what it breaks or what is doubtful, and returns how much."""
    asked = call_of(given, text)
    try:
        doubts = doubts_of(asked, given.limit, given.target)
    except KernelFailed as error:
        print(f"{asked.name}: {error}")
        return 1
    for doubt in doubts:
        print(f"{asked.name}: doubtful: {doubt}")
    if not doubts:
        print(f"{asked.name}: ran under all rules")
    return len(doubts)
