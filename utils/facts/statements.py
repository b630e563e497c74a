"""Statements that the course quotes, most of them on software, each with source, status and date.

They are written once, in `utils/facts/data/software.yaml`; lessons name them by key, and the list
of sources at the end of a lesson is made from the same keys.
"""

import datetime
from functools import cache

import msgspec

from utils.facts.records import content, read_as


class Fact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One quoted statement: what is said, who says it, how well that is founded, and as of when."""

    key: str
    text: str
    source: str
    status: str
    date: datetime.date


@cache
def facts() -> dict[str, Fact]:
    """All statements by key."""
    entries = content("software.yaml")["facts"]
    return {
        key: read_as(Fact, {**entry, "key": key}, f"software.yaml, {key}")
        for key, entry in entries.items()
    }


def fact(key: str) -> Fact:
    """The fact of that key.

    >>> fact("torchneuron-status").status
    'primary'
    """
    if key not in facts():
        raise KeyError(
            f"no fact {key!r} in utils/facts/data; there are {', '.join(sorted(facts()))}"
        )
    return facts()[key]


class Sources:
    """The list of sources that ends a lesson, shown as Markdown."""

    def __init__(self, *keys: str) -> None:
        self.facts = tuple(map(fact, keys))

    def __repr__(self) -> str:
        return "\n".join(f"{f.key}: {f.text} ({f.status}, {f.date}) {f.source}" for f in self.facts)

    def _repr_markdown_(self) -> str:
        return "\n".join(
            f"- `{f.key}`: {f.text} ([{f.status}, {f.date}]({f.source}))" for f in self.facts
        )
