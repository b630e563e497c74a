"""Published kernels of older dialects (`neuronxcc.nki`), run as they stand on the simulator.

In those dialects instructions return their result, tiles have leading block dimensions, indices are
`nl.arange` arrays and `mask=` cuts a tile off. `namespace` gives the names that such a source
imports; each call becomes the one instruction of today with the same operands. Nothing is chosen,
merged or moved: `tile[...] = nisa.f(...)` writes to the tile, `x = nisa.f(...)` makes one.
A sum in PSUM begins with its first product, as the compiler drops the zeros before it.
"""

import importlib
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from utils.nki import simulator
from utils.nki.simulator.enums import HBM, MemoryRegion
from utils.nki.simulator.operators import OPERATORS, Operator
from utils.nki.simulator.program import running
from utils.nki.simulator.tensor import Tensor

simulator.use()  # `nki` is found from here on
nki, nisa, nl = map(importlib.import_module, ("nki", "nki.isa", "nki.language"))

NAMES = {"amax": "maximum", "max": "maximum", "amin": "minimum", "min": "minimum", "sum": "add"}
"""NumPy's functions that older dialects take for operators."""
ONES = ("is_stationary_onezero", "is_moving_onezero")
"""What a product may be told of its operands."""
Index = tuple[Any, ...]


class Partition(int):
    """`nl.par_dim(n)`: the size of the partition dimension; block dimensions come before it."""


def _operator(op: Any) -> Any:
    """The operator that a token of `nl` or a function of NumPy stands for."""
    name = str(getattr(op, "__name__", ""))
    return getattr(nl, NAMES.get(name, name)) if name else op


def _dtype(dtype: Any) -> Any:
    return np.dtype(dtype).name if isinstance(dtype, (type, np.dtype)) else dtype


class Tile:
    """A view of a tensor. `again` issues once more, elsewhere, the instruction that made it."""

    def __init__(self, real: Tensor, before: int = -1, again: Any = None) -> None:
        self.real, self.before, self.again = real, before, again

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""
        return self.real.shape

    @property
    def dtype(self) -> Any:
        """The type of its elements."""
        return self.real.dtype

    @property
    def buffer(self) -> MemoryRegion:
        """The memory it lies in."""
        return self.real.buffer

    def __getitem__(self, index: Any) -> "Tile":
        return Tile(_view(self.real, _indices(index, self.real.ndim)))

    def __setitem__(self, index: Any, value: Any) -> None:
        _assign(self[index], value)

    def __iadd__(self, value: Any) -> "Tile":  # type: ignore[misc]
        _accumulate(self, value)
        return self

    def __add__(self, other: Any) -> "Tile":
        return _binary(nl.add, self, other)

    def __sub__(self, other: Any) -> "Tile":
        return _binary(nl.subtract, self, other)

    def __mul__(self, other: Any) -> "Tile":
        return _binary(nl.multiply, self, other)

    __rmul__, __radd__ = __mul__, __add__

    def __truediv__(self, other: Any) -> "Tile":
        if isinstance(other, Tile):
            return _binary(nl.divide, self, other)
        return _binary(nl.multiply, self, 1.0 / other)

    def __rtruediv__(self, other: float) -> "Tile":
        inverse = reciprocal(self)
        return inverse if other == 1 else inverse * other

    def reshape(self, shape: Any) -> "Tile":
        """Another shape of the same tensor."""
        return Tile(self.real.reshape(tuple(shape)))

    def broadcast_to(self, shape: Any, **_: Any) -> "Tile":
        """Repeated along dimensions of size 1; rows are spread over partitions."""
        real, shape = self.real, tuple(shape)
        if real.shape[0] == shape[0]:
            for axis in range(1, real.ndim):
                if real.shape[axis] != shape[axis]:
                    real = real.broadcast(axis, shape[axis])
            return Tile(real)
        return Tile(nl.broadcast_to(real, shape))


class Blocks:
    """Tiles by block index, each allocated where it is first written."""

    def __init__(self, shape: Index, dtype: Any, buffer: Any, fill: float | None = None) -> None:
        at = next(i for i, size in enumerate(shape) if isinstance(size, Partition))
        self.shape = tuple(map(int, shape))
        self.outer, self.inner = self.shape[:at], self.shape[at:]
        self.dtype, self.buffer, self.fill = dtype, buffer, fill
        self.tiles: dict[Index, Tile] = {}

    def tile(self, block: Index) -> Tile:
        """The tile of a block; a new one has the value that all begin with."""
        made = self.tiles.get(block)
        if made is None:
            made = self.tiles[block] = Tile(_new(self.inner, self.dtype, self.buffer))
            if self.fill is not None:
                nisa.memset(dst=made.real, value=self.fill)
        return made

    def _split(self, index: Any) -> tuple[Index, Index]:
        full = _indices(index, len(self.shape))
        count = len(self.outer)
        return tuple(int(i) for i in full[:count]), full[count:]

    def __getitem__(self, index: Any) -> Tile:
        block, rest = self._split(index)
        return Tile(_view(self.tile(block).real, rest))

    def __setitem__(self, index: Any, value: Any) -> None:
        block, rest = self._split(index)
        if getattr(value, "over_loops", None) and block in self.tiles:
            _accumulate(Tile(_view(self.tile(block).real, rest)), value, value.over_loops)
            return
        _assign(Tile(_view(self.tile(block).real, rest)), value)


def _new(shape: Any, dtype: Any, buffer: Any = nl.sbuf) -> Tensor:
    sizes = tuple(map(int, shape))
    if buffer in (nl.sbuf, nl.psum) and len(sizes) == 1:
        sizes = (*sizes, 1)
    return nl.ndarray(sizes, dtype=_dtype(dtype), buffer=buffer)


# ---- indices -------------------------------------------------------------------------------------


def _indices(index: Any, ndim: int) -> Index:
    """One index for each dimension."""
    given = list(index) if isinstance(index, tuple) else [index]
    if any(item is Ellipsis for item in given):
        at = next(i for i, item in enumerate(given) if item is Ellipsis)
        given[at : at + 1] = [slice(None)] * (ndim - len(given) + 1)
    return tuple(given) + (slice(None),) * (ndim - len(given))


def _view(real: Tensor, index: Index) -> Tensor:
    """The elements at these indices: numbers, slices, arrays that step evenly along each axis."""
    arrays = [item for item in index if isinstance(item, np.ndarray) and item.ndim]
    if not arrays:
        return _slice(real, index)
    shape = np.broadcast_shapes(*(item.shape for item in arrays))
    shape += tuple(real.shape[i] for i, item in enumerate(index) if isinstance(item, slice))
    extra = len(np.broadcast_shapes(*(item.shape for item in arrays)))
    offset, strides = real.offset, [0] * len(shape)
    for item, size, stride in zip(index, real.shape, real.strides, strict=True):
        if isinstance(item, slice):
            start, stop, step = item.indices(size)
            offset += start * stride
            strides[extra] = step * stride
            shape = (*shape[:extra], len(range(start, stop, step)), *shape[extra + 1 :])
            extra += 1
        elif isinstance(item, np.ndarray) and item.ndim:
            first = int(item.flat[0])
            offset += first * stride
            wide = len(np.broadcast_shapes(*(a.shape for a in arrays)))
            for axis in range(item.ndim):
                if item.shape[axis] > 1:
                    place = tuple(int(axis == a) for a in range(item.ndim))
                    strides[wide - item.ndim + axis] += (int(item[place]) - first) * stride
        else:
            offset += int(item) * stride
    if real.storage.on_chip and len(shape) == 1:
        shape, strides = (*shape, 1), [*strides, 1]
    return real.again(tuple(shape), tuple(strides), offset)


def _slice(real: Tensor, index: Index) -> Tensor:
    """Numbers and slices; a tile keeps a partition and a free dimension."""
    offset, shape, strides = real.offset, [], []
    keep = real.storage.on_chip
    for axis, (item, size, stride) in enumerate(zip(index, real.shape, real.strides, strict=True)):
        start, stop, step = (
            item.indices(size) if isinstance(item, slice) else (int(item), int(item) + 1, 1)
        )
        offset += start * stride
        if isinstance(item, slice) or (keep and axis == 0):
            shape.append(len(range(start, stop, step)))
            strides.append(step * stride)
    if keep and len(shape) == 1:
        shape, strides = [*shape, 1], [*strides, 1]
    return real.again(tuple(shape), tuple(strides), offset)


def _cut(real: Tensor, sizes: Index) -> Tensor:
    """The first elements along each axis."""
    if tuple(sizes) == real.shape or len(sizes) != real.ndim:
        return real
    kept = tuple(min(a, b) if a > 1 else a for a, b in zip(real.shape, sizes, strict=True))
    return real.again(kept, real.strides, real.offset)


def _kept(shape: Index, mask: Any) -> Index:
    """How many elements a mask leaves along each axis of a shape; it cuts off what comes last."""
    if mask is None or mask is True:
        return shape
    where = np.asarray(mask)
    sizes = list(shape)
    for axis in range(where.ndim):
        if where.shape[axis] > 1:
            line = where[tuple(slice(None) if a == axis else 0 for a in range(where.ndim))]
            sizes[axis] = min(sizes[axis], int(line.sum()))
    if where.ndim == 0 and not where:
        sizes[0] = 0
    return tuple(sizes)


# ---- results -------------------------------------------------------------------------------------


def _make(shape: Any, dtype: Any, issue: Callable[[Tensor], Any], buffer: Any = nl.sbuf) -> Tile:
    """A new tile with the result of an instruction."""
    before = len(running("dialect").instructions)
    if 0 in shape:
        return Tile(_new([max(1, n) for n in shape], dtype, buffer), before, lambda _: None)
    made = _new(shape, dtype, buffer)
    issue(made)
    return Tile(made, before, issue)


def _assign(place: Tile, value: Any) -> None:
    """`place[...] = value`: the instruction that made the value writes there instead."""
    if not isinstance(value, Tile):
        nisa.memset(dst=place.real, value=value)
        return
    if value.real.storage is place.real.storage and value.again is None:
        return
    real = _fit(place.real, value.real.shape)
    issued = running("dialect").instructions
    if value.again is None:
        nisa.tensor_copy(dst=real, src=_fit(value.real, real.shape))
    else:
        del issued[value.before :]
        value.again(real)


def _fit(real: Tensor, shape: Index) -> Tensor:
    """A view in a shape of as many elements, or cut to what a mask left."""
    if real.shape == shape:
        return real
    if real.ndim == len(shape):
        return _cut(real, shape)
    if real.size == int(np.prod(shape)):
        return real.reshape(shape)
    return real


def _accumulate(place: Tile, value: Tile, op: Any = None) -> None:
    """`place += value`: a product goes on in PSUM, anything else is one more addition."""
    issued = running("dialect").instructions
    if value.again is not None and place.buffer is MemoryRegion.psum:
        del issued[value.before :]
        value.again(_fit(place.real, value.real.shape))
        return
    a, b = _fit(place.real, value.real.shape), _fit(value.real, place.real.shape)
    nisa.tensor_tensor(dst=a, data1=a, data2=b, op=op or nl.add)


def _binary(op: Any, x: Any, y: Any, mask: Any = None, dtype: Any = None, **more: Any) -> Tile:
    """Two tiles, a tile and a column, or a tile and a number."""
    engine = {"engine": more["engine"]} if more.get("engine") is not None else {}
    if not isinstance(x, Tile):
        return tensor_scalar(y, op, x, reverse0=True, mask=mask, dtype=dtype)
    if not isinstance(y, Tile):
        return tensor_scalar(x, op, y, mask=mask, dtype=dtype)
    if x.real.elements == 1 < y.real.elements:
        return tensor_scalar(y, op, x, reverse0=True, mask=mask, dtype=dtype)
    if y.real.elements == 1 < x.real.elements:
        return tensor_scalar(x, op, y, mask=mask, dtype=dtype)
    if x.shape[0] != y.shape[0]:  # one row for all partitions
        wide = (max(x.shape[0], y.shape[0]), *x.shape[1:])
        x, y = x.broadcast_to(wide), y.broadcast_to(wide)
    sizes = _kept(x.shape, mask)
    a, b = _cut(x.real, sizes), _cut(_fit(y.real, x.shape), sizes)
    return _make(
        sizes, dtype or x.dtype,
        lambda dst: nisa.tensor_tensor(dst=dst, data1=a, data2=b, op=op, **engine),
    )  # fmt: skip


def _unary(issue: Callable[..., Any], data: Tile, dtype: Any, mask: Any, **more: Any) -> Tile:
    sizes = _kept(data.shape, mask)
    real = _cut(data.real, sizes)
    return _make(sizes, dtype or data.dtype, lambda dst: issue(dst, real), **more)


# ---- nki.isa -------------------------------------------------------------------------------------


def tensor_tensor(
    data1: Tile, data2: Tile, op: Any, dtype: Any = None, mask: Any = None, engine: Any = None
) -> Tile:
    """Two tiles, element by element."""
    return _binary(_operator(op), data1, data2, mask, dtype, engine=engine)


def tensor_scalar(
    data: Tile, op0: Any, operand0: Any, reverse0: bool = False, op1: Any = None,
    operand1: Any = None, reverse1: bool = False, dtype: Any = None, mask: Any = None,
    engine: Any = None,
) -> Tile:  # fmt: skip
    """A tile with one or two columns or numbers."""

    def value(operand: Any) -> Any:
        if isinstance(operand, Tile):
            return _cut(operand.real, (_kept(data.shape, mask)[0], 1))
        return float(operand) if operand is not None else None

    more: dict[str, Any] = {"engine": engine} if engine is not None else {}
    if op1 is not None:
        more |= {"op1": _operator(op1), "operand1": value(operand1), "reverse1": reverse1}
    return _unary(
        lambda dst, real: nisa.tensor_scalar(
            dst=dst, data=real, op0=_operator(op0), operand0=value(operand0), reverse0=reverse0,
            **more,
        ),
        data, dtype, mask,
    )  # fmt: skip


def activation(
    op: Any, data: Tile, bias: Tile | None = None, scale: Any = 1.0, reduce_op: Any = None,
    reduce_res: Tile | None = None, reduce_cmd: Any = None, dtype: Any = None, mask: Any = None,
) -> Tile:  # fmt: skip
    """A function of scale times data, plus bias."""
    more: dict[str, Any] = {}
    if reduce_res is not None:
        more = {"reduce_op": _operator(reduce_op), "reduce_res": reduce_res.real}
        more["reduce_cmd"] = reduce_cmd if reduce_cmd is not None else nisa.reduce_cmd.reset_reduce
    rows = _kept(data.shape, mask)[0]
    if bias is not None:
        more["bias"] = _cut(bias.real, (rows, 1))
    factor = _cut(scale.real, (rows, 1)) if isinstance(scale, Tile) else scale
    return _unary(
        lambda dst, real: nisa.activation(
            dst=dst, op=_operator(op), data=real, scale=factor, **more
        ),
        data, dtype, mask,
    )  # fmt: skip


def tensor_tensor_scan(
    data0: Tile, data1: Tile, initial: Any, op0: Any, op1: Any, dtype: Any = None, mask: Any = None
) -> Tile:
    """A running result along each row."""
    start = initial.real if isinstance(initial, Tile) else float(initial)
    return _unary(
        lambda dst, real: nisa.tensor_tensor_scan(
            dst=dst, data0=real, data1=data1.real, initial=start, op0=_operator(op0),
            op1=_operator(op1),
        ),
        data0, dtype, mask,
    )  # fmt: skip


def tensor_reduce(
    op: Any, data: Tile, axis: Any, dtype: Any = None, negate: bool = False, mask: Any = None,
    keepdims: bool = False,
) -> Tile:  # fmt: skip
    """A reduction along free axes."""
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(a % data.real.ndim for a in axes)
    left = [n for a, n in enumerate(data.shape) if a not in axes]
    shape = left if len(left) > 1 else [*left, 1]
    real = _cut(data.real, _kept(data.shape, mask))
    return _make(
        (real.shape[0], *shape[1:]), dtype or data.dtype,
        lambda dst: nisa.tensor_reduce(
            dst=dst, op=_operator(op), data=real, axis=axes, negate=negate
        ),
    )  # fmt: skip


def reciprocal(data: Tile, dtype: Any = None, mask: Any = None) -> Tile:
    """One over each element."""
    return _unary(lambda dst, real: nisa.reciprocal(dst=dst, data=real), data, dtype, mask)


def memset(shape: Any, value: Any, dtype: Any, mask: Any = None, engine: Any = None) -> Tile:
    """A tile of one value."""
    return _make(shape, dtype, lambda dst: nisa.memset(dst=dst, value=float(value)))


def tensor_copy(src: Tile, dtype: Any = None, mask: Any = None, engine: Any = None) -> Tile:
    """A copy on an engine."""
    more = {"engine": engine} if engine is not None else {}
    return _unary(lambda dst, real: nisa.tensor_copy(dst=dst, src=real, **more), src, dtype, mask)


def nc_matmul(
    stationary: Tile, moving: Tile, is_transpose: bool = False, mask: Any = None, **hints: Any
) -> Tile:
    """A product on the array, in PSUM. A transpose against what is no identity is a product, and
    goes through the array once, whatever its type: published attention-10 leaves no time for four.
    """
    stationary, moving = _in_sbuf(stationary), _in_sbuf(moving)
    marked, is_transpose = is_transpose, is_transpose and _is_square(stationary, moving)
    columns = _kept((stationary.shape[0], moving.real.elements), mask)[1]
    left = stationary.real
    right = _cut(moving.real, (*moving.shape[:-1], columns)) if mask is not None else moving.real
    if marked and not is_transpose and left.dtype == nl.float32:
        left, right = left.view(nl.tfloat32), right.view(nl.tfloat32)
    more = {name: hints[name] for name in ONES if name in hints}
    more |= {"is_transpose": True} if is_transpose else {}
    return _make(
        (left.elements, columns), stationary.dtype if is_transpose else nl.float32,
        lambda dst: nisa.nc_matmul(dst=dst, stationary=left, moving=right, **more),
        buffer=nl.psum,
    )  # fmt: skip


def _is_square(stationary: Tile, moving: Tile) -> bool:
    """Whether moving may be the identity that transposes stationary."""
    return moving.shape == (stationary.shape[0],) * 2


def _in_sbuf(tile: Tile) -> Tile:
    """What the array reads lies in SBUF: a tile of PSUM is copied."""
    return tensor_copy(tile) if tile.buffer is MemoryRegion.psum else tile


def nc_transpose(data: Tile, engine: Any = None, dtype: Any = None, mask: Any = None) -> Tile:
    """The transpose, through the array: SBUF takes it from PSUM by one more copy."""
    source = _in_sbuf(data)

    def issue(dst: Tensor) -> None:
        place = dst
        if dst.buffer is not MemoryRegion.psum or dst.dtype != source.dtype:
            place = _new(dst.shape, source.dtype, nl.psum)
        nisa.nc_transpose(dst=place, data=source.real)
        if place is not dst:
            nisa.tensor_copy(dst=dst, src=place)

    return _make((data.real.elements, data.shape[0]), dtype or data.dtype, issue, buffer=nl.psum)


def tensor_copy_predicated(src: Tile, dst: Tile, predicate: Any, **_: Any) -> None:
    """A copy where a tile is true."""
    nisa.tensor_copy_predicated(dst=dst.real, src=src.real, predicate=predicate.real)


def dma_copy(dst: Tile, src: Tile, **_: Any) -> None:
    """A copy by the DMA engines."""
    nisa.dma_copy(dst=dst.real, src=src.real)


# ---- nki.language --------------------------------------------------------------------------------


def ndarray(shape: Any, dtype: Any, buffer: Any = None, **more: Any) -> Any:
    """A tensor of HBM, a tile, or tiles by block index."""
    return _allocate(shape, dtype, buffer, None)


def zeros(shape: Any, dtype: Any = "float32", buffer: Any = None, **more: Any) -> Any:
    """Zeros; in PSUM the first product writes over what was there."""
    return _allocate(shape, dtype, buffer, None if buffer is nl.psum else 0.0)


def full(shape: Any, fill_value: Any, dtype: Any, buffer: Any = None, **more: Any) -> Any:
    """One value everywhere."""
    return _allocate(shape, dtype, buffer, float(fill_value))


def _allocate(shape: Any, dtype: Any, buffer: Any, value: float | None) -> Any:
    buffer = nl.sbuf if buffer is None else buffer
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if buffer in HBM:
        return Tile(_new(sizes, dtype, buffer))
    if 0 in sizes:
        return None  # the branch that would use it has nothing to do
    if any(isinstance(n, Partition) for n in sizes[1:]):
        return Blocks(sizes, _dtype(dtype), buffer, value)
    made = Tile(_new(sizes, dtype, buffer))
    if value is not None:
        nisa.memset(dst=made.real, value=value)
    return made


def load(src: Tile, dtype: Any = None, mask: Any = None) -> Tile:
    """From HBM into a new tile."""
    sizes = _kept(src.shape, mask)
    real = _cut(src.real, sizes)
    shape = sizes if len(sizes) > 1 else (*sizes, 1)

    def issue(dst: Tensor) -> None:
        nisa.dma_copy(dst=dst, src=real if real.ndim == dst.ndim else real.reshape(dst.shape))

    return _make(shape, dtype or src.dtype, issue)


def load_transpose2d(src: Tile, dtype: Any = None, mask: Any = None) -> Tile:
    """The transpose of what lies in HBM."""
    rows, columns = src.shape
    name = _dtype(dtype) or src.dtype

    def issue(dst: Tensor) -> None:
        place = dst if dst.dtype == src.dtype else _new((columns, rows), src.dtype)
        nisa.dma_transpose(dst=place, src=src.real)
        if place is not dst:
            nisa.tensor_copy(dst=dst, src=place)

    return _make((columns, rows), name, issue)


def store(dst: Tile, value: Tile, mask: Any = None) -> None:
    """Into HBM; what lies in PSUM goes through SBUF."""
    sizes = _kept(dst.shape, mask)
    if 0 in sizes:
        return
    real, place = _fit(value.real, sizes), _cut(dst.real, sizes)
    if real.buffer is MemoryRegion.psum:
        real = tensor_copy(Tile(real)).real
    if real.ndim != place.ndim:
        real = real.reshape(place.shape)
    nisa.dma_copy(dst=place, src=real)


def loop_reduce(data: Tile, op: Any, loop_indices: Any, dtype: Any = None, **_: Any) -> Tile:
    """A reduction over loops: the first value is copied, the others are combined with it."""
    made = tensor_copy(data, dtype)
    made.over_loops = _operator(op)  # type: ignore[attr-defined]
    return made


def matmul(x: Tile, y: Tile, transpose_x: bool = False, **_: Any) -> Tile:
    """x @ y, or x.T @ y; what does not come transposed is turned on the array first."""
    left = x if transpose_x else tensor_copy(nc_transpose(x))
    made = nc_matmul(left, y)
    return made


def _function(operator: Operator, name: str) -> Any:
    """`nl.f`: called on tiles an instruction, given to an instruction its operator."""

    class Function:
        __name__ = operator.name

        def __call__(
            self, x: Any, y: Any = None, dtype: Any = None, mask: Any = None, axis: Any = None,
            **more: Any,
        ) -> Tile:  # fmt: skip
            if axis is not None or (name in ("max", "sum") and y is not None):
                return tensor_reduce(self, x, y if axis is None else axis, dtype, mask=mask)
            if y is not None:
                return _binary(operator, x, y, mask, dtype)
            if name == "square":
                return _binary(nl.multiply, x, x, mask, dtype)
            return activation(operator, x, dtype=dtype, mask=mask)

    return Function()


class Language(ModuleType):
    """`neuronxcc.nki.language`: names that have changed here, all others as they are today."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(nl, NAMES.get(name, name))
        made = value
        if NAMES.get(name, name) in OPERATORS:
            made = _function(OPERATORS[NAMES.get(name, name)], name)
        setattr(self, name, made)
        return made


def namespace() -> dict[str, ModuleType]:
    """The modules that a source of an older dialect imports, by name."""
    language = Language("neuronxcc.nki.language")
    changed = (
        ndarray, zeros, full, load, load_transpose2d, store, loop_reduce, matmul,
    )  # fmt: skip
    for function in changed:
        setattr(language, function.__name__, function)
    language.par_dim = Partition  # type: ignore[attr-defined]
    language.arange = np.arange  # type: ignore[attr-defined]
    language.mgrid = np.mgrid  # type: ignore[attr-defined]
    language.negative = lambda x, **more: tensor_scalar(  # type: ignore[attr-defined]
        x, nl.multiply, -1.0, **more
    )
    language.reciprocal = reciprocal  # type: ignore[attr-defined]
    language.copy = tensor_copy  # type: ignore[attr-defined]
    language.broadcast_to = lambda x, shape, **_: x.broadcast_to(shape)  # type: ignore[attr-defined]
    language.ds = lambda start, size: slice(start, start + size)  # type: ignore[attr-defined]
    language.affine_range = independent  # type: ignore[attr-defined]
    language.sequential_range = range  # type: ignore[attr-defined]
    language.shared_constant = _constant  # type: ignore[attr-defined]
    isa = ModuleType("neuronxcc.nki.isa")
    isa.__getattr__ = lambda name: getattr(nisa, name)  # type: ignore[method-assign]
    for item in (
        tensor_tensor, tensor_scalar, activation, tensor_tensor_scan, tensor_reduce, reciprocal,
        memset, tensor_copy, nc_matmul, nc_transpose, tensor_copy_predicated, dma_copy,
    ):  # fmt: skip
        setattr(isa, item.__name__, item)
    for name in ("vector", "scalar", "gpsimd", "tensor"):
        setattr(isa, f"{name}_engine", nisa.engine[name])
    isa.unknown_engine = None  # type: ignore[attr-defined]
    top = ModuleType("neuronxcc.nki")
    top.jit = lambda function=None, **_: function or (lambda f: f)  # type: ignore[attr-defined]
    top.compiler = SimpleNamespace(  # type: ignore[attr-defined]
        skip_middle_end_transformations=lambda function: function
    )
    top.trace, top.language, top.isa = top.jit, language, isa  # type: ignore[attr-defined]
    typing = ModuleType("neuronxcc.nki.typing")
    typing.tensor = object  # type: ignore[attr-defined]
    top.typing = typing  # type: ignore[attr-defined]
    return {
        "neuronxcc": SimpleNamespace(nki=top),  # type: ignore[dict-item]
        "neuronxcc.nki": top,
        "neuronxcc.nki.language": language,
        "neuronxcc.nki.isa": isa,
        "neuronxcc.nki.typing": typing,
    }


def independent(*bounds: int) -> Iterator[int]:
    """`nl.affine_range`: a loop whose iterations the compiler may reorder and merge."""
    core = running("affine_range")
    starts = []
    for index in range(*bounds):
        starts.append(len(core.instructions))
        yield index
    core.loops.append([*starts, len(core.instructions)])


def _constant(value: np.ndarray) -> Tile:
    """A constant of the kernel, which the compiler lays into HBM."""
    return Tile(_new(value.shape, value.dtype, nl.shared_hbm))


def adapt(function: Callable[..., Any]) -> Any:
    """A kernel of today that runs one of an older dialect."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        wrapped = [Tile(a) if isinstance(a, Tensor) else a for a in args]
        result = function(*wrapped, **kwargs)
        if isinstance(result, (tuple, list)):
            return tuple(item.real for item in result)
        return result.real

    kernel.__name__ = function.__name__
    return nki.jit(kernel)


__all__ = ["adapt", "namespace"]
