"""What a dry run has found: as data, as text and as JSON.

JSON, version 1: the fields of `Report`, as they stand there.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, repr=False)
class Report:
    """steps: each with number, ended_by, compiled and executed (identities of graphs), reads and
    causes. graphs: {identity, first_step, executions}, in the order in which they are compiled.
    reads, fallbacks, unsupported, redirects: by line, with counts. memory: of the largest graph, in
    bytes, or None. findings: those of the audit, each with `seen`: "confirmed", "ran" or "not
    seen". same_graphs: whether a second run asked for the same graphs, None without one. ended: how
    the program ended. bounds: what held it. printed: the end of what it printed.
    """

    name: str
    ended: str
    bounds: str
    steps: list[dict[str, Any]]
    graphs: list[dict[str, Any]]
    reads: list[dict[str, Any]]
    fallbacks: list[dict[str, Any]]
    unsupported: list[dict[str, Any]]
    redirects: list[dict[str, Any]]
    memory: dict[str, int] | None
    findings: list[dict[str, Any]]
    same_graphs: bool | None
    printed: str
    version: int = 1

    @property
    def recompiles(self) -> int:
        """Graphs compiled after the first step."""
        return sum(len(step["compiled"]) for step in self.steps[1:])

    def __repr__(self) -> str:
        return as_text(self)

    def to_json(self) -> str:
        """All of it, indented."""
        return json.dumps(asdict(self), indent=1)


def read_report(
    name: str, seen: dict[str, Any], findings: list[dict[str, Any]], again: list[list[str]] | None
) -> Report:
    """Puts together what the process has seen, what the audit says and the graphs of a second
    run.
    """
    steps = seen["steps"]
    graphs: dict[str, dict[str, Any]] = {}
    for step in steps:
        for identity in (*step["compiled"], *step["executed"]):
            entry = {"identity": identity, "first_step": step["number"], "executions": 0}
            graphs.setdefault(identity, entry)
        for identity in step["executed"]:
            graphs[identity]["executions"] += 1
    tables = {key: seen.get(key, []) for key in ("reads", "fallbacks", "unsupported", "redirects")}
    return Report(
        name=name,
        ended=seen["ended"],
        bounds=seen["bounds"],
        steps=steps,
        graphs=list(graphs.values()),
        memory=seen["memory"],
        findings=[{**f, "seen": _seen(name, f, seen)} for f in findings],
        same_graphs=None if again is None else again == [step["executed"] for step in steps],
        printed=seen["printed"],
        **tables,
    )


def _seen(name: str, finding: dict[str, Any], seen: dict[str, Any]) -> str:
    """ "confirmed": something was noted at that line; "ran": its operators ran, and nothing was."""
    place = f"{name}:{finding['line']}"
    tables = ("reads", "fallbacks", "unsupported", "redirects")
    noted = [row["where"] for key in tables for row in seen.get(key, [])]
    noted += [cause["where"] for step in seen["steps"] for cause in step["causes"]]
    if any(where == place or where.startswith(place + ":") for where in noted):
        return "confirmed"
    return "ran" if place in seen.get("lines", []) else "not seen"


def as_text(report: Report) -> str:
    """The report for people."""
    first = len(report.steps[0]["compiled"]) if report.steps else 0
    lines = [
        f"Dry run of {report.name}: {report.ended}",
        f"Bounds: {report.bounds}",
        f"{len(report.steps)} steps, {len(report.graphs)} graphs: {first} compiled in the first"
        f" step, {report.recompiles} after it",
    ]
    if not report.steps:
        lines.append("No step was seen on the device: nothing was put there, or no step ended.")
    for step in report.steps:
        what = f"{len(step['compiled'])} compiled, {len(step['executed'])} run"
        graphs = " ".join(graph[:8] for graph in dict.fromkeys(step["executed"]))
        lines.append(
            f"  step {step['number']}: {what}, {step['reads']} reads; graphs {graphs or 'none'};"
            f" ended by {step['ended_by']}"
        )
        for cause in step["causes"]:
            lines.append(f"    {cause['kind']}: {cause['what']}")
            lines += [f"      at {cause['where']}"] if cause["where"] else []
            lines.append(f"      write: {cause['write']}")
    lines += _table("Values read by the host", report.reads, "operator")
    lines += _table("Operators that fall back to the host", report.fallbacks, "operator")
    lines += _table("Refused by Neuron's published lists", report.unsupported, "what", "code")
    lines += _table("Sent to the XLA device, or left out", report.redirects, "what")
    if report.memory:
        peak = report.memory["peak_bytes"] / 1e6
        lines.append(
            f"Memory of the largest graph, as XLA's CPU compiler lays it out: {peak:.1f} MB"
        )
    lines += _cache(report)
    if report.findings:
        lines.append("Static findings:")
        for f in report.findings:
            lines.append(f"  {f['seen']:10} {f['rule']:20} line {f['line']}: {f['text'].strip()}")
    if report.ended.startswith(("it raised", "it died", "it left", "stopped")):
        lines += ["The end of what it printed:", *report.printed.splitlines()[-12:]]
    return "\n".join(lines)


def _cache(report: Report) -> list[str]:
    if not report.graphs:
        return []
    runs = sum(graph["executions"] for graph in report.graphs)
    hits = runs - len(report.graphs)
    lines = [
        f"Compile cache: {len(report.graphs)} graphs to compile before a job;"
        f" {max(hits, 0)} of {runs} runs would find theirs compiled already"
    ]
    if report.same_graphs is not None:
        word = "the same" if report.same_graphs else "other"
        lines.append(f"A second run asked for {word} graphs, step by step")
    return lines


def _table(title: str, rows: list[dict[str, Any]], *names: str) -> list[str]:
    if not rows:
        return []
    lines = [f"{title}:"]
    for row in sorted(rows, key=lambda row: -row["count"]):
        what = ", ".join(row[name] or "error code unknown" for name in names)
        lines.append(f"  {row['count']:4} x {what} at {row['where'] or 'an unknown line'}")
    return lines
