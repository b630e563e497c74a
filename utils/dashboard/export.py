"""What is taken along: a table of all inputs, costs, results and warnings, and links that save."""

import base64
import csv
import html
import io
from collections.abc import Sequence

from utils.tco.comparison import Warned
from utils.tco.cost import LINES
from utils.tco.uncertainty import Comparison

COLUMNS = ("kind", "option", "name", "value", "low", "high", "unit", "status", "source", "date",
           "note")  # fmt: skip


def table(compared: Comparison, warnings: Sequence[Warned]) -> bytes:
    """A CSV file, UTF-8 with the mark by which spreadsheets know it: one row per input, line of a
    cost, result and warning, in the columns `COLUMNS`. Numbers are not rounded.
    """
    scenario = compared.scenario
    per = {"job": "run", "service": "month"}[scenario.kind]
    money = f"{scenario.currency}/{per}"
    rows: list[Sequence[object]] = [("scenario", "", scenario.name, "", "", "", "", "", "", "",
                                     scenario.title)]  # fmt: skip
    for path, each in scenario.inputs.items():
        option, _, name = path.rpartition(".")
        rows.append(("input", option, name, each.value, each.low, each.high, each.unit,
                     each.status, each.source, each.date or "", each.note))  # fmt: skip
    for option, cost in compared.best.items():
        for name, value in cost.lines.items():
            rows.append(("cost", option, name, float(value), "", "", money, "", "", "",
                         LINES[name]))  # fmt: skip
        rows.append(("cost", option, "total", float(cost.total), *compared.interval(option), money,
                     "", "", "", "5 to 95 % of the draws"))  # fmt: skip
        per_million = f"{scenario.currency}/million {scenario.unit}s"
        rows.append(("cost", option, "per million", float(cost.per_million), "", "", per_million,
                     "", "", "", ""))  # fmt: skip
    a, b = compared.a, compared.b
    rows.append(("result", a, "saving", compared.saving, *compared.interval(), "share", "", "", "",
                 f"of the cost of {b}; 5 to 95 % of the draws"))  # fmt: skip
    rows.append(("result", a, "probability cheaper", compared.probability, "", "", "share", "", "",
                 "", f"than {b}: share of the draws"))  # fmt: skip
    for each in warnings:
        rows.append(("warning", "", each.kind, "", "", "", "", "", "", "", each.text))
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows(rows)
    return text.getvalue().encode("utf-8-sig")


def saving_link(name: str, kind: str, content: bytes) -> str:
    """HTML of a link that holds a file; the page's script follows it once.

    kind: the media type, such as "text/csv".
    """
    data = base64.b64encode(content).decode("ascii")
    return (
        f"<a data-save download='{html.escape(name)}' href='data:{kind};base64,{data}'>"
        f"{html.escape(name)}</a>"
    )
