"""Which allocations the instructions of a program touch, and when for the last time."""

from typing import Any

from utils.simulator.arrays import is_tensor, mapped
from utils.simulator.memory import Storage
from utils.simulator.program import Core, Instruction, Program
from utils.simulator.tensor import Tensor


def storages_of(value: Any) -> list[Storage]:
    """The allocations that an argument of an instruction touches, those of its indices included."""
    if type(value) is Tensor:
        found = value.indirect
        if found is not None and isinstance(found.index, Tensor):
            return [value.storage, found.index.storage]
        return [value.storage]
    if type(value) in (list, tuple):
        return [each for part in value for each in storages_of(part)]
    return []


def returned_tensors(program: Program) -> list[Tensor]:
    """The tensors that a kernel returned, in order, however they are packed."""
    found: list[Tensor] = []
    mapped(program.returned, lambda each: found.append(each) or each, is_tensor)
    return found


def last_uses(program: Program, order: list[tuple[Core, Instruction]]) -> dict[int, list[Storage]]:
    """For places in the order of execution, the allocations that nothing uses afterwards.

    Arguments and results of the kernel are not among them.
    """
    uses: dict[Storage, int] = {}
    for place, (_, instruction) in enumerate(order):
        for value in instruction.args.values():
            for storage in storages_of(value):
                uses[storage] = place
    kept = {*program.inputs, *(each.storage for each in returned_tensors(program))}
    ends: dict[int, list[Storage]] = {}
    for storage, place in uses.items():
        if storage not in kept:
            ends.setdefault(place, []).append(storage)
    return ends
