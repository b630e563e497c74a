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
        results = {"p": p, "workers": kept}
        right = merged(results)
        if _clear(results) and not any(near(item, right, 1e-3) for _, item in merged_ways(results)):
            return results


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
    """What wrong ways give for the percentile of a fleet, in ms."""
    workers = [worker for worker in draws.workers(fleet) if worker["samples"]]
    own = [float(np.percentile(worker["samples"], fleet["p"])) for worker in workers]
    nearest = [
        sorted(worker["samples"])[math.ceil(fleet["p"] / 100 * len(worker["samples"])) - 1]
        for worker in workers
    ]
    served = [worker["requests"] for worker in workers]
    pooled = sorted(sample for worker in workers for sample in worker["samples"])
    mean = SAYS["mean-of-percentiles"]
    weighed = mean + SAYS["weighed-mean"]
    return [
        *((mean, statistics.fmean(item)) for item in (own, nearest)),
        *((weighed, float(np.average(item, weights=served))) for item in (own, nearest)),
        ("this is the median of the workers' percentiles: merge the samples, then take one",
         statistics.median(own)),
        (SAYS["the-slowest-worker"], max(own)),
        (SAYS["the-slowest-worker"], max(nearest)),
        (_POOLED, float(np.percentile(pooled, fleet["p"]))),
        (_POOLED, pooled[math.ceil(fleet["p"] / 100 * len(pooled)) - 1]),
        ("this is the percentile of the busiest worker alone",
         nearest[served.index(max(served))]),
        (SAYS["requests-as-weights"],
         _by([(s, w["requests"]) for w in workers for s in w["samples"]], fleet["p"])),
        ("the weight of a sample is requests / samples kept, not the other way round",
         _by([(s, len(worker["samples"]) / worker["requests"])
              for worker in workers for s in worker["samples"]], fleet["p"])),
    ]  # fmt: skip


_POOLED = SAYS["pooled"]


def judge_merged(case: Facts, said: list[Any]) -> Criterion:
    """One criterion: the percentile of all requests of a fleet, from samples of its workers."""
    return right_values(
        "merged",
        WEIGHT,
        ["None" if item is None else item for item in said],
        [merged(fleet) for fleet in case["fleets"]],
        [f"p{fleet['p']:g} of {len(fleet['workers'])} workers" for fleet in case["fleets"]],
        [merged_ways(fleet) for fleet in case["fleets"]],
        "sort all samples, and add up how many requests each stands for, until p % are reached",
        TOLERANCE,
    )
