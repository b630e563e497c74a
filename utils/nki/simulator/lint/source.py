"""The rules of the lint, and from a kernel to the source of the functions that it consists of.

The table of rules is in `utils/facts/data/nki_api.yaml`.
"""

import ast
import inspect
import sys
import textwrap
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from utils.nki.simulator import surface
from utils.nki.simulator.errors import learner_line, place
from utils.nki.simulator.lint.reader import Reader
from utils.nki.simulator.lint.scope import SHOWN, World, world_of

CERTAINTIES = ("refused", "different", "deprecated", "doubtful")


@dataclass(frozen=True)
class Rule:
    """Something that Python runs and the compiler may not compile.

    `certainty`: "refused" a page says that it does not compile; "different" compiles and means
    something else; "deprecated" compiles, but not for long; "doubtful" is Python that the language
    guide does not list, or on which the pages and published kernels disagree. `page` is an address.
    since, before: the versions of NKI that brought the rule and lifted it; gone: that refuse what
    was deprecated before.
    """

    id: str
    certainty: str
    says: str
    fix: str
    page: str
    since: str = "0.2"
    before: str = ""
    gone: str = ""

    def holds(self) -> bool:
        """Whether it is a rule of the version that kernels meet."""
        return surface.since(self.since) and not (self.before and surface.since(self.before))


RULES: Mapping[str, Rule] = {
    key: Rule(id=key, **{**entry, "page": surface.BASE + entry["page"]})
    for key, entry in surface.section("lint").items()
}


@dataclass(frozen=True, order=True)
class Finding:
    """One place of a kernel's source. `line` counts from 1, `column` from 1."""

    path: str
    line: int
    column: int
    rule: str
    text: str
    fix: str

    @property
    def about(self) -> Rule:
        """The rule that it breaks."""
        return RULES[self.rule]

    def __str__(self) -> str:
        refused = self.about.gone and surface.since(self.about.gone)
        about = {
            "refused": "does not compile",
            "different": "compiles to something else",
            "deprecated": "will not compile for long",
            "doubtful": "may not compile",
        }["refused" if refused else self.about.certainty]
        return (
            f"{place(self.path, self.line)}: {about}: {self.text}.\nFix: {self.fix}.\n"
            f"See: {self.about.page}"
        )


SPACES = ("nki", "nki.language", "nki.isa", "nki.collectives", "numpy", "math")


class MayNotCompile(UserWarning):
    """A kernel that runs here and may not compile for a device."""


def lint(kernel: Callable[..., Any]) -> list[Finding]:
    """Findings in a kernel and in the functions of its module that it calls, in source order.

    A function whose source is not to be had, such as one typed at a prompt, has no findings.
    """
    findings: set[Finding] = set()
    for index, function in enumerate(_functions(inspect.unwrap(kernel))):
        read = _parse(function)
        if read is not None:
            tree, path, first = read
            findings |= set(_findings(tree, _world(function), path, first - 1, entry=index == 0))
    return sorted(findings)


def lint_source(text: str, path: str = "<source>") -> list[Finding]:
    """Findings in every function of a file that uses NKI; nothing is imported or run.

    Functions decorated with nki.jit count as kernels. Raises SyntaxError.
    """
    tree = ast.parse(text)
    world = world_of(tree)
    findings: set[Finding] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and _uses_nki(node, world):
            entry = any("nki.jit" in _names(item, world) for item in node.decorator_list)
            findings |= set(_findings(node, world, path, 0, entry))
    return sorted(findings)


def warn(kernel: Callable[..., Any], arguments: Mapping[str, Any] | None = None) -> None:
    """Show the findings of a kernel as warnings at the lines where they were found.

    arguments: those of a call, by name; a list among them is shown at the line of the caller.
    """
    for item in (*lint(kernel), *_lists(arguments or {})):
        warnings.warn_explicit(str(item), MayNotCompile, item.path, item.line)


def _lists(arguments: Mapping[str, Any]) -> Iterator[Finding]:
    line = learner_line()
    rule = RULES["list-argument"]
    for name, value in arguments.items():
        if line and isinstance(value, list) and rule.holds():
            text = rule.says.format(what=f"{name}={value!r}"[:SHOWN])
            yield Finding(line[0].co_filename, line[1], 1, rule.id, text, rule.fix)


def _findings(
    tree: ast.FunctionDef, world: World, path: str, before: int, entry: bool
) -> list[Finding]:
    results: list[Finding] = []

    def report(rule: str, node: ast.AST, what: str) -> None:
        text = RULES[rule]
        if not text.holds():
            return
        line, column = node.lineno + before, node.col_offset + 1  # type: ignore[attr-defined]
        results.append(Finding(path, line, column, rule, text.says.format(what=what), text.fix))

    Reader(world, report, entry).read(tree)
    return results


def _parse(function: types.FunctionType) -> tuple[ast.FunctionDef, str, int] | None:
    """The syntax of a function, its file and the line of the file where that source begins."""
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    if not isinstance(tree, ast.FunctionDef):
        return None
    return tree, inspect.getsourcefile(function) or "<source>", first


def _functions(kernel: Any) -> Iterator[types.FunctionType]:
    """The kernel and, through calls, the functions of the same module that it names."""
    seen: set[int] = set()
    todo = [kernel]
    while todo:
        function = todo.pop(0)
        if not isinstance(function, types.FunctionType) or id(function) in seen:
            continue
        seen.add(id(function))
        yield function
        known = _known(function)
        for name in _names_in(function.__code__):
            called = inspect.unwrap(known[name]) if callable(known.get(name)) else None
            if getattr(called, "__module__", None) == function.__module__:
                todo.append(called)


def _names_in(code: types.CodeType) -> Iterator[str]:
    yield from (*code.co_names, *code.co_freevars)
    for co_const in code.co_consts:
        if isinstance(co_const, types.CodeType):
            yield from _names_in(co_const)


def _known(function: types.FunctionType) -> dict[str, Any]:
    """The names that a function sees outside itself."""
    known = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            known[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    return known


def _world(function: types.FunctionType) -> World:
    spaces = {name: sys.modules[name] for name in SPACES if name in sys.modules}
    modules: dict[str, str] = {}
    classes: dict[str, tuple[str, ...]] = {}
    for name, value in _known(function).items():
        if isinstance(value, types.ModuleType):
            modules[name] = value.__name__
        elif isinstance(value, type) and value.__module__ == function.__module__:
            classes[name] = tuple(base.__name__ for base in value.__mro__[1:-1])
        elif callable(value):
            for space, module in spaces.items():
                if vars(module).get(name) is value:
                    modules[name] = f"{space}.{name}"
    return World(modules, classes)


def _names(node: ast.AST, world: World) -> set[str]:
    return {world.origin(item) for item in ast.walk(node) if isinstance(item, ast.expr)}


def _uses_nki(node: ast.FunctionDef, world: World) -> bool:
    return any(name.startswith("nki.") for name in _names(node, world))
