"""Rows and columns: operators with one value for each partition, with a second tile, and scans."""

import numpy as np

from utils.nki.simulator.enums import engine
from utils.nki.simulator.instruction import Use, instruction
from utils.nki.simulator.instructions.checks import (
    flag,
    integers_for_bits,
    numbers,
    operand_of,
    operator,
)
from utils.nki.simulator.instructions.costs import (
    charged,
    one_input,
    per_element,
    scalar_and_tensor,
)
from utils.nki.simulator.instructions.engines import asked, gpsimd_without_psum
from utils.nki.simulator.instructions.rules import not_both_in_psum, same_size
from utils.nki.simulator.instructions.values import (
    applied,
    applied_to_bits,
    bit_rows,
    column_of,
    put_bits,
    rows,
)
from utils.nki.simulator.operands import column, result, tile
from utils.nki.simulator.operators import Operator

engines = engine

# ---- tensor_scalar ---------------------------------------------------------------------------

SCALAR_ENGINE_PAIRS = (("multiply", "add"), ("multiply", None), ("add", None))
SLOWER_RSQRT = 4
"""GpSimd's rsqrt takes four times the cycles of the Scalar Engine's (NKI ISA common fields)."""


def _names(use: Use) -> tuple[str | None, str | None]:
    return getattr(use.op0, "name", None), getattr(use.op1, "name", None)


def scalar_operand_engine(use: Use) -> engine:
    """The Vector Engine, but GpSimd for rsqrt; the Scalar Engine before gen4 has three forms."""
    named = asked(use, engine.vector, engine.scalar, engine.gpsimd)
    names = _names(use)
    if "rsqrt" in names:
        if named in (engine.unknown, engine.gpsimd):
            return engine.gpsimd
        raise use.refuse(
            f"nl.rsqrt on nisa.engine.{named.name}; in tensor_scalar it runs on GpSimd.",
            "neither the Vector Engine nor this form of the Scalar Engine has it.",
            "leave engine out, or use nisa.activation(op=nl.rsqrt) on the Scalar Engine.",
        )
    if named is engine.gpsimd:
        raise use.refuse(
            f"op0 is {use.op0!r} on GpSimd; allowed there: nl.rsqrt.",
            "of this instruction GpSimd runs rsqrt only.",
            "pass engine=nisa.engine.vector.",
        )
    if named is engine.scalar:
        if any(isinstance(op, Operator) and op.is_bitwise for op in (use.op0, use.op1)):
            raise use.refuse(
                f"op0 is {use.op0!r} on the Scalar Engine; operators on bits run on the Vector "
                "Engine.",
                "the Scalar Engine computes in FP32.",
                "pass engine=nisa.engine.vector.",
            )
        if use.target.generation < 4 and names not in SCALAR_ENGINE_PAIRS:
            found = f"op0 is {use.op0!r}" + (f", op1 is {use.op1!r}" if use.op1 else "")
            raise use.refuse(
                f"{found} on the Scalar Engine; allowed before gen4: multiply then add, multiply, "
                "add.",
                "it has one multiplication and one addition in front of its functions.",
                "pass engine=nisa.engine.vector.",
            )
    return engine.vector if named is engine.unknown else named


def one_kind_of_operator(use: Use) -> None:
    """op0 and op1 are both operators on numbers, or both on bits."""
    if use.op1 is not None and use.op0.is_bitwise != use.op1.is_bitwise:
        raise use.refuse(
            f"op0 is {use.op0!r} and op1 is {use.op1!r}: one on bits, one on numbers.",
            "the two stages of the engine read bit patterns or FP32, both the same.",
            "use two instructions.",
        )


def cost_tensor_scalar(use: Use) -> float:
    """One cycle for each element of data, less in the performance modes.

    An rsqrt on GpSimd takes longer.
    """
    if use.engine is engine.gpsimd:
        return charged(use, SLOWER_RSQRT * use.data.elements)
    return one_input("data")(use)


@instruction(
    engine=scalar_operand_engine,
    cost=cost_tensor_scalar,
    since="0.2",
    dst=result(),
    data=tile(),
    operand0=column(optional=True),
    operand1=column(optional=True),
    rules=(
        operator("op0", "arithmetic", "bitwise", "unary"),
        operator("op1", "arithmetic", "bitwise", "unary", optional=True),
        one_kind_of_operator,
        numbers("data", "dst"),
        operand_of("op0", "operand0"),
        operand_of("op1", "operand1"),
        flag("reverse0", "reverse1"),
        integers_for_bits("op0", "data", "dst"),
        same_size("data", "dst"),
        gpsimd_without_psum,
    ),
)
def tensor_scalar(
    dst,
    data,
    op0,
    operand0,
    reverse0=False,
    op1=None,
    operand1=None,
    reverse1=False,
    engine=engine.unknown,
):
    """(data op0 operand0) op1 operand1, each operand a number or one FP32 value per partition.

    Two operators take as long as one, and round once. reverse0 and reverse1 swap the sides.
    """
    if op0.is_bitwise:
        bits = applied_to_bits(op0, bit_rows(data, data.itemsize), operand0, reverse0)
        if op1 is not None:
            bits = applied_to_bits(op1, bits, operand1, reverse1)
        put_bits(dst, bits)
        return
    made = applied(op0, rows(data), _operand(op0, operand0), reverse0)
    if op1 is not None:
        made = applied(op1, made, _operand(op1, operand1), reverse1)
    dst.put(made)


def _operand(op: Operator, operand):  # noqa: ANN001, ANN202
    return None if op.is_unary else column_of(operand)


# ---- scalar_tensor_tensor --------------------------------------------------------------------


def operands_in_order(use: Use) -> None:
    """operand0 is the number or the column, operand1 a full tile like data."""
    data, second = use.data, use.operand1
    if data.elements > 1 and second.elements == 1 and second.shape[0] == data.shape[0]:
        raise use.refuse(
            f"operand1 is a column {second.shape}, data is {data.shape}.",
            "operand0 is the number or the column (P, 1); operand1 is a full tile like data.",
            "swap the operands, or use nisa.tensor_scalar for two columns.",
        )


@instruction(
    engine=engine.vector,
    cost=scalar_and_tensor,
    since="0.2",
    dst=result(),
    data=tile(),
    operand0=column(),
    operand1=tile(),
    rules=(
        operator("op0", "arithmetic"),
        operator("op1", "arithmetic"),
        flag("reverse0", "reverse1"),
        numbers("data", "operand1", "dst"),
        operands_in_order,
        same_size("data", "operand1", "dst"),
        not_both_in_psum("data", "operand1"),
    ),
)
def scalar_tensor_tensor(dst, data, op0, operand0, op1, operand1, reverse0=False, reverse1=False):
    """(data op0 operand0) op1 operand1: operand0 a number or column, operand1 a tile like data."""
    made = applied(op0, rows(data), column_of(operand0), reverse0)
    dst.put(applied(op1, made, rows(operand1), reverse1))


# ---- tensor_tensor_scan ----------------------------------------------------------------------


def scanned(
    start: np.ndarray, first: np.ndarray, second: np.ndarray, op0: Operator, op1: Operator,
    reverse0: bool, reverse1: bool,
) -> np.ndarray:  # fmt: skip
    """r[i] = (first[i] op0 r[i - 1]) op1 second[i], along the rows; all (partitions, elements)."""
    made = np.empty(first.shape[::-1], np.float32)
    columns0, columns1 = np.ascontiguousarray(first.T), np.ascontiguousarray(second.T)
    state = np.broadcast_to(start, (first.shape[0], 1))[:, 0]
    for i in range(len(made)):
        step = applied(op0, columns0[i], state, reverse0)
        state = made[i] = applied(op1, step, columns1[i], reverse1)
    return made.T


@instruction(
    engine=engine.vector,
    cost=per_element("data0", 2),
    since="0.2",
    dst=result(),
    data0=tile(),
    data1=tile(),
    initial=column(),
    rules=(
        operator("op0", "arithmetic"),
        operator("op1", "arithmetic"),
        flag("reverse0", "reverse1"),
        numbers("data0", "data1", "dst"),
        same_size("data0", "data1", "dst"),
        not_both_in_psum("data0", "data1"),
    ),
)
def tensor_tensor_scan(dst, data0, data1, initial, op0, op1, reverse0=False, reverse1=False):
    """A recurrence along the row: r[i] = (data0[i] op0 r[i-1]) op1 data1[i], begun with `initial`.

    The state stays in FP32; only what is written is rounded.
    """
    dst.put(scanned(column_of(initial), rows(data0), rows(data1), op0, op1, reverse0, reverse1))
