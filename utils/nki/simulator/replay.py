"""Running a recorded program again, with numbers and without the kernel's Python.

    program = launch.run(kernel, (Shape((128, 512)),), {}, values=False)
    data = to_plain(program)                 # plain data, for example for another process
    again = from_plain(data, "trn2")         # everything is checked again
    (result,) = replay(again, (array,))

The kernel's Python has run without numbers, so whatever `replay` computes was computed by
instructions. Memory that nothing will use any more is given back.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from utils.nki.simulator.arrays import array_of, fill
from utils.nki.simulator.dtypes import dtype_of
from utils.nki.simulator.errors import DoubtfulKernel, NkiValidationError, at_line, refuse
from utils.nki.simulator.memory import Storage
from utils.nki.simulator.plain import BadProgram, from_plain, to_plain
from utils.nki.simulator.program import Core, Instruction, Program, activate, active
from utils.nki.simulator.registers import NkiScalar, VirtualRegister
from utils.nki.simulator.tensor import Tensor, whole
from utils.nki.simulator.uses import last_uses, returned_tensors
from utils.nki.simulator.view import Indirect

__all__ = ["BadProgram", "from_plain", "replay", "replay_all", "to_plain"]

LIVE_BYTES = 2**32
"""Most memory of tensors that are in use at one time."""


def replay(program: Program, inputs: Any) -> tuple[np.ndarray, ...]:
    """The results of `program` for these arrays: its tensors, in the order of what was returned.

    inputs: arrays for `program.inputs`, with their shapes and types. Results that are the same
    tensor as an argument hold what it was changed to.
    """
    return replay_all(program, inputs)[0]


def replay_all(
    program: Program, inputs: Any
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """The results, and the arguments as they are afterwards."""
    if active() is not None:
        raise refuse(
            "replay: called inside a kernel.",
            "a core runs one program.",
            "replay after the kernel has ended.",
        )
    again = _Again(program, tuple(inputs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtfulKernel)
        again.run()
    results = tuple(
        array_of(again.tensor(returned_tensor)) for returned_tensor in returned_tensors(program)
    )
    return results, tuple(array_of(again.whole_of(input_)) for input_ in program.inputs)


class _Meeting:
    """Stands for the turns of two cores: a core that waits has nothing to do before the other one
    has come, because instructions are run in the order in which they were recorded."""

    def __init__(self) -> None:
        self.waiting: dict[int, Callable[[], bool]] = {}

    def wait(self, core: Core, ready: Callable[[], bool], what: str) -> None:
        if not ready():
            self.waiting[core.index] = ready

    def check(self, core: int) -> None:
        ready = self.waiting.pop(core, None)
        if ready is not None and not ready():
            raise BadProgram(f"core {core} goes on before the other core has met it")


class _Again:
    """One run of a recorded program."""

    def __init__(self, program: Program, inputs: tuple[Any, ...]) -> None:
        self.recorded = program
        self.live = Program(program.target, True, program.precise, program.kernel)
        self.meeting = _Meeting()
        self.live.cores = [
            Core(self.live, core.index, core.grid, switch=self.meeting) for core in program.cores
        ]
        self.storages: dict[int, Storage] = {}
        self.tensors: dict[int, dict[int, Tensor]] = {}
        self.registers: dict[int, VirtualRegister] = {}
        self.bytes = 0
        if len(inputs) != len(program.inputs):
            raise BadProgram(f"{len(inputs)} arrays; the program takes {len(program.inputs)}")
        for storage, array in zip(program.inputs, inputs, strict=True):
            result = (tuple(array.shape), dtype_of(array.dtype))
            if result != (storage.shape, storage.dtype):
                raise BadProgram(
                    f"an argument is {result[0]} {result[1]}; the program takes {storage.shape} "
                    f"{storage.dtype}"
                )
            fill(self.storage(storage), array)
        for storage, array in program.constants.items():
            fill(self.storage(storage), np.asarray(array).reshape(storage.shape))

    def storage(self, recorded: Storage) -> Storage:
        """The allocation that stands for a recorded one, made when it is first needed."""
        made = self.storages.get(recorded.index)
        if made is None:
            self.bytes += recorded.size_bytes
            if self.bytes > LIVE_BYTES:
                raise BadProgram(f"more than {LIVE_BYTES} bytes of tensors are in use at one time")
            form = recorded.index, recorded.shape, recorded.dtype, recorded.buffer
            made = Storage(*form, precise=self.live.precise, address=recorded.address)
            self.storages[recorded.index] = made  # kept here alone, given back when it is done
        return made

    def whole_of(self, recorded: Storage) -> Tensor:
        return whole(self.storage(recorded))

    def tensor(self, recorded: Tensor) -> Tensor:
        """The view that stands for a recorded one."""
        views = self.tensors.setdefault(recorded.storage.index, {})
        made = views.get(id(recorded))
        if made is None:
            form = recorded.dtype, recorded.shape, recorded.strides, recorded.offset
            result = recorded.indirect
            if result is not None:
                result = Indirect(
                    self.value(result.index), result.scale, result.size, result.by_row
                )
            made = Tensor(self.storage(recorded.storage), *form, result)
            views[id(recorded)] = made
        return made

    def value(self, recorded: Any) -> Any:
        """An argument of an instruction, with the tensors and registers of this run."""
        kind = type(recorded)
        if kind is Tensor:
            return self.tensor(recorded)
        if kind is VirtualRegister or kind is NkiScalar:
            made = self.registers.get(id(recorded))
            if made is None:
                made = self.registers[id(recorded)] = self.register(recorded)
            return made
        if kind is list or kind is tuple:
            return kind(self.value(item) for item in recorded)
        return recorded

    def register(self, recorded: VirtualRegister) -> VirtualRegister:
        """The register or scalar that stands for a recorded one."""
        if not isinstance(recorded, NkiScalar):
            return VirtualRegister(recorded.initial, recorded.loop)
        if recorded.parts is None:
            return NkiScalar(recorded.dtype, recorded.initial)
        sign, left, right = recorded.parts
        return NkiScalar(recorded.dtype, parts=(sign, self.value(left), self.value(right)))

    def run(self) -> None:
        order = list(self.recorded.in_order())
        last = last_uses(self.recorded, order)
        before = activate(None)
        try:
            for place, (core, instruction) in enumerate(order):
                now = self.live.cores[core.index]
                activate(now)
                if self.meeting.waiting:
                    self.meeting.check(core.index)
                args = {name: self.value(item) for name, item in instruction.args.items()}
                self._execute(instruction, args)
                if place in last:
                    self._give_back(last[place])
            for core in self.live.cores:
                self.meeting.check(core.index)
        finally:
            activate(before)

    def _execute(self, instruction: Instruction, args: dict[str, Any]) -> None:
        try:
            instruction.checked.spec.body(**args)
        except NkiValidationError as error:
            raise at_line(error, instruction.line) from None
        except (BadProgram, MemoryError):
            raise
        except Exception as error:  # a record that somebody made up
            raise BadProgram(f"{instruction!r}: {type(error).__name__}: {error}") from error

    def _give_back(self, done: list[Storage]) -> None:
        for recorded in done:
            self.tensors.pop(recorded.index, None)
            if self.storages.pop(recorded.index, None) is not None:
                self.bytes -= recorded.size_bytes
