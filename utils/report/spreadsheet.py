"""The inputs and cost lines of a report as a table for spreadsheets."""

import csv
import io

from utils.report.content import Report

COLUMNS = ("kind", "option", "name", "value", "low", "high", "unit", "status", "source", "date",
           "note")  # fmt: skip


def to_csv(report: Report) -> str:
    """One row per input, then one per cost line of each option, in the columns `COLUMNS`; numbers
    are not rounded.
    """
    rows: list[tuple[object, ...]] = [
        ("scenario", "", report.title, *[""] * 6, report.date, report.answer)
    ]
    for each in report.given:
        option, _, name = each.path.rpartition(".")
        it = each.input
        rows.append(("input", option, name, it.value, it.low, it.high, it.unit, it.status,
                     it.source, it.date or "", it.note))  # fmt: skip
    money = f"{report.currency}/{report.per}"
    for each in report.amounts:
        rows.append(("cost", each.option, each.name, each.amount, "", "", money, "estimate", "", "",
                     each.about))  # fmt: skip
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
