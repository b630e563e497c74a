"""Order that a kernel asks for beyond what its data ask: `kernel.with_schedule([...])`."""

from collections.abc import Iterable
from typing import Any

from utils.nki.simulator.errors import refuse
from utils.nki.simulator.program import Instruction, Program, activated

Edges = tuple[tuple[str, tuple[str, ...]], ...]
"""Names of instructions, each with the names of those that it waits for."""


def edges_of(schedule: Iterable[tuple[str, Any]]) -> Edges:
    """A schedule as `with_schedule` takes it: pairs of a name and a name, or a list of names.

    >>> edges_of([("plus", "recip"), ("store", ["plus", "recip"])])
    (('plus', ('recip',)), ('store', ('plus', 'recip')))
    """
    return tuple(
        (name, (before,) if isinstance(before, str) else tuple(before)) for name, before in schedule
    )


def apply(program: Program, edges: Edges) -> None:
    """Make the named instructions of each core wait for each other."""
    for core in program.cores if edges else ():
        named: dict[str, list[Instruction]] = {}
        for each in core.instructions:
            if each.name:
                named.setdefault(each.name, []).append(each)
        with activated(core):
            for name, producers in edges:
                for later in _those(named, name):
                    later.depends_on(*_earlier(later, named, producers))


def _those(named: dict[str, list[Instruction]], name: str) -> list[Instruction]:
    if name not in named:
        raise refuse(
            f"with_schedule: no instruction has the name {name!r}; there are "
            f"{', '.join(sorted(named)) or 'none'}.",
            "edges are between instructions that were given a name.",
            f"pass name={name!r} to the instruction.",
        )
    return named[name]


def _earlier(
    later: Instruction, named: dict[str, list[Instruction]], producers: Iterable[str]
) -> list[Instruction]:
    found = [each for name in producers for each in _those(named, name)]
    for each in found:
        if each.index >= later.index:
            raise refuse(
                f"with_schedule: {later.name!r} waits for {each.name!r}, which comes after it in "
                "the kernel.",
                "the simulator issues instructions in the order of the source.",
                f"write {each.name!r} before {later.name!r}.",
            )
    return found
