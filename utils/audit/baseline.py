"""A baseline: the findings that a team has today, so that only new ones count from now on.

A finding is known again by its rule, its file and the words of its line, not by the number of the
line, so that code may move. The same line twice in a file counts as two findings.

JSON, version 1: `{"version": 1, "findings": [{"fingerprint", "rule", "path", "text"}]}`; rule, path
and text are for people.
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from utils.audit.audit_report import Finding, Report
from utils.course.files import replace_file


def fingerprints(findings: Iterable[Finding]) -> list[str]:
    """One for each finding, 16 hexadecimal digits; equal lines of a file are numbered."""
    seen: Counter[tuple[str, str, str]] = Counter()
    results = []
    for finding in findings:
        key = (finding.rule, finding.path, " ".join(finding.text.split()))
        words = "\0".join((*key, str(seen[key])))
        seen[key] += 1
        results.append(hashlib.blake2b(words.encode(), digest_size=8).hexdigest())
    return results


def _place(report: Report, file: Path) -> list[Finding]:
    """The findings with paths as seen from the baseline's folder, whatever part is audited."""
    root, folder = Path(report.root).resolve(), file.resolve().parent
    whole = [root / item.path if root.is_dir() else root for item in report.findings]
    return [
        replace(item, path=os.path.relpath(path, folder).replace(os.sep, "/"))
        for item, path in zip(report.findings, whole, strict=True)
    ]


def write(report: Report, file: Path) -> None:
    """Write the findings of a report as a baseline."""
    placed = _place(report, file)
    rows = [
        {"fingerprint": mark, "rule": item.rule, "path": item.path, "text": item.text}
        for item, mark in zip(placed, fingerprints(placed), strict=True)
    ]
    text = json.dumps({"version": 1, "findings": rows}, indent=1, ensure_ascii=False)
    replace_file(file, text + "\n")


def without_known(
    report: Report, file: Path, audited: Iterable[Path]
) -> tuple[Report, int, list[str]]:
    """The report without what the baseline holds, how many findings that were, and which entries
    of the baseline below the `audited` paths were not found any more: "rule, path: line".

    Raises: ValueError if the file is no baseline; OSError if it cannot be read.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        rows = {row["fingerprint"]: row for row in content["findings"]}
        paths = {mark: file.resolve().parent / row["path"] for mark, row in rows.items()}
        if content["version"] != 1:
            raise KeyError("version")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(
            f"{file} is no baseline of version 1: write one with --write-baseline {file}"
        ) from None
    marks = fingerprints(_place(report, file))
    new = [item for item, mark in zip(report.findings, marks, strict=True) if mark not in rows]
    roots = [path.resolve() for path in audited]
    gone = [
        f"{row.get('rule')}, {row['path']}: {row.get('text')}"
        for mark, row in rows.items()
        if mark not in marks and any(paths[mark].is_relative_to(root) for root in roots)
    ]
    return replace(report, findings=tuple(new)), len(report.findings) - len(new), gone
