"""What a dry run has found: as data, as text and as JSON.

JSON, version 2: the fields of `Report`, as they stand there.
"""

import itertools
import json
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, repr=False)
class Report:
    """steps: each with number, ended_by, trains (or else evaluates), compiled and executed
    (identities of graphs), reads and causes. graphs: {identity, first_step, executions, asked}, in
    the order in which they are compiled; asked is the line that asked for the first, or what ended
    the step. reads, fallbacks, unsupported, redirects: by line, with counts. memory: of the largest
    graph, in bytes, or None.
    findings: those of the audit in the files that were loaded, each with `seen`: "confirmed", "ran"
    or "not seen". again: of a second run, its arguments, how many graphs it asked for, how many of
    these are known from the first, and whether they were the same in each step; None without one.
    setup, rest: graphs compiled before the first step and after the last. ended: how the program
    ended. bounds: what held it. printed: the end of what it printed.
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
    again: dict[str, Any] | None
    printed: str
    setup: list[str]
    rest: list[str]
    version: int = 2

    @property
    def ended_well(self) -> bool:
        """Whether the program came to its end, or to the number of steps."""
        ends = ("it ended itself", "after ")
        return self.ended.startswith(ends) or self.ended.endswith("with status 0")

    @property
    def recompiles(self) -> int:
        """Graphs compiled after the first step of training, and after the first of evaluation."""
        return sum(len(step["compiled"]) for step in self.steps) - self.first_compiles

    @property
    def first_compiles(self) -> int:
        """Graphs compiled in the first step of training, and in the first of evaluation."""
        firsts = {step["trains"]: step for step in reversed(self.steps)}
        return sum(len(step["compiled"]) for step in firsts.values())

    @property
    def same_graphs(self) -> bool | None:
        """Whether a second run asked for the same graphs in each step; None without one."""
        return None if self.again is None else bool(self.again["same"])

    @property
    def warmup_steps(self) -> int:
        """The steps after which everything that was seen has been compiled."""
        return max((step["number"] for step in self.steps if step["compiled"]), default=0)

    def __repr__(self) -> str:
        return as_text(self)

    def to_json(self) -> str:
        """All of it, indented."""
        return json.dumps(asdict(self), indent=1)


def read_report(
    name: str,
    seen: dict[str, Any],
    findings: list[dict[str, Any]],
    again: tuple[Sequence[str], list[list[str]]] | None = None,
) -> Report:
    """Puts together what the process has seen, what the audit says, and of a second run its
    arguments and the graphs of each step.
    """
    steps = seen["steps"]
    graphs: dict[str, dict[str, Any]] = {}
    for step in steps:
        for identity in (*step["compiled"], *step["executed"]):
            entry = {"identity": identity, "first_step": step["number"], "executions": 0}
            entry["asked"] = seen.get("asked", {}).get(identity, "")
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
        findings=[{**f, "seen": _read_seen(f, seen)} for f in findings],
        again=_again(graphs, [step["executed"] for step in steps], *again) if again else None,
        printed=seen["printed"],
        setup=seen.get("setup", []),
        rest=seen.get("rest", []),
        **tables,
    )


def _again(
    graphs: Collection[str],
    executed: list[list[str]],
    arguments: Sequence[str],
    other: list[list[str]],
) -> dict[str, Any]:
    asked = set().union(*other)
    result = {"arguments": list(arguments), "graphs": len(asked)}
    return result | {"known": len(asked & set(graphs)), "same": other == executed}


def _read_seen(finding: dict[str, Any], seen: dict[str, Any]) -> str:
    """ "confirmed": something was noted at that line; "ran": it ran, and nothing was."""
    place = f"{finding['file']}:{finding['line']}"
    tables = ("reads", "fallbacks", "unsupported", "redirects")
    noted = [row["where"] for key in tables for row in seen.get(key, [])]
    noted += [cause["where"] for step in seen["steps"] for cause in step["causes"]]
    if any(where == place or where.startswith(place + ":") for where in noted):
        return "confirmed"
    ran = finding["line"] in seen.get("run", {}).get(finding["path"], ())
    return "ran" if ran or place in seen.get("lines", []) else "not seen"


def as_text(report: Report) -> str:
    """The report for people."""
    lines = [
        f"Dry run of {report.name}: {report.ended}",
        f"Bounds: {report.bounds}",
        *_steps(report),
    ]
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
    lines += _findings(report)
    if not (report.steps and report.ended_well):
        lines += ["The end of what it printed:", *report.printed.splitlines()[-12:]]
    return "\n".join(lines)


def _findings(report: Report) -> list[str]:
    lines = ["Static findings:"] if report.findings else []
    for seen in ("confirmed", "ran"):
        for f in (f for f in report.findings if f["seen"] == seen):
            place = f"{f['file']}:{f['line']}"
            lines.append(f"  {seen:10} {f['rule']:20} {place}: {f['text'].strip()}")
    missed = Counter(f["path"] for f in report.findings if f["seen"] == "not seen")
    if missed:
        files = ", ".join(f"{count} in {path}" for path, count in missed.most_common(_SHOWN))
        more = f" and {len(missed) - _SHOWN} more files" if len(missed) > _SHOWN else ""
        lines.append(f"  not seen   {files}{more}: their lines did not run; --json lists them")
    return lines


def _steps(report: Report) -> list[str]:
    steps, early = report.steps, len(report.setup)
    if not steps:
        hint = _NO_STEP if report.ended_well else ()
        return [f"0 steps ended; {early} graphs compiled before the first step", *hint]
    evaluations = sum(not step["trains"] for step in steps)
    is_mixed = 0 < evaluations < len(steps)
    kinds = f" ({len(steps) - evaluations} of training, {evaluations} of evaluation)"
    each, them = (" of each kind", "them") if is_mixed else ("", "it")
    lines = [
        f"{len(steps)} steps{kinds if is_mixed else ''}, {len(report.graphs)} graphs:"
        f" {report.first_compiles} compiled in the first step{each}, {report.recompiles} after"
        f" {them}"
    ]

    def alike(step: dict[str, Any]) -> Any:
        # Steps that compile nothing and run the same are one line, or a long evaluation hides all.
        own = step["number"] if step["compiled"] or step["causes"] else 0
        return own, step["trains"], step["ended_by"], step["executed"], step["reads"]

    for _, group in itertools.groupby(steps, alike):
        step, *others = group
        number = f"steps {step['number']} to {others[-1]['number']}" if others else ""
        number = number or f"step {step['number']}"
        kind = " (evaluation)" if is_mixed and not step["trains"] else ""
        what = f"{len(step['compiled'])} compiled, {len(step['executed'])} run"
        names = [graph[:8] for graph in dict.fromkeys(step["executed"])]
        more = f" and {len(names) - 6} more" if len(names) > 6 else ""
        lines.append(
            f"  {number}{kind}: {what}, {step['reads']} reads{' each' if others else ''}; graphs"
            f" {' '.join(names[:6]) or 'none'}{more}; ended by {step['ended_by']}"
        )
        lines += _causes(step["causes"])
    return lines


_NO_STEP = (
    "No step was seen on the device. A step ends at torch_xla.sync() or xm.optimizer_step(); in a",
    "script without these after optimizer.step(), before model.zero_grad() and between the batches",
    "of a DataLoader. Let the script put its model on the device, such as with .to('cuda') or",
    ".to('xla'), and give it the arguments with which it trains.",
)


def _causes(causes: list[dict[str, Any]]) -> list[str]:
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for cause in causes:
        grouped.setdefault((cause["kind"], cause["where"]), []).append(cause)
    lines = []
    for (kind, where), same in grouped.items():
        more = f" (and {len(same) - 1} more like it)" if len(same) > 1 else ""
        graph = f"graph {same[0]['graph'][:8]}, " if same[0]["graph"] else ""
        lines.append(f"    {graph}{kind}: {same[0]['what']}{more}")
        lines += [f"      at {where}"] if where else []
        lines.append(f"      write: {same[0]['write']}")
    return lines


def _cache(report: Report) -> list[str]:
    if not report.graphs:
        return []
    runs = sum(graph["executions"] for graph in report.graphs)
    count, warm = len(report.graphs), report.warmup_steps
    lines = [
        f"Compile cache: {count} graphs to compile before a job, all within the first {warm} of"
        f" {len(report.steps)} steps; {max(runs - count, 0)} of {runs} runs find theirs compiled"
    ]
    askers: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for graph in report.graphs:
        askers.setdefault((graph["first_step"], graph["asked"] or "a library"), []).append(graph)
    if report.setup:
        lines.append(f"  and {len(report.setup)} more before the first step, to set it up")
    if report.rest:
        lines.append(f"  and {len(report.rest)} more after the last step")
    for (step, asked), graphs in list(askers.items())[:_SHOWN]:
        names = " ".join(graph["identity"][:8] for graph in graphs[:3])
        more = f" and {len(graphs) - 3} more" if len(graphs) > 3 else ""
        times = sum(graph["executions"] for graph in graphs)
        lines.append(f"  from step {step}, run {times} x: {names}{more}, asked for by {asked}")
    lines += [f"  and {len(askers) - _SHOWN} more lines"] if len(askers) > _SHOWN else []
    inserted = sum(graph["asked"] in INSERTED for graph in report.graphs)
    if inserted:
        lines.append(
            f"  Ended by the dry run, because the script marks no steps: {inserted} of these. A job"
            " needs a step marker there."
        )
    if warm == len(report.steps):
        lines.append("  The last step still compiled: run more steps to see where it ends.")
    lines.append(
        "  These are torch_xla's own hashes, of CPU graphs: Neuron's cache has keys of its own,"
        " from its HLO, the compiler's version and its flags."
    )
    if report.again:
        words = " ".join(report.again["arguments"])
        given = f"with the arguments {words}" if words else "without arguments"
        lines.append(
            f"A second run {given}: {report.again['known']} of its"
            f" {report.again['graphs']} graphs are compiled already"
            + ("; the same graphs, step by step" if report.again["same"] else "")
        )
    return lines


_SHOWN = 12
INSERTED = ("optimizer.step()", "model.zero_grad()", "the next batch")
"""Where a step ends in a script that marks none."""


def _table(title: str, rows: list[dict[str, Any]], *names: str) -> list[str]:
    if not rows:
        return []
    lines = [f"{title}:"]
    for row in sorted(rows, key=lambda row: -row["count"]):
        what = ", ".join(row[name] or "error code unknown" for name in names)
        lines.append(f"  {row['count']:4} x {what} at {row['where'] or 'an unknown line'}")
    return lines
