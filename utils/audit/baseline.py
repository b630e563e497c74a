"""A baseline: the findings that a team has today, so that only new ones count from now on.

A finding is known again by its rule, its file and the words of its line, not by the number of the
line, so that code may move. The same line twice in a file counts as two findings.

JSON, version 1: `{"version": 1, "findings": [{"fingerprint", "rule", "path", "text"}]}`; rule, path
and text are for people.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from utils.audit.audit_report import Finding, Report


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


def write(report: Report, file: Path) -> None:
    """Write the findings of a report as a baseline."""
    rows = [
        {"fingerprint": mark, "rule": item.rule, "path": item.path, "text": item.text}
        for item, mark in zip(report.findings, fingerprints(report.findings), strict=True)
    ]
    text = json.dumps({"version": 1, "findings": rows}, indent=1, ensure_ascii=False)
    file.write_text(text + "\n", encoding="utf-8")


def without_known(report: Report, file: Path) -> tuple[Report, int, list[str]]:
    """The report without what the baseline holds, how many findings that were, and which entries
    of the baseline were not found any more: "rule, path: line".

    Raises: ValueError if the file is no baseline; OSError if it cannot be read.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        rows = {row["fingerprint"]: row for row in content["findings"]}
        if content["version"] != 1:
            raise KeyError("version")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(
            f"{file} is no baseline of version 1: write one with --write-baseline {file}"
        ) from None
    marks = fingerprints(report.findings)
    new = [item for item, mark in zip(report.findings, marks, strict=True) if mark not in rows]
    found = set(marks)
    gone = [
        f"{row.get('rule')}, {row.get('path')}: {row.get('text')}"
        for mark, row in rows.items()
        if mark not in found
    ]
    return replace(report, findings=tuple(new)), len(report.findings) - len(new), gone
