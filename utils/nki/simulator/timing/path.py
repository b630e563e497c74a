"""The critical path: from the last result back through what each instruction waited for."""

import linecache
from dataclasses import dataclass
from typing import TYPE_CHECKING

from utils.nki.simulator.errors import Line
from utils.nki.simulator.timing.machine import DATA, DMA, GENERATOR, PORT, TABLE, TURN, WEIGHTS
from utils.nki.simulator.timing.work import QUEUES

if TYPE_CHECKING:
    from utils.nki.simulator.timing import Schedule

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


def engine_of(schedule: "Schedule", node: int) -> str:
    """The engine that does a node's work."""
    work = schedule.graph.works[node]
    return "dma" if work.transfer is not None else QUEUES[work.queue]


def critical_path(schedule: "Schedule") -> tuple[Step, ...]:
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
                _waited(schedule, node, cause),
                file,
                line,
                text,
            )
        )
        node, until = cause, since
    return tuple(reversed(steps))


def _waited(schedule: "Schedule", node: int, cause: int) -> str:
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


def _relation(schedule: "Schedule", cause: int, node: int) -> str:
    """Whether it is the result of the other that is needed, or the place."""

    def storages(of: int, names: tuple[str, ...]) -> set[int]:
        args = schedule.graph.instructions[of].args
        found = set()
        for name in names:
            value = args[name]
            for each in value if isinstance(value, (list, tuple)) else [value]:
                if hasattr(each, "storage"):
                    found.add(each.storage.index)
        return found

    works = schedule.graph.works
    made = storages(cause, works[cause].writes)
    if made & storages(node, works[node].reads):
        return "the result of"
    if (made | storages(cause, works[cause].reads)) & storages(node, works[node].writes):
        return "a place in use by"
    return "a buffer in use by"
