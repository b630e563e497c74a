"""Checks for what waits on the device or compiles again: item, masks, decisions by a tensor."""

import ast
from typing import TYPE_CHECKING

from utils.audit.rules import NAMES
from utils.audit.scopes import written

if TYPE_CHECKING:
    from utils.audit.state import State


def on_host(at: "State") -> bool:
    """The code runs on the host anyway: its values cost nothing to read."""
    return bool(at.functions) and at.functions[-1] in NAMES["host_functions"]


def is_periodic(test: ast.AST) -> bool:
    """The test holds once in a while: `step % 100 == 0`."""
    return any(
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) for node in ast.walk(test)
    )


def called(at: "State", node: ast.Call, name: str) -> None:
    """A call that waits for a value, or whose result has a shape that depends on values."""
    if not at.torch or on_host(at):
        return
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if method == "item" and not node.keywords and len(node.args) <= 1:
        _item(at, node)
    elif name in NAMES["conversions"] and len(node.args) == 1 and (at.loops or at.epochs):
        if at.kind(node.args[0]) == "tensor" and not at.on_cpu(node.args[0]):
            _sync(at, node, f"{name}() of a tensor waits as .item() does")
    elif name.startswith("torch.") and node.args and at.on_cpu(node.args[0]):
        return
    elif (
        name.startswith("torch.")
        and name.split(".")[-1] in NAMES["shape_functions"]
        and name.count(".") == 1
    ):
        at.report("data-dependent-shape", node.func)
    elif name == "torch.where" and len(node.args) == 1 and not node.keywords:
        at.report("data-dependent-shape", node.func, "torch.where with one argument is nonzero")
    elif name in ("torch.nn.functional.one_hot",) and len(node.args) == 1:
        if not any(keyword.arg == "num_classes" for keyword in node.keywords):
            at.report("data-dependent-shape", node.func, "without num_classes it reads the maximum")
    elif method in NAMES["shape_functions"] and name.split(".")[0] not in at.names.imports:
        _method(at, node, method)


def _item(at: "State", node: ast.Call) -> None:
    assert isinstance(node.func, ast.Attribute)
    owner = node.func.value
    if written(owner) == "self" or at.kind(owner) == "host" or at.on_cpu(owner):
        return
    if node.args and not isinstance(node.args[0], ast.Constant | ast.Name):
        return
    if node.args and isinstance(getattr(node.args[0], "value", 0), str):
        return
    _sync(at, node, "")


def _sync(at: "State", call: ast.Call, note: str) -> None:
    node = call.func
    if not (at.loops or at.epochs):
        return
    often = f"{note}; " if note else ""
    if at.periodic:
        at.report("item-in-loop", node, f"{often}once in some steps only", "note")
    elif at.epochs:
        at.report("item-in-loop", node, f"{often}once in each epoch", "note")
    else:
        at.report("item-in-loop", node, note)


def _method(at: "State", node: ast.Call, method: str) -> None:
    """x.nonzero() of a tensor; of something unknown only where no arrays are about."""
    assert isinstance(node.func, ast.Attribute)
    owner = node.func.value
    if at.on_cpu(owner):
        return
    kind = at.kind(owner)
    keywords = {keyword.arg for keyword in node.keywords}
    unknown = not kind and (
        not at.names.imports & NAMES["array_libraries"]
        or bool(keywords & {"as_tuple", "return_inverse", "sorted"})
    )
    if unknown and method in ("unique", "bincount") and not node.args and not keywords:
        unknown = False
    if kind == "tensor" or unknown:
        at.report("data-dependent-shape", node.func)


def indexed(at: "State", node: ast.Subscript) -> None:
    """x[x > 0], x[mask], x[~mask] where the mask was computed from tensors."""
    if not at.torch or on_host(at):
        return
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for part in parts:
        if _is_mask(at, part) and not at.on_cpu(node.value):
            at.report("boolean-mask", node)
            return


def _is_mask(at: "State", node: ast.AST, depth: int = 6) -> bool:
    if depth == 0:
        return False
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return _is_mask(at, node.operand, depth - 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor):
        return any(_is_mask(at, item, depth - 1) for item in (node.left, node.right))
    if isinstance(node, ast.Compare):
        return at.kind(node) == "tensor"
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            if node.func.attr in NAMES["mask_methods"]:
                return at.kind(node.func.value) == "tensor" or at.kind(node) == "tensor"
        return False
    if isinstance(node, ast.Name):
        kept = at.scope.bindings(node.id)
        return bool(kept) and all(
            item.kind == "value"
            and isinstance(item.node, ast.Compare | ast.UnaryOp | ast.BinOp | ast.Call)
            and _is_mask(at, item.node, depth - 1)
            for item in kept
        )
    return False


def decision(at: "State", test: ast.AST) -> None:
    """An if, while, assert or conditional expression whose test needs the value of a tensor."""
    if not at.torch or on_host(at):
        return
    if isinstance(test, ast.Compare | ast.Call) and at.on_cpu(test):
        return
    match test:
        case ast.BoolOp():
            for value in test.values:
                decision(at, value)
        case ast.UnaryOp(op=ast.Not()):
            decision(at, test.operand)
        case ast.Compare():
            if at.kind(test) == "tensor":
                at.report("tensor-control-flow", test)
        case ast.Call():
            name = at.dotted(test.func)
            if (
                name.startswith("torch.")
                and name.split(".")[-1] in NAMES["answers"]
                and name.count(".") == 1
            ):
                at.report("tensor-control-flow", test)
            elif at.kind(test) == "tensor":
                at.report("tensor-control-flow", test)
            elif name == "bool" and test.args and at.kind(test.args[0]) == "tensor":
                at.report("tensor-control-flow", test)
