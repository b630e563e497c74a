"""Rows and columns: operators with one value for each partition or a second tile, scans, running
values, and reductions on the side.
"""

import numpy as np

from utils.nki.simulator.enums import engine, reduce_cmd
from utils.nki.simulator.instruction import instruction
from utils.nki.simulator.instructions.costs import (
    FEWEST_CYCLES,
    and_reading_registers,
    charge,
    one_input,
    per_element,
    scalar_and_tensor,
)
from utils.nki.simulator.instructions.rules import (
    FP32,
    command,
    flag,
    gpsimd_without_psum,
    integers_for_bits,
    named_engine,
    needs_generation,
    not_both_in_psum,
    numbers,
    one_of,
    operand_of,
    operator,
    same_size,
)
from utils.nki.simulator.instructions.values import (
    INTO_COLUMN,
    accumulate,
    apply,
    apply_to_bits,
    bit_rows,
    column_of,
    put_bits,
    read_out,
    registers,
    rows,
)
from utils.nki.simulator.operands import Use, column, result, tile
from utils.nki.simulator.operators import MEANINGS, OPERATORS, Operator

# ---- tensor_scalar ---------------------------------------------------------------------------

SCALAR_ENGINE_PAIRS = (("multiply", "add"), ("multiply", None), ("add", None))
SLOWER_RSQRT = 4
"""GpSimd's rsqrt takes four times the cycles of the Scalar Engine's (NKI ISA common fields)."""


def _names(use: Use) -> tuple[str | None, str | None]:
    return getattr(use.op0, "name", None), getattr(use.op1, "name", None)


def scalar_operand_engine(use: Use) -> engine:
    """The Vector Engine, but GpSimd for rsqrt; the Scalar Engine before gen4 has three forms."""
    named = named_engine(use, engine.vector, engine.scalar, engine.gpsimd)
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
            match_ = f"op0 is {use.op0!r}" + (f", op1 is {use.op1!r}" if use.op1 else "")
            raise use.refuse(
                f"{match_} on the Scalar Engine; allowed before gen4: multiply then add, multiply, "
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
        return charge(use, SLOWER_RSQRT * use.data.elements)
    return one_input("data")(use)


@instruction(
    scalar_operand_engine, cost_tensor_scalar,
    dst=result(), data=tile(), operand0=column(optional=True), operand1=column(optional=True),
    rules=(
        operator("op0", "arithmetic", "bitwise", "unary"),
        operator("op1", "arithmetic", "bitwise", "unary", optional=True), one_kind_of_operator,
        numbers("data", "dst"), operand_of("op0", "operand0"), operand_of("op1", "operand1"),
        flag("reverse0", "reverse1"), integers_for_bits("op0", "data", "dst"),
        same_size("data", "dst"), gpsimd_without_psum,
    ),
)  # fmt: skip
def tensor_scalar(
    dst, data, op0, operand0, reverse0=False, op1=None, operand1=None, reverse1=False,
    engine=engine.unknown,
):  # fmt: skip
    """(data op0 operand0) op1 operand1, each operand a number or one FP32 value per partition.

    Two operators take as long as one, and round once. reverse0 and reverse1 swap the sides.
    """
    if op0.is_bitwise:
        bits = apply_to_bits(op0, bit_rows(data, data.itemsize), operand0, reverse0)
        if op1 is not None:
            bits = apply_to_bits(op1, bits, operand1, reverse1)
        put_bits(dst, bits)
        return
    made = apply(op0, rows(data), _operand(op0, operand0), reverse0)
    if op1 is not None:
        made = apply(op1, made, _operand(op1, operand1), reverse1)
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
    engine.vector, scalar_and_tensor,
    dst=result(), data=tile(), operand0=column(), operand1=tile(),
    rules=(
        operator("op0", "arithmetic"), operator("op1", "arithmetic"), flag("reverse0", "reverse1"),
        numbers("data", "operand1", "dst"), operands_in_order, same_size("data", "operand1", "dst"),
        not_both_in_psum("data", "operand1"),
    ),
)  # fmt: skip
def scalar_tensor_tensor(dst, data, op0, operand0, op1, operand1, reverse0=False, reverse1=False):
    """(data op0 operand0) op1 operand1: operand0 a number or column, operand1 a tile like data."""
    made = apply(op0, rows(data), column_of(operand0), reverse0)
    dst.put(apply(op1, made, rows(operand1), reverse1))


# ---- tensor_tensor_scan ----------------------------------------------------------------------


def scan(
    start: np.ndarray, first: np.ndarray, second: np.ndarray, op0: Operator, op1: Operator,
    reverse0: bool, reverse1: bool,
) -> np.ndarray:  # fmt: skip
    """r[i] = (first[i] op0 r[i - 1]) op1 second[i], along the rows; all (partitions, elements)."""
    made = np.empty(first.shape[::-1], np.float32)
    columns0, columns1 = np.ascontiguousarray(first.T), np.ascontiguousarray(second.T)
    state = np.broadcast_to(start, (first.shape[0], 1))[:, 0]
    for i in range(len(made)):
        step = apply(op0, columns0[i], state, reverse0)
        state = made[i] = apply(op1, step, columns1[i], reverse1)
    return made.T


@instruction(
    engine.vector, per_element("data0", 2),
    dst=result(), data0=tile(), data1=tile(), initial=column(),
    rules=(
        operator("op0", "arithmetic"), operator("op1", "arithmetic"), flag("reverse0", "reverse1"),
        numbers("data0", "data1", "dst"), same_size("data0", "data1", "dst"),
        not_both_in_psum("data0", "data1"),
    ),
)  # fmt: skip
def tensor_tensor_scan(dst, data0, data1, initial, op0, op1, reverse0=False, reverse1=False):
    """A recurrence along the row: r[i] = (data0[i] op0 r[i-1]) op1 data1[i], begun with `initial`.

    The state stays in FP32; only what is written is rounded.
    """
    dst.put(scan(column_of(initial), rows(data0), rows(data1), op0, op1, reverse0, reverse1))


reduce_cmds = reduce_cmd
BEGINS = (reduce_cmd.reset_reduce, reduce_cmd.reduce, reduce_cmd.load_reduce)


def _begin(value):  # noqa: ANN001, ANN202
    return None if value is None else column_of(value)


# ---- tensor_scalar_reduce --------------------------------------------------------------------


def not_reversed(use: Use) -> None:
    """reverse0 is False."""
    if use.reverse0:
        raise use.refuse(
            "reverse0 is True; allowed: False.",
            "NKI 0.6 does not support it for this instruction yet.",
            "use nisa.tensor_scalar(reverse0=True) and nisa.tensor_reduce.",
        )


def and_registers(use: Use) -> float:
    """One cycle for each element of data in a partition, and reading the registers."""
    return per_element("data")(use) + FEWEST_CYCLES


@instruction(
    engine.vector, and_registers,
    dst=result(), data=tile(), operand0=column(optional=True), reduce_res=INTO_COLUMN,
    reduce_init=column(optional=True, dtypes=FP32),
    rules=(
        operator("op0", "arithmetic", "unary"), operand_of("op0", "operand0"),
        one_of("reduce_op", "add", "multiply", "maximum", "minimum"),
        flag("reverse0", "reduce_res_negate"), not_reversed, command(BEGINS, load="reduce_init"),
        same_size("data", "dst"),
    ),
)  # fmt: skip
def tensor_scalar_reduce(
    dst, data, op0, operand0, reduce_op, reduce_res=None, reverse0=False,
    reduce_cmd=reduce_cmd.reset_reduce, reduce_init=None, reduce_res_negate=False,
):  # fmt: skip
    """dst = data op0 operand0, and the reduction of each row in `reduce_res`, shape (P, 1)."""
    made = apply(op0, rows(data), None if op0.is_unary else column_of(operand0), False)
    dst.put(made)
    lane = dst.partition
    accumulate(engine.vector, made, reduce_op, reduce_cmd, first=lane, begin=_begin(reduce_init))
    read_out(engine.vector, reduce_res, first=lane, negate=reduce_res_negate)


# ---- tensor_scalar_cumulative ------------------------------------------------------------------

SMALL_TYPES = frozenset((
    "bfloat16", "float16", "float32", "float8_e4m3", "float8_e4m3fn", "float8_e5m2",
    "uint8", "uint16", "int8", "int16",
))  # fmt: skip


@instruction(
    engine.vector, per_element("src"),
    cost_source="assumed: one element per cycle; nothing is published for this instruction",
    dst=result(dtypes=SMALL_TYPES), src=tile(dtypes=SMALL_TYPES),
    imm0=column(optional=True, dtypes=FP32), imm1=column(optional=True, dtypes=FP32),
    rules=(
        operator("op0", "arithmetic"), operand_of("op0", "imm0"),
        one_of("op1", "add", "subtract", "multiply", "maximum", "minimum"),
        command(BEGINS, load="imm1"), same_size("src", "dst"),
    ),
)  # fmt: skip
def tensor_scalar_cumulative(
    dst, src, op0, op1, imm0, imm1=None, reduce_cmd=reduce_cmd.reset_reduce
):
    """Running values along the row: register = op1(src[i] op0 imm0, register), each one written.

    The register begins with op1's neutral value, with what it holds (reduce), or with `imm1`
    (load_reduce).
    """
    lane = dst.partition
    lanes = registers(engine.vector)[lane : lane + src.shape[0]]
    if reduce_cmd is reduce_cmds.reset_reduce:
        lanes[:] = op1.identity
    elif reduce_cmd is reduce_cmds.load_reduce:
        lanes[:] = np.reshape(column_of(imm1), -1)
    values = apply(op0, rows(src), column_of(imm0), False)
    # op1 takes the new value first and the register second, as the second operator of `scan`.
    keep = OPERATORS["bypass"]
    made = scan(lanes[:, None].copy(), values, values, keep, op1, True, True)
    lanes[:] = made[:, -1]
    dst.put(made)


# ---- exponential -----------------------------------------------------------------------------

SOURCES = SMALL_TYPES - {"float8_e4m3fn"} | {"int32", "uint32"}
RESULTS = SMALL_TYPES - {"float8_e4m3fn"} | {"int32", "tfloat32"}
PER_CYCLE = 4
"""Elements in a cycle (Trainium3 guide, fast exponential evaluation)."""


def four_per_cycle(use: Use) -> float:
    """One cycle for four elements of src in a partition."""
    return charge(use, use.src.elements / PER_CYCLE)


@instruction(
    engine.vector,
    and_reading_registers(four_per_cycle),
    cost_source="https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/guides/architecture/"
    "trainium3_arch.html",
    dst=result(dtypes=RESULTS),
    src=tile(dtypes=SOURCES),
    max_value=column(dtypes=FP32),
    reduce_res=INTO_COLUMN,
    reduce_init=column(optional=True, dtypes=FP32),
    rules=(
        needs_generation(4),
        same_size("src", "dst"),
        command((reduce_cmd.idle, *BEGINS), load="reduce_init"),
    ),
)
def exponential(
    dst, src, max_value=0.0, reduce_res=None, reduce_cmd=reduce_cmd.idle, reduce_init=0.0
):
    """dst = exp(src - max_value), with the sum of each row. On the Vector Engine, from gen4 on."""
    with np.errstate(all="ignore"):
        made = MEANINGS["exp"](rows(src) - column_of(max_value))
    dst.put(made)
    lane = dst.partition
    accumulate(
        engine.vector, made, OPERATORS["add"], reduce_cmd, first=lane, begin=_begin(reduce_init)
    )
    read_out(engine.vector, reduce_res, first=lane)
