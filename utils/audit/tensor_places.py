"""Where tensors are: on the CPU when they are made there without a device, or were moved there."""

import ast
import re
from typing import Any

from utils.audit.rules import NAMES
from utils.audit.scopes import Binding, Scope, same_frame, walk, written
from utils.audit.tensor_forms import BATCH, HOST, LOADER, MAYBE, NUMBER, TENSOR, flat
from utils.audit.tensor_names import TOKENIZER, is_placed, moves_to_host

DEPTH = 30  # expressions within expressions that are followed


ACCELERATOR = re.compile(r"(cuda|xla|neuron|mps|xpu|hpu)(:\d+)?$")
RANGES = {"torch.arange", "torch.linspace", "torch.zeros", "torch.ones", "torch.randperm"}
DEVICE_LOADERS = {"accelerate", "pytorch_lightning", "lightning", "deepspeed"}
XLA_LOADER = re.compile(r"(Mp)?DeviceLoader|ParallelLoader")
LOADS = {"torch.load", "safetensors.torch.load_file", "torch.jit.load", "safetensors.safe_open"}


def _is_cpu(item: ast.keyword) -> bool:
    return item.arg == "device" and _names_cpu(item.value)


def _names_cpu(node: ast.expr) -> bool:
    """ "cpu", torch.device("cpu"), or a function that gives storage back as it is."""
    match node:
        case ast.Constant(value=str(place)):
            return place == "cpu"
        case ast.Call(func=ast.Attribute(attr="device"), args=[ast.Constant(value="cpu")]):
            return True
        case ast.Lambda(args=ast.arguments(args=[first, *_]), body=ast.Name() as body):
            return first.arg == body.id
    return False


def _loads_on_host(node: ast.Call) -> bool:
    """torch.load(path, map_location="cpu"); load_file(path), which loads there without a device."""
    places = [item.value for item in node.keywords if item.arg in ("map_location", "device")]
    places += node.args[1:2]
    if not places:
        return written(node.func).endswith("load_file")
    return _names_cpu(places[0])


def _zipped(item: Binding) -> ast.AST | None:
    """What a loop goes through for this name: one of the arguments of zip."""
    match item:
        case Binding(
            kind="loop", node=ast.Call(func=ast.Name("zip"), args=args), path=(int(place), *_)
        ) if 0 <= place < len(args):
            return args[place]
    return item.node


class Places:
    """Which expressions of one file are on the CPU; `tensors`, a `tensor_kinds.Tensors`, knows what
    they are.
    """

    def __init__(self, tensors: Any) -> None:
        self.tensors = tensors
        self._known: dict[ast.AST, bool] = {}
        self._moving: list[int] | None = None  # lines that move a tensor to a device

    def only_host(self) -> bool:
        """The file loads its tensors to the CPU, and names nothing that could move them on: it
        looks at what was saved, or converts it.
        """
        names = self.tensors.names
        if "torch" not in names.imports:
            return False
        loads = False
        for node in walk(names.module.node):
            match node:
                case ast.Call():
                    name = names.dotted(node.func, names.module)
                    if name in LOADS:
                        if not _loads_on_host(node):
                            return False
                        loads = True
                    elif name.startswith("torch.nn.") or "from_pretrained" in name:
                        return False
                case ast.Attribute(attr="cuda" | "nn" | "accelerator" | "forward" | "backward"):
                    return False
                case ast.keyword(arg="device") if not _is_cpu(node):
                    return False
                case ast.arg(arg="device" | "model") | ast.Name(id="device" | "model"):
                    return False
                case ast.Constant(value=str(text)) if ACCELERATOR.match(text):
                    return False
        return loads

    def on_cpu(self, node: ast.AST, scope: Scope) -> bool:
        """Computed from tensors that are made without a device, or moved: they are on the CPU."""
        known = self._known.get(node)
        if known is None:
            if self.tensors.depth > DEPTH:
                return False
            self.tensors.depth += 1
            self._known[node] = True  # x = 1 / x stays where x is
            known = self._known[node] = self._on_cpu(node, scope)
            self.tensors.depth -= 1
        return known

    def _on_cpu(self, node: ast.AST, scope: Scope) -> bool:
        match node:
            case ast.Constant():
                return True
            case ast.Call():
                return self._made_on_cpu(node, scope)
            case ast.Attribute(value=ast.Name("self")):
                return self._kept_on_cpu(node, scope)
            case ast.Subscript(slice=ast.Constant(value="meta")):
                return True  # of a batch: what is no input of the model
            case ast.Subscript() | ast.Attribute():
                return self.on_cpu(node.value, scope)
            case ast.ListComp() | ast.GeneratorExp():
                inner = self.tensors.names.comprehension(node, node.generators, scope)
                return self.on_cpu(node.elt, inner)
            case ast.DictComp():
                inner = self.tensors.names.comprehension(node, node.generators, scope)
                return self.on_cpu(node.value, inner)
            case ast.Tuple():
                kinds = [flat(self.tensors.value(part, scope)) for part in node.elts]
                return all(
                    kind == "host" or self.on_cpu(part, scope)
                    for kind, part in zip(kinds, node.elts, strict=True)
                )
            case ast.UnaryOp():
                return self.on_cpu(node.operand, scope)
            case ast.IfExp():
                return self.on_cpu(node.body, scope) and self.on_cpu(node.orelse, scope)
            case ast.BinOp():
                parts = [node.left, node.right]
            case ast.Compare():
                parts = [node.left, *node.comparators]
            case ast.Name():
                return self._name_on_cpu(node, scope)
            case _:
                return False
        if any(self._is_made(part, scope) for part in parts):
            return True  # what is computed with it has to be there, too
        # A number is wherever the tensor is that it is computed with.
        kinds = [flat(self.tensors.value(part, scope)) for part in parts]
        wanted = [kind == "tensor" if "tensor" in kinds else kind != "host" for kind in kinds]
        parts = [part for part, is_one in zip(parts, wanted, strict=True) if is_one] or parts
        return all(self.on_cpu(part, scope) for part in parts)

    def _is_made(self, node: ast.AST, scope: Scope) -> bool:
        """torch.arange(n), of some length: made on the CPU, as no device is given."""
        if not isinstance(node, ast.Call) or not node.args:
            return False
        name = self.tensors.names.dotted(node.func, scope)
        return name in RANGES and not any(item.arg in ("device", None) for item in node.keywords)

    def _kept_on_cpu(self, node: ast.Attribute, scope: Scope) -> bool:
        """self.length = torch.zeros(1): a module takes its buffers along, and nothing else."""
        owner = scope.owner()
        text = written(node)
        if any(one is owner for one, name in self.tensors.names.buffers if name == node.attr):
            return False
        kept = [
            (value, where)
            for value, where in self.tensors.names.attributes.get(text, ())
            if where.owner() is owner
            and not isinstance(value, ast.Constant)
            and all(written(one) != text for one in walk(value))
        ]
        return bool(kept) and all(
            flat(self.tensors.value(value, where)) == TENSOR and self.on_cpu(value, where)
            for value, where in kept
        )

    def _made_on_cpu(self, node: ast.Call, scope: Scope) -> bool:
        name = self.tensors.names.dotted(node.func, scope)
        placed = any(keyword.arg in ("device", "out", None) for keyword in node.keywords)
        if moves_to_host(node) or (name in LOADS and _loads_on_host(node)):
            return True
        if isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            if any(self._is_cpu_device(one, scope) for one in node.args[:1]):
                return True
        if name.startswith("torch.") and any(map(_is_cpu, node.keywords)):
            return True
        if not placed and any(map(TOKENIZER.search, written(node.func).split("."))):
            return True
        if name.startswith("torch."):
            if name.split(".")[1] in NAMES["factories"]:
                return not placed
            given = [arg for arg in node.args if not isinstance(arg, ast.Constant)]
            if given and all(self.tensors.value(one, scope) in (HOST, NUMBER) for one in given):
                return not placed
            if given and isinstance(given[0], ast.List | ast.Tuple):
                given = given[0].elts
            others = [
                one for one in given[1:] if self.tensors.value(one, scope) in (TENSOR, MAYBE, BATCH)
            ]
            return bool(given) and all(self.on_cpu(part, scope) for part in [given[0], *others])
        result = self.tensors.defined(node.func, scope)
        if result is not None and isinstance(result[1], ast.FunctionDef):
            return self._returned_on_cpu(*result)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "generate" and node.args:
            return self.on_cpu(node.args[0], scope)
        if isinstance(node.func, ast.Attribute) and node.func.attr not in NAMES["moves"]:
            return not placed and self.on_cpu(node.func.value, scope)
        return False

    def _is_cpu_device(self, node: ast.expr, scope: Scope) -> bool:
        """device, of `device = torch.device("cpu")`, and nothing else here."""
        home = scope.find(node.id) if isinstance(node, ast.Name) else None
        if home is not scope or not isinstance(node, ast.Name):
            return False
        kept = home.reaching(node.id, (node.lineno, node.col_offset))
        return bool(kept) and all(
            isinstance(one.node, ast.expr) and _names_cpu(one.node) for one in kept
        )

    def _returned_on_cpu(self, tensors: Any, function: ast.FunctionDef) -> bool:
        """All that a function of the tree returns is made on the CPU."""
        inner = tensors.names.scopes.get(function)
        ends = [one.value for one in walk(function) if isinstance(one, ast.Return) and one.value]
        return (
            inner is not None
            and bool(ends)
            and all(tensors.places.on_cpu(one, inner) for one in ends)
        )

    def _name_on_cpu(self, node: ast.Name, scope: Scope) -> bool:
        home = scope.find(node.id)
        if home is None:
            return False
        kept = home.names[node.id]
        if len(kept) > 1 and same_frame(scope, home):
            kept = home.reaching(node.id, (node.lineno, node.col_offset))
        parts = [item for item in kept if not isinstance(item.node, ast.Constant)]
        if node.id in home.added:
            return all(self.on_cpu(one, home) for one in home.added[node.id])
        return bool(parts) and all(
            self._bound_on_cpu(_zipped(item), home) or self._is_loaded(item, home) for item in parts
        )

    def _is_loaded(self, item: Binding, home: Scope) -> bool:
        """What a loader gives, in a loop that moves some of it to the device: not this."""
        element = item.node if item.kind == "loop" else None
        while isinstance(element, ast.Call) and element.args:
            element = element.args[0]  # enumerate(tqdm(loader))
        if element is None or self.tensors.names.imports & DEVICE_LOADERS:
            return False
        if self.tensors.value(element, home) != LOADER or "prefetch" in written(element):
            return False
        if self._moving is None:
            calls = [
                one
                for one in walk(self.tensors.names.module.node)
                if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute | ast.Name)
            ]
            loads = any(XLA_LOADER.search(written(one.func)) for one in calls)
            self._moving = [
                one.lineno
                for one in calls
                if not loads and (getattr(one.func, "attr", "") == "cuda" or is_placed(one))
            ]
        first, last = item.start[0], item.end
        return any(first <= line <= last for line in self._moving)

    def _bound_on_cpu(self, node: ast.AST | None, home: Scope) -> bool:
        if isinstance(node, ast.arg):
            given = self.tensors.given_at_calls(node, home)
            return bool(given) and all(self.on_cpu(one, scope) for one, scope in given)
        if isinstance(node, ast.AugAssign):
            return self.on_cpu(node.target, home) and (
                flat(self.tensors.value(node.value, home)) not in ("tensor", "maybe", "batch")
                or self.on_cpu(node.value, home)
            )
        return isinstance(node, ast.expr) and self.on_cpu(node, home)
