"""Uses of what is imported from a package that is a finding: each call of it, each class made from
it, and each launch of a Triton kernel has to be changed as well as the import.
"""

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from utils.audit import legacy, libraries
from utils.audit.rules import LEGACY_CALLS, NAMES
from utils.audit.scopes import written

if TYPE_CHECKING:
    from utils.audit.state import State

CALLED = ("CUDAExtension", "CppExtension", "load", "load_inline")  # said by a check of their own
# What such a package gives is used by its methods: model.to_neuron(), engine.backward(loss).
BY_IMPORT = {"nki-old-import"}  # what is used keeps its name
FOLLOWED = {"transformers-neuronx", "deepspeed", "nxd-inference"}


def imported(at: "State", node: ast.Import | ast.ImportFrom) -> None:
    """Note the names that an import binds, with the rule of their package."""
    start = ""
    if isinstance(node, ast.ImportFrom):
        start = "." * node.level + (f"{node.module}." if node.module else "")
    for alias in node.names:
        name = start + alias.name
        root = name.split(".")[0]
        rule = libraries.rule_of(at, name) or legacy.once(at, name)
        if rule in BY_IMPORT:
            continue
        if rule and alias.name not in ("*", *CALLED) and root not in NAMES["not_followed"]:
            bound = alias.asname or (alias.name if start else alias.name.split(".")[0])
            at.flagged[bound] = rule


def assigned(at: "State", target: ast.expr, value: ast.expr) -> None:
    """model = LlamaForSampling.from_pretrained("m"): its methods are the package's."""
    if not isinstance(value, ast.Call):
        return
    rule = at.flagged.get(written(value.func).split(".")[0], "")
    first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
    if rule in FOLLOWED and written(first):
        at.flagged[written(first)] = rule
        at.made.add(written(first))


def used(at: "State", node: ast.Name | ast.Attribute) -> bool:
    """A name that was imported so is read; True if that is a finding."""
    if not at.flagged or not isinstance(node.ctx, ast.Load) or node in at.reported:
        return False
    text = written(node)
    root, (owner, _, last) = text.split(".")[0], text.rpartition(".")
    imported = any(item.kind == "import" for item in at.scope.bindings(root))
    key = root if imported or root in at.wrappers else owner if owner in at.made else ""
    rule = at.flagged.get(key, "")
    if not rule or last in LEGACY_CALLS:
        return False
    within = rule == "triton" and at.hosted  # a kernel
    if not within and last not in NAMES["passed_over"]:
        at.report(rule, node, "a use of what is imported", "note")
    return True


def launched(at: "State", node: ast.Call) -> None:
    """kernel[grid](x): the launch of a Triton kernel."""
    if isinstance(node.func, ast.Subscript) and "triton" in at.flagged.values() and not at.hosted:
        if isinstance(node.func.value, ast.Name):
            at.report("triton", node.func.value, "launches a kernel")


def asked(test: ast.AST) -> Iterator[ast.AST]:
    """Names by which a test only asks whether a package is there: f of `f is None`, `not f`."""
    match test:
        case ast.Name():
            yield test
        case ast.UnaryOp(op=ast.Not()):
            yield from asked(test.operand)
        case ast.BoolOp():
            for value in test.values:
                yield from asked(value)
        case ast.Compare(comparators=[ast.Constant(value=None)]):
            yield test.left
