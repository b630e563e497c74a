"""One pass over the syntax tree of a file, which keeps scope, guards and loops at every node.

The checks themselves are in `cuda_devices`, `cuda_names`, `libraries`, `flagged`, `legacy`,
`tensor_values`, `tensor_shapes` and `tensor_lengths`.
"""

import ast
import os
from collections.abc import Callable

from utils.audit import (
    cuda_devices,
    cuda_names,
    flagged,
    legacy,
    libraries,
    tensor_lengths,
    tensor_shapes,
    tensor_values,
)
from utils.audit.guards import COUNT, ELSEWHERE, Origin, stops
from utils.audit.rules import IMPORTS, LEGACY_ROOTS, NAMES
from utils.audit.scopes import parameters, written
from utils.audit.state import State
from utils.audit.tensor_kinds import Tensors

IMPORT_ERRORS = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}


class Reader(State):
    """Reads one module when it is made."""

    def __init__(
        self,
        tree: ast.Module,
        tensors: Tensors,
        local: frozenset[str] = frozenset(),
        path: str = "",
    ) -> None:
        super().__init__(tensors, local)
        if tensor_values.is_host_file(path.replace(os.sep, "/"), self.names.imports):
            modules = map(tensors.derives, self.names.classes.values())
            self.host_file = self.host_file or not any(modules)
        self.unit_tests = tensor_values.unit_tests(self)
        self.traced = tensor_values.is_traced(self)
        self.packages = bool(self.names.imports & (set(IMPORTS) | LEGACY_ROOTS))
        self.body(tree.body)
        cuda_devices.settle(self)
        legacy.settle(self)
        self.settle()

    # Statements

    def _on_If(self, node: ast.If) -> None:
        if self.dotted(node.test).endswith("TYPE_CHECKING"):
            self.body(node.orelse)  # the rest is never run
            return
        self.reported.update(flagged.asked(node.test))
        self.visit(node.test)
        tensor_values.decision(self, node.test)
        flagged.only_cpu(self, node)
        yes = self.guards.implied(node.test, True, self.scope)
        no = self.guards.implied(node.test, False, self.scope)
        if yes is not None and stops(node.orelse):
            self._require(node, yes)
            yes = None
        if no is not None and stops(node.body):
            self._require(node, no)
            no = None
        optional = self.optional or (self.packages and self.guards.optional(node.test))
        chosen = self.packages and legacy.chooses(node.test)
        state = {"periodic": self.periodic + tensor_values.is_periodic(node.test)}
        if no is not None and self.torch and self.guard is None and _gives_back(node.body):
            self.idiom(no)
        if isinstance(node.test, ast.BoolOp) and self.torch and _chooses_cpu(node.body):
            for part in node.test.values:
                self.idiom(self.guards.implied(part, False, self.scope))
        if stops(node.body):
            state |= {"loops": 0, "epochs": False, "once": True}
        alone = self.torch and yes is ELSEWHERE and not node.orelse and self.guard is None
        if self.torch and self.guard is None:
            if yes is ELSEWHERE and (node.orelse or _gives_back(node.body)):
                cuda_devices.forgets_others(self, node.test, node.orelse)
            elif no is ELSEWHERE and _gives_back(node.body):
                cuda_devices.forgets_others(self, node.test, node.body)
        with self.having(optional=optional or chosen, alone=alone or self.alone, **state):
            self.branch(node.body, yes, self.body)
        fails = stops(node.orelse) if node.orelse else False
        once = {"loops": 0, "epochs": False, "once": True} if fails else {}
        with self.having(optional=optional, **once):
            self.branch(node.orelse, no, self.body)

    def _require(self, node: ast.AST, origin: Origin) -> None:
        self.report("cuda-required", origin if isinstance(origin, ast.AST) else node)
        for part in (getattr(node, "body", None), getattr(node, "orelse", None)):
            self.reported.update(part[-1:] if isinstance(part, list) else ())

    def _on_Assert(self, node: ast.Assert) -> None:
        origin = self.guards.implied(node.test, True, self.scope)
        if origin is not None:
            self._require(node, origin)
        self.reported.update(flagged.asked(node.test))
        self.visit(node.test)
        if not any(name.startswith("test") for name in self.functions):
            tensor_values.decision(self, node.test)

    def _on_While(self, node: ast.While) -> None:
        until = self.until | tensor_shapes.grown(node.test)
        with self.having(loops=self.loops + 1, until=until, **self._step(node)):
            self.visit(node.test)
            tensor_values.decision(self, node.test)
            origin = self.guards.implied(node.test, True, self.scope)
            self.branch(node.body, origin, self.body)
        self.body(node.orelse)

    def _on_For(self, node: ast.For) -> None:
        self.visit(node.iter)
        target = node.target.id if isinstance(node.target, ast.Name) else ""
        state: dict[str, object] = {"loops": self.loops + 1, "epochs": False}
        if "epoch" in target.lower() and not self.loops:
            state = {"loops": 0, "epochs": True}
        else:
            state |= self._step(node)
        with self.having(**state):
            self.body(node.body)
        self.body(node.orelse)

    _on_AsyncFor = _on_For

    def is_step_loop(self, node: ast.For | ast.While) -> bool:
        """A loop over batches or tokens, in the function that is read."""
        return tensor_shapes.is_step_loop(node, self.functions)

    def _step(self, node: ast.For | ast.AsyncFor | ast.While) -> dict[str, object]:
        """What changes within a loop if it is one over batches or tokens."""
        if not self.torch or self.functions[-1:] == ["forward"]:
            return {}
        if not tensor_shapes.is_step_loop(node, self.functions):
            return {}
        return {"steps": "loop", "counters": self.counters | tensor_shapes.counters(node)}

    def _on_With(self, node: ast.With) -> None:
        self.all(node.items)
        self.body(node.body)

    _on_AsyncWith = _on_With

    def _on_Try(self, node: ast.Try) -> None:
        caught = {getattr(name, "id", "") for item in node.handlers for name in _caught(item)}
        saved = bool(caught & IMPORT_ERRORS) or any(item.type is None for item in node.handlers)
        with self.having(optional=self.optional or saved):
            self.body(node.body)
            for handler in node.handlers:
                self.body(handler.body)
        self.body(node.orelse)
        self.body(node.finalbody)

    _on_TryStar = _on_Try

    def _on_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        for case in node.cases:
            self.all([case.guard])
            match case.pattern:
                case ast.MatchValue(value=ast.Constant(value="cuda")):
                    self.branch(case.body, ELSEWHERE, self.body)
                case _:
                    self.body(case.body)

    def _on_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.all(node.decorator_list)
        for decorator in node.decorator_list:
            libraries.decorator(self, decorator)
        cuda_devices.defaults(self, node.args)
        for arg in parameters(node.args):
            if isinstance(arg.annotation, ast.Attribute) and "cuda" in written(arg.annotation):
                self.visit(arg.annotation)  # event: torch.cuda.Event
        origin = self.guard or self._skip_origin(node.decorator_list)
        state = {"scope": self.names.scopes[node], "loops": 0, "epochs": False, "guard": origin}
        state |= {"periodic": 0, "counters": frozenset(), "until": frozenset()}
        item = self.torch and (
            tensor_shapes.is_step_function(node.name) or self.tensors.is_forward(node, self.scope)
        )
        state["once"] = False
        state |= {"steps": "function" if item else "", "loops": int(item)}
        if any(written(one).startswith("triton.jit") for one in node.decorator_list):
            state["hosted"] = True  # a kernel: its tensors are none of torch
        with self.having(functions=[*self.functions, node.name], **state):
            self.body(node.body)

    _on_AsyncFunctionDef = _on_FunctionDef

    def _on_ClassDef(self, node: ast.ClassDef) -> None:
        self.all(node.decorator_list)
        self.all(node.bases)
        self.all(node.keywords)
        for base in node.bases:
            legacy.scripted(self, base)
        origin = self.guard or self._skip_origin(node.decorator_list)
        hosted = tensor_values.is_hosted(node) or tensor_values.serves_hosted(self, node)
        with self.having(scope=self.names.scopes[node], loops=0, guard=origin, hosted=hosted):
            self.body(node.body)

    def _skip_origin(self, decorators: list[ast.expr]) -> Origin:
        """A test that is skipped when CUDA is missing."""
        for decorator in decorators:
            if isinstance(decorator, ast.Call) and decorator.args:
                last = self.dotted(decorator.func).split(".")[-1].lower()
                if last in ("skipif", "skipunless"):
                    if self.guards.implied(decorator.args[0], last == "skipunless", self.scope):
                        return ELSEWHERE
        return None

    def _on_Import(self, node: ast.Import) -> None:
        names = [alias.name for alias in node.names]
        if any(name.startswith("torch.backends.cud") for name in names):
            self.report("backend-flags", node, "imported here", "note")
        libraries.imported(self, node, names)
        legacy.imported(self, node, names)
        flagged.imported(self, node)

    def _on_ImportFrom(self, node: ast.ImportFrom) -> None:
        names = [libraries.start_of(node) + alias.name for alias in node.names]
        libraries.imported(self, node, names)
        if node.module == "torch.backends" and any(one.name == "cudnn" for one in node.names):
            self.report("backend-flags", node, "imported here", "note")
        if not node.level:
            cuda_names.imported(self, node, names)
            legacy.imported(self, node, names)
        flagged.imported(self, node)

    def _on_Assign(self, node: ast.Assign) -> None:
        self.all(node.targets)
        for target in node.targets:
            if isinstance(target, ast.Attribute):
                cuda_names.answer(self, node.value)
                match node.value:
                    case ast.Call(func=ast.Attribute(value=ast.Attribute() as owner)):
                        if written(owner) == written(target):
                            self.reported.add(node.value)  # self.w = self.w.cpu(): parked there
            cuda_devices.assigned(self, target, node.value)
            cuda_names.assigned(self, target)
            tensor_shapes.assigned(self, target, node.value)
            flagged.assigned(self, target, node.value)
            libraries.assigned(self, target, node.value)

    def _on_AugAssign(self, node: ast.AugAssign) -> None:
        cuda_names.assigned(self, node.target)
        tensor_shapes.computed(self, node.target, node.value)
        self.children(node)

    def _on_AnnAssign(self, node: ast.AnnAssign) -> None:
        for part in ast.walk(node.annotation):  # graphs: dict[int, torch.cuda.CUDAGraph]
            if isinstance(part, ast.Attribute) and written(part).startswith("torch.cuda."):
                self.visit(part)
        if node.value is not None:
            cuda_devices.assigned(self, node.target, node.value)

    def _on_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            cuda_names.answer(self, node.value)
            # get_device() returns a device.
            cuda_devices.named(self, self.functions[-1] if self.functions else "", node.value)

    def _on_Raise(self, node: ast.Raise) -> None:
        if node not in self.reported:
            libraries.raised(self, node)
        with self.having(loops=0, epochs=False, once=True):
            self.children(node)

    # Expressions

    def _on_JoinedStr(self, node: ast.JoinedStr) -> None:
        for part in node.values:
            cuda_names.answer(self, getattr(part, "value", None))
        tensor_values.formatted(self, node)
        self.children(node)

    def _on_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.visit(node.value)

    def _on_IfExp(self, node: ast.IfExp) -> None:
        self.choice(node, self.visit)

    def choice(self, node: ast.IfExp, walk: Callable) -> None:
        """As for all states, and its test may be a decision by the value of a tensor."""
        tensor_values.decision(self, node.test)
        self.reported.update(flagged.asked(node.test))
        if self.guards.implied(node.test, True, self.scope) is ELSEWHERE:
            cuda_devices.leaves_out_others(self, node)
        super().choice(node, walk)

    def _on_BoolOp(self, node: ast.BoolOp) -> None:
        self.boolean(node, self.visit)

    def _on_Compare(self, node: ast.Compare) -> None:
        self.reported.update(flagged.asked(node))
        tensor_shapes.compared(self, node)
        asks = any(self.guards.implied(node, outcome, self.scope) for outcome in (True, False))
        legacy.compared(self, node)
        if not asks:
            self.children(node)
        elif isinstance(node.left, ast.Call) and self.dotted(node.left.func) == COUNT:
            self.asked.append(node.left)
        else:
            self.compared.append(node)

    def _on_Lambda(self, node: ast.Lambda) -> None:
        cuda_devices.defaults(self, node.args)
        with self.having(scope=self.names.function(node, self.scope)):
            self.visit(node.body)

    def _on_ListComp(self, node: ast.ListComp) -> None:
        self._comprehension(node, [node.elt])

    _on_SetComp = _on_GeneratorExp = _on_ListComp

    def _on_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension(node, [node.key, node.value])

    def _comprehension(self, node: ast.ListComp | ast.DictComp, parts: list[ast.expr]) -> None:
        generators = node.generators
        self.visit(generators[0].iter)
        scope = self.names.comprehension(node, generators, self.scope)
        with self.having(scope=scope, loops=self.loops + 1):
            for generator in generators:
                if generator is not generators[0]:
                    self.visit(generator.iter)
                self.all(generator.ifs)
                for test in generator.ifs:
                    tensor_values.decision(self, test)
            self.all(parts)

    def _on_Call(self, node: ast.Call) -> None:
        name = self.dotted(node.func)
        if name in NAMES["asks_for_cuda"] and name.startswith("torch.cuda."):
            self.asked.append(node)
        flagged.launched(self, node)
        flagged.scaled(self, node)
        tensor_lengths.moved(self, node)
        libraries.called(self, node, name)
        if not cuda_names.called(self, node, name):
            self.visit(node.func)
        tensor_values.called(self, node, name)
        tensor_shapes.called(self, node, name)
        legacy.called(self, node, name)
        cuda_devices.called(self, node, name)

    def _on_Attribute(self, node: ast.Attribute) -> None:
        name = self.dotted(node)
        is_torch = name.startswith("torch.") and not name.startswith("torch.neuron.")
        older = name.startswith("torch.classes.neuron.")
        done = cuda_names.used if is_torch and not older else legacy.used
        if node.attr in ("is_cuda", "is_cuda_alike"):
            self.compared.append(node)
        elif node.attr == "imag":
            tensor_shapes.imagined(self, node)
        if not (name and done(self, node, name)) and not flagged.used(self, node):
            if node.attr == "_C" and name and not is_torch:
                libraries.compiled(self, node)
            self.visit(node.value)

    def _on_Name(self, node: ast.Name) -> None:
        if flagged.used(self, node):
            return
        chosen = node.id == "autocast"  # by the version of torch
        if (node.id in self.names.imported or chosen) and isinstance(node.ctx, ast.Load):
            name = self.dotted(node, follow=chosen)
            if name.startswith("torch."):
                cuda_names.used(self, node, name)
            else:
                legacy.used(self, node, name)

    def _on_Constant(self, node: ast.Constant) -> None:
        legacy.text(self, node)
        cuda_names.text(self, node)

    def _on_Subscript(self, node: ast.Subscript) -> None:
        tensor_values.indexed(self, node)
        tensor_shapes.sliced(self, node)
        self.children(node)

    def _on_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.Mod) and tensor_values.is_text(node.left):
            tensor_values.formatted(self, node)
        tensor_shapes.computed(self, node.left, node.right)
        if isinstance(node.op, ast.Div):
            tensor_shapes.divided(self, node.left, node.right)
        elif isinstance(node.op, ast.Mult):  # 1.0 / count * loss
            match node.left:
                case ast.BinOp(op=ast.Div(), left=ast.Constant(), right=count):
                    tensor_shapes.divided(self, node.right, count)
        self.children(node)

    def _on_Dict(self, node: ast.Dict) -> None:
        tensor_values.framed(self, node)
        cuda_devices.items(self, node)
        libraries.settings(self, node)

    def _on_Tuple(self, node: ast.Tuple) -> None:
        cuda_devices.elements(self, node)
        self.all(node.elts)

    _on_List = _on_Set = _on_Tuple


def _gives_back(body: list[ast.stmt]) -> bool:
    """The block ends with a value: it decides, and does not only leave something out."""
    last = body[-1]
    return isinstance(last, ast.Return) and getattr(last.value, "value", last.value) is not None


def _chooses_cpu(body: list[ast.stmt]) -> bool:
    """args.device = "cpu"."""
    return any(
        isinstance(one, ast.Assign) and getattr(one.value, "value", "") == "cpu" for one in body
    )


def _caught(handler: ast.ExceptHandler) -> list[ast.expr]:
    if handler.type is None:
        return []
    return handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
