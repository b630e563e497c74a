"""The rewrites of `fix`, as one transformer of LibCST, which keeps formatting and comments."""

import ast
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise

import libcst as cst
import libcst.matchers as m
from libcst.codemod import CodemodContext
from libcst.codemod.visitors import AddImportsVisitor, RemoveImportsVisitor
from libcst.helpers import get_full_name_for_node
from libcst.metadata import MetadataWrapper, PositionProvider

from utils.audit.audit_report import Finding
from utils.audit.cuda_devices import BY_DEVICE, ONE_OF
from utils.audit.state import ONLY_CUDA

DEVICE = {"torchneuron": "neuron", "neuron-xla": "xla", "xla": "xla"}
COMPILER = {"torchneuron": "neuron", "neuron-xla": "openxla", "xla": "openxla"}
# Of torch.cuda, and the same in torch.accelerator, for TorchNeuron.
ACCELERATOR = {
    "synchronize": "synchronize",
    "set_device": "set_device_index",
    "current_stream": "current_stream",
    "current_device": "current_device_index",
    "empty_cache": "empty_cache",
    "memory_allocated": "memory_allocated",
    "max_memory_allocated": "max_memory_allocated",
    "memory_reserved": "memory_reserved",
    "max_memory_reserved": "max_memory_reserved",
    "memory_stats": "memory_stats",
    "reset_peak_memory_stats": "reset_peak_memory_stats",
}
SEVERAL = {"xla-launch", "xla-loader", "xla-sharding", "xla-process-group"}
"""Rules about several processes of PyTorch/XLA, whose steps also sum gradients."""
WHOLE = {*SEVERAL, "nxd-training", "nxd-inference", "transformers-neuronx"} - {"xla-process-group"}
"""What works with devices of PyTorch/XLA only: such a file is ported by hand."""


def rewritten(
    text: str, result: Sequence[Finding], target: str, names: set[str] | None = None
) -> tuple[str, list[tuple[str, int, str]]]:
    """The rewritten source, and rule, line and what was done for each rewrite.

    names: of a cell of a notebook, what its other cells bind; they may also use what it imports.
    Raises: ValueError for what is no Python.
    """
    try:
        module = cst.parse_module(text)
    except cst.ParserSyntaxError as problem:
        raise ValueError(str(problem)) from None
    context = CodemodContext()
    # Such files are ported as a whole, or PyTorch/XLA and TorchNeuron are mixed.
    is_whole = any(item.rule in WHOLE for item in result) or "xla://" in text
    if is_whole and target == "torchneuron":
        return text, []
    torch = torch_name(text) or ("torch" if names else "")
    rewriter = _Rewriter(result, target, torch, names is None, context)
    rewriter.streams = re.search(r"\bcuda\.[sS]tream\b|cuda_stream|CUDAGraph", text) is not None
    tree = MetadataWrapper(module, unsafe_skip_copy=True).visit(rewriter)
    if not rewriter.done:
        return text, []
    # Each reads the whole source once more, however little there is to do.
    if AddImportsVisitor.CONTEXT_KEY in context.scratch:
        tree = AddImportsVisitor(context).transform_module(tree)
    code = tree.code
    if names is None and RemoveImportsVisitor.CONTEXT_KEY in context.scratch:
        code = _with_comments(code, RemoveImportsVisitor(context).transform_module(tree).code)
    return _without_gone(code), sorted(set(rewriter.done))


def _with_comments(before: str, after: str) -> str:
    """Comments on lines of their own come back, which went with the import below them."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    result: list[str] = []
    for tag, start, end, first, last in SequenceMatcher(None, old, new, False).get_opcodes():
        lost = old[start:end] if tag == "delete" else []
        if any(line.lstrip().startswith("#") for line in lost):
            result += [line for line in lost if line.lstrip()[:1] in ("", "#")]
        result += new[first:last]
    return "".join(result)


_GONE = "trn_audit_gone"
"""Stands for a statement that goes while its comments stay."""


def _without_gone(text: str) -> str:
    """Without these lines, but for `pass` where a block needs a statement."""
    while _GONE in text:
        before, _, after = text.partition(_GONE)
        comment, _, rest = after.partition("\n")
        above = before.rpartition("\n")[0]
        indent = before[len(above) :].lstrip("\n")
        line = f"{indent}{comment.strip()}\n" if comment.strip() else ""
        shorter = (above + "\n" if above else "") + line + rest
        try:
            ast.parse(shorter.replace(_GONE, "pass"))
            text = shorter
        except SyntaxError:
            text = f"{before}pass{after}"
    return text


def torch_name(text: str) -> str:
    """What a source calls torch; "" where it does not import it.

    >>> torch_name("import torch as th"), torch_name("import torch.nn"), torch_name("import os")
    ('th', 'torch', '')
    """
    for node in ast.parse(text).body:
        for alias in node.names if isinstance(node, ast.Import) else ():
            if alias.name == "torch" or (alias.name.startswith("torch.") and not alias.asname):
                return alias.asname or "torch"
    return ""


class _Rewriter(cst.CSTTransformer):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(
        self,
        result: Sequence[Finding],
        target: str,
        torch: str,
        alone: bool,
        context: CodemodContext,
    ):
        super().__init__()
        # Behind a question for CUDA that stays, CUDA stays; lists and tables are questions, too.
        result = [item for item in result if item.note not in (ONLY_CUDA, ONE_OF, BY_DEVICE)]
        self.places = {(item.rule, item.line, item.column) for item in result}
        self.lines = {(item.rule, item.line) for item in result}
        self.target, self.device, self.torch = target, DEVICE[target], torch
        self.alone = alone  # no cell of a notebook
        collective = [item.text for item in result if item.rule == "xla-collective"]
        self.prints_only = all("master_print" in one for one in collective)
        self.quote = '"'
        self.streams = False  # it makes streams of CUDA, which stay
        self.native = target == "torchneuron"
        self.several = any(item.rule in SEVERAL for item in result)
        self.context = context
        self.done: list[tuple[str, int, str]] = []
        self.full = _FullNames()
        self.second_seeds: set[cst.CSTNode] = set()
        self.decorators: set[cst.CSTNode] = set()

    # Places

    def _line(self, node: cst.CSTNode) -> int:
        return self.get_metadata(PositionProvider, node).start.line

    def _is_at(self, node: cst.CSTNode, rule: str) -> bool:
        start = self.get_metadata(PositionProvider, node).start
        return (rule, start.line, start.column + 1) in self.places

    def _did(self, node: cst.CSTNode, rule: str, what: str) -> None:
        self.done.append((rule, self._line(node), what))

    def visit_Module(self, node: cst.Module) -> None:
        node.visit(self.full)
        self._note_second_seeds(node.body)

    def visit_Decorator(self, node: cst.Decorator) -> None:
        self.decorators.add(node.decorator)

    def visit_IndentedBlock(self, node: cst.IndentedBlock) -> None:
        self._note_second_seeds(node.body)

    # Texts: devices and backends

    def leave_SimpleString(
        self, original_node: cst.SimpleString, updated_node: cst.SimpleString
    ) -> cst.BaseExpression:
        value, quote = original_node.evaluated_value, original_node.quote
        if not isinstance(value, str) or original_node.prefix:
            return updated_node
        for rule, before, after in (
            ("cuda-device", "cuda", self.device),
            ("nccl", "nccl", "neuron" if self.native else ""),
            ("xla-process-group", "xla", "neuron" if self.native else ""),
            ("xla-device", "xla", "neuron" if self.native else ""),
        ):
            kind, colon, index = value.partition(":")
            # An index of an XLA device is not that of a rank.
            is_index = rule == "cuda-device" and (self.native or index in ("", "0"))
            is_known = kind == before and (not colon or is_index and index.isdigit())
            if after and is_known and self._is_at(original_node, rule):
                self._did(original_node, rule, f'"{value}" becomes "{after}{colon}{index}"')
                self._import_xla(rule)
                if rule == "xla-process-group":
                    backend = "torch_xla.distributed.xla_backend"
                    RemoveImportsVisitor.remove_unused_import(self.context, backend)
                return updated_node.with_changes(value=f"{quote}{after}{colon}{index}{quote}")
        return updated_node

    def visit_FormattedString(self, node: cst.FormattedString) -> None:
        self.quote = "'" if '"' in node.quote else '"'  # what Python before 3.12 can read

    def leave_FormattedString(
        self, original_node: cst.FormattedString, updated_node: cst.FormattedString
    ) -> cst.BaseExpression:
        self.quote = '"'
        first, *rest = updated_node.parts or [None]
        words = ["cuda:"] if rest else ["cuda"]
        is_device = isinstance(first, cst.FormattedStringText) and first.value in words
        if not (self.native and is_device and self._is_at(original_node, "cuda-device")):
            return updated_node
        self._did(original_node, "cuda-device", 'f"cuda..." becomes f"neuron..."')
        text = cst.FormattedStringText("neuron:" if rest else "neuron")
        return updated_node.with_changes(parts=[text, *rest])

    def _import_xla(self, rule: str) -> None:
        if not self.native and rule.startswith("cuda-"):
            # The device "xla" is known after this import.
            AddImportsVisitor.add_needed_import(self.context, "torch_xla")

    def leave_IfExp(self, original_node: cst.IfExp, updated_node: cst.IfExp) -> cst.BaseExpression:
        test, body, other = original_node.test, original_node.body, original_node.orelse
        if self.native or _holds_comment(original_node):
            return updated_node
        is_query = isinstance(test, cst.Call) and self.full.of(test.func) == _AVAILABLE
        texts = [
            node.evaluated_value if isinstance(node, cst.SimpleString) else None
            for node in (body, other)
        ]
        known = texts[0] in ("cuda", "cuda:0") and texts[1] == "cpu"
        if not (is_query and known and self._is_at(test, "cuda-fallback")):
            return updated_node
        self._did(test, "cuda-fallback", 'the choice of a device becomes "xla"')
        self._import_xla("cuda-fallback")
        return cst.SimpleString('"xla"')

    # Calls

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        name = self.full.of(original_node.func)
        for change in (
            self._moved,
            self._use_accelerator,
            self._cast,
            self._of_xla,
            self._change_arguments,
        ):
            result = change(original_node, updated_node, name)
            if result is not None:
                return result
        return updated_node

    def _moved(self, node: cst.Call, new: cst.Call, name: str) -> cst.BaseExpression | None:
        """x.cuda() and x.cuda(non_blocking=...)."""
        if not (isinstance(node.func, cst.Attribute) and node.func.attr.value == "cuda"):
            return None
        plain = all(arg.keyword and arg.keyword.value == "non_blocking" for arg in node.args)
        if not plain or not self._is_at(node.func.attr, "cuda-move"):
            return None
        if "cuda" in self.full.methods and isinstance(node.func.value, cst.Name):
            return None  # it may be of the class that has a method of this name
        assert isinstance(new.func, cst.Attribute)
        self._did(node, "cuda-move", f'.cuda() becomes .to("{self.device}")')
        self._import_xla("cuda-move")
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        first = cst.Arg(cst.SimpleString(f"{self.quote}{self.device}{self.quote}"))
        args = [first.with_changes(comma=comma), *new.args] if new.args else [first]
        return new.with_changes(func=new.func.with_changes(attr=cst.Name("to")), args=args)

    def _use_accelerator(
        self, node: cst.Call, new: cst.Call, name: str
    ) -> cst.BaseExpression | None:
        """torch.cuda.synchronize() and what else torch.accelerator has."""
        short = name.removeprefix("torch.cuda.")
        if not (self.native and self.torch and short != name and short in ACCELERATOR):
            return None
        rule = next(
            (r for r in ("cuda-api", "cuda-query", "cuda-memory") if self._is_at(node, r)), ""
        )
        if not rule or any(arg.keyword or arg.star for arg in node.args):
            return None
        if self.streams and short == "current_stream":
            return None
        if any(
            m.matches(arg.value, m.SimpleString()) and "cuda" in arg.value.value for arg in new.args
        ):  # type: ignore[attr-defined]
            return None
        other = f"{self.torch}.accelerator.{ACCELERATOR[short]}"
        self._did(node, rule, f"{name} becomes {other}")
        return new.with_changes(func=cst.parse_expression(other))

    def _cast(self, node: cst.Call, new: cst.Call, name: str) -> cst.BaseExpression | None:
        """torch.autocast("cuda", ...) and torch.cuda.amp.autocast(...)."""
        if not (name.endswith(".autocast") and self._is_at(node, "cuda-autocast")):
            return None
        if _holds_comment(node) or node in self.decorators:
            return None  # a decorator runs when the module is imported, on any machine
        named = {arg.keyword.value: arg for arg in new.args if arg.keyword}
        plain = [arg for arg in new.args if not arg.keyword]
        if any(arg.star for arg in new.args) or not (self.torch or self.alone):
            return None
        if name == "torch.cuda.amp.autocast":
            if plain:
                return None  # its positions have another order
        elif len(plain) + ("device_type" in named) != 1:
            return None
        else:
            kind = named.pop("device_type", None) or plain[0]
            if not isinstance(kind.value, cst.SimpleString):
                return None
        self._need_torch()
        words = [f"{self.quote}{self.device}{self.quote}"]
        before = named.pop("dtype", None)
        given = cst.Module([]).code_for_node(before.value) if before else f"{self.torch}.float16"
        is_half = given in (f"{self.torch}.float16", f"{self.torch}.half")
        is_off = m.matches(named.get("enabled", node), m.Arg(value=m.Name("False")))
        if before or not is_off:
            words.append(f"dtype={f'{self.torch}.bfloat16' if is_half else given}")
        words += [f"{key}={cst.Module([]).code_for_node(arg.value)}" for key, arg in named.items()]
        is_told = is_half and not is_off
        what = "autocast for the device" + (", in bfloat16 instead of float16" if is_told else "")
        self._did(node, "cuda-autocast", what)
        self._import_xla("cuda-autocast")
        self._forget(node)
        return cst.parse_expression(f"{self.torch}.autocast({', '.join(words)})")

    def _need_torch(self) -> None:
        if not self.torch:
            self.torch = "torch"
            AddImportsVisitor.add_needed_import(self.context, "torch")

    def _of_xla(self, node: cst.Call, new: cst.Call, name: str) -> cst.BaseExpression | None:
        """The device, the optimizer's step and the print of PyTorch/XLA, for TorchNeuron."""
        if not self.native or _holds_comment(node):
            return None
        is_known = bool(self.torch) or self.alone
        if self._is_at(node, "xla-device") and not node.args and is_known:
            if name in ("torch_xla.core.xla_model.xla_device", "torch_xla.device"):
                self._need_torch()
                self._did(node, "xla-device", f'{name} becomes torch.device("neuron")')
                self._forget(node)
                return cst.parse_expression(f"{self.torch}.device({self.quote}neuron{self.quote})")
        if self.several:
            return None
        if self._is_at(node, "xla-optimizer-step") and name.endswith(".optimizer_step"):
            first, *others = node.args
            if first.keyword is None and all(
                arg.keyword and arg.keyword.value == "barrier" for arg in others
            ):
                self._did(node, "xla-optimizer-step", "optimizer_step becomes step()")
                self._forget(node)
                return cst.Call(cst.Attribute(new.args[0].value, cst.Name("step")))
        if self._is_at(node, "xla-collective") and name.endswith(".master_print"):
            if self.prints_only and not any(arg.keyword for arg in node.args):
                self._did(node, "xla-collective", "master_print becomes print")
                self._forget(node)
                return new.with_changes(func=cst.Name("print"))
        return None

    def _change_arguments(
        self, node: cst.Call, new: cst.Call, name: str
    ) -> cst.BaseExpression | None:
        """Arguments that go (fused=True, device_ids) or change (backend of torch.compile)."""
        args, changed = list(new.args), False
        for arg in new.args:
            key = arg.keyword.value if arg.keyword else ""
            if _holds_comment(arg):
                continue
            if key == "fused" and self._is_in(node, "fused-optimizer"):
                if isinstance(arg.value, cst.Name) and arg.value.value == "True":
                    rule, what = "fused-optimizer", "fused=True goes"
                    args.remove(arg)
                else:
                    continue
            elif key in ("device_ids", "output_device") and self._is_in(node, "ddp-device-ids"):
                rule, what = "ddp-device-ids", f"{key} goes"
                args.remove(arg)
            elif (
                key == "backend"
                and name == "torch.compile"
                and self._is_in(node, "compile-backend")
            ):
                if not isinstance(arg.value, cst.SimpleString):
                    continue
                rule, what = "compile-backend", f'backend="{COMPILER[self.target]}"'
                text = cst.SimpleString(f'"{COMPILER[self.target]}"')
                args[args.index(arg)] = arg.with_changes(value=text)
            else:
                continue
            changed = True
            self._did(node, rule, what)
        if not changed:
            return None
        if args and new.args[-1] not in args:  # the last one ends as the last one did
            args[-1] = args[-1].with_changes(comma=new.args[-1].comma)
        return new.with_changes(args=args)

    def _is_in(self, node: cst.Call, rule: str) -> bool:
        """A finding on one of the lines of a call."""
        place = self.get_metadata(PositionProvider, node)
        return any(
            (rule, line) in self.lines for line in range(place.start.line, place.end.line + 1)
        )

    # Statements that go

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.RemovalSentinel:
        call = _only_call(original_node)
        if call is None or not self.native:
            return updated_node
        if original_node in self.second_seeds:
            self._did(call, "cuda-seed", "the second seed goes")
            return cst.RemoveFromParent()
        name = self.full.of(call.func)
        marks = ("torch_xla.core.xla_model.mark_step", "torch_xla.sync")
        if name not in marks or call.args or not self._is_at(call, "xla-step"):
            return updated_node
        self._did(call, "xla-step", f"{name} goes")
        self._forget(call)
        if _holds_comment(original_node):  # the comments stay, on lines of their own
            return updated_node.with_changes(body=[cst.Expr(cst.Name(_GONE))])
        return cst.RemoveFromParent()

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        if updated_node.body:
            return updated_node
        return updated_node.with_changes(body=[cst.SimpleStatementLine([cst.Pass()])])

    def _note_second_seeds(self, body: Sequence[cst.CSTNode]) -> None:
        """torch.cuda.manual_seed(s) right after torch.manual_seed(s), which seeds all devices."""
        for first, second in pairwise(body):
            calls = _only_call(first), _only_call(second)
            if calls[0] is None or calls[1] is None or _holds_comment(second):
                continue
            names = [self.full.of(call.func) for call in calls if call]
            seeds = [[arg.value for arg in call.args] for call in calls if call]
            if (
                names[0] == "torch.manual_seed"
                and names[1] in ("torch.cuda.manual_seed", "torch.cuda.manual_seed_all")
                and len(seeds[0]) == len(seeds[1]) == 1
                and seeds[0][0].deep_equals(seeds[1][0])
                and self._is_at(calls[1], "cuda-seed")
            ):
                self.second_seeds.add(second)

    def _forget(self, call: cst.Call) -> None:
        """The import that a call was made through goes, if nothing uses it any more."""
        first = (get_full_name_for_node(call.func) or "").partition(".")[0]
        if first in self.full.imports and first != "torch":
            RemoveImportsVisitor.remove_unused_import(self.context, *self.full.imports[first])


_AVAILABLE = "torch.cuda.is_available"


def _holds_comment(node: cst.CSTNode) -> bool:
    """Whether a rewrite of the whole node would lose a comment."""
    return bool(m.findall(node, m.Comment()))


def _only_call(statement: cst.CSTNode) -> cst.Call | None:
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
        only = statement.body[0]
        if isinstance(only, cst.Expr) and isinstance(only.value, cst.Call):
            return only.value
    return None


class _FullNames(cst.CSTVisitor):
    """What names that are imported stand for, their imports, and the methods of classes."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, str] = {}
        self.imports: dict[str, tuple[str, str | None, str | None]] = {}
        self.methods: set[str] = set()
        self.assigned: set[str] = set()

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        self.assigned |= {node.target.value} if isinstance(node.target, cst.Name) else set()

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self.methods |= {
            one.name.value for one in node.body.body if m.matches(one, m.FunctionDef())
        }  # type: ignore[union-attr]

    def visit_Import(self, node: cst.Import) -> None:
        for alias in node.names:
            name, asname = alias.evaluated_name, alias.evaluated_alias
            self.names[asname or name.partition(".")[0]] = (
                name if asname else name.partition(".")[0]
            )
            self.imports[asname or name.partition(".")[0]] = (name, None, asname)

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
        module = get_full_name_for_node(node.module) if node.module else None
        if module is None or node.relative or isinstance(node.names, cst.ImportStar):
            return
        for alias in node.names:
            name, asname = alias.evaluated_name, alias.evaluated_alias
            self.names[asname or name] = f"{module}.{name}"
            self.imports[asname or name] = (module, name, asname)

    def of(self, node: cst.CSTNode) -> str:
        """The full name of what is called, "" for what has none."""
        name = get_full_name_for_node(node) or ""
        first, dot, rest = name.partition(".")
        if first in self.assigned:
            return ""  # it may be another thing here
        return self.names.get(first, first) + dot + rest
