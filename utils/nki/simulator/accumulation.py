"""What the products in a PSUM tile add up to, and where that is probably not what was meant.

A product either overwrites its place in PSUM or is added to what is there. With `accumulate=None`
the first product at a place overwrites and every later one adds. The state belongs to the
allocation: a tile allocated inside a loop starts afresh each time, one allocated outside keeps
adding, whatever other instructions wrote to it meanwhile. (AWS, nisa.nc_matmul:
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/api/generated/nki.isa.nc_matmul.html)
"""

import functools
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from utils.nki.simulator.enums import MemoryRegion, engine
from utils.nki.simulator.errors import Line, doubt, show_line
from utils.nki.simulator.program import Core, Instruction, Program
from utils.nki.simulator.table import Checked
from utils.nki.simulator.tensor import Tensor

Box = tuple[int, int, int, int]
Strided = tuple[tuple[int, ...], int, tuple[int, ...]]
"""Shape, start and strides of an array of bytes."""
GENERATION_THAT_ADDS_TO_VALUES = 4


def meet(a: Box, b: Box) -> bool:
    """Whether two boxes of partitions and bytes share a byte."""
    return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]


class Products:
    """Which elements of one PSUM allocation a product has written.

    Known places are looked up; elements are compared only where a new place meets an old one.
    """

    __slots__ = ("boxes", "written")

    def __init__(self) -> None:
        self.boxes: dict[Any, tuple[Box, Strided]] = {}
        self.written: np.ndarray | None = None

    def at(self, dst: Tensor) -> bool | np.ndarray:
        """Whether `dst` holds products: all of it, nothing of it, or a mask of its elements."""
        if dst.key in self.boxes:  # in PSUM a key has the place in its allocation
            return True
        box = dst.box()
        if not any(meet(box, other) for other, _ in self.boxes.values()):
            return False
        if self.written is None:
            self.written = np.zeros(dst.storage.size_bytes, bool)
            for _, view in self.boxes.values():
                self._bytes(view)[...] = True
        mask: np.ndarray = np.asarray(self._bytes(_strides(dst)).any(axis=-1))
        if mask.all():
            return True
        return mask if mask.any() else False

    def add(self, dst: Tensor) -> None:
        """Note that `dst` holds a product now."""
        if dst.key not in self.boxes:
            view = _strides(dst)
            self.boxes[dst.key] = dst.box(), view
            if self.written is not None:
                self._bytes(view)[...] = True

    def _bytes(self, view: Strided) -> np.ndarray:
        """The flags of a view's bytes, shape (*shape of the view, bytes of an element)."""
        shape, start, strides = view
        return np.ndarray(shape, bool, self.written.data, start, strides)  # type: ignore[union-attr]


def _strides(view: Tensor) -> Strided:
    """Where a view's bytes are; without the allocation, which could not be freed at once."""
    item = view.dtype.itemsize
    strides = (*(stride * item for stride in view.strides), 1)
    return (*view.shape, item), view.offset * item, strides


def add_product(dst: Tensor, product: np.ndarray, accumulate: bool | None) -> None:
    """Write `product` (FP32, as many elements as `dst`) to PSUM, or add it: one FP32 addition each.

    The sum is rounded to the type of `dst` where that is not FP32.
    """
    storage = dst.storage
    if storage.products is None:
        storage.products = Products()
    product = product.reshape(dst.shape)
    adds = storage.products.at(dst) if accumulate is None else bool(accumulate)
    if adds is False:
        dst.put(product)
    elif adds is True and dst.dtype == "float32":
        array = dst.array()
        np.add(array, product, out=array)
    else:
        before = dst.get()
        dst.put(np.where(adds, before + product, product))
    storage.products.add(dst)
    storage.written = True


# ---- doubts, after the kernel has ended ----------------------------------------------------------


@dataclass(eq=False, slots=True)
class _Sum:
    """The products at one place of a tile: its box, and when the last one came (an instruction).

    read: where it was read since. partial: where it was read before products that nobody has read
    since, and the first of those products.
    """

    box: Box
    last: int
    read: Line | None = None
    partial: tuple[Line, Tensor, Instruction] | None = None


@dataclass(frozen=True, slots=True)
class _Filling:
    """Another instruction than a product wrote to a place: when, and whether zeros."""

    when: int
    zero: bool


@dataclass
class _Tile:
    """What was done to one PSUM allocation: products by place, and how boxes were filled last."""

    products: dict[Any, _Sum] = field(default_factory=dict)
    filled: dict[Box, _Filling] = field(default_factory=dict)


def warn(program: Program) -> None:
    """Doubts about products that add to something that is no part of their sum, and about sums
    that are read before they are complete."""
    for core in program.cores:
        _warn(program, core)


def _warn(program: Program, core: Core) -> None:
    tiles: dict[int, _Tile] = defaultdict(_Tile)
    touched: dict[Checked, tuple[list[str], list[str]]] = {}
    for now, instruction in enumerate(core.instructions):
        checked, args = instruction.checked, instruction.args
        if checked not in touched:
            touched[checked] = _in_psum(checked, args)
        inputs, outputs = touched[checked]
        for name in inputs:
            _read(tiles[args[name].storage.index], args[name], instruction.line)
        for name in outputs:
            made = args[name]
            tile = tiles[made.storage.index]
            if "accumulate" in args:
                if not args.get("is_transpose"):
                    _product(program, tile, made, instruction, now)
            else:
                zero = checked.spec.name == "memset" and args["value"] == 0
                tile.filled[made.box()] = _Filling(now, zero)
    for tile in tiles.values():
        for total in tile.products.values():
            _incomplete(program, total)


def _in_psum(checked: Checked, args: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The inputs and outputs that are tiles of PSUM: the same for all calls of one layout."""
    here = [
        name
        for name, value in args.items()
        if type(value) is Tensor and value.buffer is MemoryRegion.psum
    ]
    if checked.engine is engine.dma:
        return [], []
    spec = checked.spec
    return [n for n in spec.inputs if n in here], [n for n in spec.outputs if n in here]


def _read(tile: _Tile, view: Tensor, line: Line) -> None:
    products = tile.products
    one = products.get(view.key) if len(products) == 1 else None
    if one is not None:
        one.read, one.partial = line, None
        return
    box = view.box()
    for total in products.values():
        if meet(total.box, box):
            total.read, total.partial = line, None


def _product(
    program: Program, tile: _Tile, dst: Tensor, instruction: Instruction, now: int
) -> None:
    place = dst.key
    accumulate = instruction.args["accumulate"]
    known = tile.products.get(place)
    box = known.box if known is not None else dst.box()
    if known is not None:
        last = known.last
    else:
        last = max((t.last for t in tile.products.values() if meet(t.box, box)), default=-1)
    begun = last >= 0
    fillings = [f for where, f in tile.filled.items() if f.when > last and meet(box, where)]
    name, say = instruction.checked.spec.name, functools.partial(_say, program, instruction)
    if accumulate is None and known is not None and known.read and not fillings:
        say(
            f"{name}: adds to {dst!r}, which has been read since its last product, at "
            f"{show_line(known.read)}.",
            "with accumulate=None only the first product in a tile overwrites; a tile allocated "
            "outside of a loop keeps the sums of earlier rounds.",
            "allocate the PSUM tile inside the loop, or pass accumulate=(k > 0); "
            "accumulate=True says that adding is meant.",
        )
    elif fillings and accumulate is not False and not begun:
        harmless = accumulate is None and all(filling.zero for filling in fillings)
        if program.target.generation < GENERATION_THAT_ADDS_TO_VALUES and not harmless:
            say(
                f"{name}: the first product in {dst!r}, which another instruction has filled "
                f"(generation {program.target.generation}; adding to such values needs "
                f"{GENERATION_THAT_ADDS_TO_VALUES}).",
                "before Trainium3 adding to values that no product wrote is undefined; here "
                f"accumulate={accumulate} "
                + ("overwrites them." if accumulate is None else "adds to them."),
                "leave out the filling: the first product overwrites by itself.",
            )
    elif accumulate and not begun:
        say(
            f"{name}: accumulate=True adds to {dst!r}, in which there is no product yet"
            + (f"; it was allocated at {show_line(at)}." if (at := dst.storage.line) else "."),
            "what PSUM holds before the first product is undefined.",
            "pass accumulate=(k > 0), or leave accumulate out.",
        )
    if known is None:
        tile.products[place] = _Sum(box, now)
        return
    if accumulate is False or fillings:
        _incomplete(program, known)
        known.partial = None
    elif known.read:
        known.partial = known.read, dst, instruction
    known.last, known.read = now, None


def _incomplete(program: Program, total: _Sum) -> None:
    """Say that a sum was read too early, where nobody has read what was added afterwards."""
    if total.partial is None:
        return
    read, dst, instruction = total.partial
    name = instruction.checked.spec.name
    what = f"{name}: adds to {dst!r} after it was read at {show_line(read)}, and nothing reads the "
    if program.first(("incomplete", read, instruction.line)):
        doubt(
            what + "complete sum.",
            "what was read lacks the products that came later: PSUM was read before it was "
            "complete.",
            "read it after the last product: below the loop over k, not inside of it.",
            instruction.line,
        )


def _say(program: Program, instruction: Instruction, what: str, why: str, fix: str) -> None:
    if program.first((why, instruction.line)):
        doubt(what, why, fix, instruction.line)
