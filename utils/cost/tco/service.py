"""Money per month, per million items and per million tokens of an online service.

Servers are bought for the demand at the throughput that keeps the latency target: with headroom,
for the peak of the day as far as the fleet cannot follow, in whole servers, with spares.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from utils.cost.tco.cost import Cost, Number, energy, whole, with_bills
from utils.cost.tco.fields import HOURS_PER_MONTH, InputError, check


@dataclass(frozen=True)
class Point:
    """One measurement of a server: at this batch, this latency (seconds, of the percentile that
    the target names) and this throughput (items per second).
    """

    batch: int
    latency_s: float
    units_per_second: float


def fastest_within(points: Iterable[Point], latency_s: float) -> Point:
    """The measured point with the most throughput that keeps the latency target.

    >>> fastest_within([Point(1, 0.1, 10), Point(8, 0.4, 20), Point(64, 2.1, 30)], 0.5).batch
    8

    Raises: InputError if no point keeps it.
    """
    measured = list(points)
    good = [item for item in measured if item.latency_s <= latency_s]
    if not good:
        least = min((item.latency_s for item in measured), default=float("nan"))
        raise InputError("latency_s", f"{latency_s:g}", f"{least:g} or more (s)",
                         "No measured batch is faster: measure a smaller one, or use more chips"
                         " for one item")  # fmt: skip
    return max(good, key=lambda item: item.units_per_second)


def service(values: Mapping[str, Number]) -> Cost:
    """The cost of one month.

    Args:
        values: field name to number, in the units of `utils.cost.tco.fields.FIELDS`; all that
            `NEEDS["service"]` names.

    Raises: InputError, which names the field, the value and what is allowed.
    """
    v = check("service", values)
    monthly = v["price"] * HOURS_PER_MONTH

    busy = v["demand"] / v["units_per_second"]
    need = busy / v["load"]
    at_peak = need * v["peak_to_mean"]
    waiting = (1 - v["autoscaled"]) * (at_peak - need)
    # A fleet that follows the demand keeps at least one server; one that does not is whole.
    following = np.maximum(need, 1)
    fleet = v["autoscaled"] * following + (1 - v["autoscaled"]) * whole(at_peak)
    starting = v["scale_ups"] * HOURS_PER_MONTH / 24 * v["startup"]
    compiling = v["releases"] * v["compile_cold"]

    lines = {
        "work": busy * monthly,
        "headroom": (need - busy) * monthly,
        "peaks": waiting * monthly,
        "rounding": (fleet - need - waiting) * monthly,
        "spare": v["spare"] * monthly,
        "cold starts": starting * v["price"],
        "compilation": compiling * v["price"],
    }
    items = v["demand"] * HOURS_PER_MONTH * 3600
    lines["storage"] = v["storage"] * v["storage_price"]
    lines["egress"] = items * v["egress_per_item"] / 1e6 * v["egress_price"]

    instance_hours = (fleet + v["spare"]) * HOURS_PER_MONTH + starting + compiling
    energy_kwh, carbon_kg = energy(v, instance_hours)
    return Cost(
        lines=with_bills(lines, v, v["months"]),
        units=items,
        hours=HOURS_PER_MONTH,
        instance_hours=instance_hours,
        horizon=v["months"],
        energy_kwh=energy_kwh,
        carbon_kg=carbon_kg,
    )


def per_million_tokens(cost: Cost, tokens_per_item: Number) -> Number:
    """Money per million tokens, of a service whose items have so many."""
    return cost.per_million / tokens_per_item
