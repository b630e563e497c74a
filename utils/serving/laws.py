"""What is known of queues without simulating them, and Little's law, measured.

The formulas of the queues M/D/1 and M/M/c (Erlang's C) are those of every textbook, to hold
a simulation against. The course quotes the first as the fact `md1-wait`, the law as `littles-law`.
"""

import math
from dataclasses import dataclass

import numpy as np

from utils.serving.clock import Run


@dataclass(frozen=True)
class Little:
    """The three quantities of Little's law, each counted on its own.

    in_system: requests there, averaged over time. rate_per_s: arrivals per second.
    latency_s: mean time from arrival to answer.
    """

    in_system: float
    rate_per_s: float
    latency_s: float

    @property
    def product(self) -> float:
        """rate_per_s times latency_s; the law says: equal to in_system."""
        return self.rate_per_s * self.latency_s


def little(run: Run) -> Little:
    """Little's law on a run that begins and ends empty, where it is exact.

    The number in the system is summed from its ups and downs, not from latencies.
    """
    arrived = np.array([request.arrived_s for request in run.requests])
    finished = np.array([request.finished_s for request in run.requests])
    times = np.concatenate([arrived, finished])
    change = np.concatenate([np.ones(len(arrived)), -np.ones(len(finished))])
    order = np.argsort(times, kind="stable")
    there = np.cumsum(change[order])[:-1]
    area = math.fsum(there * np.diff(times[order]))
    return Little(
        in_system=area / run.duration_s,
        rate_per_s=len(arrived) / run.duration_s,
        latency_s=float(np.mean(run.seen_s)),
    )


def _load(rate_per_s: float, service_s: float, servers: int = 1) -> float:
    load = rate_per_s * service_s / servers
    if not 0 < load < 1:
        raise ValueError(
            f"the load is {load:.3g}; a queue has a mean only between 0 and 1: fewer requests, a"
            " faster service or more servers"
        )
    return load


def md1_wait_s(rate_per_s: float, service_s: float) -> float:
    """Mean seconds of waiting before a service that always takes service_s (Pollaczek-Khinchine).

    >>> round(md1_wait_s(rate_per_s=80, service_s=0.010), 4)
    0.02
    """
    load = _load(rate_per_s, service_s)
    return load * service_s / (2 * (1 - load))


def erlang_c(rate_per_s: float, service_s: float, servers: int) -> float:
    """Share of requests that have to wait, with exponential services on `servers` servers.

    >>> round(erlang_c(rate_per_s=80, service_s=0.010, servers=1), 3)
    0.8
    """
    load = _load(rate_per_s, service_s, servers)
    blocked = 1.0  # Erlang's B by its recursion, which does not overflow
    offered = load * servers
    for item in range(1, servers + 1):
        blocked = offered * blocked / (item + offered * blocked)
    return blocked / (1 - load * (1 - blocked))
