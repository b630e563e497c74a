"""Estimates of all measurements, kept in a file: whole matrix products take minutes to trace.

`python3 course.py nki-validation --record` writes utils/facts/data/nki_validation.json; tests make
the estimates of small kernels again and compare.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from utils.nki.validation.measurements import Measurement, measurements
from utils.nki.validation.report import Comparison, Estimate, Report

FILE = Path(__file__).parents[2] / "facts" / "data" / "nki_validation.json"
DIGITS = 4


def recorded(rows: Iterable[Measurement] | None = None) -> Report:
    """The recorded estimates of all measurements, or of those given.

    Raises LookupError where one was never recorded.

    >>> recorded([measurements()["guide-hoisted"]]).comparisons[0].estimate.busiest
    'tensor'
    """
    kept = _read()
    made = []
    for it in measurements().values() if rows is None else rows:
        if it.id not in kept:
            raise LookupError(
                f"no estimate of {it.id} is recorded; run python3 course.py nki-validation --record"
            )
        made.append(Comparison(it, Estimate(**kept[it.id])))
    return Report(tuple(made))


def record(report: Report) -> None:
    """Keep the estimates of a report; those of other measurements stay as they are."""
    found = _read() | {each.measured.id: _kept(each.estimate) for each in report.comparisons}
    # In the order of the measurements, so that a change shows as a change of numbers alone.
    lines = [
        f"{json.dumps(name)}: {json.dumps(found[name])}" for name in measurements() if name in found
    ]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _read() -> dict[str, dict[str, Any]]:
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def _kept(found: Estimate) -> dict[str, Any]:
    active = {name: round(share, 1) for name, share in found.active.items() if share >= 0.05}
    value = float(f"{found.value:.{DIGITS}g}")
    return {"value": value, "busiest": found.busiest, "active": active}
