"""What an audit finds: findings, files that could not be read, and the report of both, which can
be written as a table for people, as JSON and as tables of a notebook; `sarif` and `page` write it
for code hosts and as a page.

JSON, version 1: `{"version", "root", "target", "files", "counts": {severity: n}, "findings": [...],
"ignored": [...], "broken": [{"path", "line", "reason"}]}`. A finding has all fields of `Finding`
(`cell` is null outside notebooks), `kind`, `title`, `happens`, `state`, `xla`, `torchneuron`,
`source` of its rule, and `advice`, what the rule says to do for the target.
"""

import json
import textwrap
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any

from utils.audit.rules import RULES, SEVERITIES, TARGETS, Rule
from utils.course.shown import html_table

WIDTH = 100
MOST_NOTES = 4
"""So many notes that say the same one after another are written out in a table."""


@dataclass(frozen=True)
class Finding:
    """One place that will not port.

    `path` is relative with forward slashes, `line` and `column` count from 1; `cell` is the number
    of the code cell of a notebook, and `line` then counts within it. `text` is the source line, or
    its beginning. `severity` may be lower than the rule's, and `note` says why. `ignored` is the
    reason that a comment `# audit: ignore` gives, "" for none, and None without such a comment.
    """

    rule: str
    severity: str
    path: str
    line: int
    column: int
    text: str
    cell: int | None = None
    note: str = ""
    ignored: str | None = None

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
    """All findings in the order of path, line and column, and how many files were read; `ignored`
    are those that a comment silences, which count nowhere.
    """

    findings: tuple[Finding, ...]
    broken: tuple[Broken, ...]
    files: int
    root: str = "."
    target: str = TARGETS[0]
    ignored: tuple[Finding, ...] = ()
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
        for _, run in groupby(group, key=lambda entry: (entry.rule, entry.severity, entry.note)):
            lines += _rows(list(run))
        lines.append("")
    if report.broken:
        lines += [unread(report), ""]
    rules = dict.fromkeys(finding.rule for finding in report.findings)
    for rule in sorted(rules, key=list(RULES).index):
        about = RULES[rule]
        lines += wrapped(
            f"{rule} ({about.severity_on(report.target)}, {about.kind}): {about.title}. "
            f"{about.happens}"
        )
        for label, text in (
            ("state", about.state),
            *advice(about, report.target),
            ("source", about.source),
        ):
            if text:
                lines += wrapped(f"{label}: {text}", "    ", "        ")
    if rules:
        lines += ["", "A rule in full, with code: --explain RULE. What can be rewritten: --fix."]
    lines.append(summary(report))
    return "\n".join(lines)


def unread(report: Report) -> str:
    """Files that could not be read, and why; "" for none."""
    lines = []
    for broken in report.broken:
        place = f"{broken.path}:{broken.line}" if broken.line else broken.path
        lines += wrapped(f"{place}: {broken.reason}", "  ", "    ")
    return "\n".join(["Not read:", *lines]) if lines else ""


def _rows(run: list[Finding]) -> list[str]:
    """The rows of findings that say the same one after another; of many notes the first only."""
    last = run[-1]
    many = last.severity == "note" and len(run) > MOST_NOTES
    lines = []
    for item in run[:MOST_NOTES] if many else run:
        head = f"  {where(item):<9} {item.severity:<8}{item.rule:<21}"
        lines.append(head + _cut(item.text, WIDTH - len(head)))
        if item.note:
            lines.append(" " * 12 + _cut(f"({item.note})", WIDTH - 12))
    if many:
        lines.append(" " * 12 + f"{len(run) - MOST_NOTES} more like it, the last at {where(last)}")
    return lines


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
    if report.ignored:
        reasons = sum(bool(item.ignored) for item in report.ignored)
        counted.append(f"{len(report.ignored)} ignored by comments, {reasons} with a reason")
    if report.broken:
        counted.append(f"{len(report.broken)} not readable in whole or in part")
    return f"{read}: {', '.join(counted) or 'nothing found'}"


def _cut(text: str, width: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 3] + "..."


def wrapped(text: str, first: str = "", rest: str = "    ") -> list[str]:
    """A text in lines of the width of reports."""
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )


def to_dict(report: Report) -> dict[str, Any]:
    """The content of the JSON, as described above."""

    def rows(findings: tuple[Finding, ...]) -> list[dict[str, Any]]:
        named = ("kind", "title", "happens", "state", "xla", "torchneuron", "source")
        return [
            asdict(finding)
            | {name: getattr(finding.about, name) for name in named}
            | {"advice": finding.about.advice_on(report.target)}
            for finding in findings
        ]

    return {
        "version": 1,
        "root": report.root,
        "target": report.target,
        "files": report.files,
        "counts": report.counts,
        "findings": rows(report.findings),
        "ignored": rows(report.ignored),
        "broken": [asdict(item) for item in report.broken],
    }


def to_json(report: Report) -> str:
    """The report as JSON, version 1."""
    return json.dumps(to_dict(report), indent=2, ensure_ascii=False)


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
