"""`python -m utils.audit PATH`: the report on the standard output, an exit code for CI."""

import argparse
import difflib
import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from utils.audit import baseline, rule_pages, settings
from utils.audit.audit_report import Finding, Report, summary, table, to_json, unread
from utils.audit.audited_files import audit
from utils.audit.page import to_page
from utils.audit.rules import RULES, SEVERITIES, TARGETS
from utils.audit.sarif import to_sarif
from utils.course.files import replace_file

FORMATS = {"table": table, "json": to_json, "sarif": to_sarif, "html": to_page}
EPILOG = """\
Exit code: 0 nothing at that level, 1 findings at or above it, 2 nothing to read or wrong arguments.
With --fix: 1 also while a rewrite is not written, 2 if a file could not be written.
Files that cannot be parsed are listed and do not change it. Defaults stand in [tool.trn-audit] of
pyproject.toml: target, fail-on, exclude, disable, baseline. A comment
"# audit: ignore[RULE] reason" silences its line."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    try:
        code = _main(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("audit: interrupted; each file is as before or wholly rewritten", file=sys.stderr)
        return 130
    return code


def _main(arguments: Sequence[str] | None) -> int:
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.explain or given.pages:
        return _explain(given.explain, given.pages)
    if not given.path:
        parser.error("give a file or a folder")
    paths = [Path(path) for path in given.path]
    try:
        known = settings.read_settings(paths[0])
        fail_on = given.fail_on or known.fail_on
        if given.fix:
            if given.format != "table":
                raise ValueError("--fix shows a diff and a list; --format goes without it")
            return _fix(paths, given.target or known.target, known, fail_on, given.write)
        if given.write:
            raise ValueError("--write goes with --fix")
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
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as problem:
        print(f"audit: {problem}", file=sys.stderr)
        return 2
    if not report.files and all(map(known.is_excluded, paths)):
        return 0  # a hook may give what the settings leave out
    if not report.files:
        print(_nothing(report), file=sys.stderr)
        return 2
    print(FORMATS[given.format](report))
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


def _fix(
    paths: list[Path], target: str, known: settings.Settings, fail_on: str, is_written: bool
) -> int:
    """Print the diffs, then what remains. Returns 2 if something could not be written, 1 if a
    rewrite waits to be written or a finding at the level of `fail_on` remains.
    """
    from utils.audit import fix, fix_report  # late: only here

    fix.check(target)
    report = _joined([_audit([path], target, known) for path in paths], target)
    asking = list[Finding]()
    diffs, count, left, changed, failed = [], 0, list[Finding](), set[str](), list[str]()
    for name, found in groupby(report.findings, lambda item: item.path):
        own = list(found)
        try:
            fixed = fix.fix_file(Path(name), name, target, known.disable)
            if is_written and fixed.rewrites:
                _write(Path(name), fixed.after)
        except UnicodeDecodeError:
            failed.append(f"{name}: not rewritten: it is no UTF-8; convert it, and run this again")
            left += own
            continue
        except OSError as problem:
            failed.append(f"{name}: not written: {problem.strerror}")
            left += own
            continue
        diffs.append(fixed.diff)
        asking += fix_report.asks(fixed, fixed.after)
        count += len(fixed.rewrites)
        changed |= {name} if fixed.rewrites else set()
        left += fix_report.unsettled(fixed, own, target)
    if is_written and changed:
        now = _joined([_audit([path], target, known) for path in paths], target).findings
        told = {(item.path, item.cell, item.line) for item in asking}
        left = asking + [
            item
            for item in now
            if item.severity != "note" or (item.path, item.cell, item.line) not in told
        ]
    to_do = fix_report.remaining(left, target, changed)
    print(*diffs, sep="", end="")  # after all is written: who reads it may go
    for part in filter(None, [to_do, unread(report)]):
        print(f"\n{part}")
    for line in failed:
        print(f"audit: {line}", file=sys.stderr)
    if not report.files and not all(map(known.is_excluded, paths)):
        raise ValueError(_nothing(report))
    done = "written" if is_written else "not written: add --write"
    head = f"{_counted(count, 'rewrite')} in {_counted(len(changed), 'file')}"
    print(f"\n{head}{', ' + done if count else ''}")
    if failed:
        return 2
    waits = count > 0 and not is_written
    levels = SEVERITIES[SEVERITIES.index(fail_on) :] if fail_on != "never" else ()
    return int(waits or any(item.severity in levels for item in left))


def _write(path: Path, text: str) -> None:
    """Raises: OSError, also for a file that its owner has made read-only."""
    if not path.stat().st_mode & stat.S_IWUSR:
        raise PermissionError(errno.EACCES, "the file is read-only")
    replace_file(path.resolve(), text)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _nothing(report: Report) -> str:
    return f"nothing to audit in {report.root!r}: no Python file, no notebook, no requirements"


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
