"""A schedule as events for chrome://tracing and Perfetto (Trace Event Format, JSON object form)."""

from typing import TYPE_CHECKING, Any

from utils.nki.simulator.tensor import Tensor
from utils.nki.simulator.timing.path import source
from utils.nki.simulator.timing.work import QUEUES

if TYPE_CHECKING:
    from utils.nki.simulator.timing import Schedule

TABLES = len(QUEUES)
DATA_TRACK = TABLES + 1
TRACKS = (*QUEUES, "scalar tables", "dma data")


def events(schedule: "Schedule") -> list[dict[str, Any]]:
    """Complete events ("X", microseconds), one process for each core, one track for each queue."""
    made: list[dict[str, Any]] = []
    for core in range(schedule.graph.cores):
        made.append(_meta("process_name", core, 0, f"core {core} (estimate)"))
        made += [_meta("thread_name", core, i, name) for i, name in enumerate(TRACKS)]
    graph = schedule.graph
    for node, (work, instruction) in enumerate(zip(graph.works, graph.instructions, strict=True)):
        core, kind = divmod(graph.queue[node], len(QUEUES))
        args = _args(instruction, work)
        name = instruction.name or work.name
        start, stop = schedule.times.start[node], schedule.times.stop[node]
        if work.transfer is None:
            made.append(_event(name, core, kind, start, max(stop, schedule.times.end[node]), args))
        else:
            made.append(_event(f"{name} issue", core, kind, start, stop, args))
            done = schedule.times.end[node] - schedule.constants.dma_done
            made.append(_event(name, core, DATA_TRACK, schedule.times.first[node], done, args))
    for start, stop, node in schedule.times.loads:
        core = graph.queue[node] // len(QUEUES)
        args = {"table": graph.works[node].table}
        made.append(_event("load table", core, TABLES, start, stop, args))
    return made


def _meta(what: str, core: int, track: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": core, "tid": track, "args": {"name": name}}


def _event(
    name: str, core: int, track: int, start: float, stop: float, args: dict[str, Any]
) -> dict[str, Any]:
    return {
        "ph": "X", "name": name, "cat": TRACKS[track], "pid": core, "tid": track,
        "ts": start / 1e3, "dur": (stop - start) / 1e3, "args": args,
    }  # fmt: skip


def _args(instruction: Any, work: Any) -> dict[str, Any]:
    file, line, text = source(instruction.line)
    made: dict[str, Any] = {"line": f"{file}:{line}", "source": text}
    for name in (*work.writes, *work.reads):
        value = instruction.args[name]
        many = value if isinstance(value, (list, tuple)) else [value]
        made[name] = ", ".join(repr(each) for each in many if isinstance(each, Tensor))
    if work.transfer is not None:
        made["bytes"], made["descriptors"] = work.transfer.bytes, work.transfer.descriptors
    return made
