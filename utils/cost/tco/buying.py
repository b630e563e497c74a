"""Ways to buy the servers of an option: what each bills, what is paid before the work, for how long
one is bound, and what a late start costs.

A price that nobody publishes stays unknown. What is known without it is the price below which a way
would cost less than the present one, and whether the largest saving that AWS names reaches it.
"""

from dataclasses import dataclass

from utils.cost.tco.fields import HOURS_PER_YEAR, InputError
from utils.cost.tco.scenario import HOURS_PER_WEEK, Scenario
from utils.facts import figure, figures

AS_USED = ("on_demand", "spot")


@dataclass(frozen=True)
class Way:
    """One way to buy, over the whole time considered.

    name: for a reader. price: USD per hour of one server, None where none is published. hours:
    server hours billed, used or not. money: USD for them, None without a price. up_front: the share
    of `money` that is due before the first step; None where the buyer chooses. bound: days that are
    paid even if the work ends. pays_below: USD per hour below which it costs less than the present
    way. lowest: USD per hour with the largest saving on the price on demand that AWS names, where
    both are known.
    """

    name: str
    price: float | None
    hours: float
    money: float | None
    up_front: float | None
    bound: float
    pays_below: float
    lowest: float | None = None

    @property
    def verdict(self) -> str:
        """Whether it can cost less than the present way, as far as that is known."""
        best = self.lowest if self.price is None else self.price
        if best is not None and best >= self.pays_below * (1 - 1e-9):
            return "not cheaper"
        return "unknown" if self.price is None else "cheaper"


def ways(scenario: Scenario, option: str) -> tuple[Way, ...]:
    """The ways to buy an option's servers: on demand, Capacity Blocks, a training plan, Savings
    Plans of one and three years; reserved where a rate is published.
    """
    context = scenario.options[option].context
    step = {f"{option}.billing_step": 0.0} if scenario.kind == "job" else {}
    now, used = scenario.cost(option), scenario.cost(option, step)
    spent = float(now.compute * now.horizon)
    hours = float(used.instance_hours * used.horizon)
    servers = (
        scenario.inputs_of(option)["instances"].value
        if scenario.kind == "job"
        else float(now.instance_hours / now.hours)
    )
    runs = float(now.horizon) if scenario.kind == "job" else 1.0
    block = _stepped(hours / servers / runs) * servers * runs
    days = min(block / servers / runs / 24, figure("capacity_block.longest").number)
    plan = -(-hours // (servers * runs * 24)) * servers * runs * 24

    def way(
        name: str, price: float | None, billed: float, share: float | None, bound: float,
        lowest: float | None = None,
    ) -> Way:  # fmt: skip
        money = None if price is None else price * billed
        return Way(name, price, billed, money, share, bound, spent / billed, lowest)

    each = 1 / runs if scenario.kind == "job" else min(1.0, days * 24 * servers / block)
    listed = _listed(f"{context.instance}.price.on_demand")
    least = None if listed is None else listed * (1 - figure("savings_plan.most_saved").number)
    results = [
        way("on demand", listed, hours, 0.0, 0.0),
        way(
            "Capacity Block", _listed(f"{context.instance}.price.capacity_block"), block, each, days
        ),
        way("training plan (SageMaker)", None, plan, each, min(days, plan / servers / runs / 24)),
    ]
    for term in ("short", "long"):
        years = figure(f"savings_plan.{term}").number
        name = f"Savings Plan, {years:g} year{'s' * (years > 1)}"
        committed = max(servers * years * HOURS_PER_YEAR, hours)
        results.append(way(name, None, committed, None, years * HOURS_PER_YEAR / 24, least))
    if (rate := _listed(f"reserved.{context.instance}.price")) is not None:
        committed = max(servers * HOURS_PER_YEAR, hours)
        results.append(way("reserved, term not named", rate, committed, None, HOURS_PER_YEAR / 24))
    return tuple(results)


def late_week(scenario: Scenario, option: str) -> float:
    """What a start one week late costs: the servers, where they are paid from a fixed day on, and
    the team that waits. Raises InputError for a service.
    """
    if scenario.kind != "job":
        raise InputError("kind", repr(scenario.kind), "'job'", "A service has no start")
    values = {name: item.value for name, item in scenario.inputs_of(option).items()}
    team = values["engineers"] * values["pay"]
    if scenario.options[option].context.purchase in AS_USED:
        return team
    hour = values["instances"] * values["price"] * (1 - values["discount"])
    return hour * (1 + values["support"]) * HOURS_PER_WEEK + team


def _listed(key: str) -> float | None:
    return figure(key).value if key in figures() else None


def _stepped(hours: float) -> float:
    """Hours of one Capacity Block that holds so many: whole days, beyond 14 days whole weeks."""
    change = figure("capacity_block.step_change").to("h")
    step = figure("capacity_block.step_long" if hours > change else "capacity_block.step").to("h")
    return -(-hours * (1 - 1e-12) // step) * step
