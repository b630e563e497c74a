"""Checks for moving to CUDA and for device names written into the code."""

import ast
import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from utils.audit import legacy
from utils.audit.guards import is_cuda
from utils.audit.legacy import is_xla
from utils.audit.rules import DEVICE_POSITIONS, NAMES
from utils.audit.scopes import Scope, walk, written

if TYPE_CHECKING:
    from utils.audit.state import State

DEVICE = re.compile(r"(^|_)(devices?|dev|device_(type|types|name|str|id|map)|map_location)$", re.I)
BACKEND = re.compile(r"(^|_)(backend|process_group_backend|ddp_backend)$", re.I)
PINNED = re.compile(r"(^|_)pin_mem(ory)?$", re.I)
OPTION = re.compile(
    r"attn_impl(ementation)?$|^(attn|attention)_(mode|type|backend|kernel)$|^load_in_[48]bit$|^use_flash_attention_2$|(^|_)optim(izer)?(_type|_name)?$"
)
PINNED_PLACE = 7  # where a DataLoader takes pin_memory by position
START = re.compile(r"cuda:?(%[ds]|\{\w*\}|\d+)?$")
ROLES = ((DEVICE, "device"), (BACKEND, "backend"), (PINNED, "pinned"), (OPTION, "option"))
# Settings that choose a package for CUDA, as they are written.
CHOSEN = (
    (re.compile(r"flash_?att(ention|n)\w*", re.I), "flash-attn"),
    (re.compile(r"flash_?infer\w*", re.I), "cuda-package"),
    (re.compile(r"xformers", re.I), "xformers"),
    (re.compile(r"\w*(8bit|4bit|paged|bnb)\w*"), "bitsandbytes"),
    (re.compile(r"\w+_apex_fused"), "apex"),
    (re.compile(r"\w+_fused"), "fused-optimizer"),
)
SPREAD = {"auto", "balanced", "balanced_low_0", "sequential"}
# Names under which a number is a device, and options of FSDP for PyTorch/XLA in transformers.
NUMBERED = re.compile(r"^-*(device|DEVICE)$|(^|_)device_map$")
XLA_OPTIONS = {"xla", "xla_fsdp_v2", "xla_fsdp_grad_ckpt"}
GPU = re.compile(r"(^|[._])(cuda|gpu)s?$", re.I)
# Words beside which "cuda" is a device, and what a table of devices lacks.
DEVICES = {"cpu", "gpu", "mps", "xpu", "npu", "hpu", "xla", "tpu", "rocm", "meta", "auto", "none"}
ONE_OF = "one of the devices that it knows"
BY_DEVICE = "a table by device, which has no entry for others"
NCCL = re.compile(r"(^|:)(nccl|smddp|ucc)$")
FIELDS = NAMES["field_functions"]
# Functions that are given a name of a device and no device.
ABOUT = re.compile(r"register|requires?_|skip|mark|parse|pars|log|is_|has_|import|name", re.I)
Sink = Callable[[ast.AST], None]


def device(at: "State", node: ast.AST, sink: Sink | None = None, numbers: bool = False) -> None:
    """An expression in the place of a device: each way in which it can be CUDA is a finding.

    With `numbers` a plain number is a CUDA device too. With a `sink` it is not known yet whether
    the place is one of a device, and the sink gets what would be found.
    """

    def here(result: ast.AST) -> None:
        report_device(at, result)

    keep = sink or here
    if node in at.reported:
        return
    if writes(node) or is_xla(node):
        keep(node)
        at.children(node)
        return
    match node:
        case ast.Constant():
            if numbers and _is_number(node):
                keep(node)
        case ast.IfExp():
            at.choice(node, lambda part: device(at, part, sink, numbers))
        case ast.BoolOp():
            at.boolean(node, lambda part: device(at, part, sink, numbers))
        case ast.Dict() if sink is None:
            places = [one for one in node.values if writes(one) or (numbers and _is_number(one))]
            for place in places[:1]:
                keep(place)
            at.all([key for key in [*node.keys, *node.values] if key not in places])
        case ast.List() | ast.Tuple() if sink is None:
            # ["cuda", "xpu", "cpu"] is a list of words; ["cuda:0", "cuda:1"] are devices.
            words = not all(writes(elt) for elt in node.elts)
            for place in node.elts:
                if not (words and is_cuda(place)) or numbered(place):
                    device(at, place)
            elements(at, node)
        case ast.Name():
            home = at.scope.find(node.id)
            if home is not None and sink is None:
                at.used.add((home, node.id))
            at.visit(node)
        case _:
            at.visit(node)


def _is_number(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def report_device(at: "State", node: ast.AST) -> None:
    """The finding about a device that is written there."""
    if is_xla(node):
        jax = node.value.startswith("jax")  # type: ignore[attr-defined]
        legacy.report(at, "torchax" if jax else "xla-device", node)
    else:
        at.report("cuda-device", node)


def forgets_others(at: "State", test: ast.expr, others: list[ast.stmt]) -> None:
    """`if x.is_cuda: ... else: ...`, and a return before all else: what is neither takes the way of
    the CPU, unless the others are moved to their device.
    """
    if any(
        isinstance(one, ast.Attribute) and one.attr == "to" for item in others for one in walk(item)
    ):
        return
    for one in walk(test):
        asks = isinstance(one, ast.Attribute) and one.attr == "is_cuda"
        if asks or (isinstance(one, ast.Compare) and written(one.left).endswith("device.type")):
            at.report("cuda-fallback", one, "any other accelerator is treated as the CPU")
            return


def leaves_out_others(at: "State", node: ast.IfExp) -> None:
    """`"cuda" if "cuda" in device else "cpu"`, `x.cuda() if y.is_cuda else x`: what is neither
    stays on the CPU without a word.
    """
    named = is_cuda(node.body) and getattr(node.orelse, "value", None) == "cpu"
    methods = [one.func for one in walk(node.body) if isinstance(one, ast.Call)]
    if named or any(isinstance(one, ast.Attribute) and one.attr == "cuda" for one in methods):
        at.report("cuda-fallback", node, "any other accelerator is treated as the CPU")


def writes(node: ast.AST | None) -> bool:
    """A CUDA device in words: "cuda", f"cuda", "cuda:" + n, f"cuda:{n}", "cuda:{}".format(n)."""
    match node:
        case ast.Constant():
            return is_cuda(node)
        case ast.JoinedStr(values=[ast.Constant() as only]):
            return is_cuda(only)
        case ast.JoinedStr(values=[ast.Constant(value="cuda" | "cuda:"), _, *_]):
            return True
        case ast.BinOp(op=ast.Add() | ast.Mod(), left=ast.Constant(value=str(start))):
            return START.match(start) is not None
        case ast.Call(func=ast.Attribute(attr="format", value=ast.Constant(value=str(start)))):
            return START.match(start) is not None
    return False


@cache
def role(name: str) -> str:
    """What a name says that its value is: "device", "backend", "pinned", "option" or "".

    >>> role("dist_backend"), role("--device"), role("width")
    ('backend', 'device', '')
    """
    name = name.lstrip("-").replace("-", "_")
    for pattern, result in ROLES:
        if pattern.search(name):
            return result
    return ""


def numbered(node: ast.AST | None) -> bool:
    """ "cuda:0" or f"cuda:{n}" is a device wherever it stands; "cuda" alone may be a word."""
    if node is None or not writes(node):
        return False
    first = next(item for item in ast.walk(node) if isinstance(item, ast.Constant))
    return str(first.value).startswith("cuda:")


def named(at: "State", name: str, value: ast.AST) -> None:
    """A value under a name: a keyword, a variable, a default, an entry of a dictionary."""
    match value:
        case ast.Call(func=ast.Name(made) | ast.Attribute(attr=made)) if (
            made in NAMES["field_functions"]
        ):
            at.visit(value)
            given = value.args or [
                keyword.value for keyword in value.keywords if keyword.arg == "default"
            ]
            for default in given[:1]:
                named(at, name, default)
            return
    result = role(name)
    if name.lstrip("-").endswith("device_map") and getattr(value, "value", None) in SPREAD:
        at.report("cuda-fallback", value, "Accelerate chooses among devices it knows")
    elif name.lstrip("-") == "mixed_precision" and getattr(value, "value", None) == "fp16":
        at.report("cuda-autocast", value, "float16 asks for CUDA")
    elif result == "device" and not at.foreign:
        device(at, value, numbers=at.torch and NUMBERED.search(name) is not None)
    elif name in XLA_OPTIONS and getattr(value, "value", None) is True:
        legacy.report(at, "xla-sharding", value, "an option of FSDP over XLA")
    elif result == "backend":
        backend(at, value)
    elif result == "pinned" and isinstance(value, ast.Name) and not _tells_gpu(value):
        at.report("pinned-loader", value, "where this is true", "note")
    elif result == "pinned" and (getattr(value, "value", None) is True or _tells_gpu(value)):
        at.report("pinned-loader", value)
    elif result == "option" and isinstance(value, ast.Constant) and value.value:
        option(at, name, value)
    elif numbered(value) and not at.foreign:
        at.report("cuda-device", value)
    else:
        at.visit(value)


def _tells_gpu(value: ast.AST) -> bool:
    """use_cuda, args.gpu: a name that says what the program runs on."""
    return GPU.search(written(value)) is not None


def option(at: "State", name: str, value: ast.Constant) -> None:
    """attn_implementation="flash_attention_2", load_in_8bit=True, optim="paged_adamw_8bit"."""
    words = [str(value.value)] if isinstance(value.value, str) else [name] * bool(value.value)
    for word in words:
        for pattern, rule in CHOSEN:
            if pattern.match(
                word.replace("use_flash_attention_2", "flash_attention_2").lstrip("-")
            ):
                at.report(rule, value)
                return


def backend(at: "State", value: ast.AST) -> None:
    """An expression in the place of a communication backend."""
    match value:
        case ast.Constant(value="GPU" | "GPU_1D" | "GPU_2D" | "gpu"):  # of KeOps
            at.report("cuda-device", value)
        case ast.Constant(value=str(text)):
            if any(NCCL.search(part) for part in text.split(",")):
                at.report("nccl", value)
            elif text == "xla":
                legacy.report(at, "xla-process-group", value)
        case ast.IfExp():
            at.choice(value, lambda part: backend(at, part))
        case ast.BoolOp():
            at.boolean(value, lambda part: backend(at, part))
        case _:
            at.visit(value)


def assigned(at: "State", target: ast.expr, value: ast.expr) -> None:
    """An assignment to one target."""
    match target:
        case ast.Attribute(attr=key) | ast.Name(key) | ast.Subscript(slice=ast.Constant(str(key))):
            pass
        case _:
            key = ""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        if len(target.elts) == len(value.elts):
            for one, part in zip(target.elts, value.elts, strict=True):
                assigned(at, one, part)
            return
    if role(key) or at.foreign or not isinstance(target, ast.Name):
        named(at, key, value)
    else:
        scope = at.scope.find(key) or at.scope
        device(at, value, _later(at, scope, key))


def _later(at: "State", scope: Scope, name: str) -> Sink:
    return lambda result: at.kept.append((scope, name, result, at.guard))


def settle(at: "State") -> None:
    """At the end of the file: strings in variables that were used as devices."""
    for scope, name, node, guard in at.kept:
        if (scope, name) in at.used:
            with at.having(guard=guard):
                report_device(at, node)


def defaults(at: "State", args: ast.arguments) -> None:
    """Defaults of parameters."""
    plain = [*args.posonlyargs, *args.args]
    pairs = list(zip(plain[len(plain) - len(args.defaults) :], args.defaults, strict=True))
    pairs += [
        (arg, value)
        for arg, value in zip(args.kwonlyargs, args.kw_defaults, strict=True)
        if value is not None
    ]
    for arg, value in pairs:
        named(at, arg.arg, value)


def items(at: "State", node: ast.Dict) -> None:
    """The entries of a dictionary, each under its key."""
    keys = {getattr(key, "value", None) for key in node.keys}
    for key, value in zip(node.keys, node.values, strict=True):
        if at.torch and key is not None and is_cuda(key) and keys & DEVICES:
            at.report("cuda-device", key, BY_DEVICE, "note")
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            named(at, key.value, value)
            legacy.text(at, key)
            if key.value == "TPU":  # {"TPU": 4}, what Ray is asked for
                legacy.report(at, "xla-device", key, "a resource of TPUs")
            if key.value == "nvcc":
                at.reported.add(key)
                if isinstance(value, ast.List | ast.Name | ast.Attribute | ast.BinOp):
                    at.report("cuda-extension", key, "options of CUDA's compiler", "note")
        else:
            at.visit(value)
        at.all([key])


def elements(at: "State", node: ast.Tuple | ast.List | ast.Set) -> None:
    """A list with "cuda:0" in it; one with plain "cuda" may be a list of words."""
    if not at.foreign and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        words = {getattr(elt, "value", None) for elt in node.elts}
        for elt in node.elts:
            if numbered(elt):
                at.report("cuda-device", elt)
            elif at.torch and is_cuda(elt) and words & DEVICES:
                at.report("cuda-device", elt, ONE_OF, "note")
            elif at.torch and is_xla(elt) and words & DEVICES and words & {"cuda", "gpu", "cpu"}:
                legacy.report(at, "xla-device", elt, ONE_OF)


def called(at: "State", node: ast.Call, name: str) -> None:
    """Moves, and every argument of a call."""
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    last = method or name.split(".")[-1]
    if method == "cuda" and moves(at, node):
        at.report("cuda-move", node.func)
    place = DEVICE_POSITIONS.get(
        name, 0 if method == "to" and not name.startswith("torch.") else -1
    )
    for index, arg in enumerate(node.args):
        if index == place:
            device(at, arg, numbers=True)
        else:
            text = last in NAMES["text_functions"] or last.endswith(
                ("Error", "Exception", "Warning")
            )
            passed = numbered(arg) or (is_cuda(arg) and _takes_device(at, node.func, index))
            if passed and not text and not at.foreign:
                at.report("cuda-device", arg)
            at.visit(arg)
    if last == "DataLoader" and len(node.args) > PINNED_PLACE:
        named(at, "pin_memory", node.args[PINNED_PLACE])
    option = _option(node, last)
    for keyword in node.keywords:
        if keyword.arg == "choices" and isinstance(keyword.value, ast.List | ast.Tuple | ast.Set):
            elements(at, keyword.value)
        if keyword.arg in ("help", "choices", "description"):
            continue
        if keyword.arg == "cuda" and name == "dict" and at.torch and len(node.keywords) > 1:
            at.report("cuda-device", keyword.value, BY_DEVICE, "note")
        if keyword.arg == "default" and option:
            named(at, option, keyword.value)
        elif keyword.arg == "type" and name == "torch.device":
            device(at, keyword.value)
        elif keyword.arg is None:
            at.visit(keyword.value)
        else:
            named(at, keyword.arg, keyword.value)
    if last in NAMES["default_functions"] and len(node.args) >= 2:
        key, value = node.args[-2:] if last == "getattr" else node.args[:2]
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            if isinstance(value, ast.Constant) and not numbered(value):
                named(at, key.value, value)


def _takes_device(at: "State", function: ast.AST, index: int) -> bool:
    """A function of this project that is called with "cuda": the word is a device there."""
    if not (isinstance(function, ast.Name) and at.torch) or ABOUT.search(function.id):
        return False
    bindings = at.scope.bindings(function.id)
    if len(bindings) != 1:
        return False
    binding = bindings[0]
    if isinstance(binding.node, ast.FunctionDef):
        given = [arg.arg for arg in binding.node.args.args]
        return index < len(given) and role(given[index]) == "device"
    return binding.kind == "import" and not binding.target.startswith("torch.")


def _option(node: ast.Call, last: str) -> str:
    """The name of a command-line option, from add_argument("-d", "--device", ...)."""
    texts = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
    options = [text for text in texts if isinstance(text, str) and text.startswith("-")]
    if options:
        return max(options, key=len)
    return "" if last != "add_argument" or not texts else str(texts[0])


def moves(at: "State", node: ast.Call) -> bool:
    """`.cuda(...)` of something that can be a tensor or a module."""
    assert isinstance(node.func, ast.Attribute)
    if (
        len(node.args) > 2
        or not {keyword.arg for keyword in node.keywords} <= NAMES["move_keywords"]
    ):
        return False
    owner = node.func.value
    if at.foreign or isinstance(owner, ast.Constant | ast.JoinedStr):
        return False
    if isinstance(owner, ast.Call) and written(owner.func) == "super":
        return False  # def cuda(self) that adds to what it inherits
    text = written(owner)
    if text:
        if text.split(".")[-1].lower() in NAMES["settings"]:
            return False
        if text == "self" and "cuda" in at.names.methods:
            return False
        if at.scope.bindings(text.split(".")[0]) and at.dotted(owner, follow=False):
            return False  # a function called cuda in some imported module
        if "cuda" in at.names.methods and not at.torch:
            return False
        return not _own(at, owner)
    return True


def _own(at: "State", owner: ast.AST) -> bool:
    """An object of a class of this file that has a method called cuda of its own."""
    if not isinstance(owner, ast.Name):
        return False
    for binding in at.scope.bindings(owner.id):
        made = getattr(binding.node, "func", None)
        if isinstance(made, ast.Name) and made.id in at.names.classes:
            methods = at.names.classes[made.id].body
            return any(getattr(method, "name", "") == "cuda" for method in methods)
    return False
