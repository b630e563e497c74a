"""Which files of a tree are read, and how: by name, with the folders of tools left out."""

import gc
import io
import multiprocessing
import os
import tokenize
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from utils.audit import requirements, source
from utils.audit.model import Broken, Finding, Report
from utils.audit.rules import RULES

SKIPPED = {
    *(".git", ".hg", ".svn", ".venv", "venv", ".tox", ".nox", ".eggs", "node_modules", "build"),
    *("__pycache__", "site-packages", ".ipynb_checkpoints", ".mypy_cache", ".pytest_cache"),
    *(".ruff_cache", ".tools"),
}
LARGEST = 2_000_000  # bytes; generated code and notebooks full of pictures
MANY = 200  # files that are worth starting processes for
KERNELS = (".cu", ".cuh")


def audit(path: str | os.PathLike[str], processes: int = 1) -> Report:
    """Find what will not port to XLA and Neuron in a file or a folder; nothing is run.

    With several `processes` a large tree is read by that many; they import the main module of the
    caller anew, so the caller needs its `if __name__ == "__main__"`. Raises FileNotFoundError
    where there is nothing at `path`.
    """
    root = Path(path)
    if not root.exists():
        raise FileNotFoundError(f"nothing to audit at {os.fspath(path)!r}: no such file or folder")
    files = [root] if root.is_file() else list(_files(root, set()))
    jobs = list(_jobs(files, root))
    if processes > 1 and len(jobs) >= MANY:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, context, initializer=gc.disable) as pool:
            results = list(pool.map(_file, *zip(*jobs, strict=True), chunksize=32))
    else:
        with _uncollected():
            results = [_file(*job) for job in jobs]
    return Report(
        tuple(sorted((one for found, _ in results for one in found), key=lambda one: one.place)),
        tuple(
            sorted(
                (one for _, broken in results for one in broken),
                key=lambda one: (one.path, one.line, one.reason),
            )
        ),
        len(files),
        root.as_posix(),
    )


@contextmanager
def _uncollected() -> Iterator[None]:
    """Syntax trees hold no cycles; looking for some takes a sixth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _jobs(files: list[Path], root: Path) -> Iterator[tuple[Path, str, frozenset[str]]]:
    """Each file with its name in the report and the modules beside it and at the root."""
    modules = {folder: _modules(folder) for folder in {root, *(file.parent for file in files)}}
    for file in files:
        name = file.name if file == root else file.relative_to(root).as_posix()
        yield file, name, modules[file.parent] | modules[root]


def audit_source(text: str, name: str = "source.py") -> Report:
    """The same for one source held in memory; `name` decides how it is read, as for files."""
    found, broken = _text(text.removeprefix("\ufeff"), name, Path(name), frozenset())
    return Report(tuple(found), tuple(broken), 1, name)


def wanted(file: Path) -> bool:
    name = file.name
    return (
        name.endswith((".py", ".ipynb", *KERNELS))
        or name in ("pyproject.toml", "Pipfile", "setup.cfg")
        or requirements.is_requirements(name, file.parent.name)
        or requirements.CONDA.match(name) is not None
    )


def _files(folder: Path, seen: set[tuple[int, int]]) -> Iterator[Path]:
    """Files below a folder in order; a folder reached again through a link is read once."""
    try:
        about = folder.stat()
        entries = sorted(os.scandir(folder), key=lambda each: each.name)
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
        if is_folder and entry.name not in SKIPPED and not entry.name.endswith(".egg-info"):
            yield from _files(path, seen)
        elif (is_file or entry.is_symlink()) and wanted(path):
            yield path


def _modules(folder: Path) -> frozenset[str]:
    """Names that `import` finds in the folder itself: those packages are the project's own."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return frozenset()
    return frozenset(
        entry.name.removesuffix(".py")
        for entry in entries
        if entry.name.endswith(".py") or os.path.exists(os.path.join(entry.path, "__init__.py"))
    )


def _file(file: Path, name: str, local: frozenset[str]) -> source.Result:
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
    return _text(text, name, file, local)


def decode(data: bytes) -> str:
    """Python source in the encoding that it declares, with newlines as Python counts them."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    return io.TextIOWrapper(io.BytesIO(data), encoding).read()


def _text(text: str, name: str, file: Path, local: frozenset[str]) -> source.Result:
    if file.suffix == ".py":
        return source.python(text, name, local)
    if file.suffix == ".ipynb":
        return source.cells(text, name, local)
    if file.suffix in KERNELS:
        first = text.splitlines()[0].strip() if text.strip() else ""
        severity = RULES["cuda-extension"].severity
        return [Finding("cuda-extension", severity, name, 1, 1, first, None, "CUDA source")], []
    if file.name in ("pyproject.toml", "Pipfile"):
        return source.needed(text, name, requirements.in_toml)
    if file.name == "setup.cfg":
        return source.needed(text, name, requirements.in_setup_cfg)
    if file.suffix in (".yml", ".yaml"):
        return source.needed(text, name, requirements.in_conda)
    if file.suffix in (".txt", ".in"):
        return source.needed(text, name)
    return source.python(text, name, local)
