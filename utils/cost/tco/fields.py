"""What the cost models take: one table of fields, each with unit, allowed range and meaning.

A field has no default. A scenario gives every field that its model needs, with a source or the
word "assumption"; a missing or impossible value is refused by name.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

HOURS_PER_YEAR = 8766.0
HOURS_PER_MONTH = HOURS_PER_YEAR / 12


class InputError(ValueError):
    """A value that a cost model cannot take: the field, what was found, what is allowed."""

    def __init__(self, field: str, found: object, allowed: str, hint: str = "") -> None:
        self.field, self.found, self.allowed, self.hint = field, found, allowed, hint
        super().__init__(f"{field} = {found}: allowed is {allowed}" + (f". {hint}" if hint else ""))

    def renamed(self, field: str) -> "InputError":
        """The same error of an input that its reader knows by another name."""
        return InputError(field, self.found, self.allowed, self.hint)


@dataclass(frozen=True)
class Field:
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
    least: float = -np.inf
    most: float = np.inf
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

    def check(self, value: float | np.ndarray, name: str = "") -> None:
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


def _field(
    name: str, unit: str, group: str, label: str, *limits: str | float, about: str = ""
) -> Field:
    """Limits as ("above", 0), ("least", 0) and ("most", 1) in a row."""
    given = dict(zip(limits[::2], limits[1::2], strict=True))
    return Field(name, unit, group, label, **given, about=about)


_POSITIVE = ("above", 0.0)
_COUNTED = ("least", 0.0)
_SHARE = ("least", 0.0, "most", 1.0)
_PART = ("above", 0.0, "most", 1.0)

FIELDS: Mapping[str, Field] = {
    each.name: each
    for each in (
        # What is to be done
        _field("work", "units", "work", "Work of one run",
               *_POSITIVE, about="tokens, samples or items of one good run"),
        _field("flop_per_unit", "FLOP", "work", "Arithmetic for one unit of work", *_POSITIVE),
        _field("runs", "runs", "work", "Good runs over the time considered", "least", 1.0),
        _field("demand", "1/s", "work", "Demand, mean over the day", *_POSITIVE),
        _field("peak_to_mean", "ratio", "work", "Demand at its peak over its mean", "least", 1.0),
        _field("tokens_per_item", "tokens", "work", "Tokens of one item", *_POSITIVE),
        _field("months", "month", "work", "Time that the service runs", *_POSITIVE),
        # How fast
        _field("instances", "servers", "speed", "Servers that work together", "least", 1.0),
        _field("peak", "FLOPS", "speed", "Peak rate of one server",
               *_POSITIVE, about="in the format used"),
        _field("mfu", "ratio", "speed", "Share of the peak rate reached (MFU)", *_PART),
        _field("units_per_second", "1/s", "speed", "Throughput of one server",
               *_POSITIVE, about="as measured"),
        _field("scaling", "ratio", "speed", "Speed kept when servers work together", *_PART),
        _field("load", "ratio", "speed", "Share of the throughput that may be used",
               *_PART, about="waiting grows without limit towards 1"),
        _field("spare", "servers", "speed", "Spare servers",
               *_COUNTED, about="beyond the need, for failures"),
        _field("autoscaled", "ratio", "speed", "Share of the day's swing followed",
               *_SHARE, about="by servers started and stopped"),
        # What an hour costs
        _field("price", "USD/h", "price", "List price of one server", *_COUNTED),
        _field("discount", "ratio", "price", "Discount off the list price",
               *_SHARE, about="for the way of buying"),
        _field("billing_step", "h", "price", "Time is billed in steps of",
               *_COUNTED, about="0: billed as used"),
        _field("credits", "USD", "price", "Credits over the time considered",
               *_COUNTED, about="they pay usage only, never people"),
        _field("support", "ratio", "price", "Support plan, share of the usage", *_COUNTED),
        # What is paid beside the work
        _field("starts", "1", "overheads", "Starts of one run", "least", 1.0),
        _field("startup", "h", "overheads", "Start-up time, without compiling", *_COUNTED),
        _field("compile_cold", "h", "overheads", "Compiling with an empty cache", *_COUNTED),
        _field("compile_warm", "h", "overheads", "Loading from a filled compile cache", *_COUNTED),
        _field("cold_compiles", "1", "overheads", "Starts with an empty compile cache",
               *_COUNTED, about="over all runs"),
        _field("compile_paid", "ratio", "overheads", "Share of servers billed while compiling",
               *_SHARE),
        _field("queue", "h", "overheads", "Billed waiting before a run", *_COUNTED),
        _field("utilisation", "ratio", "overheads", "Share of the billed time in use", *_PART),
        _field("failed_runs", "1", "overheads", "Failed runs for each good one",
               *_COUNTED, about="exploratory ones too"),
        _field("failed_share", "ratio", "overheads", "Share of a run that a failed one takes",
               *_SHARE),
        _field("scale_ups", "1/day", "overheads", "Servers started to follow the demand",
               *_COUNTED),
        _field("releases", "1/month", "overheads", "Releases that compile anew", *_COUNTED),
        # Failures
        _field("failures", "1/year", "failures", "Failures of one server",
               *_COUNTED, about="that stop the run"),
        _field("interruptions", "1/day", "failures", "Interruptions of one spot server",
               *_COUNTED, about="by the owner of the capacity"),
        _field("checkpoint_every", "h", "failures", "Work between two checkpoints", *_POSITIVE),
        _field("checkpoint_write", "h", "failures", "Waiting for one checkpoint", *_COUNTED),
        _field("restart", "h", "failures", "From a failure to work again", *_COUNTED),
        # Data
        _field("storage", "GB", "data", "Data kept", *_COUNTED, about="data, checkpoints, models"),
        _field("storage_months", "month", "data", "Time that data is kept", *_COUNTED),
        _field("storage_price", "USD/GB/month", "data", "Price of storage", *_COUNTED),
        _field("egress", "GB", "data", "Data leaving the cloud for one run", *_COUNTED),
        _field("egress_per_item", "kB", "data", "Data leaving the cloud for one item", *_COUNTED),
        _field("egress_price", "USD/GB", "data", "Price of data leaving the cloud", *_COUNTED),
        # People
        _field("engineers", "people", "people", "Engineers for the port",
               *_COUNTED, about="paid once"),
        _field("weeks", "week", "people", "Weeks that the port takes", *_COUNTED),
        _field("pay", "USD/week", "people", "Cost of one engineer", *_COUNTED),
        _field("operations", "h", "people", "People's hours for operations",
               *_COUNTED, about="for one run, or one month of a service"),
        _field("operations_pay", "USD/h", "people", "Cost of an hour of operations", *_COUNTED),
        # Energy, for the record
        _field("power", "kW", "energy", "Power of one server at work",
               *_COUNTED, about="for the record: in the cloud the price holds it"),
        _field("pue", "ratio", "energy", "Power usage effectiveness (PUE)", "least", 1.0),
        _field("carbon", "kg/kWh", "energy", "Carbon dioxide of the electricity", *_COUNTED),
    )
}  # fmt: skip

GROUPS = tuple(dict.fromkeys(each.group for each in FIELDS.values()))
ENERGY = frozenset(name for name, each in FIELDS.items() if each.group == "energy")
PEAK = frozenset({"flop_per_unit", "peak", "mfu"})
"""Throughput by peak and MFU; otherwise `units_per_second`, measured."""

_PAID = frozenset(
    "price discount credits support startup compile_cold storage storage_price egress_price"
    " engineers weeks pay operations operations_pay".split()
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


def checked(
    kind: str, values: Mapping[str, float | np.ndarray]
) -> Mapping[str, float | np.ndarray]:
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
    import difflib

    close = difflib.get_close_matches(str(name), list(names), 3, 0.5)
    return "one of " + ", ".join(close or sorted(names))
