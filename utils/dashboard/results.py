"""The results as HTML and as figures. Whatever came from a visitor is escaped."""

import base64
import html
from collections.abc import Sequence

import numpy as np

from utils.dashboard.form import title
from utils.dashboard.words import PER, costs, end, money, percent, rounded, saved, verdict
from utils.draw import Picture
from utils.draw import costs as draw
from utils.tco.comparison import Warned
from utils.tco.scenario import Scenario, field_name
from utils.tco.uncertainty import Comparison, Swing, break_even

SHOWN_SWINGS = 10
CURVE_POINTS = 80


def headline(compared: Comparison) -> str:
    """The cost of each option, the saving and the probability: large, and as a sentence."""
    scenario = compared.scenario
    per = PER[scenario.kind]
    cards = []
    for option in (compared.a, compared.b):
        cost, context = compared.best[option], scenario.options[option].context
        low, high = (money(each, scenario.currency) for each in compared.interval(option))
        cards.append(
            _card(
                f"{option} <small>{html.escape(context.instance)},"
                f" {html.escape(context.purchase.replace('_', ' '))}</small>",
                money(float(cost.total), scenario.currency),
                f"{per}; {low} to {high} in nine draws of ten<br>"
                f"{money(float(cost.per_million), scenario.currency)} per million"
                f" {html.escape(scenario.unit)}s",
            )
        )
    low, high = compared.interval()
    cards.append(
        _card(
            f"{compared.a} costs <small>against {compared.b}</small>",
            saved(compared.saving),
            f"{saved(low)} to {saved(high)} in nine draws of ten",
        )
    )
    cards.append(
        _card(
            f"{compared.a} is cheaper <small>how probable it is</small>",
            percent(compared.probability),
            f"of {len(compared.savings):,} draws, with every input anywhere in its range",
        )
    )
    words = html.escape(f"{costs(compared)} {verdict(compared)}")
    return f"<h2>Result</h2><p class='tco-verdict'>{words}</p><div class='tco-cards'>" + (
        "".join(cards) + "</div>"
    )


def _card(name: str, value: str, note: str) -> str:
    return f"<div><h3>{name}</h3><p class='tco-value'>{value}</p><p>{note}</p></div>"


def warnings(found: Sequence[Warned]) -> str:
    """What is wrong with the comparison, as a list."""
    head = "<h2>Before you rely on it</h2>"
    if not found:
        return head + "<p>Nothing speaks against comparing these two.</p>"
    items = "".join(
        f"<li><b>{html.escape(each.kind)}</b>: {html.escape(each.text)}.</li>" for each in found
    )
    return f"{head}<ul>{items}</ul>"


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
    per = f"{scenario.currency} {PER[scenario.kind]}"
    names, rows = draw.shown_lines(compared.best)
    largest = {
        option: max(zip(values, names, strict=True))[::-1] for option, values in rows.items()
    }
    parts = [
        f"{option}: {money(float(compared.best[option].total), scenario.currency)}, most of it"
        f" {name} ({money(value, scenario.currency)})"
        for option, (name, value) in largest.items()
    ]
    caption = f"Cost {PER[scenario.kind]}, line by line. " + "; ".join(parts) + "."
    return draw.waterfall(compared.best, per, caption)


def tornado(compared: Comparison, swings: Sequence[Swing]) -> Picture:
    """The inputs that move the saving most."""
    shown = [each for each in swings if each.width > 0][:SHOWN_SWINGS]
    labels = [f"{named(each.path)}, {end(each.low)} to {end(each.high)}" for each in shown]
    what = f"saving of {compared.a} against {compared.b}, %"
    if shown:
        first = shown[0]
        caption = (
            f"What each input does alone, over its range. {named(first.path)} matters most:"
            f" from {end(first.low)} to {end(first.high)} it takes the saving from"
            f" {first.at_low * 100:.0f} % to {first.at_high * 100:.0f} %."
        )
    else:
        caption = "No input has a range, so nothing moves the saving."
    return draw.tornado(shown, compared.saving, labels, what, caption)


def break_even_picture(compared: Comparison, path: str) -> Picture:
    """The cost of both options as one input changes, and where they cross. Raises InputError."""
    scenario, options = compared.scenario, (compared.a, compared.b)
    found = break_even(scenario, path, *options)
    now = scenario.inputs[path].value
    near = [each for each in (now, *found.values) if each > 0] or [found.high]
    low, high = max(found.low, min(near) / 3), min(found.high, max(near) * 3)
    x = np.clip(np.geomspace(low, high, CURVE_POINTS) if low > 0 else
                np.linspace(low, high, CURVE_POINTS), low, high)  # fmt: skip
    curves = {
        option: np.broadcast_to(scenario.cost(option, {path: x}).total, x.shape)
        for option in options
    }
    unit = scenario.inputs[path].unit
    if found.values:
        at = " and ".join(rounded(each) for each in found.values)
        caption = (
            f"Both cost the same at {named(path)} = {at} ({unit}); below"
            f" {rounded(found.values[0])} {found.cheaper[0]} is cheaper. Now it is {end(now)}."
        )
    else:
        caption = (
            f"{found.cheaper[0]} is cheaper at every value of {named(path)} from"
            f" {end(found.low)} to {end(found.high)} ({unit}). Now it is {end(now)}."
        )
    per = f"{scenario.currency} {PER[scenario.kind]}"
    label = f"{named(path)}, {unit}"
    return draw.break_even(x, curves, found.values, now, label, per, caption)


def choices(scenario: Scenario, swings: Sequence[Swing]) -> list[tuple[str, str]]:
    """(words, path) of the inputs along which a break-even can be looked for, widest swing first:
    first those that move the saving, then the others.
    """
    moving = [each.path for each in swings if each.width > 0]
    others = [path for path in scenario.inputs if path not in moving]
    return [(named(path), path) for path in (*moving, *others)]


def named(path: str) -> str:
    """An input in words.

    >>> named("trainium.compile_cold"), named("runs")
    ('compile cold of trainium', 'runs')
    """
    name = title(field_name(path))
    name = name if name.isupper() else name.lower()
    return f"{name} of {path.partition('.')[0]}" if "." in path else name
