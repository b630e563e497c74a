"""An audit's report as one HTML page that needs nothing else: effort by file, findings by rule.

Effort is a rule of thumb of this project, no measurement: the first finding of a rule in a file
costs `HOURS` by its kind (something loud is found at once, something silent must be noticed first,
something slow asks for a redesign), each further one of that rule in that file a fifth of it, and a
note nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from utils.audit.audit_report import Finding, Report, advice, summary, where
from utils.audit.rules import RULES, SEVERITIES

HOURS = {"loud": 0.25, "silent": 0.5, "slow": 1.0}
FURTHER = 0.2
TEMPLATE = Path(__file__).with_name("report.html.jinja")


def effort_hours(findings: Iterable[Finding]) -> float:
    """Hours to settle findings, by the rule of thumb above.

    >>> one = Finding("cuda-move", "error", "a.py", 1, 1, "x.cuda()")
    >>> two = Finding("cuda-move", "error", "a.py", 2, 1, "y.cuda()")
    >>> effort_hours([one]), effort_hours([one, two])
    (0.25, 0.3)
    """
    counted = Counter((item.path, item.rule) for item in findings if item.severity != "note")
    return sum(
        HOURS[RULES[rule].kind] * (1 + FURTHER * (n - 1)) for (_, rule), n in counted.items()
    )


def to_page(report: Report) -> str:
    """The page, as text."""
    # Late: only this page needs it, and a plain audit is to start at once.
    from jinja2 import Environment, StrictUndefined

    files: dict[str, list[Finding]] = defaultdict(list)
    for finding in report.findings:
        files[finding.path].append(finding)
    rows = [
        {
            "path": path,
            "counts": [sum(item.severity == s for item in result) for s in reversed(SEVERITIES)],
            "hours": effort_hours(result),
            "findings": result,
        }
        for path, result in files.items()
    ]
    rows.sort(key=lambda row: (-float(str(row["hours"])), str(row["path"])))
    rules = [r for r in RULES.values() if any(item.rule == r.id for item in report.findings)]
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        report=report,
        summary=summary(report),
        files=rows,
        rules=[(rule, advice(rule, report.target)) for rule in rules],
        severities=[*reversed(SEVERITIES)],
        hours=effort_hours(report.findings),
        kinds=HOURS,
        further=FURTHER,
        where=where,
    )
