"""How much memory and how many processes each person uses, and the end of what is too much.

The kernel limits the data of each process (`person`); what several processes use together is
counted here, and only what a process shares with nobody, so that libraries count once for nobody.
"""

import contextlib
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from utils.labs.grading.confine import Limits

EVERY_S = 0.5
_SERVER_DEPTH = 2
"""Below the hub: bubblewrap, its first process in the sandbox, then the person's server."""


@dataclass(frozen=True)
class Use:
    """What the processes of one person use. largest: the one to end first, a psutil.Process."""

    memory_bytes: int
    processes: int
    largest: Any


def uses(sandboxes: dict[str, int]) -> dict[str, Use]:
    """{name: use} of those that run, given the process of each one's sandbox; one look at all."""
    import psutil

    processes, children = {}, defaultdict(list)
    for process in psutil.process_iter(["pid", "ppid", "memory_info"]):
        processes[process.info["pid"]] = process
        children[process.info["ppid"]].append(process.info["pid"])
    result = {}
    for name, sandbox in sandboxes.items():
        members, level = [], [sandbox] if sandbox in processes else []
        for depth in range(len(processes)):
            members += [(depth, processes[pid]) for pid in level]
            level = [child for pid in level for child in children[pid]]
        if members:
            ours = [(_own_bytes(process), depth, process) for depth, process in members]
            notebooks = [item for item in ours if item[1] > _SERVER_DEPTH] or ours[1:] or ours
            largest = max(notebooks, key=lambda item: item[0])[2]
            result[name] = Use(sum(item[0] for item in ours), len(ours), largest)
    return result


def _own_bytes(process: Any) -> int:
    info = process.info["memory_info"]
    return info.rss - info.shared if info else 0


def end_excess(name: str, use: Use, limits: Limits) -> str:
    """End the largest process of somebody who is above a limit. Returns what to tell, or ""."""
    import psutil

    if use.memory_bytes > limits.memory_bytes:
        why = f"your notebooks used more than {limits.memory_bytes / 1e9:.1f} GB of memory together"
    elif use.processes > limits.processes + 8:
        why = f"your notebooks had more than {limits.processes} processes"
    else:
        return ""
    with contextlib.suppress(psutil.Error):
        use.largest.kill()
    return f"{why}; the largest one was ended"
