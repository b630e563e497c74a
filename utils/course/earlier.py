"""The learner's own answers to earlier labs, read from the notebooks beside the one that asks.

    mine = earlier.answers()
    mine.save(path, run)            # the learner's, from ../lab08_*/lab08_*.ipynb

Of each notebook the cell of imports and the answer cell are run, in a namespace of their own; of
the other cells above the answer only what they define: imports, functions, classes and plain
constants, because an answer may use them. Nothing else of the notebook is run. An answer that is
not there is asked for by lab and exercise, when it is used.
"""

import ast
import json
import linecache
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from utils.course import catalog
from utils.course.catalog import CatalogError
from utils.course.notebooks import without_magics

IMPORTS = "imports"
"""The id of the cell with a lab's imports."""


@dataclass(frozen=True)
class Wanted:
    """An exercise whose functions a later lab uses."""

    lab: str
    exercise: str
    functions: tuple[str, ...]

    @property
    def id(self) -> str:
        """Such as "lab08.ex1"."""
        return f"{self.lab}.{self.exercise}"

    @property
    def cell(self) -> str:
        """The id of its answer cell."""
        return f"{self.exercise}-code"

    @property
    def words(self) -> str:
        """
        >>> Wanted("lab08", "ex1", ("save", "resume")).words
        'lab 08, exercise 1 (save, resume)'
        """
        number = self.exercise.removeprefix("ex")
        return f"lab {self.lab[3:]}, exercise {number} ({', '.join(self.functions)})"


WANTED = {
    "lab15": (
        Wanted("lab04", "ex3", ("bucketed_losses",)),
        Wanted("lab06", "ex3", ("bench",)),
        Wanted("lab08", "ex1", ("save", "resume")),
        Wanted("lab11", "ex1", ("add_lora", "merge")),
    )
}
"""By the lab that uses them: the exercises of earlier labs."""


def functions(lab: str) -> list[str]:
    """The names of all functions that a lab uses."""
    return [name for item in WANTED[lab] for name in item.functions]


KINDS = MappingProxyType(
    {
        "missing": "its notebook is not there",
        "broken": "its notebook cannot be read",
        "unanswered": "it is not attempted yet",
        "syntax": "one of its cells is not valid Python",
        "raised": "one of its cells raises an error when it runs",
        "name": "the function is not defined in its answer cell",
    }
)
"""What may be wrong with an earlier answer, by the name of the problem."""


@dataclass(frozen=True)
class Problem:
    """Why an exercise gives no functions. kind: a key of KINDS. detail: where, for its author."""

    wanted: Wanted
    kind: str
    detail: str = ""

    def __str__(self) -> str:
        place = f": {self.detail}" if self.detail else ""
        return f"{self.wanted.words}: {KINDS[self.kind]}{place}"


class NotThere(RuntimeError):
    """An earlier answer that is used and is not there; the text says what to do."""


class Earlier:
    """The functions of earlier answers as attributes; `problems` of those that are not there."""

    def __init__(
        self,
        functions: dict[str, Callable[..., Any]],
        problems: list[Problem],
        read: Callable[[], "Earlier"] | None = None,
    ) -> None:
        """read: how to read them once more."""
        self.functions = MappingProxyType(dict(functions))
        self.problems = tuple(problems)
        self._read = read

    def again(self) -> "Earlier":
        """The same answers as their notebooks are now, if they came from notebooks."""
        return self._read() if self._read else self

    def __getattr__(self, name: str) -> Callable[..., Any]:
        result = vars(self)
        if name in result.get("functions", {}):
            return result["functions"][name]
        for problem in result.get("problems", ()):
            if name in problem.wanted.functions:
                raise NotThere(f"`{name}` comes from {problem}. Solve it there, then come back")
        raise AttributeError(f"no earlier answer is called {name!r}")

    def __repr__(self) -> str:
        lines = [f"{name}: {describe(function)}" for name, function in self.functions.items()]
        return "\n".join([*lines, *map(str, self.problems)])


def describe(function: Callable[..., Any]) -> str:
    """Where a function comes from, such as "lab08.ex1"."""
    return str(getattr(function, "__module__", "")).removeprefix("answers to ")


def answers(lab: str = "lab15", folder: Path | None = None) -> Earlier:
    """The answers that `lab` uses, from the notebooks beside it.

    folder: of the notebook that asks, such as labs/lab15_torchneuron; the working folder if not
    given. In solutions/ the others are solutions too.
    """
    here = (folder or Path.cwd()).resolve()
    functions: dict[str, Callable[..., Any]] = {}
    problems = []
    for wanted in WANTED[lab]:
        result = _of(wanted, here)
        if isinstance(result, Problem):
            problems.append(result)
        else:
            functions |= result
    return Earlier(functions, problems, lambda: answers(lab, here))


def _of(wanted: Wanted, here: Path) -> dict[str, Callable[..., Any]] | Problem:
    paths = sorted(here.parent.glob(f"{wanted.lab}_*/{wanted.lab}_*.ipynb"))
    if not paths:
        place = f"{here.parent.name}/{wanted.lab}_*"
        advice = "this notebook has to run in its own folder of labs/, beside the other labs"
        return Problem(wanted, "missing", f"looked for {place}; {advice}")
    # Jupyter's copies lie beside a notebook, which is called as its folder.
    path = next((item for item in paths if item.stem == item.parent.name), paths[0])
    try:
        cells = [c for c in catalog.read_notebook(path)["cells"] if c["cell_type"] == "code"]
    except (CatalogError, KeyError, TypeError) as error:
        return Problem(wanted, "broken", str(error)[:200])
    return functions_of(wanted, [(_name(cell), catalog.text(cell)) for cell in cells])


def _name(cell: dict[str, Any]) -> str:
    metadata = cell.get("metadata", {})
    return metadata.get("nbgrader", {}).get("grade_id") or cell.get("id") or ""


def functions_of(
    wanted: Wanted, cells: list[tuple[str, str]]
) -> dict[str, Callable[..., Any]] | Problem:
    """The functions that an exercise's cells define, by name; or what is wrong.

    cells: (id, source) of the code cells of the notebook, in their order.

    >>> half = Wanted("lab99", "ex1", ("half",))
    >>> functions_of(half, [("ex1-code", "def half(x): return x / 2")])["half"](3)
    1.5
    """
    at = [k for k, (name, _) in enumerate(cells) if name == wanted.cell]
    at = at or [k for k, (_, text) in enumerate(cells) if f"def {wanted.functions[0]}(" in text]
    if not at:
        return Problem(wanted, "name", f"there is no cell {wanted.cell}")
    answer = cells[at[-1]][1]
    if f'NotImplementedError("{wanted.id}: not attempted' in answer:
        return Problem(wanted, "unanswered")
    # Not the name of a module that can be imported: then cloudpickle sends the code along.
    names: dict[str, Any] = {"__name__": f"answers to {wanted.id}"}
    for place, (name, source) in enumerate(cells[: at[-1] + 1]):
        whole = place == at[-1] or name == IMPORTS
        try:
            tree = _parse(source)
        except (SyntaxError, ValueError, RecursionError) as error:
            if not whole:
                continue
            line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
            return Problem(wanted, "syntax", f"cell {name}{line}")
        if not whole:
            tree.body = list(_definitions(tree))
        try:
            _run(tree, source, f"<{wanted.lab} {name or place}>", names)
        except (Exception, SystemExit) as error:
            if not whole:
                continue  # what it defines is missing, if the answer uses it
            sentence = f"cell {name} raises {type(error).__name__}: {str(error)[:160]}"
            return Problem(wanted, "raised", sentence)
    functions: dict[str, Callable[..., Any]] = {}
    for name in wanted.functions:
        if not callable(function := names.get(name)):
            return Problem(wanted, "name", f"`{name}` in cell {wanted.cell}")
        functions[name] = function
    return functions


def _parse(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.parse(without_magics(source))


def _definitions(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements that only define something."""
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for item in tree.body:
        if isinstance(item, kinds):
            yield item
        elif isinstance(item, ast.Assign | ast.AnnAssign) and item.value is not None:
            try:
                ast.literal_eval(item.value)
            except (ValueError, TypeError, MemoryError, RecursionError):
                continue
            yield item


def _run(tree: ast.Module, source: str, name: str, names: dict[str, Any]) -> None:
    """Execute a cell; afterwards Python knows its source, as in a notebook."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(tree, name, "exec"), names)


def notebook(cells: list[tuple[str, str]]) -> bytes:
    """A notebook file with nothing but these code cells, (id, source), as `answers` reads it."""
    made = [{"cell_type": "code", "id": n, "metadata": {}, "source": s} for n, s in cells]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()
