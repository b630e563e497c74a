"""The Vector Engine's instructions with accumulators: reductions on the side, running values."""

import numpy as np

from utils.nki.simulator.activations import MEANINGS
from utils.nki.simulator.enums import engine, reduce_cmd
from utils.nki.simulator.instruction import Use, instruction
from utils.nki.simulator.instructions.accumulators import accumulate, read_out, registers
from utils.nki.simulator.instructions.checks import (
    FP32,
    command,
    flag,
    one_of,
    operand_of,
    operator,
)
from utils.nki.simulator.instructions.costs import (
    FEWEST_CYCLES,
    and_reading_registers,
    charged,
    per_element,
)
from utils.nki.simulator.instructions.engines import needs_generation
from utils.nki.simulator.instructions.rules import same_size
from utils.nki.simulator.instructions.tensor_scalar import scanned
from utils.nki.simulator.instructions.values import applied, column_of, rows
from utils.nki.simulator.operands import Operand, column, result, tile
from utils.nki.simulator.operators import OPERATORS

reduce_cmds = reduce_cmd
BEGINS = (reduce_cmd.reset_reduce, reduce_cmd.reduce, reduce_cmd.load_reduce)
INTO_COLUMN = Operand(reads=False, writes=True, column=True, optional=True)


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
    engine=engine.vector,
    cost=and_registers,
    since="0.2",
    dst=result(),
    data=tile(),
    operand0=column(optional=True),
    reduce_res=INTO_COLUMN,
    reduce_init=column(optional=True, dtypes=FP32),
    rules=(
        operator("op0", "arithmetic", "unary"),
        operand_of("op0", "operand0"),
        one_of("reduce_op", "add", "multiply", "maximum", "minimum"),
        flag("reverse0", "reduce_res_negate"),
        not_reversed,
        command(BEGINS, load="reduce_init"),
        same_size("data", "dst"),
    ),
)
def tensor_scalar_reduce(
    dst,
    data,
    op0,
    operand0,
    reduce_op,
    reduce_res=None,
    reverse0=False,
    reduce_cmd=reduce_cmd.reset_reduce,
    reduce_init=None,
    reduce_res_negate=False,
):
    """dst = data op0 operand0, and the reduction of each row in `reduce_res`, shape (P, 1)."""
    made = applied(op0, rows(data), None if op0.is_unary else column_of(operand0), False)
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
    engine=engine.vector,
    cost=per_element("src"),
    since="0.2",
    cost_source="assumed: one element per cycle; nothing is published for this instruction",
    dst=result(dtypes=SMALL_TYPES),
    src=tile(dtypes=SMALL_TYPES),
    imm0=column(optional=True, dtypes=FP32),
    imm1=column(optional=True, dtypes=FP32),
    rules=(
        operator("op0", "arithmetic"),
        operand_of("op0", "imm0"),
        one_of("op1", "add", "subtract", "multiply", "maximum", "minimum"),
        command(BEGINS, load="imm1"),
        same_size("src", "dst"),
    ),
)
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
    values = applied(op0, rows(src), column_of(imm0), False)
    # op1 takes the new value first and the register second, which is scanned's second operator.
    keep = OPERATORS["bypass"]
    made = scanned(lanes[:, None].copy(), values, values, keep, op1, True, True)
    lanes[:] = made[:, -1]
    dst.put(made)


# ---- exponential -----------------------------------------------------------------------------

SOURCES = SMALL_TYPES - {"float8_e4m3fn"} | {"int32", "uint32"}
RESULTS = SMALL_TYPES - {"float8_e4m3fn"} | {"int32", "tfloat32"}
PER_CYCLE = 4
"""Elements in a cycle (Trainium3 guide, fast exponential evaluation)."""


def four_per_cycle(use: Use) -> float:
    """One cycle for four elements of src in a partition."""
    return charged(use, use.src.elements / PER_CYCLE)


@instruction(
    engine=engine.vector,
    cost=and_reading_registers(four_per_cycle),
    since="0.3",
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
