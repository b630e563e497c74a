"""How far estimates are from what was measured, for kernels that ran as they were published.

Every row is shown with its error, as written and as compiled. Rows of rewritten kernels are no part
of it (`report` has them); texts that do not run as they are printed are counted and named. Which
rows constants may be fitted to is drawn by a seed (`published.fitted_rows`).
"""

import itertools
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from utils.nki.simulator.capacity import check, spilling
from utils.nki.simulator.errors import NkiValidationError
from utils.nki.simulator.launch import run
from utils.nki.simulator.profile import Profile, profile_of
from utils.nki.simulator.timing.compiled import RULES, spilled_bytes
from utils.nki.validation.estimates import SECONDS
from utils.nki.validation.measurements import measurements
from utils.nki.validation.published import (
    Published,
    described_ids,
    failures,
    fitted_rows,
    kernel_of,
    order_reasons,
    published,
)
from utils.nki.validation.report import record_texts, recorded_texts

AIMS = {"median": 0.10, "worst": 0.35, "busiest": 0.90, "pairs": 0.97}
"""Of the held-out rows: errors at most, and shares of busiest engines and pairs at least."""
WAYS = ("as_written", "as_compiled")
PLACES = 6
UNKNOWN = "why is not known"
APART = 1.05
"""The ratio of two measured values from which on a pair is told apart."""


@dataclass(frozen=True)
class Figures:
    """An estimate: value in the measurement's unit, the busiest engine, bytes of HBM."""

    value: float
    busiest: str
    read: int
    written: int
    spilled: int = 0


@dataclass(frozen=True)
class Row:
    """A published measurement with both estimates; one is None where tiles do not fit."""

    measured: Published
    held_out: bool
    text: str
    as_written: Figures | None
    as_compiled: Figures | None

    def error(self, way: str) -> float | None:
        """Of the time, relative to what was measured; of an MFU, of the time that it stands for."""
        result = getattr(self, way)
        if result is None:
            return None
        ratio = result.value / self.measured.value
        return (1 / ratio if self.measured.unit == "%" else ratio) - 1

    def names_the_busiest(self, way: str) -> bool | None:
        """Whether the busiest engine is a published one; None where none is published."""
        result = getattr(self, way)
        if result is None or not self.measured.busy:
            return None
        return result.busiest in self.measured.busy

    def seconds(self, way: str) -> float | None:
        """What orders the steps of a ladder: a time, or one over an MFU."""
        result = getattr(self, way)
        value = None if result is None else result.value
        return value if self.measured.unit != "%" or value is None else 1 / value


@dataclass(frozen=True)
class Accuracy:
    """Rows, and what they say together."""

    rows: tuple[Row, ...]

    @property
    def comparable(self) -> list[Row]:
        """The rows whose text is the one that was measured."""
        return [row for row in self.rows if not row.measured.other_text]

    def errors(self, way: str, held_out: bool) -> list[float]:
        """The absolute errors of one half."""
        result = (row.error(way) for row in self.comparable if row.held_out is held_out)
        return [abs(error) for error in result if error is not None]

    def busiest(self, way: str, held_out: bool) -> tuple[int, int]:
        """How many busiest engines are right, of how many that are published."""
        results = [
            row.names_the_busiest(way) for row in self.comparable if row.held_out is held_out
        ]
        return sum(item is True for item in results), sum(item is not None for item in results)

    def pairs(
        self, way: str, held_out: bool | None = None, ratio: float = 1.0
    ) -> tuple[int, list[tuple[str, str]]]:
        """Pairs of steps of one ladder whose measured values differ: how many, and those that the
        estimates do not order as measured. held_out: only pairs with a row that is held out, or
        without; ratio: only pairs whose measured values are further apart.
        """
        count, inverted = 0, []
        for first, second in itertools.combinations(self.comparable, 2):
            a, b = first.measured, second.measured
            times = first.seconds(way), second.seconds(way)
            if not a.ladder or a.ladder != b.ladder or None in times:
                continue
            if max(a.value, b.value) <= ratio * min(a.value, b.value):
                continue
            if held_out is not None and (first.held_out or second.held_out) is not held_out:
                continue
            count += 1
            faster = (a.value < b.value) != (a.unit == "%")
            if times[0] == times[1] or (times[0] < times[1]) is not faster:  # type: ignore[operator]
                inverted.append((a.id, b.id))
        return count, inverted

    def order_lines(self, way: str) -> list[str]:
        """How many pairs are in order, all and those further apart than `APART`, and which are not.

        No source says how far two runs of a kernel of a ladder are apart, so that no pair is left
        out; texts that come to the same instructions were measured up to 0.3 % apart.
        """
        lines = []
        for ratio, which in ((1.0, ""), (APART, f" measured more than {APART - 1:.0%} apart")):
            parts = []
            for held_out, half in ((None, f"pairs{which}"), (True, "with a row held out")):
                count, inverted = self.pairs(way, held_out, ratio)
                parts.append(f"{count - len(inverted)} of {count} {half}")
            _, inverted = self.pairs(way, None, ratio)
            names = "; ".join(" and ".join(pair) for pair in inverted)
            lines.append(
                f"{way.replace('_', ' ')}: {parts[0]} in order, {parts[1]}"
                + (f"; not: {names}" if names else "")
            )
        return lines if self.pairs(way)[0] else []

    def summary(self) -> list[str]:
        """One line for each figure of each half."""
        lines = []
        for way, held_out in itertools.product(WAYS, (False, True)):
            errors = self.errors(way, held_out)
            if not errors:
                continue
            right, asked = self.busiest(way, held_out)
            worst = self.worst(way, held_out)
            half = "held out" if held_out else "fitted"
            lines.append(
                f"{way.replace('_', ' ')}, {half}: {len(errors)} rows, median error "
                f"{statistics.median(errors):.1%}, worst {max(errors):.1%} ({worst}), "
                f"busiest engine {right} of {asked}"
            )
        lines += [line for way in WAYS for line in self.order_lines(way)]
        missing = [row.measured.id for row in self.comparable if row.as_written is None]
        if missing:
            lines.append(f"as written these do not fit into the memories: {', '.join(missing)}")
        return lines

    def worst(self, way: str, held_out: bool) -> str:
        """The row with the largest error of a half."""
        rows = [row for row in self.comparable if row.held_out is held_out]
        return max(rows, key=lambda row: abs(row.error(way) or 0.0)).measured.id

    def unmet(self) -> list[str]:
        """The aims for held-out rows as compiled that are not met, one sentence each."""
        errors = self.errors("as_compiled", True)
        if not errors:
            return []
        right, asked = self.busiest("as_compiled", True)
        count, inverted = self.pairs("as_compiled", True)
        reached = {
            "median": (statistics.median(errors), "at most"),
            "worst": (max(errors), "at most"),
            "busiest": (right / asked if asked else 1.0, "at least"),
            "pairs": (1 - len(inverted) / count if count else 1.0, "at least"),
        }
        return [
            f"{name}: {value:.1%}, aimed at {how} {AIMS[name]:.0%}"
            for name, (value, how) in reached.items()
            if (value > AIMS[name]) is (how == "at most") and value != AIMS[name]
        ]

    def __repr__(self) -> str:
        head = ("measurement", "chip", "measured", "as written", "error", "as compiled", "error",
                "busiest", "half")  # fmt: skip
        table = [head, *map(_cells, self.rows)]
        uncounted = [row.measured for row in self.rows if row.measured.other_text]
        widths = [max(len(cells[place]) for cells in table) for place in range(len(head))]
        lines = ["  ".join(map(str.ljust, cells, widths)).rstrip() for cells in table]
        others = [
            *(f"{name}: not run, {why}" for name, why in failures().items()),
            *(f"{it.id}: not counted, {it.other_text}" for it in uncounted),
            _rewrites(),
        ]
        return "\n".join([*lines, "", *self.summary(), *self.reasons(), *others])

    def reasons(self) -> list[str]:
        """Why estimates as compiled are further off than aimed at, or not in order."""
        far: dict[str, list[str]] = {}
        for row in self.comparable:
            error = row.error("as_compiled")
            if error is not None and abs(error) > AIMS["worst"]:
                far.setdefault(row.measured.note or UNKNOWN, []).append(row.measured.id)
        return [f"{', '.join(names)}: {why}" for why, names in far.items()] + self._order_reasons()

    def _order_reasons(self) -> list[str]:
        """Why pairs as compiled are not in order, by the first reason that holds both rows."""
        result: dict[str, list[str]] = {}
        for pair in self.pairs("as_compiled")[1]:
            whys = (why for rows, why in order_reasons().items() if rows.issuperset(pair))
            result.setdefault(next(whys, UNKNOWN), []).append(" and ".join(pair))
        return [f"{'; '.join(names)}: {why}" for why, names in result.items()]


def _cells(row: Row) -> tuple[str, ...]:
    it = row.measured
    both = []
    for way in WAYS:
        result, error = getattr(row, way), row.error(way)
        both += ["does not fit", "-"] if result is None else [
            f"{result.value:.4g} {it.unit}", f"{error:+.1%}"
        ]  # fmt: skip
    result = row.as_compiled or row.as_written
    busiest = result.busiest if result else "-"
    if row.names_the_busiest("as_compiled") is False:
        busiest += f", published {' or '.join(it.busy)}"
    half = "not counted" if it.other_text else "held out" if row.held_out else "fitted"
    return it.id, it.target, f"{it.value:g} {it.unit}", *both, busiest, half


def source_kind(name: str) -> str:
    """Which text an estimate of nki_measurements.yaml rests on: "published" where one is known,
    "described" where the page states the instructions, else "rewrite".

    >>> source_kind("gemm-0"), source_kind("transfer-32"), source_kind("pipeline-streamed")
    ('published', 'described', 'rewrite')
    """
    if name in published():
        return "published"
    return "described" if name in described_ids() else "rewrite"


def _rewrites() -> str:
    kinds = [source_kind(name) for name in measurements()]
    return (
        f"Apart and not counted here: {kinds.count('described')} rows of kernels that are described"
        f" and {kinds.count('rewrite')} of rewritten ones, in the table without --published."
    )


# ---- estimates -----------------------------------------------------------------------------------


def estimate(it: Published, folder: Path) -> Row:
    """Both estimates of a published text. FileNotFoundError: its repository is not there."""
    kernel, text = kernel_of(it, folder)
    with spilling():
        program = run(kernel, tuple(it.given()), it.arguments, values=False, target=it.target)
    try:
        check(program)
        as_written = _figures(it, profile_of(program, schedule=it.schedule))
    except NkiValidationError:
        as_written = None
    after = profile_of(program, schedule=it.schedule, as_compiled=RULES)
    return Row(it, it.id not in fitted_rows(), text, as_written, _figures(it, after))


def _figures(it: Published, result: Profile) -> Figures:
    seconds = result.seconds + it.outside
    value = 100 * result.mfu if it.quantity == "mfu" else seconds / SECONDS[it.unit]
    spilled = spilled_bytes(result.program)
    return Figures(
        float(f"{value:.{PLACES}g}"), result.busiest, result.hbm_read, result.hbm_written, spilled
    )


def compare(
    rows: Iterable[Published], folder: Path, before: Callable[[Published], object] = lambda it: None
) -> Accuracy:
    """Estimates these texts of a folder of repositories; calls `before` with each first."""
    made = []
    for it in rows:
        before(it)
        made.append(estimate(it, folder))
    return Accuracy(tuple(made))


# ---- kept estimates ------------------------------------------------------------------------------


def to_record(row: Row) -> dict[str, Any]:
    """What nki_validation.json keeps of a row: the text that ran, and both estimates."""
    repository = row.measured.repository
    return {
        "text": f"{repository.repository}@{repository.commit[:12]}:{row.measured.path}, {row.text}",
        **{way: vars(result) if (result := getattr(row, way)) else None for way in WAYS},
    }


def recorded(rows: Sequence[Published] | None = None) -> Accuracy:
    """The recorded estimates of published texts, all or those given. LookupError: one has none."""
    texts = recorded_texts()
    chosen = list(published().values()) if rows is None else rows
    missing = [it.id for it in chosen if it.id not in texts]
    if missing:
        raise LookupError(
            f"no estimate of {', '.join(missing)} is recorded; run python3 course.py "
            "nki-validation --published FOLDER --record"
        )
    made = []
    for it in chosen:
        entry = texts[it.id]
        both = [Figures(**entry[way]) if entry[way] else None for way in WAYS]
        made.append(Row(it, it.id not in fitted_rows(), entry["text"], *both))
    return Accuracy(tuple(made))


def record(accuracy: Accuracy) -> None:
    """Keep these rows; others stay as they are, in the order of the facts."""
    made = recorded_texts() | {row.measured.id: to_record(row) for row in accuracy.rows}
    record_texts({name: made[name] for name in published() if name in made})
