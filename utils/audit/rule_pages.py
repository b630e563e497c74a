"""A page for each rule, made from the data: what it is about, what to write for each target, code
that it finds and code that it does not, the source, and the lesson that teaches it.

`trn-audit --explain RULE` prints one, `--pages DIR` writes all of them, and SARIF carries them as
the help that code hosts show beside a finding.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

from utils.audit.rules import LESSONS, RULES, TARGETS, Rule
from utils.facts.records import content

EXAMPLES = "porting_cases.yaml"
_MARK = re.compile(r"\s*#! .*")


def page(rule: Rule) -> str:
    """The page as Markdown.

    >>> print(page(RULES["cuda-move"]).splitlines()[0])
    # cuda-move: .cuda() moves a tensor or a module to a CUDA device
    """
    lines = [f"# {rule.id}: {rule.title}", "", rule.happens]
    if rule.state:
        lines += ["", rule.state]
    lines += ["", "| target | severity | what to write |", "| --- | --- | --- |"]
    for target in TARGETS:
        severity = rule.severity_on(target) or "none"
        lines.append(f"| {target} | {severity} | {_cell(rule, target, severity)} |")
    case = _examples().get(rule.id)
    if case is not None:
        kind = "python" if str(case.get("name", "a.py")).endswith((".py", ".ipynb")) else ""
        for label, name in (("Found", "found"), ("Not found", "alike")):
            code = _MARK.sub("", case[name]).rstrip()
            lines += ["", f"{label}:", "", f"```{kind}", code, "```"]
    if rule.id in LESSONS:
        lines += ["", f"Lesson: `{LESSONS[rule.id]}`"]
    return "\n".join([*lines, "", f"Source: {rule.source}", ""])


@cache
def _examples() -> dict[str, Any]:
    return content(EXAMPLES)


def _cell(rule: Rule, target: str, severity: str) -> str:
    advice = rule.advice_on(target) if severity != "none" else "nothing to change"
    return advice.replace("|", "\\|")


def write_pages(folder: Path) -> int:
    """Write `RULE.md` for every rule, and an index; returns how many pages there are."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["# Rules of the audit", ""]
    for rule in RULES.values():
        (folder / f"{rule.id}.md").write_text(page(rule), encoding="utf-8")
        lines.append(f"- [{rule.id}]({rule.id}.md): {rule.title}")
    (folder / "index.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return len(RULES)
