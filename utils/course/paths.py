"""The ways to put a model on Trainium: what each is, its state, and which lessons serve it.

They stand in `utils/facts/data/neuron_paths.yaml`; sources and dates are those of the statements
that they name.
"""

import re
from functools import cache

import msgspec

from utils.course import catalog
from utils.course.shown import markdown
from utils.facts import Fact, fact, timeline
from utils.facts.records import content, read_as

FILE = "neuron_paths.yaml"
HEAD = ("path", "what it is", "state, with source", "machines", "lessons here")


class State(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that holds of a path. fact: the key of the statement that says it."""

    state: str
    fact: str

    @property
    def source(self) -> Fact:
        """The statement, with its page and date."""
        return fact(self.fact)

    def __str__(self) -> str:
        return re.sub(r"\{([\d.]+)\}", lambda result: _release(result[1]), self.state)


def _release(version: str) -> str:
    return f"SDK {version} ({timeline.releases().get(version, 'to come')})"


class Path(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One path. what: it is, and for whom. lessons: numbers, the most useful first."""

    name: str
    what: str
    machines: tuple[str, ...]
    states: tuple[State, ...]
    lessons: tuple[str, ...]


@cache
def paths() -> tuple[Path, ...]:
    """All paths, the recommended ones first."""
    return read_as(tuple[Path, ...], content(FILE)["paths"], FILE)


class Paths:
    """The table of all paths: each state links its source and says the date of it."""

    def __repr__(self) -> str:
        lines = []
        for path in paths():
            lines.append(f"{path.name} ({', '.join(path.machines)}): {path.what}")
            lines += [
                f"    {state} [{state.fact}, as of {state.source.date}]" for state in path.states
            ]
            lines.append(f"    lessons {', '.join(path.lessons)}")
        return "\n".join(lines)

    def _repr_markdown_(self) -> str:
        files = {lesson.number: lesson.path.name for lesson in catalog.lessons(catalog.ROOT)}
        rows = [
            (
                f"**{path.name}**",
                path.what,
                "; ".join(f"{s} ([as of {s.source.date}]({s.source.source}))" for s in path.states),
                ", ".join(path.machines),
                ", ".join(f"[{number}]({files[number]})" for number in path.lessons),
            )
            for path in paths()
        ]
        return markdown(HEAD, rows)
