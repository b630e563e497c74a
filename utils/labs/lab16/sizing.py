"""The cases and the judgement of replicas for a service level, exercise 5 of lab 16."""

import math
import random
from typing import Any

import numpy as np

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import not_of_the_form
from utils.labs.lab16.replica import serve
from utils.labs.values import right_or_none
from utils.labs.wrong_answers import Known, column

SAYS = says("lab16")

TOLERANCE = 1e-9
WEIGHTS = {"replicas": 3, "goodput_per_s": 2, "usd_per_million": 2}
MORE = 2
"""So many replicas from the smallest number on keep the level: what searches by halves finds the
same number."""


def capacity_cases(rng: random.Random) -> list[Facts]:
    """Services with bursts, on which each wrong way needs too few; the last is too slow."""
    kinds = (("both", "first"), ("ttft", "tpot", "load", "none"))
    return [{"services": [_service(rng, kind) for kind in some]} for some in kinds]


def _service(rng: random.Random, kind: str) -> Facts:
    """kind: which wrong way finds fewer replicas, or "none" if no number is enough."""
    while True:
        base, now, requests = float(rng.randint(8, 20)), 0.0, []
        gap = rng.uniform(15, 60)
        for number in range(70):
            # Two bursts, in which requests come four times as often.
            now += rng.expovariate(1 / gap) / (4 if number % 35 > 20 else 1)
            requests.append([round(now, 2), rng.randint(20, 200), rng.choice((1, 8, 20, 40))])
        replica = {
            "base_ms": base,
            "per_token_ms": rng.choice((0.1, 0.2, 0.3)),
            "slots": rng.choice((4, 8, 16)),
            "usd_per_hour": rng.choice((1.5, 2.25, 4.0)),
        }
        # Times are multiples of 0.01 ms, so no request meets a limit exactly.
        ttft = (base + 10 if kind == "none" else rng.randint(60, 160)) + 0.005
        level = {"ttft_ms": ttft, "tpot_ms": base + rng.randint(4, 18) + 0.005,
                 "share": rng.choice((0.9, 0.95))}  # fmt: skip
        service = {"requests": requests, "replica": replica, "level": level}
        if _suits(service, kind):
            return service


def _suits(service: Facts, kind: str) -> bool:
    right = smallest(service)
    if kind == "none" or right is None:
        return kind == "none" and right is None
    if not 3 <= right <= 12 or not all(_enough(service, right + n) for n in range(MORE + 1)):
        return False
    if kind == "load":
        return _by_load(service) < right
    ways = ("ttft", "tpot") if kind == "both" else (kind,)
    return all(_enough(service, right - 1, way) for way in ways)


def capacity_words(case: Facts) -> str:
    """What a card says of a case."""
    return f"{len(case['services'])} services, the first {label(case['services'][0])}"


def label(service: Facts) -> str:
    """A service, for messages."""
    slots, level = service["replica"]["slots"], service["level"]
    limits = f"{level['ttft_ms']:.0f} and {level['tpot_ms']:.0f} ms"
    return f"with {slots} slots, {limits} for {level['share']:.0%}"


def _of(service: Facts, replicas: int) -> tuple[np.ndarray, ...]:
    """For each request: ms to its first token, ms of its further ones, its end, its tokens."""
    requests = service["requests"]
    times = np.zeros((len(requests), 2))
    for number in range(replicas):
        times[number::replicas] = serve(requests[number::replicas], service["replica"])
    (first, last), (arrival, _, output) = times.T, np.array(requests).T
    return first - arrival, last - first, last, output


def _good(service: Facts, replicas: int, way: str = "") -> np.ndarray:
    """Which requests keep their limits: both, or in a wrong way one, or one that is mistaken."""
    (ttft, further, _, output), level = _of(service, replicas), service["level"]
    in_time = ttft <= level["ttft_ms"]
    steady = further <= level["tpot_ms"] * np.maximum(output - (way != "first"), 1)
    return {"ttft": in_time, "tpot": steady}.get(way, in_time & steady)


def _enough(service: Facts, replicas: int, way: str = "") -> bool:
    return _good(service, replicas, way).mean() >= service["level"]["share"]


def smallest(service: Facts) -> int | None:
    """The fewest replicas that are enough; None if no number is."""
    numbers = range(1, len(service["requests"]) + 1)
    return next((number for number in numbers if _enough(service, number)), None)


def _by_load(service: Facts) -> int:
    """Replicas for the work of all requests, with all slots full all the time."""
    replica, (arrival, prompt, output) = service["replica"], np.array(service["requests"]).T
    item = replica["base_ms"] / replica["slots"] * output
    work = item + replica["per_token_ms"] * (prompt + output)
    return math.ceil(work.sum() / (arrival[-1] - arrival[0]))


def answer_with(service: Facts, replicas: int | None) -> dict[str, Any]:
    """What an answer says that takes so many replicas, or None."""
    if replicas is None:
        return dict.fromkeys(WEIGHTS)
    (*_, last, output), good = _of(service, replicas), _good(service, replicas)
    seconds = (last.max() - service["requests"][0][0]) / 1e3
    usd = replicas * service["replica"]["usd_per_hour"] * seconds / 3600
    return {
        "replicas": replicas,
        "goodput_per_s": float(good.sum() / seconds),
        "usd_per_million": float(usd / max(output[good].sum(), 1) * 1e6),
    }


_ADVICE = (
    "take the good requests of the smallest fleet that is enough, from the first arrival to the"
    " last token of all: is the number of replicas right?"
)


def judge_capacity(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: the replicas, their goodput, and the price of its tokens."""
    services, response = case["services"], facts["response"]
    form = f"return a dict with {', '.join(WEIGHTS)}"
    if odd := not_of_the_form(response, WEIGHTS, f"`capacity` returned {{strange}}: {form}"):
        return odd
    rights = [answer_with(service, smallest(service)) for service in services]
    labels = [label(service) for service in services]
    texts = SAYS["none-too-early"], SAYS["a-number-for-no-fleet"]

    def judge_item(name: str, weight: int) -> Criterion:
        numbers = column(name)
        known = Known("lab16.ex5", case, numbers)
        advice = SAYS["play-the-fleet"] if name == "replicas" else _ADVICE
        right = [item[name] for item in rights]
        return right_or_none(
            name, weight, numbers(facts), right, labels, known, advice, TOLERANCE, texts
        )

    return [judge_item(name, weight) for name, weight in WEIGHTS.items()]
