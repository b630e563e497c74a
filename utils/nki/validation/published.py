"""Published kernels, run from their published text: utils/facts/data/nki_published.yaml says where.

A folder holds the repositories as `owner+name`, each at the commit that the file names:

    git clone https://github.com/zhang677/AccelOpt FOLDER/zhang677+AccelOpt

Nothing of them is copied into the course. Sources in today's NKI run as they stand, older ones
through `dialect`. `set` gives a constant another value, where the source says that it is to be set.
"""

import ast
import functools
import linecache
import random
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from utils.nki.simulator.arrays import Shape
from utils.nki.validation.estimates import SECONDS
from utils.nki.validation.measurements import FILE as MEASUREMENTS

FILE = MEASUREMENTS.with_name("nki_published.yaml")
OLD = "neuronxcc"


@dataclass(frozen=True)
class Repository:
    """Where a text lies: `repository` on GitHub as owner/name, at a commit, under a licence."""

    repository: str
    commit: str
    licence: str

    @property
    def folder(self) -> str:
        """Its name below the folder of all repositories."""
        return self.repository.replace("/", "+")


@dataclass(frozen=True)
class Published:
    """A measurement with the text that was measured; the file says what each field holds."""

    id: str
    of: str
    path: str
    function: str
    inputs: tuple[str, ...]
    target: str
    value: float
    unit: str
    source: str
    where: str
    quantity: str = "seconds"
    schedule: str = "list"
    ladder: str | None = None
    busy: tuple[str, ...] = ()
    hbm: dict[str, float] = field(default_factory=dict)
    spilled: float | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    set: dict[str, Any] = field(default_factory=dict)
    candidate: int | None = None
    block: int | None = None
    note: str = ""
    other_text: str = ""
    total: bool = False

    @property
    def outside(self) -> float:
        """Seconds of the measured value that pass before and after the kernel."""
        entry = _content()["outside"]
        return float(entry["value"]) * SECONDS[entry["unit"]] if self.total else 0.0

    @property
    def repository(self) -> Repository:
        """The repository of its text."""
        return repositories()[self.of]

    def given(self) -> list[Any]:
        """What the kernel is called with: arrays by shape, and numbers."""
        results: list[Any] = []
        for text in self.inputs:
            dtype, _, shape = text.partition(" ")
            results.append(Shape(tuple(map(int, shape.split("x"))), dtype) if shape else
                           float(dtype))  # fmt: skip
        return results


@functools.cache
def _content() -> dict[str, Any]:
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


def repositories() -> dict[str, Repository]:
    """The repositories that hold texts, by their short names."""
    return {name: Repository(**entry) for name, entry in _content()["repositories"].items()}


def described_ids() -> frozenset[str]:
    """Measurements of kernels that are stated exactly without being printed."""
    return frozenset(_content()["described"])


def failures() -> dict[str, str]:
    """Measured texts that do not run as they are printed: why, by id."""
    return dict(_content()["broken"])


def order_reasons() -> dict[frozenset[str], str]:
    """Rows that the estimates do not have in the measured order: why, as far as is known."""
    return {frozenset(group["rows"]): group["why"] for group in _content()["order_reasons"]}


@functools.cache
def published() -> dict[str, Published]:
    """All measurements whose text is published, by id."""
    results = {}
    for group in _content()["published"]:
        common = {key: value for key, value in group.items() if key != "rows"}
        for row in group["rows"]:
            fields = {**common, **row}
            fields["inputs"] = tuple(fields["inputs"])
            fields["busy"] = tuple(fields.get("busy", ()))
            results[fields["id"]] = Published(**fields)
    return results


def fitted_rows() -> frozenset[str]:
    """The rows that constants and rules may be fitted to; all others are held out.

    Those that suggested a rule, and as many texts, drawn with the file's seed, as make a half; and
    those that constants of the estimate as written had been fitted to before.
    """
    texts: dict[Any, list[str]] = {}
    for it in published().values():
        key = it.of, it.path, it.function, it.candidate, it.block
        texts.setdefault(key, []).append(it.id)
    suggested, before = set(_content()["suggested"]), set(_content()["constants"])
    known = [key for key, ids in texts.items() if suggested & set(ids)]
    others = sorted((key for key in texts if key not in known), key=repr)
    random.Random(_content()["halves"]["seed"]).shuffle(others)
    chosen = known + others[: max(0, len(texts) // 2 - len(known))]
    chosen += [key for key, ids in texts.items() if before & set(ids)]
    return frozenset(name for key in chosen for name in texts[key])


def text_of(it: Published, folder: Path) -> str:
    """The published text. FileNotFoundError: says which repository to fetch."""
    path = folder / it.repository.folder / it.path
    if not path.is_file():
        raise FileNotFoundError(
            f"{it.id}: {path} is not there; its text is not part of the course. Fetch it: git clone"
            f" https://github.com/{it.repository.repository} {folder / it.repository.folder} && "
            f"git -C {folder / it.repository.folder} checkout {it.repository.commit}"
        )
    text = path.read_text(encoding="utf-8")
    if it.candidate is not None:
        return _candidates(text)[it.candidate]
    if it.block is not None:
        return _blocks(text)[it.block]
    return text


def _candidates(text: str) -> list[str]:
    """The kernels of a trace of Autocomp, which nests each candidate in the one it became."""
    results: list[str] = []

    def walk(call: ast.Call) -> None:
        values = {item.arg: item.value for item in call.keywords}
        if isinstance(values["parent"], ast.Call):
            walk(values["parent"])
        results.append(ast.literal_eval(values["code"]))

    (statement,) = ast.parse(text).body
    assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    walk(statement.value)
    return results


def _blocks(text: str) -> list[str]:
    """The Python blocks of a page in reStructuredText that define a kernel, in order."""
    match = re.findall(
        r"^\.\. code-block:: python\s*\n\s*\n((?:   .*\n|[ \t]*\n)+)", text, re.MULTILINE
    )
    blocks = [textwrap.dedent(item) for item in match]
    return [block for block in blocks if "@nki.jit" in block]


def kernel_of(it: Published, folder: Path) -> tuple[Callable[..., Any], str]:
    """The kernel that a measurement ran, from its text; and the text's dialect."""
    text = text_of(it, folder)
    for name, value in it.set.items():
        text, count = re.subn(rf"^(\s*{name}\s*=\s*)\S+", rf"\g<1>{value}", text, flags=re.M)
        assert count, f"{it.id}: the text sets no {name}"
    old = it.candidate is not None or OLD in text
    name = f"<{it.id} of {it.repository.repository}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    from utils.nki.validation import dialect  # puts nki on the path

    modules = dialect.namespace() if old else {}
    with _importable(modules):
        place: dict[str, Any] = {"__name__": "published"}
        place |= _names(modules, dialect) if old else {}
        exec(compile(text, name, "exec"), place)  # noqa: S102 (a source that the user fetched)
    function = place[it.function]
    if not old:
        return function, "as published"

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with _importable(modules):  # some import inside of the kernel
            return adapted.function(*args, **kwargs)

    adapted = dialect.adapt(function)
    kernel.__name__ = it.function
    return kernel, "as published, in an older dialect"


def _names(modules: dict[str, Any], dialect: Any) -> dict[str, Any]:
    """What a candidate of Autocomp finds without importing it."""
    top = modules["neuronxcc.nki"]
    return {
        "np": np, "nki": top, "nl": top.language, "nisa": top.isa,
        "nt": top.typing, "par_dim": dialect.Partition,
    }  # fmt: skip


@contextmanager
def _importable(modules: dict[str, Any]) -> Iterator[None]:
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
