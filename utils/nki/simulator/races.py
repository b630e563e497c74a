"""Two cores at one place of shared memory at the same time, of which one writes.

Cores run at once and are ordered only where they meet: at a barrier, an exchange of tiles, a
collective. Between two meetings of the same number everything of one core may come before or after
everything of the other. Where both write the same values to the same place, which is work done
twice, the order does not matter. Elements that are found at run time are not compared, so nothing
is said of them.
"""

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from utils.nki.simulator.errors import Line, doubt, show_line
from utils.nki.simulator.memory import Storage
from utils.nki.simulator.program import Instruction, Program
from utils.nki.simulator.tensor import Tensor
from utils.nki.simulator.uses import tensors_of

EFFORT = 10_000
"""Steps that numpy may take to compare two strided views; beyond that they count as apart."""
MOST_PAIRS = 20_000


@dataclass
class _Accesses:
    """The views of one allocation that a core touches between two meetings, each once."""

    reads: "Views" = field(default_factory=dict)
    writes: "Views" = field(default_factory=dict)


Views = dict[tuple, tuple[Tensor, Line, list[int]]]
"""By place: the view, its line, and for writes the fingerprints of what was written."""
Epochs = dict[tuple[int, Storage], _Accesses]


def is_meeting(instruction: Instruction) -> bool:
    """Whether both cores must be here before either goes on."""
    spec = instruction.checked.spec
    return spec.name in ("core_barrier", "sendrecv") or spec.space == "collectives"


def warn(program: Program) -> None:
    """Say where two cores use the same elements unordered, with both places."""
    if len(program.cores) != 2 or not program.values:
        return
    one, two = (_accesses(core.instructions) for core in program.cores)
    for key in one.keys() & two.keys():
        _drop_equal(one[key].writes, two[key].writes)
        for mine, other, what in (
            (one[key].writes, two[key].writes, "both cores write"),
            (one[key].writes, two[key].reads, "core 0 writes and core 1 reads"),
            (one[key].reads, two[key].writes, "core 0 reads and core 1 writes"),
        ):
            result = _meeting_views(mine, other)
            if result is not None:
                _say(program, what, *result)
                break


def _accesses(instructions: list[Instruction]) -> Epochs:
    made: Epochs = defaultdict(_Accesses)
    epoch = 0
    for instruction in instructions:
        if is_meeting(instruction):
            epoch += 1
            continue
        for reads in (True, False):
            for view in tensors_of(instruction, reads):
                if view.storage.core is None and not view.storage.on_chip and not view.indirect:
                    accesses = made[epoch, view.storage]
                    views = accesses.reads if reads else accesses.writes
                    place = (view.offset, view.shape, view.strides, view.dtype)
                    _, _, wrote = views.setdefault(place, (view, instruction.line, []))
                    wrote.append(instruction.wrote)
    return made


def _drop_equal(mine: Views, other: Views) -> None:
    """Forget the writes of the same values to the same place."""
    for place in mine.keys() & other.keys():
        if mine[place][2] == other[place][2]:
            del mine[place], other[place]


def _meeting_views(mine: Views, other: Views) -> tuple[Tensor, Line, Line] | None:
    """A view of each side that share elements, if any: the first one and both lines."""
    compared = 0
    for view, line, _ in mine.values():
        array = view.array()
        for against, where, _ in other.values():
            there = against.array()
            if not np.may_share_memory(array, there):
                continue
            compared += 1
            if compared > MOST_PAIRS:
                return None
            try:
                if np.shares_memory(array, there, EFFORT):  # type: ignore[arg-type]
                    return view, line, where
            except np.exceptions.TooHardError:
                continue
    return None


def _say(program: Program, what: str, view: Tensor, line: Line, where: Line) -> None:
    if program.first(("race", line, where)):
        doubt(
            f"{what} elements of {view!r} between the same two meetings; the other place is "
            f"{show_line(where)}.",
            "the two cores run at the same time, so either may come first on the device; here they "
            "take turns.",
            "nisa.core_barrier(tensor, (0, 1)) between the two, or give each core its own part.",
            line,
        )
