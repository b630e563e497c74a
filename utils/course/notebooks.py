"""The one canonical form of a notebook file: stable JSON, no traces of the run that made it."""

import json
import re
import sys
from typing import Any

Notebook = dict[str, Any]

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
METADATA_KEPT = ("course", "kernelspec", "language_info")
CELL_METADATA_KEPT = ("deletable", "editable", "exercise", "jupyter", "nbgrader", "tags")
# As JupyterLab itself writes it, so that saving a notebook there changes nothing.
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


_MAGIC = re.compile(r"^([ \t]*)[%!?].*$", re.MULTILINE)


def without_grammars() -> None:
    """Let nbformat load in a fifth of its time: jsonschema, which it imports, spends 1.6 s on
    grammars of web addresses where they are installed; no notebook has an address to be checked.
    """
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


def without_magics(source: str) -> str:
    """A cell's source with `pass` for each line that is for IPython and not for Python.

    Only for what does not parse as it is: a formatter may put an operator at the begin of a line.

    >>> without_magics("if True:\\n    %matplotlib inline")
    'if True:\\n    pass'
    """
    return _MAGIC.sub(r"\1pass", source)


def _outputs(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Pieces of one stream joined; live widgets dropped: their models die with the kernel."""
    kept: list[dict[str, Any]] = []
    for output in outputs:
        if WIDGET_VIEW in output.get("data", {}):
            continue
        before = kept[-1] if kept else {}
        if (
            output["output_type"] == before.get("output_type") == "stream"
            and output["name"] == before["name"]
        ):
            before["text"] += output["text"]
        else:
            kept.append(output)
    return kept


def canonical(notebook: Notebook) -> Notebook:
    """A copy of an executed or edited notebook in canonical form.

    Metadata that names a machine, a run or an editor is gone, execution counts of cells that ran
    are 1 to N, the kernel is plain python3. The content of cells and outputs is not changed.
    """
    without_grammars()
    # Late here and below: nbformat, with its schemas, is slow to load.
    import nbformat

    # A file may keep text as a list of lines: reading joins them, and it copies.
    result = nbformat.reads(json.dumps(notebook), as_version=4)
    metadata = result["metadata"]
    metadata["kernelspec"] = dict(KERNELSPEC)
    metadata["language_info"] = {"name": "python"}
    result["metadata"] = {key: metadata[key] for key in METADATA_KEPT if key in metadata}
    count = 0
    for cell in result["cells"]:
        kept = {key: value for key, value in cell["metadata"].items() if key in CELL_METADATA_KEPT}
        if kept.get("tags") == []:
            del kept["tags"]
        cell["metadata"] = kept
        if cell["cell_type"] != "code":
            continue
        cell["outputs"] = _outputs(cell["outputs"])
        if cell["execution_count"] is not None:
            count += 1
            cell["execution_count"] = count
        for output in cell["outputs"]:
            if "execution_count" in output:
                output["execution_count"] = cell["execution_count"]
    return result


def to_text(notebook: Notebook) -> str:
    """The file content of a notebook: the same notebook gives the same bytes."""
    without_grammars()
    import nbformat

    node = nbformat.from_dict({**notebook, "nbformat": 4, "nbformat_minor": 5})
    nbformat.validate(node)
    return nbformat.writes(node, version=4).rstrip("\n") + "\n"
