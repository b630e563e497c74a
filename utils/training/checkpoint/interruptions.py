"""Going through a run on machines that fail, event by event: what `utils.cost.tco.failures` says on
average, with any law of failure, with notices, and with a record of where the hours went.

A run has one thing to do at a time, so a loop with a clock says it shorter than processes of SimPy
that interrupt each other.
"""

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

KINDS = ("computing", "saving", "lost", "down")


@dataclass(frozen=True)
class Span:
    """A stretch of a run, in hours from its start. kind: one of `KINDS`; "lost" is computing or
    saving that is done again."""

    start: float
    end: float
    kind: str


@dataclass(frozen=True)
class Run:
    """A run that reached its end. hours: from start to end. failures: that stopped it, also during
    restarts. spans: without gaps, in order."""

    hours: float
    failures: int
    spans: tuple[Span, ...]

    def total(self, kind: str) -> float:
        """Hours of one of `KINDS`."""
        return math.fsum(span.end - span.start for span in self.spans if span.kind == kind)


def go(
    work: float,
    every: float,
    write: float,
    restart: float,
    gaps: Iterator[float],
    notice: float = 0.0,
) -> Run:
    """One run of `work` hours of computing.

    Args:
        work, every, write, restart: hours, as in `utils.cost.tco.failures.expected_hours`:
            computing, computing between two checkpoints, waiting for one checkpoint, and from a
            failure until computing goes on.
        gaps: hours between failures; the clock of the machines runs on while a run is down.
        notice: hours before each stop at which it is announced. If that is enough to save, the run
            saves at once, and is idle for the rest of the notice.
    """
    for name, value, least in (("work", work, 0), ("every", every, 0), ("write", write, None),
                               ("restart", restart, None), ("notice", notice, None)):  # fmt: skip
        if not math.isfinite(value) or (value <= 0 if least == 0 else value < 0):
            allowed = "more than 0" if least == 0 else "0 or more"
            raise ValueError(f"{name} is {value:g} hours: allowed is {allowed}")
    spans: list[Span] = []
    now = saved = 0.0
    failures = 0
    stop = next(gaps)

    def spend(until: float, kind: str) -> None:
        nonlocal now
        if until > now:
            spans.append(Span(now, until, kind))
            now = until

    while saved < work:
        segment = min(every, work - saved)
        if now + segment + write <= stop:
            spend(now + segment, "computing")
            spend(now + write, "saving")
            saved += segment
            continue
        warned = stop - notice
        in_time = 0 < notice >= write
        if in_time and now < warned <= now + segment:
            # Announced while it computes: what is done by then is saved in time.
            saved += warned - now
            spend(warned, "computing")
            spend(now + write, "saving")
            spend(stop, "down")
        elif in_time and warned <= now:
            spend(stop, "down")  # It has just saved, and knows that the next segment cannot end.
        else:
            spend(stop, "lost")
        failures += 1
        # If the next one comes before the run is up, no segment passes until then.
        up, stop = stop + restart, stop + next(gaps)
        spend(min(up, stop), "down")
    return Run(now, failures, tuple(spans))


def exponential(rate_per_hour: float, generator: np.random.Generator) -> Iterator[float]:
    """Hours between failures that come at random at a constant rate; none ever at rate 0."""
    while True:
        yield generator.exponential(1 / rate_per_hour) if rate_per_hour else math.inf


def of_servers(servers: int, mean_hours: float, generator: np.random.Generator) -> Iterator[float]:
    """Hours between the failures of a fleet, each server of which fails at random by a clock of its
    own, on average after `mean_hours`, and is replaced at once."""
    clocks = list(generator.exponential(mean_hours, servers))
    heapq.heapify(clocks)
    now = 0.0
    while True:
        first = clocks[0]
        heapq.heapreplace(clocks, first + generator.exponential(mean_hours))
        yield first - now
        now = first
