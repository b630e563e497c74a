"""What is an expression: a tensor, perhaps one, or something on the host? From the text alone.

An expression has a value of one of these kinds. TENSOR: results of torch functions, of modules, of
methods that only tensors have, and what is computed from them. MAYBE: results of unknown functions
that were given tensors. HOST: numbers, texts, arrays of numpy. MODULE, LOADER, BATCH: what their
names say. `Many`, `Table` and tuples hold values, `Made` is an object of a class of the tree.
"" is unknown. A name has the values that reach it in its function; a parameter is what it is
annotated as, used as, or called with; a function of the tree is what it returns.
"""

import ast
from collections.abc import Iterator
from typing import Protocol

from utils.audit.rules import NAMES
from utils.audit.scopes import Binding, Names, Scope, same_frame, written
from utils.audit.tensor_forms import (
    BATCH,
    HOST,
    LOADER,
    MAYBE,
    MODULE,
    NONE,
    NUMBER,
    SAMPLER,
    TENSOR,
    UNKNOWN,
    Made,
    Many,
    Table,
    Value,
    either,
    flat,
    iterated,
    join,
    part,
)
from utils.audit.tensor_names import (
    ASKS,
    COUNT_KEY,
    LISTS,
    LOSS_NAME,
    MAPPINGS,
    MODULE_METHODS,
    NUMBER_NAME,
    ON_HOST,
    PASSED_ON,
    RECURRENT,
    RUNS,
    SEVERAL,
    TEXT_METHODS,
    TEXT_NAME,
    TOKENIZER,
    is_model_name,
    is_tensor_function,
    named,
    takes_dim,
)
from utils.audit.tensor_places import Places
from utils.audit.tensor_uses import Uses

DEPTH = 30  # expressions within expressions that are followed
SELVES = {"self", "cls", "mcs", "mcls", "klass"}  # first parameters of methods, by custom
METERED = {"val", "avg", "sum", "average", "global_avg", "mean"}  # of what a meter was given
CALLS = 6  # places that call a function, of which its parameters are learned

Defined = tuple["Tensors", ast.AST]


class Modules(Protocol):
    """The other files of the tree: `tree_modules.Modules`."""

    def look(self, name: str, folder: str) -> Defined | None:
        """The function or class of a full name, seen from a folder."""

    def module(self, name: str, folder: str) -> "Tensors | None":
        """What is known of the file of a module."""

    def holds(self, name: str, folder: str) -> bool:
        """Whether a relative name is a source file of the tree."""


class Tensors:
    """What the expressions of one file are, as far as the text of the tree tells."""

    def __init__(
        self, names: Names, modules: Modules | None = None, folder: str | None = None
    ) -> None:
        self.names = names
        self.modules = modules
        self.folder = folder
        self._values: dict[ast.AST, Value] = {}
        self._returns: dict[ast.AST, Value] = {}
        self._members: dict[tuple[ast.AST, str], Value] = {}
        self._modules: dict[ast.AST, bool] = {}
        self._open: set[ast.AST] = set()  # what is being worked out
        self.uses = Uses(names)
        self.places = Places(self)
        self.depth = 0

    def kind(self, node: ast.AST, scope: Scope) -> str:
        """ "tensor", "maybe", "host", "module", "batch", "many" for a list of tensors, or ""."""
        return flat(self.value(node, scope))

    def element(self, node: ast.AST, scope: Scope) -> str:
        """What the elements of a list are: of [x.sum() for x in xs]."""
        value = self.value(node, scope)
        return flat(iterated(value)) if isinstance(value, Many | tuple) else ""

    def value(self, node: ast.AST, scope: Scope) -> Value:
        """The value of an expression; see the top of this file."""
        known = self._values.get(node)
        if known is not None:
            return known
        if self.depth > DEPTH:
            return UNKNOWN
        self.depth += 1
        self._values[node] = UNKNOWN  # x = f(x) may rest on what x was first
        self._open.add(node)
        result = self._values[node] = self._value(node, scope)
        self._open.discard(node)
        self.depth -= 1
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
            case ast.BinOp(op=ast.Mod(), left=ast.Constant(value=str()) | ast.JoinedStr()):
                return HOST  # "%.3f" % loss
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
        return iterated(value) if isinstance(node, ast.Starred) else value

    # Names

    def _name(self, node: ast.Name, scope: Scope) -> Value:
        home = scope.find(node.id)
        if home is None:
            return UNKNOWN
        kept = home.names[node.id]
        if len(kept) > 1 and same_frame(scope, home):
            kept = home.reaching(node.id, (node.lineno, node.col_offset))
        if any(item.kind == "import" for item in kept):
            return UNKNOWN
        if self.uses.is_text(home, node.id):
            return HOST
        value = join([self._binding(item, home) for item in kept])
        if value == TENSOR and (TEXT_NAME.search(node.id) or is_model_name(node.id)):
            if any(item.path or item.kind == "loop" for item in kept):
                return UNKNOWN  # what a loader gives beside tensors
        added = home.added.get(node.id)
        if added and isinstance(value, Many):
            value = Many(join([value.of, *(self._given(one, home) for one in added[:CALLS])]))
        if value in (UNKNOWN, MAYBE):
            if node.id in home.losses or self.uses.is_used(home, node.id):
                return TENSOR
            computed = any(
                isinstance(item.node, ast.Call)
                and not RUNS.search(written(item.node.func).split(".")[-1])
                for item in kept
            )
            if value == MAYBE and self.uses.is_sliced(home, node.id):
                return TENSOR
            if (
                value == MAYBE
                and computed
                and (node.id in NAMES["tensor_names"] or LOSS_NAME.search(node.id))
            ):
                return TENSOR  # an unknown function was given a tensor, and the name says so
            return value or named(node.id)
        return value

    def _binding(self, binding: Binding, home: Scope) -> Value:
        node = binding.node
        if binding.annotation is not None:
            text = self.annotated(binding.annotation, home)
            if text is not None:
                return text
        if node is None:
            return UNKNOWN
        if isinstance(node, ast.arg):
            known = self._values.get(node)
            if known is None:
                self._values[node] = UNKNOWN
                known = self._values[node] = self._parameter(node, home)
            return known
        if isinstance(node, ast.AugAssign):
            added = self.value(node.value, home)
            if added in (HOST, NUMBER):  # it stays what it was
                return NONE if node.target in self._open else self.value(node.target, home)
            return either([self.value(node.target, home), added])
        match binding.kind:
            case "count":
                return HOST
            case "value" | "part":
                value = self.value(node, home)
            case "loop":
                given = self.value(node, home)
                value = HOST if self._is_table(node, home) else iterated(given)
            case _:
                return UNKNOWN
        for index in binding.path:
            value = part(value, index)
        return value

    def _is_table(self, node: ast.AST, home: Scope) -> bool:
        """A parameter that is annotated as a dictionary: a loop over it gives its keys."""
        kept = home.bindings(node.id) if isinstance(node, ast.Name) else []
        return any(
            isinstance(item.node, ast.arg)
            and isinstance(item.node.annotation, ast.Subscript)
            and written(item.node.annotation.value).split(".")[-1] in MAPPINGS
            for item in kept
        )

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
        first = method and args.args and arg is args.args[0] and not _static(function)
        if first and arg.arg in SELVES:
            assert owner is not None and isinstance(owner.node, ast.ClassDef)
            return Made(self, owner.node)
        if arg.annotation is not None:
            text = self.annotated(arg.annotation, home)
            if text is not None:
                return text
        default = _default(args, arg)
        if isinstance(default, ast.Constant) and default.value is not None:
            return TENSOR if self.uses.is_used(home, arg.arg) else HOST
        if self.uses.is_used(home, arg.arg):
            return TENSOR
        if arg.annotation is not None:
            return UNKNOWN
        if self.is_forward(function, owner) and not NUMBER_NAME.search(arg.arg):
            return TENSOR if default is None else MAYBE
        given = self.given_at_calls(arg, home)
        value = join([self.value(one, where) for one, where in given]) if given else UNKNOWN
        if value in (UNKNOWN, NONE, MAYBE):
            return named(arg.arg) or (value if value != NONE else UNKNOWN)
        return value

    def given_at_calls(self, arg: ast.arg, home: Scope) -> list[tuple[ast.expr, Scope]]:
        """What the calls of the function in this file give for a parameter."""
        args = home.node.args  # type: ignore[attr-defined]
        places = [*args.posonlyargs, *args.args]
        inside = home.parent is not None and home.parent.kind == "class"
        method = inside and bool(places) and places[0].arg in SELVES
        index = places.index(arg) - method if arg in places else -1
        values: list[tuple[ast.expr, Scope]] = []
        name = getattr(home.node, "name", "")
        if name == "__init__" and inside:
            assert home.parent is not None
            name = getattr(home.parent.node, "name", "")  # an object is made by its class
        calls = [one for one in self.uses.calls(name) if not _is_within(one[1], home)]
        for call, scope in calls[:CALLS]:
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

    # Attributes, elements and calls

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Value:
        name = node.attr
        if name in NAMES["host_attributes"] or name.startswith("__"):
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
        if name in METERED and isinstance(node.value, ast.Name | ast.Attribute):
            added = self.uses.updates(scope, written(node.value))
            if added:
                return join([self.value(one, where) for one, where in added[:CALLS]])
        text = written(node)
        values = self.names.attributes.get(text, ())
        kept = (
            join([self.value(one, where) for one, where in values[:CALLS]]) if values else UNKNOWN
        )
        if kept in (UNKNOWN, MAYBE) and owner == UNKNOWN and text:
            if self.uses.is_used(scope.owner() or self.names.module, text):
                return TENSOR
            if name in NAMES["tensor_names"] or name in NAMES["sure_names"] or name == "grad":
                return TENSOR
            return kept or named(name)
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
        if result in (UNKNOWN, NONE) and (home, name) in self.names.buffers:
            result = TENSOR
        if result in (UNKNOWN, NONE) and depth:
            for base in node.bases:
                outcome = self.defined(base, home.parent or home)
                if outcome is not None and isinstance(outcome[1], ast.ClassDef):
                    result = outcome[0].member(outcome[1], name, depth - 1)
                    break
        if result in (UNKNOWN, NONE, MAYBE):
            if self.uses.is_used(home, f"self.{name}"):
                result = TENSOR
            else:
                result = (result if result == MAYBE else "") or named(name)
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
                return part(owner, key.value if key.value >= 0 else len(owner) + key.value)
            return owner if isinstance(key, ast.Slice) else join(list(owner))
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and owner != HOST:
            if COUNT_KEY.search(key.value):
                return UNKNOWN
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
            return HOST if name.startswith("torch.__") else self._of_torch(name)
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
        result = self.defined(function, scope)
        if result is not None:
            value = self._of_tree(result)
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
                return Many((HOST, iterated(first)))
            case "zip":
                return Many(tuple(iterated(self.value(one, scope)) for one in node.args))
            case "next":
                return iterated(first)
            case "list" | "tuple" | "iter" | "reversed" | "sorted" | "abs" | "round" | "set":
                return first if first != TENSOR or name in ("abs", "round") else Many(TENSOR)
            case "sum":
                inner = iterated(first)
                return HOST if inner == NUMBER else inner
            case "max" | "min":
                if len(node.args) > 1:
                    return either([self.value(one, scope) for one in node.args])
                return iterated(first)
            case "map" | "filter":
                return UNKNOWN
        return HOST if name in NAMES["host_builtins"] else UNKNOWN

    def _method(self, node: ast.Call, function: ast.Attribute, scope: Scope) -> Value:
        method = function.attr
        owner = self.value(function.value, scope)
        if isinstance(owner, Made):
            outcome = owner.tensors.method(owner.node, method)
            if outcome is not None:
                return outcome[0].returned(outcome[1])
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
            inner = iterated(owner) if not isinstance(owner, Table) else join([*owner.of.values()])
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
        if method in NAMES["tensor_methods"] or (owner == UNKNOWN and takes_dim(node)):
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

    def _of_tree(self, result: Defined) -> Value:
        tensors, node = result
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
            result = self.defined(base, home.parent or home)
            if result is not None and isinstance(result[1], ast.ClassDef):
                inherited = result[0].method(result[1], name, depth - 1)
                if inherited is not None:
                    return inherited
        return None

    def result(self, node: ast.ClassDef) -> Value:
        """What an object of a class returns when it is called."""
        module = self.derives(node)
        outcome = self.method(node, "forward" if module else "__call__")
        value = outcome[0].returned(outcome[1]) if outcome is not None else UNKNOWN
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
            text = self.annotated(function.returns, inner)
            if text is not None:
                return text
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
                result = self.defined(base, home.parent or home) if home else None
                if result is not None and isinstance(result[1], ast.ClassDef):
                    if result[0].derives(result[1]):
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
                return self._joined_texts([node.left, node.right], scope, depth)
            case ast.Subscript():
                last = written(node.value).split(".")[-1]
                parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                if last == "Optional" or last == "Union":
                    return self._joined_texts(parts, scope, depth)
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
                result = self.defined(node, scope)
                if result is not None and isinstance(result[1], ast.ClassDef):
                    return Made(result[0], result[1])
                if last.endswith("Module"):
                    return MODULE
        return None

    def _joined_texts(self, parts: list[ast.expr], scope: Scope, depth: int) -> Value | None:
        texts = [self.annotated(one, scope, depth - 1) for one in parts]
        known = [one for one in texts if one is not None]
        return join(known) if known and len(known) == len(texts) else None


def _is_within(scope: Scope | None, home: Scope) -> bool:
    """The function calls itself."""
    while scope is not None and scope is not home:
        scope = scope.parent
    return scope is home


def _static(function: ast.AST) -> bool:
    return any(written(one) in ("staticmethod",) for one in getattr(function, "decorator_list", ()))


def default_of(function: ast.AST, arg: ast.arg) -> ast.expr | None:
    """What a parameter of a function is where none is given."""
    args = getattr(function, "args", None)
    return _default(args, arg) if args is not None else None


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
