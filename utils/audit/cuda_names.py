"""Checks for names below torch.cuda, for autocast and gradient scalers, and for CUDA's switches."""

import ast
import re
from typing import TYPE_CHECKING

from utils.audit import legacy, libraries
from utils.audit.guards import ELSEWHERE, is_cuda
from utils.audit.legacy import is_xla
from utils.audit.rules import NAMES, NO_VARIABLES, variable_rule
from utils.audit.scopes import is_none, written

if TYPE_CHECKING:
    from utils.audit.state import State

TYPE = re.compile(r"torch\.cuda\.\w*(Tensor|Storage)$")
VARIABLE = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+$")
# Names of CUDA that stand elsewhere in torch.
OTHERS = (
    (re.compile(r"torch\.nn\.(modules\.batchnorm\.)?SyncBatchNorm\b"), "cuda-api"),
    (
        re.compile(r"torch\._C\._(cuda_|jit_set_nvfuser|jit_set_texpr_fuser|jit_\w*fuse_on_gpu)"),
        "cuda-api",
    ),
    (re.compile(r"torch\.nn\.attention\.SDPBackend\b"), "attention-backend"),
    (
        re.compile(
            r"torch\.distributed\.(ProcessGroupNCCL|Backend\.NCCL|distributed_c10d\.ProcessGroupNCCL)"
        ),
        "nccl",
    ),
    (
        re.compile(r"torch\.(get|set)_autocast_gpu_dtype|torch\._C\._\w+autocast_gpu"),
        "cuda-autocast",
    ),
    (re.compile(r"torch\.nn\.parallel\.(scatter_gather|replicate\.|_functions)"), "data-parallel"),
)
TESTS = re.compile(r"(skip\w*|bool|assert\w*)$", re.I)
COMMAND = re.compile(
    r"^(\S*/bin/)?(nvidia-smi|nvcc|nsys)\b|\bnvidia\.com/gpu\b|--gres[= ]gpu"
    r"|docker run .*--gpus[ =]"
)
PROVIDER = re.compile(r"(CUDA|Tensorrt)ExecutionProvider$")
LONGEST = 200  # characters; longer texts are prose
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
    if name in ("torch.version.cuda", "torch.version.hip") or name.endswith(
        "cpp_extension.CUDA_HOME"
    ):
        at.report("cuda-query", node, "None here", "note")
        return True
    for pattern, rule in OTHERS:
        if pattern.match(name):
            before = at.hits[-1] if at.hits else None
            line = getattr(before.node, "lineno", 0) if before and before.rule == rule else 0
            if line == getattr(node, "lineno", 0):
                pass  # said once in a line, as in sdpa_kernel(SDPBackend.MATH)
            elif "SyncBatchNorm" in name:
                at.report(rule, node, "its kernels are CUDA's, or a backend's own", "warning")
            else:
                at.report(rule, node)
            return True
    if name.startswith("torch.backends.cud") and name.split(".")[-1] in ("version", "is_built"):
        at.report("cuda-query", node)
        return True
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
    for alias in node.names:
        if node.module == "torch.nn.attention" and alias.name in ("SDPBackend", "sdpa_kernel"):
            at.report("attention-backend", node, "imported here", "note")
            break
    if not f"{node.module}.".startswith("torch.cuda."):
        return
    for alias, name in zip(node.names, names, strict=True):
        bound = alias.asname or alias.name
        rule = rule_of(name)
        if bound == "*":
            rule = "cuda-autocast" if node.module == "torch.cuda.amp" else "cuda-api"
            at.report(rule, node, "all names are imported, they are not followed")
        elif alias.name in ("custom_fwd", "custom_bwd"):
            at.report(rule, node, "takes the device to be CUDA")
        elif rule and not at.names.is_read(bound):
            at.report(rule, node, f"imported as {bound}, not used in this file")
        elif rule in ("cuda-autocast", "grad-scaler"):
            at.report(rule, node, "imported here", "note")


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
        elif isinstance(where, ast.Name) and _may_be_cuda(at, where):
            at.report("cuda-autocast", node.func, f"{where.id} may be CUDA here")
        return True
    if name in NAMES["scalers"] or name == "torch.cuda.amp.GradScaler":
        off = _argument(node, -1, "enabled")
        where = _argument(node, 0, "device") if name in NAMES["scalers"] else None
        if (off is None or not is_none(off)) and (where is None or is_cuda(where)):
            at.report("grad-scaler", node.func)
            at.reported.add(where)
        at.scales = False
        return True
    if not TESTS.search(name) and name not in NAMES["text_functions"]:
        for one in [
            *node.args,
            *(item.value for item in node.keywords if item.arg != "pin_memory"),
        ]:
            answer(at, one)
    if name == "getattr" and len(node.args) > 1:
        full = f"{at.dotted(node.args[0])}.{getattr(node.args[1], 'value', '')}"
        if full.startswith("torch.cuda."):
            used(at, node, full)
    if "cuda_visible_devices" in written(node.func).lower():
        at.report("cuda-env", node.func, "it chooses the GPUs by its name")
    if name in ("torch.set_float32_matmul_precision", "torch.backends.cudnn.flags"):
        at.report("backend-flags", node.func)
    if name == "torch.set_default_tensor_type":
        kind = _argument(node, 0, "t")
        if isinstance(kind, ast.Constant) and str(kind.value).startswith("torch.cuda."):
            at.reported.add(kind)
            at.report("cuda-tensor-type", kind)
    if isinstance(node.func, ast.Attribute) and node.func.attr == "type" and node.args:
        if isinstance(node.args[0], ast.Constant):
            if str(node.args[0].value).startswith("torch.cuda."):
                at.reported.add(node.args[0])
                at.report("cuda-tensor-type", node.args[0])
    return False


def _may_be_cuda(at: "State", name: ast.Name) -> bool:
    """The name is a parameter with "cuda" as its default, or is given "cuda" or a choice of it."""
    home = at.scope.find(name.id)
    values = [item.node for item in at.scope.bindings(name.id) if item.kind == "value"]
    args = getattr(home.node, "args", None) if home else None
    if isinstance(args, ast.arguments):
        plain = [*args.posonlyargs, *args.args]
        given = [None] * (len(plain) - len(args.defaults)) + args.defaults + args.kw_defaults
        names = [arg.arg for arg in [*plain, *args.kwonlyargs]]
        values += [one for arg, one in zip(names, given, strict=True) if arg == name.id]
    ways = [way for one in values if isinstance(one, ast.IfExp) for way in (one.body, one.orelse)]
    return any(is_cuda(one) for one in [*values, *ways] if one is not None)


def answer(at: "State", node: ast.AST | None) -> None:
    """What `torch.cuda.is_available()` says is passed on: it is False, whoever decides by it."""
    while isinstance(node, ast.UnaryOp):
        node = node.operand
    if isinstance(node, ast.Call) and at.dotted(node.func) in NAMES["asks_for_cuda"]:
        at.report("cuda-query", node, "False here")
    elif isinstance(node, ast.Call | ast.Compare) and at.torch and at.guard is None:
        if at.guards.implied(node, True, at.scope) is ELSEWHERE:
            at.report("cuda-fallback", node, "any other accelerator is treated as the CPU")


def text(at: "State", node: ast.Constant) -> None:
    """A name of CUDA within quotes: a variable of the environment, a command, a resource; in a file
    about torch also the type of a tensor, or a column of the profiler.
    """
    value = node.value
    if not isinstance(value, str) or len(value) > LONGEST or node in at.reported:
        return
    if VARIABLE.match(value) or value in NAMES["cuda_variables"]:
        rule = "cuda-env" if value in NAMES["cuda_variables"] else variable_rule(value)
        if rule and not NO_VARIABLES.match(value):
            at.report(rule, node)
    elif COMMAND.search(value) and not (value == "nvcc" and libraries.builds(at)):
        at.report("gpu-image", node)
    elif PROVIDER.match(value):
        at.report("cuda-device", node, "a provider of ONNX Runtime")
    elif at.torch and TYPE.match(value):
        at.report("cuda-tensor-type", node, "compared with, it is never equal")
    elif at.torch and COLUMN.match(value):
        at.report("cuda-profiler", node)
    else:
        libraries.sources(at, node)


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
