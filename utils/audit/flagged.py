"""Uses of what is imported from a package that is a finding: each call of it, each class made from
it, and each launch of a Triton kernel has to be changed as well as the import.
"""

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from utils.audit import legacy, libraries
from utils.audit.rules import LEGACY_CALLS, NAMES
from utils.audit.scopes import written

if TYPE_CHECKING:
    from utils.audit.state import State

CALLED = ("CUDAExtension", "CppExtension", "load", "load_inline")  # said by a check of their own
# What these packages make is used by methods of its own: model.to_neuron(), engine.backward(loss).
FOLLOWED = {"transformers-neuronx", "nxd-inference", "deepspeed", "torch-neuron"}
# ... by these only; what the others make has methods of its own throughout.
METHODS = {
    "deepspeed": {"backward", "step", "save_checkpoint", "load_checkpoint", "save_16bit_model"},
    "torch-neuron": {"save"},
    "neuron-trace": {"save"},
}
OBJECT = re.compile(r"(^|\.)[A-Z]")  # Model.from_config("m"), trt.Runtime(log): not a function
BUILT = re.compile(r"torch\.utils\.cpp_extension\.(load|load_inline)$")
SCALER = re.compile(r"(^|[._])(grad_?|amp_?|loss_?)?scaler$", re.I)
SCALES = {"scale", "unscale_", "step", "update"}  # methods of a gradient scaler


def imported(at: "State", node: ast.Import | ast.ImportFrom) -> None:
    """Note the names that an import binds, with the rule of their package."""
    start = libraries.start_of(node) if isinstance(node, ast.ImportFrom) else ""
    for alias in node.names:
        name = start + alias.name
        root = name.split(".")[0]
        rule = libraries.rule_of(at, name) or legacy.once(at, name)
        if rule and alias.name not in ("*", *CALLED) and root not in NAMES["not_followed"]:
            bound = alias.asname or (alias.name if start else alias.name.split(".")[0])
            at.flagged[bound] = rule


def assigned(at: "State", target: ast.expr, value: ast.expr) -> None:
    """model = LlamaForSampling.from_pretrained("m"): its methods are the package's."""
    if isinstance(target, ast.Name) and isinstance(value, ast.Name):
        if value.id in at.flagged and _is_imported(at, value.id):  # attention = flash_attn_func
            at.flagged[target.id] = at.flagged[value.id]
            at.wrappers.add(target.id)
    name = at.dotted(value, follow=False)
    if name.startswith("torch.utils.cpp_extension.") and name.endswith("Extension"):
        rule = "cuda-extension" if "CUDA" in name else "cpp-extension"
        at.report(rule, value, "chosen to be built")
    if not isinstance(value, ast.Call):
        return
    if BUILT.match(at.dotted(value.func)):  # ops = load("ops", ["ops.cu"])
        at.flagged[written(target)] = libraries.built(value)
        at.made[written(target)] = at.scope.find(written(target))
        return
    root = written(value.func).split(".")[0]
    traces = at.dotted(value.func) == "torch_neuronx.trace"
    rule = "neuron-trace" if traces else at.flagged.get(root, "")
    first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
    makes = rule in FOLLOWED or (rule == "cuda-package" and OBJECT.search(written(value.func)))
    if written(first) and (traces or (makes and _is_imported(at, root))):
        at.flagged[written(first)] = rule
        at.made[written(first)] = at.scope.find(written(first))


def _is_imported(at: "State", name: str) -> bool:
    return any(item.kind == "import" for item in at.scope.bindings(name))


def _made_by(at: "State", owner: str, method: str) -> bool:
    """An object that was made here by such a package, and a method that only they have."""
    home = at.made.get(owner, at.names.module)
    if owner not in at.made or (home is not None and at.scope.find(owner) is not home):
        return False
    return method in METHODS.get(at.flagged[owner], {method})


def used(at: "State", node: ast.Name | ast.Attribute) -> bool:
    """A name that was imported so is read; True if that is a finding."""
    if not at.flagged or not isinstance(node.ctx, ast.Load) or node in at.reported:
        return False
    text = written(node)
    root, (owner, _, last) = text.split(".")[0], text.rpartition(".")
    known = root in at.wrappers or (root in at.flagged and _is_imported(at, root))
    key = root if known else owner if _made_by(at, owner, last) else ""
    rule = at.flagged.get(key, "")
    if not rule or last in LEGACY_CALLS:
        return False
    if last not in NAMES["passed_over"] and at.dotted(node) != "triton.jit":  # a decorator
        at.report(rule, node, _part(at, rule), "note")
    return True


def _part(at: "State", rule: str) -> str:
    return "within a kernel" if rule == "triton" and at.hosted else "a use of what is imported"


def only_cpu(at: "State", node: ast.If) -> None:
    """`if x.device.type == "cpu": ... else: kernel(x)`: every other device gets the kernel."""
    match node.test:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[ast.Constant(value="cpu")]) if (
            written(left).endswith(("device", "device.type"))
        ):
            if node.orelse and libraries.COMPILES & set(at.flagged.values()):
                at.report(
                    "cuda-device", left, "any device but the CPU takes the way of CUDA", "note"
                )


def scaled(at: "State", node: ast.Call) -> None:
    """scaler.scale(loss), loss_scaler(loss, optimizer) of a scaler that another file made."""
    used = node.func
    if isinstance(used, ast.Name) and at.torch and at.scales:
        if used.id.islower() and SCALER.search(used.id):
            at.report("grad-scaler", used, "a use of the scaler", "note")
    if isinstance(used, ast.Attribute) and used.attr in SCALES and at.torch and at.scales:
        if SCALER.search(written(used.value)):
            at.report("grad-scaler", used, "a use of the scaler", "note")


def launched(at: "State", node: ast.Call) -> None:
    """kernel[grid](x): the launch of a Triton kernel."""
    if isinstance(node.func, ast.Subscript) and "triton" in at.flagged.values() and not at.hosted:
        kernel = node.func.value
        if isinstance(kernel, ast.Name) and kernel.id not in at.flagged:
            at.report("triton", kernel, "launches a kernel")


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
