"""The Vector Engine and what it shares with others: copies, fills, pairs of tiles, shuffles,
dropout. The hardware's random stream of dropout is not published, so it is NumPy's.
"""

import math
from typing import Any

import numpy as np

from utils.nki.simulator.dtypes import narrow, wrap
from utils.nki.simulator.enums import engine
from utils.nki.simulator.instruction import instruction
from utils.nki.simulator.instructions.costs import fill, one_input, per_element, two_inputs
from utils.nki.simulator.instructions.rules import (
    INT32,
    gpsimd_without_psum,
    integers_for_bits,
    named_engine,
    named_engine_or,
    not_both_in_psum,
    numbers,
    operator,
    same_size,
    same_types,
)
from utils.nki.simulator.instructions.values import (
    apply_to_bits,
    bit_rows,
    column_of,
    put_bits,
    rows,
)
from utils.nki.simulator.operands import PSUM, SBUF, Use, column, result, tile, update
from utils.nki.simulator.operators import Operator
from utils.nki.simulator.program import Core, running
from utils.nki.simulator.tensor import Tensor

# ---- tensor_copy -----------------------------------------------------------------------------


def scalar_copies_from_gen3(use: Use) -> None:
    """The Scalar Engine copies from Trainium2 on."""
    if use.engine is engine.scalar and use.target.generation < 3:
        raise use.refuse(
            "engine is nisa.engine.scalar on Trainium1 (gen2), it needs gen3 or later.",
            "the Scalar Engine of gen2 has functions only, no copy.",
            "use nisa.activation(dst=..., op=nl.copy, data=...), or engine=nisa.engine.vector.",
        )


@instruction(
    named_engine_or(engine.vector, engine.scalar, engine.gpsimd), one_input("src"),
    dst=result(), src=tile(),
    rules=(same_size("dst", "src"), gpsimd_without_psum, scalar_copies_from_gen3),
)  # fmt: skip
def tensor_copy(dst, src, engine=engine.unknown):
    """Copy a tile on chip; a `dst` of another type converts. The usual way out of PSUM.

    Equal types are copied bit by bit, others pass through FP32: integers beyond 2^24 lose bits.
    """
    if src.dtype == dst.dtype:
        dst.put_raw(src.raw())
    else:
        dst.put(src.get())


# ---- tensor_tensor ---------------------------------------------------------------------------


def is_exact(dst: Tensor, data1: Tensor, data2: Tensor, op: Operator, asked: engine) -> bool:
    """Whether GpSimd computes it in 32-bit integers.

    That is so for int32 and uint32 tiles unless the call names the Vector Engine or a tile is in
    PSUM.
    """
    tiles = (dst, data1, data2)
    return (
        not op.is_bitwise
        and asked is not engine.vector
        and all(t.dtype in INT32 for t in tiles)
        and not any(t.buffer is PSUM for t in tiles)
    )


def pair_engine(use: Use) -> engine:
    """Vector Engine, or GpSimd on request, for nl.power and for exact 32-bit integers."""
    named = named_engine(use, engine.vector, engine.gpsimd)
    op = use.op
    if getattr(op, "name", "") == "power":
        if named is engine.vector:
            raise use.refuse(
                "op is nl.power on the Vector Engine; it runs on GpSimd.",
                "the Vector Engine has no power.",
                "leave engine out, or use nisa.activation with nl.exp and nl.log.",
            )
        return engine.gpsimd
    if named is not engine.unknown:
        return named
    if isinstance(op, Operator) and is_exact(use.dst, use.data1, use.data2, op, named):
        return engine.gpsimd
    return engine.vector


def same_start(use: Use) -> None:
    """Two inputs from SBUF in different partitions cross lanes."""
    first, second = use.data1, use.data2
    if first.buffer is second.buffer and first.partition != second.partition:
        use.doubt(
            f"data1 starts at partition {first.partition}, data2 at {second.partition}.",
            "the notes of AWS's kernel library ask for inputs that start at the same partition.",
            "place both at one partition, for example with nisa.dma_copy.",
        )


@instruction(
    pair_engine, two_inputs,
    dst=result(), data1=tile(), data2=tile(),
    rules=(
        operator("op", "arithmetic", "bitwise"), numbers("data1", "data2", "dst"),
        same_size("data1", "data2", "dst"), not_both_in_psum("data1", "data2"), same_start,
        integers_for_bits("op", "data1", "data2", "dst"), gpsimd_without_psum,
    ),
)  # fmt: skip
def tensor_tensor(dst, data1, data2, op, engine=engine.unknown):
    """Combine two tiles element by element; nothing is broadcast.

    int32 and uint32 tiles go to GpSimd, which is exact and wraps around; in PSUM or with
    engine=nisa.engine.vector they pass through FP32 and are exact up to 2^24.
    """
    if op.is_bitwise:
        width = max(data1.itemsize, data2.itemsize)
        left = bit_rows(data1, width)
        put_bits(dst, apply_to_bits(op, left, data2, False))
    elif is_exact(dst, data1, data2, op, engine):
        whole = [t.raw().astype(np.int64).reshape(dst.shape) for t in (data1, data2)]
        dst.put_raw(wrap(np.asarray(op.meaning(*whole)), dst.dtype.numpy))
    else:
        dst.put(op.meaning(rows(data1), rows(data2)))


# ---- reciprocal, dropout -----------------------------------------------------------------------


@instruction(
    engine.vector, per_element("data", 8),
    cost_source="https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/api/nki.api.shared.html",
    dst=result(), data=tile(),
    rules=(same_size("data", "dst"),),
)  # fmt: skip
def reciprocal(dst, data):
    """1 / x in FP32. Eight times as slow as nisa.activation(op=nl.reciprocal), but more exact on
    the device."""
    with np.errstate(all="ignore"):
        dst.put(np.reciprocal(data.get()))


def drops(use: Use) -> None:
    """prob is a probability."""
    data, prob = use.data, use.prob
    if isinstance(prob, Tensor):
        allowed = prob.dtype == "float32" if data.dtype.kind == "int" else prob.dtype.is_float
        if not allowed:
            raise use.refuse(
                f"prob is {prob.dtype} for data of {data.dtype}.",
                "probabilities are float32 for integer data, and of a float type otherwise.",
                "use a float32 column.",
            )
    elif not 0 <= prob <= 1:
        raise use.refuse(
            f"prob is {prob}; allowed: 0 to 1.",
            "it is the probability that an element becomes zero.",
            "pass the fraction to drop, for example 0.1.",
        )


@instruction(
    engine.vector, per_element("data"),
    dst=result(), data=tile(), prob=column(),
    rules=(same_size("data", "dst"), same_types("data", "dst"), drops),
)  # fmt: skip
def dropout(dst, data, prob):
    """Zero elements at random, each with the probability `prob`; the others keep their value.

    The random stream is not the hardware's; it is the same in every run.
    """
    state = running("nisa.dropout").registers
    if "dropout" not in state:
        state["dropout"] = np.random.default_rng(0)
    stored = data.raw().reshape(data.shape[0], -1)
    dropped = state["dropout"].random(stored.shape, np.float32) < column_of(prob)
    dst.put_raw(np.where(dropped, np.zeros((), stored.dtype), stored))


def fill_engine(use: Use) -> engine:
    """The engine that the call names; else GpSimd in PSUM, Vector and GpSimd in turn in SBUF.

    The compiler gives fills of PSUM to GpSimd, although a call cannot ask for that: in published
    profiles the Vector Engine goes on carrying sums out while GpSimd clears the next accumulator
    (row pipeline-one-accumulator of utils/facts/data/nki_measurements.yaml).
    """
    named = named_engine(use, engine.vector, engine.gpsimd)
    if named is not engine.unknown:
        return named
    return engine.gpsimd if use.dst.buffer is PSUM else engine.vector


def not_gpsimd_in_psum_on_request(use: Use) -> None:
    """A call cannot ask for GpSimd in PSUM; what `fill_engine` chooses itself is allowed."""
    if use.args["engine"] is engine.gpsimd:
        gpsimd_without_psum(use)


def alternate(core: Core, args: dict[str, Any]) -> None:
    """Fills of SBUF that name no engine go to Vector and GpSimd in turn."""
    dst = args["dst"]
    if args["engine"] is engine.unknown and getattr(dst, "buffer", None) is SBUF:
        args["engine"] = (engine.vector, engine.gpsimd)[core.fills % 2]
        core.fills += 1


def representable(use: Use) -> None:
    """The number fits the type: no fraction and no overflow in integers, no overflow in floats."""
    value, dtype = use.value, use.dst.dtype
    if isinstance(value, (bool, np.bool_)):
        value = int(value)
    if not isinstance(value, (int, float, np.integer, np.floating)):
        raise use.refuse(
            f"value is {value!r}, it takes a number.",
            "the number is part of the instruction, fixed when the kernel is compiled.",
            "copy a tile with nisa.tensor_copy, or pass a Python number.",
        )
    if dtype.kind == "packed" and value != 0:
        raise use.refuse(
            f"value is {value} for {dtype}; allowed: 0.",
            "an element of a packed type is four numbers in one.",
            "fill with 0, or write the packed numbers with nisa.quantize_mx.",
        )
    if dtype.kind == "int":
        limits = np.iinfo(dtype.numpy)
        if not math.isfinite(value) or value != int(value):
            raise use.refuse(
                f"value is {value} for {dtype}, which holds integers.",
                "since NKI 0.3 a fill does not round.",
                "pass an integer, or fill a float tile.",
            )
        if not limits.min <= value <= limits.max:
            raise use.refuse(
                f"value is {value} for {dtype}, which holds {limits.min} to {limits.max}.",
                "a fill does not wrap around.",
                "use a wider type, or a number in this range.",
            )
    elif dtype.kind == "float" and math.isfinite(value):
        stored = narrow(np.array([value], np.float64), dtype, dtype.numpy).astype(np.float32)[0]
        if not math.isfinite(stored):
            use.doubt(
                f"value is {value}, which {dtype} cannot hold; it becomes {stored}.",
                "rounding to the nearest number of this type goes beyond its largest one.",
                "fill with a number that the type holds.",
            )


@instruction(
    fill_engine, fill, resolve=alternate,
    dst=result(),
    rules=(representable, not_gpsimd_in_psum_on_request),
)  # fmt: skip
def memset(dst, value, engine=engine.unknown):
    """Fill a tile with a number known at compile time."""
    array = dst.array()
    if dst.dtype.kind == "float":
        array[...] = dst.storage.narrow(np.array([value], np.float64), dst.dtype)[0]
    else:
        array[...] = array.dtype.type(int(value))
    dst.storage.written = True


QUADRANT = 32
KEEP = 255


def shuffles(use: Use) -> None:
    """The 32 entries of shuffle_mask name partitions of one quadrant, or 255 to keep a row."""
    dst, src, mask = use.dst, use.src, use.shuffle_mask
    if dst.elements != src.elements:
        raise use.refuse(
            f"src has {src.elements} elements in each partition, dst has {dst.elements}.",
            "every partition moves as a whole.",
            "slice both to the same free size.",
        )
    if not isinstance(mask, (list, tuple)) or len(mask) != QUADRANT:
        match_ = f"{len(mask)} entries" if isinstance(mask, (list, tuple)) else repr(mask)
        raise use.refuse(
            f"shuffle_mask has {match_}; it is a list of {QUADRANT}.",
            "one entry names the source of each partition of a quadrant.",
            "write [0] * 32 to spread one row, or 32 numbers from 0 to 31 (255 keeps a row).",
        )
    active = math.ceil(max(dst.shape[0], src.shape[0]) / QUADRANT) * QUADRANT
    allowed = (0,) if active > 64 else (0, 64) if active == 64 else (0, 32, 64, 96)
    for name in ("src", "dst"):
        start = use.args[name].partition
        if start not in allowed:
            raise use.refuse(
                f"{name} starts at partition {start} with {active} active partitions; such an "
                f"access starts at {', '.join(map(str, allowed))}.",
                "a shuffle works on whole quadrants of 32 partitions.",
                "slice both sides at such a partition.",
            )
    for at, source in enumerate(mask):
        if not isinstance(source, (int, np.integer)) or not (
            0 <= source < QUADRANT or source == KEEP
        ):
            raise use.refuse(
                f"shuffle_mask[{at}] is {source!r}; entries are 0 to {QUADRANT - 1}, or {KEEP}.",
                "partitions are exchanged inside a quadrant only.",
                "name a partition of the quadrant; 255 leaves the row of dst as it was.",
            )
    _sources_exist(use)


def _sources_exist(use: Use) -> None:
    there = use.src.shape[0]
    for target, source in _moves(use.dst.shape[0], use.shuffle_mask):
        if source >= there:
            raise use.refuse(
                f"shuffle_mask takes partition {source} of src for partition {target} of dst; src "
                f"has {there}.",
                f"the mask counts from the start of each quadrant of {QUADRANT} partitions.",
                "pass a src with all partitions that the mask names, or call once for each "
                "quadrant of dst.",
            )


def _moves(count: int, mask: Any) -> list[tuple[int, int]]:
    """(partition of dst, partition of src) for all rows that move."""
    return [
        (at, at - at % QUADRANT + mask[at % QUADRANT])
        for at in range(count)
        if mask[at % QUADRANT] != KEEP
    ]


@instruction(
    engine.vector,
    per_element("src"),
    dst=update(),
    src=tile(),
    rules=(same_types("src", "dst"), shuffles),
)
def nc_stream_shuffle(dst, src, shuffle_mask):
    """Move partitions inside each quadrant of 32: row i takes row shuffle_mask[i]; 255 keeps it.

    [0] * 32 with a src of one row spreads this row over 32 partitions.
    """
    moves = _moves(dst.shape[0], shuffle_mask)
    if not moves:
        return
    targets, sources = (list(item) for item in zip(*moves, strict=True))
    kept = dst.raw().reshape(dst.shape[0], -1).copy()
    kept[targets] = src.raw().reshape(src.shape[0], -1)[sources]
    dst.put_raw(kept)
