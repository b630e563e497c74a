"""Names of NKI that this simulator lacks, and what kernels for older versions still say.

The table is `utils/facts/data/nki_api.yaml`. A module of the package asks `outside` for a name
that it does not have; the answer raises as soon as it is used, and says where the name is
documented, or
how it is spelled now:

>>> outside("nki.compiler", "AddressRotation")()  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
utils.nki.simulator.errors.NotInSubset: nki.compiler.AddressRotation (NKI 0.7) is not in the...
Documented at: https://awsdocs-neuron.readthedocs-hosted.com/...nki.compiler.html
Here instead: ...

Kernels meet the newest version; the environment variable COURSE_NKI_API=0.3 ... 0.6, set before
`nki` is imported, chooses an older one.
"""

import difflib
import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any, NoReturn

import yaml

from utils.nki.simulator.errors import (
    NkiValidationError,
    NotInSubset,
    learner_line,
    refuse,
    show_line,
)

DATA = Path(__file__).parents[2] / "facts" / "data" / "nki_api.yaml"
BASE = "https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/"
OLD_NAMESPACE = "neuronxcc"
VARIABLE = "COURSE_NKI_API"


def known_versions() -> tuple[str, ...]:
    """The versions of NKI that may be chosen, the newest last."""
    return (*_data()["older"], _data()["version"].rpartition(".")[0])


def api() -> str:
    """The version of NKI that kernels meet, such as "0.7"; `VARIABLE` chooses an older one.

    Raises: ValueError for a version that there is not.
    """
    known = known_versions()
    asked = os.environ.get(VARIABLE) or known[-1]
    if asked not in known:
        raise ValueError(f"{VARIABLE} is {asked!r}; it is one of {', '.join(known)}")
    return asked


def since(version: str) -> bool:
    """Whether the version that kernels meet is this one or a newer one.

    >>> since("0.3"), since("unknown"), since("9.0")
    (True, True, False)
    """
    return version == "unknown" or float(version) <= float(api())


@dataclass(frozen=True)
class Leftover:
    """Something that kernels for older versions say; `gone` is the first version without it."""

    id: str
    gone: str
    why: str
    old: str
    new: str

    def error(self, text: str) -> NkiValidationError:
        """The error for a kernel that says it; `said` names what was found."""
        return refuse(
            f"{text} is not part of NKI since {self.gone}; this is NKI {api()}.",
            f"{self.why}.",
            f"{_indent(self.new)}\n  instead of\n{_indent(self.old)}",
        )


def _indent(code: str) -> str:
    return "\n" + "\n".join(f"    {line}" for line in code.splitlines()) if "\n" in code else code


def section(name: str) -> Mapping[str, Any]:
    """One part of the table, such as "lint"."""
    table: dict[str, Any] = _data()[name]
    return table


@functools.cache
def _data() -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(DATA.read_text(encoding="utf-8"), Loader=loader)


@functools.cache
def leftovers() -> Mapping[str, Leftover]:
    """The table of old spellings by id: a name, "function(argument=)" or "function()"."""
    return {key: Leftover(id=key, **entry) for key, entry in _data()["leftovers"].items()}


@functools.cache
def versions(module: str) -> Mapping[str, str]:
    """The documented names of a module with the version that brought each, or "unknown".

    >>> versions("nki.isa")["topk"], versions("nki.language")["load"]
    ('0.6', '0.3')
    """
    groups = _data()["modules"].get(module, {})
    return {
        name: version
        for version, names in groups.items()
        if version not in ("page", "pages")
        for name in names
    }


def modules() -> tuple[str, ...]:
    """Every module and class of which the table lists names."""
    return tuple(_data()["modules"])


def page(module: str, name: str) -> str:
    """The address of the documentation of a name. Raises KeyError for an unknown one.

    >>> page("nki.language", "tile_size").rpartition("/")[2]
    'nki.language.tile_size.html'
    """
    entry = _data()["modules"][module]
    if name not in versions(module):
        raise KeyError(f"{module} documents no {name!r}")
    return BASE + entry.get("pages", {}).get(name, entry["page"].format(name=name))


def instead(qualified: str) -> str:
    """What the course has in place of a name outside its subset; "" for nothing."""
    table = _data()["instead"]
    fitting = [start for start in table if qualified.startswith(start)]
    return table[max(fitting, key=len)] if fitting else ""


def outside(module: str, name: str) -> "Outside":
    """Stands for a name that a module of the package lacks, and raises when it is used.

    Raises AttributeError at once, with near matches, for a name that NKI never had.
    """
    qualified = f"{module}.{name}"
    if name.startswith("_"):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    if qualified in leftovers() and since(leftovers()[qualified].gone):
        return Outside(qualified, lambda: leftovers()[qualified].error(qualified))
    if name in versions(module):
        return Outside(qualified, lambda: _missing(module, name))
    parts = (leftover.rpartition(".") for leftover in leftovers())
    old = {short for of, _, short in parts if of == module}
    raise AttributeError(f"{module} has no {name!r}{_near(name, {*versions(module), *old})}")


def keep_to_version(module: str, names: dict[str, Any]) -> None:
    """Take the names out of a module of the package that its version of NKI lacks."""
    for name in list(names):
        brought = versions(module).get(name, "unknown")
        old = leftovers().get(f"{module}.{name}")
        if not since(brought) or (old is not None and since(old.gone)):
            del names[name]


def _missing(module: str, name: str) -> NotInSubset:
    brought = versions(module)[name]
    offered = instead(f"{module}.{name}")
    line = learner_line()
    where = (
        "is not in the course's simulator."
        if since(brought)
        else f"came later than NKI {api()}, which {VARIABLE} asks for."
    )
    parts = [
        f"{module}.{name} (NKI{'' if brought == 'unknown' else f' {brought}'}) {where}",
        f"Documented at: {page(module, name)}",
        *([f"Here instead: {offered}."] if offered else []),
        *([f"At: {show_line(line)}"] if line else []),
    ]
    return NotInSubset("\n".join(parts))


def _near(name: str, known: Iterable[str]) -> str:
    result = difflib.get_close_matches(name, sorted(known), n=3)
    return f"; did you mean {' or '.join(result)}?" if result else ""


def unknown_argument(function: str, argument: str, allowed: Iterable[str]) -> NkiValidationError:
    """The error for a keyword that a function, such as "nki.isa.tensor_copy", does not have.

    An old spelling is shown in its new form; for any other the arguments are listed.
    """
    module, _, short = function.rpartition(".")
    for key in (f"{function}({argument}=)", f"{module}.*({argument}=)", f"*({argument}=)"):
        if key in leftovers():
            return leftovers()[key].error(f"{function}({argument}=...)")
    near = difflib.get_close_matches(argument, allowed, n=1)
    return refuse(
        f"{short}: there is no argument {argument!r}; there are {', '.join(allowed)}.",
        "the compiler takes the documented arguments only.",
        f"write {near[0]}=..." if near else f"leave {argument}= out.",
    )


def explain_keywords(module: str, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, which explains a keyword that it does not have."""
    names = tuple(inspect.signature(function).parameters)
    known = frozenset(names)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not kwargs.keys() <= known:
            argument = next(item for item in kwargs if item not in known)
            raise unknown_argument(f"{module}.{name}", argument, names)
        return function(*args, **kwargs)

    return call


class Outside:
    """A name that raises as soon as it is called, indexed, entered or calculated with."""

    def __init__(self, name: str, error: Callable[[], Exception]) -> None:
        self._name = name
        self._error = error

    def __repr__(self) -> str:
        return f"<{self._name}, not in the course's simulator>"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise self._error()


def _raises(self: Outside, *_: Any, **__: Any) -> NoReturn:
    raise self._error()


for _operation in (
    "call getitem setitem iter len enter exit bool int float index neg add radd sub rsub mul rmul "
    "truediv rtruediv floordiv rfloordiv mod rmod pow and rand or ror lt le gt ge"
).split():
    setattr(Outside, f"__{_operation}__", _raises)


class OldNamespace(MetaPathFinder):
    """Says at `import neuronxcc.nki`, where no such package is installed, what to import now."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        """Finds nothing; raises ModuleNotFoundError for the old namespace."""
        if fullname.partition(".")[0] == OLD_NAMESPACE:
            text = leftovers()["neuronxcc.nki"].error("the namespace neuronxcc.nki")
            raise ModuleNotFoundError(str(text), name=fullname)


def explain_old_imports() -> None:
    """Put `OldNamespace` behind all other finders, once."""
    if not any(isinstance(finder, OldNamespace) for finder in sys.meta_path):
        sys.meta_path.append(OldNamespace())
