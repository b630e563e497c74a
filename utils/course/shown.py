"""A result that reads well wherever it lands: as text in a terminal, as HTML in a notebook."""

import re
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, repr=False)
class Shown:
    """`text` says everything; `html` says the same in a notebook, or is made from the text."""

    text: str
    html: str = ""

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.html or f"<pre>{in_html(self.text)}</pre>"


def columns(rows: list[tuple[str, ...]], indent: str = "  ") -> list[str]:
    """Rows of cells as aligned lines.

    >>> columns([("reads", "40"), ("executions", "2")], indent="")
    ['reads       40', 'executions  2']
    """
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    return [
        (
            indent + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def in_html(text: str) -> str:
    """The text escaped, with code where it stands in backticks.

    >>> in_html("`x < 1` is a test")
    '<code>x &lt; 1</code> is a test'
    """
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def html_table(head: tuple[str, ...], rows: list[tuple[str, ...]], caption: str) -> str:
    """A table with header cells and a caption, readable by a screen reader; all text is escaped.

    Columns that are empty in all rows are left out.
    """
    used = [place for place in range(len(head)) if any(row[place] for row in rows)]
    line = "".join(
        f'<th scope="col" style="text-align:left">{in_html(head[place])}</th>' for place in used
    )
    body = "".join(
        "<tr>"
        + "".join(f'<td style="text-align:left">{in_html(row[place])}</td>' for place in used)
        + "</tr>"
        for row in rows
    )
    return (
        f'<table><caption style="text-align:left"><b>{in_html(caption)}</b></caption>'
        f"<thead><tr>{line}</tr></thead><tbody>{body}</tbody></table>"
    )
