"""What a source asks about its device, such as `torch.cuda.is_available()` and `device == "cuda"`:
once a device changes, the answers do, and a rewrite of one without the other takes another way.

`fix` tries which of them can change.
"""

import ast
import re
from collections.abc import Collection, Iterator

import libcst as cst
import libcst.matchers as m
from libcst.helpers import get_full_name_for_node
from libcst.metadata import MetadataWrapper, PositionProvider

from utils.audit.cuda_devices import role
from utils.audit.guards import is_cuda
from utils.audit.rewriting import torch_name
from utils.audit.rules import NAMES

WORDS = {
    "torchneuron": {"cuda": "neuron", "nccl": "neuron", "xla": "neuron"},
    "neuron-xla": {"cuda": "xla"},
    "xla": {"cuda": "xla"},
}
"""By target: names of devices and backends, and what they become."""
ASKED = ("is_available", "device_count")  # of torch.cuda, and the same in torch.accelerator
DEVICES = ("device", "get_device", "xla_device")
OWNERS = {"self", *NAMES["settings"]}
"""`self.device.type` is that of a device that the source chooses; of `x` it may be a tensor's."""

Place = tuple[int, int]
"""Line and column."""


def change(
    text: str, target: str, links: dict[str, set[str]], chosen: Collection[Place] | None = None
) -> tuple[str, dict[Place, tuple[str, str]]]:
    """The source with other questions, and at each place the rule and what was done.

    links: for each word the names of variables and options that no longer hold it: only what is
    asked of these changes. chosen: places of the questions to change; None for all.
    """
    changer = _Changer(target, links, chosen, torch_name(text) or "torch")
    tree = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True).visit(changer)
    return (tree.code if changer.changed else text), changer.changed


class _Changer(cst.CSTTransformer):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(
        self, target: str, links: dict[str, set[str]], chosen: Collection[Place] | None, torch: str
    ) -> None:
        super().__init__()
        self.cuda = f"{torch}.cuda."
        self.asked = {self.cuda + name for name in ASKED}
        self.is_native, self.words = target == "torchneuron", WORDS[target]
        self.links, self.chosen = links, chosen
        self.changed: dict[Place, tuple[str, str]] = {}
        self.left: set[cst.CSTNode] = set()
        self.tables: set[str] = set()
        self.own_tables: set[cst.CSTNode] = set()
        self.others: dict[cst.CSTNode, cst.BaseExpression] = {}

    def _is_changed(self, node: cst.CSTNode, rule: str, what: str) -> bool:
        start = self.get_metadata(PositionProvider, node).start
        place = start.line, start.column
        if self.chosen is not None and place not in self.chosen:
            return False
        self.changed[place] = rule, what
        return True

    def visit_Module(self, node: cst.Module) -> None:
        """Names of lists and tables by which linked devices are asked."""
        for one in m.findall(node, m.Comparison() | m.Subscript() | m.Call()):
            match one:
                case cst.Comparison(left=about, comparisons=[cst.ComparisonTarget(comparator=of)]):
                    pass
                case cst.Subscript(value=of, slice=[cst.SubscriptElement(cst.Index(about))]):
                    pass
                case cst.Call(func=cst.Attribute(of, cst.Name("get")), args=[cst.Arg(about), *_]):
                    pass
                case cst.Call(args=args):
                    given = [a.value for a in args if a.keyword and a.keyword.value == "choices"]
                    of, about = (*given, one)[0], one
                case _:
                    continue
            if self._is_linked(about):
                if isinstance(of, cst.Name):
                    self.tables.add(of.value)
                elif isinstance(of, cst.Dict):
                    self.own_tables.add(of)

    def visit_Assign(self, node: cst.Assign) -> None:
        target = node.targets[0].target
        if isinstance(target, cst.Name) and target.value in self.tables:
            self._rename(_elements(node.value), None)

    def visit_Dict(self, node: cst.Dict) -> None:
        if node in self.own_tables:
            self._rename(_elements(node), None)

    def _is_linked(self, node: cst.BaseExpression) -> bool:
        return any(set(_names(node)) & names for names in self.links.values())

    def visit_BooleanOperation(self, node: cst.BooleanOperation) -> None:
        """Where another part of a condition goes on asking CUDA, the whole condition stays."""
        others = [get_full_name_for_node(one) or "" for one in m.findall(node, m.Attribute())]
        if any(name.startswith(self.cuda) and name not in self.asked for name in others) or any(
            self._stays(one) for one in m.findall(node, m.Comparison())
        ):
            self.left |= set(m.findall(node, m.Call()))

    def _stays(self, node: cst.CSTNode) -> bool:
        texts, sides = _sides(cst.ensure_type(node, cst.Comparison))
        names = {name for side in sides for name in _names(side)}
        return any(m.matches(one, _CUDA) for one in texts) and not names & self.links.get(
            "cuda", set()
        )

    def visit_Call(self, node: cst.Call) -> None:
        name = get_full_name_for_node(node.func) or ""
        if self.is_native and name in self.asked and not node.args and node not in self.left:
            other = name.replace(".cuda.", ".accelerator.")
            if self._is_changed(node, "cuda-query", f"{name} becomes {other}"):
                self.others[node.func] = cst.parse_expression(other)
        elif isinstance(node.func, cst.Attribute) and node.func.attr.value == "startswith":
            self._rename([arg.value for arg in node.args[:1]], [node.func.value])
        for arg in node.args:
            if arg.keyword is not None and arg.keyword.value == "choices":
                self._rename(_elements(arg.value), [node])

    def visit_IfExp(self, node: cst.IfExp) -> None:
        """'cuda' if 'cuda' in device else 'cpu': which kind of device another one is. What else is
        chosen by a device, such as an optimizer, may be for CUDA only.
        """
        texts = m.findall(node.body, m.SimpleString()) + m.findall(node.body, m.Attribute())
        if not all(m.matches(one, _WORD | _TORCH) or self._is_plain(one) for one in texts):
            self.left |= set(m.findall(node.test, m.Comparison() | m.Call()))
        asked = [part for part in (node.body, node.test) if m.matches(part, _CUDA | _IN)]
        if len(asked) == 2 and self.is_native and m.matches(node.orelse, _CPU):
            texts = [node.body, cst.ensure_type(node.test, cst.Comparison).left]
            if self._is_changed(node, "cuda-fallback", 'asks for "neuron" instead of "cuda"'):
                for text in texts:
                    word = cst.ensure_type(text, cst.SimpleString)
                    self.others[text] = word.with_changes(value=f"{word.quote}neuron{word.quote}")

    def _is_plain(self, node: cst.CSTNode) -> bool:
        names = set(_names(node)) if isinstance(node, cst.BaseExpression) else set()
        return any(names & linked for linked in self.links.values())

    def visit_Comparison(self, node: cst.Comparison) -> None:
        if len(node.comparisons) == 1 and node not in self.left:
            self._rename(*_sides(node))

    def visit_Match(self, node: cst.Match) -> None:
        patterns = [one for case in node.cases for one in m.findall(case.pattern, m.MatchValue())]
        values = [cst.ensure_type(one, cst.MatchValue).value for one in patterns]
        self._rename(values, [node.subject])

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self._rename(_literals(node.annotation), [node.target])

    def visit_Param(self, node: cst.Param) -> None:
        if node.annotation:
            self._rename(_literals(node.annotation), [node.name])

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        return self.others.get(original_node, updated_node)

    def leave_SimpleString(
        self, original_node: cst.SimpleString, updated_node: cst.SimpleString
    ) -> cst.BaseExpression:
        return self.others.get(original_node, updated_node)

    def _rename(
        self, texts: list[cst.BaseExpression], about: list[cst.BaseExpression] | None
    ) -> None:
        """Other words for `texts`, if one of `about` is a linked name; None: one is."""
        names = {name for node in about or () for name in _names(node)}
        for text in texts:
            if not isinstance(text, cst.SimpleString) or text.prefix:
                continue
            word, colon, index = str(text.evaluated_value).partition(":")
            linked = self.links.get(word, set())
            if word in self.words and (names & linked or (about is None and linked)):
                other, rule = self.words[word], "nccl" if word == "nccl" else f"{word}-device"
                if self._is_changed(text, rule, f'asks for "{other}" instead of "{word}"'):
                    value = f"{text.quote}{other}{colon}{index}{text.quote}"
                    self.others[text] = text.with_changes(value=value)


def _is_text(value: str) -> m.SimpleString:
    return m.SimpleString(value=m.MatchIfTrue(lambda written: written.strip("\"'") == value))


_CUDA, _CPU = _is_text("cuda"), _is_text("cpu")
_PLAIN = re.compile(r"(cuda|neuron|xla|cpu|mps|nccl|gloo|b?float(16|32))(:\d+)?$")
_WORD = m.SimpleString(
    value=m.MatchIfTrue(lambda text: _PLAIN.match(text.strip("\"'")) is not None)
)
_TORCH = m.Attribute(value=m.Name("torch") | m.Name("th"))
_IN = m.Comparison(
    left=_CUDA,
    comparisons=[m.ComparisonTarget(operator=m.In(), comparator=m.Name() | m.Attribute())],
)


def _sides(node: cst.Comparison) -> tuple[list[cst.BaseExpression], list[cst.BaseExpression]]:
    """The texts of a comparison and its sides."""
    sides = [node.left, node.comparisons[0].comparator]
    return [text for side in sides for text in _elements(side)], sides


def _elements(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The node, or what stands in a list, tuple or set, or the keys of a table."""
    if isinstance(node, cst.Dict):
        return [one.key for one in node.elements if isinstance(one, cst.DictElement)]
    if isinstance(node, cst.List | cst.Tuple | cst.Set):
        return [one.value for one in node.elements]
    return [node]


def _literals(node: cst.Annotation) -> list[cst.BaseExpression]:
    """The texts of Literal["cuda", "cpu"], and of this or None."""
    found = m.findall(node, m.Subscript(m.Name("Literal") | m.Attribute(attr=m.Name("Literal"))))
    texts = [text for one in found for text in m.findall(one, m.SimpleString())]
    return [cst.ensure_type(text, cst.SimpleString) for text in texts]


_PARTS = ("lower", "strip", "split", "partition")


def _names(node: cst.BaseExpression) -> Iterator[str]:
    """Last names of what is asked: of `str(args.device).lower()` it is device."""
    if isinstance(node, cst.Call):
        texts = [arg.value for arg in node.args if isinstance(arg.value, cst.SimpleString)]
        if any(arg.keyword and arg.keyword.value == "choices" for arg in node.args):
            yield from (_option(str(one.evaluated_value)) for one in texts)
        elif (get_full_name_for_node(node.func) or "").endswith("get_backend"):
            yield "get_backend"
        elif isinstance(node.func, cst.Attribute) and node.func.attr.value in _PARTS:
            yield from _names(node.func.value)
        elif isinstance(node.func, cst.Name) and node.func.value == "str" and node.args:
            yield from _names(node.args[0].value)
    elif isinstance(node, cst.Name):
        yield node.value
    elif isinstance(node, cst.Attribute) and node.attr.value == "type":
        owner = node.value
        if isinstance(owner, cst.Name):
            yield owner.value
        elif isinstance(owner, cst.Attribute) and get_full_name_for_node(owner.value) in OWNERS:
            yield owner.attr.value
        elif isinstance(owner, cst.Call) and len(owner.args) == 1:  # torch.device(name).type
            yield from _names(owner.args[0].value)
    elif isinstance(node, cst.Attribute):
        yield node.attr.value
    elif isinstance(node, cst.Subscript) and len(node.slice) == 1:
        index = node.slice[0].slice
        if isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString):
            yield str(index.value.evaluated_value)
        elif isinstance(node.value, cst.Call) or isinstance(index, cst.Slice):
            yield from _names(node.value)  # device.split(":")[0], device[:4]
    elif isinstance(node, cst.NamedExpr):
        yield from _names(node.target)


def _option(text: str) -> str:
    return text.lstrip("-").replace("-", "_")


def holders(text: str, word: str) -> set[str]:
    """Names of variables, parameters, options and keys that are given this device or backend.

    >>> sorted(holders('device = "cuda:0" if fast else "cpu"\\nrun(backend="nccl")', "cuda"))
    ['device']
    """
    results: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Assign() | ast.AnnAssign() | ast.NamedExpr() if node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if _gives(node.value, word):
                    results |= {name for target in targets for name in _target(target)}
            case ast.arguments():
                plain = [*node.posonlyargs, *node.args]
                given = [*zip(plain[len(plain) - len(node.defaults) :], node.defaults, strict=True)]
                given += zip(node.kwonlyargs, node.kw_defaults, strict=True)  # type: ignore[arg-type]
                results |= {arg.arg for arg, value in given if value and _gives(value, word)}
            case ast.Call():
                keys = {keyword.arg for keyword in node.keywords if _gives(keyword.value, word)}
                if "default" in keys:
                    texts = [getattr(arg, "value", None) for arg in node.args]
                    keys |= {_option(one) for one in texts if isinstance(one, str)}
                results |= {key for key in keys if key}
            case ast.Dict():
                results |= {
                    str(getattr(key, "value", ""))
                    for key, value in zip(node.keys, node.values, strict=True)
                    if _gives(value, word)
                }
    return {name for name in results if role(name) in ("device", "backend")}


def _target(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Name(name) | ast.Attribute(attr=name):
            yield name
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            yield name
        case ast.Tuple() | ast.List():
            for one in node.elts:
                yield from _target(one)


def _gives(node: ast.AST, word: str) -> bool:
    """Whether an expression can be this device or backend."""
    match node:
        case ast.Constant(value=str(text)):
            return text.partition(":")[0] == word
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            return text.partition(":")[0] == word
        case ast.IfExp():
            return _gives(node.body, word) or _gives(node.orelse, word)
        case ast.BoolOp():
            return any(_gives(one, word) for one in node.values)
        case ast.Tuple() | ast.List():
            return any(_gives(one, word) for one in node.elts)
        case ast.Call(func=ast.Name(name) | ast.Attribute(attr=name)):
            if word == "xla" and name in DEVICES:
                return True
            if name in ("device", *NAMES["default_functions"], *NAMES["field_functions"]):
                given = [*node.args, *(keyword.value for keyword in node.keywords)]
                return any(_gives(one, word) for one in given)
    return False


def is_half(before: str, places: Collection[Place], after: str) -> bool:
    """Whether "cuda" is still given in a function whose questions at these places have changed."""
    asked = {
        scope
        for scope, node, _ in _scoped(ast.parse(before), None, "")
        if isinstance(node, ast.Call) and (node.lineno, node.col_offset) in places
    }
    return any(
        scope in asked and _is_given(node, parent)
        for scope, node, parent in _scoped(ast.parse(after), None, "")
    )


def _scoped(
    node: ast.AST, parent: ast.AST | None, scope: str
) -> Iterator[tuple[str, ast.AST, ast.AST | None]]:
    """All nodes, each with the functions and classes around it, and its parent."""
    yield scope, node, parent
    name = getattr(node, "name", "") if isinstance(node, ast.FunctionDef | ast.ClassDef) else ""
    for child in ast.iter_child_nodes(node):
        yield from _scoped(child, node, f"{scope}.{name}" if name else scope)


_ASKING = (ast.Compare, ast.Dict, ast.Expr, ast.MatchValue, ast.Subscript)


def _is_given(node: ast.AST, parent: ast.AST | None) -> bool:
    if not is_cuda(node) or isinstance(parent, _ASKING):
        return False
    called = getattr(parent, "func", None)
    return getattr(called, "attr", getattr(called, "id", "")) not in NAMES["text_functions"]
