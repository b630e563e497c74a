"""The cases and the judgement of the fleet of a service, exercise 6 of lab 13."""

import math
import random

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import not_judged, not_of_the_form
from utils.labs.values import near, right_or_none
from utils.labs.wrong_answers import Known, column, replies

SAYS = says("lab13")

TOLERANCE = 1e-9
HOUR = 3600.0


def fleet_cases(rng: random.Random) -> list[Facts]:
    """Services without spare servers and peaks, with them, and some whose target no batch keeps. In
    each case there is one whose largest batch within the target is not its fastest.
    """
    return [
        {"services": [_service(rng, peak, spare, kind) for kind in kinds]}
        for peak, spare, kinds in (
            (False, False, ("plain", "plain", "falls")),
            (True, False, ("plain", "falls", "plain")),
            (True, True, ("plain", "falls", "none", "plain")),
            (True, True, ("falls", "none", "plain", "plain", "falls")),
        )
    ]


def _service(rng: random.Random, peak: bool, spare: bool, kind: str) -> Facts:
    while True:
        throughput, latency = rng.uniform(2, 12), rng.uniform(10, 60)
        points = []
        for batch in (1, 2, 4, 8, 16, 32):
            points.append({"batch": batch, "latency_ms": round(latency, 1),
                           "items_per_second": round(throughput, 2)})  # fmt: skip
            # Throughput grows less than the batch, latency more; now and then it falls again.
            throughput *= rng.uniform(1.1, 1.8) if batch < 8 else rng.uniform(0.7, 1.3)
            latency *= rng.uniform(1.3, 2.2)
        latencies = [point["latency_ms"] for point in points]
        # Not the smallest latency, so that some measurement is always faster than the target.
        target = rng.choice(latencies[1:]) * rng.choice((1, 1.1))
        if kind == "none":
            target = latencies[0] * 0.9
        rng.shuffle(points)
        service = {
            "items_per_second": round(10 ** rng.uniform(0.5, 2.7), 1),
            "peak_to_mean": rng.randint(12, 40) / 10 if peak else 1,
            "target_ms": round(target, 1),
            "measured": points,
            "highest_load": rng.randint(55, 90) / 100,
            "spare_servers": rng.randint(1, 3) if spare else 0,
            "price_per_server_hour": round(rng.uniform(1, 60), 2),
        }
        if _suits(service, kind):
            return service


def _suits(service: Facts, kind: str) -> bool:
    if kind == "none" or fastest(service) is None:
        return kind == "none" and fastest(service) is None
    needed = needs(service, fastest(service))
    largest = needs(service, max(_within_target(service), key=_batch))
    clear = 1.2 < needed < 80 and 0.02 < needed % 1 < 0.98
    if not clear or (kind == "falls" and math.ceil(largest) == math.ceil(needed)):
        return False
    # Whole numbers are few: no two wrong answers may give the same, so that the right one is named.
    messages = {truth(service)["servers"]: ""}
    return all(
        messages.setdefault(item["servers"], text) in (text, "")
        for text, facts in replies("lab13.ex6", {"services": [service]})
        for item in facts["response"]
        if isinstance(item, dict)
    )


def needs(service: Facts, point: Facts | None) -> float:
    """Servers before they are made whole and spare ones are added, if each is used as a measurement
    says; 0 if no batch keeps the target.
    """
    if point is None:
        return 0.0
    at_peak = service["items_per_second"] * service["peak_to_mean"]
    return at_peak / (point["items_per_second"] * service["highest_load"])


def fastest(service: Facts) -> Facts | None:
    """The measurement with the most throughput that keeps the target."""
    return max(_within_target(service), key=_throughput, default=None)


def _within_target(service: Facts) -> list[Facts]:
    """The measurements that keep the target."""
    return [item for item in service["measured"] if item["latency_ms"] <= service["target_ms"]]


def _throughput(point: Facts) -> float:
    return point["items_per_second"]


def _batch(point: Facts) -> int:
    return point["batch"]


def truth(service: Facts) -> Facts:
    """The servers, and the cost of a million items; None where no batch keeps the target."""
    if fastest(service) is None:
        return {"servers": None, "cost_per_million": None}
    servers = math.ceil(needs(service, fastest(service))) + service["spare_servers"]
    return {"servers": servers, "cost_per_million": cost(service, servers)}


def cost(service: Facts, servers: float) -> float:
    """What a million items cost with so many servers."""
    items_per_hour = service["items_per_second"] * HOUR
    return servers * service["price_per_server_hour"] / items_per_hour * 1e6


def fleet_words(case: Facts) -> str:
    """What a card says of a case."""
    return f"{len(case['services'])} services, the first with {label(case['services'][0])}"


def label(service: Facts) -> str:
    """A service by its load, for messages."""
    return (
        f"{service['items_per_second']:g} items per second, peak {service['peak_to_mean']:g},"
        f" target {service['target_ms']:g} ms, load {service['highest_load']:g},"
        f" {service['spare_servers']} spare"
    )


_ADVICE = {
    "servers": "demand at its peak over what a server may carry, rounded up, and the spare ones",
    "cost_per_million": "servers × price of an hour, over the items of an hour, times a million",
}


def judge_fleets(case: Facts, facts: Facts) -> list[Criterion]:
    """Two criteria: the number of servers, and the cost of a million items."""
    response, services = facts["response"], case["services"]
    weights = {"servers": 3, "cost": 2}
    if odd := not_of_the_form(response, weights, SAYS["a-pair"], "a dict of 2"):
        return odd
    right, labels = [truth(item) for item in services], [label(item) for item in services]
    texts = SAYS["none-everywhere"], SAYS["infinity-for-none"]
    results = []
    for (name, weight), key in zip(weights.items(), _ADVICE, strict=True):
        values, rights = column(key)(facts), [item[key] for item in right]
        known = Known("lab13.ex6", case, column(key), facts)
        results.append(
            right_or_none(
                name, weight, values, rights, labels, known, _ADVICE[key], TOLERANCE, texts
            )
        )
    servers, money = results
    follows = (
        not servers.passed
        and not money.passed
        and all(
            near(item["cost_per_million"], cost(service, item["servers"]), TOLERANCE)
            for item, service in zip(response, services, strict=True)
            if isinstance(item["servers"], int | float)
        )
    )
    return [servers, not_judged(money) if follows else money]
