"""What a name in a Python file means: scopes, imports and their aliases, simple assignments.

Nothing is executed. A name that is bound in several ways is taken for an import only if the other
ways are other imports or None, as in `try: import x` / `except ImportError: x = None`.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

IMPORTS = ("importorskip", "import_module", "__import__")
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Binding(NamedTuple):
    """One way in which a name gets its value.

    kind: import (`target` is the full name), value (`node` is the expression), part (unpacked from
    `node`), loop (an element of `node`), count (of enumerate), parameter (`node` is the ast.arg),
    or definition. `path` says which part of what is unpacked, -1 for one that is not known.
    `annotation` is what the program says of it. It holds from `start` (line and column) to the
    line `end`, where its block ends, unless the name is bound again.
    """

    kind: str
    node: ast.AST | None = None
    target: str = ""
    path: tuple[int, ...] = ()
    annotation: ast.expr | None = None
    start: tuple[int, int] = (0, 0)
    end: int = 0


@dataclass(eq=False)
class Scope:
    """A module, class or function, and the names that it binds."""

    kind: str
    parent: "Scope | None"
    node: ast.AST
    names: dict[str, list[Binding]] = field(default_factory=dict)
    outer: set[str] = field(default_factory=set)
    meanings: tuple[dict[str, str], dict[str, str]] = field(default_factory=lambda: ({}, {}))
    losses: set[str] = field(default_factory=set)  # names on which .backward() is called
    loops: list[tuple[int, int, int]] = field(default_factory=list)  # first, last line, header
    added: dict[str, list[ast.expr]] = field(default_factory=dict)  # by names.append(value)

    def find(self, name: str) -> "Scope | None":
        """The scope that binds the name, as Python looks it up; None for a builtin."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names and (scope is self or scope.kind != "class"):
                return scope
            scope = scope.parent
        return None

    def bindings(self, name: str) -> list[Binding]:
        """All ways in which the name gets its value, where it is bound."""
        scope = self.find(name)
        return scope.names[name] if scope else []

    def owner(self) -> "Scope | None":
        """The class that this stands in."""
        scope: Scope | None = self
        while scope is not None and scope.kind != "class":
            scope = scope.parent
        return scope

    def reaching(self, name: str, at: tuple[int, int]) -> list[Binding]:
        """The ways in which the name may have got the value that it has at a line and column here.

        A binding in the same or an outer block, before that place, hides what came before it.
        """
        kept = self.names[name]
        if len(kept) == 1:
            return kept
        line = at[0]
        last = max(
            (item for item in kept if item.start <= at and line <= item.end),
            key=lambda item: item.start,
            default=None,
        )
        if last is None:
            return kept
        first = last.start
        anew = first[0] if last.kind in ("loop", "count") else 0  # each turn binds its own target
        loops = [
            loop for loop in self.loops if first[0] < loop[0] <= line <= loop[1] and loop[2] != anew
        ]
        until = loops[0][1] if loops else 0
        return [
            item
            for item in kept
            if item is last or (item.start > first and (item.start <= at or item.start[0] <= until))
        ]

    def bind(self, name: str, binding: Binding) -> None:
        """Note one way; a global name goes to the module."""
        scope = self
        if name in self.outer:
            while scope.parent is not None:
                scope = scope.parent
        scope.names.setdefault(name, []).append(binding)


class Names:
    """The scopes of one module, and what is assigned to attributes such as `self.scaler`."""

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope("module", None, tree)
        self.scopes: dict[ast.AST, Scope] = {tree: self.module}
        self.attributes: dict[str, list[tuple[ast.expr, Scope]]] = {}
        self.imports: set[str] = set()  # absolute imports, and their roots
        self.imported: set[str] = set()  # names that some import binds
        self.local_imports: dict[str, str] = {}  # what functions import, by name
        self.methods: set[str] = set()  # names of all methods defined here
        self.defined: set[str] = set()  # names of all functions defined here
        self.buffers: list[tuple[Scope | None, str]] = []  # what a module takes to its device
        self.classes: dict[str, ast.ClassDef] = {}
        self.changed: set[tuple[Scope | None, str]] = set()  # numbers of objects, self.scale *= 2
        self.counted: set[str] = set()  # numbers of other objects, batch.offset -= 1
        self._start = (0, 0)
        self._end = 0
        self.tree = tree
        self._read: set[str] | None = None
        self._body(tree.body, self.module)

    def is_read(self, name: str) -> bool:
        """The name is used somewhere in the file, other than to bind it."""
        if self._read is None:
            self._read = {
                node.id
                for node in walk(self.tree)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
            }
        return name in self._read

    def _body(self, body: list[ast.stmt], scope: Scope) -> None:
        if not body:
            return
        before, self._end = self._end, body[-1].end_lineno or 0
        for node in body:
            self._start = (node.end_lineno or 0, node.end_col_offset or 0)
            self._statement(node, scope)
        self._end = before

    def _statement(self, node: ast.stmt, scope: Scope) -> None:
        match node:
            case ast.Import():
                for alias in node.names:
                    root = alias.name.split(".")[0]
                    self.imports |= {root, alias.name}
                    bound, target = (alias.asname, alias.name) if alias.asname else (root, root)
                    self._import(scope, bound, target)
            case ast.ImportFrom():
                module = "." * node.level + (node.module or "")
                if not node.level:
                    self.imports.add(module.split(".")[0])
                for alias in node.names:
                    self._import(scope, alias.asname or alias.name, f"{module}.{alias.name}")
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                scope.bind(node.name, Binding("definition", node))
                self.defined.add(node.name)
                if scope.kind == "class":
                    self.methods.add(node.name)
                inner = self.function(node, scope)
                self._body(node.body, inner)
            case ast.ClassDef():
                scope.bind(node.name, Binding("definition", node))
                self.classes[node.name] = node
                self.scopes[node] = inner = Scope("class", scope, node)
                self._body(node.body, inner)
            case ast.Assign():
                for place in node.targets:
                    self._target(place, node.value, scope)
            case ast.AnnAssign():
                if isinstance(node.target, ast.Name) and (node.value or scope.kind == "class"):
                    kept = Binding("value", node.value, annotation=node.annotation)
                    scope.bind(node.target.id, self._place(kept))
                elif node.value is not None:
                    self._target(node.target, node.value, scope)
            case ast.AugAssign():
                if isinstance(node.target, ast.Name) and _is_list(scope, node.target.id):
                    value = node.value
                    parts = value.elts if isinstance(value, ast.List) else [ast.Starred(value)]
                    scope.added.setdefault(node.target.id, []).extend(parts)
                self._change(node.target, node.value, scope)
                self._target(node.target, node, scope, "part")
            case ast.For(
                target=ast.Tuple(elts=[count, target]),
                iter=ast.Call(func=ast.Name("enumerate"), args=[items, *_]),
            ):
                self._loop(node, scope)
                self._target(count, node.iter, scope, "count")
                self._target(target, items, scope, "loop")
            case ast.For() | ast.AsyncFor():
                self._loop(node, scope)
                self._target(node.target, node.iter, scope, "loop")
            case ast.While():
                self._loop(node, scope)
            case ast.With() | ast.AsyncWith():
                self._start = (node.lineno, 0)
                for item in node.items:
                    if item.optional_vars is not None:
                        self._target(item.optional_vars, item.context_expr, scope, "part")
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(attr="backward" | "manual_backward") as method
                ) as call
            ):
                scope.losses.update(_losses(call, method.value))
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(name), attr="append" | "extend" as how),
                    args=[value],
                )
            ):
                value = value if how == "append" else ast.Starred(value)
                (scope.find(name) or scope).added.setdefault(name, []).append(value)
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name("self"), attr="register_buffer"),
                    args=[ast.Constant(str(name)), value, *_],
                )
            ):
                self.attributes.setdefault(f"self.{name}", []).append((value, scope))
                self.buffers.append((scope.owner(), name))
            case ast.Global() | ast.Nonlocal():
                scope.outer.update(node.names)
            case ast.Match():
                for case in node.cases:
                    self._body(case.body, scope)
            case _:
                pass
        for name in ("body", "orelse", "finalbody"):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self._body(getattr(node, name, None) or [], scope)
        for handler in getattr(node, "handlers", ()):
            self._body(handler.body, scope)

    def _import(self, scope: Scope, name: str, target: str) -> None:
        self.imported.add(name)
        if scope.kind == "function":
            self.local_imports.setdefault(name, target)
        scope.bind(name, Binding("import", None, target))

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, scope: Scope) -> None:
        first = node.body[0].lineno if isinstance(node, ast.For | ast.AsyncFor) else node.lineno
        scope.loops.append((first, node.end_lineno or 0, node.lineno))
        self._start = (node.lineno, 0)

    def _place(self, binding: Binding) -> Binding:
        return binding._replace(start=self._start, end=self._end)

    def _target(
        self,
        target: ast.expr,
        value: ast.AST,
        scope: Scope,
        kind: str = "value",
        path: tuple[int, ...] = (),
    ) -> None:
        match target:
            case ast.Name():
                scope.bind(target.id, Binding(kind, value, "", path, None, self._start, self._end))
            case ast.Tuple() | ast.List():
                given = value.elts if isinstance(value, ast.Tuple | ast.List) else None
                if given is not None and kind == "value" and len(given) == len(target.elts):
                    for one, part in zip(target.elts, given, strict=True):
                        self._target(one, part, scope)
                else:
                    inner = "loop" if kind == "loop" else "part"
                    known = True
                    for index, one in enumerate(target.elts):
                        known = known and not isinstance(one, ast.Starred)
                        step = index if known else -1
                        self._target(one, value, scope, inner, (*path, step))
            case ast.Starred():
                self._target(target.value, value, scope, kind, path)
            case ast.Attribute() if kind == "value":
                text = written(target)
                if text and isinstance(value, ast.expr):
                    self.attributes.setdefault(text, []).append((value, scope))
                    if isinstance(value, ast.BinOp) and written(value.left) == text:
                        self._change(target, value.right, scope)

    def _change(self, target: ast.expr, by: ast.expr, scope: Scope) -> None:
        """Note self.scale *= 2 in a method, by a number or by another setting of the object."""
        if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
            if isinstance(by, ast.Constant):  # state["step"] += 1
                self.counted.add(ast.unparse(target))
        if not isinstance(target, ast.Attribute):
            return
        number = isinstance(by, ast.Constant) and isinstance(by.value, int | float)
        if written(target.value) != "self":
            self.counted |= {written(target)} if number else set()
        elif number or written(by).startswith("self.") or _is_size(by, scope):
            self.changed.add((scope.owner(), target.attr))

    def function(self, node: Function, scope: Scope) -> Scope:
        """The scope of a function with its parameters bound."""
        self.scopes[node] = inner = Scope("function", scope, node)
        for arg in parameters(node.args):
            inner.bind(arg.arg, Binding("parameter", arg, end=node.end_lineno or 0))
        return inner

    def comprehension(
        self, node: ast.AST, generators: list[ast.comprehension], scope: Scope
    ) -> Scope:
        """The scope of a comprehension with its loop variables bound."""
        inner = self.scopes.get(node)
        if inner is None:
            self.scopes[node] = inner = Scope("function", scope, node)
            self._start, self._end = (0, 0), getattr(node, "end_lineno", 0)
            for generator in generators:
                self._target(generator.target, generator.iter, inner, "loop")
        return inner

    def dotted(self, node: ast.AST, scope: Scope, follow: bool = True, depth: int = 8) -> str:
        """The full name of `tc.amp.autocast` after its imports; "" for what is no plain name.

        With `follow`, a variable that is assigned once stands for what is assigned.
        """
        parts: list[str] = []
        while not isinstance(node, ast.Name):
            match node:
                case ast.Attribute():
                    parts.append(node.attr)
                    node = node.value
                case ast.Call(func=ast.Name("getattr"), args=[owner, ast.Constant(str(name)), *_]):
                    parts.append(name)
                    node = owner
                case _:
                    return ""
        meanings = scope.meanings[follow]
        root = meanings.get(node.id)
        if root is None:
            root = meanings[node.id] = self._meaning(node.id, scope, follow, depth)
        return ".".join([root, *reversed(parts)]) if root and parts else root

    def _meaning(self, name: str, scope: Scope, follow: bool, depth: int) -> str:
        home = scope.find(name)
        if home is None:  # a name that only another function imports is meant to be that
            return self.local_imports.get(name, name)
        targets = [item.target for item in home.names[name] if item.kind == "import"]
        others = [item for item in home.names[name] if item.kind != "import"]
        older = bool(targets) and targets[0].startswith("torch.")  # a class for an older torch
        if targets and all(
            (other.kind == "value" and is_none(other.node))
            or (older and isinstance(other.node, ast.ClassDef))
            for other in others
        ):
            return targets[0]
        if follow and depth and not targets and len(others) == 1 and others[0].kind == "value":
            value = others[0].node
            if isinstance(value, ast.Call) and written(value.func).endswith(IMPORTS):
                # torch = pytest.importorskip("torch")
                match value.args:
                    case [ast.Constant(value=str(module)), *_]:
                        return module
            if isinstance(value, ast.Call) and name in self.local_imports:
                return self.local_imports[name]  # xm = load_xm(), which imports it
            if isinstance(value, ast.Name | ast.Attribute):
                if not (isinstance(value, ast.Name) and value.id == name):
                    return self.dotted(value, home, follow, depth - 1)
        if follow and depth and name == "autocast":  # chosen by the version of torch
            chosen = [
                self.dotted(item.node, home, follow, depth - 1) for item in others if item.node
            ]
            return next((full for full in chosen if full.startswith("torch.cuda.")), "")
        return ""


def _is_size(node: ast.expr, scope: Scope) -> bool:
    """x.shape[0], x.size(0), len(x), or a name for one of them."""
    match node:
        case ast.Name():
            kept = scope.names.get(node.id, ())
            return any(
                not isinstance(one.node, ast.Name) and _is_size(one.node, scope)
                for one in kept
                if isinstance(one.node, ast.expr)
            )
        case ast.Subscript(value=ast.Attribute(attr="shape")):
            return True
        case ast.Call(func=ast.Attribute(attr="size" | "numel")) | ast.Call(func=ast.Name("len")):
            return True
    return False


def _is_list(scope: Scope, name: str) -> bool:
    """The name was given a list that is written there."""
    kept = scope.names.get(name, ())
    return any(isinstance(item.node, ast.List | ast.ListComp) for item in kept)


def same_frame(scope: Scope | None, home: Scope) -> bool:
    """The place is in the function that binds the name, or in a comprehension within it."""
    while scope is not None and scope is not home:
        if isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return False
        scope = scope.parent
    return True


def _losses(call: ast.Call, owner: ast.expr) -> Iterator[str]:
    """loss in loss.backward(), scaler.scale(loss).backward() and accelerator.backward(loss)."""
    if call.args:
        parts = call.args[:1]
    else:
        parts = owner.args[:1] if isinstance(owner, ast.Call) else [owner]
    yield from (part.id for part in parts if isinstance(part, ast.Name))


def parameters(args: ast.arguments) -> Iterator[ast.arg]:
    """All parameters of a function."""
    yield from args.posonlyargs
    yield from args.args
    yield from args.kwonlyargs
    yield from filter(None, (args.vararg, args.kwarg))


# Nothing stands below these but whether they are read or written.
CONTEXTS = frozenset({ast.Load, ast.Store, ast.Del})
LEAVES = CONTEXTS | {ast.Name, ast.Constant}


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """As ast.walk, without the marks of reading and writing, in half the time."""
    todo = [node]
    for one in todo:
        yield one
        if one.__class__ in LEAVES:
            continue
        for name in one._fields:
            below = getattr(one, name, None)
            if below.__class__ is list:
                todo += [item for item in below if isinstance(item, ast.AST)]
            elif isinstance(below, ast.AST) and below.__class__ not in CONTEXTS:
                todo.append(below)


def is_none(node: ast.AST | None) -> bool:
    """None or False is written there."""
    return isinstance(node, ast.Constant) and node.value in (None, False)


def written(node: ast.AST) -> str:
    """The text of a plain chain such as `self.args.cuda`; "" for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])
