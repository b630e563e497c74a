"""What an hour of a machine costs those who own it, and what it draws and emits.

In the cloud the price of an hour holds power, cooling, building, repair, staff and capital. Who
owns the machines pays them singly, and whether they are used or not.
"""

from dataclasses import dataclass

from msgspec.structs import replace

from utils.cost.tco.fields import FIELDS, HOURS_PER_MONTH, HOURS_PER_YEAR, Field

_PURCHASE = Field("purchase", "USD", "ownership", "of one server", least=0.0)
_YEARS = Field("years", "year", "ownership", "of use", above=0.0)
_ENERGY_PRICE = Field("energy_price", "USD/kWh", "ownership", "of the electricity", least=0.0)
_UPKEEP = Field("upkeep", "1/year", "ownership", "as a share of the purchase", least=0.0)
_RESIDUAL = Field("residual", "ratio", "ownership", "share of the purchase", least=0.0, most=1.0)
_SPACE = Field("space", "USD/kW/month", "ownership", "rent by power, without it", least=0.0)
_INTEREST = Field("interest", "1/year", "ownership", "on the money tied up", least=0.0)
_STAFF = Field("staff", "USD/year", "ownership", "people for one server", least=0.0)
_POWER = replace(FIELDS["power"], name="power_kw")
_CARBON = replace(FIELDS["carbon"], name="carbon_kg_per_kwh")


@dataclass(frozen=True)
class Owned:
    """One server: money per hour by part, and kWh and kg of carbon dioxide per hour at work."""

    capital_per_hour: float
    energy_per_hour: float
    upkeep_per_hour: float
    interest_per_hour: float
    space_per_hour: float
    staff_per_hour: float
    kwh_per_hour: float
    carbon_kg_per_hour: float

    @property
    def price(self) -> float:
        """Money per hour."""
        return (
            self.capital_per_hour + self.energy_per_hour + self.upkeep_per_hour
            + self.interest_per_hour + self.space_per_hour + self.staff_per_hour
        )  # fmt: skip


def owning_cost(
    purchase: float,
    years: float,
    power_kw: float,
    pue: float,
    energy_price: float,
    upkeep: float,
    carbon_kg_per_kwh: float,
    residual: float,
    interest: float,
    space: float,
    staff: float,
) -> Owned:
    """One server that is switched on all the time.

    Args:
        purchase: money for the server with its share of network and racks.
        years: of use.
        power_kw: drawn on average. pue: power of the building over that of the machines.
        energy_price: money per kWh. upkeep: share of the purchase per year for repair.
        carbon_kg_per_kwh: of the electricity.
        residual: share of the purchase that it sells for at the end.
        interest: share per year of the money that is tied up: on average half-way between the
            purchase and what it sells for.
        space: money per kW and month for a place with power, cooling and a network, without the
            electricity. staff: money per year for the people who run it.

    >>> server = owning_cost(300_000, 5, 10, 1.25, 0.1, 0.05, 0.4, 0.1, 0.08, 184, 10_000)
    >>> server.energy_per_hour, round(server.interest_per_hour * HOURS_PER_YEAR)
    (1.25, 13200)

    Raises: InputError.
    """
    for field, value in (
        (_PURCHASE, purchase), (_YEARS, years), (_POWER, power_kw), (FIELDS["pue"], pue),
        (_ENERGY_PRICE, energy_price), (_UPKEEP, upkeep), (_CARBON, carbon_kg_per_kwh),
        (_RESIDUAL, residual), (_INTEREST, interest), (_SPACE, space), (_STAFF, staff),
    ):  # fmt: skip
        field.check(value)
    kwh = power_kw * pue
    return Owned(
        capital_per_hour=purchase * (1 - residual) / (years * HOURS_PER_YEAR),
        energy_per_hour=kwh * energy_price,
        upkeep_per_hour=purchase * upkeep / HOURS_PER_YEAR,
        interest_per_hour=interest * purchase * (1 + residual) / 2 / HOURS_PER_YEAR,
        space_per_hour=space * power_kw / HOURS_PER_MONTH,
        staff_per_hour=staff / HOURS_PER_YEAR,
        kwh_per_hour=kwh,
        carbon_kg_per_hour=kwh * carbon_kg_per_kwh,
    )
