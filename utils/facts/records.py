"""Figures of chips and instances: `figure("trainium2.hbm.bandwidth")`.

An entry in `utils/facts/data/chips.yaml`, `instances.yaml`, `costs.yaml` or `launch.yaml` is

    {value: 2.9, unit: TB/s, source: trainium2, status: ..., date: ..., note: ..., also: [...],
     history: [...]}

`source` names an entry of the file's `sources`, which has the address, the date it was read and its
`status`, "primary" if none is given; a copy of a page by others is no primary source. A status in
the entry itself counts before that. `value: null` says that nobody publishes it. With `formula` in
place of `value` and source, the value is computed from other figures, named in braces, and is
"derived". `also` holds what other sources say instead, `history` what the same source said before.
"""

import ast
import dataclasses
import datetime
import operator
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from utils.facts import units

Kind = TypeVar("Kind")

DATA = Path(__file__).parent / "data"
FILES = ("chips.yaml", "instances.yaml", "costs.yaml", "launch.yaml")
STATUSES = ("primary", "vendor-claim", "third-party-estimate", "derived", "local-check")


class Unknown(LookupError):
    """A figure is needed that no source gives: which, and where to look."""


@dataclass(frozen=True, repr=False)
class Figure:
    """One quoted or derived figure.

    key: such as "trainium2.hbm.bandwidth".
    value: a number, a text, a tuple of texts; None if nobody publishes it.
    unit: of the value, as `utils.facts.units` knows it; a word such as "cores" for a count.
    page, source: name and address of where it was read, of a derived figure those of its first
        part.
    status: one of `STATUSES`.
    date: when it was read, of a price the day it was valid, of a derived figure its oldest part's.
    formula: how a derived figure follows from others, otherwise empty.
    also: what other sources say. history: earlier values of the same source.
    """

    key: str
    value: Any
    unit: str
    page: str
    source: str
    status: str
    date: datetime.date
    note: str = ""
    formula: str = ""
    also: tuple["Figure", ...] = ()
    history: tuple["Figure", ...] = ()

    @property
    def text(self) -> str:
        """The value with its unit, as it is printed.

        >>> figure("trainium2.hbm.bandwidth").text
        '2.9 TB/s'
        """
        match self.value:
            case None:
                return "not published"
            case bool():
                return "yes" if self.value else "no"
            case int() | float() as number:
                digits = 4 if self.formula else 10
                return f"{float(f'{number:.{digits}g}'):,.10g} {self.unit}"
            case tuple():
                return ", ".join(map(str, self.value))
        return f"{self.value}" + ("" if self.unit in ("text", "date") else f" {self.unit}")

    def __repr__(self) -> str:
        others = "".join(f"; also {other.text}" for other in self.also)
        return f"{self.key} = {self.text} ({self.status}, {self.date}){others}"

    @property
    def number(self) -> float:
        """The value as a number. Raises Unknown if there is none, with where to look."""
        if self.value is None:
            note = f" ({self.note})" if self.note else ""
            if self.formula:
                missing = [key for key in _parts(self.formula) if figure(key).value is None]
                raise Unknown(
                    f"{self.key} needs {', '.join(missing)}, which nobody publishes{note}"
                )
            raise Unknown(
                f"{self.key} [{self.unit}] is not known{note}: as of {self.date} it is not in"
                f" {self.source}. If you know a source, add it to utils/facts/data;"
                " nothing is guessed"
            )
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise TypeError(f"{self.key} is {self.value!r}, not a number")
        return self.value

    def to(self, unit: str) -> float:
        """The number in another unit.

        >>> figure("trainium2.hbm.bandwidth").to("GB/s")
        2900.0

        Raises: Unknown, or ValueError if the units do not fit.
        """
        return units.convert(self.number, self.unit, unit)


def read_yaml(path: Path) -> Any:
    """What a YAML file holds: mappings, lists, texts, numbers and dates."""
    # The loader in C takes a seventh of the time, and is not built everywhere.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text(encoding="utf-8"), loader)


def read_as(kind: type[Kind], content: object, where: str) -> Kind:
    """What was read from a file as `kind`, a msgspec.Struct, a dataclass or a type such as
    dict[str, int], with every field of the type that it declares.

    where: the file, or the place in it, that the message names.

    >>> read_as(dict[str, int], {"cores": "two"}, "chips.yaml")
    Traceback (most recent call last):
    ValueError: chips.yaml: Expected `int`, got `str` - at `$[...]`. Correct it there

    Raises:
        ValueError: if something is missing, unknown or of another type: what was found and what is
            allowed.
    """
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"{where}: {error}. Correct it there") from None


def content(name: str) -> Any:
    """What a YAML file of `utils/facts/data` holds."""
    return read_yaml(DATA / name)


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A page that figures were read from, when, and the status of what it says."""

    url: str
    date: datetime.date
    status: str = "primary"


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A figure as it is written in its file."""

    unit: str
    value: Any = None
    formula: str = ""
    source: str = ""
    status: str = ""
    date: datetime.date | None = None
    note: str = ""
    also: list[dict[str, Any]] = []
    history: list[dict[str, Any]] = []


@cache
def _all() -> dict[str, Figure]:
    read: dict[str, Figure] = {}
    for name in FILES:
        file = content(name)
        sources = read_as(dict[str, Source], file["sources"], f"{name}, sources")
        for key, entry in _leaves(file["figures"]):
            read[key] = _figure(key, entry, sources)
    return read


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, node in tree.items():
        if not isinstance(node, Mapping):
            raise ValueError(f"{prefix.rstrip('.')}: an entry has a value or a formula")
        if "value" in node or "formula" in node:
            yield prefix + name, node
        else:
            yield from _leaves(node, f"{prefix}{name}.")


def _figure(key: str, content: Mapping[str, Any], sources: Mapping[str, Source]) -> Figure:
    entry = read_as(_Entry, content, key)
    formula = entry.formula
    for wrong, message in (
        (formula and not _parts(formula), f"{formula!r} names no figure in braces"),
        (not formula and not entry.source, "its source is missing"),
        (entry.source and entry.source not in sources, f"no source {entry.source!r}"),
    ):
        if wrong:
            raise ValueError(f"{key}: {message}")
    # What a derived figure follows from is known only when it is computed.
    source = sources[entry.source] if entry.source else Source("", datetime.date.max)
    inherited = {name: content[name] for name in ("unit", "source", "status") if name in content}
    return Figure(
        key=key,
        value=tuple(entry.value) if isinstance(entry.value, list) else entry.value,
        unit=entry.unit,
        page=entry.source,
        source=source.url,
        status=entry.status or ("derived" if formula else source.status),
        date=entry.date or source.date,
        note=entry.note,
        formula=formula,
        also=tuple(_figure(key, inherited | other, sources) for other in entry.also),
        history=tuple(_figure(key, inherited | other, sources) for other in entry.history),
    )


@cache
def figure(key: str) -> Figure:
    """The figure of that key; a derived one is computed.

    >>> figure("trainium2.core_rate.bf16_from_clock").to("TFLOPS")
    78.6432
    """
    if key not in _all():
        near = sorted(k for k in _all() if k.rpartition(".")[0] == key.rpartition(".")[0])
        near = near or sorted({k.partition(".")[0] for k in _all()})
        raise KeyError(
            f"no figure {key!r} in utils/facts/data; near it there are {', '.join(near)}"
        )
    result = _all()[key]
    if not result.formula:
        return result
    parts = [figure(part) for part in _parts(result.formula)]
    return dataclasses.replace(
        result,
        value=_computed(result),
        page=parts[0].page,
        source=parts[0].source,
        date=min(part.date for part in parts),
    )


def figures(prefix: str = "") -> dict[str, Figure]:
    """All figures whose key begins with `prefix`, such as "trainium2.rate."."""
    return {key: figure(key) for key in _keys(prefix)}


@cache
def _keys(prefix: str) -> tuple[str, ...]:
    return tuple(key for key in _all() if key.startswith(prefix))


_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def _parts(formula: str) -> list[str]:
    """The keys that a formula names."""
    return re.findall(r"\{([^}]+)\}", formula)


def _computed(derived: Figure) -> float | None:
    """The value of a formula in its declared unit; units are checked on the way. None if a part is
    not known. Raises ValueError if it cannot be computed or gives another unit.
    """
    names = _parts(derived.formula)
    if any(figure(name).value is None for name in names):
        return None
    text = derived.formula
    for place, name in enumerate(names):
        text = text.replace(f"{{{name}}}", f"_{place}")

    def value(node: ast.expr) -> Any:
        match node:
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](value(left), value(right))
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.Name(id=name) if name.startswith("_"):
                part = figure(names[int(name[1:])])
                return units.quantity(part.number, part.unit)
            case ast.Name(id=name):
                return units.quantity(1, name)
        raise ValueError(
            f"{derived.key}: cannot compute {ast.unparse(node)!r} of {derived.formula!r}"
        )

    try:
        return units.magnitude(value(ast.parse(text, mode="eval").body), derived.unit)
    except SyntaxError as error:
        raise ValueError(f"{derived.key}: {derived.formula!r} is no formula: {error.msg}") from None
