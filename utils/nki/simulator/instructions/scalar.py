"""The Scalar Engine: functions of one value, with a scale, a bias and a running sum."""

from typing import Any

import numpy as np

from utils.nki.simulator.enums import engine, reduce_cmd
from utils.nki.simulator.errors import doubt
from utils.nki.simulator.instruction import instruction
from utils.nki.simulator.instructions.costs import and_reading_registers, per_element
from utils.nki.simulator.instructions.rules import (
    FP32,
    command,
    flag,
    needs_generation,
    numbers,
    one_of,
    operator,
    same_size,
)
from utils.nki.simulator.instructions.values import (
    INTO_COLUMN,
    accumulate,
    apply,
    column_of,
    read_out,
    rows,
)
from utils.nki.simulator.operands import Use, column, result, tile
from utils.nki.simulator.operators import OPERATORS, Operator
from utils.nki.simulator.tensor import Tensor

reduce_cmds = reduce_cmd
COMMANDS = (reduce_cmd.idle, reduce_cmd.reset, reduce_cmd.reduce, reduce_cmd.reset_reduce)
REDUCES = (reduce_cmd.reduce, reduce_cmd.reset_reduce)
MOST_REDUCED = 16384


# ---- rules -----------------------------------------------------------------------------------


def bias_of_generation(use: Use) -> None:
    """bias is a column, from Trainium2 on also a number; nl.reciprocal takes one from there on."""
    bias = use.bias
    if isinstance(bias, Tensor):
        if bias.dtype == "tfloat32":
            raise use.refuse(
                "bias is a tile of tfloat32; every other type is allowed.",
                "the engine does not convert this type for a bias.",
                "use a float32 column.",
            )
    elif bias is not None and bias != 0 and use.target.generation < 3:
        raise use.refuse(
            f"bias is the number {bias} on Trainium1 (gen2); there it is a column (P, 1).",
            "a bias written into the instruction exists from gen3 on.",
            "nisa.memset a float32 tile of shape (P, 1) and pass it as bias.",
        )
    set_ = bias is not None and (isinstance(bias, Tensor) or bias != 0)
    if set_ and use.op.name == "reciprocal" and use.target.generation < 3:
        raise use.refuse(
            f"op is nl.reciprocal with bias={bias!r} on Trainium1 (gen2), where it takes none.",
            "the function occupies the adder of gen2.",
            "add in an instruction before, nisa.tensor_scalar(op0=nl.add).",
        )


def reduces_with_an_operator(use: Use) -> None:
    """A reduction needs its reduce_op."""
    given = use.args["reduce_cmd"]
    if given in REDUCES and use.reduce_op is None:
        raise use.refuse(
            f"reduce_cmd is {given.name} and reduce_op is None.",
            "the accumulators need an operator to reduce with.",
            "pass reduce_op=nl.add.",
        )
    if given is reduce_cmd.idle and use.reduce_res is not None:
        use.doubt(
            "reduce_res is given while reduce_cmd is idle.",
            "idle leaves the accumulators alone, so reduce_res gets what an earlier instruction "
            "left there, not the sum of this one.",
            "pass reduce_cmd=nisa.reduce_cmd.reset_reduce.",
        )


def not_too_long(use: Use) -> None:
    """Long rows are reduced in pieces (a warning)."""
    n = use.data.elements
    if n > MOST_REDUCED:
        use.doubt(
            f"{n} elements in each partition are reduced at once.",
            f"more than {MOST_REDUCED} were found not to work on the device (notes of the NKI "
            "autotuning project).",
            f"split the row into pieces of at most {MOST_REDUCED} with reduce_cmd.reduce.",
        )


def slope_of_prelu(use: Use) -> None:
    """nl.prelu has no slope here (a warning)."""
    if use.op.name == "prelu":
        use.doubt(
            "op is nl.prelu without a slope.",
            "only nisa.activate2 has relu_param; here negative values become 0.",
            "use nisa.activate2 on Trainium3, or nl.relu if 0 is meant.",
        )


# ---- meaning ---------------------------------------------------------------------------------


def apply_function(op: Operator, x: np.ndarray, where: str, *more: Any) -> np.ndarray:
    """op(x) in FP32; says which element is outside of the function's valid range."""
    if op.domain is not None:
        outside = op.domain.outside(x)
        if outside.any():
            partition, element = (int(i) for i in np.argwhere(outside)[0])
            doubt(
                f"{where}: {op!r} of {x[partition, element]:g} (partition {partition}, element "
                f"{element}; {int(outside.sum())} of {x.size}), valid is {op.domain.text}.",
                "the Scalar Engine's polynomials hold in this range only; outside the device "
                "gives other numbers than NumPy.",
                _remedy(op),
            )
    return op.meaning(x, *more)


def _remedy(op: Operator) -> str:
    return {
        "sin": "reduce the angle to [-pi, pi] first, or call nl.sin(tile), which does.",
        "log": "keep the argument positive: nl.maximum with a small number before.",
    }.get(op.name, "scale the data into this range, or add a small number.")


def _scale(data: Tensor, scale: Any, bias: Any) -> np.ndarray:
    """data * scale + bias in FP32."""
    x = rows(data)
    with np.errstate(all="ignore"):
        if isinstance(scale, Tensor) or scale != 1:
            x = x * column_of(scale)
        if isinstance(bias, Tensor) or (bias is not None and bias != 0):
            x = x + column_of(bias)
    return x


def _write(dst: Tensor, made: np.ndarray, data: Tensor, op: Any, cmd: Any, into: Any) -> None:
    dst.put(made)
    if cmd is not reduce_cmd.idle:
        add = op or OPERATORS["add"]
        accumulate(engine.scalar, made, add, cmd, first=dst.partition)
    read_out(engine.scalar, into, first=dst.partition)


# ---- instructions ----------------------------------------------------------------------------


@instruction(
    engine.scalar, and_reading_registers(per_element("data")),
    dst=result(), data=tile(), bias=column(optional=True), scale=column(dtypes=FP32),
    reduce_res=INTO_COLUMN,
    rules=(
        operator("op", "activation", "unary"), numbers("data", "dst"), same_size("data", "dst"),
        bias_of_generation, one_of("reduce_op", "add", optional=True), command(COMMANDS),
        reduces_with_an_operator, slope_of_prelu,
    ),
)  # fmt: skip
def activation(
    dst, op, data, bias=None, scale=1.0, reduce_op=None, reduce_res=None, reduce_cmd=reduce_cmd.idle
):
    """dst = op(data * scale + bias); may add the row into the engine's accumulators.

    scale: a number or an FP32 column; bias: a column (from gen3 on also a number). reduce_res
    receives the accumulators.
    """
    made = apply_function(op, _scale(data, scale, bias), "activation")
    _write(dst, made, data, reduce_op, reduce_cmd, reduce_res)


@instruction(
    engine.scalar, and_reading_registers(per_element("data")),
    dst=result(), data=tile(), bias=column(optional=True), scale=column(dtypes=FP32),
    reduce_res=INTO_COLUMN,
    rules=(
        operator("op", "activation", "unary"), numbers("data", "dst"), same_size("data", "dst"),
        bias_of_generation, one_of("reduce_op", "add"), not_too_long, slope_of_prelu,
    ),
)  # fmt: skip
def activation_reduce(dst, op, data, reduce_op, reduce_res, bias=None, scale=1.0):
    """nisa.activation with the sum of each row in `reduce_res`, of shape (P, 1)."""
    made = apply_function(op, _scale(data, scale, bias), "activation_reduce")
    _write(dst, made, data, reduce_op, reduce_cmds.reset_reduce, reduce_res)


PAIRS = (
    ("multiply", "add"), ("multiply", "subtract"), ("multiply", "bypass"), ("add", "bypass"),
    ("subtract", "bypass"), ("bypass", "bypass"),
)  # fmt: skip


def known_pair(use: Use) -> None:
    """op0 and op1 are one of the six settings of the stage before the function."""
    pair = tuple(getattr(item, "name", "bypass") for item in (use.op0, use.op1))
    if pair not in PAIRS:
        allowed = "; ".join(f"nl.{a} and nl.{b}" for a, b in PAIRS)
        raise use.refuse(
            f"op0 and op1 are {use.op0!r} and {use.op1!r}; allowed: {allowed}.",
            "the stage before the function has these six settings.",
            "choose one of them, or prepare the data with nisa.tensor_scalar.",
        )
    for flag_name, name in (("reverse0", pair[0]), ("reverse1", pair[1])):
        if use.args[flag_name] and name == "bypass":
            raise use.refuse(
                f"{flag_name} is True and its operator is nl.bypass.",
                "without an operator there are no sides to swap.",
                f"leave {flag_name} out.",
            )
    first, second = use.imm0, use.imm1
    if isinstance(first, Tensor) and isinstance(second, Tensor) and first.dtype != second.dtype:
        raise use.refuse(
            f"imm0 is {first.dtype} and imm1 is {second.dtype}; tiles have one type.",
            "both are loaded in one pass.",
            "use float32 columns.",
        )


@instruction(
    engine.scalar, and_reading_registers(per_element("data")),
    cost_source="as nisa.activation; nothing is published for this instruction",
    dst=result(), data=tile(), imm0=column(optional=True), imm1=column(optional=True),
    relu_param=column(), reduce_res=INTO_COLUMN,
    rules=(
        needs_generation(4), operator("op", "activation", "unary"),
        operator("op0", "arithmetic", "bypass", optional=True),
        operator("op1", "arithmetic", "bypass", optional=True), flag("reverse0", "reverse1"),
        known_pair, same_size("data", "dst"),
        one_of("reduce_op", "add", "maximum", "minimum", "abs_max", "abs_min", optional=True),
        command(COMMANDS), reduces_with_an_operator,
    ),
)  # fmt: skip
def activate2(
    dst, op, data, imm0, imm1, op0, op1, relu_param=0.0, reverse0=False, reverse1=False,
    reduce_op=None, reduce_res=None, reduce_cmd=reduce_cmd.idle,
):  # fmt: skip
    """dst = op((data op0 imm0) op1 imm1), with a reduction of the rows. From gen4 on.

    nl.bypass leaves a stage out; relu_param is the slope of nl.prelu.
    """
    x = rows(data)
    for stage, immediate, reverse in ((op0, imm0, reverse0), (op1, imm1, reverse1)):
        if stage is not None and stage.name != "bypass":
            x = apply(stage, x, column_of(immediate), reverse)
    more = (column_of(relu_param),) if op.name == "prelu" else ()
    made = apply_function(op, x, "activate2", *more)
    _write(dst, made, data, reduce_op, reduce_cmd, reduce_res)
