"""The table of symptoms: what is seen, why, where to look, what to write, and which tool of AWS
Neuron should show it. Written once, in `utils/facts/data/symptoms.yaml`.
"""

from dataclasses import dataclass
from functools import cache

from utils.facts.records import content
from utils.facts.statements import fact
from utils.facts.tables import markdown


@dataclass(frozen=True)
class Symptom:
    """One row. look, fix: here. explorer, top, monitor: what Neuron's tools should show for it, by
    their documentation. where: the place in the lessons at which it can be run. sources: keys of
    `utils.facts.fact`.
    """

    key: str
    symptom: str
    cause: str
    look: str
    fix: str
    where: str
    explorer: str
    top: str
    monitor: str
    sources: tuple[str, ...]


@cache
def symptoms() -> tuple[Symptom, ...]:
    """All of them, in the order of the table.

    >>> [each.key for each in symptoms()][:2]
    ['starved', 'recompiled']
    """
    entries = content("symptoms.yaml")["symptoms"]
    rows = tuple(
        Symptom(key=key, **{**entry, "sources": tuple(entry["sources"])})
        for key, entry in entries.items()
    )
    for row in rows:
        for source in row.sources:
            fact(source)  # raises for a key that is not there
    return rows


_HERE = {"symptom": "symptom", "cause": "cause", "look": "what to look at", "fix": "what to write",
         "where": "run it in"}  # fmt: skip
_NEURON = {"symptom": "symptom", "explorer": "`neuron-explorer`", "top": "`neuron-top`",
           "monitor": "`neuron-monitor`"}  # fmt: skip


class Table:
    """The symptoms as a Markdown table.

    neuron: with what Neuron's tools should show, instead of cause and cure.
    """

    def __init__(self, neuron: bool = False) -> None:
        self.columns = _NEURON if neuron else _HERE

    def _repr_markdown_(self) -> str:
        rows = [tuple(getattr(row, name) for name in self.columns) for row in symptoms()]
        return markdown(tuple(self.columns.values()), rows)

    __repr__ = _repr_markdown_
