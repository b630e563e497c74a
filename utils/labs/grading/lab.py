"""The released lab that takes in a submission's answers: cells, exercises, answer functions.

Points and titles come from the catalog, that is from the metadata of the check cells.
"""

import ast
import json
import re
import threading
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from utils.course import catalog, labgen
from utils.course.earlier import WANTED, Wanted
from utils.xla.env import NO_DEVICE

# What a run skips: checks, because the grader judges itself, and cells that only talk to the
# learner.
SILENT = re.compile(r"(quiz|board)\b")


_one_at_a_time = threading.Lock()
_NO_CHANCE = 6
"""Statements from which on equal programs with other names are worth a remark."""


@dataclass(frozen=True)
class Cell:
    """One cell of a lab notebook.

    kind: "answer", "check", "given" (code that is the same for everyone), "silent" (code that
    grading does not run), "text" or "extra" (a cell that the learner added).
    exercise: for an answer and a check the exercise's name, such as "ex2".
    """

    id: str
    kind: str
    source: str
    exercise: str = ""


@dataclass(frozen=True)
class Exercise:
    """One exercise: its id such as "lab03.ex2", its name "ex2", and the function that the learner
    writes.
    """

    id: str
    name: str
    title: str
    points: float
    function: str


@dataclass(frozen=True)
class Lab:
    """A released lab.

    path: where learners have it, in `labs/`. notebook: the released notebook as read from JSON.
    published: the published solution of each exercise by its name; empty where `solutions/` was
    removed.
    modules: what its cells import, so that a run can import it once for all exercises.
    earlier: the exercises of earlier labs whose answers this one uses, each with its released lab.
    """

    name: str
    title: str
    path: Path
    notebook: dict[str, Any]
    cells: tuple[Cell, ...]
    exercises: tuple[Exercise, ...]
    published: dict[str, str]
    modules: tuple[str, ...]
    earlier: tuple[tuple[Wanted, "Lab"], ...] = ()

    @property
    def environment(self) -> dict[str, str]:
        """Variables of its sandbox: labs that import no torch are run without a device, because to
        start one takes several times as long as to grade them.
        """
        return {} if "torch_xla" in self.modules else {NO_DEVICE: "1"}

    @property
    def points(self) -> float:
        """The points of all exercises together."""
        return sum(exercise.points for exercise in self.exercises)

    @property
    def checks(self) -> dict[str, str]:
        """The id of each exercise's check, by the exercise's name."""
        return {cell.exercise: cell.id for cell in self.cells if cell.kind == "check"}

    @property
    def stubs(self) -> dict[str, Cell]:
        """The answer cell of each exercise as it was released, by the exercise's name."""
        return {cell.exercise: cell for cell in self.cells if cell.kind == "answer"}


def load(root: Path, name: str) -> Lab:
    """Everything there is to know of the released lab `name`, such as "lab03".

    It is made afresh from `solutions/` where that exists, because the notebook in `labs/` may hold
    somebody's answers. Raises CatalogError with the names there are.
    """
    entry = catalog.lab(name, root)
    source = root / "solutions" / entry.path.parent.name / entry.path.name
    if source.exists():
        notebook = json.loads(labgen.learner_version(catalog.read_notebook(source), name))
        published = _answers(catalog.read_notebook(source))
    else:
        notebook, published = catalog.read_notebook(entry.path), {}
    cells: list[Cell] = []
    for raw in notebook["cells"]:
        cell = _cell(raw)
        raw["source"] = cell.source
        if cell.kind == "check":
            # The answer of a check is the answer cell before it.
            at = max(k for k, c in enumerate(cells) if c.kind == "answer" and not c.exercise)
            short = raw["metadata"]["exercise"]["id"].partition(".")[2]
            cells[at] = replace(cells[at], exercise=short)
            cell = replace(cell, exercise=short)
        cells.append(cell)
    answers = {c.exercise: c.source for c in cells if c.kind == "answer"}
    exercises = []
    for exercise in entry.exercises:
        short = exercise.id.partition(".")[2]
        function = answer_function(answers[short])
        exercises.append(
            Exercise(exercise.id, short, exercise.title, float(exercise.points), function)
        )
    by_exercise = {c.exercise: published[c.id] for c in cells if c.exercise and c.id in published}
    modules = _imports(cells)
    # The report in the first cell asks for a device: a late import of some seconds, of which the
    # course's own way to import it saves two fifths.
    if any(module.partition(".")[0] in ("torch", "torch_xla") for module in modules):
        modules = ("utils.xla.fresh.preload", "torch_xla", *modules)
    title = f"Lab {entry.number} · {entry.title}"
    return Lab(
        name,
        title,
        entry.path,
        notebook,
        tuple(cells),
        tuple(exercises),
        by_exercise,
        modules,
        tuple((wanted, load(root, wanted.lab)) for wanted in WANTED.get(name, ())),
    )


def _imports(cells: list[Cell]) -> tuple[str, ...]:
    results: dict[str, None] = {}
    for cell in cells:
        try:
            tree = parse_python(cell.source if cell.kind in ("given", "answer") else "")
        except SyntaxError:  # a magic such as %matplotlib
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                results |= {alias.name: None for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                results |= {node.module: None}
                # "from utils.xla import env" imports a module, "from math import pi" a name.
                if node.module.partition(".")[0] == "utils":
                    results |= {f"{node.module}.{a.name}": None for a in node.names}
    return tuple(results)


def _answers(notebook: dict[str, Any]) -> dict[str, str]:
    return {c.id: c.source for c in map(_cell, notebook["cells"]) if c.kind == "answer"}


def _cell(raw: dict[str, Any]) -> Cell:
    nbgrader = raw["metadata"].get("nbgrader", {})
    source = catalog.text(raw)
    if raw["cell_type"] != "code":
        kind = "text"
    elif nbgrader.get("grade"):
        kind = "check"
    elif nbgrader.get("solution"):
        kind = "answer"
    else:
        kind = "silent" if SILENT.match(raw["id"]) else "given"
    return Cell(nbgrader.get("grade_id") or raw["id"], kind, source)


def parse_python(source: str) -> ast.Module:
    """Like `ast.parse`, and raises what that raises, in one thread at a time and without warnings
    of what others wrote.

    Submissions are graded in threads, and CPython 3.11 counts the depth of a syntax tree for all of
    them together: two at once can end in a SystemError (python/cpython issue 106905).
    """
    with _one_at_a_time, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def answer_function(stub: str) -> str:
    """The function, or where there is none the class, that a released answer cell leaves open.

    >>> answer_function("def half(x): return x / 2\\ndef mean(x):\\n    raise NotImplementedError")
    'mean'
    """
    body = parse_python(stub).body
    functions: list[ast.FunctionDef] | list[ast.ClassDef] = [
        n for n in body if isinstance(n, ast.FunctionDef)
    ] or [n for n in body if isinstance(n, ast.ClassDef)]
    if not functions:
        raise ValueError(f"an answer cell defines neither a function nor a class: {stub[:80]!r}")
    unfinished = [f for f in functions if "NotImplementedError" in ast.dump(f)]
    return (unfinished or functions)[-1].name


def same_code(one: str, other: str) -> str:
    """How two cells are the same program: apart from "comments and docstrings", or also "names",
    where they are long enough that this is no chance; "" if they are not.

    >>> same_code("def f(x): return 2 * x", "def f(x):  # twice\\n    'Twice x.'\\n    return 2*x")
    'comments and docstrings'
    """
    if max(len(one), len(other)) > 50_000:
        return ""
    try:
        trees = parse_python(one), parse_python(other)
        plain = [_bare(tree) for tree in trees]
        if plain[0] == plain[1]:
            return "comments and docstrings"
        renamed = [_rename(tree) for tree in trees]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    long_enough = sum(isinstance(node, ast.stmt) for node in ast.walk(trees[1])) >= _NO_CHANCE
    return "names, comments and docstrings" if renamed[0] == renamed[1] and long_enough else ""


def _rename(tree: ast.AST) -> str:
    """The program with its own names numbered in the order in which they come."""
    own: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            own.setdefault(node.arg, f"_{len(own)}")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.setdefault(node.id, f"_{len(own)}")
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.arg = own[node.arg]
        elif isinstance(node, ast.Name):
            node.id = own.get(node.id, node.id)
    return ast.dump(tree)


def _bare(tree: ast.AST) -> str:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            if isinstance(body[0].value, ast.Constant) and isinstance(body[0].value.value, str):
                del body[0]
    return ast.dump(tree)
