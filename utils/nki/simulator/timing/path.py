"""What a schedule says: the critical path, time by line of source, and events for a trace.

The critical path goes from the last result back through what each instruction waited for.
"""

import functools
import linecache
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from utils.nki.simulator.errors import Line
from utils.nki.simulator.tensor import Tensor
from utils.nki.simulator.timing.machine import DATA, DMA, GENERATOR, PORT, TABLE, TURN, WEIGHTS
from utils.nki.simulator.timing.schedule import Schedule
from utils.nki.simulator.timing.work import QUEUES

NANO = 1e-9

REASONS = {
    TURN: "its turn on the engine",
    DMA: "the DMA engines",
    TABLE: "a table of functions",
    PORT: "a port that another engine used",
    GENERATOR: "a descriptor generator",
    WEIGHTS: "its weights in the array",
}


@dataclass(frozen=True)
class Step:
    """One instruction of the critical path.

    seconds: for how long it was the one that the kernel waited for. waited_for: what it had to wait
    for before it could begin. file, line, text: where it was written.
    """

    name: str
    engine: str
    start: float
    end: float
    seconds: float
    waited_for: str
    file: str
    line: int
    text: str


def source(line: Line) -> tuple[str, int, str]:
    """File, number and text of a line."""
    code, number = line
    return code.co_filename, number, linecache.getline(code.co_filename, number).strip()


def engine_of(schedule: Schedule, node: int) -> str:
    """The engine that does a node's work."""
    work = schedule.graph.works[node]
    return "dma" if work.transfer is not None else QUEUES[work.queue]


def critical_path(schedule: Schedule) -> tuple[Step, ...]:
    """The steps in the order of time."""
    end = schedule.times.end
    if not end:
        return ()
    node = max(range(len(end)), key=end.__getitem__)
    until = end[node]
    steps = []
    seen = set()
    while node >= 0 and node not in seen:
        seen.add(node)
        cause = schedule.times.cause[node]
        since = 0.0
        if cause >= 0:
            since = (
                end[cause]
                if schedule.times.why[node] in (DATA, WEIGHTS)
                else schedule.times.stop[cause]
            )
            since = min(since, until)
        file, line, text = source(schedule.graph.instructions[node].line)
        steps.append(
            Step(
                schedule.graph.works[node].name,
                engine_of(schedule, node),
                schedule.times.start[node] / 1e9,
                end[node] / 1e9,
                (until - since) / 1e9,
                _wait(schedule, node, cause),
                file,
                line,
                text,
            )
        )
        node, until = cause, since
    return tuple(reversed(steps))


def _wait(schedule: Schedule, node: int, cause: int) -> str:
    if cause < 0:
        return "nothing"
    why = schedule.times.why[node]
    works = schedule.graph.works
    if why in REASONS and why not in (WEIGHTS, TURN):
        return REASONS[why]
    name, engine = works[cause].name, engine_of(schedule, cause)
    if why == TURN:
        return f"{REASONS[TURN]}, after {name}"
    return f"{_relation(schedule, cause, node)} {name} on {engine}"


def _relation(schedule: Schedule, cause: int, node: int) -> str:
    """Whether it is the result of the other that is needed, or the place."""

    def storages(of: int, names: tuple[str, ...]) -> set[int]:
        args = schedule.graph.instructions[of].args
        results = set()
        for name in names:
            value = args[name]
            for item in value if isinstance(value, (list, tuple)) else [value]:
                if hasattr(item, "storage"):
                    results.add(item.storage.index)
        return results

    works = schedule.graph.works
    made = storages(cause, works[cause].writes)
    if made & storages(node, works[node].reads):
        return "the result of"
    if (made | storages(cause, works[cause].reads)) & storages(node, works[node].writes):
        return "a place in use by"
    return "a buffer in use by"


@dataclass(frozen=True)
class LineTime:
    """A line of a kernel: how many instructions it issued, how long engines worked for it (a DMA
    engine counts with its share), and for how long the kernel waited for it on the critical path.
    """

    file: str
    line: int
    text: str
    instructions: int
    busy: dict[str, float]
    critical: float


def line_times(schedule: Schedule, path: tuple[Step, ...]) -> list[LineTime]:
    """All lines that issued instructions, the ones that the kernel waited longest for first."""
    graph, times = schedule.graph, schedule.times
    busy: dict[tuple[str, int], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    count: dict[tuple[str, int], int] = defaultdict(int)
    texts: dict[tuple[str, int], str] = {}
    result = functools.cache(source)
    for node, (work, instruction) in enumerate(zip(graph.works, graph.instructions, strict=True)):
        file, number, text = result(instruction.line)
        where = file, number
        held = times.stop[node] - times.start[node]
        if work.transfer is not None:
            held = work.transfer.busy / schedule.constants.dma_engines
        busy[where][engine_of(schedule, node)] += held * NANO
        count[where] += 1
        texts[where] = text
    waited: dict[tuple[str, int], float] = defaultdict(float)
    for step in path:
        waited[step.file, step.line] += step.seconds
    made = [
        LineTime(*where, texts[where], count[where], dict(busy[where]), waited[where])
        for where in count
    ]
    return sorted(made, key=lambda item: (-item.critical, item.file, item.line))


TABLES = len(QUEUES)
DATA_TRACK = TABLES + 1
TRACKS = (*QUEUES, "scalar tables", "dma data")


def events(schedule: Schedule) -> list[dict[str, Any]]:
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
        made[name] = ", ".join(repr(item) for item in many if isinstance(item, Tensor))
    if work.transfer is not None:
        made["bytes"], made["descriptors"] = work.transfer.bytes, work.transfer.descriptors
    return made
