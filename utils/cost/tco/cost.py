"""What a cost model returns: additive lines of money, and where the hours went."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from utils.cost.tco.fields import ENERGY, PAID_HOURS_PER_WEEK

Number = float | np.ndarray

LINES: Mapping[str, str] = {
    "at peak": "the work at the peak rate of the chips, at list price",
    "below peak": "what the work takes longer at the throughput really reached",
    "work": "the work at the measured throughput, at list price",
    "scaling": "what servers lose by working together",
    "checkpoints": "waiting for checkpoints to be written",
    "lost work": "work done again after failures, and restarts",
    "start-up": "from billing to the first step, compiling aside",
    "compilation": "compiling with an empty cache, and loading from a filled one",
    "queue": "billed waiting before runs",
    "failed runs": "runs that gave no model",
    "idle": "billed time that is not used",
    "headroom": "capacity kept free so that answers do not wait",
    "peaks": "servers that wait for the busiest hour",
    "spare": "servers that wait for a failure",
    "cold starts": "servers that start, billed, before they answer",
    "rounding": "whole servers, or whole steps of time, are billed",
    "discount": "off the list price, for the way of buying",
    "support": "the support plan",
    "storage": "data, checkpoints and models kept",
    "egress": "data that leaves the cloud",
    "operations": "people who watch over it",
    "engineering": "the port, spread over the runs or the months",
    "credits": "paid by credits: usage only, never people",
}
"""Every line that a cost may have, in the order of a waterfall."""


@dataclass(frozen=True, repr=False)
class Cost:
    """Money per good run of a job, or per month of a service.

    lines: name of `LINES` to money, additive; numbers, or arrays with one entry per draw.
    units: what one run, or one month, yields: tokens, samples, items.
    hours: wall-clock hours of one run from its start to its end; of a service, of a month.
    instance_hours: billed hours times servers.
    horizon: runs, or months, over which everything was spread.
    energy_kwh, carbon_kg: None where power, PUE or the carbon of the electricity are not given.
    """

    lines: Mapping[str, Number]
    units: Number
    hours: Number
    instance_hours: Number
    horizon: Number
    energy_kwh: Number | None = None
    carbon_kg: Number | None = None

    @property
    def total(self) -> Number:
        """The sum of all lines."""
        return sum(self.lines.values())

    @property
    def per_million(self) -> Number:
        """Money per million units."""
        return self.total / self.units * 1e6

    @property
    def compute(self) -> Number:
        """What the servers cost, after the discount: no people, data, support, credits."""
        outside = {"support", "storage", "egress", "operations", "engineering", "credits"}
        return sum(value for name, value in self.lines.items() if name not in outside)

    @property
    def overall(self) -> Number:
        """The total over the whole horizon."""
        return self.total * self.horizon

    def __repr__(self) -> str:
        rows = [f"{name:12} {np.mean(value):>16,.2f}" for name, value in self.lines.items()]
        return "\n".join([*rows, f"{'total':12} {np.mean(self.total):>16,.2f}"])


def whole(number: Number) -> Number:
    """Rounded up; what is whole but for the rounding of its arithmetic stays as it is.

    >>> float(whole(2.1 / 3 / 0.7 * 3)), float(whole(3.01))
    (3.0, 4.0)
    """
    return np.ceil(number * (1 - 1e-12))


def in_order(lines: Mapping[str, Number]) -> dict[str, Number]:
    """The lines in the order of `LINES`."""
    return {name: lines[name] for name in LINES if name in lines}


def with_bills(
    lines: dict[str, Number], values: Mapping[str, Number], spread_over: Number
) -> dict[str, Number]:
    """The lines of machine time at list price, and those that follow from them: discount, support,
    people and credits.

    lines: machine time at list price, storage and egress, per run or month.
    spread_over: the runs or months that carry the port and the credits.
    """
    data = {name: lines.pop(name) for name in ("storage", "egress")}
    machines = sum(lines.values())
    discount = -values["discount"] * machines
    support = values["support"] * (machines + discount + sum(data.values()))
    bill = machines + discount + support + sum(data.values())
    lines |= data | {
        "discount": discount,
        "support": support,
        "operations": values["operations"] * values["pay"] / PAID_HOURS_PER_WEEK,
        "engineering": values["engineers"] * values["weeks"] * values["pay"] / spread_over,
        "credits": -np.minimum(values["credits"] / spread_over, bill),
    }
    return in_order(lines)


def energy(
    values: Mapping[str, Number], instance_hours: Number
) -> tuple[Number, Number] | tuple[None, None]:
    """kWh and kg of carbon dioxide; None where the values do not say what is needed."""
    if not ENERGY <= values.keys():
        return None, None
    kwh = instance_hours * values["power"] * values["pue"]
    return kwh, kwh * values["carbon"]
