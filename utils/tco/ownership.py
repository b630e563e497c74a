"""What an hour of a machine costs those who own it, and what it draws and emits.

In the cloud the price of an hour holds power, cooling, building and repair. Who owns the machines
pays them singly, and whether they are used or not.
"""

from dataclasses import dataclass

from utils.tco.fields import HOURS_PER_YEAR, InputError


@dataclass(frozen=True)
class Owned:
    """One server: money per hour by part, and kWh and kg of carbon dioxide per hour at work."""

    capital_per_hour: float
    energy_per_hour: float
    upkeep_per_hour: float
    kwh_per_hour: float
    carbon_kg_per_hour: float

    @property
    def price(self) -> float:
        """Money per hour."""
        return self.capital_per_hour + self.energy_per_hour + self.upkeep_per_hour


def owned(
    purchase: float,
    years: float,
    power_kw: float,
    pue: float,
    energy_price: float,
    upkeep: float,
    carbon_kg_per_kwh: float,
    residual: float = 0.0,
) -> Owned:
    """One server that is switched on all the time.

    Args:
        purchase: money for the server with its share of network and racks.
        years: of use. residual: share of the purchase that it sells for at the end.
        power_kw: drawn on average. pue: power of the building over that of the machines.
        energy_price: money per kWh. upkeep: share of the purchase per year for repair, space and
            people.
        carbon_kg_per_kwh: of the electricity.

    >>> owned(300_000, 5, 10, 1.25, 0.1, 0.05, 0.4).energy_per_hour
    1.25

    Raises: InputError.
    """
    at_least = {
        "purchase": (purchase, 0), "power_kw": (power_kw, 0), "pue": (pue, 1),
        "energy_price": (energy_price, 0), "upkeep": (upkeep, 0),
        "carbon_kg_per_kwh": (carbon_kg_per_kwh, 0), "residual": (residual, 0),
    }  # fmt: skip
    for name, (value, least) in at_least.items():
        if not value >= least:
            raise InputError(name, f"{value:g}", f"{least:g} or more")
    if not years > 0:
        raise InputError("years", f"{years:g}", "more than 0")
    if residual > 1:
        raise InputError("residual", f"{residual:g}", "0 or more and at most 1 (ratio)")
    kwh = power_kw * pue
    return Owned(
        capital_per_hour=purchase * (1 - residual) / (years * HOURS_PER_YEAR),
        energy_per_hour=kwh * energy_price,
        upkeep_per_hour=purchase * upkeep / HOURS_PER_YEAR,
        kwh_per_hour=kwh,
        carbon_kg_per_hour=kwh * carbon_kg_per_kwh,
    )
