"""The tables, sentences and figures of a report that the cost model gives."""

from collections.abc import Iterable, Sequence

from utils.cost.tco.buying import late_week, ways
from utils.cost.tco.cost import LINES, Number
from utils.cost.tco.fields import HOURS_PER_MONTH
from utils.cost.tco.inputs import Input
from utils.cost.tco.scenario import Scenario
from utils.cost.tco.uncertainty import (
    BreakEven,
    Comparison,
    Swing,
    break_even,
    by_row,
    value_of_measuring,
)
from utils.facts import figure, figures
from utils.show.draw.costs import tornado, waterfall
from utils.show.draw.picture import Picture
from utils.show.report.content import Given, Table
from utils.show.report.wording import (
    PER,
    PURCHASES,
    against,
    amount,
    label,
    large,
    money,
    name_of,
    percent,
    plural,
    quantity,
    range_of,
    shorten,
    spell,
)

TOP = 5
SHOWN = 8
"""Inputs in the figure of what decides."""
NEGLIGIBLE = 0.001
"""What is worth less than this share of the cost is not worth finding out."""


def costs(compared: Comparison) -> Table:
    """Both options side by side."""
    scenario, pair = compared.scenario, (compared.a, compared.b)
    currency, per = scenario.currency, PER[scenario.kind]
    results = [compared.best[option] for option in pair]
    intervals = [compared.interval(option) for option in pair]

    def amounts(values: Iterable[Number]) -> list[str]:
        return [money(float(value), currency) for value in values]

    rows = [
        ("Server", [scenario.options[option].context.instance for option in pair]),
        ("Region and purchase", [_bought(scenario, option) for option in pair]),
        (f"Cost of one {per}", amounts(item.total for item in results)),
        ("in nine draws of ten", [f"{money(i, currency)} to {large(j)}" for i, j in intervals]),
        (
            f"Cost of a million {plural(scenario.unit)}",
            amounts(item.per_million for item in results),
        ),
    ]
    if scenario.kind == "service":
        of_item = [_value(scenario, option, "tokens_per_item") for option in pair]
        of_token = (item.per_million / n for item, n in zip(results, of_item, strict=True))
        rows.append(("Cost of a million tokens", amounts(of_token)))
        servers = [float(item.instance_hours) / HOURS_PER_MONTH for item in results]
    else:
        rows.append(("Hours of one run", [large(float(item.hours)) for item in results]))
        servers = [_value(scenario, option, "instances") for option in pair]
    rows += [
        ("Servers", [large(server) for server in servers]),
        (f"Cost over {over(compared)}", amounts(item.overall for item in results)),
    ]
    energy = [float(item.energy_kwh) for item in results if item.energy_kwh is not None]
    carbon = [float(item.carbon_kg) for item in results if item.carbon_kg is not None]
    if len(energy) == len(carbon) == len(results):
        rows += [
            (f"Energy of one {per}", [f"{large(item)} kWh" for item in energy]),
            (f"Carbon dioxide of one {per}", [f"{large(item)} kg" for item in carbon]),
        ]
    return Table(
        "Estimates at the best guesses of all inputs",
        ("Estimate", *map(label, pair)),
        tuple((name, *values) for name, values in rows),
    )


def over(compared: Comparison) -> str:
    """The time considered, such as "52 runs"."""
    horizon = float(compared.best[compared.a].horizon)
    per = PER[compared.scenario.kind]
    return f"{large(horizon)} {per if horizon == 1 else plural(per)}"


def decides(compared: Comparison, swings: Sequence[Swing]) -> Table:
    """The inputs that move the comparison most."""
    scenario = compared.scenario
    rows = [
        (
            name_of(swing.path),
            quantity(swing.path, scenario.inputs[swing.path].value, scenario),
            f"{quantity(swing.path, swing.low, scenario)}: {against(swing.at_low)}",
            f"{quantity(swing.path, swing.high, scenario)}: {against(swing.at_high)}",
        )
        for swing in swings[:TOP]
    ]
    return Table(
        f"Estimated cost of {label(compared.a, article=True)} against that of"
        f" {label(compared.b, article=True)}, if one input alone is at an end of its believed"
        " range",
        ("Input", "Best guess", "At the low end", "At the high end"),
        tuple(rows),
    )


def break_evens(compared: Comparison, swings: Sequence[Swing]) -> tuple[str, ...]:
    """Where the cheaper option changes: within the believed ranges, or how far outside."""
    scenario, pair = compared.scenario, (compared.a, compared.b)
    inside = [
        break_even(scenario, swing.path, *pair, low=swing.low, high=swing.high) for swing in swings
    ]
    if results := [item for item in inside if item.values]:
        # Several crossings come from billing in whole steps: they say less than a single one.
        results.sort(key=lambda item: len(item.values) > 1)
        return tuple(_crossing(scenario, item) for item in results)
    outside = [break_even(scenario, swing.path, *pair) for swing in swings[:TOP]]
    return (
        "No single input, anywhere in its believed range, changes which option costs less.",
        *(f"Outside its range: {_crossing(scenario, item)}" for item in outside if item.values),
    )


def _crossing(scenario: Scenario, result: BreakEven) -> str:
    now = quantity(result.path, scenario.inputs[result.path].value, scenario)
    at = [quantity(result.path, value, scenario) for value in result.values]
    names = [label(option, article=True) for option in result.cheaper]
    about = f"{name_of(result.path)} (best guess {now})"
    if len(at) == 1:
        return f"{about}: below {at[0]} {names[0]} costs less, above it {names[1]}."
    more = f" and {len(at) - 3} more values" if len(at) > 3 else ""
    return f"{about}: both cost the same at {', '.join(at[:3])}{more}."


def mfu_table(compared: Comparison) -> Table | None:
    """What every published MFU that fits makes of the comparison; None if no input has any."""
    rows = [
        (
            label(row.path.rpartition(".")[0]),
            f"{row.chip}: {figure(row.key).note}",
            f"{100 * row.value:.1f} %",
            f"{row.ratio:.2f}",
            percent(row.probability),
            label(row.cheaper, article=True),
        )
        for row in by_row(compared)
    ]
    if not rows:
        return None
    first, second = label(compared.a), label(compared.b, article=True)
    return Table(
        f"Each published MFU in place of the best guess: cost of {first} over that of {second}",
        ("Of", "Measured on", "MFU", "Ratio", f"{first} cheaper in", "Costs less"),
        tuple(rows),
    )


def buying(compared: Comparison, option: str) -> Table:
    """The ways to buy the servers of an option: what is paid, when, and for how long."""
    scenario, rows = compared.scenario, []
    for way in ways(scenario, option):
        bound = f"{large(way.bound)} days" if way.bound else "no"
        start = {None: "your choice", 0.0: "nothing"}.get(way.up_front)
        if way.money is not None and way.up_front:
            start = money(way.up_front * way.money, scenario.currency)
        price = "not public" if way.price is None else f"{way.price:,.2f}"
        below = (
            "" if way.price is not None else f", needs less than {spell(way.pays_below)} an hour"
        )
        rows.append(
            (
                way.name,
                price,
                large(way.hours),
                "?" if way.money is None else money(way.money, scenario.currency),
                start or "its fee",
                bound,
                way.verdict + below,
            )
        )
    return Table(
        f"Servers of {label(option, True)} over {over(compared)}, without support and people",
        ("Way to buy", f"{scenario.currency} an hour", "Hours billed", "Cost",
         "Paid before the start", "Bound for", "Against now"),
        tuple(rows),
    )  # fmt: skip


def time(compared: Comparison) -> tuple[str, ...]:
    """When the first result is there, and what a start one week late costs."""
    scenario, texts = compared.scenario, []
    if scenario.kind != "job":
        return ()
    for option in (compared.a, compared.b):
        days = float(compared.best[option].hours) / 24
        weeks = float(scenario.weeks_to_result(option))
        name = label(option, article=True)
        due = "" if scenario.due_weeks is None else f"; it is due after {scenario.due_weeks:g}"
        late = money(late_week(scenario, option), scenario.currency)
        texts.append(
            f"With {name} one run takes {spell(days)} days; its first result is there"
            f" {spell(weeks)} weeks after the decision, port or set-up included{due}. A start one"
            f" week late costs {late}: servers that are paid from a fixed day on, and the team."
        )
    return tuple(text[0].upper() + text[1:] for text in texts)


def measure(compared: Comparison) -> tuple[str, ...]:
    """What is worth knowing better before choosing, and how much. Two digits: it is known less well
    than the costs.
    """
    currency = compared.scenario.currency
    worth = value_of_measuring(compared)
    most = worth.pop("everything")
    everything = money(most, currency, 2)
    least = NEGLIGIBLE * min(abs(float(item.overall)) for item in compared.best.values())
    top = [(path, value) for path, value in worth.items() if value > least][:3]
    if most <= least / 100:
        return ("Nothing, for this choice: within these ranges the same option stays the cheaper.",)
    if not top:
        return (
            "No single input needs to be known better before choosing: the choice would stay the"
            f" same. Knowing all of them would be worth an estimated {everything} at most.",
        )
    points = [
        f"{name_of(path)}: knowing it before choosing is worth an estimated"
        f" {money(value, currency, 2)} over {over(compared)}."
        for path, value in top
    ]
    last = (
        f"Knowing everything would be worth an estimated {everything}: a study has to cost less."
        " That holds if you would otherwise take the option that is cheaper on average;"
        " if you would take the other one, it is worth more."
    )
    return (*points, last)


def lines(compared: Comparison) -> Table:
    """The cost line by line, in the order of a waterfall."""
    pair, currency = (compared.a, compared.b), compared.scenario.currency
    results = [compared.best[option] for option in pair]
    names = [name for name in LINES if any(item.lines.get(name, 0) for item in results)]
    rows = [
        (name, *(amount(float(item.lines.get(name, 0)), currency) for item in results), LINES[name])
        for name in names
    ]
    total = ("total", *(amount(float(item.total), currency) for item in results), "the sum")
    return Table(
        f"Estimated cost of one {PER[compared.scenario.kind]}, line by line; lines that are nothing"
        " for both are left out",
        ("Line", *map(label, pair), "What it is"),
        (*rows, total),
    )


def describe(scenario: Scenario, path: str, item: Input) -> Given:
    """One input with its source as a reader finds it."""
    page = address = item.source
    if item.source in figures():
        quoted = figure(item.source)
        page, address = quoted.page, quoted.source
    # Nothing but a page becomes a link: an address may come from whoever wrote the scenario.
    is_page = address.startswith(("https://", "http://"))
    return Given(
        path=path,
        input=item,
        name=name_of(path),
        value=quantity(path, item.value, scenario),
        believed=range_of(path, item, scenario),
        page=page if is_page else "",
        address=address if is_page else "",
    )


def _value(scenario: Scenario, option: str, field: str) -> float:
    return scenario.inputs_of(option)[field].value


def _bought(scenario: Scenario, option: str) -> str:
    context = scenario.options[option].context
    return f"{context.region}, {PURCHASES.get(context.purchase, context.purchase)}"


def pictures(
    compared: Comparison, swings: Sequence[Swing], narrow: bool = False
) -> tuple[Picture, ...]:
    """A waterfall of both options, and a tornado if any input has a range. narrow: for a phone."""
    scenario, per = compared.scenario, PER[compared.scenario.kind]
    totals = " and ".join(
        f"{money(float(cost.total), scenario.currency)} for {label(option, article=True)}"
        for option, cost in compared.best.items()
    )
    fall = waterfall(
        {label(option): cost for option, cost in compared.best.items()},
        f"{scenario.currency} per {per} (estimate)",
        f"Where the money of one {per} goes, at the best guesses: an estimated {totals}. The last"
        " bar is the total.",
        narrow=narrow,
    )
    if not swings:
        return (fall,)
    shown, a, b = swings[:SHOWN], label(compared.a), label(compared.b, article=True)
    widest = shown[0]
    ranges = [
        f"{shorten(name_of(s.path), 46)}\n{range_of(s.path, scenario.inputs[s.path], scenario)}"
        for s in shown
    ]
    blades = tornado(
        shown,
        compared.saving,
        ranges,
        f"estimated saving with {shorten(a, 30)}, % of the cost of {shorten(b, 30)}",
        f"What one input alone does to the estimate, from the low to the high end of its believed"
        f" range, widest first. {name_of(widest.path)}: {a} costs"
        f" {against(widest.at_low)} at the low end, {against(widest.at_high)} at the high end.",
        narrow,
    )
    return fall, blades
