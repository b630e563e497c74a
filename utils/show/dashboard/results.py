"""The results as HTML and as figures. Whatever came from a visitor is escaped."""

import base64
import dataclasses
import html
from collections.abc import Sequence

import numpy as np

from utils.cost.tco.comparison import Warned
from utils.cost.tco.cost import LINES
from utils.cost.tco.scenario import Scenario, field_name
from utils.cost.tco.uncertainty import BreakEven, Comparison, Swing, break_even
from utils.show.draw import Picture
from utils.show.draw import costs as draw
from utils.show.report.build import answer, cautions, verdict_of
from utils.show.report.estimates import measure
from utils.show.report.words import (
    PER,
    PURCHASES,
    SHARES,
    against,
    label,
    large,
    money,
    named,
    percent,
    plural,
    quantity,
)

SHOWN_SWINGS = 10
CURVE_POINTS = 80


def headline(compared: Comparison) -> str:
    """The cost of each option, the saving and the probability: large, and as a sentence."""
    scenario = compared.scenario
    per = PER[scenario.kind]
    cards = []
    for option in (compared.a, compared.b):
        cost, context = compared.best[option], scenario.options[option].context
        low, high = compared.interval(option)
        between = f"{money(low, scenario.currency)} to {large(high)}"
        cards.append(
            _card(
                f"{label(option)} <small>{html.escape(context.instance)},"
                f" {html.escape(PURCHASES.get(context.purchase, context.purchase))}</small>",
                money(float(cost.total), scenario.currency),
                f"a {per}; {between} in nine draws of ten<br>"
                f"{money(float(cost.per_million), scenario.currency)} per million"
                f" {html.escape(plural(scenario.unit))}",
            )
        )
    low, high = compared.interval()
    cards.append(
        _card(
            f"{label(compared.a)} costs <small>against {label(compared.b, article=True)}</small>",
            against(compared.saving),
            f"{against(low)} to {against(high)} in nine draws of ten",
        )
    )
    cards.append(
        _card(
            f"{label(compared.a)} is cheaper <small>how probable it is</small>",
            percent(compared.probability),
            f"of {len(compared.savings):,} draws; each takes every input anywhere in its range",
        )
    )
    words = html.escape(f"{verdict_of(compared)[1]} {answer(compared)}")
    return f"<h2>Result</h2><p class='tco-verdict'>{words}</p><div class='tco-cards'>" + (
        "".join(cards) + "</div>"
    )


def _card(name: str, value: str, note: str) -> str:
    return f"<div><h3>{name}</h3><p class='tco-value'>{value}</p><p>{note}</p></div>"


def to_find_out(compared: Comparison) -> str:
    """What is worth knowing better before choosing, dearest first."""
    return _list("What to find out next", measure(compared))


def warnings(found: Sequence[Warned], compared: Comparison) -> str:
    """What is wrong with the comparison, in the words of the report."""
    said = cautions(found, compared.a, compared.b)
    return _list("Before you rely on it", said or ("Nothing speaks against comparing these two.",))


def _list(title: str, sentences: Sequence[str]) -> str:
    items = "".join(f"<li>{html.escape(each)}</li>" for each in sentences)
    return f"<h2>{title}</h2><ul>{items}</ul>"


def figure(picture: Picture) -> str:
    """A figure with its description, for every reader."""
    data = base64.b64encode(picture.png).decode("ascii")
    words = html.escape(picture.caption)
    return (
        f"<figure><img alt='{words}' src='data:image/png;base64,{data}'>"
        f"<figcaption>{words}</figcaption></figure>"
    )


def waterfall(compared: Comparison) -> Picture:
    """From the work at list price to the total, per option."""
    scenario = compared.scenario
    per = PER[scenario.kind]
    names, rows = draw.shown_lines(compared.best)
    parts = []
    for option, values in rows.items():
        value, name = max(zip(values, names, strict=True))
        total = money(float(compared.best[option].total), scenario.currency)
        most = money(value, scenario.currency)
        about = f" ({LINES[name]})" if name in LINES else ""
        part = f"the largest part is {name}{about}, {most}"
        parts.append(f"{label(option)}: {total}, of which {part}")
    caption = f"The cost of one {per}, line by line. " + "; ".join(parts) + "."
    drawn = {label(option): cost for option, cost in compared.best.items()}
    return draw.waterfall(drawn, f"{scenario.currency} a {per}", caption)


def tornado(compared: Comparison, swings: Sequence[Swing]) -> Picture:
    """The inputs that move the saving most."""
    a, b = label(compared.a), label(compared.b, article=True)
    shown = [each for each in swings if each.width > 0][:SHOWN_SWINGS]
    caption = "No input has a range, so nothing moves the saving."
    if shown:
        first = shown[0]
        low, high = (
            quantity(first.path, each, compared.scenario) for each in (first.low, first.high)
        )
        caption = (
            "What each input does alone, from one end of its range to the other."
            f" {named(first.path)} matters most: at {low} {a} costs {against(first.at_low)},"
            f" at {high} {against(first.at_high)}."
        )
    names = [f"{named(each.path)}{_per_cent(each.path)}" for each in shown]
    scaled = [
        dataclasses.replace(each, low=each.low * size, high=each.high * size)
        for each in shown
        for size in (_size(each.path),)
    ]
    what = f"saving of {a} against {b}, %"
    return draw.tornado(scaled, compared.saving, names, what, caption)


def _size(path: str) -> float:
    """What a value is multiplied with in a figure: shares are shown as in the sentences."""
    return 100.0 if field_name(path) in SHARES else 1.0


def _per_cent(path: str) -> str:
    return ", %" if field_name(path) in SHARES else ""


def break_even_picture(compared: Comparison, path: str) -> Picture:
    """The cost of both options as one input changes, and where they cross. Raises InputError."""
    scenario, options = compared.scenario, (compared.a, compared.b)
    found = break_even(scenario, path, *options)
    now = scenario.inputs[path].value
    x = _around(now, found)
    curves = {
        label(option): np.broadcast_to(scenario.cost(option, {path: x}).total, x.shape)
        for option in options
    }

    def said(value: float) -> str:
        return quantity(path, value, scenario)

    cheaper = [label(option, article=True) for option in found.cheaper]
    if found.values:
        at = " and at ".join(said(each) for each in found.values)
        words = f"Both cost the same at {at}; below {said(found.values[0])} {cheaper[0]} is cheaper"
    else:
        words = (
            f"{cheaper[0]} is cheaper at every value from {said(found.low)} to {said(found.high)}"
        )
    caption = f"{named(path)}. {words[0].upper()}{words[1:]}. Now it is {said(now)}."
    x_label = f"{named(path)}{_per_cent(path) or ', ' + scenario.inputs[path].unit}"
    per = f"{scenario.currency} a {PER[scenario.kind]}"
    size = _size(path)
    crossings = [each * size for each in found.values]
    return draw.break_even(x * size, curves, crossings, now * size, x_label, per, caption)


def _around(now: float, found: BreakEven) -> np.ndarray:
    """Values from a third of the present one, or of the lowest crossing, to three times it, or the
    highest, within what was searched.
    """
    near = [each for each in (now, *found.values) if each > 0] or [found.high]
    low, high = max(found.low, min(near) / 3), min(found.high, max(near) * 3)
    space = np.geomspace if low > 0 else np.linspace
    return np.clip(space(low, high, CURVE_POINTS), low, high)


def choices(scenario: Scenario, swings: Sequence[Swing]) -> list[tuple[str, str]]:
    """(words, path) of the inputs along which a break-even can be looked for, widest swing first:
    first those that move the saving, then the others.
    """
    moving = [each.path for each in swings if each.width > 0]
    others = [path for path in scenario.inputs if path not in moving]
    return [(named(path), path) for path in (*moving, *others)]
