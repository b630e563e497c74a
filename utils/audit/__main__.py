"""`python -m utils.audit PATH`: the report on the standard output, an exit code for CI."""

import argparse
import difflib
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from utils.audit import baseline, rule_pages, settings
from utils.audit.audit_report import Report, summary, table, to_json
from utils.audit.audited_files import audit, audit_source
from utils.audit.page import to_page
from utils.audit.rules import RULES, TARGETS
from utils.audit.sarif import to_sarif
from utils.course.files import replace_file

FORMATS = {"table": table, "json": to_json, "sarif": to_sarif, "html": to_page}
EPILOG = """\
Exit code: 0 nothing at that level, 1 findings at or above it, 2 nothing to read or wrong arguments.
Files that cannot be parsed are listed and do not change it. Defaults stand in [tool.trn-audit] of
pyproject.toml: target, fail-on, exclude, disable, baseline. A comment
"# audit: ignore[RULE] reason" silences its line."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.explain or given.pages:
        return _explain(given.explain, given.pages)
    if not given.path:
        parser.error("give a file or a folder")
    paths = [Path(path) for path in given.path]
    try:
        known = settings.read_settings(paths[0])
        if given.fix:
            return _fix(paths, given.target or known.target, known, given.write)
        if given.write:
            raise ValueError("--write goes with --fix")
        fail_on = given.fail_on or known.fail_on
        file = known.baseline if given.baseline is None else given.baseline
        report = _audit(paths, given.target or known.target, known)
        if given.write_baseline:
            baseline.write(report, given.write_baseline)
            print(f"audit: wrote {given.write_baseline}: {summary(report)}", file=sys.stderr)
            return 0
        if file:
            report, hidden, gone = baseline.without_known(report, file, paths)
            print(f"audit: not shown, because {file} holds them: {hidden}", file=sys.stderr)
            for entry in gone:
                print(f"audit: no longer there, write it anew: {entry}", file=sys.stderr)
    except (OSError, ValueError) as problem:
        print(f"audit: {problem}", file=sys.stderr)
        return 2
    if not report.files and all(map(known.is_excluded, paths)):
        return 0  # a hook may give what the settings leave out
    if not report.files:
        print(
            f"nothing to audit in {report.root!r}: no Python file, no notebook, no requirements",
            file=sys.stderr,
        )
        return 2
    try:
        print(FORMATS[given.format](report), flush=True)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return int(fail_on != "never" and bool(report.at_least(fail_on)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="trn-audit",
        description="Find what will not port to Trainium: CUDA PyTorch, older Neuron software, and"
        " what makes graphs slow. Nothing is run.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("path", nargs="*", help="a file or a folder, or several")
    parser.add_argument("--format", choices=FORMATS, default="table")
    parser.add_argument("--fail-on", choices=settings.FAIL_ON, help="default: error")
    parser.add_argument("--target", choices=TARGETS, help=f"default: {TARGETS[0]}")
    parser.add_argument("--baseline", type=Path, metavar="FILE", help="show what is new since then")
    parser.add_argument(
        "--write-baseline", type=Path, metavar="FILE", help="write the findings of today, and end"
    )
    parser.add_argument("--fix", action="store_true", help="show what can be rewritten, as a diff")
    parser.add_argument("--write", action="store_true", help="with --fix: write it")
    parser.add_argument("--explain", metavar="RULE", help="print the page of a rule, and end")
    parser.add_argument("--pages", type=Path, metavar="DIR", help="write all pages, and end")
    return parser


def _explain(rule: str | None, folder: Path | None) -> int:
    if rule and rule not in RULES:
        near = ", ".join(difflib.get_close_matches(rule, RULES)) or ", ".join(RULES)
        print(f"audit: there is no rule {rule!r}; there is {near}", file=sys.stderr)
        return 2
    if rule:
        print(rule_pages.page(RULES[rule]), end="")
    if folder:
        print(f"{rule_pages.write_pages(folder)} pages are in {folder}", file=sys.stderr)
    return 0


def _fix(paths: list[Path], target: str, known: settings.Settings, is_written: bool) -> int:
    """Print the diffs, then what remains; returns 1 if anything remains or waits to be written."""
    from utils.audit import fix  # late: only here

    fix.check(target)
    count, left, changed = 0, list[str](), 0
    report = _joined([_audit([path], target, known) for path in paths], target)
    for name in dict.fromkeys(item.path for item in report.findings):
        fixed = fix.fix_file(Path(name), name, target, known.disable)
        print(fixed.diff, end="")
        count, changed = count + len(fixed.rewrites), changed + bool(fixed.rewrites)
        if is_written and fixed.rewrites:
            replace_file(Path(name).resolve(), fixed.after)
        after = audit_source(fixed.after, name, target).findings
        left += fix.remaining([item for item in after if item.rule not in known.disable], target)
    if left:
        print("\nTo do by hand:", *left, sep="\n  ")
    done = "written" if is_written else "not written: add --write"
    print(f"\n{count} rewrites in {changed} files{', ' + done if count else ''}")
    return int(bool(left) or (count > 0 and not is_written))


def _audit(paths: list[Path], target: str, known: settings.Settings) -> Report:
    reports = [
        audit(path, min(4, os.cpu_count() or 1), target, _progress(), known.is_excluded)
        for path in paths
    ]
    is_tree = len(paths) == 1 and paths[0].is_dir()
    report = reports[0] if is_tree else _joined(reports, target)
    if not known.disable:
        return report
    kept = tuple(item for item in report.findings if item.rule not in known.disable)
    return replace(report, findings=kept)


def _joined(reports: list[Report], target: str) -> Report:
    """One report of several trees or files, with paths as they were given."""

    def named(name: str) -> list[Any]:
        return [
            replace(item, path=(Path(one.root) / item.path).as_posix() if whole else one.root)
            for one in reports
            for whole in [Path(one.root).is_dir()]
            for item in getattr(one, name)
        ]

    count = sum(one.files for one in reports)
    findings, broken, ignored = (tuple(named(name)) for name in ("findings", "broken", "ignored"))
    return Report(findings, broken, count, ".", target, ignored)


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
