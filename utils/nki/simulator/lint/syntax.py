"""Small questions about the syntax of Python functions."""

import ast
from collections.abc import Iterable

from utils.nki.simulator.lint.scope import World

SHOWN = 60


def piece(node: ast.AST) -> str:
    """A short form of the source of a node, on one line."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."


def conditions(test: ast.expr) -> Iterable[tuple[ast.expr, bool]]:
    """The values that a condition looks at, and whether it compares them.

    A comparison with None looks at no value.
    """
    if isinstance(test, ast.BoolOp):
        for each in test.values:
            yield from conditions(each)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from conditions(test.operand)
    elif isinstance(test, ast.Compare):
        operands = [test.left, *test.comparators]
        if not any(is_none(each) for each in operands):
            yield from ((each, True) for each in operands)
    else:
        yield test, False


def is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def index_values(index: ast.expr) -> Iterable[ast.expr]:
    for each in index.elts if isinstance(index, ast.Tuple) else [index]:
        if isinstance(each, ast.Slice):
            yield from filter(None, (each.lower, each.upper, each.step))
        else:
            yield each


def own(function: ast.FunctionDef) -> Iterable[ast.AST]:
    """The nodes of a function without those of functions inside it."""
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            todo += ast.iter_child_nodes(node)


def names_bound(function: ast.FunctionDef) -> Iterable[str]:
    arguments = function.args
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        yield each.arg
    for each in (arguments.vararg, arguments.kwarg):
        if each is not None:
            yield each.arg
    for node in own(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name


def loop_bodies(function: ast.FunctionDef, world: World) -> dict[str, str]:
    """Functions that are passed to a device loop as its body, by name: the kind of loop."""
    found = {}
    for node in own(function):
        name = world.called(node).rpartition(".")[2]
        if name in ("fori_loop", "while_loop") and isinstance(node, ast.Call):
            position = 2 if name == "fori_loop" else 1
            given = [k.value for k in node.keywords if k.arg == "body_fun"]
            body = (node.args[position : position + 1] or given or [None])[0]
            if isinstance(body, ast.Name):
                found[body.id] = name
    return found
