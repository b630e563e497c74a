"""How good the estimates of kernel times are: published measurements against the timing model.

utils/facts/data/nki_measurements.yaml holds what AWS and others measured on Trainium,
utils/nki/kernels the same kernels in our words. Each is estimated from the shapes of its arrays
alone and compared: times
by their class (`LIMITS`), steps of a ladder by their order, and which engine is the busiest.

    compare()                       all of them, which takes minutes
    compare(select("guide"))        one ladder
    recorded()                      all of them as they were estimated last, at once

What these numbers are worth for a kernel as it is published stands apart, because most of
utils/nki/kernels are rewritten: `published` finds the texts that were measured, `dialect` runs
those of older dialects as they stand, and `accuracy` shows every error, as written and as compiled.

>>> measurements()["guide-hoisted"].kernel
'matmul.hoisted'
"""

from collections.abc import Callable, Iterable

from utils.nki.validation.estimates import estimate
from utils.nki.validation.measurements import CLASSES, Measurement, measurements, select
from utils.nki.validation.report import (
    LEAST_CORRELATION,
    LIMITS,
    Comparison,
    Estimate,
    Report,
    record,
    recorded,
    spearman,
)

__all__ = [
    "CLASSES",
    "LEAST_CORRELATION",
    "LIMITS",
    "Comparison",
    "Estimate",
    "Measurement",
    "Report",
    "select",
    "compare",
    "estimate",
    "measurements",
    "record",
    "recorded",
    "spearman",
]


def compare(
    rows: Iterable[Measurement] | None = None,
    before: Callable[[Measurement], object] = lambda it: None,
) -> Report:
    """Estimates all measurements, or those given, and compares; calls `before` with each first.

    Whole matrix products are traced at their full size, so all rows together take minutes.
    """
    made = []
    for it in measurements().values() if rows is None else rows:
        before(it)
        made.append(Comparison(it, estimate(it)))
    return Report(tuple(made))
