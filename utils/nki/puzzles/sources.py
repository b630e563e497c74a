"""What the file of a kernel says that makes it no solution: cheats by name, found without running.

    reads-expected    looks for the result, or for the check, instead of computing
    host-computation  calculates in Python (NumPy, torch) what engines are to calculate
    host-output       reaches behind a tensor, to write by host code
    precomputed       holds numbers of a result
    state             keeps something from one call to the next
    import            imports what a kernel does not need

What is not seen here is seen when the kernel runs: `judging`.
"""

import ast
from collections.abc import Iterator
from typing import NamedTuple

ALLOWED = ("nki", "math")
NUMERIC = ("numpy", "torch", "torch_xla", "scipy", "jax", "ml_dtypes", "pandas", "cupy")
HOST = ("os", "sys", "io", "gc", "inspect", "importlib", "pathlib", "pickle", "builtins", "tests",
        "linecache", "traceback", "ctypes", "subprocess", "utils", "trn_nki", "shutil", "glob",
        "json", "tempfile", "types", "threading", "multiprocessing")  # fmt: skip
LOOKING = ("open", "eval", "exec", "compile", "__import__", "globals", "locals", "vars", "dir",
           "getattr", "setattr", "delattr", "input", "breakpoint", "__builtins__", "__loader__",
           "__spec__")  # fmt: skip
BEHIND = (
    "sys", "importlib", "utils", "Path", "simulate", "profile", "simulator", "storage", "array",
)  # fmt: skip
"""Attributes that lead out of a kernel, or behind a tensor."""
CONTAINERS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
MOST_NUMBERS = 64
"""In one literal: no kernel of ours needs more than four."""


class Cheat(NamedTuple):
    """What was found: its name, the line, and what to do."""

    code: str
    line: int
    message: str


def cheats(tree: ast.Module) -> Iterator[Cheat]:
    """All that is found in a file, in no order."""
    for node in ast.walk(tree):
        yield from _imports(node)
        yield from _reaching(node)
        yield from _keeping(node)
        yield from _holding(node)
    for statement in tree.body:
        yield from _at_the_top(statement)


def first(tree: ast.Module) -> Cheat | None:
    """The first in the order of lines, or None."""
    return min(cheats(tree), key=lambda result: result.line, default=None)


def _imports(node: ast.AST) -> Iterator[Cheat]:
    names, line = list[str](), getattr(node, "lineno", 0)
    if isinstance(node, ast.Import):
        names = [item.name for item in node.names]
    elif isinstance(node, ast.ImportFrom):
        names = [node.module or "."]
    for name in names:
        top = name.partition(".")[0]
        if top in NUMERIC:
            yield Cheat(
                "host-computation", line,
                f"imports {name}: a kernel calculates with nisa instructions on tiles, "
                "not with arrays of the host",
            )  # fmt: skip
        elif top in HOST:
            yield Cheat(
                "reads-expected", line,
                f"imports {name}: a kernel reads its arguments, and nothing of the check or of "
                "the machine it is checked on",
            )  # fmt: skip
        elif top not in ALLOWED:
            yield Cheat("import", line, f"imports {name}; a solution imports nki and math only")


def _reaching(node: ast.AST) -> Iterator[Cheat]:
    if isinstance(node, ast.Name) and node.id in LOOKING:
        yield Cheat(
            "reads-expected", node.lineno,
            f"uses {node.id}: a kernel reads its arguments, and no file or name of the check",
        )  # fmt: skip
    elif isinstance(node, ast.Attribute) and (node.attr.startswith("_") or node.attr in BEHIND):
        looks = node.attr in ("sys", "importlib", "utils", "Path", "simulator")
        yield Cheat(
            "reads-expected" if looks else "host-output", node.lineno,
            f"uses .{node.attr}: only instructions read and write a tensor; "
            "take what nki documents",
        )  # fmt: skip


def _keeping(node: ast.AST) -> Iterator[Cheat]:
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        word = type(node).__name__.lower()
        yield _state(node.lineno, f"{word} {', '.join(node.names)}")
    elif isinstance(node, (ast.FunctionDef, ast.Lambda)):
        arguments = node.args
        for default in (*arguments.defaults, *filter(None, arguments.kw_defaults)):
            if isinstance(default, (*CONTAINERS, ast.Call)):
                yield _state(node.lineno, f"the default `{ast.unparse(default)}`")
    elif isinstance(node, (ast.Assign, ast.AugAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            if isinstance(target, ast.Attribute):
                yield _state(node.lineno, f"the attribute `{ast.unparse(target)}`")


def _at_the_top(statement: ast.stmt) -> Iterator[Cheat]:
    """A name of the file whose value can change while it is the same name."""
    value = getattr(statement, "value", None)
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and value is not None:
        for part in ast.walk(value):
            if isinstance(part, (*CONTAINERS, ast.Call)):
                yield _state(statement.lineno, f"`{ast.unparse(statement)[:60]}`")
                return


def _state(line: int, what: str) -> Cheat:
    return Cheat(
        "state", line,
        f"{what} outlives a call; a compiled kernel starts afresh each time. Keep all in the "
        "kernel, and numbers or tuples of them at the top of the file",
    )  # fmt: skip


def _holding(node: ast.AST) -> Iterator[Cheat]:
    if isinstance(node, (ast.List, ast.Tuple, ast.Dict, ast.Constant)):
        if isinstance(node, ast.Constant):
            big = isinstance(node.value, (bytes, int)) and len(str(node.value)) > 4 * MOST_NUMBERS
            count = 4 * MOST_NUMBERS if big else 0
        else:
            count = sum(
                isinstance(part, ast.Constant) and isinstance(part.value, (int, float))
                for part in ast.walk(node)
            )
        if count > MOST_NUMBERS:
            yield Cheat(
                "precomputed", node.lineno,
                f"holds a literal of {count} numbers; compute the result from the arguments",
            )  # fmt: skip
