"""Which allocations the instructions of a program touch, and when for the last time."""

from typing import Any

from utils.nki.simulator.arrays import collect, is_tensor
from utils.nki.simulator.memory import Storage
from utils.nki.simulator.program import Core, Instruction, Program
from utils.nki.simulator.table import Checked
from utils.nki.simulator.tensor import Tensor


def storages_of(value: Any) -> list[Storage]:
    """The allocations that an argument of an instruction touches, those of its indices included."""
    if type(value) is Tensor:
        result = value.indirect
        if result is not None and isinstance(result.index, Tensor):
            return [value.storage, result.index.storage]
        return [value.storage]
    if type(value) in (list, tuple):
        return [item for part in value for item in storages_of(part)]
    return []


def tensors_of(instruction: Instruction, reads: bool) -> list[Tensor]:
    """The tensors that an instruction reads, or those that it writes; some take lists of them."""
    spec, result = instruction.checked.spec, []
    for name in spec.inputs if reads else spec.outputs:
        value = instruction.args[name]
        item = value if isinstance(value, (list, tuple)) else (value,)
        result += [part for part in item if isinstance(part, Tensor)]
    return result


def uses(instructions: list[Instruction]) -> list[tuple[Storage, int]]:
    """The allocations that instructions touch, each with the place of the instruction in the list.

    Which operands are tensors is the same for all instructions of one layout.
    """
    tensors: dict[Checked, tuple[str, ...] | None] = {}
    results: list[tuple[Storage, int]] = []
    for place, instruction in enumerate(instructions):
        checked, args = instruction.checked, instruction.args
        if checked not in tensors:
            tensors[checked] = _direct(args)
        names = tensors[checked]
        if names is None:
            results += [(item, place) for value in args.values() for item in storages_of(value)]
        else:
            for name in names:
                results.append((args[name].storage, place))
    return results


def _direct(args: dict[str, Any]) -> tuple[str, ...] | None:
    """The names of tensors, or None where there are lists of them or some found at run time."""
    names = tuple(name for name, value in args.items() if storages_of(value))
    plain = all(type(args[name]) is Tensor and args[name].indirect is None for name in names)
    return names if plain else None


def returned_tensors(program: Program) -> list[Tensor]:
    """The tensors that a kernel returned, in order, however they are packed."""
    return collect(program.returned, is_tensor)


def last_uses(program: Program, order: list[tuple[Core, Instruction]]) -> dict[int, list[Storage]]:
    """For places in the order of execution, the allocations that nothing uses afterwards.

    Arguments and results of the kernel are not among them.
    """
    kept = {*program.inputs, *(tensor.storage for tensor in returned_tensors(program))}
    ends: dict[int, list[Storage]] = {}
    for storage, place in dict(uses([instruction for _, instruction in order])).items():
        if storage not in kept:
            ends.setdefault(place, []).append(storage)
    return ends
