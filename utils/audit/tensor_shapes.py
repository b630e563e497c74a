"""Checks for shapes, sizes and number formats: tensors that grow, sizes read from tensors, Python
numbers that change at each step, float64, complex numbers, Fourier transforms, wide integers.
"""

import ast
import re
from typing import TYPE_CHECKING

from utils.audit.rules import NAMES
from utils.audit.tensor_kinds import COUNTS, LOADER
from utils.audit.tensor_values import on_host

if TYPE_CHECKING:
    from utils.audit.state import State

GROWS = {"torch.cat", "torch.concat", "torch.concatenate", "torch.hstack", "torch.vstack"}
SIZED = {"new_zeros", "new_ones", "new_empty", "new_full", "expand", "repeat", "view", "narrow"}
SIZED |= {"reshape", "resize_"}
WIDE = 2**31
DEPTH = 6
LENGTHS = re.compile(r"(lens|lengths|sizes|splits)$")
STEP = re.compile(
    r"((train|val|test|eval)\w*_|_?training_|decode_|generate_|model_)step$|(train|eval)_batch$"
)


def is_step_function(name: str) -> bool:
    """A function that runs once at each step, by its name.

    >>> is_step_function("training_step"), is_step_function("step_size")
    (True, False)
    """
    return STEP.match(name) is not None


def is_step_loop(node: ast.For | ast.AsyncFor | ast.While) -> bool:
    """A loop over batches or tokens: a model is called or trained within it."""
    if not isinstance(node, ast.While) and _last(_inner(node.iter)) != "":
        if LOADER.search(_last(_inner(node.iter))):
            return True
    return any(
        isinstance(item, ast.Call) and _last(item.func) in NAMES["step_calls"]
        for statement in node.body
        for item in ast.walk(statement)
    )


def _inner(node: ast.AST) -> ast.AST:
    """loader in enumerate(tqdm(loader))."""
    while isinstance(node, ast.Call) and node.args and _last(node.func) not in COUNTS:
        node = node.args[0]
    return node


def _last(node: ast.AST) -> str:
    return getattr(node, "attr", None) or getattr(node, "id", "") or ""


def counters(node: ast.For | ast.AsyncFor | ast.While) -> set[str]:
    """Names that hold another number at each turn of the loop."""
    if isinstance(node, ast.While):
        return {
            item.target.id
            for item in node.body
            if isinstance(item, ast.AugAssign)
            and isinstance(item.target, ast.Name)
            and isinstance(item.value, ast.Constant)
        }
    if isinstance(node.iter, ast.Call):
        function = _last(node.iter.func)
        if function in ("range", "trange") and isinstance(node.target, ast.Name):
            return {node.target.id}
        if function == "enumerate" and isinstance(node.target, ast.Tuple):
            return {_last(node.target.elts[0])}
    return set()


def assigned(at: "State", target: ast.expr, value: ast.expr) -> None:
    """x = torch.cat([x, y]) in a loop over steps."""
    if at.steps != "loop" or not isinstance(value, ast.Call) or on_host(at):
        return
    if at.dotted(value.func) not in GROWS or not value.args:
        return
    parts = value.args[0]
    same = ast.dump(target).replace("Store()", "Load()")
    if isinstance(parts, ast.List | ast.Tuple) and not at.on_cpu(
        parts.elts[0] if parts.elts else parts
    ):
        if any(ast.dump(part) == same for part in parts.elts):
            at.report("growing-cat", value.func)


def called(at: "State", node: ast.Call, name: str) -> None:
    """Sizes that are read from tensors, and number formats."""
    if not at.torch:
        return
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    _format(at, node, name, method)
    if on_host(at):
        return
    sizes: list[ast.expr] = []
    if name.startswith("torch.") and name.count(".") == 1:
        last = name.split(".")[1]
        if last in ("full", "empty", "zeros", "ones", "rand", "randn", "arange", "eye"):
            sizes = list(node.args[:1] if last == "full" else node.args)
    elif method in SIZED and name.split(".")[0] not in at.names.imported:
        sizes = list(node.args)
    if any(from_values(at, size) for size in sizes):
        at.report("data-dependent-shape", node.func, "a size is read from a tensor")
    if method == "split" or name == "torch.split":
        lengths = node.args[1:2] if name == "torch.split" else node.args[:1]
        if lengths and _listed(at, lengths[0]):
            at.report("data-dependent-shape", node.func, "each list of sizes is a graph of its own")
    repeats = node.args[1:2] if name == "torch.repeat_interleave" else node.args[:1]
    if method == "repeat_interleave" or name == "torch.repeat_interleave":
        given = {keyword.arg for keyword in node.keywords}
        if repeats and at.kind(repeats[0]) == "tensor" and "output_size" not in given:
            at.report("data-dependent-shape", node.func, "without output_size it reads the sum")


def _read_list(at: "State", name: str) -> bool:
    """The name holds [x.item() for x in xs]."""
    return any(
        isinstance(item.node, ast.ListComp)
        and isinstance(item.node.elt, ast.Call)
        and _last(item.node.elt.func) in ("item", "tolist")
        for item in at.scope.bindings(name)
    )


def _listed(at: "State", node: ast.expr) -> bool:
    """A list that a comprehension made: of the sizes of what is at hand."""
    if isinstance(node, ast.Name):
        kept = at.scope.bindings(node.id)
        if len(kept) == 1 and isinstance(kept[0].node, ast.ListComp):
            return True
    return isinstance(node, ast.ListComp) or LENGTHS.search(_last(node)) is not None


def _format(at: "State", node: ast.Call, name: str, method: str) -> None:
    if on_host(at) and at.functions[-1] != "__init__":
        return
    if name.startswith(("torch.fft.", "torch.stft", "torch.istft")):
        if not name.endswith(("freq", "shift")) and not (node.args and at.on_cpu(node.args[0])):
            at.report("fft", node.func)
        return
    if name in NAMES["complex_functions"]:
        at.report("complex-numbers", node.func)
        return
    if method == "double" and not node.args and at.kind(node.func) != "host":
        if not at.on_cpu(node.func) and not name.startswith("torch."):
            at.report("float64", node.func)
    kinds = [item.value for item in node.keywords if item.arg in ("dtype", "torch_dtype")]
    if method in ("to", "type") or name == "torch.set_default_dtype":
        kinds += node.args
    for kind in kinds:
        if isinstance(kind, ast.Attribute | ast.Name):
            full = at.dotted(kind)
            if full in ("torch.float64", "torch.double") and not at.on_cpu(node):
                at.report("float64", kind)
            elif full in NAMES["complex_types"]:
                at.report("complex-numbers", kind)
    if name == "torch.iinfo" and node.args:
        if at.dotted(node.args[0]) in ("torch.int64", "torch.long"):
            at.report("int64-range", node.func)
    elif name.startswith("torch.") and not at.on_cpu(node):
        for part in node.args:
            if _wide(part):
                at.report("int64-range", part)


def _wide(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=int(number)):
            return abs(number) >= WIDE
        case ast.UnaryOp():
            return _wide(node.operand)
        case ast.BinOp(op=ast.LShift() | ast.Pow(), left=ast.Constant(value=int(left))):
            right = getattr(node.right, "value", 0)
            return left > 0 and isinstance(right, int) and right >= 31
        case ast.BinOp(op=ast.Sub() | ast.Add()):
            return _wide(node.left)
    return False


def computed(at: "State", node: ast.BinOp) -> None:
    """A tensor and a wide integer, or a Python number that changes at each step."""
    if not at.torch or on_host(at):
        return
    for one, other in ((node.left, node.right), (node.right, node.left)):
        if _wide(one) and at.kind(other) == "tensor" and not at.on_cpu(other):
            at.report("int64-range", one)
        if isinstance(one, ast.Name) and one.id in at.counters:
            if at.kind(other) == "tensor" and not at.on_cpu(other):
                at.report("python-number", one)


def sliced(at: "State", node: ast.Subscript) -> None:
    """x[:n] where n is read from a tensor, or is another number at each step."""
    if not at.torch or on_host(at):
        return
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for part in parts:
        ends = [part.lower, part.upper] if isinstance(part, ast.Slice) else []
        for end in filter(None, ends):
            if from_values(at, end) and at.kind(node.value) != "host" and not at.on_cpu(node.value):
                at.report("data-dependent-shape", node, "the end of a slice is read from a tensor")
                return
            moving = any(
                isinstance(item, ast.Name) and item.id in at.counters for item in ast.walk(end)
            )
            if moving and at.kind(node.value) == "tensor" and not at.on_cpu(node.value):
                at.report("python-number", node, "each length of the slice is a shape of its own")
                return


def from_values(at: "State", node: ast.AST | None, depth: int = DEPTH) -> bool:
    """The number comes from the values of a tensor: x.item(), int(x.max()), lengths[i]."""
    if node is None or depth == 0:
        return False
    match node:
        case ast.Constant() | ast.Slice():
            return False
        case ast.Tuple() | ast.List():
            return any(from_values(at, part, depth - 1) for part in node.elts)
        case ast.BinOp():
            return any(from_values(at, part, depth - 1) for part in (node.left, node.right))
        case ast.UnaryOp():
            return from_values(at, node.operand, depth - 1)
        case ast.Starred():
            return False
        case ast.Call():
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("item", "tolist"):
                owner = node.func.value
                return not node.args and at.kind(owner) != "host" and not at.on_cpu(owner)
            if _last(node.func) in ("int", "max", "min", "round", "sum") and node.args:
                if at.tensors.element(node.args[0], at.scope) == "tensor":
                    return True
                if isinstance(node.args[0], ast.Name) and _read_list(at, node.args[0].id):
                    return True
                return any(from_values(at, part, depth - 1) for part in node.args)
        case ast.Name():
            kept = at.scope.bindings(node.id)
            if any(item.kind != "value" for item in kept):
                return at.kind(node) == "tensor" and not at.on_cpu(node)
            if any(from_values(at, item.node, depth - 1) for item in kept if item.node is not node):
                return True
    return at.kind(node) == "tensor" and not at.on_cpu(node)
