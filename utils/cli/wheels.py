"""Wheels of the tools that engineers use without the course, made from its source without a copy.

A wheel holds the modules that its commands need, found by following imports from them, and the data
files that those modules name. Its package has a name of its own (`utils.audit` becomes
`trn_audit.audit`), put into import statements, dotted names and texts when the wheel is built. A
package of ours that others import by its own name, as kernels import `nki`, stays where it is, and
a .pth file puts its folder behind all others on the path: so no file of another package of that
name is overwritten, and that one is found first. uv's
build backend, which is part of the uv that the course pins, writes it: needs no network, and built
twice it is equal byte for byte.
"""

import ast
import importlib.metadata
import io
import json
import os
import re
import shutil
import sys
import tempfile
import tokenize
import tomllib
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from utils.cli.home import Home
from utils.cli.installers import run

ROOT = Path(__file__).resolve().parents[2]
DATA = "facts/data"
PURE = "purelib"


@dataclass(frozen=True)
class Tool:
    """A wheel: package: the name to import. commands: `name: module`, each with a `main`.
    late: modules that no import names, as those that a command starts in a process of its own;
    "utils.x.*" are all in a folder. extras: the packages that only some commands need, by the name
    of the extra. paths: folders with packages that keep their names. entry_points: modules by group
    and name, as pytest finds plugins.
    """

    about: str
    package: str
    commands: dict[str, str]
    late: tuple[str, ...] = ()
    extras: dict[str, tuple[str, ...]] = field(default_factory=dict)
    paths: tuple[str, ...] = ()
    entry_points: dict[str, dict[str, str]] = field(default_factory=dict)


TOOLS = {
    "trn-audit": Tool(
        "What stops PyTorch code on AWS Trainium: an audit of its source, and a dry run on a CPU",
        "trn_audit",
        {"trn-audit": "utils.audit.__main__", "trn-dryrun": "utils.cli.commands.dryrun"},
        ("utils.xla.dryrun.child",),
        {"dryrun": ("cloudpickle", "numpy", "torch", "torch-xla")},
    ),
    "trn-nki": Tool(
        "NKI kernels of AWS Trainium on any CPU: their values, estimates of their time, and why",
        "trn_nki",
        {"nki": "utils.nki.tool.__main__"},
        ("utils.nki.tool.*", "utils.nki.kernels.*", "utils.nki.upgrade.*", "utils.nki.puzzles.*"),
        {"pytest": ("pytest",), "dask": ("distributed",)},
        ("nki/package",),
        {"pytest11": {"nki": "utils.nki.tool.plugin"}},
    ),
}


def build(name: str, to: Path, home: Home) -> Path:
    """Build a wheel into the folder `to`, and return its file.

    Raises: ValueError for an unknown name; SetupError if uv cannot build.
    """
    if name not in TOOLS:
        raise ValueError(f"there is no wheel {name!r}; there are {', '.join(TOOLS)}")
    tool = TOOLS[name]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        _write(tool, name, folder)
        out = folder / "dist"
        words = [home.uv, "build", "--wheel", "--offline", "--no-config", "--out-dir", out, folder]
        run(words, _environment(), f"build {name}", cwd=folder)
        (wheel,) = out.glob("*.whl")
        to.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(wheel, to))


def _environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith("UV_")}


def modules(tool: Tool) -> dict[str, set[str]]:
    """The course's modules in a wheel, each with the packages of others that it imports."""
    import grimp  # late: only a build needs the graph of imports

    graph = grimp.build_graph("utils", include_external_packages=True, cache_dir=None)
    wanted, todo = set[str](), set(tool.commands.values())
    for name in tool.late:
        folder = name.removesuffix(".*")
        todo |= {name} if folder == name else {m for m in graph.modules if m.startswith(name[:-1])}
    for file in _kept_files(tool):
        todo |= set(_imports(file, graph.modules))
    while todo:
        module = todo.pop()
        wanted.add(module)
        todo |= {m for m in graph.find_modules_directly_imported_by(module) if _is_ours(m)}
        parent = module.rpartition(".")[0]  # a package is imported with each module in it
        todo = (todo | {parent} if parent else todo) - wanted
    return {
        module: {
            name.partition(".")[0]
            for name in graph.find_modules_directly_imported_by(module)
            if not _is_ours(name) and name.partition(".")[0] not in sys.stdlib_module_names
        }
        for module in sorted(wanted)
    }


def _kept_files(tool: Tool) -> list[Path]:
    """The files of packages that keep their names."""
    return sorted(file for path in tool.paths for file in (ROOT / "utils" / path).rglob("*.py"))


def _imports(file: Path, known: Container[str]) -> Iterator[str]:
    """Modules of ours that a file outside of the graph imports."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (item.name for item in node.names if _is_ours(item.name))
        elif isinstance(node, ast.ImportFrom) and node.module and _is_ours(node.module):
            under = [f"{node.module}.{item.name}" for item in node.names]
            yield from (name if name in known else node.module for name in under)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == "utils"


def rename(source: str, package: str, rooms: Iterable[str]) -> str:
    """Python source with `package` in place of `utils`, in code and in texts that name a module.

    >>> rename("from utils.facts import units  # utils\\n'utils.facts.units'", "own", ["facts"])
    "from own.facts import units  # utils\\n'own.facts.units'"
    """
    named = re.compile(rf"\butils(?=[./](?:{'|'.join(rooms)})\b)")
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    lines = source.splitlines(keepends=True)
    # From the end to the beginning, so that places before stay as they are.
    for place in range(len(tokens) - 1, -1, -1):
        token = tokens[place]
        text = token.string
        if token.type == tokenize.NAME and text == "utils":
            before, after = tokens[place - 1].string, tokens[place + 1].string
            is_own = after == "." and before != "." or before in ("from", "import")
            text = package if is_own else text
        elif token.type in (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)):
            text = named.sub(package, text)
        if text != token.string:
            _put(lines, token.start, token.end, text)
    return "".join(lines)


def _put(lines: list[str], start: tuple[int, int], end: tuple[int, int], text: str) -> None:
    first, last = lines[start[0] - 1], lines[end[0] - 1]
    lines[start[0] - 1 : end[0]] = [first[: start[1]] + text + last[end[1] :]]


def _write(tool: Tool, name: str, folder: Path) -> None:
    chosen = modules(tool)
    rooms = sorted(path.name for path in (ROOT / "utils").iterdir() if path.is_dir())
    package = folder / "src" / tool.package
    for module in chosen:
        inside = Path(*module.split(".")[1:])
        file = ROOT / "utils" / inside / "__init__.py"
        if not file.exists():
            file = ROOT / "utils" / inside.with_suffix(".py")
        source = _copy(file, package, tool, rooms)
        for data in _data_of(source, file):
            copy = package / data.relative_to(ROOT / "utils")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(data, copy)
    for file in _kept_files(tool):
        _copy(file, package, tool, rooms)
    if tool.paths:
        lines = [f"{tool.package}/{path}\n" for path in tool.paths]
        (folder / PURE).mkdir()
        (folder / PURE / f"{tool.package}.pth").write_text("".join(lines), encoding="utf-8")
    shutil.copy(ROOT / "LICENSE", folder)
    (folder / "README.md").write_text(_readme(tool, name), encoding="utf-8")
    others = set().union(*chosen.values())
    (folder / "pyproject.toml").write_text(_project(tool, name, others), encoding="utf-8")


def _copy(file: Path, package: Path, tool: Tool, rooms: list[str]) -> str:
    """Writes a module into the wheel's package; returns its source here."""
    target = package / file.relative_to(ROOT / "utils")
    target.parent.mkdir(parents=True, exist_ok=True)
    source = file.read_text(encoding="utf-8")
    target.write_text(rename(source, tool.package, rooms), encoding="utf-8")
    return source


def _data_of(source: str, file: Path) -> Iterable[Path]:
    """The data files that a module names: of the facts, or beside it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if re.fullmatch(r"[\w./-]+\.(yaml|json|csv|jinja|md)", node.value):
                for folder in (file.parent, ROOT / "utils" / DATA):
                    if (folder / node.value).is_file():
                        yield folder / node.value


def _project(tool: Tool, name: str, imported: set[str]) -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = project["dependency-groups"]
    every = [*project["project"]["dependencies"], *groups["test"], *groups["grade"]]
    specified = {re.split(r"[^\w-]", entry, maxsplit=1)[0].lower(): entry for entry in every}
    owners = importlib.metadata.packages_distributions()
    own = {package.name for path in tool.paths for package in (ROOT / "utils" / path).iterdir()}
    known = (imported - own) & owners.keys()
    needed = {re.sub(r"[-_.]+", "-", owners[module][0]).lower() for module in known}
    optional = {entry for entries in tool.extras.values() for entry in entries}
    scripts = {
        command: f"{tool.package}.{module.partition('.')[2]}:main"
        for command, module in tool.commands.items()
    }
    plugins = [
        line
        for group, result in tool.entry_points.items()
        for line in (
            f"[project.entry-points.{group}]",
            *(f'{n} = "{tool.package}.{m.partition(".")[2]}"' for n, m in result.items()),
        )
    ]

    def listed(names: Iterable[str]) -> str:  # a list in JSON is one in TOML too
        return json.dumps([specified[entry] for entry in sorted(names)])

    lines = [
        "[project]",
        f'name = "{name}"',
        f'version = "{project["project"]["version"]}"',
        f'description = "{tool.about}"',
        'readme = "README.md"',
        'license = "Apache-2.0"',
        'license-files = ["LICENSE"]',
        f'requires-python = "{project["project"]["requires-python"].partition(",")[0]}"',
        f"dependencies = {listed(needed - optional)}",
        "[project.optional-dependencies]",
        *(f"{extra} = {listed(names)}" for extra, names in tool.extras.items()),
        "[project.scripts]",
        *(f'{command} = "{place}"' for command, place in scripts.items()),
        *plugins,
        "[build-system]",
        f'requires = ["uv_build{project["tool"]["uv"]["required-version"]}"]',
        'build-backend = "uv_build"',
        "[tool.uv.build-backend]",
        f'module-name = "{tool.package}"',
        *([f'data = {{ purelib = "{PURE}" }}'] if tool.paths else []),
    ]
    return "\n".join(lines) + "\n"


def _readme(tool: Tool, name: str) -> str:
    path = ROOT / "utils" / "cli" / f"{name}.md"
    return path.read_text(encoding="utf-8") if path.exists() else f"# {name}\n\n{tool.about}\n"
