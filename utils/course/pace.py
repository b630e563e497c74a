"""How long a lesson takes: one formula over what its reader has to do, used wherever minutes stand.

`course.py labs` writes the result into the notebooks; board, tracks and README read it there.
"""

import ast
import math
import re
from typing import Any

from utils.course.catalog import text

WORDS_A_MINUTE, LINES_A_MINUTE = 150, 15
"""Technical prose, and code that is not folded, read with understanding."""
GUESS_MINUTES, CLAIM_MINUTES, RUN_MINUTES = 0.75, 1.0, 3.0
"""A number to predict, a claim to judge, and the start of the kernel with all that cells take."""
STEP = 5

_LINE = re.compile(r"^\d+ min · ", re.MULTILINE)


def minutes(notebook: dict[str, Any]) -> int:
    """Minutes for the cells of a lesson, rounded up to a multiple of five. The paces are judgements
    of ours: a plan for a workshop, and no measurement.

    >>> idea = {"cell_type": "markdown", "source": "word " * 900, "metadata": {}}
    >>> guess = {"cell_type": "code", "source": "predict(a=None, b=None)", "metadata": {}}
    >>> minutes({"cells": [idea, guess]})  # 6 to read, 1.5 for two guesses, 3 to run
    15
    """
    words = lines = guesses = claims = 0
    for cell in notebook["cells"]:
        source = text(cell)
        if cell["cell_type"] == "markdown":
            words += len(source.split())
            continue
        calls = _calls(source)
        guesses += sum(len(call.keywords) for name, call in calls if name == "predict")
        claims += sum(
            len(call.args) + len(call.keywords) for name, call in calls if name == "claims"
        )
        folded = cell["metadata"].get("jupyter", {}).get("source_hidden")
        if not folded and cell.get("id") != "setup":
            lines += sum(bool(line.strip()) for line in source.splitlines())
    total = (
        words / WORDS_A_MINUTE
        + lines / LINES_A_MINUTE
        + guesses * GUESS_MINUTES
        + claims * CLAIM_MINUTES
        + RUN_MINUTES
    )
    return STEP * math.ceil(total / STEP)


def _calls(source: str) -> list[tuple[str, ast.Call]]:
    try:
        tree = ast.parse(source)
    except SyntaxError:  # a magic
        return []
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [(call.func.id, call) for call in calls if isinstance(call.func, ast.Name)]


def write(notebook: dict[str, Any]) -> None:
    """Put the minutes of a lesson into its metadata and the line under its title, in place."""
    result = minutes(notebook)
    notebook["metadata"]["course"]["minutes"] = result
    for cell in notebook["cells"]:
        if _LINE.search(text(cell)):
            cell["source"] = _LINE.sub(f"{result} min · ", text(cell), count=1)
            break
