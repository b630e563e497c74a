"""Transfers between HBM and SBUF: what the DMA engines accept, copies, transposes, sums on the way.

Their time depends on bytes and descriptors: see `timing`.

Sources: AWS, nisa.dma_copy and nisa.dma_transpose,
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/api/generated/nki.isa.dma_copy.html
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/api/generated/nki.isa.dma_transpose.html
"""

import math
from typing import Any

import numpy as np

from utils.nki.simulator.enums import HBM, MemoryRegion, dge_mode, engine, oob_mode
from utils.nki.simulator.errors import doubt
from utils.nki.simulator.instruction import instruction
from utils.nki.simulator.instructions.costs import by_bytes
from utils.nki.simulator.instructions.gpsimd import PLAIN
from utils.nki.simulator.instructions.rules import same_types
from utils.nki.simulator.operands import DMA_MEMORY, SBUF, Use, result, tile
from utils.nki.simulator.tensor import Tensor
from utils.nki.simulator.view import Indirect, copy_present

CHOICES = {"dge_mode": dge_mode, "oob_mode": oob_mode}


def by_value(core: Any, args: dict[str, Any]) -> None:
    """Put the named member in the place of its number, and say how it is written."""
    for name, kind in CHOICES.items():
        if type(value := args.get(name)) is int and value in {item.value for item in kind}:
            member = args[name] = kind(value)
            doubt(
                f"{name}={value!r}: a choice by its number.",
                "since NKI 0.3 the compiler takes named members only.",
                f"write {name}=nisa.{kind.__name__}.{member.name}.",
            )


HARDWARE_DGE = 3
"""The generation that brought hardware generation of descriptors and the gathering transpose."""
PRIORITIES = 4
WITH_PRIORITY = 4
"""The generation whose transfers have priorities."""
AXES = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}
"""The order of dimensions that a transpose makes, by their number."""
DGE_ROWS = 16
DGE_OUTER = (1, 2, 4, 8, 16)
DGE_COLUMNS = 128
DGE_BYTES = 2


def pattern(tensor: Tensor) -> str:
    """How an operand is walked through, for a message."""
    return f"{tensor.size} elements {tensor.shape} in {tensor.get_pattern()}"


def as_many_elements(use: Use) -> None:
    """src and dst have as many elements."""
    src, dst = use.src, use.dst
    if src.size == dst.size:
        return
    small, large = ("dst", "src") if dst.size < src.size else ("src", "dst")
    most = use.target.partitions
    if use.args[large].shape[0] > most and use.args[small].storage.on_chip:
        fix = (
            f"loop over {math.ceil(use.args[large].shape[0] / most)} tiles of {most} rows: "
            f"{large}[nl.ds(i * {most}, {most}), ...]."
        )
    else:
        fix = f"slice {large} to the {use.args[small].size} elements of {small}."
    raise use.refuse(
        f"src has {pattern(src)}, dst has {pattern(dst)}.",
        "a DMA writes every element that it reads, in row-major order of both patterns.",
        fix,
    )


def conversion(use: Use) -> None:
    """src and dst have types that a DMA can convert through FP32."""
    src, dst = use.src.dtype, use.dst.dtype
    if src != dst and "packed" in (src.kind, dst.kind):
        raise use.refuse(
            f"src is {src}, dst is {dst}.",
            "a DMA converts through FP32, and four numbers packed into one element have no value "
            "there.",
            "give both sides one type, or read the bytes as another one with view(dtype).",
        )


def hardware_generator(use: Use) -> None:
    """dge_mode is a named mode; hwdge, and the engine that asks for it, exist from Trainium2 on."""
    mode, asked = use.args["dge_mode"], use.args["engine"]
    if not isinstance(mode, dge_mode):
        raise use.refuse(
            f"dge_mode={mode!r}; allowed are {', '.join(map(str, dge_mode))}.",
            "descriptors are written by the runtime (none), by GpSimd (swdge) or by the hardware "
            "generator (hwdge).",
            "leave out dge_mode: the compiler chooses.",
        )
    if mode is dge_mode.hwdge:
        needs_hardware_generator(use)
        if use.src.dtype != use.dst.dtype:
            raise use.refuse(
                f"dge_mode=hwdge with src {use.src.dtype} and dst {use.dst.dtype}; both have one "
                "type.",
                "the hardware generator makes plain copies and no conversions.",
                "leave out dge_mode, or convert on chip with nisa.tensor_copy.",
            )
    if asked is engine.unknown:
        return
    if mode is not dge_mode.hwdge or asked not in (engine.sync, engine.scalar):
        raise use.refuse(
            f"engine={getattr(asked, 'name', asked)!r} with dge_mode={mode.name}; sync or scalar "
            "with hwdge.",
            "the engine named here is the one whose sequencer asks the hardware generator.",
            "leave out engine, or pass dge_mode=nisa.dge_mode.hwdge as well.",
        )


def needs_hardware_generator(use: Use, what: str = "dge_mode=hwdge") -> None:
    """The generation has hardware that generates descriptors."""
    if use.target.generation < HARDWARE_DGE:
        raise use.refuse(
            f"{what} on generation {use.target.generation}; it needs {HARDWARE_DGE} or later.",
            "Trainium1 has no hardware that generates descriptors.",
            "leave it out, or choose target='trn2'.",
        )


def quality(use: Use) -> None:
    """priority exists from Trainium3 on; oob_mode is error or skip."""
    given, generation = use.priority, use.target.generation
    if given is not None and (generation < WITH_PRIORITY or given not in range(PRIORITIES)):
        raise use.refuse(
            f"priority={given!r} on generation {generation}; 0 to {PRIORITIES - 1} on generation "
            f"{WITH_PRIORITY} or later.",
            "only Trainium3 has classes of DMA traffic; 0 goes first.",
            "leave out priority.",
        )
    if not isinstance(use.args["oob_mode"], oob_mode):
        raise use.refuse(
            f"oob_mode={use.args['oob_mode']!r}; allowed are {', '.join(map(str, oob_mode))}.",
            "an index outside of the tensor is an error or is skipped.",
            "leave out oob_mode.",
        )


# ---- transpose -----------------------------------------------------------------------------------


def transpose_shapes(use: Use) -> None:
    """dst is src with its first and last dimension exchanged."""
    src, dst = use.src, use.dst
    if src.ndim not in AXES:
        raise use.refuse(
            f"src has {src.ndim} dimensions {src.shape}; 2, 3 or 4.",
            f"the transposes that exist are {', '.join(map(str, AXES.values()))}.",
            "merge or split dimensions with flatten_dims or reshape_dim.",
        )
    axes = AXES[src.ndim]
    if use.axes is not None and tuple(use.axes) != axes:
        raise use.refuse(
            f"axes={tuple(use.axes)} for a src of {src.ndim} dimensions; {axes}.",
            "the first and the last dimension change places, the others keep theirs.",
            f"leave out axes, or pass axes={axes}.",
        )
    made = tuple(src.shape[axis] for axis in axes)
    if (dst.shape[0], dst.elements) != (made[0], math.prod(made[1:])):
        raise use.refuse(
            f"dst is {dst.shape}; src {src.shape} with axes {axes} becomes {made}.",
            "the last dimension of src becomes the partitions of dst.",
            f"allocate dst with the shape {made}.",
        )


def transpose_generator(use: Use) -> None:
    """dge_mode and the type of src are such that a generator of descriptors can transpose."""
    mode, src = use.args["dge_mode"], use.src
    if src.dtype.itemsize > DGE_BYTES:
        use.doubt(
            f"{src.dtype} has {src.dtype.itemsize} bytes; descriptors are generated for types of "
            f"{DGE_BYTES} bytes.",
            "wider elements are transposed by the Tensor Engine instead, which then is not free.",
            "transpose a 2-byte type, or use nisa.nc_transpose and plan for it.",
        )
    match_ = src.indirect
    gathers = match_ is not None
    allowed = (dge_mode.unknown, dge_mode.swdge if gathers else dge_mode.hwdge)
    if mode is dge_mode.none and not gathers:
        use.doubt(
            "dge_mode=none, which the documentation does not list here.",
            "published kernels pass it; the descriptors are then written before the kernel runs.",
            "leave out dge_mode.",
        )
    elif mode not in allowed:
        raise use.refuse(
            f"dge_mode={mode}; allowed are {' and '.join(str(item) for item in allowed)}"
            f"{' for a src found at run time' if gathers else ''}.",
            "the hardware generator transposes fixed patterns, the software one gathers rows.",
            "leave out dge_mode.",
        )
    if not gathers and use.args["oob_mode"] is oob_mode.skip:
        raise use.refuse(
            "oob_mode=skip with a src that is fixed at compile time.",
            "only an index known at run time can lie outside.",
            "leave out oob_mode.",
        )
    if match_ is not None:
        _gathering(use, src, match_)
    elif mode is dge_mode.hwdge:
        needs_hardware_generator(use)
        _by_hardware(use, src)


def _by_hardware(use: Use, src: Tensor) -> None:
    rows, inner = src.shape[0], src.shape[0] * src.shape[-2]
    fits = rows == DGE_ROWS if src.ndim == 2 else rows in DGE_OUTER and inner % DGE_ROWS == 0
    if not fits:
        wanted = (
            f"a src of 2 dimensions has {DGE_ROWS} rows"
            if src.ndim == 2
            else f"dimension 0 is one of {DGE_OUTER}, and times dimension {src.ndim - 2} a "
            f"multiple of {DGE_ROWS}"
        )
        raise use.refuse(
            f"dge_mode=hwdge with src {src.shape}; {wanted}.",
            f"{DGE_ROWS} DMA engines work on one transpose together.",
            "leave out dge_mode, or reshape src.",
        )
    _small(use, src, "dge_mode=hwdge")


def _small(use: Use, src: Tensor, what: str) -> None:
    if src.shape[-1] > DGE_COLUMNS or src.dtype.itemsize != DGE_BYTES:
        raise use.refuse(
            f"{what} with src {src.shape} of {src.dtype}, {src.dtype.itemsize} bytes each; at most "
            f"{DGE_COLUMNS} in the last dimension, {DGE_BYTES} bytes each.",
            "the last dimension becomes partitions, and elements move in pairs of bytes.",
            "loop over parts of the last dimension, and use a 2-byte type.",
        )


def _gathering(use: Use, src: Tensor, outcome: Indirect) -> None:
    what = "a src found at run time"
    needs_hardware_generator(use, what)
    _small(use, src, what)
    index, rows = outcome.tile, src.shape[0]
    good = src.buffer in HBM and rows % DGE_ROWS == 0
    good = good and (src.ndim < 4 or 1 in src.shape[1:3])
    if index is not None:
        high, wide = index.shape[0], index.elements
        good = good and index.dtype == "uint32" and index.buffer is MemoryRegion.sbuf
        good = good and DGE_ROWS <= high <= DGE_COLUMNS and high % DGE_ROWS == 0
        good = good and (wide == 1 or high == DGE_COLUMNS) and high * wide >= rows
    if not good or index is None:
        raise use.refuse(
            f"src {src.shape} in {src.buffer.value} with the indices {index!r}; rows a multiple of "
            f"{DGE_ROWS} in HBM (dimension 1 or 2 of four is 1), indices of uint32 in SBUF, "
            f"({DGE_ROWS} to {DGE_COLUMNS} in steps of {DGE_ROWS}, 1) or ({DGE_COLUMNS}, n).",
            "the software generator gathers blocks of rows and transposes them.",
            "gather with nisa.dma_copy first, and transpose on chip.",
        )


@instruction(
    engine.dma, by_bytes, resolve=by_value,
    dst=result(memory=DMA_MEMORY), src=tile(memory=DMA_MEMORY),
    rules=(as_many_elements, conversion, hardware_generator, quality),
)  # fmt: skip
def dma_copy(
    dst, src, priority=None, oob_mode=oob_mode.error, dge_mode=dge_mode.unknown,
    engine=engine.unknown,
):  # fmt: skip
    """Copy `src` to `dst` between HBM and SBUF, or within one of them.

    Elements are taken in row-major order of both views, so only their number has to agree. Other
    types are converted through FP32. Where a side is found at run time, an index outside is an
    error, or with oob_mode.skip its elements keep what they were.
    """
    if src.indirect is not None or dst.indirect is not None:
        copy_present(dst, src, skip=oob_mode.name == "skip")
    elif src.dtype == dst.dtype:
        dst.put_raw(src.raw())
    else:
        dst.put(src.get())


@instruction(
    engine.dma, by_bytes, resolve=by_value,
    dst=result(memory=frozenset({SBUF})), src=tile(memory=DMA_MEMORY),
    rules=(transpose_shapes, same_types("src", "dst"), transpose_generator, quality),
)  # fmt: skip
def dma_transpose(
    dst, src, axes=None, priority=None, dge_mode=dge_mode.unknown, oob_mode=oob_mode.error
):
    """Copy `src` to `dst` with its first and last dimension exchanged.

    axes: (1, 0), (2, 1, 0) or (3, 1, 2, 0), which is also what is done without it. The last
    dimension of src becomes the partitions of dst, at most 128.
    """
    order = AXES[src.ndim]
    if src.indirect is None:
        dst.put_raw(src.raw().transpose(order))
        return
    stored, exists = src.indirect.gather(src, oob_mode.name == "skip")
    stored = stored.transpose(order).reshape(dst.shape)
    kept = dst.array()
    dst.put_raw(np.where(exists.transpose(order).reshape(dst.shape), stored, kept))


# ---- sums on the way ----------------------------------------------------------------------------

MOST_SOURCES = 16
COMBINE = {"add": np.add, "maximum": np.maximum}


def dma_computes(use: Use) -> None:
    """1 to 16 sources as large as dst are added or compared, none is scaled."""
    sources = use.srcs
    if not isinstance(sources, (list, tuple)) or not 1 <= len(sources) <= MOST_SOURCES:
        raise use.refuse(
            f"srcs is {sources!r}; it is a list of 1 to {MOST_SOURCES} tensors.",
            "a descriptor chain combines so many.",
            "pass srcs=[a, b].",
        )
    if getattr(use.reduce_op, "name", None) not in COMBINE:
        raise use.refuse(
            f"reduce_op is {use.reduce_op!r}; allowed: nl.add and nl.maximum.",
            "DMA engines add and compare, no more.",
            "load the tiles and use nisa.tensor_tensor.",
        )
    if use.scales is not None and any(scale != 1.0 for scale in use.scales):
        raise use.refuse(
            f"scales is {use.scales!r}; each is 1.0.",
            "the DMA engines' multiplication is not open to kernels.",
            "leave scales out, and scale with nisa.tensor_scalar.",
        )
    for place, item in enumerate(sources):
        if item.size != use.dst.size:
            raise use.refuse(
                f"srcs[{place}] has {item.size} elements {item.shape}, dst has {use.dst.size} "
                f"{use.dst.shape}.",
                "element by element, so all have as many.",
                "slice them to the same size.",
            )
    indirect = [source for source in (*sources, use.dst) if source.indirect is not None]
    if indirect and (len(sources) != 2 or not use.unique_indices):
        raise use.refuse(
            f"indices at run time with {len(sources)} sources and "
            f"unique_indices={use.unique_indices!r}; it takes 2 sources and True.",
            "rows are read, added to and written back; two writes to one row would race.",
            "scatter: srcs=[rows_of_dst, tile]; gather: srcs=[dst, rows]; make indices unique.",
        )


@instruction(
    engine.dma, by_bytes, dst=result(memory=DMA_MEMORY, dtypes=PLAIN),
    srcs=tile(memory=DMA_MEMORY, many=True, dtypes=PLAIN), rules=(dma_computes,),
)  # fmt: skip
def dma_compute(dst, srcs, reduce_op, scales=None, unique_indices=True, oob_mode=oob_mode.error):
    """Add tensors (or take their maximum) while moving them: dst = srcs[0] + srcs[1] + ...

    With rows found at run time it gathers and adds, or adds to scattered rows.
    """
    skip = oob_mode.name == "skip"
    total, exists = np.zeros(dst.size, np.float32), np.ones(dst.size, bool)
    for place, item in enumerate(srcs):
        if item.indirect is None:
            values = item.get().reshape(-1)
        else:
            stored, there = item.indirect.gather(item, skip)
            values, exists = stored.astype(np.float32).reshape(-1), exists & there.reshape(-1)
        total = values.copy() if place == 0 else COMBINE[reduce_op.name](total, values)
    made = dst.storage.narrow(total, dst.dtype).reshape(dst.shape)
    dst.storage.written = True
    if dst.indirect is not None:
        _repeat(dst.indirect.indices(dst))
        dst.indirect.scatter(dst, made, exists.reshape(dst.shape), skip)
    else:
        dst.put_raw(np.where(exists.reshape(dst.shape), made, dst.raw()))


def _repeat(indices: np.ndarray) -> None:
    if np.unique(indices).size < indices.size:
        doubt(
            "dma_compute: an index occurs twice.",
            "each row is read before any is written, so one of two additions is lost; on the "
            "device it is not known which.",
            "make indices unique, or add equal rows first.",
        )
