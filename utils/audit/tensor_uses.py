"""How the names of a file are used: as only tensors are, as functions that are called, and as
functions that PyTorch/XLA calls after a step. Found in one pass, when it is first asked.
"""

import ast

from utils.audit.rules import NAMES
from utils.audit.scopes import Names, Scope, written
from utils.audit.tensor_names import is_tensor_function, takes_dim

# Nothing that is called stands below them.
ENDS = {ast.Name, ast.Constant, ast.Load, ast.Store, ast.Del, ast.alias, ast.arg}
ENDS |= {str, int, type(None), ast.Import, ast.ImportFrom, ast.Pass, ast.Global}
ENDS |= {ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod, ast.Pow, ast.And, ast.Or, ast.Not, ast.USub}


class Uses:
    """The uses of names in one file."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self._used: set[tuple[Scope | None, str]] | None = None
        self._called: dict[str, list[tuple[ast.Call, Scope]]] = {}
        self._closures: set[str] = set()

    def calls(self, name: str) -> list[tuple[ast.Call, Scope]]:
        """The calls of a function of this file, by its name alone."""
        self._scan()
        return self._called.get(name, [])

    @property
    def closures(self) -> set[str]:
        """Functions that PyTorch/XLA calls after a step, when the values are there anyway."""
        self._scan()
        return self._closures

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
            if name in NAMES["tensor_methods"] or takes_dim(node):
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
