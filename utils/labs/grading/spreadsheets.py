"""Tables as CSV for people who open them in a spreadsheet."""

import csv
import io
import re
from collections.abc import Iterable

_PLAIN = re.compile(r"[+\-@]?[\w.@ -]*", re.ASCII)


def cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula; numbers and plain names stay as they are.

    >>> [cell(text) for text in ("=1+1", "+49 30", "-", "@SUM(A1)", "Jane Doe")]
    ["'=1+1", '+49 30', '-', "'@SUM(A1)", 'Jane Doe']
    """
    risky = text.lstrip()[:1] in ("=", "+", "-", "@", "|", "%") or text[:1] in ("\t", "\r")
    return f"'{text}" if risky and not _PLAIN.fullmatch(text) else text


def csv_text(rows: Iterable[Iterable[str]]) -> str:
    """Rows as CSV, in which no spreadsheet takes a cell for a formula."""
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\n").writerows([cell(text) for text in row] for row in rows)
    return file.getvalue()
