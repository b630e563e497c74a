"""Values as boxes hold them."""


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
