"""The code of a notebook: its cells as Python, with IPython's magics taken out line by line."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from utils.audit.requirements import CONDA, in_conda, in_line, in_toml, is_requirements
from utils.audit.rules import NAMES, variable_rule
from utils.audit.scripts import in_script, is_script

PYTHON_LINES = {"time", "timeit", "prun"}
LINE = re.compile(r"^(\s*)(?:%|!)(.*)$")
TAKEN = re.compile(r"^(\s*[\w.,\s]+?=\s*)([!%])(?!=)(.*)$")


@dataclass
class Cell:
    """One code cell: `python` has the same lines as the cell, `rules` come from its commands."""

    number: int
    lines: list[str]
    python: str
    rules: list[tuple[int, str]] = field(default_factory=list)


def cells(text: str) -> list[Cell]:
    """The code cells of a notebook, numbered from 1. Raises ValueError for what is none."""
    try:
        data = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(data, dict):
        raise ValueError("no notebook: not a JSON object")
    sheets = data.get("worksheets")
    every: Any = data.get("cells")
    if isinstance(sheets, list):  # format 3 and older
        every = [
            cell
            for sheet in sheets
            if isinstance(sheet, dict) and isinstance(sheet.get("cells"), list)
            for cell in sheet["cells"]
        ]
    if not isinstance(every, list):
        raise ValueError("no notebook: no list of cells")
    results: list[Cell] = []
    for cell in every:
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            source = cell.get("source", cell.get("input", ""))
            if isinstance(source, list):
                source = "".join(map(str, source))
            results.append(_cell(len(results) + 1, source if isinstance(source, str) else ""))
    return results


def masked(source: str) -> tuple[str, Callable[[str], str]]:
    """A cell as Python with a mark in place of each magic, and what puts the magics back."""
    lines = source.split("\n")
    plain = _cell(1, source).python.split("\n")
    if len(plain) != len(lines):  # a cell of another language
        return "", lambda text: source
    hidden = {f"# trn-audit {number}": line for number, line in enumerate(lines)}

    def restored(text: str) -> str:
        return "\n".join(
            hidden.get(line[line.find("# trn-audit ") :], line) if "# trn-audit " in line else line
            for line in text.split("\n")
        )

    marks = zip(plain, lines, hidden, strict=True)
    return "\n".join(p if p == line else f"{p}  {mark}" for p, line, mark in marks), restored


def _cell(number: int, source: str) -> Cell:
    lines = source.split("\n")
    cell = Cell(number, lines, "")
    kept = list(lines)
    first = next((index for index, line in enumerate(lines) if line.strip()), 0)
    if lines and lines[first].lstrip().startswith("%%"):
        name, _, rest = lines[first].lstrip()[2:].partition(" ")
        if name in NAMES["python_cells"]:
            kept[first] = ""
        elif name in ("writefile", "file") and rest.strip().endswith(".py"):
            kept[first] = ""
        else:
            written = rest.split()[-1:] if name in ("writefile", "file") else []
            text = "\n".join([*[""] * (first + 1), *lines[first + 1 :]])
            if written:
                cell.rules += _in_file(written[0].rpartition("/")[2], text)
            elif name in NAMES["shell_cells"]:
                cell.rules += _in_shell(text)
            return cell
    inside = ""  # an open triple quote: magics are text in there
    continued = False
    for index, line in enumerate(kept):
        if not inside and not continued:
            kept[index] = _line(cell, index, line)
            continued = line.lstrip().startswith(("!", "%")) and line.rstrip().endswith("\\")
        elif continued:
            cell.rules += [(index + 1, rule) for _, rule in _in_shell("pip install " + line)]
            kept[index] = ""
            continued = line.rstrip().endswith("\\")
            continue
        for quotes in re.findall(r'"""|\'\'\'', kept[index]):
            inside = "" if quotes == inside else inside or quotes
    cell.python = "\n".join(kept)
    return cell


def _in_shell(text: str) -> list[tuple[int, str]]:
    """Lines from 1 of a shell's text, with the rules that they break."""
    return [(line, rule) for line, rule, _ in in_script(text)]


def _in_file(name: str, text: str) -> list[tuple[int, str]]:
    """The same for a cell that writes the file `name`; nothing of a file that cannot be read."""
    try:
        if is_requirements(name, ""):
            lines = enumerate(text.splitlines(), 1)
            return [(number, rule) for number, line in lines for rule in in_line(line)]
        if CONDA.match(name):
            return [(line, rule) for line, rule, _ in in_conda(text)]
        if name == "pyproject.toml":
            return [(line, rule) for line, rule, _ in in_toml(text)]
        return [(line, rule) for line, rule, _ in in_script(text, name)] if is_script(name) else []
    except ValueError:
        return []


def _line(cell: Cell, index: int, line: str) -> str:
    """The line as Python of the same width where possible."""
    taken = TAKEN.match(line)
    if taken:
        cell.rules += [(index + 1, rule) for _, rule in _in_shell(taken.group(3))]
        return taken.group(1) + "None"
    if re.match(r"^\s*\?|^\s*[\w.]+\?{1,2}\s*$", line):
        return line[: len(line) - len(line.lstrip())] + "pass"
    magic = LINE.match(line)
    if magic is None:
        return line
    indent, command = magic.groups()
    name, _, rest = command.partition(" ")
    if name in PYTHON_LINES and line.lstrip().startswith("%"):
        rest = re.sub(r"^(\s*-\w+(\s+\d+)?)+\s+", "", rest)
        return indent + (rest.strip() or "pass")
    cell.rules += [(index + 1, rule) for _, rule in _in_shell(command)]
    given = re.match(r"\s*(\w+)", rest) if name in ("env", "set_env") else None
    rule = variable_rule(given.group(1)) if given else ""
    if rule and (index + 1, rule) not in cell.rules:
        cell.rules.append((index + 1, rule))
    return indent + "pass"
