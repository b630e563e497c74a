"""Does a condition say that CUDA is there? Then the code behind it is no error elsewhere.

`implied` answers for one outcome of a condition. The answer is the place that asks CUDA, so that
the idiom `"cuda" if torch.cuda.is_available() else "cpu"` is reported once, where it asks.
"""

import ast
import re

from utils.audit.rules import NAMES
from utils.audit.scopes import Names, Scope, walk, written

COUNT = "torch.cuda.device_count"
CUDA = re.compile(r"cuda(:\d+)?$")
# is_flash_attn_available(), find_spec("xformers"), HAS_TRITON: the code can do without the package.
OPTIONAL = re.compile(r"(^|_)(is_\w+_available|find_spec|has|have|available|installed)($|_)", re.I)


class Elsewhere:
    """The condition asks a device or a tensor what it is, not CUDA whether it is there."""


ELSEWHERE = Elsewhere()
Origin = ast.AST | Elsewhere | None


class Guards:
    """What the conditions of one file say about CUDA."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self._flags: dict[str, list[tuple[ast.AST, Scope]]] | None = None
        self._known: dict[tuple[Scope | None, str], Origin] = {}

    def implied(self, test: ast.AST, outcome: bool, scope: Scope) -> Origin:
        """Where CUDA was asked, if this outcome of the test means that it is there; else None."""
        match test:
            case ast.UnaryOp(op=ast.Not()):
                return self.implied(test.operand, not outcome, scope)
            case ast.BoolOp():
                answers = [self.implied(value, outcome, scope) for value in test.values]
                if isinstance(test.op, ast.And) == outcome:
                    return next((answer for answer in answers if answer is not None), None)
                return answers[0] if all(answers) else None
            case ast.NamedExpr():
                return self.implied(test.value, outcome, scope)
            case ast.Compare():
                return self._compare(test, outcome, scope)
            case ast.Call():
                return self._called(test, scope) if outcome else None
            case ast.Attribute() if outcome and test.attr == "is_cuda":
                return ELSEWHERE
            case ast.Name() | ast.Attribute() if outcome:
                if self.names.dotted(test, scope) == "torch.version.cuda":
                    return ELSEWHERE
                return self._flag(test, scope)
        return None

    def _called(self, test: ast.Call, scope: Scope) -> Origin:
        name = self.names.dotted(test.func, scope)
        if name in NAMES["asks_for_cuda"] or name == COUNT:
            return test
        if name == "bool" and len(test.args) == 1:
            return self.implied(test.args[0], True, scope)
        if isinstance(test.func, ast.Attribute) and test.func.attr == "startswith":
            if test.args and is_cuda(test.args[0]):
                return ELSEWHERE
        return None

    def _compare(self, test: ast.Compare, outcome: bool, scope: Scope) -> Origin:
        if len(test.ops) != 1:
            return None
        op, left, right = test.ops[0], test.left, test.comparators[0]
        if isinstance(left, ast.Call) and self.names.dotted(left.func, scope) == COUNT:
            if outcome and isinstance(op, ast.Gt | ast.GtE) and isinstance(right, ast.Constant):
                return left if right.value or isinstance(op, ast.Gt) else None
            zero = isinstance(right, ast.Constant) and right.value == 0
            if zero and isinstance(op, ast.Eq if not outcome else ast.NotEq):
                return left
            return None
        if self.names.dotted(left, scope) == "torch.version.cuda" and _none(right):
            return ELSEWHERE if isinstance(op, ast.IsNot) == outcome else None
        if isinstance(right, ast.Constant) and isinstance(right.value, bool):
            if isinstance(op, ast.Eq | ast.Is):
                return self.implied(left, outcome == right.value, scope)
        if self._device(left, scope) or self._device(right, scope):
            equal = isinstance(op, ast.Eq | ast.Is) or (isinstance(op, ast.In) and is_cuda(left))
            unequal = isinstance(op, ast.NotEq | ast.NotIn)
            if (equal and outcome) or (unequal and not outcome):
                return ELSEWHERE
        return None

    def _device(self, node: ast.AST, scope: Scope) -> bool:
        """ "cuda", or torch.device("cuda")."""
        if isinstance(node, ast.Call) and len(node.args) == 1:
            return is_cuda(node.args[0]) and self.names.dotted(node.func, scope) == "torch.device"
        return is_cuda(node)

    def _flag(self, test: ast.Name | ast.Attribute, scope: Scope) -> Origin:
        """A variable or attribute that keeps the answer, such as use_cuda or args.cuda."""
        text = written(test)
        key = (scope.find(test.id) if isinstance(test, ast.Name) else None, text)
        if text and key not in self._known:
            self._known[key] = None  # cuts a = a and b
            self._known[key] = self._kept(test, text, scope)
        return self._known.get(key)

    def _kept(self, test: ast.Name | ast.Attribute, text: str, scope: Scope) -> Origin:
        values: list[tuple[ast.AST, Scope]] = []
        if isinstance(test, ast.Name):
            home = scope.find(test.id)
            kept = home.names[test.id] if home else []
            given = [item for item in kept if item.kind == "parameter"]
            kept = [item for item in kept if item.kind != "parameter"] or kept
            if home and kept and all(item.kind == "value" for item in kept):
                if not given or all(isinstance(item.node, ast.BoolOp) for item in kept):
                    values = [(item.node, home) for item in kept if item.node is not None]
            elif any(item.kind != "parameter" for item in kept):
                return None
        else:
            values = list(self.names.attributes.get(text, ()))
        # A parameter called use_cuda is what the same file calls use_cuda elsewhere.
        return self._all(values or self._name(text.split(".")[-1]))

    def _all(self, values: list[tuple[ast.AST, Scope]]) -> Origin:
        result: Origin = None
        for value, scope in values:
            origin = self.implied(value, True, scope)
            if origin is None and not (isinstance(value, ast.Constant) and not value.value):
                return None
            result = result or origin
        return result

    def _name(self, last: str) -> list[tuple[ast.AST, Scope]]:
        if self._flags is None:
            self._flags = {}
            for scope in self.names.scopes.values():
                for name, kept in scope.names.items():
                    for item in kept:
                        if item.kind == "value" and item.node is not None:
                            self._flags.setdefault(name, []).append((item.node, scope))
            for text, values in self.names.attributes.items():
                self._flags.setdefault(text.split(".")[-1], []).extend(values)
        return self._flags.get(last, [])

    def optional(self, test: ast.AST) -> bool:
        """The condition asks whether a package is there."""
        for node in walk(test):
            name = getattr(node, "id", None) or getattr(node, "attr", "")
            if name and OPTIONAL.search(name) and name != "is_available":
                return True
        return False


def is_cuda(node: ast.AST) -> bool:
    """The string "cuda", or "cuda:" with a number."""
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and CUDA.match(node.value) is not None
    )


def _none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def leaves(body: list[ast.stmt]) -> bool:
    """The block ends by leaving it: what follows runs only when the block did not."""
    return bool(body) and (
        isinstance(body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)
        or _last_call(body) in NAMES["ends"] | NAMES["skips"]
    )


def stops(body: list[ast.stmt]) -> bool:
    """The block ends the program with an error; skipping a test is none."""
    if body and isinstance(body[-1], ast.Raise):
        raised = body[-1].exc
        made = raised.func if isinstance(raised, ast.Call) else raised
        return made is None or not written(made).endswith("SkipTest")
    return _last_call(body) in NAMES["ends"]


def _last_call(body: list[ast.stmt]) -> str:
    last = body[-1] if body else None
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        return written(last.value.func)
    return ""
