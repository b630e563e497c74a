"""A scenario so small that its answers are known without a computer: one server works one hour."""

import datetime
from typing import Any

from utils.cost import tco
from utils.cost.tco.scenario import read

TODAY = datetime.date(2026, 7, 1)
NOTHING = (
    "discount credits support startup compile_cold compile_warm cold_compiles compile_paid queue"
    " failed_runs failed_share billing_step failures interruptions checkpoint_write restart storage"
    " storage_months storage_price egress egress_price engineers weeks pay operations"
).split()
ONE = "runs instances scaling starts utilisation checkpoint_every".split()
CONTEXT = {
    "instance": "of.large",
    "region": "nowhere-1",
    "purchase": "on_demand",
    "precision": "bf16",
    "quality": "same",
}


def row_of(name: str, value: Any, low: Any = None, high: Any = None, **more: Any) -> dict[str, Any]:
    """An input as in a scenario file, in the unit of its field."""
    entry = {"value": value, "unit": tco.FIELDS[name].unit, "note": "toy"}
    ends = {} if low is None else {"low": low, "high": high}
    return entry | ends | more


def entry(a: dict[str, Any] | None = None, b: dict[str, Any] | None = None, **shared: Any) -> dict:
    """A comparison of options a and b as in a scenario file: each input is a number, a triple of
    value, low and high, or an entry. Two servers of price 10, one hour of work, measured.
    """

    def entries(inputs: dict[str, Any]) -> dict[str, Any]:
        return {
            name: item if isinstance(item, dict)
            else row_of(name, *(item if isinstance(item, tuple) else (item,)))
            for name, item in inputs.items()
        }  # fmt: skip

    dated = {"source": "https://example.org", "date": TODAY}
    own = {
        "price": row_of("price", 10.0, status="primary", **dated),
        "units_per_second": row_of("units_per_second", 1.0, status="measured", **dated),
    }
    options = {"a": own | (a or {}), "b": own | (b or {})}
    everything = dict.fromkeys(NOTHING, 0.0) | dict.fromkeys(ONE, 1.0) | {"work": 3600.0} | shared
    left = {n: e for n, e in everything.items() if not any(n in (o or {}) for o in (a, b))}
    for option in options.values():
        missing = everything.keys() - left.keys() - option.keys()
        option |= {name: everything[name] for name in missing}
    return {
        "title": "Toy", "about": "A toy.", "kind": "job", "unit": "item",
        "shared": entries(left),
        "options": {
            name: {"context": {"platform": platform} | CONTEXT, "inputs": entries(options[name])}
            for name, platform in (("a", "trainium"), ("b", "gpu"))
        },
    }  # fmt: skip


def toy(
    a: dict[str, Any] | None = None, b: dict[str, Any] | None = None, **shared: Any
) -> tco.Scenario:
    """The scenario of that entry."""
    return read("toy", entry(a, b, **shared))
