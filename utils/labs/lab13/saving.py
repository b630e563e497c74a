"""The cases and the judgement of checkpoint intervals, exercise 4 of lab 13."""

import math
import random
from collections.abc import Callable

import numpy as np

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_asked_for
from utils.labs.values import Number, near, right_values
from utils.labs.wrong_answers import Known, message_of

SAYS = says("lab13")

TOLERANCE = 1e-9
BEST = 0.01
"""How far the best interval may lie from the right one: the cost is flat there, so that a search in
small steps will do. Young's formula is off by more in all cases but the first."""
ERRORS = 6.0
"""Standard errors that a cost may lie from the simulated one: of a million million right answers
two would be refused."""
SEGMENTS = 20_000
"""Segments that are simulated for each interval."""

FAILING = (
    (0.0001, 0.0002, 4),
    (0.02, 0.04, 64),
    (0.05, 0.08, 128),
    (0.1, 0.2, 256),
    (0.25, 0.35, 512),
)
"""For each case: failures, on average, while one checkpoint is written, and servers at least."""


def saving_cases(rng: random.Random) -> list[Facts]:
    """Five runs, whose failures come ever more often."""
    return [_case(rng, *item) for item in FAILING]


def _case(rng: random.Random, low: float, high: float, least: int) -> Facts:
    write, servers = rng.randint(4, 25), rng.randint(least, 2 * least)
    between = write / 60 / rng.uniform(low, high)  # failures of any server
    restart = min(rng.uniform(0.2, 1), between * rng.uniform(0.1, 0.3))
    parts = [rng.randint(8, 12), rng.randint(16, 24), rng.randint(30, 60)]
    # None of the intervals is the best one.
    work = round(_best(write / 60, 1 / between) * math.sqrt(parts[0] * parts[1]), 2)
    return {
        "run": {
            "work_hours": work,
            "write_minutes": write,
            "restart_minutes": max(1, round(60 * restart)),
            "servers": servers,
            "hours_between_failures_per_server": round(between * servers, 1),
            "price_per_server_hour": round(rng.uniform(2, 100), 2),
        },
        "intervals": [work / part for part in parts],
        "seed": rng.randrange(2**32),
    }


def saving_words(case: Facts) -> str:
    """What a card says of a case."""
    run = case["run"]
    return (
        f"{run['work_hours']:g} h of work on {run['servers']} servers, each failing every"
        f" {run['hours_between_failures_per_server']:g} h, {run['write_minutes']} min to write,"
        f" {run['restart_minutes']} min to restart"
    )


def cost(run: Facts, every: float) -> float:
    """Money for the run if it is saved after each so many hours of work."""
    rate = run["servers"] / run["hours_between_failures_per_server"]
    write, restart = run["write_minutes"] / 60, run["restart_minutes"] / 60
    segments = run["work_hours"] / every
    failures = math.expm1(rate * (every + write))
    hours = segments * (failures / rate + failures * math.expm1(rate * restart) / rate)
    return hours * run["servers"] * run["price_per_server_hour"]


def best(run: Facts) -> float:
    """The best interval between checkpoints in hours."""
    rate = run["servers"] / run["hours_between_failures_per_server"]
    return _best(run["write_minutes"] / 60, rate)


def _best(write: float, rate: float) -> float:
    """Where (exp(rate (every + write)) - 1) / every is least: its derivative is 0 where
    1 - x = exp(-x - rate write) for x = rate every, and the left side less the right one falls.
    """
    low, high = 0.0, 1.0
    for _ in range(60):
        x = (low + high) / 2
        low, high = (x, high) if 1 - x > math.exp(-x - rate * write) else (low, x)
    return low / rate


def simulate(case: Facts, every: float) -> tuple[float, float]:
    """The cost by playing failures at random: its mean, and the standard error of that."""
    run, generator = case["run"], np.random.default_rng([case["seed"], round(every * 1e6)])
    between = run["hours_between_failures_per_server"] / run["servers"]
    segment, restart = every + run["write_minutes"] / 60, run["restart_minutes"] / 60
    hours = np.zeros(SEGMENTS)

    def pass_all(waiting: np.ndarray, length: float, on_failure: Callable[..., None]) -> None:
        """Add to `hours` until each of `waiting` had `length` hours without a failure."""
        while len(waiting):
            until = generator.exponential(between, len(waiting))
            hours[waiting] += np.minimum(until, length)
            waiting = waiting[until < length]
            on_failure(waiting)

    def begin_again(waiting: np.ndarray) -> None:
        pass_all(waiting, restart, lambda _: None)

    pass_all(np.arange(SEGMENTS), segment, begin_again)
    scale = run["work_hours"] / every * run["servers"] * run["price_per_server_hour"]
    return hours.mean() * scale, hours.std() / math.sqrt(SEGMENTS) * scale


_ADVICE = (
    "segments × what one takes on average: its tries, and a restart for each failure; then servers"
    " × price"
)


def judge_saving(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: the costs, their agreement with a simulation, and the best interval."""
    run, intervals, response = case["run"], case["intervals"], facts["costs"]
    if response is None or len(response) != len(intervals):
        what = facts["kind"] if facts["best"] is None else f"{facts['kind']} as 'costs'"
        message = SAYS["a-cost-too-few"].format(what=what, intervals=len(intervals))
        shown = facts["kind"].partition(" without")[0]
        target = "a dict of 2" if facts["best"] is None else f"{len(intervals)} numbers"
        weights = {"cost": 3, "simulation": 1, "best interval": 3}
        return not_asked_for(weights, message, shown, target, others="not judged")
    labels = [f"saved every {interval:.3g} h" for interval in intervals]
    right = [cost(run, interval) for interval in intervals]
    known = Known("lab13.ex4", case, lambda facts: facts["costs"], facts)
    costs = right_values("cost", 3, response, right, labels, known, _ADVICE, TOLERANCE)
    return [costs, _judge_simulation(case, response), _judge_best(case, facts)]


def _judge_simulation(case: Facts, response: list[Number]) -> Criterion:
    """Whether the costs lie within the error of a simulation, which knows no formula."""
    results = [simulate(case, interval) for interval in case["intervals"]]
    target = f"within {ERRORS:g} standard errors"
    costs = [item for item in response if isinstance(item, int | float)]
    if len(costs) < len(response):
        return criterion("simulation", 1, False, "not judged", "", "")
    off = [(item - mean) / error for item, (mean, error) in zip(costs, results, strict=True)]
    worst = max(range(len(off)), key=lambda place: abs(off[place]))
    mean, error = results[worst]
    message = SAYS["the-simulation-sees-it"].format(
        interval=case["intervals"][worst],
        SEGMENTS=SEGMENTS,
        mean=mean,
        error=error,
        answer=response[worst],
        more_or_less="more" if off[worst] > 0 else "less",
    )
    passed = abs(off[worst]) <= ERRORS
    shown = f"{abs(off[worst]):.1f}" if abs(off[worst]) < 100 else "more than 100"
    return criterion("simulation", 1, passed, shown, target, message)


def _judge_best(case: Facts, facts: Facts) -> Criterion:
    run, right, response = case["run"], best(case["run"]), facts["best"]
    target = f"within {BEST:.0%}"
    if response is None or isinstance(response, str):
        message = f"found {response or 'nothing'} as 'best': return hours, a number"
        return criterion("best interval", 3, False, "not judged", target, message)
    shown = f"{response / right:.3g} times the best"
    if near(response, right, BEST):
        return criterion("best interval", 3, True, shown, target, "")

    def alike(facts: Facts) -> bool:
        return near(response, facts["best"], BEST / 2)

    text = message_of("lab13.ex4", case, alike, SAYS["far-too-long"], facts)
    more = ""
    rate = run["servers"] / run["hours_between_failures_per_server"]
    if 0 < response and rate * response < 300:
        above = cost(run, response) / cost(run, right) - 1
        more = f" At {response:.3g} h the run costs {above:.2%} more than at the best."
    return criterion("best interval", 3, False, shown, target, text + "." + more)
