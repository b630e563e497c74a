"""What is wrong with a comparison: costs may be set against each other only where the work, the
quality, the day, the region and the way of buying are the same, and throughput was measured.
"""

import datetime
from collections.abc import Iterator
from dataclasses import dataclass

from utils.cost.tco.inputs import Input
from utils.cost.tco.scenario import Scenario
from utils.facts import LIMITS, figures

SAME = {
    "region": ("is in", "prices and capacity differ between regions"),
    "purchase": ("is bought as", "the way of buying alone can halve a price"),
    "precision": (
        "computes in",
        "a format with fewer bits has another peak, and perhaps another result",
    ),
}
DAYS_APART = 31
"""Prices read within a month of each other are of the same date: Capacity Blocks change monthly."""


@dataclass(frozen=True)
class Warned:
    """One reason to distrust a comparison: a name, a sentence, and the inputs that it is about."""

    kind: str
    text: str
    paths: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def warnings(
    scenario: Scenario, a: str, b: str, today: datetime.date | None = None
) -> tuple[Warned, ...]:
    """All warnings about comparing option `a` with option `b`, prices as of `today`."""
    today = today or datetime.date.today()
    return tuple(
        [
            *_context(scenario, a, b),
            *_work(scenario, a, b),
            *_prices(scenario, a, b, today),
            *_throughput(scenario, a, b),
            *_claims(scenario, a, b),
        ]
    )


def _context(scenario: Scenario, a: str, b: str) -> Iterator[Warned]:
    first, second = scenario.options[a].context, scenario.options[b].context
    for name, (verb, why) in SAME.items():
        left, right = getattr(first, name), getattr(second, name)
        if left != right:
            yield Warned(name, f"{a} {verb} {left}, {b} {verb} {right}: {why}")
    for option, context in ((a, first), (b, second)):
        if not context.quality:
            yield Warned("quality", f"nobody has looked whether {option} gives as good results")
    if first.quality and second.quality and first.quality != second.quality:
        yield Warned("quality", f"{a} is held to {first.quality!r}, {b} to {second.quality!r}")


def _work(scenario: Scenario, a: str, b: str) -> Iterator[Warned]:
    for name in ("work", "demand", "tokens_per_item", "flop_per_unit"):
        left, right = _of(scenario, a, name), _of(scenario, b, name)
        if left and right and left.value != right.value:
            yield Warned("work", f"{name} is {left.value:g} for {a} and {right.value:g} for {b}",
                         (f"{a}.{name}", f"{b}.{name}"))  # fmt: skip


def _prices(scenario: Scenario, a: str, b: str, today: datetime.date) -> Iterator[Warned]:
    dated = {}
    for option in (a, b):
        price = _of(scenario, option, "price")
        path = _path(scenario, option, "price")
        if price is None or price.date is None:
            yield Warned("price", f"the price of {option} has no date", (path,))
            continue
        dated[path] = price.date
        days = (today - price.date).days
        if days > LIMITS["price"]:
            yield Warned("old price", f"the price of {option} is of {price.date}, {days} days ago:"
                         f" look it up again, prices are good for {LIMITS['price']} days",
                         (path,))  # fmt: skip
    if len(dated) == 2 and abs((max(dated.values()) - min(dated.values())).days) > DAYS_APART:
        between = " and ".join(map(str, dated.values()))
        yield Warned("date", f"the prices are of different dates: {between}", tuple(dated))


def _throughput(scenario: Scenario, a: str, b: str) -> Iterator[Warned]:
    for option in (a, b):
        inputs = scenario.inputs_of(option)
        name = "units_per_second" if "units_per_second" in inputs else "mfu"
        given, path = inputs[name], _path(scenario, option, name)
        if given.status == "assumption":
            what = "a share of the peak" if name == "mfu" else "a throughput"
            yield Warned("peak for measured", f"{option} rests on {what} that is assumed: measure"
                         " its throughput on this work", (path,))  # fmt: skip
        elif given.status != "measured":
            text = "was claimed by" if given.status == "vendor-claim" else "was measured by"
            yield Warned("throughput of others", f"the throughput of {option} {text} others, on"
                         " other work", (path,))  # fmt: skip
        instance = scenario.options[option].context.instance
        priced = figures().get(f"{instance}.accelerator")
        if given.chip and priced and not str(priced.value).startswith(given.chip):
            yield Warned("generation", f"the speed of {option} was measured on {given.chip}, and"
                         f" the price is that of {priced.value}", (path,))  # fmt: skip
        if name == "mfu" and given.value == 1:
            yield Warned("peak for measured", f"{option} is taken at its peak, which nothing"
                         " reaches", (path,))  # fmt: skip


def _claims(scenario: Scenario, a: str, b: str) -> Iterator[Warned]:
    own = (f"{a}.", f"{b}.")
    paths = tuple(
        path
        for path, item in scenario.inputs.items()
        if item.status == "vendor-claim" and (path in scenario.shared or path.startswith(own))
    )
    if paths:
        text = "is what a vendor says" if len(paths) == 1 else "are what vendors say"
        yield Warned("vendor claim", f"{', '.join(paths)} {text}", paths)


def _of(scenario: Scenario, option: str, name: str) -> Input | None:
    return scenario.inputs_of(option).get(name)


def _path(scenario: Scenario, option: str, name: str) -> str:
    return f"{option}.{name}" if name in scenario.options[option].inputs else name
