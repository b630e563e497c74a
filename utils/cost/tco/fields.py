"""What the cost models take: one table of fields, each with unit, allowed range and meaning.

A field has no default. A scenario gives every field that its model needs, with a source or the
word "assumption"; a missing or impossible value is refused by name.
"""

import difflib
import math
from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from utils.facts.records import content, read_as

HOURS_PER_YEAR = 8766.0
HOURS_PER_MONTH = HOURS_PER_YEAR / 12
PAID_HOURS_PER_WEEK = 40.0
"""Hours of an engineer's week, by which its pay prices an hour of operations."""


class InputError(ValueError):
    """A value that a cost model cannot take: the field, what was found, what is allowed."""

    def __init__(self, field: str, result: object, allowed: str, hint: str = "") -> None:
        self.field, self.found, self.allowed, self.hint = field, result, allowed, hint
        super().__init__(
            f"{field} = {result}: allowed is {allowed}" + (f". {hint}" if hint else "")
        )

    def renamed(self, field: str) -> "InputError":
        """The same error of an input that its reader knows by another name."""
        return InputError(field, self.found, self.allowed, self.hint)


class Field(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One input of a model.

    name: as in formulas. unit: pint's; "USD" stands for the currency of the scenario. group: where
    a form shows it. label: what it is, in a few words. above: the value is larger than this; least,
    most: it is within these. about: what else there is to say.
    """

    name: str
    unit: str
    group: str
    label: str
    above: float | None = None
    least: float = -math.inf
    most: float = math.inf
    about: str = ""

    @property
    def allowed(self) -> str:
        """The allowed range in words.

        >>> FIELDS["utilisation"].allowed
        'more than 0 and at most 1 (ratio)'
        """
        parts = [
            f"more than {self.above:g}" if self.above is not None else "",
            f"{self.least:g} or more" if np.isfinite(self.least) else "",
            f"at most {self.most:g}" if np.isfinite(self.most) else "",
        ]
        return " and ".join(filter(None, parts)) + f" ({self.unit})"

    def check(self, value: object, name: str = "") -> None:
        """Raise InputError, with the first bad value, unless every value is allowed."""
        given = np.asarray(value)
        # numpy would take "0.3" and True for numbers.
        if given.dtype.kind not in "iuf":
            raise InputError(name or self.name, repr(value), self.allowed, "Give a number")
        numbers = given.astype(float)
        good = np.isfinite(numbers) & (numbers >= self.least) & (numbers <= self.most)
        if self.above is not None:
            good &= numbers > self.above
        if not good.all():
            first = numbers[~good].flat[0] if numbers.ndim else float(numbers)
            raise InputError(name or self.name, f"{first:g}", self.allowed)


FIELDS: Mapping[str, Field] = {
    name: read_as(Field, {"name": name, "group": group, **entry}, f"cost_fields.yaml, {name}")
    for group, entries in content("cost_fields.yaml").items()
    for name, entry in entries.items()
}
GROUPS = tuple(dict.fromkeys(field.group for field in FIELDS.values()))
ENERGY = frozenset(name for name, item in FIELDS.items() if item.group == "energy")
PEAK = frozenset({"flop_per_unit", "peak", "mfu"})
"""Throughput by peak and MFU; otherwise `units_per_second`, measured."""

_PAID = frozenset(
    "price discount credits support startup compile_cold storage storage_price egress_price"
    " engineers weeks pay operations".split()
)
NEEDS: Mapping[str, frozenset[str]] = {
    "job": _PAID
    | frozenset(
        "work runs instances scaling billing_step starts compile_warm cold_compiles compile_paid"
        " queue utilisation failed_runs failed_share failures interruptions checkpoint_every"
        " checkpoint_write restart storage_months egress".split()
    ),
    "service": _PAID
    | frozenset(
        "demand peak_to_mean tokens_per_item months units_per_second load spare autoscaled"
        " scale_ups releases egress_per_item".split()
    ),
}
"""The fields of each model. Of a job, throughput is given in one of two ways; energy may be."""


def check(kind: str, values: Mapping[str, float | np.ndarray]) -> Mapping[str, float | np.ndarray]:
    """The values, after every one was found allowed, none missing and none left unused.

    Raises: InputError.
    """
    missing = sorted(NEEDS[kind] - values.keys())
    if kind == "job" and "units_per_second" not in values and not PEAK <= values.keys():
        missing.append("units_per_second (or " + ", ".join(sorted(PEAK)) + ")")
    if missing:
        first = missing[0].split(" ")[0]
        raise InputError(", ".join(missing), "nothing", FIELDS[first].allowed,
                         "Every input is given, none has a hidden default")  # fmt: skip
    for name, value in values.items():
        field_of(name).check(value)
    taken = NEEDS[kind] | ENERGY | (PEAK | {"units_per_second"} if kind == "job" else set())
    if unused := sorted(values.keys() - taken):
        raise InputError(", ".join(unused), "an input", f"none: a {kind} does not use it",
                         "An input that changes nothing would mislead")  # fmt: skip
    if {"mfu", "units_per_second"} <= values.keys():
        raise InputError("mfu", "given with units_per_second", "one or the other",
                         "A measured throughput needs no MFU")  # fmt: skip
    return values


def field_of(name: str) -> Field:
    """The field of that name. Raises InputError with the nearest names."""
    if name not in FIELDS:
        raise InputError("input", repr(name), nearest(name, FIELDS))
    return FIELDS[name]


def nearest(name: str, names: Iterable[str]) -> str:
    """The names that look most like it, or all, as an InputError says what is allowed."""
    close = difflib.get_close_matches(str(name), list(names), 3, 0.5)
    return "one of " + ", ".join(close or sorted(names))
