"""Read a notebook file that may be anything: its cells, or the reason why there are none."""

import json
from typing import Any

MAX_CELLS = 1000
MAX_SOURCE_CHARS = 1 << 20


class NotANotebook(ValueError):
    """A file that cannot be graded; the text says why."""


def parse(content: bytes) -> list[dict[str, Any]]:
    """The cells of a notebook file: dicts with "type", "source", "names". Raises NotANotebook."""
    if not content.strip():
        raise NotANotebook("it is empty")
    try:
        notebook = json.loads(decoded(content)[0])
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else "not JSON"
        raise NotANotebook(f"it is no notebook ({reason})") from None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise NotANotebook("it is no notebook of format 4 (it has no list of cells)")
    if len(cells) > MAX_CELLS:
        raise NotANotebook(f"it has {len(cells)} cells; at most {MAX_CELLS} are read")
    parsed = [_cell(cell) for cell in cells if isinstance(cell, dict)]
    if sum(len(cell["source"]) for cell in parsed) > MAX_SOURCE_CHARS:
        raise NotANotebook(f"its cells hold more than {MAX_SOURCE_CHARS:,} characters")
    return parsed


def decoded(content: bytes) -> tuple[str, str]:
    """The text of a notebook file, and the name of its encoding if that is not UTF-8."""
    encoding = json.detect_encoding(content)
    try:
        return content.decode(encoding), "" if encoding.startswith("utf-8") else encoding.upper()
    except UnicodeDecodeError:
        return content.decode("cp1252"), "Windows-1252"


def _cell(raw: dict[str, Any]) -> dict[str, Any]:
    source = raw.get("source", "")
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    metadata = raw.get("metadata") if isinstance(raw.get("metadata"), dict) else {}
    nbgrader = metadata.get("nbgrader") if isinstance(metadata.get("nbgrader"), dict) else {}
    # Colab keeps the id of a cell in its metadata.
    names = [nbgrader.get("grade_id"), raw.get("id"), metadata.get("id")]
    source = source if isinstance(source, str) else ""
    return {
        "type": str(raw.get("cell_type")),
        # A lone surrogate is valid JSON but cannot be written to a file again.
        "source": source.encode("utf-8", "replace").decode("utf-8"),
        "names": [name for name in names if isinstance(name, str)],
    }
