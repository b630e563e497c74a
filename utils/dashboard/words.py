"""Numbers and results in words: what a page, and a reader of it, shows and says.

Money and shares are rounded to what the inputs can carry: three digits, whole per cent.
"""

from math import floor, log10

from utils.tco.uncertainty import Comparison

# Between a number and its sign, so that no line ends there.
NBSP = "\N{NO-BREAK SPACE}"
PER = {"job": "per run", "service": "per month"}
_LARGE = ((1e18, "quintillion"), (1e15, "quadrillion"), (1e12, "trillion"), (1e9, "billion"),
          (1e6, "million"))  # fmt: skip


def number(value: float) -> str:
    """A value as a form shows it, with separators. One that somebody wrote keeps its digits; one
    that was computed, and has too many, is rounded to four.

    >>> number(1234567.5), number(0.35), number(2e13), number(1e-5), number(8 / 29)
    ('1,234,567.5', '0.35', '20,000,000,000,000', '1e-05', '0.2759')
    """
    written = float(value).is_integer() or float(f"{value:.9g}") == value
    if not written:
        value = float(f"{value:.4g}")
    if value == 0 or 1e-4 <= abs(value) < 1e15:
        text = f"{value:,.12f}"
        return text.rstrip("0").rstrip(".")
    return f"{value:.7g}"


def end(value: float) -> str:
    """The end of a range: four digits at most, a large one with its name.

    >>> end(2.12325), end(2.0), end(2e13)
    ('2.123', '2', '20 trillion')
    """
    return in_words(value) or f"{value:,.4g}"


def in_words(value: float) -> str:
    """A large value with its name, nothing for others.

    >>> in_words(2e13), in_words(999)
    ('20 trillion', '')
    """
    for size, name in _LARGE:
        if abs(value) >= size:
            return f"{value / size:,.4g} {name}" if abs(value) < 1e21 else ""
    return ""


def rounded(value: float, digits: int = 3) -> str:
    """A result with so many digits and separators.

    >>> rounded(123456.7), rounded(12.345), rounded(0.01234), rounded(-1999)
    ('123,000', '12.3', '0.0123', '-2,000')
    """
    if value == 0:
        return "0"
    places = digits - 1 - floor(log10(abs(value)))
    return f"{round(value, places):,.{max(0, places)}f}"


def money(value: float, currency: str) -> str:
    """An amount.

    >>> money(123456.7, "USD").replace(NBSP, " ")
    'USD 123,000'
    """
    return f"{currency}{NBSP}{rounded(value)}"


def percent(share: float) -> str:
    """A share as whole per cent, with a word where rounding would say never or always.

    >>> [percent(each).replace(NBSP, " ") for each in (0.314, 0.9999, 0.0001, 1.0)]
    ['31 %', 'more than 99 %', 'less than 1 %', '100 %']
    """
    if 0.995 < share < 1:
        return f"more than 99{NBSP}%"
    if 0 < share < 0.005:
        return f"less than 1{NBSP}%"
    return f"{share * 100:.0f}{NBSP}%"


def saved(share: float) -> str:
    """A saving or, below zero, an extra cost.

    >>> [saved(each).replace(NBSP, " ") for each in (0.314, -0.2, 0.001)]
    ['31 % less', '20 % more', 'the same']
    """
    whole = round(share * 100)
    return f"{abs(whole)}{NBSP}% {'less' if whole > 0 else 'more'}" if whole else "the same"


def costs(compared: Comparison) -> str:
    """One sentence: what each option costs."""
    scenario = compared.scenario
    parts = [
        f"{name} {money(float(compared.best[name].total), scenario.currency)}"
        for name in (compared.a, compared.b)
    ]
    return f"At the best guesses {PER[scenario.kind]}: {parts[0]}, {parts[1]}."


def verdict(compared: Comparison) -> str:
    """Two sentences: the saving with its interval, and how probable it is that the first option is
    cheaper.
    """
    a, b = compared.a, compared.b
    low, high = compared.interval()
    than = "than" if round(compared.saving * 100) else "as"
    first = f"{a} costs {saved(compared.saving)} {than} {b}"
    second = (
        f"with every input anywhere in its range, nine draws of ten lie between {saved(low)} and"
        f" {saved(high)}, and {a} is cheaper in {percent(compared.probability)} of the draws"
    )
    open_ = low < 0 < high
    return f"{first}; {second}." + (" These inputs do not decide it." if open_ else "")
