"""Is an expression a tensor? A cautious answer from the file alone: "tensor", "host" or "".

"tensor" is said of results of torch functions and of what is computed from them, of parameters
annotated as tensors, of outputs of modules made here, and of what `.backward()` is called on.
"host" is said of numbers, strings, numpy and pandas. All else is unknown, "".
"""

import ast
import re
from collections.abc import Iterator

from utils.audit.rules import NAMES
from utils.audit.scopes import Binding, Names, Scope, written

SPACES = {"functional", "linalg", "fft", "special"}
MODULE_METHODS = {"to", "cuda", "eval", "half"}
DEPTH = 12
LOADER = re.compile(r"(loader|dataloader|_dl|(?<!num_)(?<!n_)batches|data_iter)$", re.I)
COUNTS = {"range", "trange", "len"}
# Parameters of forward that are numbers or switches, and what works on the CPU before a model does.
NUMBER = re.compile(
    r"(^|_)(size|sizes|len|length|num|n|step|mode|idx|index|dim|scale|return|use|is|output|layer"
    r"|epoch|h|w|b|k|shape|args|kwargs|config|cache|names?|training|flag|type)s?(_|$)"
)
TOKENIZER = re.compile(r"(tokenizer|processor|feature_extractor|collator)$", re.I)


class Tensors:
    """What the expressions of one file are, as far as it tells."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self._known: dict[tuple[Scope | None, str], str] = {}
        self._cpu: dict[tuple[Scope, str], bool] = {}
        self._modules: dict[str, bool] = {}

    def kind(self, node: ast.AST, scope: Scope, depth: int = DEPTH) -> str:
        """ "tensor", "host" or ""; see the top of this file."""
        if depth == 0:
            return ""
        match node:
            case ast.Constant() | ast.JoinedStr() | ast.List() | ast.Dict() | ast.Set():
                return "host"
            case ast.ListComp() | ast.DictComp() | ast.SetComp():
                return "host"
            case ast.Name():
                return self._name(node.id, scope, depth)
            case ast.Call():
                return self._call(node, scope, depth)
            case ast.Attribute():
                if node.attr in NAMES["host_attributes"]:
                    return "host"
                if node.attr in NAMES["tensor_attributes"]:
                    return self.kind(node.value, scope, depth - 1)
                if node.attr in NAMES["model_outputs"] and _is_output(node, scope):
                    return "tensor"
                return self._attribute(node, depth)
            case ast.Subscript():
                if self.element(node.value, scope, depth - 1) == "tensor":
                    return "tensor"
                return self.kind(node.value, scope, depth - 1)
            case ast.UnaryOp():
                if isinstance(node.op, ast.Not):
                    return "host"
                return self.kind(node.operand, scope, depth - 1)
            case ast.BinOp():
                return self._either([node.left, node.right], scope, depth)
            case ast.Compare():
                if any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops):
                    return "host"
                return self._either([node.left, *node.comparators], scope, depth)
            case ast.IfExp():
                return self._same([node.body, node.orelse], scope, depth)
            case ast.NamedExpr():
                return self.kind(node.value, scope, depth - 1)
        return ""

    def element(self, node: ast.AST, scope: Scope, depth: int = DEPTH) -> str:
        """What the elements of a list are that a comprehension made: [x.sum() for x in xs]."""
        if isinstance(node, ast.Name):
            kept, home = scope.bindings(node.id), scope.find(node.id)
            if len(kept) != 1 or kept[0].kind != "value" or home is None or depth <= 1:
                return ""
            made, scope = kept[0].node, home
        else:
            made = node
        if not isinstance(made, ast.ListComp) or depth <= 1:
            return ""
        return self.kind(
            made.elt, self.names.comprehension(made, made.generators, scope), depth - 1
        )

    def _either(self, parts: list[ast.expr], scope: Scope, depth: int) -> str:
        kinds = [self.kind(part, scope, depth - 1) for part in parts]
        if "tensor" in kinds:
            return "tensor"
        return "host" if all(kind == "host" for kind in kinds) else ""

    def _same(self, parts: list[ast.expr], scope: Scope, depth: int) -> str:
        kinds = {self.kind(part, scope, depth - 1) for part in parts}
        return kinds.pop() if len(kinds) == 1 else ""

    def _name(self, name: str, scope: Scope, depth: int) -> str:
        home = scope.find(name)
        if home is None:
            return ""
        key = (home, name)
        if key not in self._known:
            before = set(self._known)
            self._known[key] = ""
            kind = self._bound(name, home, depth)
            if not kind:  # what was concluded from the first binding alone is forgotten
                for other in set(self._known) - before:
                    del self._known[other]
            self._known[key] = kind
        return self._known[key]

    def _bound(self, name: str, home: Scope, depth: int) -> str:
        """The kind on which all bindings of the name agree."""
        if name in home.losses:
            return "tensor"
        agreed = ""
        for index, item in enumerate(home.names[name]):
            kind = self._binding(item, home, depth)
            if index == 0:
                # x = f(x) may rest on what x was first.
                agreed = self._known[home, name] = kind
            if not kind or kind != agreed:
                return ""
        return agreed

    def _binding(self, binding: Binding, home: Scope, depth: int) -> str:
        node = binding.node
        if binding.kind == "parameter" and isinstance(node, ast.arg):
            if node.annotation is not None:
                return "tensor" if _says_tensor(node.annotation) else ""
            return "tensor" if self._enters_module(node, home) else ""
        if binding.kind == "loop" and _over_batches(node):
            return "tensor"
        if node is None or binding.kind not in ("value", "part", "loop"):
            return ""
        if isinstance(node, ast.AugAssign):
            return self._either([node.target, node.value], home, depth)
        kind = self.kind(node, home, depth - 1)
        return kind if binding.kind == "value" or kind == "tensor" else ""

    def _enters_module(self, arg: ast.arg, home: Scope) -> bool:
        """A parameter of the forward method of a module, unless it is named as a number."""
        if not isinstance(home.node, ast.FunctionDef):
            return False
        args = home.node.args
        if home.parent is None or not self.is_forward(home.node, home.parent) or args.defaults:
            return False
        first = next(iter(args.args), None)
        return arg is not first and arg in args.args and not NUMBER.search(arg.arg)

    def is_forward(self, function: ast.AST, scope: Scope) -> bool:
        """The forward method of a module: it runs at every step."""
        owner = scope.node
        return (
            getattr(function, "name", "") == "forward"
            and isinstance(owner, ast.ClassDef)
            and self.names.classes.get(owner.name) is owner
            and self.derives_module(owner.name)
        )

    def _returned(self, name: str, scope: Scope, depth: int) -> str:
        """What a function of this file returns, where all its ends agree."""
        home = scope.find(name)
        kept = home.names[name] if home else []
        if len(kept) != 1 or kept[0].kind != "definition" or depth <= 1:
            return ""
        made = kept[0].node
        if not isinstance(made, ast.FunctionDef):
            return ""
        key = (None, f"{name}()")
        if key not in self._known:
            self._known[key] = ""
            inner = self.names.scopes[made]
            ends = [item.value for item in _own_nodes(made) if isinstance(item, ast.Return)]
            kinds = {self.kind(end, inner, depth - 1) if end else "" for end in ends}
            self._known[key] = kinds.pop() if len(kinds) == 1 else ""
        return self._known[key]

    def _call(self, node: ast.Call, scope: Scope, depth: int) -> str:
        name = self.names.dotted(node.func, scope)
        if name.split(".")[0] in NAMES["host_modules"] or name in NAMES["host_builtins"]:
            return "host"
        if name.startswith("torch."):
            return "tensor" if is_tensor_function(name) else ""
        if isinstance(node.func, ast.Attribute):
            method = node.func.attr
            if method in NAMES["host_methods"] and method not in ("size",):
                return "host"
            owner = self.kind(node.func.value, scope, depth - 1)
            if owner == "tensor":
                return "" if method in NAMES["not_tensor_methods"] else "tensor"
            if owner == "host":
                return "host" if self._numeric(node.func.value) else ""
        if self.is_module(node.func, scope, depth - 1):
            return "tensor"
        if isinstance(node.func, ast.Name):
            return self._returned(node.func.id, scope, depth)
        return ""

    def _numeric(self, node: ast.AST) -> bool:
        return not isinstance(node, ast.Dict | ast.List | ast.JoinedStr)

    def _attribute(self, node: ast.Attribute, depth: int) -> str:
        values = self.names.attributes.get(written(node), ())
        key = (None, written(node))
        if not values or key in self._known:
            return self._known.get(key, "")
        self._known[key] = ""
        kinds = {self.kind(value, scope, depth - 1) for value, scope in values}
        self._known[key] = kinds.pop() if len(kinds) == 1 else ""
        return self._known[key]

    def on_cpu(self, node: ast.AST, scope: Scope, depth: int = DEPTH) -> bool:
        """Computed from tensors that are made without a device: they are on the CPU."""
        if depth == 0:
            return False
        match node:
            case ast.Constant():
                return True
            case ast.Call():
                name = self.names.dotted(node.func, scope)
                placed = any(keyword.arg in ("device", "out", None) for keyword in node.keywords)
                if not placed and any(map(TOKENIZER.search, written(node.func).split("."))):
                    return True
                if name.startswith("torch."):
                    if name.split(".")[1] in NAMES["factories"]:
                        return not placed
                    parts = [arg for arg in node.args if not isinstance(arg, ast.Constant)]
                    return bool(parts) and self.on_cpu(parts[0], scope, depth - 1)
                if isinstance(node.func, ast.Attribute) and node.func.attr not in NAMES["moves"]:
                    return not placed and self.on_cpu(node.func.value, scope, depth - 1)
                return False
            case ast.Subscript() | ast.Attribute():
                return self.on_cpu(node.value, scope, depth - 1)
            case ast.UnaryOp():
                return self.on_cpu(node.operand, scope, depth - 1)
            case ast.BinOp():
                parts = [node.left, node.right]
            case ast.Compare():
                parts = [node.left, *node.comparators]
            case ast.Name():
                return self._name_on_cpu(node.id, scope, depth)
            case _:
                return False
        return all(self.on_cpu(part, scope, depth - 1) for part in parts)

    def _name_on_cpu(self, name: str, scope: Scope, depth: int) -> bool:
        home = scope.find(name)
        if home is None:
            return False
        key = (home, name)
        if key not in self._cpu:
            before = set(self._cpu)
            self._cpu[key] = True  # x = 1 / x stays where x is
            answer = all(
                item.kind in ("value", "part", "loop")
                and isinstance(item.node, ast.expr)
                and not isinstance(item.node, ast.Constant)
                and self.on_cpu(item.node, home, depth - 1)
                for item in home.names[name]
            )
            if not answer:  # nor is what was concluded from it
                for other in set(self._cpu) - before:
                    del self._cpu[other]
            self._cpu[key] = answer
        return self._cpu[key]

    def is_module(self, node: ast.AST, scope: Scope, depth: int = DEPTH) -> bool:
        """The expression is an nn.Module made in this file, such as `criterion` or `self.head`."""
        if depth <= 0:
            return False
        if isinstance(node, ast.Name):
            kept = scope.bindings(node.id)
            home = scope.find(node.id)
            if not kept or home is None or any(item.kind != "value" for item in kept):
                return False
            return all(self._makes_module(item.node, home, depth - 1) for item in kept)
        if isinstance(node, ast.Attribute):
            values = self.names.attributes.get(written(node), ())
            return bool(values) and all(self._makes_module(v, s, depth - 1) for v, s in values)
        return False

    def _makes_module(self, node: ast.AST | None, scope: Scope, depth: int) -> bool:
        if depth <= 0 or not isinstance(node, ast.Call):
            return False
        name = self.names.dotted(node.func, scope)
        if name.startswith("torch.nn.") and "functional" not in name:
            return name.split(".")[-1][:1].isupper() and not name.endswith("Parameter")
        if isinstance(node.func, ast.Name) and node.func.id in self.names.classes:
            return self.derives_module(node.func.id)
        if isinstance(node.func, ast.Attribute) and node.func.attr in MODULE_METHODS:
            return self._makes_module(node.func.value, scope, depth - 1)
        return False

    def derives_module(self, name: str) -> bool:
        """The class of that name, defined in this file, is an nn.Module by its written bases."""
        if name not in self._modules:
            self._modules[name] = False
            bases = [written(base) for base in self.names.classes[name].bases]
            self._modules[name] = any(
                base.split(".")[-1] in ("Module", "LightningModule", "PreTrainedModel")
                or (base in self.names.classes and self.derives_module(base))
                for base in bases
            )
        return self._modules[name]


def _over_batches(node: ast.AST | None) -> bool:
    """The loop is over a loader: for x, y in tqdm(train_loader)."""
    while isinstance(node, ast.Call) and node.args and written(node.func) not in COUNTS:
        node = node.args[0]
    return node is not None and LOADER.search(written(node)) is not None


def _is_output(node: ast.Attribute, scope: Scope) -> bool:
    """outputs.logits, model(x).loss: not self.loss, and not a field of some settings."""
    owner = node.value
    if isinstance(owner, ast.Call):
        return written(owner.func).split(".")[-1] in NAMES["models"]
    if not isinstance(owner, ast.Name):
        return False
    made = [item.node for item in scope.bindings(owner.id) if item.kind == "value"]
    return bool(made) and all(
        isinstance(call, ast.Call) and written(call.func).split(".")[-1] in NAMES["models"]
        for call in made
    )


def _own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions within it."""
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            todo.extend(ast.iter_child_nodes(node))


def _says_tensor(annotation: ast.AST) -> bool:
    if isinstance(annotation, ast.Constant):
        return annotation.value in ("Tensor", "torch.Tensor")
    return written(annotation).split(".")[-1] == "Tensor"


def is_tensor_function(name: str) -> bool:
    """The full name of a torch function whose result is a tensor.

    >>> is_tensor_function("torch.nn.functional.relu"), is_tensor_function("torch.no_grad")
    (True, False)
    """
    parts = name.split(".")
    last = parts[-1]
    if last.startswith(("is_", "are_", "has_", "set_", "get_", "_")) or not last[:1].islower():
        return False
    if len(parts) == 2:
        return last not in NAMES["not_tensor_functions"]
    return (
        parts[-2] in SPACES
        and parts[1] in {"nn", *SPACES}
        and last not in NAMES["not_tensor_functions"]
    )
