"""How many servers a load and a latency target need."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from utils.serving.clock import ONE_BY_ONE, Policy, Run, Service, open_loop

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
