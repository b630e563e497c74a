"""A program from plain data (see `plain`), of which nothing is believed.

Types, names and numbers are checked, the place of every view in its allocation, and every
instruction against the table, with the rules of the target that is asked for. Nothing of the data
is executed, and no memory is set aside for tensors.
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
from utils.nki.simulator.dtypes import ALL, DType
from utils.nki.simulator.enums import MemoryRegion
from utils.nki.simulator.errors import NkiValidationError, said_of
from utils.nki.simulator.indirect import INDEX_TYPES, Indirect
from utils.nki.simulator.instruction import TABLE, Spec, verdict
from utils.nki.simulator.memory import Storage, allocate
from utils.nki.simulator.operators import OPERATORS
from utils.nki.simulator.plain import FORMAT
from utils.nki.simulator.program import Core, Instruction, Program, activated
from utils.nki.simulator.registers import HIGHEST, LOWEST, VirtualRegister
from utils.nki.simulator.target import chosen
from utils.nki.simulator.tensor import Tensor
from utils.nki.simulator.untrusted import LARGEST, BadProgram, integer, items, record, text

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
            chosen(target),
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
        self.registers = [self._register(each) for each in items(data["registers"])]
        self.views: list[Tensor] = []
        for each in items(data["views"]):
            self.views.append(self._view(each))
        self.forms = [self._form(each) for each in items(data["forms"])]
        self._code(code, items(data["lines"], len(code)), items(data["turns"]))
        for core, index, producers in items(data["after"]):
            own = self.program.cores[integer(core)].instructions
            own[integer(index)].after = tuple(
                own[integer(each, 0, index - 1)] for each in items(producers)
            )
        self.program.returned = self._result(data["results"])
        self.program.results = shapes_of(self.program.returned)
        capacity.check(self.program)

    # ---- memory ----------------------------------------------------------------------------------

    def _storages(self, rows: list[Any], inputs: list[Any]) -> None:
        arguments = {integer(each, 0, len(rows) - 1) for each in inputs}
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
                storage = Storage(self.program, sizes, _dtype(dtype), region)
                storage.argument = True
                continue
            place = None
            if address is not None:
                partition, byte = items(address, 2)
                place = (integer(partition), integer(byte))
            with activated(core):
                storage = allocate(core, sizes, _dtype(dtype), region, text(name), place)
            if storage.index != number:
                raise BadProgram(f"allocation {number} is one that exists already")
        self.program.inputs = [self.program.storages[each] for each in inputs]

    def _constants(self, rows: list[Any]) -> None:
        left = CONSTANT_BYTES
        for number, packed in rows:
            storage = self.program.storages[integer(number)]
            wanted = storage.size_bytes
            left -= wanted
            if left < 0:
                raise BadProgram(f"constants of more than {CONSTANT_BYTES} bytes")
            unpacker = zlib.decompressobj()
            found = unpacker.decompress(base64.b64decode(packed, validate=True), wanted + 1)
            if len(found) != wanted:
                raise BadProgram(f"constant {number} has {len(found)} bytes, not {wanted}")
            self.program.constants[storage] = np.frombuffer(found, storage.dtype.numpy)

    def _register(self, row: Any) -> VirtualRegister:
        initial, loop = row
        return VirtualRegister(
            None if initial is None else integer(initial, LOWEST, HIGHEST), loop is True
        )

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
        found = Indirect(index, integer(scale), integer(size, 1), by_row is True)
        return view.again(view.shape, view.strides, indirect=found)

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
            made = [self._value(each, slots, depth + 1) for each in items(what, 4096)]
            return made if kind == "list" else tuple(made)
        raise BadProgram(f"an argument of the kind {kind!r:.40}")

    def _code(self, code: list[Any], lines: list[Any], turns: list[Any]) -> None:
        fixed = functools.cache(self._fixed)
        for core, rows, numbers in zip(self.program.cores, code, lines, strict=True):
            if len(items(rows)) != len(items(numbers)):
                raise BadProgram("instructions and line numbers do not agree")
            with activated(core):
                for row, line in zip(rows, numbers, strict=True):
                    spec, args = self.forms[integer(row[0])]
                    slots = iter(row[1:])
                    constant, moving = fixed(row[0])
                    bound = {**constant}
                    for name in moving:
                        bound[name] = self._value(args[name], slots)
                    if next(slots, None) is not None:
                        raise BadProgram(f"{spec.name} with operands that nothing names")
                    core.instructions.append(self._issued(core, spec, bound, integer(line)))
        for core_index, until in turns:
            core = self.program.cores[integer(core_index)]
            integer(until, 0, len(core.instructions))
        self.program.turns = [(core_index, until) for core_index, until in turns]

    def _fixed(self, form: int) -> tuple[dict[str, Any], list[str]]:
        """Arguments of a form that are the same in each instruction, and the names of others."""
        args = self.forms[form][1]
        moving = [name for name, plain in args.items() if "'slot'" in repr(plain)]
        constant = {
            name: None if name in moving else self._value(plain, iter(()))
            for name, plain in args.items()
        }
        return constant, moving

    def _issued(self, core: Core, spec: Spec, bound: dict[str, Any], line: int) -> Instruction:
        if spec.resolve is not None:
            spec.resolve(core, bound)
        for value in bound.values():
            for each in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(each, Tensor) and each.storage.core not in (None, core.index):
                    raise BadProgram(f"core {core.index} uses {each!r} of the other core")
        try:
            checked = verdict(spec, bound, self.program.target)
        except NkiValidationError as error:
            raise said_of(error, (NOWHERE, line)) from None
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
            made = [self._result(each, depth + 1) for each in items(what, 4096)]
            return made if kind == "list" else tuple(made)
        if kind == "dict" and depth < 8:
            return {text(k): self._result(v, depth + 1) for k, v in items(what, 4096)}
        raise BadProgram(f"a result of the kind {kind!r:.40}")
