"""Signs in a submission's cells that they look into the check, for the instructor's eyes only.

A sign is no proof and costs nothing: somebody who wants to hide can write around every list.
"""

import ast
import contextlib
import re
from collections.abc import Iterable, Iterator

from utils.course.notebooks import without_magics
from utils.labs.grading.lab import Cell, parse_python

_NAMES = frozenset(
    # What is sent to another process, and what that process begins with.
    "__reduce__ __reduce_ex__ __getstate__ __setstate__ copyreg current_process parent_process"
    " forkserver set_forkserver_preload set_executable sitecustomize usercustomize PYTHONPATH"
    " LD_PRELOAD XLA_FLAGS"
    # What leads from a function to its caller.
    " _current_frames tb_frame gi_frame settrace setprofile _getframe f_locals f_back"
    " __code__ __closure__ __self__ _forward_pre_hooks OBSERVERS"
    " _journal _kill_at get_objects get_referrers get_referents currentframe __globals__"
    " cr_frame ag_frame walk_stack _current_exceptions cell_contents getclosurevars addaudithook"
    # What reads memory, and what runs a file of the course under another name.
    " ctypes pythonapi spec_from_file_location SourceFileLoader run_path".split()
)
_CALLS = frozenset({("inspect", "stack"), ("inspect", "trace"), ("sys", "modules")})
_GUARDED = frozenset({"utils", "torch_xla", "json", "builtins", "multiprocessing", "cloudpickle"})
_EXERCISES = "utils.labs."
_MOST = 10
_COUNTERS = re.compile(r"__closure__|cell_contents|getclosurevars|getmembers")
_BY_NAME = frozenset({"getattr", "attrgetter", "__getattribute__", "eval", "exec", "compile"})
"""Of each the last positional argument names or holds what is reached."""


def reaches_counters(cells: Iterable[Cell]) -> bool:
    """Whether the submission's own cells name what leads from a function that an answer is given to
    what that function counts, or reach something by a name that is put together when they run.
    Python raises no event there.

    An attribute of an imported module may be chosen so: `getattr(torch, name)`.
    """
    modules: set[str] = set()  # what a cell imports, those below it have
    for cell in cells:
        nodes = list(ast.walk(_parse(cell.source) or ast.Module([], [])))
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                modules |= {a.asname or a.name.partition(".")[0] for a in node.names}
        if cell.kind in ("answer", "extra") and (
            _COUNTERS.search(cell.source) or any(_is_hidden(node, modules) for node in nodes)
        ):
            return True
    return False


def _is_hidden(node: ast.AST, modules: set[str]) -> bool:
    if isinstance(node, ast.Subscript):
        is_constant = isinstance(node.slice, ast.Constant)
        return getattr(node.value, "attr", "") == "__dict__" and not is_constant
    if not (isinstance(node, ast.Call) and node.args):
        return False
    is_plain = isinstance(node.func, ast.Name)
    called = getattr(node.func, "id" if is_plain else "attr", "")
    if called not in _BY_NAME or not is_plain and called in ("compile", "eval"):
        return False  # torch.compile, re.compile, model.eval
    owner = node.args[0]
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    if called == "getattr" and isinstance(owner, ast.Name) and owner.id in modules:
        return False
    name = node.args[1 if called == "getattr" and len(node.args) > 1 else -1]
    return not isinstance(name, ast.Constant)


def _parse(source: str) -> ast.AST | None:
    for text in (source, without_magics(source)):
        with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            return parse_python(text)
    return None


def signs(cells: Iterable[Cell]) -> tuple[str, ...]:
    """What in a submission's own cells looks into the check: "ex1-code line 3 (_getframe)"."""
    results: dict[str, None] = {}
    known: dict[str, str] = {}  # what a cell imports, those below it have
    given: set[str] = set()  # of the exercises, what the lab itself shows
    for cell in cells:
        seen = _in(cell.source, known, given)
        if cell.kind == "given":
            given |= {item for item in known.values() if item.startswith(_EXERCISES)}
        if cell.kind in ("answer", "extra"):
            results |= {f"{cell.id} line {line} ({what})": None for line, what in seen}
    return tuple(results)[:_MOST]


def _in(source: str, known: dict[str, str], given: set[str]) -> list[tuple[int, str]]:
    tree = _parse(source)
    if tree is None:
        # IPython runs more than Python parses, such as `x = %magic`.
        lines = enumerate(source.split("\n"), 1)
        results = {
            (n, word) for n, line in lines for word in _NAMES & set(re.findall(r"\w+", line))
        }
    else:
        known |= _modules(tree)
        results = {
            (getattr(node, "lineno", 0), what)
            for node in ast.walk(tree)
            for what in _signs(node, known, given)
        }
    return sorted(results)


def _modules(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Names that the cell gives to modules of the guarded packages, and the modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] in _GUARDED:
                    full = alias.name if alias.asname else alias.name.partition(".")[0]
                    yield alias.asname or full, full
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module.partition(".")[0] in _GUARDED:
                for alias in node.names:
                    yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _signs(node: ast.AST, modules: dict[str, str], given: set[str]) -> Iterator[str]:
    if isinstance(node, ast.Attribute):
        if node.attr in _NAMES:
            yield node.attr
        if isinstance(node.value, ast.Name) and (node.value.id, node.attr) in _CALLS:
            yield f"{node.value.id}.{node.attr}"
        if isinstance(node.ctx, ast.Store | ast.Del):
            owner = node.value
            while isinstance(owner, ast.Attribute):
                owner = owner.value
            if isinstance(owner, ast.Name) and owner.id in modules:
                yield f"sets {ast.unparse(node)}"[:80]
    elif isinstance(node, ast.Name) and node.id in _NAMES:
        yield node.id
    elif isinstance(node, ast.FunctionDef) and node.name in _NAMES:
        yield node.name
    elif isinstance(node, ast.Constant) and node.value in _NAMES:
        yield str(node.value)
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr":
        if len(node.args) > 1 and isinstance(node.args[1], ast.BinOp):
            yield "getattr with a name put together"
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("setattr", "delattr"):
        if node.args and ast.unparse(node.args[0]).partition(".")[0] in modules:
            yield f"sets attributes of {ast.unparse(node.args[0])}"[:80]
    elif isinstance(node, ast.Import | ast.ImportFrom):
        module = getattr(node, "module", None)
        for alias in node.names:
            name = f"{module}.{alias.name}" if module else alias.name
            if name.startswith(_EXERCISES) and name not in given:
                yield f"imports {name}"[:80]
            if alias.name in _NAMES or (module, alias.name) in _CALLS:
                yield alias.name
