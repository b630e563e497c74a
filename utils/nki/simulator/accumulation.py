"""What the products in a PSUM tile add up to, and where that is probably not what was meant.

A product either overwrites its place in PSUM or is added to what is there. With `accumulate=None`
the first product at a place overwrites and every later one adds. The state belongs to the
allocation: a tile allocated inside a loop starts afresh each time, one allocated outside keeps
adding, whatever other instructions wrote to it meanwhile. (AWS, nisa.nc_matmul:
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/api/generated/nki.isa.nc_matmul.html)
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from utils.nki.simulator.enums import MemoryRegion, engine
from utils.nki.simulator.errors import doubt
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
        mask: np.ndarray = np.asarray(self._bytes(_strided(dst)).any(axis=-1))
        if mask.all():
            return True
        return mask if mask.any() else False

    def add(self, dst: Tensor) -> None:
        """Note that `dst` holds a product now."""
        if dst.key not in self.boxes:
            view = _strided(dst)
            self.boxes[dst.key] = dst.box(), view
            if self.written is not None:
                self._bytes(view)[...] = True

    def _bytes(self, view: Strided) -> np.ndarray:
        """The flags of a view's bytes, shape (*shape of the view, bytes of an element)."""
        shape, start, strides = view
        return np.ndarray(shape, bool, self.written.data, start, strides)  # type: ignore[union-attr]


def _strided(view: Tensor) -> Strided:
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


@dataclass
class _Tile:
    """What was done to one PSUM allocation: products (place, box, read since) and fillings."""

    products: dict[Any, list[Any]] = field(default_factory=dict)
    filled: list[Box] = field(default_factory=list)


def warn(program: Program) -> None:
    """Doubts about products that add to something that is no part of their sum."""
    for core in program.cores:
        _warn(program, core)


def _warn(program: Program, core: Core) -> None:
    tiles: dict[int, _Tile] = defaultdict(_Tile)
    touched: dict[Checked, tuple[list[str], list[str]]] = {}
    for instruction in core.instructions:
        checked, args = instruction.checked, instruction.args
        if checked not in touched:
            touched[checked] = _in_psum(checked, args)
        inputs, outputs = touched[checked]
        for name in inputs:
            _read(tiles[args[name].storage.index], args[name])
        for name in outputs:
            made = args[name]
            tile = tiles[made.storage.index]
            if "accumulate" not in args:
                tile.filled.append(made.box())
            elif not args.get("is_transpose"):
                _product(program, tile, made, instruction)


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


def _read(tile: _Tile, view: Tensor) -> None:
    products = tile.products
    if len(products) == 1 and view.key in products:
        products[view.key][1] = True
        return
    box = view.box()
    for product in products.values():
        if meet(product[0], box):
            product[1] = True


def _product(program: Program, tile: _Tile, dst: Tensor, instruction: Instruction) -> None:
    place = dst.key
    accumulate = instruction.args["accumulate"]
    known = tile.products.get(place)
    box = known[0] if known is not None else dst.box()
    begun = known is not None or any(meet(box, product[0]) for product in tile.products.values())
    refilled = any(meet(box, item) for item in tile.filled)
    name = instruction.checked.spec.name
    if accumulate is None and known is not None and known[1] and not refilled:
        _say(
            program,
            instruction,
            f"{name}: adds to {dst!r}, which has been read since its last product.",
            "with accumulate=None only the first product in a tile overwrites; a tile allocated "
            "outside of a loop keeps the sums of earlier rounds.",
            "allocate the PSUM tile inside the loop, or pass accumulate=(k > 0); "
            "accumulate=True says that adding is meant.",
        )
    elif refilled and accumulate is not False and not begun:
        old = program.target.generation < GENERATION_THAT_ADDS_TO_VALUES
        if old:
            _say(
                program,
                instruction,
                f"{name}: the first product in {dst!r}, which another instruction has filled "
                f"(generation {program.target.generation}; adding to such values needs "
                f"{GENERATION_THAT_ADDS_TO_VALUES}).",
                "before Trainium3 adding to values that no product wrote is undefined; here "
                f"accumulate={accumulate} "
                + ("overwrites them." if accumulate is None else "adds to them."),
                "leave out the filling: the first product overwrites by itself.",
            )
    elif accumulate and not begun:
        _say(
            program,
            instruction,
            f"{name}: accumulate=True adds to {dst!r}, in which there is no product yet.",
            "what PSUM holds before the first product is undefined.",
            "pass accumulate=(k > 0), or leave accumulate out.",
        )
    if refilled:
        tile.filled = [item for item in tile.filled if not meet(box, item)]
    tile.products[place] = [box, False]


def _say(program: Program, instruction: Instruction, what: str, why: str, fix: str) -> None:
    if program.first((why, instruction.line)):
        doubt(what, why, fix, instruction.line)
