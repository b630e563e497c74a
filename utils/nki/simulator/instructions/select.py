"""Selections by a mask, on the Vector Engine; two of them keep the row maximum as they go."""

import numpy as np

from utils.nki.simulator.enums import MemoryRegion, engine, reduce_cmd
from utils.nki.simulator.instruction import instruction
from utils.nki.simulator.instructions.costs import FEWEST_CYCLES, per_element
from utils.nki.simulator.instructions.gpsimd import COMPARISONS, choose
from utils.nki.simulator.instructions.rules import (
    an_integer,
    command,
    needs_generation,
    not_both_in_psum,
    one_of,
    same_size,
    same_types,
)
from utils.nki.simulator.instructions.values import accumulate, read_out
from utils.nki.simulator.operands import Use, column, result, tile, update
from utils.nki.simulator.operators import OPERATORS, Operator
from utils.nki.simulator.table import for_operands
from utils.nki.simulator.tensor import Tensor

FP32_MIN = float(np.finfo(np.float32).min)
BOUND_OPERATORS = tuple(name for name in COMPARISONS if name != "not_equal")
FLOATS = frozenset("float8_e4m3 float8_e4m3fn float8_e5m2 float16 bfloat16 float32".split())
PREDICATES = frozenset(("uint8", "uint16", "uint32"))
MASKS = frozenset(("uint8", "int8", "uint16", "int16", "bool"))
SELECTABLE = FLOATS | frozenset(("uint8", "int8", "uint16", "int16", "bool"))


only_maximum = one_of(
    "reduce_op", "maximum",
    why="this instruction keeps the maximum of each row, no other reduction.",
    fix="nisa.tensor_reduce the result for another one.",
)  # fmt: skip


def no_result_of_idle(use: Use) -> None:
    """reduce_res is given only where something is reduced."""
    if use.reduce_cmd is reduce_cmd.idle and use.reduce_res is not None:
        raise use.refuse(
            "reduce_res is given with reduce_cmd.idle, which reduces nothing.",
            "the accumulators hold nothing of this call.",
            "pass reduce_cmd=nisa.reduce_cmd.reset_reduce, or leave reduce_res out.",
        )


def keep_maximum(
    use_of: reduce_cmd, op: Operator, values: np.ndarray, dst: Tensor, res: Tensor | None
) -> None:
    """Fold the rows of `values` into the Vector Engine's accumulators, and read them out."""
    rows = values.reshape(values.shape[0], -1)
    accumulate(engine.vector, rows, op, use_of, first=dst.partition)
    if use_of is not reduce_cmd.idle:
        read_out(engine.vector, res, first=dst.partition)


def range_rules(use: Use) -> None:
    """Comparisons with the bounds are ordered, and columns are counted up to 2**24."""
    for name in ("comp_op0", "comp_op1"):
        one_of(
            name, *BOUND_OPERATORS, why="the index of a column is compared with a bound.",
            fix="for low <= column < high: comp_op0=nl.greater_equal, comp_op1=nl.less.",
        )(use)  # fmt: skip
    value = use.on_false_value
    if value is not ... and np.float32(value) != np.float32(FP32_MIN):
        raise use.refuse(
            f"on_false_value is {value!r}; the only one is {FP32_MIN!r}, the lowest FP32 number.",
            "the value is fixed in the hardware.",
            "leave on_false_value out; for another one use nisa.affine_select or "
            "nisa.select_reduce.",
        )
    an_integer(
        "range_start", 0, 2**24 - use.dst.elements,
        why="columns are counted in FP32, exact up to 2**24.",
        fix="pass a Python int, and move the bounds by the rest.",
    )(use)  # fmt: skip


@instruction(
    engine.vector, per_element("dst"),
    dst=result(dtypes=SELECTABLE | {"int32", "uint32"}), on_true_tile=tile(dtypes=FLOATS),
    bound0=column(dtypes=frozenset({"float32"})), bound1=column(dtypes=frozenset({"float32"})),
    reduce_res=result(optional=True, column=True, dtypes=FLOATS),
    rules=(
        needs_generation(3), same_size("on_true_tile", "dst"), range_rules, only_maximum,
        command(tuple(reduce_cmd)), no_result_of_idle,
    ),
)  # fmt: skip
def range_select(
    dst, on_true_tile, comp_op0, comp_op1, bound0, bound1, reduce_cmd=reduce_cmd.reset_reduce,
    reduce_res=None, reduce_op=OPERATORS["maximum"], range_start=0, on_false_value=FP32_MIN,
):  # fmt: skip
    """Keep columns whose index lies between two bounds of the partition, else the lowest FP32.

    `reduce_res` takes the maximum of each row, in FP32 as `dst` was before it was rounded.
    """
    columns = (range_start + np.arange(dst.elements)).astype(np.float32)
    low, high = (item.get().reshape(-1, 1) for item in (bound0, bound1))
    kept = (comp_op0.meaning(columns, low) != 0) & (comp_op1.meaning(columns, high) != 0)
    choose(dst, kept.reshape(dst.shape), on_true_tile, FP32_MIN)
    values = np.where(kept, on_true_tile.get().reshape(kept.shape), np.float32(FP32_MIN))
    keep_maximum(reduce_cmd, reduce_op, values, dst, reduce_res)


@for_operands
def tensors_of_one_size(use: Use, *names: str) -> None:
    """{names} have the same size, unless they are numbers."""
    same_size(*(n for n in names if isinstance(use.args[n], Tensor)))(use)


def cost_predicated(use: Use) -> float:
    """Two cycles for each element of a partition, one if a tile is in PSUM."""
    tensors = (use.src, use.predicate, use.dst)
    in_psum = any(getattr(tensor, "buffer", None) is MemoryRegion.psum for tensor in tensors)
    return max(FEWEST_CYCLES, use.dst.elements * (1 if in_psum else 2))


@instruction(
    engine.vector, cost_predicated,
    dst=update(), src=tile(number=True), predicate=tile(dtypes=PREDICATES),
    rules=(
        same_types("src", "dst"), tensors_of_one_size("dst", "src", "predicate"),
        not_both_in_psum("src", "predicate"),
    ),
)  # fmt: skip
def tensor_copy_predicated(dst, src, predicate, reverse_pred=False):
    """Copy `src`, a tile or a number, to `dst` where `predicate` is not 0; keep `dst` elsewhere."""
    chosen = truth(predicate, reverse_pred).reshape(dst.shape)
    if isinstance(src, Tensor):
        new = src.raw().reshape(dst.shape)
    else:
        new = dst.storage.narrow(np.full(dst.shape, src, np.float32), dst.dtype)
    dst.put_raw(np.where(chosen, new, dst.raw()))


def truth(predicate: Tensor, reverse: bool) -> np.ndarray:
    """Where the predicate holds. Reversed it is the logical opposite, not the bits'."""
    holds = predicate.raw() != 0
    return ~holds if reverse else holds


def column_or_number(use: Use) -> None:
    """on_false is a number or a column."""
    if isinstance(use.on_false, Tensor):
        if use.on_false.elements != 1 or use.on_false.shape[0] != use.on_true.shape[0]:
            raise use.refuse(
                f"on_false is {use.on_false.shape}; it is a number or has the shape "
                f"({use.on_true.shape[0]}, 1).",
                "it is read once for each partition.",
                "for two full tiles: nisa.tensor_copy one to dst, and "
                "nisa.tensor_copy_predicated the other.",
            )


@instruction(
    engine.vector, per_element("dst"), cost_source="not published; taken as one element per cycle",
    dst=result(), predicate=tile(dtypes=MASKS), on_true=tile(dtypes=SELECTABLE),
    on_false=tile(number=True), reduce_res=result(optional=True, column=True, dtypes=FLOATS),
    rules=(
        column_or_number, same_size("on_true", "predicate", "dst"),
        not_both_in_psum("on_true", "predicate"), only_maximum,
        command((reduce_cmd.idle, reduce_cmd.reduce, reduce_cmd.reset_reduce)), no_result_of_idle,
    ),
)  # fmt: skip
def select_reduce(
    dst, predicate, on_true, on_false, reduce_res=None, reduce_cmd=reduce_cmd.idle,
    reduce_op=OPERATORS["maximum"], reverse_pred=False,
):  # fmt: skip
    """Take `on_true` where `predicate` is not 0, else `on_false` (a number or one per partition).

    With reduce_cmd, the maximum of each row goes to the accumulators and to `reduce_res`.
    """
    kept = truth(predicate, reverse_pred).reshape(dst.shape)
    other = on_false.get() if isinstance(on_false, Tensor) else np.float32(on_false)
    other = np.reshape(other, (-1,) + (1,) * (dst.ndim - 1)) if np.ndim(other) else other
    choose(dst, kept, on_true, other)
    values = np.where(kept, on_true.get().reshape(dst.shape), other)
    keep_maximum(reduce_cmd, reduce_op, values, dst, reduce_res)
