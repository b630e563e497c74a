"""What the checks see of a file at every node: its names, scope, guards and loops.

They ask it and report through it; `tree_reader` moves it through the syntax tree.
"""

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple

from utils.audit.guards import ELSEWHERE, Guards, Origin, leaves, stops
from utils.audit.rules import IMPORTS, NAMES, RULES
from utils.audit.scopes import Scope
from utils.audit.tensor_kinds import Tensors

PACKAGES = frozenset(IMPORTS.values())
ONLY_CUDA = "only where CUDA is there"
ANSWERED = {"cuda-fallback", "cuda-required", "cuda-query"}


class Hit(NamedTuple):
    """A finding, before its place in the file is looked up."""

    rule: str
    node: ast.AST
    severity: str
    note: str


class State:
    """`hits` are what the checks found, in the order of reading; `visits` counts nodes.

    `tensors` knows the names of the file; `local` are modules of the project itself.
    """

    _on: ClassVar[dict[type, Callable]] = {}

    def __init__(self, tensors: Tensors, local: frozenset[str] = frozenset()) -> None:
        self.names = tensors.names
        self.guards = Guards(self.names)
        self.tensors = tensors
        self.local = local
        self.hits: list[Hit] = []
        self.visits = 0
        self.scope: Scope = self.names.module
        self.guard: Origin = None
        self.optional = False
        self.loops = 0
        self.epochs = False  # in a loop over epochs, but in no loop within it
        self.periodic = 0
        self.once = (
            False  # what is read here is read on purpose: it is returned, or the end is near
        )
        self.steps = ""  # "loop" over batches or tokens, "function" that runs at each of them
        self.counters: frozenset[str] = frozenset()  # numbers that change from step to step
        self.until: frozenset[str] = frozenset()  # tensors that a while loop makes long enough
        self.alone = False  # the guard asks for a CUDA device, and nothing is done for others
        self.unit_tests: frozenset[str] = frozenset()  # functions that test, and their helpers
        self.traced = False  # programs that are traced for Neuron, and tensors of the CPU only
        self.moved: bool | None = None  # the file moves tensors between the CPU and a device
        self.hosted = False  # in a class that the loader runs
        self.host_file = tensors.places.only_host()
        self.on_hosts: dict[tuple[bool, str], bool] = {}  # by hosted and the function's name
        self.joined = False  # the guard stands in the same `and`
        self.functions: list[str] = []
        # Device names in variables of any name, and variables that are used as devices.
        self.kept: list[tuple[Scope, str, ast.AST, Origin]] = []
        self.used: set[tuple[Scope, str]] = set()
        self.reported: set[ast.AST | None] = set()  # device names that another finding is about
        self.torch = bool(self.names.imports & NAMES["frameworks"]) or (
            "*" in self.names.imported and self.names.is_read("torch")
        )
        self.foreign = not self.torch and bool(self.names.imports & NAMES["other_frameworks"])
        self.flagged: dict[str, str] = {}  # names from packages that are findings, by their rules
        self.made: dict[str, Scope | None] = {}  # of these, objects that it made, and where
        self.wrappers: set[str] = set()  # and functions of this file that build extensions
        self.scales = True  # no gradient scaler is made here: one that is used was passed on
        self.neuron: list[ast.AST] = []  # import torch_neuronx
        self.asked: list[ast.AST] = []  # torch.cuda.is_available(), wherever it stands
        self.compared: list[ast.AST] = []  # x.device.type == "cuda", x.is_cuda
        self._idioms: set[ast.AST] = set()
        self._decided: set[ast.AST] = set()
        self._dotted: dict[ast.AST, str] = {}
        self._plain: dict[ast.AST, str] = {}

    def __init_subclass__(cls) -> None:
        """A method called _on_If is called for each ast.If."""
        kinds = [var for var in vars(ast).values() if isinstance(var, type)]
        named = {kind: getattr(cls, f"_on_{kind.__name__}", None) for kind in kinds}
        cls._on = {kind: method for kind, method in named.items() if method is not None}

    def report(self, rule: str, node: ast.AST, note: str = "", severity: str = "") -> None:
        """A finding at this node, unless CUDA is known to be there when it runs."""
        if self.guard is not None and rule not in NAMES["rules_about_values"]:
            if rule in PACKAGES:
                self.hits.append(Hit(rule, node, "note", ONLY_CUDA))
                return
            if rule in NAMES["rules_about_choices"]:
                self.idiom(self.guard)
                if rule == "cuda-tensor-type" and not self._stands_at(self.guard, node):
                    self.hits.append(Hit(rule, node, "note", ONLY_CUDA))
                elif self.alone and rule != "cuda-tensor-type":
                    note = "any other accelerator is treated as the CPU"
                    self.hits.append(Hit("cuda-fallback", node, "warning", note))
            elif rule in NAMES["rules_about_processes"] and isinstance(self.guard, ast.AST):
                if rule == "ddp-device-ids":
                    self.idiom(self.guard)  # elsewhere the processes do not work together
                self.hits.append(Hit(rule, node, "warning", ONLY_CUDA))
                return
            chooses = rule in NAMES["rules_about_choices"] and self.guard is ELSEWHERE
            apart = not chooses and not self._stands_at(self.guard, node)
            if rule in NAMES["rules_to_look_at"] and apart:
                self.hits.append(Hit(rule, node, "note", ONLY_CUDA))
            return
        self.hits.append(Hit(rule, node, severity or RULES[rule].severity, note))

    @staticmethod
    def _stands_at(origin: Origin, node: ast.AST) -> bool:
        """The line asks CUDA itself: `"cuda" if torch.cuda.is_available() else "cpu"`."""
        return getattr(origin, "lineno", 0) == getattr(node, "lineno", 0)

    def is_step_loop(self, node: ast.For | ast.While) -> bool:
        """A loop over batches or tokens; the reader knows by what stands in it."""
        raise NotImplementedError

    def settle(self) -> None:
        """At the end of the file: where CUDA is asked and nothing was said of the answer."""
        answered = {
            getattr(hit.node, "lineno", 0)
            for hit in self.hits
            if hit.rule in ANSWERED or hit.note == ONLY_CUDA
        }
        for node in [*self.asked, *self.compared]:
            line = getattr(node, "lineno", 0)
            if self.torch and line not in answered:
                answered.add(line)
                self.hits.append(Hit("cuda-query", node, "note", "False here, and decides"))

    def idiom(self, origin: Origin) -> None:
        """The device is chosen by asking CUDA: said once, where it is asked."""
        if isinstance(origin, ast.AST) and origin not in self._idioms:
            self._idioms.add(origin)
            self.hits.append(Hit("cuda-fallback", origin, RULES["cuda-fallback"].severity, ""))

    def dotted(self, node: ast.AST, follow: bool = True) -> str:
        """The full name of an expression here; see `Names.dotted`."""
        known = self._dotted if follow else self._plain
        name = known.get(node)
        if name is None:  # a call is asked for its name by each of the checks
            name = known[node] = self.names.dotted(node, self.scope, follow)
        return name

    def kind(self, node: ast.AST) -> str:
        """Whether an expression is a tensor here; see `Tensors.kind`."""
        return self.tensors.kind(node, self.scope)

    def on_cpu(self, node: ast.AST) -> bool:
        """Whether a tensor is on the CPU here; see `Places.on_cpu`."""
        return self.tensors.places.on_cpu(node, self.scope)

    def visit(self, node: ast.AST) -> None:
        """One node, by its method or through its children."""
        self.visits += 1
        on = self._on.get(node.__class__)
        if on is not None:
            on(self, node)
        else:
            self.children(node)

    def children(self, node: ast.AST) -> None:
        """All nodes right below one."""
        for name in node._fields:
            value = getattr(node, name, None)
            if value.__class__ is list:
                for item in value:
                    if isinstance(item, ast.AST):
                        self.visit(item)
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                self.visit(value)

    def all(self, nodes: Sequence[ast.AST | None]) -> None:
        """Several nodes, of which some may be missing."""
        for node in nodes:
            if node is not None:
                self.visit(node)

    @contextmanager
    def having(self, **state: object) -> Iterator[None]:
        """Within, these attributes have these values."""
        before = {name: getattr(self, name) for name in state}
        for name, value in state.items():
            setattr(self, name, value)
        try:
            yield
        finally:
            for name, value in before.items():
                setattr(self, name, value)

    def body(self, statements: list[ast.stmt]) -> None:
        """A block; behind `if not torch.cuda.is_available(): return` CUDA is there."""
        before = self.guard
        for node in statements:
            self.visit(node)
            if isinstance(node, ast.If) and not node.orelse and leaves(node.body):
                if self.guard is None and not stops(node.body):
                    self.guard = self.guards.implied(node.test, False, self.scope)
        self.guard = before

    def branch(self, part: Any, origin: Origin, walk: Callable) -> None:
        """`walk` a block or an expression, behind CUDA's answer if there is one."""
        if self.guard is None and origin is not None:
            with self.having(guard=origin):
                walk(part)
        else:
            walk(part)

    def choice(self, node: ast.IfExp, walk: Callable) -> None:
        """Both ways of `a if test else b`, each behind what the test says."""
        self.visit(node.test)
        yes = self.guards.implied(node.test, True, self.scope)
        no = self.guards.implied(node.test, False, self.scope)
        before = len(self.hits)
        self.branch(node.body, yes, walk)
        self.branch(node.orelse, no, walk)
        if len(self.hits) > before:
            self._decided.add(node)  # said what it chooses, whoever visits it again
        elif self.torch and self.guard is None and node not in self._decided:
            self.idiom(yes or no)  # whatever it chooses, it chooses it by asking CUDA

    def boolean(self, node: ast.BoolOp, walk: Callable) -> None:
        """In `asks and uses`, what uses runs only behind what asks."""
        outcome = isinstance(node.op, ast.And)
        with self.having(guard=self.guard, joined=self.joined):
            for value in node.values:
                walk(value)
                if self.guard is None:
                    self.guard = self.guards.implied(value, outcome, self.scope)
                    self.joined = self.guard is not None
