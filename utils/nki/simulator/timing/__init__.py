"""From the recorded instructions of a kernel to a schedule: an estimate of when everything runs.

    constants   every number of the model, from data files
    transfers   descriptors of a DMA and the time of each DMA engine
    work        what one instruction asks of the machine
    regions     which bytes a view touches, and which views overlap
    rotation    where tiles lie, and who must be done before a place is used again
    graph       who waits for whom
    machine     engines, rings and ports of one core in time
    schedule    which instruction goes next
    measures    what a program does: bytes, FLOP, counts, how full its memories are
    compiled    what the compiler makes of a program, as rules that can be left out
    path        what a schedule says: the critical path, time by line of source, a trace

All times are nanoseconds from the start of the kernel, and estimates.
"""

from utils.nki.simulator.timing.schedule import SCHEDULES, Schedule, schedule, without_collecting

__all__ = ["SCHEDULES", "Schedule", "schedule", "without_collecting"]
