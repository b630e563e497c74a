"""Cost functions whose inputs are ranked by influence, exercise 5 of lab 13: each takes all of its
inputs by name and returns money. An answer may call them, and knows nothing else of them.
"""

from collections.abc import Callable, Mapping

Values = Mapping[str, float]


def job(v: Values) -> float:
    """A training run and its share of the engineering."""
    port = v["engineers"] * v["weeks"] * v["pay_per_week"]
    running = v["hours"] * v["servers"] * v["price"] / v["utilisation"]
    return running * (1 + v["failed_runs"]) + port / v["runs"]


def saving(v: Values) -> float:
    """A long run that is saved now and then: too often costs, and so does too seldom."""
    again = (v["hours_between_saves"] / 2 + v["restart_hours"]) / v["hours_between_failures"]
    saved = v["write_hours"] / v["hours_between_saves"]
    return v["hours"] * v["price"] * (1 + saved + again)


def with_credits(v: Values) -> float:
    """A run whose bill is partly paid by credits, and people, whom no credit pays."""
    bill = v["hours"] * v["price"] / v["utilisation"] + v["storage"]
    return bill - min(v["credits"], bill) + v["operations"]


def service(v: Values) -> float:
    """A day of a service that never has fewer servers than a least number."""
    needed = v["items_per_second"] * v["peak_to_mean"] / (v["throughput"] * v["load"])
    return 24 * v["price"] * (max(needed, v["least_servers"]) + v["spare"]) + v["egress"]


MODELS: Mapping[str, Callable[[Values], float]] = {
    "job": job,
    "saving": saving,
    "credited": with_credits,
    "service": service,
}
