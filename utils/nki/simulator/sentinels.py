"""Where a result got numbers from that nobody wrote.

Memory that nobody wrote holds NaN, or 4 in integer types, and computing with it is legal: partly
filled tiles do. Only when a result holds such a value, the record is followed from the beginning,
and the allocation is named that the value came from.
"""

from typing import Any

import numpy as np

from utils.nki.simulator.dtypes import sentinel
from utils.nki.simulator.errors import Line, doubt, show_line
from utils.nki.simulator.instructions.vector import KEEP
from utils.nki.simulator.memory import Storage
from utils.nki.simulator.program import Instruction, Program
from utils.nki.simulator.tensor import Tensor, whole
from utils.nki.simulator.uses import last_uses, returned_tensors

CLEAN = -1
FULL = frozenset(("nc_matmul", "nc_matmul_mx", "nc_transpose", "dma_transpose"))


def warn(program: Program) -> None:
    """Say which allocations were read before they were written, where that shows in a result."""
    suspects = [output for output in outputs(program) if holds_sentinel(output)]
    if not suspects:
        return
    origins = _Origins(program)
    order = list(program.in_order())
    last = last_uses(program, order)
    for place, (_, instruction) in enumerate(order):
        origins.follow(instruction)
        for storage in last.get(place, ()):
            origins.maps.pop(storage.index, None)
    for tensor in suspects:
        for number in origins.of_sentinels(tensor):
            _say(program.storages[number], tensor, origins.read.get(number))


def outputs(program: Program) -> list[Tensor]:
    """What the kernel returned, and the arguments that it wrote."""
    result = returned_tensors(program)
    returned = {item.storage for item in result}
    written = [whole(s) for s in program.inputs if s.written and s not in returned]
    return result + written


def marks(tensor: Tensor) -> np.ndarray:
    """Which elements hold what unwritten memory holds."""
    raw = tensor.raw()
    if tensor.dtype.kind == "float":
        return np.isnan(raw.astype(np.float32, copy=False))
    return raw == sentinel(tensor.dtype)


def holds_sentinel(tensor: Tensor) -> bool:
    """Whether any element holds what unwritten memory holds."""
    return bool(marks(tensor).any())


class _Origins:
    """For every element of every allocation, which allocation's unwritten elements it depends on.

    A dependence is followed element by element where an instruction's operands have one shape, row
    by row where they have the same partitions, and as a whole otherwise.
    """

    def __init__(self, program: Program) -> None:
        self.maps: dict[int, np.ndarray] = {}
        self.read: dict[int, Line] = {}
        """By allocation: where elements of it were read first that nobody had written."""
        self.program = program

    def map_of(self, storage: Storage) -> np.ndarray:
        """(elements,) int32: the number of an allocation, or -1."""
        result = self.maps.get(storage.index)
        if result is None:
            written_before = storage.argument or storage in self.program.constants
            start = CLEAN if written_before else storage.index
            result = np.full(storage.partitions * storage.row, start, np.int32)
            self.maps[storage.index] = result
        return result

    def view(self, tensor: Tensor) -> np.ndarray:
        """The entries of a view's elements; of the whole allocation where they are not known."""
        flags = self.map_of(tensor.storage)
        if tensor.indirect is not None or tensor.itemsize != tensor.storage.dtype.itemsize:
            return flags
        start, strides = tensor.offset * flags.itemsize, np.multiply(tensor.strides, flags.itemsize)
        return np.ndarray(tensor.shape, flags.dtype, flags.data, start, tuple(strides))

    def entries(self, tensor: Tensor) -> np.ndarray:
        """What `view` gives, to read: bytes of a wider element have the entry of this element."""
        own, wide = tensor.itemsize, tensor.storage.dtype.itemsize
        if tensor.indirect is not None or own >= wide:
            return self.view(tensor)
        places = np.array(tensor.offset)
        for size, stride in zip(tensor.shape, tensor.strides, strict=True):
            places = places[..., None] + np.arange(size) * stride
        result: np.ndarray = self.map_of(tensor.storage)[places * own // wide]
        return result

    def follow(self, instruction: Instruction) -> None:
        spec, args = instruction.checked.spec, instruction.args
        sources = [tensor for name in spec.inputs for tensor in _tensors(args[name])]
        if _adds_to_products(instruction) or _keeps_nothing(instruction):
            sources = [source for source in sources if source is not args["dst"]]
        results = [self.entries(source) for source in sources]
        for source, entries in zip(sources, results, strict=True):
            own = source.storage.index
            if own not in self.read and (entries == own).any():
                self.read[own] = instruction.line
        tainted = [item for item in results if (item != CLEAN).any()]
        whole = spec.name in FULL
        for name in spec.outputs:
            for dst in _tensors(args[name]):
                self._mark(dst, tainted, whole)

    def _mark(self, dst: Tensor, tainted: list[np.ndarray], whole: bool) -> None:
        target = self.view(dst)
        if target.shape != dst.shape:
            target[...] = max((int(entry.max()) for entry in tainted), default=CLEAN)
            return
        made = np.full(dst.shape, CLEAN, np.int32)
        for item in tainted:
            if item.size == made.size and not whole:
                np.maximum(made, item.reshape(made.shape), out=made)
            elif item.shape[0] == made.shape[0] and not whole:
                rows = item.reshape(item.shape[0], -1).max(axis=1)
                np.maximum(made, rows.reshape(-1, *(1,) * (made.ndim - 1)), out=made)
            else:
                np.maximum(made, int(item.max()), out=made)
        target[...] = made

    def of_sentinels(self, tensor: Tensor) -> list[int]:
        """The allocations whose unwritten bytes reach elements of `tensor` that show it."""
        entries, here = self.view(tensor), marks(tensor)
        known = entries.shape == tensor.shape
        results = [int(item) for item in np.unique(entries[here] if known else entries)]
        if known and tensor.dtype.kind != "float":  # 4 among other numbers is an ordinary one
            results = [item for item in results if here[entries == item].all()]
        return [item for item in results if item != CLEAN]


def _adds_to_products(instruction: Instruction) -> bool:
    return "accumulate" in instruction.args and instruction.args["accumulate"] is not True


def _keeps_nothing(instruction: Instruction) -> bool:
    """Whether a shuffle replaces all rows: only 255 in its mask keeps what was in dst."""
    return instruction.checked.spec.name == "nc_stream_shuffle" and (
        KEEP not in instruction.args["shuffle_mask"]
    )


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [item for item in value if isinstance(item, Tensor)] if type(value) is list else []


def _say(storage: Storage, tensor: Tensor, read: Line | None) -> None:
    same = storage is tensor.storage
    value = "NaN" if tensor.dtype.kind == "float" else str(int(sentinel(tensor.dtype)))
    what = "a part of it was never written" if same else f"it was computed from {storage!r}"
    where = f" Read first at {show_line(read)}." if read and not same else ""
    doubt(
        f"result {tensor!r}: it holds {value} because {what}"
        + ("." if same else ", of which a part was read that nothing had written.")
        + where,
        f"memory starts with arbitrary bits on the device; here with {value} so that it shows.",
        "write every element first: is the last tile of the loop partial? otherwise nisa.memset.",
        storage.line,
    )
