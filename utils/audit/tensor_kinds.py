"""What is an expression: a tensor, perhaps one, or something on the host? From the text alone.

An expression has a value of one of these kinds. TENSOR: results of torch functions, of modules, of
methods that only tensors have, and what is computed from them. MAYBE: results of unknown functions
that were given tensors. HOST: numbers, texts, arrays of numpy. MODULE, LOADER, BATCH: what their
names say. `Many`, `Table` and tuples hold values, `Made` is an object of a class of the tree.
"" is unknown. A name has the values that reach it in its function; a parameter is what it is
annotated as, used as, or called with; a function of the tree is what it returns.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from utils.audit.rules import NAMES
from utils.audit.scopes import Binding, Names, Scope, written

if TYPE_CHECKING:
    from utils.audit.tree_modules import Modules

TENSOR, MAYBE, HOST, NUMBER, NONE, UNKNOWN = "tensor", "maybe", "host", "number", "none", ""
MODULE, LOADER, BATCH, SAMPLER = "module", "loader", "batch", "distribution"
SPACES = {"functional", "linalg", "fft", "special"}
DEPTH = 30  # expressions within expressions that are followed
CALLS = 6  # places that call a function, of which its parameters are learned
LOADER_NAME = re.compile(r"(loader|dataloader|_dl|(?<!num_)(?<!n_)batches|data_iter)$", re.I)
MODEL_NAME = re.compile(
    r"((^|_)(model|module|net|network|unet|vae|criterion|encoder|decoder|discriminator|critic"
    r"|actor|policy|backbone|loss_(fn|func))|[a-z]Loss)$"
)
LOSS_NAME = re.compile(r"(^|_)(loss|losses|norm|grad_norm|logits?|acc|accuracy)$")
TEXT_NAME = re.compile(
    r"(^|_)(path|file|filename|name|text|caption|key|url|info|meta|image_id|img_id|title|prompt|shape|dtype"
    r"|device)s?$|^num_"
)
TEXT_METHODS = {"strip", "lower", "upper", "startswith", "endswith", "replace", "join", "rstrip"}
TEXT_METHODS |= {"astype", "tobytes", "to_numpy"}
# What a function with such a name returns is no result of a model: get_model, is_loss.
VERB = re.compile(
    r"^_*(is|has|get|set|build|create|make|load|init|setup|prepare|wrap|save|compile|find|check|add"
    r"|list|count|remove|register|freeze|clone|copy|move|replace|merge|quantize|train|test|log|print)_"
)
ASKS = re.compile(r"^(is|has|get|set)(_|$)")
COUNTS = {"range", "trange", "len"}
# Parameters of forward that are numbers or switches, and what works on the CPU before a model does.
NUMBER_NAME = re.compile(
    r"(^|_)(size|sizes|len|length|num|n|step|mode|idx|index|dim|scale|return|use|is|output|layer"
    r"|epoch|h|w|b|k|shape|args|kwargs|config|cache|names?|training|flag|type)s?(_|$)"
)
TOKENIZER = re.compile(r"(tokenizer|processor|feature_extractor|collator)$", re.I)
PASSED_ON = {"list", "tuple", "iter", "reversed", "sorted", "tqdm", "deepcopy", "copy", "islice"}
MODULE_METHODS = {"to", "cuda", "eval", "train", "half", "float", "double", "bfloat16", "module"}
SEVERAL = {"chunk", "split", "unbind", "tensor_split", "meshgrid", "broadcast_tensors", "grad"}
SEVERAL |= {"hsplit", "vsplit", "dsplit", "unsafe_chunk", "unsafe_split"}
RECURRENT = {"LSTM", "GRU", "RNN", "MultiheadAttention", "LSTMCell"}
ON_HOST = {
    "int",
    "float",
    "str",
    "bool",
    "bytes",
    "ndarray",
    "Path",
    "device",
    "dtype",
    "DataFrame",
}
ON_HOST |= {"Namespace", "Logger", "Callable", "Image", "complex", "Size", "Optimizer"}
# Nothing that is called stands below them.
ENDS = {ast.Name, ast.Constant, ast.Load, ast.Store, ast.Del, ast.alias, ast.arg}
ENDS |= {str, int, type(None), ast.Import, ast.ImportFrom, ast.Pass, ast.Global}
ENDS |= {ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod, ast.Pow, ast.And, ast.Or, ast.Not, ast.USub}
MAPPINGS = {"Dict", "dict", "Mapping", "OrderedDict", "MutableMapping", "defaultdict"}
LOGGER = re.compile(r"(^|[._])(\w*log(ger)?|writer|wandb|tb|tensorboard|pbar|progress(_bar)?|bar)$")
LISTS = {
    "List",
    "list",
    "Sequence",
    "Iterable",
    "Iterator",
    "Generator",
    "set",
    "Set",
    "Collection",
}


class Many(NamedTuple):
    """A list, a generator or the like whose elements are alike."""

    of: "Value"


@dataclass(frozen=True, eq=False)
class Table:
    """A dictionary that was written out, by its keys."""

    of: dict[str, "Value"]


class Made(NamedTuple):
    """An object of a class of the tree; `tensors` knows the file that defines the class."""

    tensors: "Tensors"
    node: ast.ClassDef


Value = str | Many | Table | Made | tuple
Defined = tuple["Tensors", ast.AST]


class Tensors:
    """What the expressions of one file are, as far as the text of the tree tells."""

    def __init__(
        self, names: Names, modules: "Modules | None" = None, folder: str | None = None
    ) -> None:
        self.names = names
        self.modules = modules
        self.folder = folder
        self._values: dict[ast.AST, Value] = {}
        self._cpu: dict[ast.AST, bool] = {}
        self._returns: dict[ast.AST, Value] = {}
        self._members: dict[tuple[ast.AST, str], Value] = {}
        self._modules: dict[ast.AST, bool] = {}
        self._used: set[tuple[Scope | None, str]] | None = None
        self._called: dict[str, list[tuple[ast.Call, Scope]]] = {}
        self._closures: set[str] = set()
        self._depth = 0
        self.arrays = bool(names.imports & NAMES["array_libraries"])

    def kind(self, node: ast.AST, scope: Scope) -> str:
        """ "tensor", "maybe", "host", "module", "batch", "many" for a list of tensors, or ""."""
        return _flat(self.value(node, scope))

    def element(self, node: ast.AST, scope: Scope) -> str:
        """What the elements of a list are: of [x.sum() for x in xs]."""
        value = self.value(node, scope)
        return _flat(_iterated(value)) if isinstance(value, Many | tuple) else ""

    def value(self, node: ast.AST, scope: Scope) -> Value:
        """The value of an expression; see the top of this file."""
        known = self._values.get(node)
        if known is not None:
            return known
        if self._depth > DEPTH:
            return UNKNOWN
        self._depth += 1
        self._values[node] = UNKNOWN  # x = f(x) may rest on what x was first
        result = self._values[node] = self._value(node, scope)
        self._depth -= 1
        return result

    def _value(self, node: ast.AST, scope: Scope) -> Value:
        match node:
            case ast.Name():
                return self._name(node, scope)
            case ast.Constant():
                if node.value is None:
                    return NONE
                return HOST if isinstance(node.value, str | bytes | bool) else NUMBER
            case ast.Call():
                return self._call(node, scope)
            case ast.Attribute():
                return self._attribute(node, scope)
            case ast.Subscript():
                return self._subscript(node, scope)
            case ast.BinOp():
                return either([self.value(node.left, scope), self.value(node.right, scope)])
            case ast.UnaryOp():
                return HOST if isinstance(node.op, ast.Not) else self.value(node.operand, scope)
            case ast.Compare():
                if any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops):
                    return HOST
                if any(
                    isinstance(one, ast.Constant)
                    and (one.value is None or isinstance(one.value, str))
                    for one in node.comparators
                ):
                    return HOST  # what is compared with a text is one
                return either([self.value(one, scope) for one in (node.left, *node.comparators)])
            case ast.IfExp():
                return join([self.value(node.body, scope), self.value(node.orelse, scope)])
            case ast.BoolOp():
                return join([self.value(one, scope) for one in node.values])
            case ast.NamedExpr() | ast.Await() | ast.Starred():
                return self.value(node.value, scope)
            case ast.Tuple():
                return tuple(self.value(one, scope) for one in node.elts)
            case ast.List() | ast.Set():
                return Many(join([self._given(one, scope) for one in node.elts]))
            case ast.Dict():
                return Table(
                    {
                        str(key.value): self.value(one, scope)
                        for key, one in zip(node.keys, node.values, strict=True)
                        if isinstance(key, ast.Constant)
                    }
                )
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                inner = self.names.comprehension(node, node.generators, scope)
                return Many(self.value(node.elt, inner))
            case ast.DictComp():
                inner = self.names.comprehension(node, node.generators, scope)
                kept = self.value(node.value, inner)
                return BATCH if kept == TENSOR else Many(kept)
            case ast.JoinedStr():
                return HOST
        return UNKNOWN

    def _given(self, node: ast.expr, scope: Scope) -> Value:
        """An element of a list, or what it takes in by *xs."""
        value = self.value(node, scope)
        return _iterated(value) if isinstance(node, ast.Starred) else value

    # Names

    def _name(self, node: ast.Name, scope: Scope) -> Value:
        home = scope.find(node.id)
        if home is None:
            return UNKNOWN
        kept = home.names[node.id]
        if len(kept) > 1 and _same_frame(scope, home):
            kept = home.reaching(node.id, (node.lineno, node.col_offset))
        if any(item.kind == "import" for item in kept):
            return UNKNOWN
        value = join([self._binding(item, home) for item in kept])
        if value == TENSOR and (TEXT_NAME.search(node.id) or is_model_name(node.id)):
            if any(item.path or item.kind == "loop" for item in kept):
                return UNKNOWN  # what a loader gives beside tensors
        added = home.added.get(node.id)
        if added and isinstance(value, Many):
            value = Many(join([value.of, *(self._given(one, home) for one in added[:CALLS])]))
        if value in (UNKNOWN, MAYBE):
            if node.id in home.losses or self._is_used(home, node.id):
                return TENSOR
            computed = any(isinstance(item.node, ast.Call) for item in kept)
            if (
                value == MAYBE
                and computed
                and (node.id in NAMES["tensor_names"] or LOSS_NAME.search(node.id))
            ):
                return TENSOR  # an unknown function was given a tensor, and the name says so
            return value or _named(node.id)
        return value

    def _binding(self, binding: Binding, home: Scope) -> Value:
        node = binding.node
        if binding.annotation is not None:
            said = self.annotated(binding.annotation, home)
            if said is not None:
                return said
        if node is None:
            return UNKNOWN
        if isinstance(node, ast.arg):
            known = self._values.get(node)
            if known is None:
                self._values[node] = UNKNOWN
                known = self._values[node] = self._parameter(node, home)
            return known
        if isinstance(node, ast.AugAssign):
            return either([self.value(node.target, home), self.value(node.value, home)])
        match binding.kind:
            case "count":
                return HOST
            case "value" | "part":
                value = self.value(node, home)
            case "loop":
                value = _iterated(self.value(node, home))
            case _:
                return UNKNOWN
        for index in binding.path:
            value = _part(value, index)
        return value

    def _parameter(self, arg: ast.arg, home: Scope) -> Value:
        function = home.node
        args = function.args  # type: ignore[attr-defined]
        if arg is args.vararg:
            inner = self.annotated(arg.annotation, home) if arg.annotation else None
            return Many(inner) if inner is not None else UNKNOWN
        if arg is args.kwarg:
            return UNKNOWN
        owner = home.parent
        method = owner is not None and owner.kind == "class"
        if method and args.args and arg is args.args[0] and not _static(function):
            assert owner is not None and isinstance(owner.node, ast.ClassDef)
            return Made(self, owner.node)
        if arg.annotation is not None:
            said = self.annotated(arg.annotation, home)
            if said is not None:
                return said
        default = _default(args, arg)
        if isinstance(default, ast.Constant) and default.value is not None:
            return TENSOR if self._is_used(home, arg.arg) else HOST
        if self._is_used(home, arg.arg):
            return TENSOR
        if arg.annotation is not None:
            return UNKNOWN
        if self.is_forward(function, owner) and not NUMBER_NAME.search(arg.arg):
            return TENSOR if default is None else MAYBE
        given = self._given_at_calls(arg, home)
        value = join([self.value(one, where) for one, where in given]) if given else UNKNOWN
        if value in (UNKNOWN, NONE, MAYBE):
            return _named(arg.arg) or (value if value != NONE else UNKNOWN)
        return value

    def _given_at_calls(self, arg: ast.arg, home: Scope) -> list[tuple[ast.expr, Scope]]:
        """What the calls of the function in this file give for a parameter."""
        self._scan()
        args = home.node.args  # type: ignore[attr-defined]
        method = home.parent is not None and home.parent.kind == "class"
        places = [*args.posonlyargs, *args.args]
        index = places.index(arg) - method if arg in places else -1
        values: list[tuple[ast.expr, Scope]] = []
        for call, scope in self._called.get(getattr(home.node, "name", ""), ())[:CALLS]:
            given = next((item.value for item in call.keywords if item.arg == arg.arg), None)
            if given is None and 0 <= index < len(call.args):
                if not any(isinstance(one, ast.Starred) for one in call.args[: index + 1]):
                    given = call.args[index]
            if given is not None:
                values.append((given, scope))
        return values

    def is_forward(self, function: ast.AST, scope: Scope | None) -> bool:
        """The forward method of a module: it runs at every step."""
        return (
            getattr(function, "name", "") == "forward"
            and scope is not None
            and isinstance(scope.node, ast.ClassDef)
            and self.derives(scope.node)
        )

    @property
    def closures(self) -> set[str]:
        """Functions that PyTorch/XLA calls after a step, when the values are there anyway."""
        self._scan()
        return self._closures

    def _is_used(self, home: Scope, name: str) -> bool:
        self._scan()
        assert self._used is not None
        return (home, name) in self._used

    def _scan(self) -> None:
        """Note once what is used as only tensors are, and who calls whom."""
        if self._used is not None:
            return
        self._used = set()
        todo: list[tuple[ast.AST, Scope]] = [(self.names.module.node, self.names.module)]
        while todo:
            node, scope = todo.pop()
            if isinstance(node, ast.Call):
                self._scan_call(node, scope)
            elif isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp):
                scope = self.names.comprehension(node, node.generators, scope)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                scope = self.names.scopes.get(node, scope)
            for field in node._fields:
                below = getattr(node, field, None)
                if below.__class__ is list:
                    todo.extend([(one, scope) for one in below if one.__class__ not in ENDS])
                elif below.__class__ not in ENDS:
                    assert isinstance(below, ast.AST)
                    todo.append((below, scope))

    def _scan_call(self, node: ast.Call, scope: Scope) -> None:
        function = node.func
        name = ""
        if isinstance(function, ast.Name):
            name = function.id
        elif isinstance(function, ast.Attribute):
            name = function.attr
            if name in NAMES["tensor_methods"] or _takes_dim(node):
                self._note(function.value, scope)
        if not name:
            return
        if name in NAMES["tensor_takers"] and node.args:
            full = self.names.dotted(function, scope)
            if full.startswith("torch.") and is_tensor_function(full):
                self._note(node.args[0], scope)
        elif name == "add_step_closure" and node.args:
            self._closures.add(written(node.args[0]).split(".")[-1])
        elif name in self.names.defined:
            self._called.setdefault(name, []).append((node, scope))

    def _note(self, node: ast.AST, scope: Scope) -> None:
        assert self._used is not None
        if isinstance(node, ast.Name):
            home = scope.find(node.id)
            if home is not None and node.id not in self.names.imported:
                self._used.add((home, node.id))
        elif isinstance(node, ast.Attribute):
            self._used.add((scope.owner(), written(node)))

    # Attributes, elements and calls

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Value:
        name = node.attr
        if name in NAMES["host_attributes"]:
            return HOST
        owner = self.value(node.value, scope)
        if isinstance(owner, Made):
            return owner.tensors.member(owner.node, name)
        if isinstance(owner, Table):
            return owner.of.get(name, UNKNOWN)
        if name in NAMES["model_outputs"] and owner in (TENSOR, MAYBE, BATCH, MODULE):
            return TENSOR
        if owner == TENSOR:
            return TENSOR if name in NAMES["tensor_attributes"] else UNKNOWN
        if owner == SAMPLER:
            return TENSOR
        if owner == MODULE and name in ("weight", "bias"):
            return TENSOR
        if owner in (BATCH, MAYBE):
            return MAYBE
        text = written(node)
        values = self.names.attributes.get(text, ())
        kept = (
            join([self.value(one, where) for one, where in values[:CALLS]]) if values else UNKNOWN
        )
        if kept in (UNKNOWN, MAYBE) and owner == UNKNOWN and text:
            if self._is_used(scope.owner() or self.names.module, text):
                return TENSOR
            if name in NAMES["tensor_names"] or name in NAMES["sure_names"] or name == "grad":
                return TENSOR
            return kept or _named(name)
        return kept

    def member(self, node: ast.ClassDef, name: str, depth: int = 4) -> Value:
        """What an attribute of the objects of a class is."""
        key = (node, name)
        if key in self._members:
            return self._members[key]
        self._members[key] = UNKNOWN
        home = self.names.scopes[node]
        values = [
            self.value(value, scope)
            for value, scope in self.names.attributes.get(f"self.{name}", ())
            if scope.owner() is home
        ]
        for item in home.names.get(name, ()):
            if isinstance(item.node, ast.FunctionDef):
                if any(written(one).endswith("property") for one in item.node.decorator_list):
                    values.append(self.returned(item.node))
            else:
                values.append(self._binding(item, home))
        result = join(values) if values else UNKNOWN
        if result in (UNKNOWN, NONE) and depth:
            for base in node.bases:
                found = self.defined(base, home.parent or home)
                if found is not None and isinstance(found[1], ast.ClassDef):
                    result = found[0].member(found[1], name, depth - 1)
                    break
        if result in (UNKNOWN, NONE, MAYBE):
            if self._is_used(home, f"self.{name}"):
                result = TENSOR
            else:
                result = (result if result == MAYBE else "") or _named(name)
        self._members[key] = result
        return result

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Value:
        owner = self.value(node.value, scope)
        key = node.slice
        if isinstance(owner, Table):
            return owner.of.get(str(key.value), UNKNOWN) if isinstance(key, ast.Constant) else ""
        if isinstance(owner, Many):
            return owner if isinstance(key, ast.Slice) else owner.of
        if isinstance(owner, tuple) and not isinstance(owner, Made):
            if isinstance(key, ast.Constant) and isinstance(key.value, int):
                return _part(owner, key.value if key.value >= 0 else len(owner) + key.value)
            return owner if isinstance(key, ast.Slice) else join(list(owner))
        if owner == BATCH:
            return TENSOR
        if owner == UNKNOWN and isinstance(key, ast.Constant) and key.value != "mask":
            if key.value in NAMES["sure_names"]:
                return TENSOR
            return MAYBE if key.value in NAMES["tensor_names"] else UNKNOWN
        return owner if owner in (TENSOR, MAYBE, HOST, MODULE) else UNKNOWN

    def _call(self, node: ast.Call, scope: Scope) -> Value:
        function = node.func
        name = self.names.dotted(function, scope)
        root = name.split(".")[0]
        if root == "torch":
            return self._of_torch(name)
        if root in NAMES["host_modules"]:
            return HOST
        if root in NAMES["tensor_modules"]:
            if root == "torchvision" and not name.startswith("torchvision.ops."):
                return MODULE if ".models." in name else UNKNOWN
            return MODULE if name.split(".")[-1][:1].isupper() else TENSOR
        if isinstance(function, ast.Name) and scope.find(function.id) is None:
            return self._builtin(function.id, node, scope)
        last = function.attr if isinstance(function, ast.Attribute) else name.split(".")[-1]
        if "tqdm" in name or last in PASSED_ON:
            return self.value(node.args[0], scope) if node.args else UNKNOWN
        if last == "from_pretrained":
            return HOST if TOKENIZER.search(name.split(".")[-2:][0]) else MODULE
        found = self.defined(function, scope)
        if found is not None:
            value = self._of_tree(found)
            if value != UNKNOWN:
                return value
        elif isinstance(function, ast.Attribute):
            value = self._method(node, function, scope)
            if value != UNKNOWN:
                return value
        elif self.value(function, scope) == MODULE:
            return TENSOR
        if last in NAMES["models"] or is_model_name(last):
            return TENSOR
        given = [self.value(one, scope) for one in node.args]
        return MAYBE if TENSOR in given or MAYBE in given else UNKNOWN

    def _of_torch(self, name: str) -> Value:
        parts = name.split(".")
        last = parts[-1]
        if is_tensor_function(name):
            return TENSOR
        if last in SEVERAL:
            return Many(TENSOR)
        if last == "DataLoader":
            return LOADER
        if "distributions" in parts:
            return SAMPLER
        if "nn" in parts and last[:1].isupper():
            if last in ("Parameter", "Buffer"):
                return TENSOR
            return "recurrent" if last in RECURRENT else MODULE
        if len(parts) == 2 and last.endswith("Tensor") or last in NAMES["tensor_makers"]:
            return TENSOR
        if parts[1] in ("cuda", "distributed", "optim", "version", "device", "accelerator"):
            return HOST
        if name in ("torch.jit.load", "torch.hub.load", "torch.compile", "torch.jit.script"):
            return MODULE
        return UNKNOWN

    def _builtin(self, name: str, node: ast.Call, scope: Scope) -> Value:
        if not node.args:
            return HOST if name in NAMES["host_builtins"] else UNKNOWN
        first = self.value(node.args[0], scope)
        match name:
            case "enumerate":
                return Many((HOST, _iterated(first)))
            case "zip":
                return Many(tuple(_iterated(self.value(one, scope)) for one in node.args))
            case "next":
                return _iterated(first)
            case "list" | "tuple" | "iter" | "reversed" | "sorted" | "abs" | "round" | "set":
                return first if first != TENSOR or name in ("abs", "round") else Many(TENSOR)
            case "sum":
                inner = _iterated(first)
                return HOST if inner == NUMBER else inner
            case "max" | "min":
                if len(node.args) > 1:
                    return either([self.value(one, scope) for one in node.args])
                return _iterated(first)
            case "map" | "filter":
                return UNKNOWN
        return HOST if name in NAMES["host_builtins"] else UNKNOWN

    def _method(self, node: ast.Call, function: ast.Attribute, scope: Scope) -> Value:
        method = function.attr
        owner = self.value(function.value, scope)
        if isinstance(owner, Made):
            found = owner.tensors.method(owner.node, method)
            if found is not None:
                return found[0].returned(found[1])
            kept = owner.tensors.member(owner.node, method)
            if kept == "recurrent":
                return (TENSOR, MAYBE)
            if isinstance(kept, Made):
                return kept.tensors.result(kept.node)
            if kept == MODULE:
                return TENSOR
            if method in MODULE_METHODS and owner.tensors.derives(owner.node):
                return owner
            return UNKNOWN
        if isinstance(owner, Many | Table) or (owner in (BATCH, TENSOR, MAYBE) and not node.args):
            inner = _iterated(owner) if not isinstance(owner, Table) else join([*owner.of.values()])
            match method:
                case "items":
                    return Many((HOST, inner))
                case "values":
                    return Many(inner)
                case "get" | "pop":
                    return inner
                case "keys":
                    return Many(HOST)
                case "to" | "copy":
                    return owner
        if method in NAMES["host_methods"] or method in TEXT_METHODS:
            return HOST
        if owner in (TENSOR, BATCH):
            if method in SEVERAL:
                return Many(TENSOR)
            if method in NAMES["not_tensor_methods"] or ASKS.search(method):
                return UNKNOWN
            return TENSOR
        if owner == HOST:
            plain = isinstance(function.value, ast.Dict | ast.List | ast.JoinedStr)
            return UNKNOWN if plain else HOST
        if owner in (MODULE, "recurrent"):
            if method in ("parameters", "buffers"):
                return Many(TENSOR)
            if method in ("named_parameters", "named_buffers"):
                return Many((HOST, TENSOR))
            if method == "state_dict":
                return BATCH
            if method == "modules" or method == "children":
                return Many(MODULE)
            if method in MODULE_METHODS:
                return owner
            return TENSOR if method in ("generate", "forward", "encode", "decode") else MAYBE
        if owner == SAMPLER:
            return TENSOR
        if owner == LOADER:
            return LOADER if method in ("__iter__",) else UNKNOWN
        if method in ("parameters", "named_parameters") and owner == UNKNOWN:
            return Many(TENSOR) if method == "parameters" else Many((HOST, TENSOR))
        if method in NAMES["tensor_methods"] or (owner == UNKNOWN and _takes_dim(node)):
            return TENSOR
        if owner == MAYBE:
            return MAYBE
        return UNKNOWN

    # Functions and classes of the tree

    def defined(self, node: ast.AST, scope: Scope) -> Defined | None:
        """The function or class of the tree that a name stands for."""
        if isinstance(node, ast.Name):
            home = scope.find(node.id)
            kept = home.names[node.id] if home else []
            if len(kept) == 1 and kept[0].kind == "definition" and kept[0].node is not None:
                return self, kept[0].node
        if self.modules is None or self.folder is None:
            return None
        name = self.names.dotted(node, scope, follow=False)
        if not name or not (name.startswith(".") or name.split(".")[0] in self.names.imports):
            return None
        return self.modules.look(name, self.folder)

    def _of_tree(self, found: Defined) -> Value:
        tensors, node = found
        if isinstance(node, ast.ClassDef):
            return Made(tensors, node)
        return tensors.returned(node)

    def method(self, node: ast.ClassDef, name: str, depth: int = 4) -> Defined | None:
        """The method of that name, with the file that defines it; looks into bases of the tree."""
        home = self.names.scopes.get(node)
        if home is None:
            return None
        for item in home.names.get(name, ()):
            if isinstance(item.node, ast.FunctionDef | ast.AsyncFunctionDef):
                return self, item.node
        for base in node.bases if depth else ():
            found = self.defined(base, home.parent or home)
            if found is not None and isinstance(found[1], ast.ClassDef):
                inherited = found[0].method(found[1], name, depth - 1)
                if inherited is not None:
                    return inherited
        return None

    def result(self, node: ast.ClassDef) -> Value:
        """What an object of a class returns when it is called."""
        module = self.derives(node)
        found = self.method(node, "forward" if module else "__call__")
        value = found[0].returned(found[1]) if found is not None else UNKNOWN
        return TENSOR if module and value in (UNKNOWN, MAYBE, NONE) else value

    def returned(self, function: ast.AST) -> Value:
        """What a function of this file returns, by its annotation or by all its ends."""
        if function not in self._returns:
            self._returns[function] = UNKNOWN
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                self._returns[function] = self._ends(function)
        return self._returns[function]

    def _ends(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Value:
        inner = self.names.scopes.get(function)
        if inner is None:
            return UNKNOWN
        if function.returns is not None:
            said = self.annotated(function.returns, inner)
            if said is not None:
                return said
        ends: list[Value] = []
        yields: list[Value] = []
        for item in _own_nodes(function):
            if isinstance(item, ast.Return) and item.value is not None:
                ends.append(self.value(item.value, inner))
            elif isinstance(item, ast.Yield) and item.value is not None:
                yields.append(self.value(item.value, inner))
        if yields:
            return Many(join(yields))
        return join(ends) if ends else NONE

    def derives(self, node: ast.ClassDef) -> bool:
        """The class is an nn.Module by its bases, as far as the tree defines them."""
        if node not in self._modules:
            self._modules[node] = False
            home = self.names.scopes.get(node)
            for base in node.bases:
                text = written(base).split(".")[-1]
                if text.endswith(("Module", "PreTrainedModel")):
                    self._modules[node] = True
                    break
                name = self.names.dotted(base, home.parent or home) if home else ""
                if name.startswith("torch.nn."):
                    self._modules[node] = True
                    break
                found = self.defined(base, home.parent or home) if home else None
                if found is not None and isinstance(found[1], ast.ClassDef):
                    if found[0].derives(found[1]):
                        self._modules[node] = True
                        break
        return self._modules[node]

    def annotated(self, node: ast.AST, scope: Scope, depth: int = 5) -> Value | None:
        """What an annotation says; None for nothing."""
        match node:
            case ast.Constant(value=None):
                return NONE
            case ast.Constant(value=str(text)) if depth:
                try:
                    return self.annotated(ast.parse(text, mode="eval").body, scope, depth - 1)
                except SyntaxError:
                    return None
            case ast.BinOp(op=ast.BitOr()):
                return self._said([node.left, node.right], scope, depth)
            case ast.Subscript():
                last = written(node.value).split(".")[-1]
                parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                if last == "Optional" or last == "Union":
                    return self._said(parts, scope, depth)
                if last in ("Annotated", "Final", "ClassVar"):
                    return self.annotated(parts[0], scope, depth - 1)
                if last in MAPPINGS:
                    inner = self.annotated(parts[-1], scope, depth - 1)
                    return BATCH if inner == TENSOR else Many(inner) if inner else None
                if last in LISTS or (last in ("Tuple", "tuple") and len(parts) != 2):
                    inner = self.annotated(parts[0], scope, depth - 1)
                    if last in LISTS:
                        return Many(inner) if inner is not None else None
                if last in ("Tuple", "tuple"):
                    if isinstance(parts[-1], ast.Constant) and parts[-1].value is Ellipsis:
                        inner = self.annotated(parts[0], scope, depth - 1)
                        return Many(inner) if inner is not None else None
                    return tuple(self.annotated(one, scope, depth - 1) or "" for one in parts)
                if any(written(one).endswith("Tensor") for one in parts):
                    return TENSOR  # Float[Tensor, "b t"]
            case ast.Name() | ast.Attribute():
                last = written(node).split(".")[-1]
                if last.endswith("Tensor") or last == "Parameter":
                    return TENSOR
                if last in ON_HOST:
                    return HOST
                if last == "DataLoader":
                    return LOADER
                found = self.defined(node, scope)
                if found is not None and isinstance(found[1], ast.ClassDef):
                    return Made(found[0], found[1])
                if last.endswith("Module"):
                    return MODULE
        return None

    def _said(self, parts: list[ast.expr], scope: Scope, depth: int) -> Value | None:
        said = [self.annotated(one, scope, depth - 1) for one in parts]
        known = [one for one in said if one is not None]
        return join(known) if known and len(known) == len(said) else None

    # Where tensors are

    def on_cpu(self, node: ast.AST, scope: Scope) -> bool:
        """Computed from tensors that are made without a device, or moved: they are on the CPU."""
        known = self._cpu.get(node)
        if known is None:
            if self._depth > DEPTH:
                return False
            self._depth += 1
            self._cpu[node] = True  # x = 1 / x stays where x is
            known = self._cpu[node] = self._on_cpu(node, scope)
            self._depth -= 1
        return known

    def _on_cpu(self, node: ast.AST, scope: Scope) -> bool:
        match node:
            case ast.Constant():
                return True
            case ast.Call():
                return self._made_on_cpu(node, scope)
            case ast.Subscript() | ast.Attribute():
                return self.on_cpu(node.value, scope)
            case ast.UnaryOp():
                return self.on_cpu(node.operand, scope)
            case ast.BinOp():
                parts = [node.left, node.right]
            case ast.Compare():
                parts = [node.left, *node.comparators]
            case ast.Name():
                return self._name_on_cpu(node, scope)
            case _:
                return False
        # A number is wherever the tensor is that it is computed with.
        parts = [part for part in parts if _flat(self.value(part, scope)) != "host"] or parts
        return all(self.on_cpu(part, scope) for part in parts)

    def _made_on_cpu(self, node: ast.Call, scope: Scope) -> bool:
        name = self.names.dotted(node.func, scope)
        placed = any(keyword.arg in ("device", "out", None) for keyword in node.keywords)
        if moves_to_host(node):
            return True
        if not placed and any(map(TOKENIZER.search, written(node.func).split("."))):
            return True
        if name.startswith("torch."):
            if name.split(".")[1] in NAMES["factories"]:
                return not placed
            given = [arg for arg in node.args if not isinstance(arg, ast.Constant)]
            if given and all(self.value(one, scope) in (HOST, NUMBER) for one in given):
                return not placed
            if given and isinstance(given[0], ast.List | ast.Tuple):
                given = given[0].elts
            others = [one for one in given[1:] if self.value(one, scope) in (TENSOR, MAYBE, BATCH)]
            return bool(given) and all(self.on_cpu(part, scope) for part in [given[0], *others])
        if isinstance(node.func, ast.Attribute) and node.func.attr not in NAMES["moves"]:
            return not placed and self.on_cpu(node.func.value, scope)
        return False

    def _name_on_cpu(self, node: ast.Name, scope: Scope) -> bool:
        home = scope.find(node.id)
        if home is None:
            return False
        kept = home.names[node.id]
        if len(kept) > 1 and _same_frame(scope, home):
            kept = home.reaching(node.id, (node.lineno, node.col_offset))
        parts = [item for item in kept if not isinstance(item.node, ast.Constant)]
        if node.id in home.added:
            return all(self.on_cpu(one, home) for one in home.added[node.id])
        return bool(parts) and all(self._bound_on_cpu(item.node, home) for item in parts)

    def _bound_on_cpu(self, node: ast.AST | None, home: Scope) -> bool:
        if isinstance(node, ast.arg):
            given = self._given_at_calls(node, home)
            return bool(given) and all(self.on_cpu(one, scope) for one, scope in given)
        if isinstance(node, ast.AugAssign):
            return self.on_cpu(node.target, home) and (
                self.value(node.value, home) in (HOST, NUMBER) or self.on_cpu(node.value, home)
            )
        return isinstance(node, ast.expr) and self.on_cpu(node, home)


def moves_to_host(node: ast.Call) -> bool:
    """x.cpu(), x.to("cpu"), x.to(device="cpu")."""
    if not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr == "cpu":
        return not node.args
    if node.func.attr != "to":
        return False
    given = [*node.args[:1], *(item.value for item in node.keywords if item.arg == "device")]
    for place in given:
        if isinstance(place, ast.Call) and written(place.func).endswith("device") and place.args:
            place = place.args[0]
        if isinstance(place, ast.Constant) and place.value == "cpu":
            return True
    return False


def _flat(value: Value) -> str:
    if isinstance(value, Made):
        return "module" if value.tensors.derives(value.node) else ""
    if isinstance(value, Many | tuple | Table):
        inner = value.of.values() if isinstance(value, Table) else [*value]
        kinds = {_flat(one) for one in inner}
        return "many" if kinds & {"tensor", "many"} else "host" if kinds <= {"host"} else ""
    if value in (NUMBER, NONE):
        return HOST
    return {LOADER: BATCH, SAMPLER: "", "recurrent": MODULE}.get(value, value)


def join(values: list[Value]) -> Value:
    """What a name is that may have any of these values."""
    kept = [one for one in values if one != NONE]
    if not kept:
        return NONE if values else UNKNOWN
    first = kept[0]
    if all(one == first for one in kept):
        return first
    words = {one for one in kept if isinstance(one, str)}
    others = [one for one in kept if not isinstance(one, str)]
    if others:
        if words - {NUMBER, HOST, UNKNOWN}:
            return TENSOR if words == {TENSOR} and len(kept) > len(others) else UNKNOWN
        lists = [one for one in others if isinstance(one, Many)]
        if len(lists) == len(others):
            return Many(join([one.of for one in lists]))
        plain = [one for one in others if type(one) is tuple]
        if len(plain) == len(others) and len({len(one) for one in plain}) == 1:
            return tuple(join(list(parts)) for parts in zip(*plain, strict=True))
        if len(others) == 1 or isinstance(others[0], Table):
            return others[0]
        return UNKNOWN
    if TENSOR in words:
        # total = 0, and then total += loss
        return TENSOR if words <= {TENSOR, NUMBER, UNKNOWN, BATCH, MAYBE} else MAYBE
    if MAYBE in words:
        return MAYBE
    if words <= {NUMBER, HOST}:
        return HOST
    if words <= {MODULE, UNKNOWN, "recurrent"}:
        return MODULE
    return words.pop() if len(words) == 1 else UNKNOWN


def either(values: list[Value]) -> Value:
    """What is computed from values."""
    if TENSOR in values:
        return TENSOR
    if MAYBE in values:
        return MAYBE
    if all(one in (HOST, NUMBER) for one in values):
        return HOST
    return values[0] if isinstance(values[0], Many) and len(values) == 2 else UNKNOWN


def _iterated(value: Value) -> Value:
    if isinstance(value, Many):
        return value.of
    if isinstance(value, Made):
        return UNKNOWN
    if isinstance(value, tuple):
        return join(list(value))
    if isinstance(value, Table):
        return HOST
    if value == LOADER:
        return BATCH
    if value == BATCH:
        return TENSOR
    return value if value in (TENSOR, MAYBE, HOST, MODULE) else UNKNOWN


def _part(value: Value, index: int) -> Value:
    if isinstance(value, tuple) and not isinstance(value, Many | Made):
        return value[index] if 0 <= index < len(value) else join(list(value))
    if value == HOST:
        return HOST
    return UNKNOWN if value == LOADER else _iterated(value)


@cache
def is_model_name(name: str) -> bool:
    """A model, by its name: what it returns when it is called is a tensor.

    >>> is_model_name("teacher_model"), is_model_name("get_model"), is_model_name("BCELoss")
    (True, False, True)
    """
    return MODEL_NAME.search(name) is not None and VERB.search(name) is None


def _takes_dim(node: ast.Call) -> bool:
    """x.mean(dim=1), x.flatten(start_dim=1): arrays take an axis."""
    return (
        any(item.arg in ("dim", "keepdim", "start_dim") for item in node.keywords)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr[:1].islower()
        and node.func.attr in NAMES["dim_methods"]
    )


@cache
def _named(name: str) -> Value:
    """What a name alone says."""
    if name in NAMES["sure_names"]:
        return TENSOR
    if name in NAMES["tensor_names"]:
        return MAYBE
    if LOADER_NAME.search(name):
        return LOADER
    if name == "batch":
        return BATCH
    return MODULE if is_model_name(name) else UNKNOWN


def _same_frame(scope: Scope | None, home: Scope) -> bool:
    """The place is in the function that binds the name, or in a comprehension within it."""
    while scope is not None and scope is not home:
        if isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return False
        scope = scope.parent
    return True


def _static(function: ast.AST) -> bool:
    return any(written(one) in ("staticmethod",) for one in getattr(function, "decorator_list", ()))


def _default(args: ast.arguments, arg: ast.arg) -> ast.expr | None:
    places = [*args.posonlyargs, *args.args]
    if arg in places:
        index = places.index(arg) - (len(places) - len(args.defaults))
        return args.defaults[index] if index >= 0 else None
    return args.kw_defaults[args.kwonlyargs.index(arg)] if arg in args.kwonlyargs else None


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions within it."""
    todo: list[ast.AST] = list(function.body)  # type: ignore[attr-defined]
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            todo.extend(ast.iter_child_nodes(node))


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
