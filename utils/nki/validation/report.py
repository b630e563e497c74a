"""Measured against estimated: criteria, ladders, and the table that shows them."""

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from utils.facts.tables import markdown
from utils.nki.validation.measurements import Measurement, measurements, url

LIMITS = {"hard": 0.05, "soft": 0.15}
"""The largest error of an estimate, relative to what was measured."""
LEAST_CORRELATION = 0.9
"""Of the ranks that measurement and estimate give the steps of a ladder (Spearman)."""
HEAD = ("measurement", "chip", "measured", "estimate", "error", "class", "verdict", "busiest")


@dataclass(frozen=True)
class Estimate:
    """What the model says of a measurement: value in its unit, engines and their activity in %."""

    value: float
    busiest: str
    active: dict[str, float]


@dataclass(frozen=True)
class Comparison:
    """A measurement with its estimate."""

    measured: Measurement
    estimate: Estimate

    @property
    def error(self) -> float:
        """Of the estimate, relative to the measurement; positive if it is larger."""
        return self.estimate.value / self.measured.value - 1

    @property
    def holds(self) -> bool | None:
        """Whether the criterion of its class is met; None where there is none for it alone."""
        kind = self.measured.kind
        if kind == "bound":
            return self.error <= 0
        return abs(self.error) <= LIMITS[kind] if kind in LIMITS else None

    @property
    def names_the_busiest(self) -> bool | None:
        """Whether the busiest engine is a published one; None where none is, or none is asked."""
        if not self.measured.busy or self.measured.kind in ("generalise", "kept out"):
            return None
        return self.estimate.busiest in self.measured.busy

    @property
    def verdict(self) -> str:
        """What the table of all rows says of it."""
        if self.holds is None:
            return {"rank": "see ladder", "generalise": "not fitted"}.get(
                self.measured.kind, "not compared"
            )
        if self.measured.kind == "bound":
            return "below" if self.holds else "above the limit"
        limit = f"{LIMITS[self.measured.kind]:.0%}"
        return f"within {limit}" if self.holds else f"off by more than {limit}"


@dataclass(frozen=True)
class Report:
    """Comparisons, and what they say together. Shown as a table in a notebook and in a terminal."""

    comparisons: tuple[Comparison, ...]

    @property
    def ladders(self) -> dict[str, float]:
        """Spearman's correlation for each ladder of three steps or more."""
        steps: dict[str, list[Comparison]] = {}
        for comparison in self.comparisons:
            if comparison.measured.ladder and comparison.measured.kind not in (
                "generalise",
                "kept out",
            ):
                steps.setdefault(comparison.measured.ladder, []).append(comparison)
        return {
            name: spearman([s.measured.value for s in of], [s.estimate.value for s in of])
            for name, of in steps.items()
            if len(of) > 2
        }

    @property
    def failures(self) -> list[str]:
        """What does not hold, one sentence each; empty if the model is as good as it claims."""
        text = []
        for comparison in self.comparisons:
            if comparison.holds is False:
                text.append(
                    f"{comparison.measured.id}: {comparison.error:+.1%}, {comparison.verdict}"
                )
            if comparison.names_the_busiest is False:
                published = " or ".join(sorted(comparison.measured.busy))
                text.append(
                    f"{comparison.measured.id}: busiest is {comparison.estimate.busiest},"
                    f" published {published}"
                )
        for name, correlation in self.ladders.items():
            if correlation < LEAST_CORRELATION:
                text.append(f"ladder {name}: correlation of ranks {correlation:.2f}")
        return text

    @property
    def summary(self) -> list[str]:
        """One line for each criterion: how many met it."""
        lines = []
        for kind, title in (
            ("hard", f"hard, within {LIMITS['hard']:.0%}"),
            ("soft", f"soft, within {LIMITS['soft']:.0%}"),
            ("bound", "upper limits"),
        ):
            results = [
                comparison for comparison in self.comparisons if comparison.measured.kind == kind
            ]
            if results:
                met = sum(bool(item.holds) for item in results)
                lines.append(f"{title}: {met} of {len(results)}{_typical(results)}")
        lines += [f"ladder {name}: {rho:.2f}" for name, rho in self.ladders.items()]
        asked = [
            comparison
            for comparison in self.comparisons
            if comparison.names_the_busiest is not None
        ]
        if asked:
            right = sum(bool(item.names_the_busiest) for item in asked)
            lines.append(f"busiest engine: {right} of {len(asked)}")
        fresh = [
            comparison
            for comparison in self.comparisons
            if comparison.measured.kind == "generalise"
        ]
        if fresh:
            lines.append(f"never looked at when fitting: {len(fresh)}{_typical(fresh)}")
        return lines

    def _rows(self) -> list[tuple[str, ...]]:
        return [_row(comparison) for comparison in self.comparisons]

    def __repr__(self) -> str:
        rows = [HEAD, *self._rows()]
        widths = [max(len(row[place]) for row in rows) for place in range(len(HEAD))]
        table = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join([*table, "", *self.summary])

    def _repr_markdown_(self) -> str:
        rows = [
            (f"[{row[0]}]({url(item.measured.source)})", *row[1:])
            for item, row in zip(self.comparisons, self._rows(), strict=True)
        ]
        lines = "\n".join(f"- {line}" for line in self.summary)
        return f"{markdown(HEAD, rows, right=(2, 3, 4))}\n\n{lines}"


def _row(item: Comparison) -> tuple[str, ...]:
    it, result = item.measured, item.estimate
    published = " or ".join(sorted(it.busy))
    agree = item.names_the_busiest is not False or result.busiest in it.busy
    busiest = result.busiest if agree else f"{result.busiest}, published {published}"
    return (
        it.id,
        it.target,
        f"{it.value:g} {it.unit}",
        f"{result.value:.4g} {it.unit}",
        f"{item.error:+.1%}",
        it.kind,
        item.verdict,
        busiest,
    )


def _typical(result: Sequence[Comparison]) -> str:
    if result[0].measured.kind == "bound":
        return ""
    errors = [abs(item.error) for item in result]
    return f"; error {statistics.median(errors):.1%} in the middle, {max(errors):.1%} at most"


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Correlation of the ranks of two rows of numbers; equal numbers share their mean rank.

    >>> spearman([1, 2, 3, 4], [10, 20, 40, 30])
    0.8
    """
    ranks = [[_rank(item, row) for item in row] for row in (one, other)]
    return round(statistics.correlation(*ranks), 12)


def _rank(number: float, row: Sequence[float]) -> float:
    return sum(other < number for other in row) + (row.count(number) + 1) / 2


# ---- kept estimates: whole matrix products take minutes to trace -------------------------------
#
# `python3 course.py nki-validation --record` writes utils/facts/data/nki_validation.json; tests
# make the estimates of small kernels again and compare.

FILE = Path(__file__).parents[2] / "facts" / "data" / "nki_validation.json"
DIGITS = 4
TEXTS = "published"
"""The key below which the estimates of published texts stand."""


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
    result = _read() | {
        comparison.measured.id: _kept(comparison.estimate) for comparison in report.comparisons
    }
    _write(result, recorded_texts())


def recorded_texts() -> dict[str, dict[str, Any]]:
    """The recorded estimates of published texts by id (`accuracy.to_record`)."""
    return _read().get(TEXTS, {})


def record_texts(entries: dict[str, dict[str, Any]]) -> None:
    """Keep estimates of published texts; those of others stay as they are."""
    _write(_read(), recorded_texts() | entries)


def _write(kept: dict[str, Any], texts: dict[str, Any]) -> None:
    """One line for each, in the order of the facts, so that a change is a change of numbers."""
    lines = [
        f"{json.dumps(name)}: {json.dumps(kept[name])}" for name in measurements() if name in kept
    ]
    inner = [f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in texts.items()]
    lines += [f"{json.dumps(TEXTS)}: {{\n" + ",\n".join(inner) + "\n}"] if inner else []
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _read() -> dict[str, dict[str, Any]]:
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def _kept(result: Estimate) -> dict[str, Any]:
    active = {name: round(share, 1) for name, share in result.active.items() if share >= 0.05}
    value = float(f"{result.value:.{DIGITS}g}")
    return {"value": value, "busiest": result.busiest, "active": active}
