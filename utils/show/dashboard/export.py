"""What is taken along: a table of all inputs, costs, results and warnings, and links that save."""

import base64
from collections.abc import Sequence

from utils.cost.tco.comparison import Warned
from utils.cost.tco.cost import LINES
from utils.cost.tco.uncertainty import Comparison
from utils.show.dashboard.parts import part
from utils.show.report.spreadsheet import Row, cost_row, csv_text, input_row
from utils.show.report.wording import PER, plural


def table(compared: Comparison, warnings: Sequence[Warned]) -> bytes:
    """A CSV file, UTF-8 with the mark by which spreadsheets know it: what the report's table has,
    and results and warnings. Numbers are not rounded.
    """
    scenario = compared.scenario
    money = f"{scenario.currency}/{PER[scenario.kind]}"
    rows: list[Row] = [("scenario", "", scenario.name, *[""] * 7, scenario.title)]
    rows += [input_row(path, item) for path, item in scenario.inputs.items()]
    for option, cost in compared.best.items():
        rows += [
            cost_row(option, name, float(value), money, LINES[name])
            for name, value in cost.lines.items()
        ]
        rows.append(_result(option, "total", float(cost.total), money, *compared.interval(option)))
        per_million = f"{scenario.currency}/million {plural(scenario.unit)}"
        rows.append(_result(option, "per million", float(cost.per_million), per_million))
    rows.append(_result(compared.a, "saving", compared.saving, "share", *compared.interval()))
    rows.append(_result(compared.a, "probability cheaper", compared.probability, "share"))
    rows += [("warning", "", warning.kind, *[""] * 7, warning.text) for warning in warnings]
    return csv_text(rows).encode("utf-8-sig")


def _result(
    option: str, name: str, value: float, unit: str, low: float | str = "", high: float | str = ""
) -> Row:
    """An estimate; low and high hold nine draws of ten."""
    note = "low and high: 5 and 95 % of the draws" if low != "" else ""
    return ("result", option, name, value, low, high, unit, "estimate", "", "", note)


def saving_link(name: str, kind: str, content: bytes) -> str:
    """HTML of a link that holds a file; the page's script follows it once.

    kind: the media type, such as "text/csv".
    """
    data = base64.b64encode(content).decode("ascii")
    return part("saving_link", name, kind, data)
