"""What an audit finds: findings, files that could not be read, and the report of both, which can
be written as a table for people, as JSON, as SARIF 2.1.0 and as HTML.

JSON, version 1: `{"version", "root", "target", "files", "counts": {severity: n}, "findings": [...],
"broken": [{"path", "line", "reason"}]}`. A finding has all fields of `Finding` (`cell` is null
outside notebooks), `kind`, `title`, `happens`, `state`, `xla`, `torchneuron`, `source` of its
rule, and `advice`, what the rule says to do for the target.
"""

import json
import textwrap
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any
from urllib.parse import quote

from utils.audit.rules import RULES, SEVERITIES, TARGETS, Rule
from utils.course.shown import html_table

WIDTH = 100
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True)
class Finding:
    """One place that will not port.

    `path` is relative with forward slashes, `line` and `column` count from 1; `cell` is the number
    of the code cell of a notebook, and `line` then counts within it. `text` is the source line, or
    its beginning. `severity` may be lower than the rule's, and `note` says why.
    """

    rule: str
    severity: str
    path: str
    line: int
    column: int
    text: str
    cell: int | None = None
    note: str = ""

    @property
    def about(self) -> Rule:
        """The rule that it breaks."""
        return RULES[self.rule]

    @property
    def place(self) -> tuple[str, int, int, int, str]:
        """What findings are sorted by."""
        return (self.path, self.cell or 0, self.line, self.column, self.rule)


@dataclass(frozen=True)
class Broken:
    """A file, or a cell of a notebook, that could not be read; `line` is 0 where none is known."""

    path: str
    line: int
    reason: str


@dataclass(frozen=True, repr=False)
class Report:
    """All findings in the order of path, line and column, and how many files were read."""

    findings: tuple[Finding, ...]
    broken: tuple[Broken, ...]
    files: int
    root: str = "."
    target: str = TARGETS[0]
    counts: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        counts = {severity: 0 for severity in reversed(SEVERITIES)}
        for finding in self.findings:
            counts[finding.severity] += 1
        object.__setattr__(self, "counts", counts)

    def at_least(self, level: str) -> tuple[Finding, ...]:
        """The findings of that severity and above."""
        if level not in SEVERITIES:
            raise ValueError(f"level {level!r} is none of {', '.join(SEVERITIES)}")
        wanted = SEVERITIES[SEVERITIES.index(level) :]
        return tuple(finding for finding in self.findings if finding.severity in wanted)

    def clean(self, level: str = "warning") -> bool:
        """No finding at or above that severity, and nothing that could not be read."""
        return not self.at_least(level) and not self.broken

    def __repr__(self) -> str:
        return table(self)

    def _repr_html_(self) -> str:
        return to_html(self)


def where(finding: Finding) -> str:
    """The place of a finding within its file: "12:5", or "cell 3, 2:1" in a notebook."""
    cell = f"cell {finding.cell}, " if finding.cell else ""
    return f"{cell}{finding.line}:{finding.column}"


def table(report: Report) -> str:
    """Findings by file, then what each rule means, then one line that sums up."""
    lines: list[str] = []
    for path, group in groupby(report.findings, key=lambda entry: entry.path):
        lines.append(path)
        for item in group:
            head = f"  {where(item):<9} {item.severity:<8}{item.rule:<21}"
            lines.append(head + _cut(item.text, WIDTH - len(head)))
            if item.note:
                lines.append(" " * 12 + _cut(f"({item.note})", WIDTH - 12))
        lines.append("")
    if report.broken:
        lines.append("Not read:")
        for broken in report.broken:
            place = f"{broken.path}:{broken.line}" if broken.line else broken.path
            lines += _wrapped(f"{place}: {broken.reason}", "  ", "    ")
        lines.append("")
    rules = dict.fromkeys(finding.rule for finding in report.findings)
    for rule in sorted(rules, key=list(RULES).index):
        about = RULES[rule]
        lines += _wrapped(
            f"{rule} ({about.severity_on(report.target)}, {about.kind}): {about.title}. "
            f"{about.happens}"
        )
        for label, text in (
            ("state", about.state),
            *advice(about, report.target),
            ("source", about.source),
        ):
            if text:
                lines += _wrapped(f"{label}: {text}", "    ", "        ")
    if rules:
        lines.append("")
    lines.append(summary(report))
    return "\n".join(lines)


def advice(about: Rule, target: str) -> list[tuple[str, str]]:
    """What to write instead, under the names of targets, that of the report first."""
    both = [("XLA", about.xla), ("TorchNeuron", about.torchneuron)]
    if target == "neuron-xla":
        return [("XLA on Neuron", about.advice_on(target)), both[1]]
    return [("JAX", about.advice_on(target))] if target == "jax" else both


def summary(report: Report) -> str:
    """One line: how much was read and what was found.

    >>> summary(Report((), (), 3))
    '3 files read: nothing found'
    """
    read = f"{report.files} file{'' if report.files == 1 else 's'} read"
    counted = [f"{n} {name}{'' if n == 1 else 's'}" for name, n in report.counts.items() if n]
    if report.broken:
        counted.append(f"{len(report.broken)} not readable in whole or in part")
    return f"{read}: {', '.join(counted) or 'nothing found'}"


def _cut(text: str, width: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 3] + "..."


def _wrapped(text: str, first: str = "", rest: str = "    ") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )


def to_dict(report: Report) -> dict[str, Any]:
    """The content of the JSON, as described above."""
    findings = []
    for finding in report.findings:
        named = ("kind", "title", "happens", "state", "xla", "torchneuron", "source")
        about = {name: getattr(finding.about, name) for name in named}
        about["advice"] = finding.about.advice_on(report.target)
        findings.append(asdict(finding) | about)
    return {
        "version": 1,
        "root": report.root,
        "target": report.target,
        "files": report.files,
        "counts": report.counts,
        "findings": findings,
        "broken": [asdict(item) for item in report.broken],
    }


def to_json(report: Report) -> str:
    """The report as JSON, version 1."""
    return json.dumps(to_dict(report), indent=2, ensure_ascii=False)


def to_sarif(report: Report) -> str:
    """SARIF 2.1.0. Within a notebook SARIF has no lines: the cell is named in the message."""
    order = list(RULES)
    rules = [
        {
            "id": rule.id,
            "shortDescription": {"text": rule.title},
            "fullDescription": {"text": rule.happens},
            "help": {
                "text": f"XLA: {rule.xla}\nTorchNeuron: {rule.torchneuron}\nSource: {rule.source}"
            },
            "defaultConfiguration": {"level": rule.severity},
            "properties": {"kind": rule.kind},
        }
        | ({"helpUri": rule.source} if rule.source.startswith("https://") else {})
        for rule in RULES.values()
    ]
    results = [
        {
            "ruleId": finding.rule,
            "ruleIndex": order.index(finding.rule),
            "level": finding.severity,
            "message": {"text": _message(finding)},
            "locations": [{"physicalLocation": _location(finding)}],
        }
        for finding in report.findings
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
        "tool": {"driver": {"name": "utils.audit", "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": unread}],
        "results": results,
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=2, ensure_ascii=False)


def _message(each: Finding) -> str:
    about = each.about
    cell = f" (code cell {each.cell}, line {each.line})" if each.cell else ""
    note = f" ({each.note})" if each.note else ""
    return (
        f"{about.title}{note}{cell}. {about.happens} XLA: {about.xla}. "
        f"TorchNeuron: {about.torchneuron}."
    )


def _location(each: Finding) -> dict[str, Any]:
    region: dict[str, Any] = {"startLine": 1}
    if each.cell is None:
        region = {"startLine": each.line, "startColumn": each.column}
    return {"artifactLocation": {"uri": quote(each.path)}, "region": region}


def to_html(report: Report) -> str:
    """The report as one or two HTML tables."""
    head = ("file", "place", "severity", "rule", "code", "happens", "XLA", "TorchNeuron", "source")
    rows = [
        (
            finding.path,
            where(finding),
            finding.severity,
            finding.rule,
            f"{finding.text} ({finding.note})" if finding.note else finding.text,
            finding.about.happens,
            finding.about.xla,
            finding.about.torchneuron,
            finding.about.source,
        )
        for finding in report.findings
    ]
    unread = [(item.path, str(item.line or ""), item.reason) for item in report.broken]
    parts = [html_table(head, rows, summary(report))]
    if unread:
        parts.append(html_table(("file", "line", "reason"), unread, "Not read"))
    return "".join(parts)
