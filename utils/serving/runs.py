"""What a load test saw: each request with its four times, and what follows from all of them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Request:
    """One request, in seconds from the start of the test.

    due_s: when its user wanted it. arrived_s: when it was sent to the service, later than due if
        the client was still waiting for an earlier answer. started_s, finished_s: of its batch.
    batch: requests in that batch. rows: what was computed, padding included.
    server, client: their numbers, from 0.
    """

    due_s: float
    arrived_s: float
    started_s: float
    finished_s: float
    batch: int = 1
    rows: int = 1
    server: int = 0
    client: int = 0

    @property
    def latency_s(self) -> float:
        """What its user waited: from the moment it was due."""
        return self.finished_s - self.due_s

    @property
    def seen_s(self) -> float:
        """What a client sees that starts its watch when it sends."""
        return self.finished_s - self.arrived_s

    @property
    def wait_s(self) -> float:
        """In the queue of the service."""
        return self.started_s - self.arrived_s


@dataclass(frozen=True)
class Run:
    """All requests of one test, in the order in which they were due.

    servers: how many there were. busy_s: seconds in which they worked, all together.
    """

    requests: tuple[Request, ...]
    servers: int
    busy_s: float

    @cached_property
    def latencies_s(self) -> np.ndarray:
        """float64 [requests], from due to finished."""
        return np.array([each.latency_s for each in self.requests])

    @cached_property
    def seen_s(self) -> np.ndarray:
        """float64 [requests], from sent to finished."""
        return np.array([each.seen_s for each in self.requests])

    @cached_property
    def waits_s(self) -> np.ndarray:
        """float64 [requests], in the queue."""
        return np.array([each.wait_s for each in self.requests])

    @property
    def duration_s(self) -> float:
        """From the first arrival to the last answer."""
        first = min(each.arrived_s for each in self.requests)
        return max(each.finished_s for each in self.requests) - first

    @property
    def throughput_per_s(self) -> float:
        """Answers per second."""
        return len(self.requests) / self.duration_s

    @property
    def utilisation(self) -> float:
        """Share of the servers' time in which they worked."""
        return self.busy_s / (self.servers * self.duration_s)

    @property
    def mean_batch(self) -> float:
        """Requests per batch: each request counts its share of one batch."""
        return len(self.requests) / sum(1 / each.batch for each in self.requests)

    @property
    def padding(self) -> float:
        """Share of the computed rows that answered nobody."""
        return 1 - len(self.requests) / sum(each.rows / each.batch for each in self.requests)
