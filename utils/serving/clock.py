"""The clock: one queue, first come first served, in front of servers that compute batches.

Events are handled in the order of their times; whatever happens at one moment has happened before
anything is started at it.
"""

import heapq
import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from utils.serving.runs import Request, Run
from utils.serving.services import Service
from utils.xla.buckets import bucket_of

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
    due = [float(each) for each in due_s]
    if not due or not all(0 <= each < math.inf for each in due) or sorted(due) != due:
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
        self.pauses = [[] for _ in range(servers)]
        for each in sorted(pauses, key=lambda pause: pause.begin_s):
            if each.server is not None and not 0 <= each.server < servers:
                raise ValueError(f"{each} is of no server: they are 0 to {servers - 1}")
            for server in range(servers) if each.server is None else (each.server,):
                self.pauses[server].append((each.begin_s, each.end_s))
        self.arrived = [0.0] * len(due)
        self.done: list[Request | None] = [None] * len(due)
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
                elif kind == _ANSWERED:
                    following = number + self.clients
                    if following < len(self.due):
                        self._at(max(self.due[following], now), _ARRIVES, following)
            self._start(now)
        return Run(tuple(self.done), len(self.pauses), self.busy_s)

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
