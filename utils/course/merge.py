"""A learner's notebook and a new edition of it, merged cell by cell: three notebooks in, one out.

The third is the edition that the learner began with. Cells are told apart by their ids, and what
counts as a cell's content is its kind, its text and its attachments: a learner who only ran a cell
has not edited it. No text that a learner wrote is ever left out. Standard library only.
"""

import hashlib
import json
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from utils.course.catalog import text
from utils.course.notebooks import Notebook

Cell = dict[str, Any]

# As a kernel of this Python says it: JupyterLab asks "save changes?" wherever the file says less.
LANGUAGE = {
    "codemirror_mode": {"name": "ipython", "version": 3},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
    "version": sys.version.split()[0],
}


class Damaged(ValueError):
    """The content of a file is no notebook."""


def read(content: bytes) -> Notebook:
    """A notebook file's content. Raises Damaged where it cannot be merged."""
    try:
        notebook = json.loads(content)
        for cell in notebook["cells"]:
            "".join([cell["cell_type"], *cell["source"]])
        for metadata in (notebook["metadata"], *(cell["metadata"] for cell in notebook["cells"])):
            metadata.items()
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise Damaged(f"{type(error).__name__}: {error}") from None
    return notebook


def write(notebook: Notebook) -> bytes:
    """The content of a notebook file as JupyterLab writes it."""
    shape: dict[str, Any] = {"indent": 1, "sort_keys": True, "separators": (",", ": ")}
    try:
        return (json.dumps(notebook, ensure_ascii=False, **shape) + "\n").encode()
    except UnicodeEncodeError:  # half a character, which only an escape can hold
        return (json.dumps(notebook, **shape) + "\n").encode()


def saved_by_jupyter(notebook: Notebook) -> bool:
    """Whether a Jupyter wrote this file; what the course writes names no version of Python."""
    return "version" in (notebook["metadata"].get("language_info") or {})


def learner_copy(notebook: Notebook, depth: int) -> Notebook:
    """A lesson or lab as a learner gets it: no outputs, no counts, and clean when it is opened.

    depth: of its folder below the course's. The copy lies one folder deeper, so paths that lead out
    of `notebooks/` and `labs/`, in links and in code, go up once more.
    """
    up = re.compile(rf"(?<=[\"'(])(?=(?:\.\./){{{depth}}}(?!notebooks/|labs/)\w)")
    metadata = {**notebook["metadata"], "language_info": LANGUAGE}
    cells = []
    for old in notebook["cells"]:
        cell = {**old, "metadata": {**old["metadata"]}}
        folded = dict(cell["metadata"].pop("jupyter", {}))
        folded.pop("outputs_hidden", None)
        if folded:
            cell["metadata"]["jupyter"] = folded
        for key in ("collapsed", "scrolled"):
            cell["metadata"].pop(key, None)
        if up.search(text(cell)):
            cell["source"] = up.sub("../", text(cell)).splitlines(keepends=True)
        cells.append(_without_outputs(cell))
    return {**notebook, "metadata": metadata, "cells": cells}


def _without_outputs(cell: Cell) -> Cell:
    return {**cell, "execution_count": None, "outputs": []} if cell["cell_type"] == "code" else cell


def content(cell: Cell) -> tuple[str, str, str]:
    """What of a cell an edit changes."""
    attachments = json.dumps(cell.get("attachments") or {}, sort_keys=True)
    return cell["cell_type"], text(cell), attachments


def contents(notebook: Notebook) -> list[tuple[str, str, str]]:
    """Two notebooks with equal contents differ in outputs and states at most."""
    return [content(cell) for cell in notebook["cells"]]


@dataclass(frozen=True)
class Merged:
    """notes: in words, each cell at which the learner's and the new edition differ."""

    notebook: Notebook
    notes: tuple[str, ...] = ()


def merge(base: Notebook, mine: Notebook, theirs: Notebook) -> Merged:
    """The learner's notebook `mine`, made from the edition `base`, brought to the edition `theirs`.

    A cell that one side left alone is as the other has it. A cell that both changed stays the
    learner's; a Markdown cell below it shows the new one, as text, because running it would undo
    the answer. That cell's id follows from what it shows, so merging again adds nothing.
    """
    old, new = _by_id(base), _by_id(theirs)
    own = _by_id(mine, old)
    groups: dict[str, list[Cell]] = {}
    notes, outdated = [], set()
    for name in _order(old, own, new):
        before, here, there = old.get(name), own.get(name), new.get(name)
        if here is None or there is None:
            kept, note = _one_sided(before, here, there)
        elif there == before:
            kept, note = [here], ""
        elif content(here) == content(there) or before and content(there) == content(before):
            kept, note = [_with_metadata(here, before, there)], ""
        elif before and content(here) == content(before):
            kept, note = [there], ""
        else:
            shown = _show(name, there)
            kept, note = [_with_metadata(here, before, there)], "changed in the course and by you"
            kept += [] if shown["id"] in own else [shown]
            outdated |= {key for key in own if _shows(own[key]) == name[:40] and key != shown["id"]}
        groups[name] = kept
        if note:
            notes.append(f"{name}: {note}")
    cells = [cell for name, kept in groups.items() if name not in outdated for cell in kept]
    # The learner's kernel stays; what the course says of itself is new.
    course = {key: value for key, value in theirs["metadata"].items() if key == "course"}
    metadata = {**theirs["metadata"], **mine["metadata"], **course}
    return Merged({**theirs, "metadata": metadata, "cells": cells}, tuple(notes))


def _one_sided(
    before: Cell | None, here: Cell | None, there: Cell | None
) -> tuple[list[Cell], str]:
    """The cell that only one of the two has, and a note if leaving it out is not what was meant."""
    if there:
        if before is None:
            return [there], ""
        changed = content(there) != content(before)
        return (
            ([there], "changed in the course, deleted by you: it is back") if changed else ([], "")
        )
    if here is None or before and content(here) == content(before):
        return [], ""
    return [here], "no longer in the course; yours stays" if before else ""


def _order(old: Iterable[str], own: Iterable[str], new: Iterable[str]) -> list[str]:
    """All ids: in the order of the new edition, or in the learner's if cells were moved there. What
    the other has besides stands behind the cell that it follows there.
    """
    own, new = list(own), list(new)
    common = [name for name in old if name in own and name in new]
    moved = [name for name in own if name in common] != common
    order, other = (own[:], new) if moved else (new[:], own)
    at = 0
    for name in other:
        if name not in order:
            order.insert(at, name)
        at = order.index(name) + 1
    return order


def _by_id(notebook: Notebook, known: dict[str, Cell] | None = None) -> dict[str, Cell]:
    """The cells by their ids. One that has none gets that of the cell in `known` that it was made
    from, as its grade_id or its content tells, or else a new one.
    """
    cells: dict[str, Cell] = {}
    for cell in notebook["cells"]:
        name = cell.get("id")
        if not isinstance(name, str) or not name:
            graded = (cell["metadata"].get("nbgrader") or {}).get("grade_id")
            same = [k for k, other in (known or {}).items() if content(other) == content(cell)]
            name = next((k for k in [graded, *same] if k in (known or {})), "own")
        number, free = 1, name
        while free in cells:
            number += 1
            free = f"{name[:56]}-{number}"
        cells[free] = {**cell, "id": free}
    return cells


def _with_metadata(here: Cell, before: Cell | None, there: Cell) -> Cell:
    """The learner's cell with the metadata that the course now gives it, and the learner's own."""
    keys = before["metadata"] if before else {}
    own = {key: value for key, value in here["metadata"].items() if key not in keys}
    return {**here, "metadata": {**own, **there["metadata"]}}


def _show(name: str, cell: Cell) -> Cell:
    """A Markdown cell that shows a cell of the course below the learner's."""
    lines = text(cell)
    if cell["cell_type"] == "code":
        fence = max(re.findall("`{3,}", lines), default="``", key=len) + "`"
        lines = f"{fence}python\n{lines}\n{fence}"
    source = (
        "**The course has changed the cell above. Yours stays as it is; this is the new one.**"
        f" Take over what you like, then delete this cell.\n\n{lines}"
    )
    made = {"cell_type": "markdown", "metadata": {}, "source": source.splitlines(keepends=True)}
    if cell.get("attachments"):
        made["attachments"] = cell["attachments"]
    return {**made, "id": f"{name[:40]}-course-{_digest(source)}"}


def _shows(cell: Cell) -> str:
    """The id of the cell below which `_show` put this one; empty if it is not as it was put."""
    match = re.fullmatch(r"(.+)-course-([0-9a-f]{8})", cell["id"])
    return match[1] if match and match[2] == _digest(text(cell)) else ""


def _digest(source: str) -> str:
    return hashlib.sha256(source.encode(errors="surrogatepass")).hexdigest()[:8]
