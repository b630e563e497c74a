"""An audit's report as SARIF 2.1.0 (OASIS), which code hosts and editors show beside the code.

A finding in a notebook points at the line of the .ipynb file on which that line of the cell stands,
and names the cell and its line as a logical location: `cell 3 (id setup)`, line 2.
"""

import json
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from utils.audit.audit_report import Finding, Report
from utils.audit.baseline import fingerprints
from utils.audit.rule_pages import page
from utils.audit.rules import RULES

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}:,]|[^\s"\][{}:,]+')


def to_sarif(report: Report) -> str:
    """The report as SARIF 2.1.0. Notebooks are read again, to find the lines of their cells."""
    order, rules = list(RULES), _rules()
    every = report.findings + report.ignored
    results = [
        {
            "ruleId": finding.rule,
            "ruleIndex": order.index(finding.rule),
            "level": finding.severity,
            "message": {"text": _message(finding)},
            "locations": [_location(finding, report.root)],
            "partialFingerprints": {"trnAudit/v1": fingerprint},
        }
        | (
            {"suppressions": [{"kind": "inSource", "justification": finding.ignored}]}
            if finding.ignored is not None
            else {}
        )
        for finding, fingerprint in zip(every, fingerprints(every), strict=True)
    ]
    unread = [
        {
            "level": "warning",
            "message": {"text": broken.reason},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": quote(broken.path)}}}],
        }
        for broken in report.broken
    ]
    run = {
        "tool": {"driver": {"name": "trn-audit", "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": unread}],
        "results": results,
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=2, ensure_ascii=False)


@cache
def _rules() -> list[dict[str, Any]]:
    return [
        {
            "id": rule.id,
            "shortDescription": {"text": rule.title},
            "fullDescription": {"text": rule.happens},
            "help": {
                "text": f"XLA: {rule.xla}\nTorchNeuron: {rule.torchneuron}\nSource: {rule.source}",
                "markdown": page(rule),
            },
            "defaultConfiguration": {"level": rule.severity},
            "properties": {"kind": rule.kind},
        }
        | ({"helpUri": rule.source} if rule.source.startswith("https://") else {})
        for rule in RULES.values()
    ]


def _message(finding: Finding) -> str:
    about = finding.about
    cell = f" (code cell {finding.cell}, line {finding.line})" if finding.cell else ""
    note = f" ({finding.note})" if finding.note else ""
    return (
        f"{about.title}{note}{cell}. {about.happens} XLA: {about.xla}. "
        f"TorchNeuron: {about.torchneuron}."
    )


def _location(finding: Finding, root: str) -> dict[str, Any]:
    artifact = {"uri": quote(finding.path)}
    if finding.cell is None:
        region = {"startLine": finding.line, "startColumn": finding.column}
        return {"physicalLocation": {"artifactLocation": artifact, "region": region}}
    path = Path(root)
    places = _places(str(path / finding.path if path.is_dir() else path))
    name, lines = places[finding.cell - 1] if finding.cell <= len(places) else ("", [])
    number = lines[min(finding.line, len(lines)) - 1] if lines else 1
    named = f"cell {finding.cell}" + (f" (id {name})" if name else "")
    return {
        "physicalLocation": {"artifactLocation": artifact, "region": {"startLine": number}},
        "logicalLocations": [{"name": f"{named}, line {finding.line}", "kind": "module"}],
    }


@lru_cache(maxsize=64)
def _places(file: str) -> list[tuple[str, list[int]]]:
    """Of each code cell its id and the lines of the file on which its lines stand, from 1."""
    try:
        text = Path(file).read_text(encoding="utf-8-sig")
        return list(_cells(text))
    except (OSError, ValueError, IndexError):
        return []


def _cells(text: str) -> Iterator[tuple[str, list[int]]]:
    """Where strings stand is what a parser of JSON does not tell: objects are followed token by
    token, and of each object that is a code cell the strings of its source are kept.
    """
    starts = [0]
    for match in re.finditer("\n", text):
        starts.append(match.end())
    line, stack = 0, list[dict[str, Any]]()
    for match in _TOKEN.finditer(text):
        token = match.group()
        while line + 1 < len(starts) and starts[line + 1] <= match.start():
            line += 1
        top = stack[-1] if stack else None
        if token in "{[":
            stack.append({"open": token, "key": None, "cell": {"lines": []}})
        elif token in "}]":
            done = stack.pop()
            if done["open"] == "{" and done["cell"].get("cell_type") == "code":
                yield done["cell"].get("id", ""), done["cell"]["lines"]
        elif token == ":" and top:
            top["key"] = top["last"]
        elif token == "," and top:
            top["key"] = None
        elif token.startswith('"') and top:
            value = json.loads(token)
            top["last"] = value
            owner = top if top["open"] == "{" else stack[-2] if len(stack) > 1 else top
            key = owner["key"]
            if key in ("cell_type", "id") and owner is top:
                top["cell"][key] = value
            elif key in ("source", "input"):
                # A source in one string stands on one line of the file, all its lines with it.
                owner["cell"]["lines"] += [line + 1] * max(1, len(value.splitlines()))
