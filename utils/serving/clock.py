"""The clock: one queue, first come first served, in front of servers that compute batches.

`open_loop` and `closed_loop` go through a load test event by event and return a `Run`, which keeps
every `Request` with its four times. Events are handled in the order of their times; whatever
happens at one moment has happened before anything is started at it.

Why not SimPy: it starts each process as soon as its own event is handled, so that of sixteen
requests that are due together the first would be served alone, and the rule above would need a
second phase at every moment, written against its scheduler. Tried: no shorter, and the batches of
bursts differ.
"""

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from utils.xla.buckets import bucket_of


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
        return np.array([request.latency_s for request in self.requests])

    @cached_property
    def seen_s(self) -> np.ndarray:
        """float64 [requests], from sent to finished."""
        return np.array([request.seen_s for request in self.requests])

    @cached_property
    def waits_s(self) -> np.ndarray:
        """float64 [requests], in the queue."""
        return np.array([request.wait_s for request in self.requests])

    @property
    def duration_s(self) -> float:
        """From the first arrival to the last answer."""
        first = min(request.arrived_s for request in self.requests)
        return max(request.finished_s for request in self.requests) - first

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
        return len(self.requests) / sum(1 / request.batch for request in self.requests)

    @property
    def padding(self) -> float:
        """Share of the computed rows that answered nobody."""
        return 1 - len(self.requests) / sum(
            request.rows / request.batch for request in self.requests
        )


Service = Callable[[int], float]
"""Seconds that one batch takes, of the number of rows computed. Whoever gives one states where its
parameters come from: a measurement, a roofline, or an assumption."""


@dataclass(frozen=True)
class Linear:
    """A part that every batch pays once, and one for each row.

    fixed_s: starting a graph, reading the weights. per_item_s: the arithmetic of one row.

    >>> Linear(fixed_s=0.010, per_item_s=0.001)(10)
    0.02
    """

    fixed_s: float
    per_item_s: float

    def __post_init__(self) -> None:
        if self.fixed_s < 0 or self.per_item_s < 0 or self.fixed_s + self.per_item_s <= 0:
            raise ValueError(
                "seconds are 0 or more and not both 0; found"
                f" fixed_s={self.fixed_s!r}, per_item_s={self.per_item_s!r}"
            )

    def __call__(self, size: int) -> float:
        """Seconds of a batch of `size` rows."""
        return self.fixed_s + size * self.per_item_s

    def rate_per_s(self, size: int) -> float:
        """Items per second of a server that always has a full batch of that size."""
        return size / self(size)


NEVER = math.inf
"""A `max_wait_s` for batches that start only when they are full."""


@dataclass(frozen=True)
class Policy:
    """When a free server starts a batch: when max_batch requests wait, or the oldest of them has
    waited for max_wait_s.

    buckets: sizes to which a batch is padded, ascending, the last at least max_batch; none: a batch
        is computed as it is.
    """

    max_batch: int = 1
    max_wait_s: float = 0.0
    buckets: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.max_batch < 1 or not self.max_wait_s >= 0:
            raise ValueError(
                "max_batch is 1 or more and max_wait_s 0 or more; found"
                f" {self.max_batch!r} and {self.max_wait_s!r}"
            )
        if self.buckets and max(self.buckets) < self.max_batch:
            raise ValueError(
                f"no bucket of {self.buckets} holds max_batch {self.max_batch}: add one that does"
            )

    def rows(self, size: int) -> int:
        """What is computed for a batch of that size.

        >>> Policy(max_batch=8, buckets=(1, 4, 8)).rows(3)
        4
        """
        return bucket_of(size, self.buckets) if self.buckets else size


ONE_BY_ONE = Policy()
"""No batching."""


@dataclass(frozen=True)
class Pause:
    """A stretch in which a server does nothing: it compiles, restarts, collects garbage.

    What it was computing goes on afterwards. server: its number; None stands for all.
    """

    begin_s: float
    end_s: float
    server: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.begin_s <= self.end_s < math.inf:
            raise ValueError(f"a pause begins at 0 or later and ends after that, found {self}")


def open_loop(
    due_s: Sequence[float] | np.ndarray,
    service: Service,
    servers: int = 1,
    policy: Policy = ONE_BY_ONE,
    pauses: Iterable[Pause] = (),
) -> Run:
    """Requests arrive when they are due, whatever became of earlier ones: as users do.

    Args:
        due_s: seconds, ascending, such as `poisson` gives.
        service: rows of a batch to seconds.

    Raises: ValueError for no request, times that descend, no server, or a service below 0.

    >>> run = open_loop([0.0, 0.1, 0.2], lambda rows: 0.15)
    >>> [round(float(each), 2) for each in run.latencies_s]
    [0.15, 0.2, 0.25]
    """
    due = _plan(due_s)
    return _Clock(due, None, service, servers, policy, pauses).run()


def closed_loop(
    plan: Sequence[float] | np.ndarray | int,
    clients: int,
    service: Service,
    servers: int = 1,
    policy: Policy = ONE_BY_ONE,
    pauses: Iterable[Pause] = (),
) -> Run:
    """Each client sends its next request when the last is answered, and not before it is due.

    Args:
        plan: when requests are due, dealt to the clients in turn, as `open_loop` takes them; or a
            number of requests, each due as soon as its client is free.
        clients: how many wait at once: the concurrency of the test.

    >>> run = closed_loop([0.0, 0.1, 0.2], 1, lambda rows: 0.15)
    >>> [round(float(each), 2) for each in run.seen_s]
    [0.15, 0.15, 0.15]
    """
    if clients < 1:
        raise ValueError(f"clients is 1 or more, found {clients!r}")
    if isinstance(plan, int):
        if plan < 1:
            raise ValueError(f"a plan is 1 or more requests, found {plan}")
        due = [-math.inf] * plan
    else:
        due = _plan(plan)
    return _Clock(due, clients, service, servers, policy, pauses).run()


def _plan(due_s: Sequence[float] | np.ndarray) -> list[float]:
    due = [float(item) for item in due_s]
    if not due or not all(0 <= item < math.inf for item in due) or sorted(due) != due:
        raise ValueError("due_s is one or more finite seconds from 0 on, ascending")
    return due


class _Clock:
    """One simulation: what waits, who is free, and what happens next."""

    def __init__(
        self,
        due: list[float],
        clients: int | None,
        service: Service,
        servers: int,
        policy: Policy,
        pauses: Iterable[Pause],
    ) -> None:
        if servers < 1:
            raise ValueError(f"servers is 1 or more, found {servers!r}")
        self.due, self.clients, self.service, self.policy = due, clients, service, policy
        self.pauses: list[list[tuple[float, float]]] = [[] for _ in range(servers)]
        for pause in sorted(pauses, key=lambda pause: pause.begin_s):
            if pause.server is not None and not 0 <= pause.server < servers:
                raise ValueError(f"{pause} is of no server: they are 0 to {servers - 1}")
            for server in range(servers) if pause.server is None else (pause.server,):
                self.pauses[server].append((pause.begin_s, pause.end_s))
        self.arrived = [0.0] * len(due)
        self.done: dict[int, Request] = {}
        self.queue: deque[int] = deque()
        self.idle = list(range(servers))  # a heap: the lowest number works first
        self.busy_s = 0.0
        # (time, what): a request arrives, a server is free again, or only time has passed
        self.events: list[tuple[float, int, int]] = []
        first = len(due) if clients is None else min(clients, len(due))
        for number in range(first):
            self._at(max(due[number], 0.0), _ARRIVES, number)
        for end in {end for spans in self.pauses for _, end in spans}:
            self._at(end, _PASSES, 0)

    def _at(self, time: float, kind: int, number: int) -> None:
        heapq.heappush(self.events, (time, kind, number))

    def run(self) -> Run:
        while self.events:
            now = self.events[0][0]
            while self.events and self.events[0][0] == now:
                _, kind, number = heapq.heappop(self.events)
                if kind == _ARRIVES:
                    self.arrived[number] = now
                    self.queue.append(number)
                elif kind == _FREE:
                    heapq.heappush(self.idle, number)
                elif kind == _ANSWERED and self.clients:
                    following = number + self.clients
                    if following < len(self.due):
                        self._at(max(self.due[following], now), _ARRIVES, following)
            self._start(now)
        requests = tuple(self.done[number] for number in range(len(self.due)))
        return Run(requests, len(self.pauses), self.busy_s)

    def _start(self, now: float) -> None:
        """Start every batch that may start now."""
        policy, queue = self.policy, self.queue
        resting = []
        while queue and self.idle:
            full, expires = len(queue) >= policy.max_batch, math.inf
            if not full:
                expires = self.arrived[queue[0]] + policy.max_wait_s
            if not full and now < expires:
                if expires < math.inf:
                    self._at(expires, _PASSES, 0)
                    break
                if self.events:
                    break
                # Nothing is left that could fill the batch: it starts as it is.
            server = heapq.heappop(self.idle)
            if any(begin <= now < end for begin, end in self.pauses[server]):
                resting.append(server)
                continue
            members = [queue.popleft() for _ in range(min(policy.max_batch, len(queue)))]
            self._compute(server, members, now)
        for server in resting:
            heapq.heappush(self.idle, server)

    def _compute(self, server: int, members: list[int], now: float) -> None:
        rows = self.policy.rows(len(members))
        seconds = self.service(rows)
        if not 0 <= seconds < math.inf:
            raise ValueError(f"the service of {rows} rows takes {seconds!r} s: 0 or more is needed")
        self.busy_s += seconds
        end = _after(self.pauses[server], now, seconds)
        self._at(end, _FREE, server)
        for number in members:
            due = self.due[number] if self.due[number] >= 0 else self.arrived[number]
            self.done[number] = Request(
                due_s=due,
                arrived_s=self.arrived[number],
                started_s=now,
                finished_s=end,
                batch=len(members),
                rows=rows,
                server=server,
                client=number % self.clients if self.clients else number,
            )
            if self.clients:
                self._at(end, _ANSWERED, number)


# In this order at one moment: servers are free and clients are answered before anything arrives.
_FREE, _ANSWERED, _ARRIVES, _PASSES = range(4)


def _after(pauses: Sequence[tuple[float, float]], begin: float, seconds: float) -> float:
    """When work of `seconds` that begins at `begin` is done, if the pauses do not count."""
    time, left = begin, seconds
    for start, end in pauses:
        if end <= time:
            continue
        if start >= time + left:
            break
        left -= max(0.0, start - time)
        time = end
    return time + left
