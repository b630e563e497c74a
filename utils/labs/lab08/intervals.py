"""Exercise 3, how often to save: fleets, the best interval of each, and wrong ways to find it."""

import random
from typing import Any

from utils.course.misconceptions import says
from utils.labs import Criterion, Facts
from utils.labs.criteria import criterion, not_asked_for
from utils.labs.values import Number, near, right_values
from utils.labs.wrong_answers import Known, message_of

SAYS = says("lab08")

INTERVAL = 0.02
"""How far the interval may lie from the best one. Young's formula is off by more in all cases but
the first, Daly's formula of higher order by less in all."""
MONEY = 1e-3

FAILING = ((0.0002, 0.0004), (0.015, 0.03), (0.06, 0.1), (0.2, 0.3), (0.4, 0.6))
"""For each case: failures, on average, while one checkpoint is written."""


def fleet_cases(rng: random.Random) -> list[Facts]:
    """Five fleets, which fail ever more often."""
    return [{"fleet": _fleet(rng, *item)} for item in FAILING]


def _fleet(rng: random.Random, low: float, high: float) -> Facts:
    parameters, writers = rng.choice([2e9, 8e9, 30e9, 70e9]), rng.choice([4, 8, 16, 64])
    per_parameter, minutes = rng.choice([12, 14, 16]), rng.uniform(2, 15)
    rate = rng.uniform(low, high) / (minutes / 60)  # failures per hour, of everything
    shares = [rng.uniform(1, 2) for _ in range(3)]
    servers = [rng.randint(20, 400), rng.randint(5, 40)]
    hours = [n / (rate * share / sum(shares)) for n, share in zip(servers, shares, strict=False)]
    return {
        "groups": [
            {"name": name, "number": number, "hours_between_failures_of_one": float(f"{item:.4g}")}
            for name, number, item in zip(("servers", "switches"), servers, hours, strict=True)
        ],
        "interruptions_per_day": float(f"{24 * rate * shares[2] / sum(shares):.4g}"),
        "parameters": parameters,
        "bytes_per_parameter": per_parameter,
        "writers": writers,
        "bytes_per_second_per_writer": float(
            f"{parameters * per_parameter / writers / (60 * minutes):.4g}"
        ),
        "restart_minutes": round(min(rng.uniform(15, 60), 60 * rng.uniform(0.05, 0.3) / rate), 1),
        "price_per_hour": round(rng.uniform(50, 5000), 2),
    }


def fleet_words(case: Facts) -> str:
    """What a card says of a case."""
    fleet = case["fleet"]
    return (
        f"{write_hours(fleet) * 60:.3g} min to write, {failures_per_hour(fleet):.3g} failures an"
        f" hour of everything together, {fleet['restart_minutes']:g} min to restart"
    )


def failures_per_hour(fleet: Facts) -> float:
    """Failures and interruptions of the whole fleet per hour."""
    groups = fleet["groups"]
    alone = sum(group["number"] / group["hours_between_failures_of_one"] for group in groups)
    return alone + fleet["interruptions_per_day"] / 24


def write_hours(fleet: Facts) -> float:
    """Hours to write one checkpoint, with all writers at once."""
    size_bytes = fleet["parameters"] * fleet["bytes_per_parameter"]
    return size_bytes / (fleet["writers"] * fleet["bytes_per_second_per_writer"]) / 3600


def lost_share(every: float, write: float, restart: float, rate: float) -> float:
    """The share of the hours that does not bring the training on."""
    from utils.cost.tco import failures

    hours: Any = failures.expected_hours(every, every, write, restart, rate)
    return 1 - every / hours


def lost_per_day(fleet: Facts, every: float) -> float:
    """Money lost per day if a checkpoint is written after every `every` hours of work."""
    restart = fleet["restart_minutes"] / 60
    share = lost_share(every, write_hours(fleet), restart, failures_per_hour(fleet))
    return share * 24 * fleet["price_per_hour"]


def best_hours(fleet: Facts) -> float:
    """Hours of computing between checkpoints that lose the least."""
    from utils.cost.tco import failures

    return failures.best_interval(write_hours(fleet), failures_per_hour(fleet))


def judge_fleets(case: Facts, facts: Facts) -> list[Criterion]:
    """Three criteria: the interval, the expected time with it, and the money lost per day."""
    fleet, hours, money = case["fleet"], facts["hours"], facts["lost_per_day"]
    if facts["kind"]:
        message, kind = SAYS["one-number"].format(kind=facts["kind"]), facts["kind"]
        weights = {"interval": 4, "expected time": 1, "lost per day": 2}
        shown = kind.partition(" without")[0]
        return not_asked_for(weights, message, shown, "a dict", others="not judged")
    # With another interval than the best, what that one loses is right.
    usable = isinstance(hours, int | float) and _ends(fleet, hours)
    own = lost_per_day(fleet, hours) if usable else None
    right = lost_per_day(fleet, best_hours(fleet))
    right = own if own is not None and near(money, own, MONEY) else right
    advice = "the share of the expected hours that is not work, times 24 hours and the price"
    known = Known("lab08.ex3", case, lambda facts: [facts["lost_per_day"]])
    label = ["money lost per day"]
    lost = right_values("lost per day", 2, [money], [right], label, known, advice, MONEY)
    return [_judge_hours(case, hours), _judge_time(fleet, hours), lost]


def _ends(fleet: Facts, every: float) -> bool:
    """Whether a run that is saved so often ever ends."""
    rate = failures_per_hour(fleet)
    return 1e-9 < rate * every < 40 - rate * write_hours(fleet)


def _judge_hours(case: Facts, response: Number) -> Criterion:
    right, target = best_hours(case["fleet"]), f"within {INTERVAL:.0%}"
    if response is None or isinstance(response, str):
        message = f"found {response or 'nothing'} as 'hours': return a number"
        return criterion("interval", 4, False, "not judged", target, message)
    passed = near(response, right, INTERVAL)
    text = SAYS["a-rule-of-thumb"]
    if not passed:
        # A search in steps is off by less than this.
        text = message_of(
            "lab08.ex3", case, lambda facts: near(response, facts["hours"], 5e-3), text
        )
    return criterion("interval", 4, passed, f"{response / right:.3g} times the best", target, text)


def _judge_time(fleet: Facts, response: Number) -> Criterion:
    """Whether the run takes little more than with the best interval."""
    name, target = "expected time", "at most 2% more"
    rate, write = failures_per_hour(fleet), write_hours(fleet)
    if response is None or isinstance(response, str) or not _ends(fleet, response):
        message = "with this interval the run practically never ends"
        return criterion(name, 1, False, "not judged", target, message)

    def time(every: float) -> float:
        return 1 / (1 - lost_share(every, write, fleet["restart_minutes"] / 60, rate))

    more = max(0.0, time(response) / time(best_hours(fleet)) - 1)
    message = f"with an interval of {response:.3g} h the run takes {more:.1%} longer than it has to"
    return criterion(name, 1, more <= INTERVAL, f"{more:.2%} more", target, message)
