"""What the names of a kernel's source mean, and small questions about its syntax."""

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from utils.nki.simulator import surface

TENSOR, REGISTER, LOOP_VARIABLE = "tensor", "register", "loop variable"
ON_DEVICE = frozenset((REGISTER, LOOP_VARIABLE))

VIEWS = frozenset(
    "ap slice select permute broadcast expand_dim squeeze_dim reshape_dim flatten_dims reshape "
    "rearrange vector_select view reinterpret_cast indirect".split()
)
"""Methods of a tensor that give a tensor; its other attributes are known at compile time."""

NO_TENSOR = frozenset(
    "ds affine_range sequential_range static_range dynamic_range fori_loop while_loop program_id "
    "num_programs program_ndim no_reorder device_print store is_hbm is_on_chip is_psum is_sbuf "
    "random_seed NKIObject NkiTensor shared_constant".split()
)
"""Functions of nki.language that give no tensor; all the others do."""

ANNOTATIONS = ("ndarray", "NkiTensor", "tensor")


@dataclass(frozen=True)
class World:
    """What the file of a function knows: modules by alias, and bases by class defined there."""

    modules: Mapping[str, str] = field(default_factory=dict)
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def origin(self, node: ast.expr) -> str:
        """The full name of an attribute or a name, such as "nki.language.add"; "" if unknown."""
        if isinstance(node, ast.Name):
            return self.modules.get(node.id, "")
        if isinstance(node, ast.Attribute):
            base = self.origin(node.value)
            return f"{base}.{node.attr}" if base else ""
        return ""

    def callee(self, node: ast.AST) -> str:
        """The full name of what is called; a builtin or local function by its plain name."""
        if not isinstance(node, ast.Call):
            return ""
        plain = node.func.id if isinstance(node.func, ast.Name) else ""
        return self.origin(node.func) or plain


@dataclass
class Scope:
    """The names of one function and what they are bound to at the statement being read."""

    world: World
    kinds: dict[str, str] = field(default_factory=dict)

    def kind(self, node: ast.AST | None) -> str:
        """TENSOR, REGISTER, LOOP_VARIABLE, or "" for anything else and anything unknown."""
        if isinstance(node, ast.Name):
            return self.kinds.get(node.id, "")
        if isinstance(node, ast.Call):
            return self._result(node)
        if isinstance(node, ast.Subscript):
            return TENSOR if self.kind(node.value) == TENSOR else ""
        if isinstance(node, ast.BinOp):
            return self.kind(node.left) or self.kind(node.right)
        if isinstance(node, ast.UnaryOp):
            return self.kind(node.operand)
        if isinstance(node, ast.IfExp):
            return self.kind(node.body) or self.kind(node.orelse)
        if isinstance(node, ast.NamedExpr):
            return self.kind(node.value)
        return ""

    def _result(self, node: ast.Call) -> str:
        name = self.world.callee(node)
        if name == "nki.isa.register_alloc":
            return REGISTER
        if name.startswith("nki.language."):
            function = name.removeprefix("nki.language.")
            known = function in surface.versions("nki.language")
            return TENSOR if known and function not in NO_TENSOR else ""
        if isinstance(node.func, ast.Attribute) and node.func.attr in VIEWS:
            return TENSOR if self.kind(node.func.value) == TENSOR else ""
        return ""

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        """What `target = value` makes of the names in `target`."""
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            if len(target.elts) == len(value.elts):
                kinds = [self.kind(elt) for elt in value.elts]
                for item, kind in zip(target.elts, kinds, strict=True):
                    self.bind(item, kind)
                return
        self.bind(target, self.kind(value))

    def bind(self, target: ast.expr, kind: str) -> None:
        """The names in `target` are of this kind from now on."""
        if isinstance(target, ast.Name):
            if kind:
                self.kinds[target.id] = kind
            else:
                self.kinds.pop(target.id, None)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for elt in target.elts:
                self.bind(elt, "")
        elif isinstance(target, ast.Starred):
            self.bind(target.value, "")


def parameter_kinds(function: ast.FunctionDef) -> dict[str, str]:
    """Parameters that are annotated as tensors, or whose shape or type the function asks for."""
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    asked = {
        node.value.id
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute)
        and node.attr in ("shape", "dtype")
        and isinstance(node.value, ast.Name)
    }
    return {
        argument.arg: TENSOR
        for argument in arguments
        if argument.arg in asked
        or (argument.annotation and _last(argument.annotation) in ANNOTATIONS)
    }


def _last(node: ast.expr) -> str:
    while isinstance(node, ast.Subscript):
        node = node.value
    return ast.unparse(node).rpartition(".")[2]


def world_of(tree: ast.Module) -> World:
    """The modules that a file imports at its top and the classes that it defines."""
    modules: dict[str, str] = {}
    classes: dict[str, tuple[str, ...]] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                modules[name] = alias.name if alias.asname else name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.ClassDef):
            classes[node.name] = tuple(_last(base) for base in node.bases)
    return World(modules, classes)


SHOWN = 60


def piece(node: ast.AST) -> str:
    """A short form of the source of a node, on one line."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."


def conditions(test: ast.expr) -> Iterable[tuple[ast.expr, bool]]:
    """The values that a condition looks at, and whether it compares them.

    A comparison with None looks at no value.
    """
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from conditions(value)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from conditions(test.operand)
    elif isinstance(test, ast.Compare):
        operands = [test.left, *test.comparators]
        if not any(is_none(operand) for operand in operands):
            yield from ((operand, True) for operand in operands)
    else:
        yield test, False


def is_none(node: ast.expr) -> bool:
    """Whether this is the constant None."""
    return isinstance(node, ast.Constant) and node.value is None


def index_values(index: ast.expr) -> Iterable[ast.expr]:
    """What an index consists of: each number, or the parts of each slice."""
    for item in index.elts if isinstance(index, ast.Tuple) else [index]:
        if isinstance(item, ast.Slice):
            yield from filter(None, (item.lower, item.upper, item.step))
        else:
            yield item


def own(function: ast.FunctionDef) -> Iterable[ast.AST]:
    """The nodes of a function without those of functions inside it."""
    todo: list[ast.AST] = list(function.body)
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            todo += ast.iter_child_nodes(node)


def names_bound(function: ast.FunctionDef) -> Iterable[str]:
    """Parameters, and the names that the function itself binds."""
    arguments = function.args
    for posonlyarg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        yield posonlyarg.arg
    for rest in (arguments.vararg, arguments.kwarg):
        if rest is not None:
            yield rest.arg
    for node in own(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name


def loop_bodies(function: ast.FunctionDef, world: World) -> dict[str, str]:
    """Functions that are passed to a device loop as its body, by name: the kind of loop."""
    results = {}
    for node in own(function):
        name = world.callee(node).rpartition(".")[2]
        if name in ("fori_loop", "while_loop") and isinstance(node, ast.Call):
            position = 2 if name == "fori_loop" else 1
            given = [k.value for k in node.keywords if k.arg == "body_fun"]
            for body in (node.args[position : position + 1] or given)[:1]:
                if isinstance(body, ast.Name):
                    results[body.id] = name
    return results
