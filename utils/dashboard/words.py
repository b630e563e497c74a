"""Values as boxes hold them, and the result in two sentences."""

from utils.report.build import outside
from utils.report.words import PER, against, label, money, percent
from utils.tco.uncertainty import Comparison


def number(value: float) -> str:
    """A value as a box holds it, with separators. One that somebody wrote keeps its digits; one
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
    return f"{value:.9g}"


def costs(compared: Comparison) -> str:
    """One sentence: what each option costs."""
    scenario = compared.scenario
    parts = [
        f"{money(float(cost.total), scenario.currency)} on {label(name, article=True)}"
        for name, cost in compared.best.items()
    ]
    return f"At the best guesses one {PER[scenario.kind]} costs " + " and ".join(parts) + "."


def verdict(compared: Comparison) -> str:
    """The saving with its interval, and how probable it is that the first option is cheaper."""
    a, b = label(compared.a, article=True), label(compared.b, article=True)
    low, high = compared.interval()
    than = "than" if abs(compared.saving) < 1 and round(100 * compared.saving) else "as"
    open_ = " These inputs do not decide it." if low < 0 < high else ""
    sentence = (
        f"{a} costs {against(compared.saving)} {than} {b}; with every input anywhere in its range,"
        f" nine draws of ten lie between {against(low)} and {against(high)}, and {a} is cheaper in"
        f" {percent(compared.probability)} of the draws.{outside(compared)}{open_}"
    )
    return sentence[0].upper() + sentence[1:]
