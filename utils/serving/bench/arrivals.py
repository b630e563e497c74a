"""Requests that come when they are due and not when the last one is answered: an open loop.

One worker answers them one at a time, in order; who is due while it works waits in a queue. A
latency lasts from the moment when the request was due, so that a pause counts for all that it
delays. From the moment of sending it would count once, however many waited: coordinated omission.
"""

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from utils.serving.bench.quantiles import percentile
from utils.serving.bench.timing import CLOCK, Clock, Waited, timed


@dataclass(frozen=True)
class Arrivals:
    """Requests of one plan.

    plan: its name, such as "steady". rate_per_s: requests per second, planned.
    latencies_s: of each, from when it was due to its answer. sent_s: from when it was sent, as a
    client sees that waits for each answer; nobody should quote it.
    """

    plan: str
    rate_per_s: float
    latencies_s: tuple[float, ...]
    sent_s: tuple[float, ...]

    def __str__(self) -> str:
        due, sent = (
            " and ".join(f"{percentile(each, p) * 1e3:.4g}" for p in (50, 99))
            for each in (self.latencies_s, self.sent_s)
        )
        return (
            f"{self.plan}, {len(self.latencies_s)} requests at {self.rate_per_s:.4g} per second:"
            f" p50 and p99 {due} ms from when due ({sent} ms from when sent)"
        )


def open_loop(
    step: Callable[[], Any],
    device: Waited,
    due_s: Sequence[float],
    plan: str = "",
    clock: Clock = CLOCK,
    sleep: Callable[[float], None] = time.sleep,
) -> Arrivals:
    """Answer each request with one call of `step`, when it is due or as soon as its turn comes.

    Args:
        step, device: as of `measure`; call `step` before, the first call compiles.
        due_s: when requests are due, in seconds from now, ascending, such as `serving.poisson`
            gives. The time that `sleep` oversleeps counts as latency.

    Raises: ValueError for no request, or one that is due before the one before it.
    """
    if not len(due_s) or not all(a <= b for a, b in itertools.pairwise(due_s)):
        raise ValueError("due_s: one moment at least, and none before the one before it")
    latencies, sent = [], []
    device.wait()
    begin = clock()
    for moment in due_s:
        if (early := begin + moment - clock()) > 0:
            sleep(early)
        sent.append(timed(step, device, clock))
        latencies.append(clock() - begin - moment)
    rate = len(due_s) / due_s[-1] if due_s[-1] else float("inf")
    return Arrivals(plan, float(rate), tuple(map(float, latencies)), tuple(sent))
