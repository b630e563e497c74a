"""Checks for names below torch.cuda, for autocast and gradient scalers, and for CUDA's switches."""

import ast
import re
from typing import TYPE_CHECKING

from utils.audit import legacy
from utils.audit.cuda_devices import is_xla
from utils.audit.guards import is_cuda
from utils.audit.rules import NAMES, variable_rule
from utils.audit.scopes import is_none

if TYPE_CHECKING:
    from utils.audit.state import State

TYPE = re.compile(r"torch\.cuda\.\w*(Tensor|Storage)$")
COLUMN = re.compile(r"(self_)?cuda_(time|memory)(_total|_usage)?$")


def rule_of(name: str) -> str:
    """The rule for a full name that begins with torch.cuda; "" where it is harmless.

    >>> rule_of("torch.cuda.synchronize"), rule_of("torch.cuda.is_available")
    ('cuda-api', '')
    """
    parts = name.split(".")[2:]
    if not parts:
        return ""
    first, last = parts[0], parts[-1]
    if first == "amp" and len(parts) > 1:
        return "grad-scaler" if last == "GradScaler" else "cuda-autocast"
    if first in ("memory", "random") and len(parts) > 1:
        first = last
    if first in NAMES["cuda_harmless"] or last == "is_available":
        return ""
    if first in NAMES["cuda_queries"]:
        return "cuda-query"
    if first in NAMES["cuda_seeds"]:
        return "cuda-seed"
    if first in NAMES["cuda_memory"]:
        return "cuda-memory"
    if first == "nvtx":
        return "cuda-nvtx"
    if first == "nccl":
        return "nccl"
    if first.endswith(("Tensor", "Storage")):
        return "cuda-tensor-type"
    return "cuda-api"


def used(at: "State", node: ast.AST, name: str) -> bool:
    """A name of torch is read; True if a rule is about it."""
    if name == "torch.cuda" or name.startswith("torch.cuda."):
        if name.startswith("torch.cuda.amp.") and name.split(".")[3] == "common":
            return True
        rule = rule_of(name)
        if rule == "cuda-query" and at.joined:
            # `is_available() and is_bf16_supported()` decides, and both are False.
            with at.having(guard=None):
                at.report(rule, node)
        elif rule:
            at.report(rule, node)
            if name.endswith("current_device"):
                at.idiom(at.guard)  # a device, chosen by asking CUDA
        return True
    if name.startswith("torch.ops.neuron."):
        return legacy.used(at, node, name)
    if name.startswith("torch._inductor.") and isinstance(node, ast.Attribute):
        if not name.startswith("torch._inductor.config.") or not isinstance(node.ctx, ast.Store):
            return name.startswith("torch._inductor.config.")
    if name == "torch.profiler.ProfilerActivity.CUDA" or "for_cuda_graphs" in name:
        at.report("cuda-profiler", node)
        return True
    if name.startswith("torch.accelerator."):
        at.report("accelerator-api", node)
        return True
    if name in NAMES["fsdp"]:
        at.report("torch-fsdp", node)
        return True
    if name in NAMES["attention"]:
        at.report("attention-backend", node)
        return True
    return False


def imported(at: "State", node: ast.ImportFrom, names: list[str]) -> None:
    """`from torch.cuda import x` with no use of x in this file: others take it from here."""
    if not f"{node.module}.".startswith("torch.cuda."):
        return
    for alias, name in zip(node.names, names, strict=True):
        bound = alias.asname or alias.name
        rule = rule_of(name)
        if bound == "*":
            rule = "cuda-autocast" if node.module == "torch.cuda.amp" else "cuda-api"
            at.report(rule, node, "all names are imported, they are not followed")
        elif rule and not at.names.is_read(bound):
            at.report(rule, node, f"imported as {bound}, not used in this file")


def called(at: "State", node: ast.Call, name: str) -> bool:
    """A call of autocast, of a scaler or about the environment; True if its name is done with."""
    if name in NAMES["autocast"]:
        where = _argument(node, 0, "device_type")
        if where is not None and is_cuda(where):
            kind = _argument(node, 1, "dtype")
            if kind is not None and at.dotted(kind) == "torch.bfloat16":
                at.report("cuda-autocast", node.func, "bfloat16", "error")
            else:
                at.report("cuda-autocast", node.func)
            at.reported.add(where)
        elif where is not None and is_xla(where):
            legacy.report(at, "xla-device", where, "autocast")
        return True
    if name in NAMES["scalers"] or name == "torch.cuda.amp.GradScaler":
        off = _argument(node, -1, "enabled")
        where = _argument(node, 0, "device") if name in NAMES["scalers"] else None
        if (off is None or not is_none(off)) and (where is None or is_cuda(where)):
            at.report("grad-scaler", node.func)
            at.reported.add(where)
        return True
    if name == "torch.set_default_tensor_type":
        kind = _argument(node, 0, "t")
        if isinstance(kind, ast.Constant) and str(kind.value).startswith("torch.cuda."):
            at.reported.add(kind)
            at.report("cuda-tensor-type", kind)
    elif name.startswith(("subprocess.", "os.system", "os.popen")):
        command(at, node)
    elif name in ("os.environ.setdefault", "os.putenv") and node.args:
        _variable(at, node.args[0])
    if isinstance(node.func, ast.Attribute) and node.func.attr == "type" and node.args:
        if isinstance(node.args[0], ast.Constant):
            if str(node.args[0].value).startswith("torch.cuda."):
                at.reported.add(node.args[0])
                at.report("cuda-tensor-type", node.args[0])
    return False


def text(at: "State", node: ast.Constant) -> None:
    """A name of CUDA within quotes: of a tensor's type, of a column of the profiler, a command."""
    value = node.value
    if not isinstance(value, str) or len(value) > 200:
        return
    if TYPE.match(value) and node not in at.reported:
        at.report("cuda-tensor-type", node, "compared with, it is never equal")
    elif COLUMN.match(value):
        at.report("cuda-profiler", node)


def command(at: "State", node: ast.Call) -> None:
    """subprocess.run(["nvidia-smi"]) and the like."""
    first = node.args[0] if node.args else None
    if isinstance(first, ast.List | ast.Tuple):
        first = first.elts[0] if first.elts else None
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        if first.value.split(" ")[0] == "nvidia-smi":
            at.report("gpu-image", first)


def entries(at: "State", node: ast.Dict) -> None:
    """{"CUDA_VISIBLE_DEVICES": "0"}: variables of the environment, kept in a dictionary."""
    for key in node.keys:
        if key not in at.reported:
            _variable(at, key)


def _argument(node: ast.Call, place: int, keyword: str) -> ast.expr | None:
    for item in node.keywords:
        if item.arg == keyword:
            return item.value
    return node.args[place] if 0 <= place < len(node.args) else None


def assigned(at: "State", target: ast.expr) -> None:
    """torch.backends.cudnn.benchmark = True, os.environ["CUDA_VISIBLE_DEVICES"] = "0"."""
    if isinstance(target, ast.Tuple):
        for elt in target.elts:
            assigned(at, elt)
    elif isinstance(target, ast.Attribute):
        name = at.dotted(target)
        if name.startswith(("torch.backends.cudnn.", "torch.backends.cuda.")):
            at.report("backend-flags", target)
        elif name.startswith("torch._inductor."):
            at.report("backend-flags", target, "a setting of Inductor")
    elif isinstance(target, ast.Subscript) and at.dotted(target.value) == "os.environ":
        _variable(at, target.slice)


def _variable(at: "State", key: ast.AST | None) -> None:
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        rule = "cuda-env" if key.value in NAMES["cuda_variables"] else variable_rule(key.value)
        if rule:
            at.report(rule, key)
