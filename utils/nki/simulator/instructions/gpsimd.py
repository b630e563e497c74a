"""The GpSimd Engine: index patterns, masks made of them, reductions over partitions."""

import math
from typing import Any

import numpy as np

from utils.nki.simulator.enums import engine
from utils.nki.simulator.errors import is_whole
from utils.nki.simulator.instruction import instruction
from utils.nki.simulator.instructions.rules import an_integer, one_of, same_size
from utils.nki.simulator.operands import SBUF, Use, result, tile
from utils.nki.simulator.operators import OPERATORS
from utils.nki.simulator.table import for_operands
from utils.nki.simulator.tensor import Tensor

STARTUP_CYCLES = 150
"""Fixed part of an instruction of the GpSimd Engine (SDK 2.26, pages of iota, affine_select)."""

SBUF_ONLY = frozenset({SBUF})
MOST_PAIRS = 4
COMPARISONS = ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal")
PLAIN = frozenset(
    "bool uint8 int8 uint16 int16 uint32 int32 float8_e4m3 float8_e4m3fn float8_e5m2 float16 "
    "bfloat16 tfloat32 float32".split()
)
"""The types that hold one number per element."""


def startup_and_elements(use: Use) -> float:
    """A start-up, and one cycle for each element of dst in a partition."""
    return STARTUP_CYCLES + use.dst.elements


def affine_pattern(use: Use) -> None:
    """pattern is up to 4 pairs [step, count], as many values as a row of dst has elements."""
    pattern = use.pattern
    pairs = list(pattern) if isinstance(pattern, (list, tuple)) else []
    good = all(
        isinstance(pair, (list, tuple)) and len(pair) == 2 and all(is_whole(n) for n in pair)
        for pair in pairs
    )
    if not pairs or not good or len(pairs) > MOST_PAIRS or any(n < 1 for _, n in pairs):
        raise use.refuse(
            f"pattern is {pattern!r}; allowed are 1 to {MOST_PAIRS} pairs [step, count] of "
            "integers, counts of 1 or more.",
            "the engine steps through four nested loops at most.",
            f"for a running index along the row write pattern=[[1, {use.dst.elements}]].",
        )
    count = math.prod(n for _, n in pairs)
    if count != use.dst.elements:
        raise use.refuse(
            f"the counts of pattern {[list(p) for p in pairs]} make {count} elements, dst has "
            f"{use.dst.elements} per partition {use.dst.shape}.",
            "the pattern makes one value for each element of a partition.",
            f"choose counts with the product {use.dst.elements}, or slice dst.",
        )
    for name in ("offset", "channel_multiplier"):
        an_integer(name)(use)


def affine(pattern: Any, offset: int, multiplier: int, partitions: int) -> np.ndarray:
    """offset + partition * multiplier + the steps, wrapped to int32: (partitions, elements)."""
    row = np.zeros(1, np.int64)
    for step, count in pattern:
        row = np.add.outer(row, step * np.arange(count)).reshape(-1)
    values = offset + multiplier * np.arange(partitions)[:, None] + row
    return values.astype(np.int32).astype(np.int64)


def put_integers(dst: Tensor, values: np.ndarray) -> None:
    """Write whole numbers without going through FP32 where dst holds integers; saturating."""
    if dst.dtype.kind == "float":
        dst.put(values.astype(np.float32))
        return
    limits = np.iinfo(dst.dtype.numpy)
    dst.put_raw(np.clip(values, limits.min, limits.max).astype(dst.dtype.numpy))


@instruction(
    engine.gpsimd,
    startup_and_elements,
    dst=result(memory=SBUF_ONLY, dtypes=PLAIN),
    rules=(affine_pattern,),
)
def iota(dst, pattern, offset=0, channel_multiplier=0):
    """Write an index pattern: offset + partition * channel_multiplier + sum of step * i.

    pattern: up to four [step, count] pairs, outermost first; the counts make the row of `dst`.
    """
    put_integers(dst, affine(pattern, offset, channel_multiplier, dst.shape[0]))


a_comparison = one_of(
    "cmp_op", *COMPARISONS, why="the index is compared with 0.",
    fix="for a causal mask, row >= column, pass cmp_op=nl.greater_equal with "
    "channel_multiplier=1 and pattern=[[-1, columns]].",
)  # fmt: skip


@for_operands
def a_number(use: Use, name: str) -> None:
    """{name} is a plain number."""
    value = use.args[name]
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise use.refuse(
            f"{name} is {value!r}; it is a number.",
            "the instruction carries it as one FP32 constant.",
            f"pass {name}=0.0, or another float.",
        )


@instruction(
    engine.gpsimd, startup_and_elements,
    dst=result(memory=SBUF_ONLY, dtypes=PLAIN), on_true_tile=tile(memory=SBUF_ONLY, dtypes=PLAIN),
    rules=(
        same_size("on_true_tile", "dst"), affine_pattern, a_comparison,
        a_number("on_false_value"),
    ),
)  # fmt: skip
def affine_select(
    dst, pattern, channel_multiplier, on_true_tile, on_false_value, cmp_op=OPERATORS["equal"],
    offset=0,
):  # fmt: skip
    """Keep elements where an index pattern compares with 0, write a number elsewhere.

    The index is offset + partition * channel_multiplier + sum of step * i, as in `iota`. With
    pattern [[-1, columns]], channel_multiplier 1 and nl.greater_equal it is a causal mask.
    """
    index = affine(pattern, offset, channel_multiplier, dst.shape[0])
    kept = cmp_op.meaning(index, 0).astype(bool).reshape(dst.shape)
    choose(dst, kept, on_true_tile, on_false_value)


def choose(dst: Tensor, kept: np.ndarray, on_true: Tensor, on_false: Any) -> None:
    """Elements of `on_true` where `kept`, bit by bit if types agree, else `on_false` (FP32)."""
    other = np.broadcast_to(np.asarray(on_false, np.float32), dst.shape)
    other = dst.storage.narrow(other, dst.dtype)
    if on_true.dtype == dst.dtype:
        chosen = on_true.raw().reshape(dst.shape)
    else:
        chosen = dst.storage.narrow(on_true.get().reshape(dst.shape), dst.dtype)
    dst.put_raw(np.where(kept, chosen, other))


REDUCTIONS = {
    "add": np.add.reduce, "maximum": np.maximum.reduce, "average": np.mean, "mean": np.mean,
    "bitwise_or": np.bitwise_or.reduce, "bitwise_and": np.bitwise_and.reduce,
}  # fmt: skip


def over_partitions(use: Use) -> None:
    """op adds, compares, averages or combines bits, and dst has one partition."""
    op = getattr(use.op, "name", None)
    if op not in REDUCTIONS:
        raise use.refuse(
            f"op is {use.op!r}; allowed are nl.add, nl.maximum, the average, nl.bitwise_or and "
            "nl.bitwise_and.",
            "the engine adds, compares or combines bits over partitions.",
            "another reduction: nisa.nc_transpose the tile, then nisa.tensor_reduce.",
        )
    if op.startswith("bitwise") and (use.data.dtype.is_float or use.data.dtype != use.dst.dtype):
        raise use.refuse(
            f"{use.op!r} on {use.data.dtype} into {use.dst.dtype}; both are one integer type.",
            "bits are combined as they are stored.",
            "use integer tiles of one type, or nl.maximum.",
        )
    if use.dst.shape[0] != 1 or use.dst.elements != use.data.elements:
        raise use.refuse(
            f"dst is {use.dst.shape}; the reduction of {use.data.shape} has 1 partition and "
            f"{use.data.elements} elements.",
            "all partitions become one.",
            f"dst = nl.ndarray((1, {use.data.elements}), ...). Faster: nisa.nc_matmul with a "
            "column of ones as stationary adds over partitions.",
        )


def cost_over_partitions(use: Use) -> float:
    """A start-up, and one cycle for 4 elements of all partitions."""
    return STARTUP_CYCLES + use.data.elements * use.data.shape[0] / 4


@instruction(
    engine.gpsimd, cost_over_partitions,
    cost_source="not published, called slow; 4 elements per cycle is a guess",
    dst=result(memory=SBUF_ONLY, dtypes=PLAIN), data=tile(memory=SBUF_ONLY, dtypes=PLAIN),
    rules=(over_partitions,),
)  # fmt: skip
def tensor_partition_reduce(dst, op, data):
    """Reduce over partitions: (P, F) becomes (1, F). A matmul with ones adds much faster."""
    reduce = REDUCTIONS[op.name]
    if op.is_bitwise:
        dst.put_raw(reduce(data.raw(), axis=0))
    else:
        dst.put(np.asarray(reduce(data.get(), axis=0), np.float32))


def bounds_of_segments(ids: np.ndarray) -> np.ndarray:
    """(n,) segment numbers, 0 for padding: (2, n), where each one's segment begins and ends.

    >>> bounds_of_segments(np.array([1, 1, 2, 0])).tolist()
    [[0, 0, 2, 4], [2, 2, 3, -1]]
    """
    count = len(ids)
    edges = np.flatnonzero(np.diff(ids)) + 1
    starts, ends = np.concatenate([[0], edges]), np.concatenate([edges, [count]])
    lengths = ends - starts
    made = np.stack([np.repeat(starts, lengths), np.repeat(ends, lengths)])
    made[:, ids == 0] = [[count], [-1]]
    return made


def two_rows(use: Use) -> None:
    """Both lie in one partition, and dst has two values for each segment number."""
    ids, dst = use.segment_ids, use.dst
    if ids.shape[0] != 1 or dst.shape[0] != 1 or dst.elements != 2 * ids.elements:
        raise use.refuse(
            f"segment_ids is {ids.shape}, dst is {dst.shape}; of (1, n) the result is (1, 2, n).",
            "it holds all begins, then all ends, in one partition.",
            f"dst = nl.ndarray((1, 2, {ids.elements}), dtype={ids.dtype!r}, buffer=nl.sbuf).",
        )


@instruction(
    engine.gpsimd,
    startup_and_elements,
    cost_source="not published; taken for two passes over the row",
    dst=result(memory=SBUF_ONLY, dtypes=frozenset(("float32", "int32"))),
    segment_ids=tile(memory=SBUF_ONLY, dtypes=frozenset(("float32", "int32"))),
    rules=(two_rows,),
)
def sequence_bounds(dst, segment_ids):
    """For each element where its segment begins, and where it ends (the first that is outside).

    Segment 0 is padding: it begins at n and ends at -1. `segment_ids` (1, n), `dst` (1, 2, n).
    """
    made = bounds_of_segments(segment_ids.raw().reshape(-1))
    put_integers(dst, made.reshape(dst.shape))
