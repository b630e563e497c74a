"""One pass over a function, statement by statement, with what its names mean at each."""

import ast

from utils.nki.simulator.lint.expressions import Expressions, Report
from utils.nki.simulator.lint.scope import (
    LOOP_VARIABLE,
    ON_DEVICE,
    REGISTER,
    TENSOR,
    World,
    parameter_kinds,
)
from utils.nki.simulator.lint.syntax import loop_bodies, names_bound, own, piece

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
        self.signature(function)
        self.scope.kinds |= parameter_kinds(function)
        self.parameters = {each.arg for each in function.args.args}
        self.local |= set(names_bound(function))
        self.bodies |= loop_bodies(function, self.world)
        for statement in function.body:
            self.visit(statement)

    def signature(self, function: ast.FunctionDef) -> None:
        arguments = function.args
        for each in arguments.kwonlyargs[:1]:
            if not arguments.vararg:
                self.report("keyword-only", each, each.arg)
        for each in (arguments.vararg, arguments.kwarg):
            if each is not None:
                stars = "*" if each is arguments.vararg else "**"
                self.report("star-arguments", each, stars + each.arg)
        for default in filter(None, (*arguments.defaults, *arguments.kw_defaults)):
            made = self.world.called(default)
            if isinstance(default, (ast.List, ast.ListComp)) or made == "list":
                rule = "list-argument" if self.entry else "mutable-default"
                self.report(rule, default, piece(default))
            elif isinstance(default, (ast.Dict, ast.Set)) or made in ("dict", "set"):
                self.report("mutable-default", default, piece(default))
        for decorator in function.decorator_list:
            if self.world.called(decorator) == "nki.jit":
                for keyword in decorator.keywords:
                    if keyword.arg in ("mode", "platform_target"):
                        self.report("jit-option", decorator, f"{keyword.arg}=")

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        inner = Reader(self.world, self.report, entry=False)
        inner.scope.kinds = dict(self.scope.kinds)
        inner.local |= self.local
        for each in node.args.args:
            inner.scope.bind(ast.Name(each.arg), "")
        role = self.bodies.get(node.name, "")
        if role and node.args.args:
            kind = LOOP_VARIABLE if role == "fori_loop" else REGISTER
            inner.scope.kinds[node.args.args[0].arg] = kind
        if role == "fori_loop" and any(
            isinstance(each, ast.Return) and each.value is not None for each in own(node)
        ):
            self.report("loop-body", node, node.name)
        inner.read(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.report("generator", node, f"async def {node.name}")

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.report("inner-class", node, node.name)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self.stored(target, node)
            self.scope.assign(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
            self.stored(node.target, node)
            self.scope.assign(node.target, node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if self.scope.kind(node.target) in ON_DEVICE:
            self.report("loop-variable", node, piece(node))
        self.generic_visit(node)
        self.stored(node.target, node)

    def stored(self, target: ast.expr, statement: ast.AST) -> None:
        """An element written to something that this function has not made."""
        if isinstance(target, (ast.Tuple, ast.List)):
            for each in target.elts:
                self.stored(each, statement)
        elif isinstance(target, ast.Subscript):
            self.visit(target)
            base = target.value
            if isinstance(base, ast.Name) and base.id not in self.local:
                self.report("outer-state", statement, piece(target))

    def visit_For(self, node: ast.For) -> None:
        made = self.world.called(node.iter)
        if made in ITERATIONS:
            self.report("iteration", node.iter, piece(node.iter))
        if self.scope.kind(node.iter) == TENSOR:
            self.report("run-time-value", node.iter, f"for ... in {piece(node.iter)}")
        self.visit(node.iter)
        self.scope.bind(node.target, LOOP_VARIABLE if made == "nki.language.dynamic_range" else "")
        for statement in (*node.body, *node.orelse):
            self.visit(statement)

    def visit_While(self, node: ast.While) -> None:
        if isinstance(node.test, ast.Name) and self.scope.kind(node.test) == REGISTER:
            self.report("register-while", node, node.test.id)
        else:
            self.decided(node.test)
        for statement in (*node.body, *node.orelse):
            self.visit(statement)

    def visit_If(self, node: ast.If) -> None:
        self.decided(node.test)
        for statement in (*node.body, *node.orelse):
            self.visit(statement)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.decided(node.test)
        self.visit(node.body)
        self.visit(node.orelse)

    def visit_Assert(self, node: ast.Assert) -> None:
        self.decided(node.test)

    def visit_With(self, node: ast.With) -> None:
        ordered = 0
        for item in node.items:
            name = self.world.called(item.context_expr)
            if name == "nki.language.no_reorder" or name.endswith("no_reorder"):
                ordered = 1
            else:
                self.report("with-block", node, piece(item.context_expr))
        self.unordered += ordered
        for statement in node.body:
            self.visit(statement)
        self.unordered -= ordered

    def statement(self, node: ast.AST) -> None:
        words = {
            ast.Delete: "del",
            ast.Match: "match",
            ast.AsyncFor: "async for",
            ast.AsyncWith: "async with",
        }
        self.report("statement", node, words[type(node)])
        self.generic_visit(node)

    visit_Delete = visit_Match = visit_AsyncFor = visit_AsyncWith = statement

    def visit_Try(self, node: ast.Try) -> None:
        self.report("exception", node, "try")
        self.generic_visit(node)

    visit_TryStar = visit_Try

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        word = "global" if isinstance(node, ast.Global) else "nonlocal"
        self.report("outer-state", node, f"{word} {', '.join(node.names)}")

    visit_Nonlocal = visit_Global

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        old = "neuronxcc" in ast.unparse(node)
        self.report("old-import" if old else "inner-import", node, piece(node))

    visit_ImportFrom = visit_Import
