"""A result that reads well wherever it lands: as text in a terminal, as HTML in a notebook.

All tables of the repository are made by three functions: `columns` (text), `markdown` and
`html_table`. The first two live in facts, whose own tables use them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from utils.facts.tables import columns, markdown

__all__ = ["Shown", "columns", "html_table", "in_html", "markdown"]


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


def in_html(text: str) -> str:
    """The text escaped, with code where it stands in backticks.

    >>> in_html("`x < 1` is a test")
    '<code>x &lt; 1</code> is a test'
    """
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def link(text: str, target: str) -> Shown:
    """A link in a notebook, its text elsewhere."""
    return Shown(text, f'<a href="{escape(target)}">{in_html(text)}</a>')


def html_table(
    head: Sequence[str], rows: Sequence[Sequence[str | Shown]], caption: str = ""
) -> str:
    """A table with header cells and a caption, readable by a screen reader; all text is escaped.

    Columns that are empty in all rows are left out.
    """

    def cell(content: str | Shown) -> str:
        return content.html if isinstance(content, Shown) else in_html(content)

    used = [place for place in range(len(head)) if any(str(row[place]) for row in rows)]
    line = "".join(
        f'<th scope="col" style="text-align:left">{in_html(head[place])}</th>' for place in used
    )
    body = "".join(
        "<tr>"
        + "".join(f'<td style="text-align:left">{cell(row[place])}</td>' for place in used)
        + "</tr>"
        for row in rows
    )
    named = f'<caption style="text-align:left"><b>{in_html(caption)}</b></caption>'
    return (
        f"<table>{named if caption else ''}"
        f"<thead><tr>{line}</tr></thead><tbody>{body}</tbody></table>"
    )
