"""Where in the source the time goes."""

import functools
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from utils.nki.simulator.timing.path import Step, engine_of, source

if TYPE_CHECKING:
    from utils.nki.simulator.timing import Schedule

NANO = 1e-9


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


def line_times(schedule: "Schedule", path: tuple[Step, ...]) -> list[LineTime]:
    """All lines that issued instructions, the ones that the kernel waited longest for first."""
    graph, times = schedule.graph, schedule.times
    busy: dict[tuple[str, int], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    count: dict[tuple[str, int], int] = defaultdict(int)
    texts: dict[tuple[str, int], str] = {}
    found = functools.cache(source)
    for node, (work, instruction) in enumerate(zip(graph.works, graph.instructions, strict=True)):
        file, number, text = found(instruction.line)
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
    return sorted(made, key=lambda each: (-each.critical, each.file, each.line))
