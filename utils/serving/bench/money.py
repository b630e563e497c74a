"""Money and energy for one answer, from a measured throughput and a price or power that is given.

Nothing here knows a price or a power. Both come from a fact with its source, or from the person who
read them off a bill or a meter, and the result says which.
"""

import math
from dataclasses import dataclass

from utils.cost import tco
from utils.facts import Figure
from utils.facts.units import convert


@dataclass(frozen=True)
class Given:
    """A number with its unit and where it is from: the key of a fact, or words."""

    value: float
    unit: str
    source: str

    def __post_init__(self) -> None:
        if not self.source.strip():
            raise ValueError(
                f"{self.value:g} {self.unit} has no source: say where it was read, such as"
                " 'power meter at the socket, 2 min under load'"
            )
        if not (math.isfinite(self.value) and self.value >= 0):
            raise ValueError(f"{self.value} {self.unit} ({self.source}): give a number from 0 on")

    def __str__(self) -> str:
        """
        >>> print(Given(0.25, "J/query", "power: meter at the socket"))
        0.25 J/query (power: meter at the socket)
        """
        return f"{self.value:.4g} {self.unit} ({self.source})"


def usd_per_million(items_per_second: float, price: Given | Figure, load: float = 1.0) -> Given:
    """Money for a million items, of one server that is rented by the hour and nothing else.

    Args:
        items_per_second: measured, of the server that the price is for.
        price: in USD per hour.
        load: the share of its throughput that is used; waiting grows without limit towards 1.

    Raises: ValueError for a price without source, `tco.InputError` for an impossible number,
    `facts.Unknown` for a figure that nobody publishes.

    It is `tco.service` with every other cost at nothing. A service has more of them: see there.

    >>> print(usd_per_million(100, Given(0.36, "USD/h", "an example")))
    1 USD/million (price: an example)
    """
    given = _given(price, "USD/h")
    values = dict.fromkeys(tco.NEEDS["service"], 0.0) | {
        "units_per_second": items_per_second,
        "demand": items_per_second * load,
        "load": load,
        "price": given.value,
        **dict.fromkeys(("peak_to_mean", "autoscaled", "months", "tokens_per_item"), 1.0),
    }
    cost = tco.service(values)
    return Given(float(cost.per_million), "USD/million", f"price: {given.source}")


def joules_per_query(items_per_second: float, power: Given | Figure) -> Given:
    """Energy for one item: power over throughput.

    Args:
        items_per_second: measured at that power, of all that draws it.
        power: in W or kW, of the server or chip; which of them, its source says.

    >>> joules_per_query(40, Given(10, "W", "an example")).value
    0.25
    """
    given = _given(power, "W")
    if not items_per_second > 0:
        raise ValueError(f"items_per_second is {items_per_second}: give what was measured, above 0")
    return Given(given.value / items_per_second, "J/query", f"power: {given.source}")


def _given(number: Given | Figure, unit: str) -> Given:
    if isinstance(number, Figure):
        source = f"{number.key}, {number.status}, {number.date}"
        return Given(number.to(unit), unit, source)
    if not isinstance(number, Given):
        raise ValueError(
            f"{number!r} has no source: give a figure of utils.facts, or"
            f" Given(value, {unit!r}, 'where it was read')"
        )
    return Given(convert(number.value, number.unit, unit), unit, number.source)
