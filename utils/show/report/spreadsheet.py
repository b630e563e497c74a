"""The inputs and cost lines of a report as a table for spreadsheets."""

import csv
import io
from collections.abc import Iterable

from utils.cost.tco.inputs import Input
from utils.show.report.content import Report

Row = tuple[object, ...]
"""One cell for each of `COLUMNS`."""

COLUMNS = ("kind", "option", "name", "value", "low", "high", "unit", "status", "source", "date",
           "note")  # fmt: skip


def to_csv(report: Report) -> str:
    """One row per input, then one per cost line of each option, in the columns `COLUMNS`; numbers
    are not rounded.
    """
    money = f"{report.currency}/{report.per}"
    return csv_text(
        [
            ("scenario", "", report.title, *[""] * 6, report.date, report.answer),
            *(input_row(item.path, item.input) for item in report.given),
            *(
                cost_row(amount.option, amount.name, amount.amount, money, amount.about)
                for amount in report.amounts
            ),
        ]
    )


def input_row(path: str, item: Input) -> Row:
    """One input of the model."""
    option, _, name = path.rpartition(".")
    return ("input", option, name, item.value, item.low, item.high, item.unit, item.status,
            item.source, item.date or "", item.note)  # fmt: skip


def cost_row(option: str, name: str, amount: float, unit: str, about: str) -> Row:
    """One line of the cost of an option."""
    return ("cost", option, name, amount, "", "", unit, "estimate", "", "", about)


def csv_text(rows: Iterable[Row]) -> str:
    """The text of a table: `COLUMNS`, then the rows."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    writer.writerows([[_safe(cell) for cell in row] for row in rows])
    return text.getvalue()


def _safe(cell: object) -> object:
    """A text that a spreadsheet does not take for a formula.

    >>> _safe("=HYPERLINK(1)"), _safe(-1.5)
    ("'=HYPERLINK(1)", -1.5)
    """
    formula = isinstance(cell, str) and cell.lstrip()[:1] in ("=", "+", "-", "@")
    return f"'{cell}" if formula else cell
