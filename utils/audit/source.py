"""From the text of one file to findings: Python, notebooks, and files of requirements."""

import ast
import re
import sys
import warnings
from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache

from utils.audit import cells as notebook
from utils.audit import requirements
from utils.audit.model import Broken, Finding
from utils.audit.reader import Reader
from utils.audit.rules import RULES

# Deep enough for long sums of strings; CPython 3.11 and later keep Python calls off the C stack.
DEPTH = 6000
# Found at the name of the method, which may stand lines below the start of the expression.
METHODS = {"cuda-move", "pin-memory", "item-in-loop", "data-dependent-shape"}
IGNORE = re.compile(r"#\s*audit:\s*ignore(?:\[([\w\s,-]*)\])?")
# A file in which none of these words stands can hold no finding; it is only parsed.
WORDS = re.compile(
    r"cuda|nccl|torch|device|pin_mem|lightning|triton|install_requires|"
    + "|".join(
        sorted(set(requirements.PACKAGES) | {"flash", "cupy", "pynvml", "tensorrt", "dali"})
    ),
    re.I,
)
LONGEST = 1000  # characters of a source line that a finding quotes; generated lines are longer
Result = tuple[list[Finding], list[Broken]]


def parse(text: str) -> ast.Module:
    """The syntax tree. Raises ValueError with the line as second argument for what is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as problem:
        raise ValueError(
            f"no Python {sys.version_info[0]}: {problem.msg}", problem.lineno or 0
        ) from None
    except (RecursionError, MemoryError):
        raise ValueError("nested too deeply", 0) from None
    except ValueError as problem:  # null bytes
        raise ValueError(str(problem), 0) from None


def read(tree: ast.Module, local: frozenset[str]) -> Reader:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, DEPTH))
    try:
        return Reader(tree, local)
    except RecursionError:
        raise ValueError("nested too deeply", 0) from None
    finally:
        sys.setrecursionlimit(before)


def python(text: str, path: str, local: frozenset[str] = frozenset()) -> Result:
    """The findings of one Python source."""
    try:
        tree = parse(text)
        if not WORDS.search(text):
            return [], []
        reader = read(tree, local)
    except ValueError as problem:
        return [], [Broken(path, problem.args[1], problem.args[0])]
    lines = text.split("\n")
    found = _findings(reader, path, lambda line: (None, line), lambda line: lines[line - 1])
    return found, []


def _findings(
    reader: Reader,
    path: str,
    place: Callable[[int], tuple[int | None, int]],
    line_at: Callable[[int], str],
) -> list[Finding]:
    found = set()
    for rule, node, severity, note in reader.hits:
        number, offset = node.lineno, node.col_offset
        if rule in METHODS and isinstance(node, ast.Attribute):
            number, offset = node.end_lineno, node.end_col_offset - len(node.attr.encode())
        text = line_at(number)
        if _ignored(rule, text) or _ignored(rule, line_at(node.end_lineno)):
            continue
        before = offset if text.isascii() else len(text.encode()[:offset].decode(errors="ignore"))
        cell, line = place(number)
        written = text.strip()[:LONGEST]
        found.add(Finding(rule, severity, path, line, before + 1, written, cell, note))
    return sorted(found, key=lambda each: each.place)


def _ignored(rule: str, text: str) -> bool:
    match = _comment(text)
    if match is None:
        return False
    return match.group(1) is None or rule in re.split(r"[\s,]+", match.group(1))


@lru_cache(maxsize=16)  # a generated line may be long and hold thousands of findings
def _comment(text: str) -> re.Match[str] | None:
    return IGNORE.search(text)


def cells(text: str, path: str, local: frozenset[str] = frozenset()) -> Result:
    """The findings of a notebook: its cells are one module, a broken cell is left out."""
    try:
        every = notebook.cells(text)
    except ValueError as problem:
        line = getattr(problem, "lineno", 0)
        return [], [Broken(path, line, f"no notebook: {problem}" if line else str(problem))]
    body: list[ast.stmt] = []
    broken, starts, start, found = [], [], 0, []
    for cell in every:
        starts.append(start)
        try:
            tree = parse(cell.python)
            ast.increment_lineno(tree, start)
            body += tree.body
        except ValueError as problem:
            reason, line = problem.args
            broken.append(Broken(path, line, f"code cell {cell.number}: {reason}"))
        start += len(cell.lines)
        for line, rule in cell.rules:
            written = cell.lines[line - 1].strip()
            if not _ignored(rule, written):
                severity = RULES[rule].severity
                found.append(Finding(rule, severity, path, line, 1, written, cell.number))
    try:
        reader = read(ast.Module(body=body, type_ignores=[]), local)
    except ValueError as problem:
        return found, [*broken, Broken(path, 0, problem.args[0])]

    def place(line: int) -> tuple[int, int]:
        index = bisect_right(starts, line - 1) - 1
        return every[index].number, line - starts[index]

    lines = [line for cell in every for line in cell.lines]
    found += _findings(reader, path, place, lambda line: lines[line - 1])
    return sorted(found, key=lambda each: each.place), broken


def needed(
    text: str, path: str, reads: Callable[[str], requirements.Found] = requirements.in_text
) -> Result:
    """The findings of a file of requirements."""
    lines = text.splitlines() or [""]
    found = set()
    try:
        for line, rule, extra in reads(text):
            written = lines[line - 1].strip()
            if not _ignored(rule, written):
                severity, note = ("note", "an optional extra") if extra else ("", "")
                severity = severity or RULES[rule].severity
                found.add(Finding(rule, severity, path, line, 1, written, None, note))
    except (ValueError, RecursionError) as problem:
        return [], [Broken(path, 0, str(problem).splitlines()[0] if str(problem) else "unreadable")]
    return sorted(found, key=lambda each: each.place), []
