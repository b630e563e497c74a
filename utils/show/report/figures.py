"""The two figures of a report: where the money goes, and what decides."""

from collections.abc import Sequence

from utils.cost.tco.uncertainty import Comparison, Swing
from utils.show.draw import costs
from utils.show.draw.picture import Picture
from utils.show.report.words import PER, against, believed, label, money, named, shortened

SHOWN = 8


def pictures(compared: Comparison, swings: Sequence[Swing]) -> tuple[Picture, ...]:
    """A waterfall of both options, and a tornado if any input has a range."""
    scenario, per = compared.scenario, PER[compared.scenario.kind]
    totals = " and ".join(
        f"{money(float(cost.total), scenario.currency)} for {label(option, article=True)}"
        for option, cost in compared.best.items()
    )
    fall = costs.waterfall(
        {label(option): cost for option, cost in compared.best.items()},
        f"{scenario.currency} per {per} (estimate)",
        f"Where the money of one {per} goes, at the best guesses: an estimated {totals}. The last"
        " bar is the total.",
    )
    if not swings:
        return (fall,)
    shown, a, b = swings[:SHOWN], label(compared.a), label(compared.b, article=True)
    widest = shown[0]
    ranges = [
        f"{shortened(named(s.path), 46)}\n{believed(s.path, scenario.inputs[s.path], scenario)}"
        for s in shown
    ]
    blades = costs.tornado(
        shown,
        compared.saving,
        ranges,
        f"estimated saving with {shortened(a, 30)}, % of the cost of {shortened(b, 30)}",
        f"What one input alone does to the estimate, from the low to the high end of its believed"
        f" range, widest first. {named(widest.path)}: {a} costs"
        f" {against(widest.at_low)} at the low end, {against(widest.at_high)} at the high end.",
    )
    return fall, blades
