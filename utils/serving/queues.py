"""Queues: when requests are due, what is known of waiting, and how many servers a load needs.

Plans of an open loop, in which nobody waits for an answer: `steady`, `poisson`, `burst`. `little`
measures Little's law; `md1_wait_s` and `erlang_c` are the formulas of the queues M/D/1 and M/M/c
that every textbook has. The course quotes the first as the fact `md1-wait`, the law as
`littles-law`. `correct_omission` repairs coordinated omission, the requests that a waiting client
did not send: name and repair are Gil Tene's, the rule is `recordValueWithExpectedInterval` of his
HdrHistogram, https://github.com/HdrHistogram/HdrHistogram. Measuring from the moment when each
request was due, as `Run.latencies_s` does, needs no repair and is better.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from utils.serving.clock import ONE_BY_ONE, Policy, Run, Service, open_loop


def _check(rate_per_s: float, count: int) -> None:
    if not 0 < rate_per_s < float("inf"):
        raise ValueError(f"rate_per_s is above 0 and finite, found {rate_per_s!r}")
    if count < 1:
        raise ValueError(f"count is 1 or more requests, found {count!r}")


def steady(rate_per_s: float, count: int) -> np.ndarray:
    """float64 [count]: one request every 1 / rate_per_s seconds, the first at 0.

    >>> steady(10, 4).tolist()
    [0.0, 0.1, 0.2, 0.3]
    """
    _check(rate_per_s, count)
    return np.arange(count) / rate_per_s


def poisson(rate_per_s: float, count: int, seed: int) -> np.ndarray:
    """float64 [count]: independent users, gaps drawn from an exponential distribution."""
    _check(rate_per_s, count)
    return np.cumsum(np.random.default_rng(seed).exponential(1 / rate_per_s, count))


def burst(rate_per_s: float, count: int, seed: int, size: int = 16) -> np.ndarray:
    """float64 [count]: groups of `size` at the same moment, as often as keeps the mean rate.

    The gaps between groups are exponential; the last group may be smaller.
    """
    _check(rate_per_s, count)
    if size < 1:
        raise ValueError(f"size is 1 or more requests in a group, found {size!r}")
    groups = -(-count // size)
    starts = np.cumsum(np.random.default_rng(seed).exponential(size / rate_per_s, groups))
    return np.repeat(starts, size)[:count]


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


def correct_omission(seen_s: Sequence[float] | np.ndarray, every_s: float) -> np.ndarray:
    """Latencies of a closed loop with those added that it omitted, in ascending order.

    Args:
        seen_s: float64 [n], measured by clients that waited for each answer.
        every_s: seconds between two requests of one client, had it not waited.

    For an answer after `t` seconds the client omitted requests that would have waited t - every_s,
    t - 2 every_s and so on, down to every_s.

    >>> correct_omission([0.1, 0.1, 0.5], every_s=0.125).tolist()
    [0.1, 0.1, 0.125, 0.25, 0.375, 0.5]
    """
    seen = np.asarray(seen_s, dtype=float)
    if not every_s > 0 or not np.all((seen >= 0) & np.isfinite(seen)):
        raise ValueError(
            f"every_s is above 0 and latencies are 0 or more, found every_s={every_s!r} and"
            f" latencies from {seen.min():g} to {seen.max():g}"
        )
    omitted = [
        latency - every_s * np.arange(1, int(np.floor(latency / every_s)))
        for latency in seen[seen >= 2 * every_s]
    ]
    return np.sort(np.concatenate([seen, *omitted]))


ROUNDING = 1e-9
"""A latency is a difference of two times, and may exceed its own terms in the last digits."""


@dataclass(frozen=True)
class Fleet:
    """servers: the smallest number that keeps the target. latency_s: of the percentile, with them.
    run: the simulation that shows it. tried: latency_s for each number of servers tried.
    """

    servers: int
    latency_s: float
    run: Run
    tried: dict[int, float]


def smallest_fleet(
    due_s: Sequence[float] | np.ndarray,
    service: Service,
    percentile: float,
    limit_s: float,
    policy: Policy = ONE_BY_ONE,
    most: int = 256,
) -> Fleet:
    """The fewest servers for which that percentile of the latencies is at most limit_s.

    Numbers are tried upwards, from the least whose servers could do that much work in time; with
    batches, one more server is not always faster. The service must be a pure function of the rows.

    Raises: ValueError if no batch is that fast, or `most` servers do not suffice.
    """
    if not 0 < percentile < 100 or not limit_s > 0:
        raise ValueError(
            "percentile is between 0 and 100, limit_s above 0; found"
            f" {percentile!r} and {limit_s!r}"
        )
    alone = service(policy.rows(1))
    if alone > limit_s:
        raise ValueError(
            f"one request alone takes {alone:g} s, more than the limit of {limit_s:g} s: no number"
            " of servers helps; a faster service or another limit does"
        )
    # Those in time are done at the last due time plus the limit; no batch is cheaper per request.
    cheapest = min(service(policy.rows(n)) / n for n in range(1, policy.max_batch + 1))
    in_time = math.floor(percentile / 100 * (len(due_s) - 1))
    seconds = float(due_s[-1] - due_s[0]) + limit_s
    least = max(1, math.ceil(in_time * cheapest / seconds))
    tried: dict[int, float] = {}
    for servers in range(least, most + 1):
        run = open_loop(due_s, service, servers, policy)
        tried[servers] = float(np.percentile(run.latencies_s, percentile))
        if tried[servers] <= limit_s * (1 + ROUNDING):
            return Fleet(servers, tried[servers], run, tried)
    raise ValueError(
        f"{most} servers do not keep p{percentile:g} within {limit_s:g} s: it is"
        f" {min(tried.values(), default=math.nan):g} s; allow more, or a smaller max_wait_s"
    )
