"""A program as plain data: numbers, texts and lists that JSON can hold.

`to_plain` writes it where the kernel's Python ran; `plain_reader.from_plain` reads it elsewhere.
"""

import base64
import math
import zlib
from enum import Enum
from typing import Any

import numpy as np

from utils.nki.simulator.dtypes import DType
from utils.nki.simulator.memory import Storage
from utils.nki.simulator.operators import Operator
from utils.nki.simulator.program import Program
from utils.nki.simulator.registers import VirtualRegister
from utils.nki.simulator.tensor import Tensor
from utils.nki.simulator.untrusted import BadProgram

FORMAT = 1


class _Numbers:
    """Gives things numbers in the order in which they are met."""

    def __init__(self) -> None:
        self.of: dict[Any, int] = {}
        self.rows: list[Any] = []

    def add(self, key: Any, row: Any) -> int:
        found = self.of.get(key)
        if found is None:
            found = self.of[key] = len(self.rows)
            self.rows.append(row)
        return found


class _Writer:
    """Collects the parts of a program."""

    def __init__(self) -> None:
        self.views, self.registers, self.forms = _Numbers(), _Numbers(), _Numbers()
        self.met: dict[int, int] = {}
        self.kept: list[Any] = []

    def view(self, tensor: Tensor) -> int:
        known = self.met.get(id(tensor))
        if known is not None:
            return known
        found = tensor.indirect
        if found is None:
            moved = None
        elif isinstance(found.index, Tensor):
            moved = ["tile", self.view(found.index), found.scale, found.size, found.by_row]
        else:
            moved = ["register", self.register(found.index), found.scale, found.size, False]
        row = [
            tensor.storage.index, str(tensor.dtype), list(tensor.shape), list(tensor.strides),
            tensor.offset, moved,
        ]  # fmt: skip
        key = (*row[:2], tensor.shape, tensor.strides, tensor.offset, str(moved))
        number = self.met[id(tensor)] = self.views.add(key, row)
        self.kept.append(tensor)  # so that its id is not given to another one
        return number

    def register(self, register: VirtualRegister) -> int:
        self.kept.append(register)
        return self.registers.add(id(register), [register.initial, register.loop])

    def value(self, value: Any, slots: list[int]) -> Any:
        """Plain data for an argument; tensors and registers become slots, numbered apart."""
        if type(value) is Tensor:
            slots.append(self.view(value))
            return {"slot": "tensor"}
        if value is None or isinstance(value, (bool, str)) and not isinstance(value, DType):
            return value
        if isinstance(value, VirtualRegister):
            slots.append(self.register(value))
            return {"slot": "register"}
        if isinstance(value, (int, np.integer)):
            return int(value)
        if isinstance(value, (float, np.floating)):
            return float(value) if math.isfinite(value) else {"float": str(float(value))}
        if isinstance(value, np.bool_):
            return bool(value)
        if isinstance(value, DType):
            return {"dtype": str(value)}
        if isinstance(value, Operator):
            return {"operator": value.name}
        if isinstance(value, Enum):
            return {"choice": [type(value).__name__, value.name]}
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if isinstance(value, (list, tuple)):
            kind = "list" if isinstance(value, list) else "tuple"
            return {kind: [self.value(each, slots) for each in value]}
        raise BadProgram(f"an argument is a {type(value).__name__}: {value!r:.80}")


def to_plain(program: Program) -> dict[str, Any]:
    """Everything that is needed to run the program again; no numbers of tensors but constants."""
    writer = _Writer()
    code, lines = [], []
    for core in program.cores:
        rows: list[list[int]] = []
        for instruction in core.instructions:
            slots: list[int] = []
            spec = instruction.checked.spec
            args = {name: writer.value(value, slots) for name, value in instruction.args.items()}
            rows.append([writer.forms.add((spec.name, str(args)), [spec.name, args]), *slots])
        code.append(rows)
        lines.append([instruction.line[1] for instruction in core.instructions])
    returned = _results(program.returned, writer)
    after = [
        [core.index, each.index, [producer.index for producer in each.after]]
        for core in program.cores
        for each in core.instructions
        if each.after
    ]
    return {
        "format": FORMAT,
        "target": program.target.name,
        "kernel": program.kernel,
        "precise": program.precise,
        "storages": [_storage(each) for each in program.storages],
        "constants": [
            [each.index, base64.b64encode(zlib.compress(_bytes(each, array))).decode()]
            for each, array in program.constants.items()
        ],
        "inputs": [each.index for each in program.inputs],
        "registers": writer.registers.rows,
        "views": writer.views.rows,
        "forms": writer.forms.rows,
        "code": code,
        "lines": lines,
        "turns": [list(turn) for turn in program.turns],
        "after": after,
        "results": returned,
    }


def _storage(storage: Storage) -> list[Any]:
    address = None if storage.address is None else list(storage.address)
    core = -1 if storage.core is None else storage.core
    return [
        list(storage.shape), str(storage.dtype), storage.buffer.name, core, storage.name, address,
    ]  # fmt: skip


def _bytes(storage: Storage, array: np.ndarray) -> bytes:
    return np.ascontiguousarray(array, storage.dtype.numpy).tobytes()


def _results(value: Any, writer: _Writer) -> Any:
    if isinstance(value, Tensor):
        return {"view": writer.view(value)}
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_results(each, writer) for each in value]}
    if isinstance(value, dict):
        return {"dict": [[str(key), _results(each, writer)] for key, each in value.items()]}
    return (
        writer.value(value, [])
        if value is None or isinstance(value, (int, float, str))
        else {"other": type(value).__name__}
    )
