"""Percentiles of several workers, of exercise 2 of lab 12: cases, what is right, and judgement."""

import math
import random
import statistics
from typing import Any

import numpy as np

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.lab12 import draws
from utils.labs.values import Ways, near, right_values

SAYS = says("lab12")

TOLERANCE = 1e-9
WEIGHT = 3


def worker_cases(rng: random.Random, workers: int, p: float) -> Facts:
    """One fleet: what each worker served and how many of its latencies it kept, and p."""
    while True:
        kept = [
            {
                "kind": rng.choice(draws.KINDS),
                "requests": rng.randint(100, 60_000),
                "count": rng.randint(20, 90),
                "seed": rng.randrange(10**9),
            }
            for _ in range(workers)
        ]
        if workers > 3:
            kept.insert(rng.randrange(workers), {**kept[0], "requests": 0, "count": 0})
        found = {"p": p, "workers": kept}
        right = merged(found)
        if _clear(found) and not any(near(each, right, 1e-3) for _, each in merged_ways(found)):
            return found


def merged(fleet: Facts) -> float:
    """The smallest sample such that it and the smaller ones stand for p % of all requests."""
    return _by(_weighed(fleet), fleet["p"])


def _weighed(fleet: Facts) -> list[tuple[float, float]]:
    """Every sample that was kept, and how many requests it stands for."""
    return [
        (sample, worker["requests"] / len(worker["samples"]))
        for worker in draws.workers(fleet)
        for sample in worker["samples"]
    ]


def _by(weighed: list[tuple[float, float]], p: float) -> float:
    """The smallest value such that it and the smaller ones have p % of all weight."""
    ordered = sorted(weighed)
    reached = np.cumsum([weight for _, weight in ordered])
    return ordered[int(np.searchsorted(reached, reached[-1] * p / 100))][0]


def _clear(fleet: Facts) -> bool:
    """Whether no rounding of sums decides which sample it is."""
    reached = np.cumsum([weight for _, weight in sorted(_weighed(fleet))])
    return bool(abs(reached / reached[-1] - fleet["p"] / 100).min() > 1e-6)


def merged_ways(fleet: Facts) -> Ways:
    workers = [each for each in draws.workers(fleet) if each["samples"]]
    own = [float(np.percentile(each["samples"], fleet["p"])) for each in workers]
    nearest = [
        sorted(each["samples"])[math.ceil(fleet["p"] / 100 * len(each["samples"])) - 1]
        for each in workers
    ]
    served = [each["requests"] for each in workers]
    pooled = sorted(sample for each in workers for sample in each["samples"])
    mean = SAYS["mean-of-percentiles"]
    weighed = mean + SAYS["weighed-mean"]
    return [
        *((mean, statistics.fmean(each)) for each in (own, nearest)),
        *((weighed, float(np.average(each, weights=served))) for each in (own, nearest)),
        ("this is the median of the workers' percentiles: merge the samples, then take one",
         statistics.median(own)),
        (SAYS["the-slowest-worker"], max(own)),
        (SAYS["the-slowest-worker"], max(nearest)),
        (_POOLED, float(np.percentile(pooled, fleet["p"]))),
        (_POOLED, pooled[math.ceil(fleet["p"] / 100 * len(pooled)) - 1]),
        ("this is the percentile of the busiest worker alone",
         nearest[served.index(max(served))]),
        (SAYS["requests-as-weights"],
         _by([(s, each["requests"]) for each in workers for s in each["samples"]], fleet["p"])),
        ("the weight of a sample is requests / samples kept, not the other way round",
         _by([(s, len(each["samples"]) / each["requests"])
              for each in workers for s in each["samples"]], fleet["p"])),
    ]  # fmt: skip


_POOLED = SAYS["pooled"]


def judge_merged(case: Facts, said: list[Any]) -> Criterion:
    return right_values(
        "merged",
        WEIGHT,
        ["None" if each is None else each for each in said],
        [merged(each) for each in case["fleets"]],
        [f"p{each['p']:g} of {len(each['workers'])} workers" for each in case["fleets"]],
        [merged_ways(each) for each in case["fleets"]],
        "sort all samples, and add up how many requests each stands for, until p % are reached",
        TOLERANCE,
    )
