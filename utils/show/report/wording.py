"""Numbers and inputs of a report in plain words: three digits, separators, units spelled out."""

import datetime
import re
from math import floor, log10

from utils.cost.tco.fields import FIELDS
from utils.cost.tco.inputs import Input
from utils.cost.tco.scenario import Scenario, field_name

PER = {"job": "run", "service": "month"}
PLATFORMS = {"trainium": "Trainium", "gpu": "GPU"}
PURCHASES = {
    "on_demand": "on demand",
    "capacity_block": "Capacity Block",
    "savings_plan": "savings plan",
    "reserved": "reserved",
    "spot": "spot",
    "owned": "owned",
}
_LARGE = ((1e18, "quintillion"), (1e15, "quadrillion"), (1e12, "trillion"), (1e9, "billion"),
          (1e6, "million"))  # fmt: skip
_PREFIXES = ((1e24, "Y"), (1e21, "Z"), (1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"),
             (1e6, "M"))  # fmt: skip
_NAMES = "|".join(name for _, name in _LARGE)
_HELD = re.compile(rf"(?<=\d) (?=%|(?:{_NAMES})\b)|(?<=\b[A-Z]{{3}}) (?=-?\d)")
SHARES = frozenset(
    "mfu scaling load autoscaled discount support compile_paid utilisation failed_share".split()
)
_RATES = {"h": "an hour", "s": "a second", "day": "a day", "week": "a week", "month": "a month",
          "year": "a year", "GB": "a GB", "kWh": "a kWh"}  # fmt: skip
_COUNTS = {"h": "hour", "week": "week", "month": "month", "servers": "server", "runs": "run",
           "tokens": "token", "people": "engineer"}  # fmt: skip


def spell(value: float, digits: int = 3) -> str:
    """A number with so many digits, and no zero behind the point that says nothing.

    >>> spell(123456.7), spell(12.345), spell(0.5), spell(1.9996), spell(0.0)
    ('123,000', '12.3', '0.5', '2', '0')
    """
    if value == 0:
        return "0"
    value = float(f"{value:.{digits}g}")
    places = max(0, digits - 1 - floor(log10(abs(value))))
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if places else text


def large(value: float, digits: int = 3) -> str:
    """A number, from a million on with the name of its size.

    >>> large(2474279.38), large(-1.4e12), large(999.4), large(999_999), large(2.5e30)
    ('2.47 million', '-1.4 trillion', '999', '1 million', '2.5e+30')
    """
    value = float(f"{value:.{digits}g}")
    if abs(value) >= 1e21:
        return f"{value:g}"
    for size, name in _LARGE:
        if abs(value) >= size:
            return f"{spell(value / size, digits)} {name}"
    return spell(value, digits)


def money(value: float, currency: str, digits: int = 3) -> str:
    """An amount; below a hundred with cents, as money is written.

    >>> money(2474279.38, "CHF"), money(-35.7608, "EUR", 4), money(0.5, "CHF")
    ('CHF 2.47 million', 'EUR -35.76', 'CHF 0.50')
    """
    text = large(value, digits)
    if "." in text and abs(value) < 1e6 and len(text.partition(".")[2]) == 1:
        text += "0"
    return f"{currency} {text}"


def amount(value: float, currency: str) -> str:
    """A part of a cost: as money, in cents below one.

    >>> amount(0.0526, "CHF"), amount(-0.0017, "CHF"), amount(0, "CHF"), amount(463.2, "CHF")
    ('CHF 0.05', 'below CHF 0.01', 'CHF 0', 'CHF 463')
    """
    if 0 < abs(value) < 0.005:
        return f"below {currency} 0.01"
    return money(value, currency) if value == 0 or abs(value) >= 1 else f"{currency} {value:.2f}"


def percent(share: float) -> str:
    """A share as per cent; not 0 or 100 where it is not quite that.

    >>> percent(0.66), percent(0.9999), percent(0.0001), percent(-0.004)
    ('66 %', 'more than 99 %', 'less than 1 %', '0 %')
    """
    if 0.99 < share < 1:
        return "more than 99 %"
    if 0 < share < 0.01:
        return "less than 1 %"
    return f"{round(100 * share)} %"


def against(saving: float) -> str:
    """A saving as a comparison of costs, from twice as much on as a multiple.

    >>> against(0.114), against(-0.38), against(0.001), against(-1), against(-2.8)
    ('11 % less', '38 % more', 'the same', 'twice as much', '3.8 times as much')
    """
    whole = round(100 * saving)
    if whole <= -100:
        times = spell(1 - saving, 2)
        return "twice as much" if times == "2" else f"{times} times as much"
    return f"{abs(whole)} % {'less' if whole > 0 else 'more'}" if whole else "the same"


def plural(unit: str) -> str:
    """A unit of more than one."""
    return unit if unit.endswith("s") else unit + "s"


def label(option: str, article: bool = False) -> str:
    """An option as it is read, at most 40 characters; in a sentence with its article.

    >>> label("trainium"), label("gpu", article=True), label("two halls", article=True)
    ('Trainium', 'the GPU', 'two halls')
    """
    name = PLATFORMS.get(option) or shorten(option, 40)
    return f"the {name}" if article and option == "gpu" else name


def name_of(path: str) -> str:
    """An input as it is read.

    >>> name_of("runs"), name_of("gpu.price")
    ('Good runs over the time considered', 'GPU: list price of one server')
    """
    field = field_name(path)
    words = FIELDS[field].label
    option = path[: -len(field) - 1]
    return f"{label(option)}: {words[0].lower() + words[1:]}" if option else words


def quantity(path: str, value: float, scenario: Scenario) -> str:
    """A value of an input with its unit in words: prices with cents, as they are quoted, whole
    numbers as they are, all others with three digits.
    """
    field, unit = field_name(path), scenario.inputs[path].unit
    value = float(f"{value:.9g}")  # 60 minutes may be an hour and a little more
    whole = value.is_integer() and abs(value) < 1e6
    cents = field == "price" and value >= 1
    digits = 6 if whole else 3 + floor(log10(value)) if cents else 3
    shown = large(value, digits)
    if field in SHARES:
        return f"{spell(100 * value)} %"
    if field == "work":
        return f"{shown} {plural(scenario.unit)}"
    if field in ("demand", "units_per_second"):
        return f"{shown} {plural(scenario.unit)} a second"
    if unit in ("FLOP", "FLOPS"):
        return _prefix(value, unit)
    if unit in ("ratio", "1"):
        return shown
    if unit == "h":
        return _time(value)
    first, *per = unit.split("/")
    rates = "".join(f" {_RATES.get(item, 'per ' + item)}" for item in per)
    if re.fullmatch("[A-Z]{3}", first):
        return money(value, first, digits) + rates
    if first == "1":
        return shown + rates
    counted = _COUNTS.get(first)
    return f"{shown} {counted + 's' * (value != 1) if counted else first}{rates}"


def range_of(path: str, item: Input, scenario: Scenario) -> str:
    """The believed range of an input in words; what both ends share is said once."""
    if item.low == item.high:
        return "fixed"
    low = quantity(path, item.low, scenario).split(" ")
    high = quantity(path, item.high, scenario).split(" ")
    if low[0] == high[0]:  # the currency
        high = high[1:]
    same = [a.rstrip("s") == b.rstrip("s") for a, b in zip(low[::-1], high[::-1], strict=False)]
    shared = same.index(False) if False in same else len(same)
    low = low[: len(low) - shared]
    return f"{'0' if item.low == 0 else ' '.join(low)} to {' '.join(high)}"


def sentence(text: str) -> str:
    """With a capital, a full stop and per cent as everywhere in a report.

    >>> sentence("the price rose by 32%")
    'The price rose by 32 %.'
    """
    text = re.sub(r"(?<=\d)%", " %", text)
    return text[:1].upper() + text[1:] + "." * (not text.endswith((".", "?", "!")))


def day(date: datetime.date) -> str:
    """
    >>> day(datetime.date(2026, 11, 5))
    '5 November 2026'
    """
    return f"{date.day} {date:%B %Y}"


def no_break(text: str) -> str:
    """With numbers held together with their signs, currencies and sizes at the ends of lines.

    >>> no_break("CHF 2.5 million, 54 % of it").split(" ")
    ['CHF\\xa02.5\\xa0million,', '54\\xa0%', 'of', 'it']
    """
    return re.sub(_HELD, "\N{NO-BREAK SPACE}", text)


def shorten(text: str, most: int) -> str:
    """A text in one line of at most so many characters.

    >>> shorten("a  long title", 7), shorten("short", 7)
    ('a long…', 'short')
    """
    flat = " ".join(str(text).split())
    return flat if len(flat) <= most else flat[: most - 1].rstrip() + "…"


def _prefix(value: float, unit: str) -> str:
    for size, prefix in _PREFIXES:
        if value >= size:
            return f"{spell(value / size)} {prefix}{unit}"
    return f"{spell(value)} {unit}"


def _time(hours: float) -> str:
    if 0 < hours < 1 / 60:
        return f"{spell(3600 * hours)} seconds"
    if 0 < hours < 1:
        return f"{spell(60 * hours)} minutes"
    return f"{large(hours)} hour{'s' * (hours != 1)}"
