"""Checks for what waits on the device or compiles again: item, masks, decisions by a tensor."""

import ast
import re
from typing import TYPE_CHECKING

from utils.audit.rules import NAMES
from utils.audit.scopes import written

if TYPE_CHECKING:
    from utils.audit.state import State


MODULE = re.compile(r"(^|[._])(model|module|net|network|encoder|decoder|unet|vae|head)s?$|^$", re.I)
SAVES = re.compile(r"save|load|state|checkpoint|export|convert|^test|^main$", re.I)
MASK = re.compile(r"(^|_)masks?$")


def _asks_all(at: "State", test: ast.Call) -> bool:
    """(x > 0).all() or mask.any(), where no library of arrays is about."""
    return (
        isinstance(test.func, ast.Attribute)
        and test.func.attr in ("all", "any")
        and isinstance(test.func.value, ast.Compare | ast.Name)
        and at.kind(test.func.value) != "host"
        and not at.on_cpu(test.func.value)
        and _only_torch(at)
    )


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
    if name in ("all", "any", "max", "min") and len(node.args) == 1:
        if _elements(at, node.args[0]) and not at.on_cpu(node.args[0]):
            at.report("tensor-control-flow", node, f"{name}() of Python reads each element")
    _reads(at, node, name, method)
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


def _elements(at: "State", node: ast.expr) -> bool:
    """Python's all, any, max and min go through a tensor, or a list of tensors."""
    if at.kind(node) == "tensor" or at.tensors.element(node, at.scope) == "tensor":
        return True
    if not isinstance(node, ast.Name):
        return False
    kept = [item.node for item in at.scope.bindings(node.id) if item.kind == "value"]
    return any(part is not None and at.kind(part) == "tensor" for part in kept)


def _reads(at: "State", node: ast.Call, name: str, method: str) -> None:
    """What brings a tensor to the host at each step: x.cpu(), x.tolist(), print(x)."""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if not at.steps:
        # Elsewhere only what is surely a tensor of the model, and not where a state is saved.
        surely = owner is not None and (
            at.kind(owner) == "tensor"
            or _detached(owner)
            or (method == "cpu" and not at.loops and not MODULE.search(written(owner)))
        )
        if not surely or any(SAVES.search(function) for function in at.functions):
            return
    if method == "cpu" and owner is not None and not node.args:
        if at.kind(owner) != "host" and not at.on_cpu(owner) and written(owner) != "self":
            _sync(at, node, ".cpu() waits as .item() does")
    elif method in ("tolist", "numpy") and owner is not None and not node.args:
        if at.kind(owner) == "tensor" and not at.on_cpu(owner) and not _fetched(owner):
            _sync(at, node, f".{method}() waits as .item() does")
    elif (method or name) in NAMES["writes"]:
        for arg in [*node.args, *(item.value for item in node.keywords)]:
            shown = _shown(arg)
            if any(at.kind(part) == "tensor" and not at.on_cpu(part) for part in shown):
                _sync(at, node, "writing a tensor waits as .item() does")
                return


def _detached(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "detach"
    )


def _fetched(node: ast.AST) -> bool:
    """x.cpu() is there already; the wait was counted."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in ("cpu", "item"):
            return True
        node = node.func.value
    return False


def _shown(node: ast.AST) -> list[ast.expr]:
    """The values that an argument shows: of an f-string, of "{}".format(x), of a dictionary."""
    match node:
        case ast.JoinedStr():
            return [item.value for item in node.values if isinstance(item, ast.FormattedValue)]
        case ast.Call(func=ast.Attribute(attr="format")):
            return [*node.args, *(item.value for item in node.keywords)]
        case ast.Dict():
            return list(node.values)
    return [node] if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) else []


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
        if (
            at.functions
            and not at.once
            and not any(SAVES.search(function) for function in at.functions)
        ):
            at.report("host-read", node, note)
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
        if _is_mask(at, part) and not at.on_cpu(node.value) and not at.on_cpu(part):
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
        kind = at.kind(node)
        return kind == "tensor" or (not kind and _only_torch(at) and not _plain(node))
    if isinstance(node, ast.Attribute):
        return MASK.search(node.attr) is not None and _only_torch(at)
    if isinstance(node, ast.Call):
        made = {keyword.arg: keyword.value for keyword in node.keywords}.get("dtype")
        if made is not None and at.dotted(made) == "torch.bool" and at.kind(node) == "tensor":
            return True
        if isinstance(node.func, ast.Attribute):
            if node.func.attr in NAMES["mask_methods"]:
                return at.kind(node.func.value) == "tensor" or at.kind(node) == "tensor"
        return False
    if isinstance(node, ast.Name):
        kept = at.scope.bindings(node.id)
        if kept and all(item.kind == "parameter" for item in kept):
            return MASK.search(node.id) is not None and at.kind(node) != "host" and _only_torch(at)
        return bool(kept) and any(
            item.kind == "value"
            and isinstance(item.node, ast.Compare | ast.UnaryOp | ast.BinOp | ast.Call)
            and _is_mask(at, item.node, depth - 1)
            for item in kept
        )
    return False


def _only_torch(at: "State") -> bool:
    """The file is about torch, and no library of arrays is about whose masks look the same."""
    return not at.names.imports & NAMES["array_libraries"]


def _plain(node: ast.Compare) -> bool:
    """i == 0, x is None, "a" in b: the value is True or False and indexes a list."""
    return any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops)


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
        case ast.Compare() | ast.Subscript():
            if at.kind(test) == "tensor" and not at.on_cpu(test):
                at.report("tensor-control-flow", test)
        case ast.Name():
            home = at.scope.find(test.id)
            if home is not None and test.id not in home.losses and at.kind(test) == "tensor":
                if all(item.kind == "value" for item in home.names[test.id]):
                    if not at.on_cpu(test):
                        at.report("tensor-control-flow", test)
        case ast.Call():
            name = at.dotted(test.func)
            if (
                name.startswith("torch.")
                and name.split(".")[-1] in NAMES["answers"]
                and name.count(".") == 1
            ):
                at.report("tensor-control-flow", test)
            elif at.kind(test) == "tensor" or _asks_all(at, test):
                at.report("tensor-control-flow", test)
            elif name == "bool" and test.args and at.kind(test.args[0]) == "tensor":
                at.report("tensor-control-flow", test)
