"""Number formats of 4 to 32 bits: what they hold, their spacing, and rounding to them.

Everything about a format is computed from four things: exponent bits, mantissa bits, bias, and what
the highest codes mean. NumPy only; held bit for bit to ml_dtypes by tests.

    from utils.chip.formats import FORMATS, round_to
    FORMATS["bf16"].spacing(1.0)
    round_to(x, "e4m3", saturate=True)
"""

from typing import Any

import numpy as np

from utils.chip.formats.layout import Format
from utils.chip.formats.rounding import MODES, rounded, widened

__all__ = ["FORMATS", "MODES", "Format", "format_of", "round_to"]

FORMATS = {
    form.name: form
    for form in (
        Format("fp32", exponent_bits=8, mantissa_bits=23, bias=127),
        Format("tf32", exponent_bits=8, mantissa_bits=10, bias=127),
        Format("bf16", exponent_bits=8, mantissa_bits=7, bias=127),
        Format("fp16", exponent_bits=5, mantissa_bits=10, bias=15),
        Format("e5m2", exponent_bits=5, mantissa_bits=2, bias=15),
        # The same layout twice: with infinities as in IEEE 754 (the E4M3 of NeuronCores up to
        # Trainium2), and with their codes given to numbers (OCP 8-bit floating point, E4M3).
        Format("e4m3", exponent_bits=4, mantissa_bits=3, bias=7),
        Format("e4m3fn", exponent_bits=4, mantissa_bits=3, bias=7, specials="fn"),
        Format("e3m4", exponent_bits=3, mantissa_bits=4, bias=3),
        # The elements of OCP Microscaling blocks below 8 bits, and the scale of a block.
        Format("e3m2", exponent_bits=3, mantissa_bits=2, bias=3, specials="none"),
        Format("e2m3", exponent_bits=2, mantissa_bits=3, bias=1, specials="none"),
        Format("e2m1", exponent_bits=2, mantissa_bits=1, bias=1, specials="none"),
        Format("e8m0", exponent_bits=8, mantissa_bits=0, bias=127, specials="scale"),
    )
}


def format_of(fmt: str | Format) -> Format:
    """The format of that name; a Format is returned as it is."""
    form = FORMATS.get(fmt) if isinstance(fmt, str) else fmt
    if not isinstance(form, Format):
        raise ValueError(f"no format {fmt!r}; there are {', '.join(FORMATS)}")
    return form


def round_to(
    x: Any,
    fmt: str | Format,
    mode: str = "nearest",
    saturate: bool = False,
    rng: np.random.Generator | None = None,
) -> np.ndarray:
    """x with every value rounded once to a value of the format; shape as x.

    x: numbers of up to 64 bits. The result is float64 where x is float64 (or Python numbers, or
    integers of more than 16 bits), float32 otherwise; both hold every value of every format.

    mode: "nearest" (a tie goes to the even mantissa), "toward-zero" (cut off), or "stochastic": to
    one of the two neighbours, to each the more often the nearer it is, so that the mean of many
    roundings is x; it draws from rng.

    What is beyond the format's maximum after rounding becomes infinity, or NaN where the format has
    no infinity, or the maximum where it has neither; with saturate=True always the maximum,
    infinities too (the two conversions of the OCP specification of 8-bit floating point).
    NaN stays NaN; a format without NaN raises ValueError. A scale (e8m0) has no sign and no zero:
    these become NaN, and what is too small becomes the smallest scale.

    >>> round_to([1.00390625, 1.01171875], "bf16").tolist()
    [1.0, 1.015625]
    """
    wide, narrow = widened(x)
    return rounded(wide, format_of(fmt), mode, saturate, rng).astype(narrow, copy=False)[()]
