"""Which files of a tree are read, and how: by name, with the folders of tools left out, and from
the text of each to findings: Python, notebooks, and files of requirements.
"""

import ast
import gc
import io
import multiprocessing
import os
import re
import sys
import tokenize
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from textwrap import dedent

from utils.audit import cells as notebook
from utils.audit import requirements, scripts
from utils.audit.audit_report import Broken, Finding, Report
from utils.audit.rules import LEGACY_ROOTS, NAMES, REQUIREMENTS, RULES, TARGETS
from utils.audit.scopes import Names
from utils.audit.tensor_kinds import Tensors
from utils.audit.tree_modules import Modules
from utils.audit.tree_reader import Reader

LARGEST = 2_000_000  # bytes; generated code and notebooks full of pictures
MANY = 200  # files that are worth starting processes for
BROKEN_LINES = 3  # so many lines of a file that are no Python are left out
KERNELS = (".cu", ".cuh")
# Deep enough for long sums of strings; CPython 3.11 and later keep Python calls off the C stack.
DEPTH = 6000
# Found at the name of the method, which may stand lines below the start of the expression.
METHODS = {"cuda-move", "pin-memory", "item-in-loop", "data-dependent-shape"}
IGNORE = re.compile(r"#\s*audit:\s*ignore(?:\[([\w\s,-]*)\])?[ \t:]*([^#\n]*)")
# A file in which none of these words stands can hold no finding; it is only parsed.
WORDS = (
    *("torch", "device", "cuda", "gpu", "nccl", "pin_mem", "lightning", "triton", "neuron", "xla"),
    *("jax", "nvidia", "install_requires", "flash", "cupy", "pynvml", "tensorrt", "dali"),
    *sorted(word.lower() for word in REQUIREMENTS),
)
# What Python no longer reads, and what it reads in its place.
OLDER = (
    (re.compile(r"\basync\s*=(?!=)"), "asynk="),
    (re.compile(r"^([ \t]*)print[ \t]+(?![(=.])(.*[^\s,])[ \t]*,?[ \t]*$", re.M), r"\1print (\2)"),
    (re.compile(r"^([ \t]*)print[ \t]*$", re.M), r"\1print()"),
    (re.compile(r"^([ \t]*except\s+[\w.]+)\s*,\s*(\w+)\s*:", re.M), r"\1 as \2:"),
    (re.compile(r"^([ \t]*raise\s+[\w.]+)\s*,\s*(.+)$", re.M), r"\1(\2)"),
)
LONGEST = 1000  # characters of a source line that a finding quotes; generated lines are longer
Result = tuple[list[Finding], list[Broken]]
Progress = Callable[[int, int], None]


def audit(
    path: str | os.PathLike[str],
    processes: int = 1,
    target: str = TARGETS[0],
    progress: Progress | None = None,
    is_excluded: Callable[[Path], bool] | None = None,
) -> Report:
    """Find what will not port to a target in a file or a folder; nothing is run.

    With several `processes` a large tree is read by that many; they import the main module of the
    caller anew, so the caller needs its `if __name__ == "__main__"`. `progress` is called with the
    number of files read so far and of all. Files that `is_excluded` are not read. Raises
    FileNotFoundError where there is nothing at `path`, ValueError for an unknown target.
    """
    _known(target)
    root = Path(path)
    if not root.exists():
        raise FileNotFoundError(f"nothing to audit at {os.fspath(path)!r}: no such file or folder")
    files = [root] if root.is_file() else list(_files(root, set()))
    if is_excluded is not None:
        files = [file for file in files if not is_excluded(file)]
    jobs = list(_jobs(files, root))
    if processes > 1 and len(jobs) >= MANY:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, context, initializer=gc.disable) as pool:
            work = pool.map(_file, *zip(*jobs, strict=True), chunksize=32)
            results = list(_with_progress(work, len(jobs), progress))
    else:
        with _without_collector():
            results = list(_with_progress((_file(*job) for job in jobs), len(jobs), progress))
    every = sorted((one for result, _ in results for one in result), key=lambda one: one.place)
    broken = [one for _, unread in results for one in unread]
    broken.sort(key=lambda one: (one.path, one.line, one.reason))
    return _report(every, broken, len(files), root.as_posix(), target)


def _known(target: str) -> None:
    if target not in TARGETS:
        raise ValueError(f"target {target!r} is none of {', '.join(TARGETS)}")


def _on(target: str, findings: list[Finding]) -> Iterator[Finding]:
    """The findings as they are for a target; some are nothing there."""
    for finding in findings:
        severity = finding.about.severity_on(target, finding.severity)
        if severity:
            same = severity == finding.severity
            yield finding if same else replace(finding, severity=severity)


def _with_progress(
    results: Iterator[Result], count: int, progress: Progress | None
) -> Iterator[Result]:
    for number, result in enumerate(results, 1):
        if progress is not None:
            progress(number, count)
        yield result


@contextmanager
def _without_collector() -> Iterator[None]:
    """Syntax trees hold no cycles; looking for some takes a sixth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _jobs(files: list[Path], root: Path) -> Iterator[tuple[Path, str, frozenset[str], Modules]]:
    """Each file with its name in the report, the modules beside it and at the root, and the tree
    that it imports from.
    """
    above = {root, root / "src"}  # where packages need no __init__.py
    modules = {one: _modules(one, one in above) for one in above | {file.parent for file in files}}
    own = modules[root] | modules[root / "src"] - LEGACY_ROOTS
    tree = Modules(str(root if root.is_dir() else root.parent), parse)
    for file in files:
        name = file.name if file == root else file.relative_to(root).as_posix()
        package = name.removeprefix("src/").split("/")[0]  # the one that the file is in
        yield file, name, modules[file.parent] | own | {package} - LEGACY_ROOTS, tree


def audit_source(text: str, name: str = "source.py", target: str = TARGETS[0]) -> Report:
    """The same for one source held in memory; `name` decides how it is read, as for files."""
    _known(target)
    result, broken = _text(text.removeprefix("\ufeff"), name, Path(name), frozenset())
    return _report(result, broken, 1, name, target)


def _report(
    findings: list[Finding], broken: list[Broken], files: int, root: str, target: str
) -> Report:
    every = list(_on(target, findings))
    counted = tuple(item for item in every if item.ignored is None)
    ignored = tuple(item for item in every if item.ignored is not None)
    return Report(counted, tuple(broken), files, root, target, ignored)


def wanted(file: Path) -> bool:
    """Whether a file is read, by its name."""
    name = file.name
    return (
        name.endswith((".py", ".ipynb", *KERNELS))
        or name in ("pyproject.toml", "Pipfile", "setup.cfg")
        or requirements.is_requirements(name, file.parent.name)
        or requirements.CONDA.match(name) is not None
        or scripts.is_script(name)
    )


def _is_built(folder: Path) -> bool:
    """What setuptools or CMake wrote to a folder called build; others keep recipes there."""
    written = ("lib", "bdist.", "temp.", "CMakeCache")
    return folder.name == "build" and any(name.startswith(written) for name in os.listdir(folder))


def _files(folder: Path, seen: set[tuple[int, int]]) -> Iterator[Path]:
    """Files below a folder in order; a folder reached again through a link is read once."""
    try:
        about = folder.stat()
        entries = sorted(os.scandir(folder), key=lambda item: item.name)
    except OSError:
        return
    if (about.st_dev, about.st_ino) in seen:
        return
    seen.add((about.st_dev, about.st_ino))
    for entry in entries:
        path = folder / entry.name
        try:
            is_folder, is_file = entry.is_dir(), entry.is_file()
        except OSError:  # a link to itself
            is_folder = is_file = False
        if (
            is_folder
            and entry.name not in NAMES["skipped_folders"]
            and not entry.name.endswith(".egg-info")
            and not _is_built(path)
        ):
            yield from _files(path, seen)
        elif (is_file or entry.is_symlink()) and wanted(path):
            yield path


def _modules(folder: Path, is_root: bool) -> frozenset[str]:
    """Names that `import` finds in the folder itself: those packages are the project's own."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return frozenset()
    return frozenset(
        entry.name.removesuffix(".py")
        for entry in entries
        if entry.name.endswith(".py")
        or os.path.exists(os.path.join(entry.path, "__init__.py"))
        or (
            is_root
            and entry.name not in LEGACY_ROOTS
            and entry.is_dir()
            and _holds_python(entry.path)
        )
    )


def _holds_python(folder: str) -> bool:
    """A Python file stands in the folder, or in one right below it."""
    try:
        entries = list(os.scandir(folder))
        if any(entry.name.endswith(".py") for entry in entries):
            return True
        folders = [entry.path for entry in entries if entry.is_dir()]
        return any(name.endswith(".py") for one in folders for name in os.listdir(one))
    except OSError:
        return False


def _file(file: Path, name: str, local: frozenset[str], tree: Modules) -> Result:
    try:
        size = file.stat().st_size
        if size > LARGEST:
            return [], [Broken(name, 0, f"not read: {size} bytes, the limit is {LARGEST}")]
        data = file.read_bytes()
    except OSError as problem:
        return [], [Broken(name, 0, f"not readable: {problem.strerror}")]
    try:
        text = decode(data) if file.suffix == ".py" else data.decode("utf-8-sig")
    except (SyntaxError, UnicodeDecodeError, LookupError) as problem:
        return [], [Broken(name, 0, f"not text in its encoding: {problem}")]
    return _text(text, name, file, local, tree)


def decode(data: bytes) -> str:
    """Python source in the encoding that it declares, with newlines as Python counts them."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return io.TextIOWrapper(io.BytesIO(data), encoding).read()


def _text(
    text: str, name: str, file: Path, local: frozenset[str], tree: Modules | None = None
) -> Result:
    if file.suffix == ".py":
        return python(text, name, local, tree, str(file))
    if file.suffix == ".ipynb":
        return cells(text, name, local)
    if file.suffix in KERNELS:
        first = text.splitlines()[0].strip() if text.strip() else ""
        severity = RULES["cuda-extension"].severity
        return [Finding("cuda-extension", severity, name, 1, 1, first, None, "CUDA source")], []
    if file.name in ("pyproject.toml", "Pipfile"):
        return needed(text, name, requirements.in_toml)
    if file.name == "setup.cfg":
        return needed(text, name, requirements.in_setup_cfg)
    if requirements.CONDA.match(file.name):
        return needed(text, name, requirements.in_conda)
    if scripts.is_script(file.name):
        return _script(text, name, file, local)
    if file.suffix in (".txt", ".in"):
        return needed(text, name)
    return python(text, name, local)


def _script(text: str, name: str, file: Path, local: frozenset[str]) -> Result:
    """The findings of a script, and of the Python within it."""
    findings, broken = needed(text, name, lambda given: scripts.in_script(given, file.name))
    known = {(item.line, item.rule) for item in findings}
    for before, part in scripts.embedded(text):
        for item in python(dedent(part), name, local)[0]:
            line = item.line + before
            if (line, item.rule) not in known:
                findings.append(replace(item, line=line))
    return sorted(findings, key=lambda item: item.place), broken


def _newer(text: str) -> str:
    """Source for Python 2 or before 3.7 as today's, line by line.

    >>> _newer("print 'a', b\\nx.cuda(async=True)")
    "print ('a', b)\\nx.cuda(asynk=True)"
    """
    for pattern, put in OLDER:
        text = pattern.sub(put, text)
    return text


def parse(text: str) -> ast.Module:
    """The syntax tree. Raises ValueError with the line as second argument for what is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return ast.parse(text)
            except SyntaxError as problem:
                try:
                    return ast.parse(_newer(text))
                except SyntaxError:
                    raise problem from None
    except SyntaxError as problem:
        raise ValueError(
            f"no Python {sys.version_info[0]}: {problem.msg}", problem.lineno or 0
        ) from None
    except (RecursionError, MemoryError):
        raise ValueError("nested too deeply", 0) from None
    except ValueError as problem:  # null bytes
        raise ValueError(str(problem), 0) from None


def read(
    tree: ast.Module, local: frozenset[str], modules: Modules | None = None, path: str = ""
) -> Reader:
    """The reader of a syntax tree, after its pass. Raises ValueError for what is nested too deeply.

    With `modules`, names that the file at `path` imports are followed.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, DEPTH))
    try:
        tensors = modules.held(path) if modules is not None else None
        if tensors is None:
            tensors = Tensors(Names(tree), modules, os.path.dirname(path) if modules else None)
            if modules is not None:
                modules.keep(path, tensors)
        return Reader(tree, tensors, local, path)
    except RecursionError:
        raise ValueError("nested too deeply", 0) from None
    finally:
        sys.setrecursionlimit(before)


def python(
    text: str,
    path: str,
    local: frozenset[str] = frozenset(),
    modules: Modules | None = None,
    place: str = "",
) -> Result:
    """The findings of one Python source; `place` is where the file is, for its relative imports.

    Lines that are no Python are told, and the rest is read without them, if they are few.
    """
    lines = re.split(r"\r\n?|\n", text)  # as Python counts them
    broken: list[Broken] = []
    try:
        held = modules.held(place) if modules is not None else None
        tree = held.names.tree if held is not None else _parse_most(lines, text, path, broken)
        lowered = text.lower()
        if not any(word in lowered for word in WORDS):  # a regular expression takes twenty times it
            return [], broken
        reader = read(tree, local, modules, place)
    except ValueError as problem:
        return [], [Broken(path, problem.args[1], problem.args[0])]
    result = _findings(reader, path, lambda line: (None, line), lambda line: lines[line - 1])
    return result, broken


def _parse_most(lines: list[str], text: str, path: str, broken: list[Broken]) -> ast.Module:
    """The tree of a text, with `pass` for lines that are no Python. Raises as `parse`."""
    try:
        return parse(text)
    except ValueError as problem:
        first = problem
    kept, reason = list(lines), first
    while len(broken) < BROKEN_LINES and 0 < reason.args[1] <= len(kept):
        line = kept[reason.args[1] - 1]
        kept[reason.args[1] - 1] = line[: len(line) - len(line.lstrip())] + "pass"
        broken.append(Broken(path, reason.args[1], f"{reason.args[0]}; read without this line"))
        try:
            return parse("\n".join(kept))
        except ValueError as problem:
            reason = problem
    broken.clear()
    raise first


def _findings(
    reader: Reader,
    path: str,
    place: Callable[[int], tuple[int | None, int]],
    line_at: Callable[[int], str],
) -> list[Finding]:
    results = set()
    for rule, node, severity, note in reader.hits:
        assert isinstance(node, ast.expr | ast.stmt) and node.end_lineno
        number, offset = node.lineno, node.col_offset
        if rule in METHODS and isinstance(node, ast.Attribute):
            number = node.end_lineno
            offset = (node.end_col_offset or 0) - len(node.attr.encode())
        text = line_at(number)
        ignored = _ignore(rule, text)
        if ignored is None and node.end_lineno != number:
            ignored = _ignore(rule, line_at(node.end_lineno))
        before = offset if text.isascii() else len(text.encode()[:offset].decode(errors="ignore"))
        cell, line = place(number)
        written = text.strip()[:LONGEST]
        results.add(Finding(rule, severity, path, line, before + 1, written, cell, note, ignored))
    return sorted(results, key=lambda item: item.place)


def _ignore(rule: str, text: str) -> str | None:
    """The reason that a comment on a line gives for ignoring a rule, "" for none; None where the
    rule is not ignored.
    """
    match = _comment(text)
    if match is None:
        return None
    rules, reason = match.groups()
    is_meant = rules is None or rule in re.split(r"[\s,]+", rules)
    return reason.strip() if is_meant else None


@lru_cache(maxsize=16)  # a generated line may be long and hold thousands of findings
def _comment(text: str) -> re.Match[str] | None:
    return IGNORE.search(text)


def cells(text: str, path: str, local: frozenset[str] = frozenset()) -> Result:
    """The findings of a notebook: its cells are one module, a broken cell is left out."""
    try:
        every = notebook.cells(text)
    except ValueError as problem:
        line = getattr(problem, "lineno", 0)
        return [], [Broken(path, line, f"no notebook: {problem}" if line else str(problem))]
    body: list[ast.stmt] = []
    broken, starts, start, result = [], [], 0, []
    for cell in every:
        starts.append(start)
        try:
            tree = parse(cell.python)
            ast.increment_lineno(tree, start)
            body += tree.body
        except ValueError as problem:
            reason, line = problem.args
            broken.append(Broken(path, line, f"code cell {cell.number}: {reason}"))
        start += len(cell.lines)
        for line, rule in cell.rules:
            written = cell.lines[line - 1].strip()
            ignored, severity = _ignore(rule, written), RULES[rule].severity
            result.append(Finding(rule, severity, path, line, 1, written, cell.number, "", ignored))
    try:
        reader = read(ast.Module(body=body, type_ignores=[]), local)
    except ValueError as problem:
        return result, [*broken, Broken(path, 0, problem.args[0])]

    def place(line: int) -> tuple[int, int]:
        index = bisect_right(starts, line - 1) - 1
        return every[index].number, line - starts[index]

    lines = [line for cell in every for line in cell.lines]
    result += _findings(reader, path, place, lambda line: lines[line - 1])
    return sorted(result, key=lambda item: item.place), broken


def needed(
    text: str, path: str, reads: Callable[[str], requirements.Found] = requirements.in_text
) -> Result:
    """The findings of a file of requirements."""
    lines = text.splitlines() or [""]
    results = set()
    try:
        for line, rule, extra in reads(text):
            written = lines[line - 1].strip()
            severity, note = ("note", "an optional extra") if extra else ("", "")
            severity = severity or RULES[rule].severity
            ignored = _ignore(rule, written)
            results.add(Finding(rule, severity, path, line, 1, written, None, note, ignored))
    except (ValueError, RecursionError) as problem:
        return [], [Broken(path, 0, str(problem).splitlines()[0] if str(problem) else "unreadable")]
    return sorted(results, key=lambda item: item.place), []
