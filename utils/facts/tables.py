"""Figures as a table that says of each where it comes from: `table("trainium2.hbm.bandwidth")`."""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from utils.facts.ages import age
from utils.facts.records import Figure, figure, figures

HEAD = ("figure", "value", "status", "as of", "source")


@dataclass(frozen=True)
class Table:
    """Figures, one per line, with what other sources say below each.

    today: the day on which ages count.
    """

    figures: tuple[Figure, ...]
    today: datetime.date

    def _lines(self) -> list[tuple[Figure, str]]:
        return [
            (item, name)
            for main in self.figures
            for item, name in ((main, main.key), *((other, "but also") for other in main.also))
        ]

    def _when(self, item: Figure) -> str:
        old = age(item, self.today)
        return f"{item.date}, {old}" if old else str(item.date)

    def __repr__(self) -> str:
        rows = [
            (name, item.text, item.status, self._when(item), _make(item) or item.source)
            for item, name in self._lines()
        ]
        return "\n".join(columns([HEAD, *rows], indent=""))

    def _repr_markdown_(self) -> str:
        rows = []
        for item, name in self._lines():
            source = _make(item) or f"[{item.page}]({item.source})"
            rows.append(
                (
                    f"`{name}`" if name == item.key else name,
                    item.text,
                    item.status,
                    self._when(item),
                    source + (f"; {item.note}" if item.note else ""),
                )
            )
        return markdown(HEAD, rows, right=(1,))


def columns(rows: Sequence[Sequence[str]], indent: str = "  ") -> list[str]:
    """Rows of cells as aligned lines of text.

    >>> columns([("reads", "40"), ("executions", "2")], indent="")
    ['reads       40', 'executions  2']
    """
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [(indent + "  ".join(map(str.ljust, row, widths))).rstrip() for row in rows]


def markdown(
    head: tuple[str, ...], rows: Iterable[tuple[object, ...]], right: tuple[int, ...] = ()
) -> str:
    """A table in Markdown; the columns `right` are aligned to the right.

    >>> print(markdown(("topic", "claims"), [("nki", 14)], right=(1,)))
    | topic | claims |
    | --- | ---: |
    | nki | 14 |
    """
    rule = ["---:" if place in right else "---" for place in range(len(head))]
    lines = [head, rule, *([str(cell).replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _make(item: Figure) -> str:
    """How a derived figure is computed, in keys."""
    return "= " + item.formula.replace("{", "").replace("}", "") if item.formula else ""


def table(
    *what: str | Figure | Mapping[str, Figure] | Iterable[Figure],
    today: datetime.date | None = None,
) -> Table:
    """A table of figures.

    Args:
        what: keys; prefixes that end with a dot, such as "trainium2.rate."; figures, or any
            collection of them, such as `figures("trn2.48xlarge.price.")`.
        today: the day on which ages count, by default the one on which this runs.

    Raises:
        KeyError: if no figure has that key or prefix.
    """
    results: list[Figure] = []
    for item in what:
        if isinstance(item, Figure):
            results.append(item)
        elif isinstance(item, Mapping):
            results += item.values()
        elif not isinstance(item, str):
            results += item
        elif item.endswith(".") and figures(item):
            results += figures(item).values()
        else:
            results.append(figure(item))
    return Table(tuple(results), today or datetime.date.today())
