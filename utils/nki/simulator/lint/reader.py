"""One pass over a function, statement by statement, with what its names mean at each."""

import ast
from collections.abc import Callable, Iterable

from utils.nki.simulator.lint.scope import (
    LOOP_VARIABLE,
    ON_DEVICE,
    REGISTER,
    TENSOR,
    Scope,
    World,
    conditions,
    index_values,
    is_none,
    loop_bodies,
    names_bound,
    own,
    parameter_kinds,
    piece,
)

Report = Callable[[str, ast.AST, str], None]
"""Called with a rule, the place and the piece of source."""

CHOICES = frozenset(("engine", "dge_mode", "oob_mode", "reduce_cmd", "perf_mode", "dma_engine"))
CREATION = frozenset(
    f"nki.language.{name}" for name in "ndarray zeros ones full zeros_like empty_like rand".split()
)
UNROLLED = frozenset(
    f"nki.language.{name}" for name in ("affine_range", "sequential_range", "static_range")
)
LOOPS = frozenset(f"nki.language.{name}" for name in ("dynamic_range", "fori_loop", "while_loop"))
BY_VALUE = frozenset("int float bool abs sum min max round sorted divmod complex hash".split())
BY_VALUE_METHODS = frozenset(
    "item tolist numpy cpu sum mean max min any all astype dot transpose flatten T".split()
)
CHANGING = frozenset("append extend insert remove pop clear update setdefault add".split())
LACKING: dict[type, tuple[str, str]] = {
    **dict.fromkeys((ast.Set, ast.SetComp), ("set", "")),
    **dict.fromkeys((ast.Yield, ast.YieldFrom, ast.Await), ("generator", "")),
    **dict.fromkeys((ast.Try, ast.TryStar), ("exception", "try")),
    ast.AsyncFunctionDef: ("generator", "async def {node.name}"),
    ast.ClassDef: ("inner-class", "{node.name}"), ast.Lambda: ("lambda", ""),
    ast.Delete: ("statement", "del"), ast.Match: ("statement", "match"),
    ast.AsyncFor: ("statement", "async for"), ast.AsyncWith: ("statement", "async with"),
    ast.Global: ("outer-state", "global {node.names}"),
    ast.Nonlocal: ("outer-state", "nonlocal {node.names}"),
}  # fmt: skip
"""Forms that the language lacks: the rule, and what is said of one; "" for its source."""
LIST = str.maketrans("", "", "[]'")
"""Takes off what Python puts around the names of a list."""
ENDING = frozenset(("lambda", "generator", "inner-class", "outer-state"))
"""Rules after which what stands inside is not read."""
GOOD_BASES = frozenset(("NKIObject", "Enum", "IntEnum", "StrEnum"))


class Expressions(ast.NodeVisitor):
    """Reports what it finds in the expressions of one function.

    local: names bound in this function or in one around it; parameters: those of its signature.
    unordered: how many blocks of nl.no_reorder() are open.
    """

    def __init__(self, world: World, report: Report) -> None:
        self.world = world
        self.report = report
        self.scope = Scope(world)
        self.local: set[str] = set()
        self.parameters: set[str] = set()
        self.unordered = 0

    def visit(self, node: ast.AST) -> None:
        """A form that the language lacks is reported by its name or its source."""
        rule, word = LACKING.get(type(node), ("", ""))
        if rule:
            self.report(rule, node, word.format(node=node).translate(LIST) or piece(node))
        if rule not in ENDING:
            super().visit(node)

    def check_condition(self, test: ast.expr) -> None:
        """A condition of Python; what it looks at must be known at compile time."""
        for item, compared in conditions(test):
            # `if bias:` asks of an optional parameter whether it was given.
            given = isinstance(item, ast.Name) and item.id in self.parameters
            if self.scope.kind(item) and (compared or not given):
                self.report("run-time-value", item, piece(item))
        self.visit(test)

    def visit_Compare(self, node: ast.Compare) -> None:
        """`is` and `is not`."""
        operands = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, operands, operands[1:], strict=False):
            if isinstance(operator, (ast.Is, ast.IsNot)):
                none = any(is_none(item) for item in (left, right))
                self.report("identity-none" if none else "identity", node, piece(node))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Arithmetic on the variable of a device loop."""
        if {self.scope.kind(node.left), self.scope.kind(node.right)} & {LOOP_VARIABLE}:
            self.report("loop-variable", node, piece(node))
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """An index that is known only at run time."""
        for index_value in index_values(node.slice):
            kind = self.scope.kind(index_value)
            if kind in ON_DEVICE or (kind == TENSOR and self.scope.kind(node.value) == TENSOR):
                self.report("run-time-index", node, piece(node))
                break
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Arguments, and functions that the language lacks or that need numbers."""
        name = self.world.callee(node)
        self.arguments(node, name)
        if name in LOOPS and self.unordered:
            self.report("loop-in-no-reorder", node, name.rpartition(".")[2])
        if name == "nki.language.dynamic_range":
            self.report("dynamic-range", node, piece(node))
        elif name in UNROLLED:
            self.report("unrolled-range", node, name.replace("nki.language", "nl"))
        elif name in ("set", "frozenset"):
            self.report("set", node, piece(node))
        elif name == "print":
            self.check_print(node)
        elif name == "range" and self.run_time(node.args):
            self.report("run-time-value", node, piece(node))
        elif (name in BY_VALUE or name.startswith(("numpy.", "math."))) and self.run_time(
            node.args
        ):
            self.report("host-function", node, piece(node))
        elif name in self.world.classes and not GOOD_BASES & set(self.world.classes[name]):
            self.report("class-base", node, name)
        elif isinstance(node.func, ast.Attribute):
            self.method(node, node.func)
        self.generic_visit(node)

    def run_time(self, nodes: Iterable[ast.expr]) -> bool:
        """Whether a value is known only at run time."""
        return any(self.scope.kind(node) for node in nodes)

    def arguments(self, node: ast.Call, name: str) -> None:
        """Stars, and choices and memories that are not named members."""
        for arg in node.args:
            if isinstance(arg, ast.Starred):
                self.report("star-arguments", arg, piece(arg))
        for keyword in node.keywords:
            value = keyword.value
            plain = type(value.value) if isinstance(value, ast.Constant) else None
            if keyword.arg is None:
                self.report("star-arguments", value, f"**{piece(value)}")
            elif keyword.arg in CHOICES and name.startswith("nki.isa.") and plain is int:
                self.report("choice-number", value, f"{keyword.arg}={piece(value)}")
            elif keyword.arg == "buffer" and name in CREATION and plain is str:
                self.report("memory-name", value, f"buffer={piece(value)}")

    def method(self, node: ast.Call, function: ast.Attribute) -> None:
        """Methods that need numbers, or change what lies outside of the kernel."""
        owner = self.scope.kind(function.value)
        if owner == TENSOR and function.attr in BY_VALUE_METHODS:
            self.report("host-function", node, piece(node))
        elif (
            function.attr in CHANGING
            and isinstance(function.value, ast.Name)
            and function.value.id not in self.local
            and not self.world.origin(function.value)
        ):
            self.report("outer-state", node, piece(node))

    def check_print(self, node: ast.Call) -> None:
        """A print of numbers."""
        values = list(node.args)
        for arg in node.args:
            if isinstance(arg, ast.JoinedStr):
                values += [v.value for v in arg.values if isinstance(v, ast.FormattedValue)]
        if self.run_time(values):
            self.report("print-value", node, piece(node))

    def visit_Dict(self, node: ast.Dict) -> None:
        """Stars, and keys that are no texts."""
        for key in node.keys:
            if key is None:
                self.report("star-arguments", node, piece(node))
            elif isinstance(key, ast.Tuple) or (
                isinstance(key, ast.Constant) and not isinstance(key.value, str)
            ):
                self.report("dictionary-key", key, piece(key))
        self.generic_visit(node)

    def comprehension_of(self, node: ast.AST) -> None:
        """A comprehension that issues instructions."""
        if any(self.instructs(item) for item in ast.walk(node)):
            self.report("comprehension", node, piece(node))
        else:
            self.generic_visit(node)

    def instructs(self, node: ast.AST) -> bool:
        """Whether a call issues instructions; making a tensor without content does not."""
        name = self.world.callee(node)
        if name.startswith("nki.isa.") and name != "nki.isa.get_nc_version":
            return True
        return name != "nki.language.ndarray" and self.scope.kind(node) == TENSOR

    visit_ListComp = visit_DictComp = visit_GeneratorExp = comprehension_of

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        """The name takes the kind of the value."""
        self.visit(node.value)
        self.scope.bind(node.target, self.scope.kind(node.value))


ITERATIONS = frozenset(("enumerate", "zip", "map", "filter", "reversed"))


class Reader(Expressions):
    """Reports what it finds in one function; functions defined inside are read with it.

    entry: whether this is the kernel itself, so that its signature is the kernel's.
    bodies: functions that are the body of a device loop, with the kind of loop.
    """

    def __init__(self, world: World, report: Report, entry: bool) -> None:
        super().__init__(world, report)
        self.entry = entry
        self.bodies: dict[str, str] = {}

    def read(self, function: ast.FunctionDef) -> None:
        """Read the whole function."""
        self.signature(function)
        self.scope.kinds |= parameter_kinds(function)
        self.parameters = {arg.arg for arg in function.args.args}
        self.local |= set(names_bound(function))
        self.bodies |= loop_bodies(function, self.world)
        for statement in function.body:
            self.visit(statement)

    def signature(self, function: ast.FunctionDef) -> None:
        """Parameters, their defaults, and the options of the decorator."""
        arguments = function.args
        for kwonlyarg in arguments.kwonlyargs[:1]:
            if not arguments.vararg:
                self.report("keyword-only", kwonlyarg, kwonlyarg.arg)
        for rest in (arguments.vararg, arguments.kwarg):
            if rest is not None:
                stars = "*" if rest is arguments.vararg else "**"
                self.report("star-arguments", rest, stars + rest.arg)
        for default in filter(None, (*arguments.defaults, *arguments.kw_defaults)):
            made = self.world.callee(default)
            if isinstance(default, (ast.List, ast.ListComp)) or made == "list":
                rule = "list-argument" if self.entry else "mutable-default"
                self.report(rule, default, piece(default))
            elif isinstance(default, (ast.Dict, ast.Set)) or made in ("dict", "set"):
                self.report("mutable-default", default, piece(default))
        for decorator in function.decorator_list:
            if isinstance(decorator, ast.Call) and self.world.callee(decorator) == "nki.jit":
                for keyword in decorator.keywords:
                    if keyword.arg in ("mode", "platform_target"):
                        self.report("jit-option", decorator, f"{keyword.arg}=")

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """A function inside, which sees the names around it."""
        inner = Reader(self.world, self.report, entry=False)
        inner.scope.kinds = dict(self.scope.kinds)
        inner.local |= self.local
        for arg in node.args.args:
            inner.scope.bind(ast.Name(arg.arg), "")
        role = self.bodies.get(node.name, "")
        if role and node.args.args:
            kind = LOOP_VARIABLE if role == "fori_loop" else REGISTER
            inner.scope.kinds[node.args.args[0].arg] = kind
        if role == "fori_loop" and any(
            isinstance(item, ast.Return) and item.value is not None for item in own(node)
        ):
            self.report("loop-body", node, node.name)
        inner.read(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """The names take the kind of the value."""
        self.visit(node.value)
        for target in node.targets:
            self.check_store(target, node)
            self.scope.assign(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """As an assignment without annotation."""
        if node.value is not None:
            self.visit(node.value)
            self.check_store(node.target, node)
            self.scope.assign(node.target, node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """A register or loop variable that Python changes."""
        if self.scope.kind(node.target) in ON_DEVICE:
            self.report("loop-variable", node, piece(node))
        self.generic_visit(node)
        self.check_store(node.target, node)

    def check_store(self, target: ast.expr, statement: ast.AST) -> None:
        """An element written to something that this function has not made."""
        if isinstance(target, (ast.Tuple, ast.List)):
            for elt in target.elts:
                self.check_store(elt, statement)
        elif isinstance(target, ast.Subscript):
            self.visit(target)
            base = target.value
            if isinstance(base, ast.Name) and base.id not in self.local:
                self.report("outer-state", statement, piece(target))

    def visit_For(self, node: ast.For) -> None:
        """What is iterated over, and the kind of the loop variable."""
        made = self.world.callee(node.iter)
        if made in ITERATIONS:
            self.report("iteration", node.iter, piece(node.iter))
        if self.scope.kind(node.iter) == TENSOR:
            self.report("run-time-value", node.iter, f"for ... in {piece(node.iter)}")
        self.visit(node.iter)
        self.scope.bind(node.target, LOOP_VARIABLE if made == "nki.language.dynamic_range" else "")
        for statement in (*node.body, *node.orelse):
            self.visit(statement)

    def visit_While(self, node: ast.While) -> None:
        """A loop on a register, or a condition of Python."""
        if isinstance(node.test, ast.Name) and self.scope.kind(node.test) == REGISTER:
            self.report("register-while", node, node.test.id)
        else:
            self.check_condition(node.test)
        for statement in (*node.body, *node.orelse):
            self.visit(statement)

    def visit_If(self, node: ast.If | ast.IfExp | ast.Assert) -> None:
        """A condition of Python, and what depends on it."""
        self.check_condition(node.test)
        for part in (getattr(node, "body", ()), getattr(node, "orelse", ())):
            for item in part if isinstance(part, (list, tuple)) else [part]:
                self.visit(item)

    visit_IfExp = visit_Assert = visit_If

    def visit_With(self, node: ast.With) -> None:
        """Blocks of nl.no_reorder() are counted; there is no other."""
        ordered = 0
        for item in node.items:
            name = self.world.callee(item.context_expr)
            if name == "nki.language.no_reorder" or name.endswith("no_reorder"):
                ordered = 1
            else:
                self.report("with-block", node, piece(item.context_expr))
        self.unordered += ordered
        for statement in node.body:
            self.visit(statement)
        self.unordered -= ordered

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        """An import inside a function."""
        old = "neuronxcc" in ast.unparse(node)
        self.report("old-import" if old else "inner-import", node, piece(node))

    visit_ImportFrom = visit_Import
