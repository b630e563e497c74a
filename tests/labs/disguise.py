"""Answers disguised as somebody would who hands in another's: same program, other looks.

Only for measuring what `utils.labs.grading.similar` finds: a disguised answer is not run, and need
not run.
"""

import ast
import random
from collections.abc import Iterator

NAMES = "alpha beta gamma delta item entry result value total output buffer index".split()
COMMENTS = ("# go on", "# as in the lesson", "# see above", "# now the rest", "# careful here")


def disguised(source: str, rng: random.Random) -> str:
    """The answer with other names, its independent statements in another order, parts of
    expressions computed before, other literals, no docstrings, and other comments.
    """
    tree = ast.parse(source)
    _split_expressions(tree, rng)
    _reorder(tree, rng)
    _change_literals(tree, rng)
    _rename(tree, rng)
    lines = []
    for line in ast.unparse(tree).splitlines():
        if rng.random() < 0.2:
            indent = line[: len(line) - len(line.lstrip())]
            lines.append(indent + rng.choice(COMMENTS))
        lines.append(line)
    return "\n".join(lines) + "\n"


def _bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                yield block


def _split_expressions(tree: ast.AST, rng: random.Random) -> None:
    """Of three statements in ten, compute one call or operation in a statement before."""
    number = 0
    for block in list(_bodies(tree)):
        for statement in list(block):
            simple = isinstance(statement, ast.Assign | ast.AugAssign | ast.Return)
            value = getattr(statement, "value", None) if simple else None
            parts = [*_parts(value)] if value and rng.random() < 0.3 else []
            if parts:
                part, name = rng.choice(parts), f"part_{number}"
                number += 1
                before = ast.Assign([ast.Name(name, ast.Store())], part, lineno=0)
                statement.value = _Replace(part, name).visit(value)  # type: ignore[attr-defined]
                block.insert(block.index(statement), before)


def _parts(value: ast.expr) -> Iterator[ast.expr]:
    """Calls and operations below an expression that can be computed before it."""
    late = ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.IfExp
    for child in ast.iter_child_nodes(value):
        if isinstance(child, ast.Call | ast.BinOp | ast.Subscript):
            yield child
        if not isinstance(child, late | ast.BoolOp):
            yield from _parts(child)  # type: ignore[arg-type]


class _Replace(ast.NodeTransformer):
    def __init__(self, part: ast.expr, name: str):
        self.part, self.name = part, name

    def visit(self, node: ast.AST) -> ast.AST:
        if node is self.part:
            return ast.Name(self.name, ast.Load())
        return self.generic_visit(node)


def _reorder(tree: ast.AST, rng: random.Random) -> None:
    """Swap neighbours that assign, and of which neither touches what the other assigns."""
    for block in _bodies(tree):
        for _ in range(2 * len(block)):
            place = rng.randrange(max(1, len(block) - 1))
            pair = block[place : place + 2]
            if len(pair) == 2 and _independent(*pair):
                block[place : place + 2] = pair[::-1]


def _independent(one: ast.stmt, other: ast.stmt) -> bool:
    if not all(isinstance(s, ast.Assign | ast.AnnAssign | ast.AugAssign) for s in (one, other)):
        return False
    return not (_written(one) & _named(other) or _written(other) & _named(one))


def _written(statement: ast.stmt) -> set[str]:
    targets = getattr(statement, "targets", None) or [statement.target]  # type: ignore[attr-defined]
    return {name for target in targets for name in _named(target)}


def _named(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _change_literals(tree: ast.AST, rng: random.Random) -> None:
    for block in _bodies(tree):
        for statement in list(block):
            docstring = isinstance(statement, ast.Expr) and isinstance(
                statement.value, ast.Constant
            )
            if docstring and len(block) > 1:
                block.remove(statement)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float, str):
            is_text = isinstance(node.value, str)
            node.value = rng.choice(NAMES) if is_text else rng.randint(2, 99)


def _rename(tree: ast.AST, rng: random.Random) -> None:
    """Other names for what the answer itself names, but for its functions at the top."""
    own: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            own.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
    new = {name: f"{rng.choice(NAMES)}_{number}" for number, name in enumerate(sorted(own))}
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.arg = new[node.arg]
        elif isinstance(node, ast.Name):
            node.id = new.get(node.id, node.id)
