"""What is right for the fleet of exercise 4 of lab 12: its queue, played on a virtual clock."""

import bisect
import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from utils.labs import Facts
from utils.labs.lab12 import draws


def played(
    arrivals: list[float],
    server: Facts,
    servers: int,
    lost_at: float = math.inf,
    finished: bool = False,
    just_missed: bool = False,
) -> Iterator[float]:
    """The latency of every request in ms with so many servers, the first of which is lost.

    finished: the lost server answers its last batch, which is wrong. just_missed: what arrives at
    the moment at which a server becomes free is not taken by it; the task leaves that open.
    """
    queue = [(arrival, arrival) for arrival in arrivals]  # when it joins the queue, when it arrived
    free, place, most = [0.0] * servers, 0, server["max_batch"]
    while place < len(queue):
        starts = [max(item, queue[place][0]) for item in free]
        if starts[0] >= lost_at:
            starts[0] = math.inf
        start = min(starts)
        if start == math.inf:
            yield math.inf  # nobody is left
            return
        which = starts.index(start)
        batch = [e for e in queue[place : place + most] if e[0] <= start]
        if just_missed:
            batch[1:] = [e for e in batch[1:] if e[0] < start]
        place += len(batch)
        free[which] = start + server["base_ms"] + server["per_request_ms"] * len(batch)
        if which == 0 and free[0] > lost_at and not finished:
            for _, arrived in batch:
                bisect.insort(queue, (lost_at, arrived))
        else:
            yield from (free[which] - arrived for _, arrived in batch)


def latencies(*of: Any, **rules: Any) -> list[float]:
    """The latencies of all requests in ms, as `played` gives them."""
    return list(played(*of, **rules))


def p99(found: list[float]) -> float:
    """The 99th percentile; infinity if a request is never answered."""
    return float(np.percentile(found, 99)) if math.isfinite(max(found)) else math.inf


def smallest(
    arrivals: list[float],
    server: Facts,
    lost_at: float = math.inf,
    percent: float = 99,
    finished: bool = False,
) -> int:
    """The smallest number of servers that keeps the target, for a percentile."""
    allowed = (1 - percent / 100) * len(arrivals) + 2  # with more, no percentile needs computing
    number = 1
    while True:
        result, late = [], 0
        for item in played(arrivals, server, number, lost_at, finished):
            result.append(item)
            late += item > server["target_ms"]
            if late > allowed or item == math.inf:
                break
        else:
            if np.percentile(result, percent) <= server["target_ms"]:
                return number
        number += 1


def possible(server: Facts) -> bool:
    """Whether one request alone keeps the target."""
    return server["base_ms"] + server["per_request_ms"] <= server["target_ms"]


def truth(fleet: Facts) -> Facts:
    """The servers needed, their p99 in ms, and the servers with one lost; or None for each."""
    drawn = tuple((name, item) for name, item in fleet.items() if name != "server")
    return dict(_truth(drawn, tuple(fleet["server"].items())))


@cache
def _truth(drawn: tuple, of_server: tuple) -> tuple:
    server = dict(of_server)
    arrivals = draws.arrivals(dict(drawn))
    if not possible(server):
        return tuple((name, None) for name in ("servers", "p99_ms", "servers_after_loss"))
    servers = smallest(arrivals, server)
    return (
        ("servers", servers),
        ("p99_ms", p99(latencies(arrivals, server, servers))),
        ("servers_after_loss", smallest(arrivals, server, server["lost_at_ms"])),
    )


def by_mean(fleet: Facts, full: bool = True) -> int:
    """Servers by the mean load alone: arrivals per ms times ms per request.

    full: in full batches; otherwise each request alone.
    """
    arrivals, server = draws.arrivals(fleet), fleet["server"]
    item = server["base_ms"] / (server["max_batch"] if full else 1) + server["per_request_ms"]
    return math.ceil(item * len(arrivals) / (arrivals[-1] - arrivals[0]))
