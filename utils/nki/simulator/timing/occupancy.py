"""How full SBUF and PSUM are in time: a tile counts from its first byte to its last use."""

from typing import TYPE_CHECKING

from utils.nki.simulator.capacity import taken_bytes
from utils.nki.simulator.enums import ON_CHIP
from utils.nki.simulator.memory import Storage
from utils.nki.simulator.tensor import Tensor
from utils.nki.simulator.timing.work import QUEUES

if TYPE_CHECKING:
    from utils.nki.simulator.timing import Schedule

NANO = 1e-9


def occupancy(schedule: "Schedule", core: int = 0) -> dict[str, list[tuple[float, int]]]:
    """For "sbuf" and "psum" the steps (seconds, bytes per partition from then on) of one core.

    What rotation adds is in it: tiles that are loaded ahead are there earlier.
    """
    graph, times = schedule.graph, schedule.times
    lives: dict[Storage, list[float]] = {}
    for node, (work, instruction) in enumerate(zip(graph.works, graph.instructions, strict=True)):
        if graph.queue[node] // len(QUEUES) != core:
            continue
        begin = times.start[node] if work.transfer is None else times.first[node]
        for name in (*work.reads, *work.writes):
            value = instruction.args[name]
            for each in value if name in work.lists else (value,):
                if not isinstance(each, Tensor) or not each.storage.on_chip:
                    continue
                life = lives.get(each.storage)
                if life is None:
                    lives[each.storage] = [begin, times.end[node]]
                else:
                    life[0] = min(life[0], begin)
                    life[1] = max(life[1], times.end[node])
    return {each.value: _steps(schedule, lives, each) for each in ON_CHIP}


def _steps(
    schedule: "Schedule", lives: dict[Storage, list[float]], buffer: object
) -> list[tuple[float, int]]:
    target = schedule.program.target
    changes: dict[float, int] = {0.0: 0}
    for storage, (begin, end) in lives.items():
        if storage.buffer is not buffer:
            continue
        size = taken_bytes(storage, target)
        changes[begin] = changes.get(begin, 0) + size
        changes[end] = changes.get(end, 0) - size
    steps, level = [], 0
    for time in sorted(changes):
        level += changes[time]
        steps.append((time * NANO, level))
    return steps
