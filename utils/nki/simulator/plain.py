"""A program as plain data: numbers, texts and lists that JSON can hold.

`to_plain` writes it where the kernel's Python ran. `from_plain` reads it elsewhere, and believes
nothing of it: types, names and numbers are checked, the place of every view in its allocation, and
every instruction against the table, with the rules of the target that is asked for. Nothing of the
data is executed, and no memory is set aside for tensors.
"""

import base64
import binascii
import functools
import math
import zlib
from enum import Enum
from typing import Any

import numpy as np

from utils.nki.simulator import capacity, enums, instructions
from utils.nki.simulator.arrays import check_returnable, shapes_of
from utils.nki.simulator.capacity import allocate
from utils.nki.simulator.dtypes import ALL, DType
from utils.nki.simulator.enums import MemoryRegion
from utils.nki.simulator.errors import NkiValidationError, at_line
from utils.nki.simulator.indexing import INDEX_TYPES
from utils.nki.simulator.memory import Storage
from utils.nki.simulator.operators import OPERATORS, Operator
from utils.nki.simulator.program import Core, Instruction, Program, active_core
from utils.nki.simulator.registers import (
    ARITHMETIC,
    HIGHEST,
    LOWEST,
    WIDTHS,
    NkiScalar,
    VirtualRegister,
)
from utils.nki.simulator.table import TABLE, Spec, verdict
from utils.nki.simulator.target import choose
from utils.nki.simulator.tensor import Tensor
from utils.nki.simulator.view import Indirect, View

MOST = 400_000
"""Most instructions, allocations or views of a program, each."""
LARGEST = 2**40
"""Largest number in a shape, a stride or an offset."""
TEXT = 200


class BadProgram(ValueError):
    """Plain data that is no program, or a program that cannot be plain data."""


def record(value: Any) -> dict[str, Any]:
    """A dictionary."""
    if type(value) is not dict:
        raise BadProgram(f"a record is a {type(value).__name__}, not a dict")
    return value


def items(value: Any, most: int = MOST, what: str = "a list") -> list[Any]:
    """A list of at most so many."""
    if type(value) is not list or len(value) > most:
        raise BadProgram(f"{what} is {type(value).__name__} or longer than {most}")
    return value


def integer(value: Any, low: int = 0, high: int = LARGEST) -> int:
    """An int from low to high; true and false are none.

    >>> integer(3, high=7)
    3
    """
    if type(value) is not int or not low <= value <= high:
        raise BadProgram(f"{str(value)[:40]!r} is no integer from {low} to {high}")
    return value


def text(value: Any) -> str:
    """A short text."""
    if type(value) is not str or len(value) > TEXT:
        raise BadProgram(f"{str(value)[:40]!r} is no short text")
    return value


FORMAT = 1


class _Numbers:
    """Gives things numbers in the order in which they are met."""

    def __init__(self) -> None:
        self.of: dict[Any, int] = {}
        self.rows: list[Any] = []

    def add(self, key: Any, row: Any) -> int:
        result = self.of.get(key)
        if result is None:
            result = self.of[key] = len(self.rows)
            self.rows.append(row)
        return result


class _Writer:
    """Collects the parts of a program."""

    def __init__(self) -> None:
        self.views, self.registers, self.forms = _Numbers(), _Numbers(), _Numbers()
        self.met: dict[int, int] = {}
        self.kept: list[Any] = []

    def view(self, tensor: View) -> int:
        known = self.met.get(id(tensor))
        if known is not None:
            return known
        result = tensor.indirect
        if result is None:
            moved = None
        elif isinstance(result.index, VirtualRegister):
            moved = ["register", self.register(result.index), result.scale, result.size, False]
        else:
            moved = ["tile", self.view(result.index), result.scale, result.size, result.by_row]
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
        row: list[Any] = [register.initial, register.loop]
        if isinstance(register, NkiScalar):
            sign, *operands = register.parts or ("",)
            sides = (
                [self.register(side)] if isinstance(side, NkiScalar) else int(side)
                for side in operands
            )
            row += [register.dtype, sign, *sides]
        return self.registers.add(id(register), row)

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
            return {kind: [self.value(item, slots) for item in value]}
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
        [core.index, item.index, [producer.index for producer in item.after]]
        for core in program.cores
        for item in core.instructions
        if item.after
    ]
    return {
        "format": FORMAT,
        "target": program.target.name,
        "kernel": program.kernel,
        "precise": program.precise,
        "storages": [_storage(storage) for storage in program.storages],
        "constants": [
            [item.index, base64.b64encode(zlib.compress(_bytes(item, array))).decode()]
            for item, array in program.constants.items()
        ],
        "inputs": [input_.index for input_ in program.inputs],
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
        return {kind: [_results(item, writer) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[str(key), _results(item, writer)] for key, item in value.items()]}
    return (
        writer.value(value, [])
        if value is None or isinstance(value, (int, float, str))
        else {"other": type(value).__name__}
    )


VIEW_BYTES = 2**31
"""Most bytes that one view reads, counting repetitions."""
CONSTANT_BYTES = 2**26
DIMENSIONS = 8
CHOICES = {
    name: value
    for name, value in vars(enums).items()
    if isinstance(value, type) and issubclass(value, Enum) and value is not Enum
}
NOWHERE = compile("", "<recorded kernel>", "exec")
assert instructions.__all__, "importing the instructions fills TABLE, where no kernel did it before"


def from_plain(data: Any, target: str, precise: bool | None = True) -> Program:
    """The program that `to_plain` wrote, checked again for `target`; it has shapes only.

    precise: whether writes are rounded when it runs; None: as where it was recorded.
    BadProgram: the data is no program. NkiValidationError: an instruction breaks a rule.
    """
    try:
        return _Reader(record(data), target, precise).program
    except (BadProgram, NkiValidationError):
        raise
    except (
        ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError,
        NotImplementedError, binascii.Error, zlib.error,
    ) as error:  # fmt: skip
        raise BadProgram(f"the data is no program: {type(error).__name__}: {error}") from error


def _dtype(value: Any) -> DType:
    return ALL[text(value)]


class _Reader:
    """Builds a program from its parts, in the order in which they depend on each other."""

    def __init__(self, data: dict[str, Any], target: str, precise: bool | None) -> None:
        if data["format"] != FORMAT:
            raise BadProgram(f"format {data['format']!r:.40}, this reads {FORMAT}")
        if type(data["precise"]) is not bool:
            raise BadProgram("precise is neither true nor false")
        self.program = Program(
            choose(target),
            values=False,
            precise=data["precise"] if precise is None else precise,
            kernel=text(data["kernel"]),
        )
        code = items(data["code"], 2, "code")
        self.program.cores = [Core(self.program, i, max(1, len(code))) for i in range(len(code))]
        if not self.program.cores:
            raise BadProgram("a program has one core or two")
        self._storages(items(data["storages"]), items(data["inputs"]))
        self._constants(items(data["constants"]))
        self.registers: list[VirtualRegister] = []
        for entry in items(data["registers"]):  # a scalar comes from those before it
            self.registers.append(self._register(entry))
        self.views: list[Tensor] = []
        for item in items(data["views"]):
            self.views.append(self._view(item))
        self.forms = [self._form(entry) for entry in items(data["forms"])]
        self._code(code, items(data["lines"], len(code)), items(data["turns"]))
        for core, index, producers in items(data["after"]):
            own = self.program.cores[integer(core)].instructions
            own[integer(index)].after = tuple(
                own[integer(entry, 0, index - 1)] for entry in items(producers)
            )
        self.program.returned = self._result(data["results"])
        self.program.results = shapes_of(self.program.returned)
        capacity.check(self.program)

    # ---- memory ----------------------------------------------------------------------------------

    def _storages(self, rows: list[Any], inputs: list[Any]) -> None:
        arguments = {integer(input_, 0, len(rows) - 1) for input_ in inputs}
        grid = len(self.program.cores)
        for number, (shape, dtype, buffer, owner, name, address) in enumerate(rows):
            sizes = tuple(integer(n, 1) for n in items(shape, DIMENSIONS))
            region = MemoryRegion[text(buffer)]
            core = self.program.cores[max(0, integer(owner, -1, grid - 1))]
            if math.prod(sizes) > LARGEST:
                raise BadProgram(f"an allocation of {sizes}")
            if number in arguments:
                if region not in (MemoryRegion.hbm, MemoryRegion.shared_hbm):
                    raise BadProgram(f"an argument in {region.value}")
                storage = self.program.allocate(sizes, _dtype(dtype), region)
                storage.argument = True
                continue
            place = None
            if address is not None:
                partition, byte = items(address, 2)
                place = (integer(partition), integer(byte))
            with active_core(core):
                storage = allocate(core, sizes, _dtype(dtype), region, text(name), place)
            if storage.index != number:
                raise BadProgram(f"allocation {number} is one that exists already")
        self.program.inputs = [self.program.storages[input_] for input_ in inputs]

    def _constants(self, rows: list[Any]) -> None:
        left = CONSTANT_BYTES
        for number, packed in rows:
            storage = self.program.storages[integer(number)]
            wanted = storage.size_bytes
            left -= wanted
            if left < 0:
                raise BadProgram(f"constants of more than {CONSTANT_BYTES} bytes")
            unpacker = zlib.decompressobj()
            result = unpacker.decompress(base64.b64decode(packed, validate=True), wanted + 1)
            if len(result) != wanted:
                raise BadProgram(f"constant {number} has {len(result)} bytes, not {wanted}")
            self.program.constants[storage] = np.frombuffer(result, storage.dtype.numpy)

    def _register(self, row: Any) -> VirtualRegister:
        if len(row) > 2:
            return self._scalar(*row)
        initial, loop = row
        return VirtualRegister(
            None if initial is None else integer(initial, LOWEST, HIGHEST), loop is True
        )

    def _scalar(
        self, initial: Any, _loop: Any, dtype: Any, sign: Any, *operands: Any
    ) -> VirtualRegister:
        """A scalar; those that it comes from stand before it."""
        if dtype not in WIDTHS:
            raise BadProgram(f"a scalar of {dtype!r}")
        if not sign:
            return NkiScalar(dtype, None if initial is None else integer(initial, LOWEST, HIGHEST))
        if sign not in ARITHMETIC or len(operands) != 2:
            raise BadProgram(f"a scalar by {sign!r} of {len(operands)}")
        sides: list[Any] = []
        for side in operands:
            if type(side) is list and len(side) == 1:
                known = self.registers[integer(side[0], 0, len(self.registers) - 1)]
                if not isinstance(known, NkiScalar) or known.dtype != dtype:
                    raise BadProgram(f"{known!r} in the arithmetic of {dtype}")
                sides.append(known)
            else:
                sides.append(integer(side, -(2**63), 2**63 - 1))
        return NkiScalar(dtype, parts=(sign, *sides))

    def _view(self, row: Any) -> Tensor:
        number, dtype, shape, strides, offset, moved = row
        storage = self.program.storages[integer(number)]
        kind = _dtype(dtype)
        sizes = tuple(integer(n, 1) for n in items(shape, DIMENSIONS))
        steps = tuple(integer(n) for n in items(strides, DIMENSIONS))
        if len(sizes) != len(steps) or not sizes or storage.row_bytes % kind.itemsize:
            raise BadProgram(f"a view of {sizes} with strides {steps} as {kind}")
        made = Tensor(storage, kind, sizes, steps, integer(offset))
        if made.size * kind.itemsize > VIEW_BYTES:
            raise BadProgram(f"a view of {sizes} elements")
        first = 1 if storage.on_chip or (moved is not None and moved[4] is True) else 0
        start = made.offset % made.row if storage.on_chip else made.offset
        reach = sum((n - 1) * s for n, s in zip(sizes[first:], steps[first:], strict=True))
        inside = start + reach < made.row
        if storage.on_chip:
            step, rest = divmod(steps[0], made.row)
            last = made.offset // made.row + (sizes[0] - 1) * step
            inside = inside and (rest == 0 or sizes[0] == 1) and last < storage.partitions
            inside = inside and len(sizes) >= 2
        if not inside:
            raise BadProgram(f"a view reaches outside of its allocation: {made!r}")
        return made if moved is None else self._moved(made, moved)

    def _moved(self, view: Tensor, moved: Any) -> Tensor:
        kind, number, scale, size, by_row = moved
        index: Tensor | VirtualRegister
        if kind == "register":
            index = self.registers[integer(number)]
        else:
            index = self.views[integer(number)]
            if (
                index.indirect is not None
                or index.dtype not in INDEX_TYPES
                or (index.buffer is not MemoryRegion.sbuf)
            ):
                raise BadProgram(f"indices in {index!r}")
        count = 1 if kind == "register" else index.size  # type: ignore[union-attr]
        if count != (view.shape[0] if by_row is True else 1):
            raise BadProgram(f"{count} indices for {view!r}")
        if by_row is True and view.storage.on_chip:
            raise BadProgram("rows of a tile are not found at run time")
        result = Indirect(index, integer(scale), integer(size, 1), by_row is True)
        return view.again(view.shape, view.strides, indirect=result)

    # ---- instructions ----------------------------------------------------------------------------

    def _form(self, row: Any) -> tuple[Spec, dict[str, Any]]:
        name, args = row
        spec = TABLE[text(name)]
        if record(args).keys() != spec.defaults.keys():
            raise BadProgram(f"{spec.name} with the arguments {sorted(args)}")
        return spec, args

    def _value(self, plain: Any, slots: Any, depth: int = 0) -> Any:
        if plain is None or type(plain) in (bool, float):
            return plain
        if type(plain) is int:
            return integer(plain, -LARGEST)
        if type(plain) is str:
            return text(plain)
        ((kind, what),) = record(plain).items()
        if kind == "slot":
            rows = self.views if what == "tensor" else self.registers
            return rows[integer(next(slots, None))]
        if kind == "float":
            return float(text(what))
        if kind == "dtype":
            return _dtype(what)
        if kind == "operator":
            return OPERATORS[text(what)]
        if kind == "choice":
            return CHOICES[text(what[0])][text(what[1])]
        if kind in ("list", "tuple") and depth < 4:
            made = [self._value(item, slots, depth + 1) for item in items(what, 4096)]
            return made if kind == "list" else tuple(made)
        raise BadProgram(f"an argument of the kind {kind!r:.40}")

    def _code(self, code: list[Any], lines: list[Any], turns: list[Any]) -> None:
        fixed = functools.cache(self._fix)
        for core, rows, numbers in zip(self.program.cores, code, lines, strict=True):
            if len(items(rows)) != len(items(numbers)):
                raise BadProgram("instructions and line numbers do not agree")
            with active_core(core):
                for row, line in zip(rows, numbers, strict=True):
                    spec, args = self.forms[integer(row[0])]
                    slots = iter(row[1:])
                    constant, moving = fixed(row[0])
                    bound = {**constant}
                    for name in moving:
                        bound[name] = self._value(args[name], slots)
                    if next(slots, None) is not None:
                        raise BadProgram(f"{spec.name} with operands that nothing names")
                    core.instructions.append(self._issue(core, spec, bound, integer(line)))
        for core_index, until in turns:
            core = self.program.cores[integer(core_index)]
            integer(until, 0, len(core.instructions))
        self.program.turns = [(core_index, until) for core_index, until in turns]

    def _fix(self, form: int) -> tuple[dict[str, Any], list[str]]:
        """Arguments of a form that are the same in each instruction, and the names of others."""
        args = self.forms[form][1]
        moving = [name for name, plain in args.items() if "'slot'" in repr(plain)]
        constant = {
            name: None if name in moving else self._value(plain, iter(()))
            for name, plain in args.items()
        }
        return constant, moving

    def _issue(self, core: Core, spec: Spec, bound: dict[str, Any], line: int) -> Instruction:
        if spec.resolve is not None:
            spec.resolve(core, bound)
        for value in bound.values():
            for item in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(item, Tensor) and item.storage.core not in (None, core.index):
                    raise BadProgram(f"core {core.index} uses {item!r} of the other core")
        try:
            checked = verdict(spec, bound, self.program.target)
        except NkiValidationError as error:
            raise at_line(error, (NOWHERE, line)) from None
        return Instruction(checked, bound, None, (NOWHERE, line), len(core.instructions))

    def _result(self, plain: Any, depth: int = 0) -> Any:
        if plain is None or type(plain) in (int, float, str):
            return plain
        ((kind, what),) = record(plain).items()
        if kind == "view":
            tensor = self.views[integer(what)]
            check_returnable(tensor)
            return tensor
        if kind in ("list", "tuple") and depth < 8:
            made = [self._result(item, depth + 1) for item in items(what, 4096)]
            return made if kind == "list" else tuple(made)
        if kind == "dict" and depth < 8:
            return {text(k): self._result(v, depth + 1) for k, v in items(what, 4096)}
        raise BadProgram(f"a result of the kind {kind!r:.40}")
