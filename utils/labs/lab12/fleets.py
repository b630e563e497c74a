"""The cases and the judgement of a fleet for a load and a p99, exercise 4 of lab 12."""

import bisect
import math
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import not_of_the_form
from utils.labs.lab12 import draws
from utils.labs.values import right_or_none
from utils.labs.wrong_answers import Known, column

SAYS = says("lab12")


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


def p99(result: list[float]) -> float:
    """The 99th percentile; infinity if a request is never answered."""
    return float(np.percentile(result, 99)) if math.isfinite(max(result)) else math.inf


def smallest(
    arrivals: list[float], server: Facts, lost_at: float = math.inf, finished: bool = False
) -> int:
    """The smallest number of servers whose p99 keeps the target."""
    allowed = 0.01 * len(arrivals) + 2  # with more, no percentile needs computing
    number = 1
    while True:
        result, late = [], 0
        for item in played(arrivals, server, number, lost_at, finished):
            result.append(item)
            late += item > server["target_ms"]
            if late > allowed or item == math.inf:
                break
        else:
            if p99(result) <= server["target_ms"]:
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


def by_mean(fleet: Facts) -> int:
    """Servers by the mean load alone: arrivals per ms times ms per request of a full batch."""
    arrivals, server = draws.arrivals(fleet), fleet["server"]
    item = server["base_ms"] / server["max_batch"] + server["per_request_ms"]
    return math.ceil(item * len(arrivals) / (arrivals[-1] - arrivals[0]))


TOLERANCE = 1e-9
WEIGHTS = {"servers": 3, "p99": 2, "after a loss": 3}
KEYS = {"servers": "servers", "p99": "p99_ms", "after a loss": "servers_after_loss"}
MORE = 3
"""So many servers from the smallest number on keep the target, and the one below does not: what
searches by halves finds the same."""

CLEAR = 1e-3
"""How far a p99 lies from the target at least, as a share of it."""

FLEETS = (
    ((110, 1, "any"), (130, 4, "redone"), (120, 1, "any")),
    ((160, 4, "room"), (200, 8, "redone"), (130, 1, "one more"), (60, 2, "too slow"),
     (160, 3, "any")),
)  # fmt: skip
"""For each load: requests, largest batch, and what the loss of a server does. In "room" it costs
nothing, in "redone" the batch that is done twice makes the difference."""


def fleet_cases(rng: random.Random) -> list[Facts]:
    """Loads with bursts; the second case has one that no number of servers serves in time."""
    return [{"fleets": [_fleet(rng, *fleet) for fleet in fleets]} for fleets in FLEETS]


def _fleet(rng: random.Random, count: int, batch: int, kind: str) -> Facts:
    while True:
        base, item = rng.randint(8, 30), rng.randint(1, 6)
        every = round((base / batch + item) / rng.uniform(1.6, 4.5), 2)
        share = rng.uniform(0.5, 0.9) if kind == "too slow" else rng.uniform(1.8, 3.5)
        results = {
            "seed": rng.randrange(10**9),
            "count": count,
            "every_ms": every,
            "steady": rng.random() < 0.3,
            "bursts": rng.randint(2, 4),
            "burst": rng.randint(8, 15),
            "server": {
                "base_ms": float(base),
                "per_request_ms": float(item),
                "max_batch": batch,
                "target_ms": round((base + item) * share, 1),
                # No request arrives at this very moment.
                "lost_at_ms": round(count * every * rng.uniform(0.2, 0.7)) + 0.0005,
            },
        }
        if _suits(results, kind):
            return results


def _suits(fleet: Facts, kind: str) -> bool:
    """Whether a load is of this kind. What fails most loads comes first: many are drawn."""
    server, lost_at = fleet["server"], fleet["server"]["lost_at_ms"]
    if kind == "too slow":
        return not possible(server)
    arrivals = draws.arrivals(fleet)
    servers = smallest(arrivals, server)
    if not max(by_mean(fleet), 2) < servers <= 9:
        return False
    if kind == "redone":
        fewer = smallest(arrivals, server, lost_at, finished=True)
        if p99(latencies(arrivals, server, fewer, lost_at)) <= server["target_ms"]:
            return False
    after = truth(fleet)["servers_after_loss"]
    fits = {
        "any": after <= servers + 3,
        "redone": after <= servers + 3,
        "room": after == servers,
        "one more": after == servers + 1,
    }[kind]
    return fits and _clear(arrivals, server, servers) and _clear(arrivals, server, after, lost_at)


def _clear(arrivals: list[float], server: Facts, right: int, lost_at: float = math.inf) -> bool:
    """Whether the number is the same by any search, and what the task leaves open changes none."""
    target = server["target_ms"]
    for servers in range(right - 1, right + MORE):
        result = latencies(arrivals, server, servers, lost_at)
        if result != latencies(arrivals, server, servers, lost_at, just_missed=True):
            return False
        if servers < right and p99(result) < target * (1 + CLEAR):
            return False
        if servers >= right and p99(result) > target * (1 - CLEAR):
            return False
    return True


def fleet_words(case: Facts) -> str:
    """What a card says of a case."""
    return f"{len(case['fleets'])} services, the first {label(case['fleets'][0])}"


def label(fleet: Facts) -> str:
    """A service by its load, for messages."""
    server = fleet["server"]
    return (
        f"with {fleet['count']} requests, batches of up to {server['max_batch']}, target"
        f" {server['target_ms']:g} ms"
    )


def judge_fleets(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: the servers, their p99, and the servers with one lost."""
    response = facts["response"]
    form = "{{'servers': ..., 'p99_ms': ..., 'servers_after_loss': ...}}"
    if odd := not_of_the_form(response, WEIGHTS, "`fleet` returned {strange}: return " + form):
        return odd
    right = [truth(fleet) for fleet in case["fleets"]]
    return [_judge(name, case, facts, right) for name in WEIGHTS]


def _judge(name: str, case: Facts, facts: Facts, right: list[Facts]) -> Criterion:
    numbers = column(KEYS[name])
    advice = (
        "the server that can start first takes all that wait, up to max_batch, in order of arrival"
    )
    if name == "p99" and column("servers")(facts) != [item["servers"] for item in right]:
        advice = "p99 is that of the number of servers: fix the number first"
    return right_or_none(
        name,
        WEIGHTS[name],
        numbers(facts),
        [item[KEYS[name]] for item in right],
        [label(fleet) for fleet in case["fleets"]],
        Known("lab12.ex4", case, numbers, facts),
        advice,
        TOLERANCE,
        (SAYS["always-none"], SAYS["a-number-for-none"]),
    )
