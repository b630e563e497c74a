"""NKI on any CPU: an interpreter of Trainium kernels and a model of the time they take.

A kernel is ordinary Python that imports `nki`. AWS's own package of that name is not on the
public package index; `use()` makes the import work where it is missing, with the package in this
folder:

>>> from utils.nki import simulator
>>> print(simulator.use())  # doctest: +ELLIPSIS
nki ...
>>> import nki.language as nl
>>> nl.tile_size.pmax
128

One call of a kernel leaves a program behind; `profile` shows what it would take on a chip. Modules
lie in layers, and each imports only from those below it; import-linter holds it so:

    profile listing replay traffic   what a program shows: times, text, numbers again, movement
    timing                           a schedule of the recorded instructions on the engines
    launch                           one call of a kernel: arrays in, its Python, arrays out
    lint cores races sentinels plain parts of a call: what may not compile, two cores, doubts, data
    language                         `nl`: allocation, loops, conveniences made of instructions
    instructions                     the rows of the table: rules, costs and meaning in NumPy
    accumulation capacity uses       sums in PSUM, whether tiles fit, who uses what
    arrays instruction               host arrays; how an instruction is declared and issued
    program                          what a call leaves behind: allocations and instructions
    table operands operators         what a row declares, and how a call is checked against it
    tensor patterns views indexing view    a view of an allocation, from its bytes up
    memory registers dtypes surface target    allocations, types, NKI's names, the chip
    errors enums                     what a learner reads; named choices

Nothing here imports torch.
"""

import importlib.machinery
import os
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "package"
VERSION = "0.7.0+course"
CHOICE = "COURSE_NKI"
"""Environment variable: "course" takes this simulator even where the official package is."""

OURS = f"nki {VERSION}: the course's simulator; its times are estimates"
PLACEHOLDER = (
    "A package called nki is installed, but it is the empty placeholder of the public package "
    "index and holds no code. The course's simulator is used instead; pip uninstall nki removes "
    "the placeholder."
)


def use() -> str:
    """Make `import nki` find an implementation, and say which.

    The official package wins where it is installed, unless COURSE_NKI=course is set; otherwise,
    also when the installed `nki` is the empty placeholder of the public index, this course's
    simulator is put on the path.
    """
    if "nki" in sys.modules and hasattr(sys.modules["nki"], "jit"):
        return _where(sys.modules["nki"].__file__ or "")
    here = str(PACKAGE)
    elsewhere = [entry for entry in sys.path if Path(entry or ".").resolve() != PACKAGE]
    result = importlib.machinery.PathFinder.find_spec("nki", elsewhere)
    if result is not None and _is_official(result) and os.environ.get(CHOICE) != "course":
        return _where(result.origin or "")
    sys.modules.pop("nki", None)
    sys.path[:] = [here, *(entry for entry in sys.path if entry != here)]  # a wheel has it last
    placeholder = result is not None and not _is_official(result)
    return (PLACEHOLDER + "\n" if placeholder else "") + _where(here)


def is_ours() -> bool:
    """Whether the `nki` that is imported, or would be, is the course's simulator."""
    imported = sys.modules.get("nki")
    if imported is None:
        return use().endswith(OURS)
    return Path(imported.__file__ or "").resolve().is_relative_to(PACKAGE)


def _is_official(result: "importlib.machinery.ModuleSpec") -> bool:
    """The official package has a language; the placeholder is an `__init__.py` without code."""
    folders = [Path(folder) for folder in result.submodule_search_locations or ()]
    return any(
        (folder / "language").is_dir() or list(folder.glob("language.*")) for folder in folders
    )


def _where(origin: str) -> str:
    if Path(origin).resolve().is_relative_to(PACKAGE):
        return OURS
    return (
        f"nki: the official package, {origin}. Profiles, and the checks of labs 09 and 10, need "
        f"the course's simulator: set {CHOICE}=course before Python starts."
    )
