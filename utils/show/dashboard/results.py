"""The results as HTML and as figures. Whatever came from a visitor is escaped."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from utils.cost.tco.comparison import Warned
from utils.cost.tco.scenario import Scenario, field_name
from utils.cost.tco.uncertainty import BreakEven, Comparison, Swing, break_even
from utils.facts import figure as figure_of
from utils.show.dashboard.parts import part
from utils.show.draw import Picture
from utils.show.draw import costs as draw
from utils.show.report import estimates
from utils.show.report.build import answer, cautions, verdict_of
from utils.show.report.wording import (
    PER,
    PURCHASES,
    SHARES,
    against,
    label,
    large,
    money,
    name_of,
    percent,
    plural,
    quantity,
    spell,
)

CURVE_POINTS = 80
PUBLISHED = "Every published MFU that fits"


@dataclass(frozen=True)
class Card:
    """One number of the headline: what it is of, the number, and lines below it."""

    name: str
    small: str
    value: str
    lines: tuple[str, ...]


def headline(compared: Comparison) -> str:
    """The cost of each option, the saving and the probability: large, and as a sentence."""
    scenario = compared.scenario
    cards = []
    for option in (compared.a, compared.b):
        cost, context = compared.best[option], scenario.options[option].context
        inputs = scenario.inputs_of(option)
        days = [f"one run takes {spell(float(cost.hours) / 24)} days"]
        mfu = inputs.get("mfu", inputs["price"])
        low, high = compared.interval(option)
        between = f"{money(low, scenario.currency)} to {large(high)}"
        per_million = money(float(cost.per_million), scenario.currency)
        cards.append(
            Card(
                label(option),
                ", ".join(filter(None, (
                    context.instance, PURCHASES.get(context.purchase, context.purchase),
                    mfu.chip and f"MFU of {mfu.chip}",
                ))),
                money(float(cost.total), scenario.currency),
                (
                    f"a {PER[scenario.kind]}; {between} in nine draws of ten",
                    f"{per_million} per million {plural(scenario.unit)}",
                    *(days if scenario.kind == "job" else ()),
                ),
            )
        )  # fmt: skip
    low, high = compared.interval()
    likely = {"triangular": "most often near its best guess", "uniform": "anywhere alike"}
    draws = (
        f"of {len(compared.savings):,} {compared.shape} draws; each takes every input from its"
        f" range, {likely[compared.shape]}"
    )
    cards += [
        Card(
            f"{label(compared.a)} costs",
            f"against {label(compared.b, article=True)}",
            against(compared.saving),
            (f"{against(low)} to {against(high)} in nine draws of ten",),
        ),
        Card(
            f"{label(compared.a)} is cheaper",
            "how probable it is",
            percent(compared.probability),
            (draws,),
        ),
    ]
    return part("headline", f"{verdict_of(compared)[1]} {answer(compared)}", cards)


def to_find_out(compared: Comparison) -> str:
    """What is worth knowing better before choosing, dearest first."""
    return part("sentences", "What to find out next", estimates.measure(compared))


def warnings(result: Sequence[Warned], compared: Comparison) -> str:
    """What is wrong with the comparison, in the words of the report."""
    text = cautions(result, compared.a, compared.b)
    text = text or ("Nothing speaks against comparing these two.",)
    return part("sentences", "Before you rely on it", text)


def mfu_table(compared: Comparison) -> str:
    """Every published MFU that fits, and what it makes of the verdict."""
    table = estimates.mfu_table(compared)
    if table is None:
        return part("sentences", PUBLISHED, ("No input of this scenario is a share of the peak.",))
    words = []
    for option in (compared.a, compared.b):
        cheaper = [row[-1] for row in table.rows if row[0] == label(option)]
        first, second = (label(it, article=True) for it in (compared.a, compared.b))
        words.append(
            f"Of {len(cheaper)} published for {label(option, article=True)}, put in place of the"
            f" best guess, {cheaper.count(first)} make {first} cheaper and"
            f" {cheaper.count(second)} {second}."
        )
    return part("sentences", PUBLISHED, words) + part("table", "The list", table)


def buying(compared: Comparison) -> str:
    """Time to the result, the cost of a late start, and the ways to buy for either option."""
    title = "When, how to buy, and for how long"
    tables = [part("table", "", estimates.buying(compared, o)) for o in (compared.a, compared.b)]
    terms = (
        "A Capacity Block and a training plan are paid up front and cannot be cancelled. A Savings"
        " Plan is an hourly amount for one or three years, whether servers run or not: AWS names a"
        f" largest saving of {percent(figure_of('savings_plan.most_saved').number)}, but a rate for"
        " these servers was not found, so the table says from which rate on it would pay."
    )
    return part("sentences", title, (*estimates.time(compared), terms)) + "".join(tables)


def figure(picture: Picture, narrow: Picture) -> str:
    """A figure with its description, for every reader; `narrow` is for a phone."""
    data = [base64.b64encode(item.png).decode("ascii") for item in (picture, narrow)]
    return part("figure", picture.caption, *data)


def _size(path: str) -> float:
    """What a value is multiplied with in a figure: shares are shown as in the sentences."""
    return 100.0 if field_name(path) in SHARES else 1.0


def _per_cent(path: str) -> str:
    return ", %" if field_name(path) in SHARES else ""


def break_even_picture(compared: Comparison, path: str) -> tuple[Picture, Picture]:
    """The cost of both options as one input changes, and where they cross: for a desk, and for a
    phone. Raises InputError.
    """
    scenario, options = compared.scenario, (compared.a, compared.b)
    result = break_even(scenario, path, *options)
    now = scenario.inputs[path].value
    x = _around(now, result)
    curves = {
        label(option): np.broadcast_to(scenario.cost(option, {path: x}).total, x.shape)
        for option in options
    }

    def worth(value: float) -> str:
        return quantity(path, value, scenario)

    cheaper = [label(option, article=True) for option in result.cheaper]
    if result.values:
        at = " and at ".join(worth(value) for value in result.values)
        words = (
            f"Both cost the same at {at}; below {worth(result.values[0])} {cheaper[0]} is cheaper"
        )
    else:
        ends = f"{worth(result.low)} to {worth(result.high)}"
        words = f"{cheaper[0]} is cheaper at every value from {ends}"
    caption = f"{name_of(path)}. {words[0].upper()}{words[1:]}. Now it is {worth(now)}."
    x_label = f"{name_of(path)}{_per_cent(path) or ', ' + scenario.inputs[path].unit}"
    per = f"{scenario.currency} a {PER[scenario.kind]}"
    size = _size(path)
    crossings = [value * size for value in result.values]
    wide, narrow = (
        draw.break_even(list(x * size), curves, crossings, now * size, x_label, per, caption,
                        narrow=narrow)
        for narrow in (False, True)
    )  # fmt: skip
    return wide, narrow


def _around(now: float, result: BreakEven) -> np.ndarray:
    """Values from a third of the present one, or of the lowest crossing, to three times it, or the
    highest, within what was searched.
    """
    near = [item for item in (now, *result.values) if item > 0] or [result.high]
    low, high = max(result.low, min(near) / 3), min(result.high, max(near) * 3)
    space = np.geomspace if low > 0 else np.linspace
    return np.clip(space(low, high, CURVE_POINTS), low, high)


def choices(scenario: Scenario, swings: Sequence[Swing]) -> list[tuple[str, str]]:
    """(words, path) of the inputs along which a break-even can be looked for, widest swing first:
    first those that move the saving, then the others.
    """
    moving = [swing.path for swing in swings if swing.width > 0]
    others = [path for path in scenario.inputs if path not in moving]
    return [(name_of(path), path) for path in (*moving, *others)]
