"""What the inference of `tensor_kinds` knows values to be, and how two of them are put together."""

import ast
from dataclasses import dataclass
from typing import Any, NamedTuple

TENSOR, MAYBE, HOST, NUMBER, NONE, UNKNOWN = "tensor", "maybe", "host", "number", "none", ""
MODULE, LOADER, BATCH, SAMPLER = "module", "loader", "batch", "distribution"


class Many(NamedTuple):
    """A list, a generator or the like whose elements are alike."""

    of: "Value"


@dataclass(frozen=True, eq=False)
class Table:
    """A dictionary that was written out, by its keys."""

    of: dict[str, "Value"]


class Made(NamedTuple):
    """An object of a class of the tree; `tensors`, a `tensor_kinds.Tensors`, knows the file that
    defines the class.
    """

    tensors: Any
    node: ast.ClassDef


Value = str | Many | Table | Made | tuple


def flat(value: Value) -> str:
    """The kind of a value in one word; see `Tensors.kind`."""
    if isinstance(value, Made):
        return "module" if value.tensors.derives(value.node) else ""
    if isinstance(value, Many | tuple | Table):
        inner = value.of.values() if isinstance(value, Table) else [*value]
        kinds = {flat(one) for one in inner}
        return "many" if kinds & {"tensor", "many"} else "host" if kinds <= {"host"} else ""
    if value in (NUMBER, NONE):
        return HOST
    return {LOADER: BATCH, SAMPLER: "", "recurrent": MODULE}.get(value, value)


def join(values: list[Value]) -> Value:
    """What a name is that may have any of these values."""
    kept = [one for one in values if one != NONE]
    if not kept:
        return NONE if values else UNKNOWN
    first = kept[0]
    if all(one == first for one in kept):
        return first
    words = {one for one in kept if isinstance(one, str)}
    others = [one for one in kept if not isinstance(one, str)]
    if others:
        if words - {NUMBER, HOST, UNKNOWN}:
            return TENSOR if words == {TENSOR} and len(kept) > len(others) else UNKNOWN
        lists = [one for one in others if isinstance(one, Many)]
        if len(lists) == len(others):
            return Many(join([one.of for one in lists]))
        plain = [one for one in others if type(one) is tuple]
        if len(plain) == len(others) and len({len(one) for one in plain}) == 1:
            return tuple(join(list(parts)) for parts in zip(*plain, strict=True))
        if len(others) == 1 or isinstance(others[0], Table):
            return others[0]
        return UNKNOWN
    if TENSOR in words:
        # total = 0, and then total += loss
        return TENSOR if words <= {TENSOR, NUMBER, UNKNOWN, BATCH, MAYBE} else MAYBE
    if MAYBE in words:
        return MAYBE
    if words <= {NUMBER, HOST}:
        return HOST
    if words <= {MODULE, UNKNOWN, "recurrent"}:
        return MODULE
    return words.pop() if len(words) == 1 else UNKNOWN


def either(values: list[Value]) -> Value:
    """What is computed from values."""
    if TENSOR in values:
        return TENSOR
    if MAYBE in values:
        return MAYBE
    if all(one in (HOST, NUMBER) for one in values):
        return HOST
    return values[0] if isinstance(values[0], Many) and len(values) == 2 else UNKNOWN


def iterated(value: Value) -> Value:
    """What a loop over a value gives."""
    if isinstance(value, Many):
        return value.of
    if isinstance(value, Made):
        return UNKNOWN
    if isinstance(value, tuple):
        return join(list(value))
    if isinstance(value, Table):
        return HOST
    if value == LOADER:
        return BATCH
    if value == BATCH:
        return TENSOR
    return value if value in (TENSOR, MAYBE, HOST, MODULE) else UNKNOWN


def part(value: Value, index: int) -> Value:
    """What is unpacked from a value at a place."""
    if isinstance(value, tuple) and not isinstance(value, Many | Made):
        return value[index] if 0 <= index < len(value) else join(list(value))
    if value == HOST:
        return HOST
    return UNKNOWN if value == LOADER else iterated(value)
