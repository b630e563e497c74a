"""Units of the facts, through pint: conversion, and arithmetic that checks them.

pint is slow to load, and most programs convert nothing: it is imported late.
"""

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pint


@cache
def registry() -> "pint.UnitRegistry":
    """pint's units and those of this field: FLOP, TFLOPS, USD, Gbps; a token is only counted."""
    import pint

    units: pint.UnitRegistry = pint.UnitRegistry(cache_folder=None)
    units.define("FLOP = [floating_point_operation]")
    units.define("FLOPS = FLOP / second")
    units.define("OP = [integer_operation]")
    units.define("OPS = OP / second")
    units.define("USD = [money]")
    units.define("Gbps = 1e9 * bit / second")
    for counted in ("token", "sequence", "parameter", "interruption"):
        units.define(f"{counted} = []")
    return units


def _short(number: float) -> float:
    """Without the last digit, where a product of decimal factors leaves its error."""
    return float(f"{number:.15g}")


@lru_cache(4096)
def convert(value: float, unit: str, to: str) -> float:
    """`value` in another unit.

    >>> convert(24, "MiB", "KiB"), convert(2.9, "TB/s", "B/s")
    (24576.0, 2900000000000.0)

    Raises:
        ValueError: if the units do not measure the same thing, or one is none.
    """
    import pint

    if unit == to:
        return float(value)
    try:
        return _short(registry().Quantity(value, unit).to(to).magnitude)
    except (pint.DimensionalityError, pint.UndefinedUnitError, AttributeError) as error:
        raise ValueError(f"{value} {unit} cannot be given in {to}: {error}") from None


COUNTS = frozenset(
    "chips cores GPUs vCPU rows columns partitions banks lanes engines links stacks processors"
    " interfaces servers cycles layers ratio x".split()
    + ["elements per cycle"]
)
"""Units that only say what is counted: in a formula they are plain numbers."""


def quantity(value: float, unit: str) -> Any:
    """`value` with its unit, for the arithmetic of formulas."""
    return registry().Quantity(value, "" if unit in COUNTS else unit)


def magnitude(result: Any, unit: str) -> float:
    """The number of a formula's result in `unit`. Raises ValueError if it measures something
    else.
    """
    import pint

    try:
        wanted = "" if unit in COUNTS else unit
        return _short((registry().Quantity(1, "") * result).to(wanted).magnitude)
    except pint.DimensionalityError as error:
        raise ValueError(f"the formula gives no {unit}: {error}") from None
