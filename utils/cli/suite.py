"""The test suite: its groups and units, what each unit reads, and how long each takes.

A unit is what one worker runs in one piece: a lesson, a solution, an untouched lab, a test file, a
module with examples in its docstrings, or what a file over all labs tests in one of them.
`course.py test` and tests/plugin.py share this module.
"""

import hashlib
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from utils.course.catalog import ROOT, read_notebook, text

SIZES = ("default", "quick", "exhaustive")
NOTEBOOK_TESTS = "tests/notebooks/test_notebooks.py"
OVER_ALL_LABS = tuple(
    f"tests/labs/test_labs{what}.py" for what in ("", "_at_grading", "_in_the_sandbox")
)
"""Files whose tests have a lab's name in their id, and share what is costly within a lab."""
NOTEBOOKS = ("notebooks", "solutions", "labs")
LAB = re.compile(r"lab\d\d")
WITHOUT_LIMIT = "python3 course.py test --quick --no-limit"
CORE = "tests/repo/"
"""Lints and the rules of the repository: --quick always runs them."""

DURATIONS = ROOT / "tests" / "durations.json"
GREEN = ROOT / ".tools" / "green_notebooks.json"

SECONDS_OF_A_TEST = {
    r"\.ipynb$": 20.0,  # a notebook is one unit, whatever its number of cells
    r"_in_the_sandbox\.py": 15.0,
    r"^tests/labs/": 0.5,
    r"": 0.1,
}
"""A guess by the unit's name, the first that fits, where no duration is recorded."""


def unit_of(nodeid: str) -> str:
    """
    >>> unit_of("tests/labs/test_labs.py::test_the_solution_passes[lab07.reach-public]")
    'tests/labs/test_labs.py::lab07'
    >>> unit_of("notebooks/03_lazy_tensors.ipynb::Cell 4")
    'notebooks/03_lazy_tensors.ipynb'
    >>> unit_of("tests/notebooks/test_notebooks.py::test_a_lab[labs/lab01_x/lab01_a.ipynb]")
    'labs/lab01_x/lab01_a.ipynb'
    """
    file, _, test = nodeid.partition("::")
    if file == NOTEBOOK_TESTS:
        notebook = re.search(r"\[((?:labs|solutions)/.*\.ipynb)\]", test)
        return notebook.group(1) if notebook else nodeid
    lab = re.search(r"\[.*?\b(lab\d\d)\b", test) if file in OVER_ALL_LABS else None
    return f"{file}::{lab.group(1)}" if lab else file


def group_of(nodeid: str) -> str:
    """The line of the table of time in which a test counts.

    >>> group_of("utils/chip/mx.py::utils.chip.mx.pack"), group_of("tests/nki/test_x.py::test_a")
    ('doctests', 'tests/nki')
    """
    unit = unit_of(nodeid)
    for folder, group in (
        ("notebooks/", "lessons"),
        ("solutions/", "solutions"),
        ("labs/", "labs"),
    ):
        if unit.startswith(folder):
            return group
    if "[notebooks/" in unit:
        return "lessons twice"
    folders = unit.split("/")
    return "/".join(folders[:2]) if folders[0] == "tests" and len(folders) > 2 else "doctests"


# ---- how long


def estimate(tests: dict[str, int]) -> dict[str, float]:
    """Seconds of each unit, as recorded, or guessed from its number of tests."""
    recorded = json.loads(DURATIONS.read_text("utf-8")) if DURATIONS.exists() else {}
    return {unit: recorded.get(unit, guess(unit, count)) for unit, count in tests.items()}


def guess(unit: str, tests: int) -> float:
    """Seconds that a unit with so many tests is likely to take, by its path."""
    seconds = next(s for pattern, s in SECONDS_OF_A_TEST.items() if re.search(pattern, unit))
    return seconds if unit.endswith(".ipynb") else seconds * tests


def record(seconds: dict[str, float]) -> None:
    """Store the durations of units; those that were not run keep theirs, those gone lose it."""
    recorded = json.loads(DURATIONS.read_text("utf-8")) if DURATIONS.exists() else {}
    recorded |= {unit: round(value, 1) for unit, value in seconds.items()}
    kept = {u: s for u, s in sorted(recorded.items()) if (ROOT / u.partition("::")[0]).exists()}
    DURATIONS.write_text(json.dumps(kept, indent=0) + "\n", encoding="utf-8")


# ---- what each unit reads


class Reads:
    """The files on which the result of each unit depends, found through the import graph.

    Modules that are loaded by a name made at run time (the judge of a lab) do not stand in the
    graph; a lab's units read all of the lab's folder, and a test what its text mentions.
    """

    def __init__(self, root: Path = ROOT) -> None:
        import grimp
        import networkx

        self.root = root
        graph = grimp.build_graph("utils", "tests", cache_dir=None)
        self.files = {module: _files_of(root, module) for module in graph.modules}
        self.graph = networkx.DiGraph()
        for module in graph.modules:
            self.graph.add_node(module)
            imported = graph.find_modules_directly_imported_by(module)
            for other in {*imported, module.rpartition(".")[0]} & graph.modules:
                self.graph.add_edge(module, other)

    def units(self) -> dict[str, set[Path]]:
        """{unit: the files it reads, its own first of all}"""
        notebooks = [path for name in NOTEBOOKS for path in (self.root / name).rglob("*.ipynb")]
        units = {
            self._name(path): self.notebook(path)
            for path in notebooks
            if ".ipynb_checkpoints" not in path.parts
        }
        for path in (self.root / "tests").rglob("test_*.py"):
            if (name := self._name(path)) != NOTEBOOK_TESTS:
                units |= self.test_file(name, path)
        for path in (self.root / "utils").rglob("*.py"):
            if self.module(path) in self.files and ">>>" in path.read_text("utf-8"):
                units[self._name(path)] = self._closure({self.module(path)})
        return units

    def notebook(self, path: Path) -> set[Path]:
        """The files that the code of a notebook reads, itself included."""
        code = "\n".join(
            text(cell) for cell in read_notebook(path)["cells"] if cell["cell_type"] == "code"
        )
        roots = self._mentioned_modules(code) | {NOTEBOOK_TESTS[:-3].replace("/", ".")}
        files = {path, self.root / "tests" / "nbval_sanitize.cfg"}
        if lab := LAB.search(path.name):
            roots |= self._lab(lab.group())
        if "scripts" in code:
            files |= set((self.root / "notebooks" / "scripts").rglob("*.py"))
        return files | self._closure(roots) | set(self.root.glob("requirements*.lock"))

    def test_file(self, name: str, path: Path) -> dict[str, set[Path]]:
        """The files that each unit of a test file reads, by the unit's name."""
        content = path.read_text("utf-8")
        read = self._closure({self.module(path)} | self._mentioned_modules(content))
        read |= {file for file in self.mentionable if file.name in content}
        read.add(self.root / "tests" / "conftest.py")
        labs = sorted({p.name[:5] for p in (self.root / "solutions").glob("lab*")})
        if name in OVER_ALL_LABS:
            return {f"{name}::{lab}": read | self._of_lab(lab) for lab in labs} | {name: read}
        if lab := LAB.search(path.name):
            read |= self._of_lab(lab.group())
        elif name.startswith("tests/labs/"):
            read = read.union(*map(self._of_lab, labs))
        return {name: read}

    def module(self, path: Path) -> str:
        """The dotted name of a file of Python."""
        parts = path.relative_to(self.root).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def _closure(self, modules: set[str]) -> set[Path]:
        import networkx

        reached = modules.union(*(networkx.descendants(self.graph, module) for module in modules))
        return set().union(*(self.files[module] for module in reached))

    def _lab(self, lab: str) -> set[str]:
        folder = f"utils.labs.{lab}"
        return {m for m in self.files if m == folder or m.startswith(f"{folder}.")}

    def _of_lab(self, lab: str) -> set[Path]:
        return self._closure(self._lab(lab)) | set((self.root / "solutions").glob(f"{lab}*/*"))

    def _mentioned_modules(self, code: str) -> set[str]:
        """Modules that a text names, whether it imports them or starts them as programs."""
        names = set(re.findall(r"utils(?:\.\w+)+", code))
        for package, members in re.findall(r"from (utils[\w.]*) import \(?([\w\s,]+)", code):
            names |= {f"{package}.{member}" for member in re.findall(r"\w+", members)}
        while unknown := names - self.files.keys():
            names -= unknown
            names |= {parent for name in unknown if (parent := name.rpartition(".")[0])}
        return names

    @cached_property
    def mentionable(self) -> tuple[Path, ...]:
        """Files that are no modules, by whose names a test reads them."""
        beside = [path for path in self.root.iterdir() if path.is_file()]
        below = [p for name in ("notebooks", "tests") for p in (self.root / name).rglob("*.*")]
        return tuple(p for p in beside + below if p.suffix not in ("", ".pyc"))


def _files_of(root: Path, module: str) -> set[Path]:
    """A module's file; with a package go the data that lie in its folder."""
    path = root.joinpath(*module.split("."))
    if not path.is_dir():
        return {path.with_suffix(".py")}
    files = {path / "__init__.py"}
    for inside in path.iterdir():
        if inside.is_file() and inside.suffix != ".py":
            files.add(inside)
        elif inside.is_dir() and inside.name != "__pycache__" and not any(inside.glob("*.py")):
            files |= {file for file in inside.rglob("*") if file.is_file()}
    return files


# ---- which notebooks have passed as they are


def hashes_of_notebooks(reads: Reads | None = None) -> dict[str, str]:
    """{notebook: digest of all it reads and of this Python}"""
    reads = reads or Reads()
    digest = cache(lambda path: hashlib.sha256(path.read_bytes()).hexdigest())
    result = {}
    for unit, files in reads.units().items():
        if unit.endswith(".ipynb"):
            lines = [f"{path.relative_to(reads.root)} {digest(path)}" for path in sorted(files)]
            result[unit] = hashlib.sha256("\n".join([sys.version, *lines]).encode()).hexdigest()
    return result


def read_green() -> dict[str, str]:
    """The digests with which notebooks last passed."""
    return json.loads(GREEN.read_text("utf-8")) if GREEN.exists() else {}


def remember_green(hashes: dict[str, str]) -> None:
    """Add the digests of notebooks that passed to those of earlier runs."""
    GREEN.parent.mkdir(exist_ok=True)
    GREEN.write_text(json.dumps(read_green() | hashes, indent=0), encoding="utf-8")


# ---- what a change reaches


@dataclass(frozen=True)
class Choice:
    """What --quick runs: units by name; `left_out` did not fit, `green` passed as they are."""

    run: list[str]
    left_out: list[str]
    green: list[str]
    seconds: float

    def describe(self, changed: int) -> str:
        """What is run, and what is not and how it would be, for who waits."""
        lines = [
            f"{changed} files differ from main. Beside lints and rules they reach"
            f" {len(self.run) - self.core} test files, labs and notebooks that are run now"
            f" (about {self.seconds:.0f} s of work) and {len(self.left_out)} that are not."
        ]
        if self.left_out:
            lines += ["LEFT OUT, three minutes are too short for them:"]
            lines += [f"  {unit}" for unit in self.left_out]
            lines += [f"Run them too: {WITHOUT_LIMIT}"]
        if self.green:
            lines += [f"{len(self.green)} notebooks passed as they are and are not run again."]
        return "\n".join(lines)

    @property
    def core(self) -> int:
        """How many of the units belong to the core."""
        return sum(unit.startswith(CORE) for unit in self.run)

    def paths(self) -> list[str]:
        """The files that pytest has to collect for the units."""
        return sorted(
            {
                NOTEBOOK_TESTS if unit.startswith(("labs/", "solutions/")) else unit.split("::")[0]
                for unit in self.run
            }
        )


def changed_files(root: Path = ROOT) -> set[Path] | None:
    """What differs from where this branch left main, untracked files included; None without git."""

    def git(*arguments: str) -> list[str] | None:
        try:
            done = subprocess.run(
                ["git", *arguments], cwd=root, capture_output=True, text=True, check=False
            )
        except FileNotFoundError:
            return None
        return done.stdout.splitlines() if done.returncode == 0 else None

    for main in ("@{upstream}", "origin/main", "main", "HEAD"):
        if base := git("merge-base", "HEAD", main):
            break
    else:
        return None
    names = git("diff", "--name-only", base[0]) or []
    names += git("ls-files", "--others", "--exclude-standard") or []
    return {root / name for name in names}


def choose(
    changed: set[Path], reads: dict[str, set[Path]], green: set[str], seconds: float
) -> Choice:
    """The units that read a changed file, as many as `seconds` of two workers allow.

    First those whose own file has changed, then by their time, the shortest first. The core runs
    always; a notebook in `green` never does.
    """
    tests = {unit: 1 if unit.endswith(".ipynb") else _count(unit) for unit in reads}
    cost = estimate(tests)
    run = [unit for unit in reads if unit.startswith(CORE)]
    reached = [u for u, files in reads.items() if files & changed and u not in run]
    skipped = sorted(green.intersection(reached))
    own = {path.as_posix() for path in changed}
    reached = sorted(
        set(reached) - green,
        key=lambda unit: (not any(p.endswith(unit.partition("::")[0]) for p in own), cost[unit]),
    )
    spent, left_out = sum(cost[unit] for unit in run), []
    for unit in reached:
        if spent + cost[unit] <= seconds:
            run.append(unit)
            spent += cost[unit]
        else:
            left_out.append(unit)
    return Choice(run, left_out, skipped, spent)


def _count(unit: str) -> int:
    path = ROOT / unit.partition("::")[0]
    return (
        3 * len(re.findall(r"^def test_|>>>", path.read_text("utf-8"), re.M))
        if path.exists()
        else 1
    )
