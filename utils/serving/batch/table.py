"""Read a table of items: CSV, JSON lines or Parquet, with a column of ids and one of texts.

What is no item is set aside with its reason, and a second row with the same id becomes a note:
every row ends in exactly one of the three. Whole tables are held in memory.
"""

import csv
import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from utils.serving.batch.places import content

Entry = dict[str, Any]
FORMATS = (".csv", ".jsonl", ".ndjson", ".parquet")


@dataclass(frozen=True)
class Item:
    """row: its line in the file, or its number from 1 on in Parquet."""

    id: str
    text: str
    row: int


@dataclass(frozen=True)
class Table:
    """aside: rows that are no items, each with `row`, `reason` and what was found. notes: of ids
    that were seen before, and of an end that may be torn. sha256: of the file.
    """

    items: tuple[Item, ...]
    aside: tuple[Entry, ...]
    notes: tuple[Entry, ...]
    sha256: str


class _Bad(ValueError):
    """A row that cannot be read: why, and what was found."""


def read(address: str, id_column: str = "id", text_column: str = "text") -> Table:
    """The items at a path or an address. Raises ValueError for a table that cannot be read at all,
    FileNotFoundError.
    """
    ending = "." + address.rpartition(".")[2].lower()
    if ending not in FORMATS:
        raise ValueError(f"{address} is no table that can be read: give {', '.join(FORMATS)}")
    data = content(address)
    rows = {".csv": _csv, ".parquet": _parquet}.get(ending, _json_lines)(data)
    items: dict[str, Item] = {}
    aside: list[Entry] = []
    notes: list[Entry] = []
    for number, result in rows:
        try:
            if isinstance(result, _Bad):
                raise result
            item = _item(number, result, id_column, text_column)
        except _Bad as bad:
            reason, what = bad.args
            aside.append({"row": number, "reason": reason, "found": what})
            continue
        first = items.setdefault(item.id, item)
        if first is not item:
            same = "the same text" if first.text == item.text else "another text"
            note = f"the id was seen in row {first.row}, which counts; this row has {same}"
            notes.append({"row": number, "id": item.id, "note": note})
    if not items and not aside:
        raise ValueError(f"{address} has no rows: a run needs one or more")
    if ending != ".parquet" and not data.endswith(b"\n"):
        last = max([*(item.row for item in items.values()), *(entry["row"] for entry in aside)])
        note = "the file ends without a line break: its last row may be torn"
        notes.append({"row": last, "note": note})
    digest = hashlib.sha256(data).hexdigest()
    return Table(tuple(items.values()), tuple(aside), tuple(notes), digest)


def _item(number: int, result: Entry, id_column: str, text_column: str) -> Item:
    shown = {str(name): _show(value) for name, value in result.items()}
    missing = [name for name in (id_column, text_column) if name not in result]
    if missing:
        raise _Bad(f"no column {missing[0]!r}", shown)
    name, text = result[id_column], result[text_column]
    if isinstance(name, int) and not isinstance(name, bool):
        name = str(name)
    for column, value in ((id_column, name), (text_column, text)):
        if not isinstance(value, str):
            raise _Bad(f"{column} is {_show(value)}, not a text", shown)
        if not value.strip():
            raise _Bad(f"{column} is empty", shown)
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _Bad(f"{column} is not UTF-8", shown) from None
    return Item(name, text, number)


def _show(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text.encode(errors="backslashreplace").decode()


def _text(data: bytes) -> str:
    return data.decode("utf-8-sig", errors="surrogateescape")


def _csv(data: bytes) -> Iterator[tuple[int, Entry | _Bad]]:
    lines = io.StringIO(_text(data), newline="").readlines()
    rows = csv.reader(lines, strict=True)
    header: list[str] = []
    while True:
        begin = rows.line_num
        try:
            values = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raw = _show("".join(lines[begin : rows.line_num]))
            yield begin + 1, _Bad(f"not CSV: {error}", raw)
            continue
        if not values:
            continue
        if not header:
            header = values
        elif len(values) != len(header):
            reason = f"{len(values)} values for {len(header)} columns"
            yield begin + 1, _Bad(reason, [_show(value) for value in values])
        else:
            yield begin + 1, dict(zip(header, values, strict=True))


def _json_lines(data: bytes) -> Iterator[tuple[int, Entry | _Bad]]:
    for number, line in enumerate(_text(data).split("\n"), 1):
        if not line.strip():
            continue
        try:
            result = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield number, _Bad(f"not JSON: {error}", _show(line))
            continue
        good = isinstance(result, dict)
        yield number, result if good else _Bad("not an object", _show(line))


def _parquet(data: bytes) -> Iterator[tuple[int, Entry | _Bad]]:
    try:
        import pyarrow  # late, and optional: the other formats do without
        import pyarrow.parquet
    except ImportError:
        raise ValueError(
            "reading Parquet needs pyarrow, which is not installed: `pip install pyarrow`, or give"
            " CSV or JSON lines"
        ) from None
    try:
        # Not through pandas, which turns whole numbers into floats where one is missing.
        rows = pyarrow.parquet.read_table(pyarrow.BufferReader(data)).to_pylist()
    except pyarrow.ArrowException as error:
        raise ValueError(
            f"the Parquet file cannot be read ({error}): its index is at its end, so one that is"
            " torn has to be copied again"
        ) from None
    yield from enumerate(rows, 1)
