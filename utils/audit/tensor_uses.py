"""How the names of a file are used: as only tensors are, as functions that are called, and as
functions that PyTorch/XLA calls after a step. Found in one pass, when it is first asked.
"""

import ast

from utils.audit.rules import NAMES
from utils.audit.scopes import Names, Scope, written
from utils.audit.tensor_names import LOSS_NAME, is_tensor_function, takes_dim

# Nothing that is called stands below them.
ENDS = {ast.Name, ast.Constant, ast.Load, ast.Store, ast.Del, ast.alias, ast.arg}
ENDS |= {str, int, type(None), ast.Import, ast.ImportFrom, ast.Pass, ast.Global}
ENDS |= {ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod, ast.Pow, ast.And, ast.Or, ast.Not, ast.USub}


def _is_sliced(node: ast.Subscript) -> bool:
    """x[:, 0]: lists have no such elements, and where no arrays are about it is a tensor."""
    return isinstance(node.slice, ast.Tuple) and any(
        isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value is ...)
        for part in node.slice.elts
    )


def _is_count(node: ast.expr) -> bool:
    """0 or -1: of x.size(0), which arrays do not have."""
    given = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(given, ast.Constant) and isinstance(given.value, int)


TEXTUAL = {"strip", "lstrip", "rstrip", "lower", "upper", "startswith", "endswith", "find"}
TEXTUAL |= {"isdigit"}
CASTS = {"int", "short", "byte"}  # x.int(), which arrays do not have


class Uses:
    """The uses of names in one file."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.plain = "torch" in names.imports and not names.imports & NAMES["array_libraries"]
        self._used: set[tuple[Scope | None, str]] | None = None
        self._called: dict[str, list[tuple[ast.Call, Scope]]] = {}
        self._made: dict[str, list[Scope]] = {}
        self._texts: set[tuple[Scope, str]] = set()
        self._sliced: set[tuple[Scope | None, str]] = set()
        self._closures: set[str] = set()
        self._given: dict[str, list[tuple[ast.expr, Scope]]] = {}

    def calls(self, name: str) -> list[tuple[ast.Call, Scope]]:
        """The calls of a function of this file, by its name alone."""
        self._scan()
        return self._called.get(name, [])

    def makers(self, name: str) -> list[Scope]:
        """Where objects of a class of this file are made."""
        self._scan()
        return self._made.get(name, [])

    def is_text(self, home: Scope, name: str) -> bool:
        """A name is used as only texts are: name.startswith("a"), name.find("[s]")."""
        self._scan()
        return (home, name) in self._texts

    @property
    def closures(self) -> set[str]:
        """Functions that PyTorch/XLA calls after a step, when the values are there anyway."""
        self._scan()
        return self._closures

    def updates(self, scope: Scope, name: str) -> list[tuple[ast.expr, Scope]]:
        """What a meter was given: loss of losses.update(loss, n)."""
        self._scan()
        return [(one, where) for one, where in self._given.get(name, ()) if where is scope]

    def is_sliced(self, home: Scope, name: str) -> bool:
        """A name is used as tensors and arrays are, in a file that knows both."""
        self._scan()
        return (home, name) in self._sliced

    def is_used(self, home: Scope, name: str) -> bool:
        """A name, or an attribute such as self.x in a class, is used as only tensors are."""
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
            elif isinstance(node, ast.Subscript):
                if _is_sliced(node):
                    if self.plain:
                        self._note(node.value, scope)
                    elif isinstance(node.value, ast.Name):
                        self._sliced.add((scope.find(node.value.id), node.value.id))
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
            sized = name == "size" and len(node.args) == 1 and _is_count(node.args[0])
            if name in TEXTUAL and isinstance(function.value, ast.Name):
                home = scope.find(function.value.id)
                if home is not None and all(isinstance(one, ast.Constant) for one in node.args):
                    self._texts.add((home, function.value.id))
            cast = name in CASTS and not node.args and not node.keywords
            if sized or cast or name in NAMES["tensor_methods"] or takes_dim(node):
                self._note(function.value, scope)
            if name == "backward" and not node.args:
                self._note_parts(function.value, scope)
            if name == "update" and node.args and written(function.value):
                self._given.setdefault(written(function.value), []).append((node.args[0], scope))
        if not name:
            return
        if name in NAMES["tensor_takers"] and node.args:
            full = self.names.dotted(function, scope)
            if full.startswith("torch.") and is_tensor_function(full):
                self._note(node.args[0], scope)
        elif name == "add_step_closure" and node.args:
            self._closures.add(written(node.args[0]).split(".")[-1])
        elif name in self.names.classes:
            self._made.setdefault(name, []).append(scope)
        elif name in self.names.defined:
            self._called.setdefault(name, []).append((node, scope))

    def _note_parts(self, node: ast.AST, scope: Scope) -> None:
        """loss of (loss * scale).backward(), or of a name that holds the product."""
        if isinstance(node, ast.Name):
            kept = scope.bindings(node.id)
            parts = [item.node for item in kept if isinstance(item.node, ast.BinOp)]
        else:
            parts = [node] if isinstance(node, ast.BinOp) else []
        for part in parts:
            for one in (part.left, part.right):
                if isinstance(one, ast.Name) and LOSS_NAME.search(one.id):
                    self._note(one, scope)

    def _note(self, node: ast.AST, scope: Scope) -> None:
        assert self._used is not None
        while isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant):
            node = node.value  # gt_classes of gt_classes[k][:n].int()
        if isinstance(node, ast.Name):
            home = scope.find(node.id)
            if home is not None and node.id not in self.names.imported:
                if (home, node.id) not in self._used:
                    self._used.add((home, node.id))
                    for item in home.names.get(node.id, ()):  # x of y = x[:, :, -1]
                        if isinstance(item.node, ast.Subscript) and _is_sliced(item.node):
                            self._note(item.node.value, home)
        elif isinstance(node, ast.Attribute):
            self._used.add((scope.owner(), written(node)))
