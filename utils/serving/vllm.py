"""What vLLM on Neuron calls the parts of a serving engine, and which of them it has.

They stand in `utils/facts/data/vllm_neuron.yaml`; sources and dates are those of the statements
that they name.
"""

from functools import cache

import msgspec

from utils.facts import fact
from utils.facts.records import content, read_as
from utils.facts.tables import columns, markdown

FILE = "vllm_neuron.yaml"
HEAD = ("part", "section", "options", "in vLLM on Neuron")
STATES = ("yes", "partly", "no")


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of an engine. section: of lesson 16. options: names in vLLM and its neuron_config.
    state: whether it is there, one of STATES, and what is to be known. facts: who says so.
    """

    part: str
    section: int
    options: tuple[str, ...]
    state: str
    facts: tuple[str, ...]


@cache
def parts() -> tuple[Part, ...]:
    """All parts, in the order of the lesson."""
    return read_as(tuple[Part, ...], content(FILE)["parts"], FILE)


class Parts:
    """The table of all parts: each state links its source and says the date of it."""

    def __repr__(self) -> str:
        rows = [(item.part, f"{item.state} [{', '.join(item.facts)}]") for item in parts()]
        return "\n".join(columns(rows, indent=""))

    def _repr_markdown_(self) -> str:
        rows = []
        for item in parts():
            options = ", ".join(f"`{option}`" for option in item.options)
            sources = [fact(key) for key in item.facts]
            dates = ", ".join(f"[{source.date}]({source.source})" for source in sources)
            rows.append((item.part, str(item.section), options, f"{item.state} ({dates})"))
        return markdown(HEAD, rows)
