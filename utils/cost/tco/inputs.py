"""One input of a cost model: a value, the range it may have, and where it comes from."""

import dataclasses
import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from utils.cost.tco.fields import Field, InputError, nearest
from utils.facts import STATUSES, figure, figures
from utils.facts import units as facts_units

KINDS = (*STATUSES, "measured", "assumption")
"""Where a value comes from: a quoted figure, a measurement of the reader's own, or nowhere."""
PURCHASES = ("on_demand", "capacity_block", "savings_plan", "reserved", "spot", "owned")
_CURRENCY = re.compile(r"^[A-Z]{3}(?=$|/)")
_DATA = re.compile(r"(?<![A-Za-z])([kMGTPE]i?)?(B|bytes?|bits?)(?![A-Za-z])")


@dataclass(frozen=True)
class Input:
    """One value with its range.

    value: the best guess, between low and high, which are believed to hold it in nearly all cases.
    unit: of all three. status: one of `KINDS`. source: an address, the key of a figure, or of an
    assumption nothing. note: why this range. rows: every published figure that fits, and the chip
    it was measured on; where there are any, low and high are what they span.

    >>> Input(0.35, 0.2, 0.45, "ratio", status="assumption", note="until it is measured").text
    '0.35 ratio (0.2 to 0.45), assumption'
    """

    value: float
    low: float
    high: float
    unit: str
    source: str = ""
    status: str = "assumption"
    date: datetime.date | None = None
    note: str = ""
    rows: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for name in ("value", "low", "high"):
            _check_number(name, getattr(self, name))
        if not self.low <= self.value <= self.high:
            raise InputError("value", f"{self.value:g}",
                             f"between low and high: {self.low:g} to {self.high:g}")  # fmt: skip
        if self.status not in KINDS:
            raise InputError("status", repr(self.status), "one of " + ", ".join(KINDS))
        if self.status != "assumption" and not self.source:
            raise InputError("source", "nothing", "an address or the key of a figure",
                             'Without one the status is "assumption"')  # fmt: skip
        if not self.source and not self.note:
            raise InputError("note", "nothing", "why this value and this range",
                             "An assumption says what it rests on")  # fmt: skip

    @property
    def currency(self) -> str | None:
        """The currency of money, None of anything else."""
        result = _CURRENCY.match(self.unit)
        return result.group() if result else None

    @property
    def chip(self) -> str:
        """The chip that the value was measured on; empty if no published row gives it."""
        return dict(self.rows).get(self.source, "")

    @property
    def text(self) -> str:
        """Value, range and standing in one line."""
        spread = "" if self.low == self.high else f" ({self.low:,g} to {self.high:,g})"
        return f"{self.value:,g} {self.unit}{spread}, {self.status}"

    def scaled(self, factor: float, unit: str | None = None) -> "Input":
        """Value and range times a factor, in another unit if one is given."""
        low, value, high = (item * factor for item in (self.low, self.value, self.high))
        return dataclasses.replace(self, value=value, low=low, high=high, unit=unit or self.unit)

    def fitted(self, field: Field, currency: str) -> "Input":
        """The same in the field's unit.

        Raises: InputError if it measures something else, is money of another currency, or is
            outside of what the field allows.
        """
        wanted = _CURRENCY.sub(currency, field.unit)
        # Also money whose currency is not read from its unit, such as kUSD/h, would be mixed up.
        if _CURRENCY.match(field.unit) and self.currency != currency:
            hint = "A scenario has one currency: convert this input by a rate with a date first"
            raise InputError(field.name, self.unit, f"a unit such as {wanted}",
                             hint if self.currency else "")  # fmt: skip
        fitted = dataclasses.replace(self, unit=wanted)
        if self.unit != wanted:
            # To pint a byte is a number of bits, and a bit a plain number.
            if bool(_DATA.search(self.unit)) != bool(_DATA.search(field.unit)):
                raise InputError(field.name, self.unit, f"a unit such as {wanted}")
            plain = _CURRENCY.sub("USD", self.unit), _CURRENCY.sub("USD", field.unit)
            try:
                fitted = self.scaled(facts_units.convert(1.0, *plain), wanted)
            except ValueError:
                raise InputError(field.name, self.unit, f"a unit such as {wanted}") from None
        for number in (fitted.value, fitted.low, fitted.high):
            field.check(number)
        return fitted

    def at(self, value: float, field: Field) -> "Input":
        """Another value, with the range moved along in proportion, inside of what is allowed. No
        source gives it, so it is an assumption, whatever this one is.
        """
        field.check(value)
        if value == self.value:
            return self
        note = f"changed from {self.value:,g}, {self.status}"
        other = dataclasses.replace(self, status="assumption", source="", date=None, note=note)
        if self.low == self.high:
            return dataclasses.replace(other, value=value, low=value, high=value)
        factor = value / self.value if self.value else 1.0
        low = max(min(self.low * factor, value), field.least, field.above or -float("inf"))
        high = min(max(self.high * factor, value), field.most)
        if field.above is not None and low <= field.above:
            low = value
        return dataclasses.replace(other, value=value, low=low, high=high)


def _check_number(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(name, repr(value), "a number")


def assume(value: float, unit: str, low: float, high: float, why: str) -> Input:
    """A value without a source: what it rests on is said."""
    return Input(value, low, high, unit, note=why)


def quote(
    key: str,
    spread: float = 0.0,
    low: float | None = None,
    high: float | None = None,
    note: str = "",
    rows: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Input:
    """A figure of `utils.facts` as an input.

    spread: share of the value that it may lie above or below; `low` and `high`, in the figure's
    unit, replace either end. rows: chip to the keys of every published figure that fits, which
    span the range.

    >>> quote("trn1.32xlarge.price.on_demand").status
    'primary'

    Raises: InputError if there is no such figure; Unknown if nobody publishes it.
    """
    if key not in figures():
        raise InputError("figure", repr(key), nearest(key, figures()))
    result = figure(key)
    number = float(result.number)
    fitting = tuple((row, chip) for chip, keys in rows.items() for row in keys)
    if fitting:
        if key not in dict(fitting):
            raise InputError("rows", "rows without the figure itself", f"{key} among them")
        values = [figure(row).to(result.unit) for row, _ in fitting]
        low, high = min(values), max(values)
    return Input(
        value=number,
        low=number * (1 - spread) if low is None else low,
        high=number * (1 + spread) if high is None else high,
        unit=result.unit,
        source=key,
        status=result.status,
        date=result.date,
        note=note or result.note,
        rows=fitting,
    )


def price_of(instance: str, purchase: str, spread: float = 0.0) -> Input:
    """The list price of one hour of an instance.

    Raises: InputError that names the instances, or the ways of buying that have a price.
    """
    names = sorted({key.split(".price.")[0] for key in figures() if ".price." in key})
    if instance not in names:
        raise InputError("instance", repr(instance), nearest(instance, names))
    if purchase not in PURCHASES:
        raise InputError("purchase", repr(purchase), "one of " + ", ".join(PURCHASES))
    known = [
        item
        for item in PURCHASES
        if f"{instance}.price.{item}" in figures()
        and figure(f"{instance}.price.{item}").value is not None
    ]
    if purchase not in known:
        raise InputError(
            "price", f"none for {instance}, {purchase}",
            "one of " + ", ".join(known) if known else "a price of your own",
            "Nobody publishes it: give your offer as an input, with its date and source",
        )  # fmt: skip
    return quote(f"{instance}.price.{purchase}", spread)


def parse(entry: Mapping[str, Any], name: str) -> Input:
    """An input as written in a scenario file: `{value, low, high, unit, ...}`, or `{figure,
    spread}`. Raises InputError that names the input.
    """
    try:
        return _parse(entry, name)
    except InputError as error:
        own = error.field == name
        raise error.renamed(name if own else f"{name}: {error.field}") from None


def _parse(entry: Mapping[str, Any], name: str) -> Input:
    known = {field.name for field in dataclasses.fields(Input)} | {"figure", "spread"}
    if unknown := sorted(set(entry) - known):
        raise InputError(name, ", ".join(unknown), "one of " + ", ".join(sorted(known)))
    if "figure" in entry:
        given = {k: entry[k] for k in ("spread", "low", "high", "note", "rows") if k in entry}
        return quote(entry["figure"], **given)
    if not {"value", "unit"} <= entry.keys():
        raise InputError(name, "no value or no unit", "both")
    ends = {"low": entry["value"], "high": entry["value"]}
    if "spread" in entry:
        for item in ("value", "spread"):
            _check_number(item, entry[item])
        spread = entry["spread"] * abs(entry["value"])
        ends = {"low": entry["value"] - spread, "high": entry["value"] + spread}
    return Input(**{**ends, **{k: v for k, v in entry.items() if k != "spread"}})
