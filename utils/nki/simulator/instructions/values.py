"""How instruction bodies read their operands, and the accumulators that reducing ones write to."""

from typing import Any

import numpy as np

from utils.nki.simulator.dtypes import bits_of
from utils.nki.simulator.enums import engine, reduce_cmd
from utils.nki.simulator.errors import doubt
from utils.nki.simulator.operands import Operand
from utils.nki.simulator.operators import Operator, fold
from utils.nki.simulator.program import running
from utils.nki.simulator.tensor import Tensor


def rows(tensor: Tensor) -> np.ndarray:
    """The elements as FP32, (partitions, elements of a partition)."""
    return tensor.get().reshape(tensor.shape[0], -1)


def column_of(operand: Any) -> Any:
    """A number as FP32, or a column (partitions, 1) of them."""
    if isinstance(operand, Tensor):
        return rows(operand)
    with np.errstate(over="ignore"):
        return np.float32(operand)


def apply(op: Operator, left: np.ndarray, operand: Any, reverse: bool) -> np.ndarray:
    """`left op operand`, or the other way round, on FP32."""
    if op.is_unary:
        return op.meaning(left)
    return op.meaning(operand, left) if reverse else op.meaning(left, operand)


def bit_rows(tensor: Tensor, itemsize: int) -> np.ndarray:
    """The stored bits as unsigned words of `itemsize` bytes, (partitions, elements)."""
    bits = bits_of(np.ascontiguousarray(tensor.raw()).reshape(tensor.shape[0], -1))
    return bits.astype(f"u{itemsize}")


def bit_operand(operand: Any, itemsize: int) -> Any:
    """An integer, or a column of them, as unsigned words of `itemsize` bytes."""
    if isinstance(operand, Tensor):
        return bit_rows(operand, itemsize)
    return np.array(int(operand) & (1 << 8 * itemsize) - 1, f"u{itemsize}")


def apply_to_bits(op: Operator, left: np.ndarray, operand: Any, reverse: bool) -> np.ndarray:
    """`left op operand` on unsigned words of one width."""
    if op.is_unary:
        return op.meaning(left)
    right = bit_operand(operand, left.dtype.itemsize)
    return (
        op.meaning(np.broadcast_to(right, left.shape), left) if reverse else op.meaning(left, right)
    )


def put_bits(dst: Tensor, bits: np.ndarray) -> None:
    """Store the low bits of unsigned words."""
    dst.put_raw(bits.astype(f"u{dst.itemsize}").view(dst.dtype.numpy))


LANES = 128
INTO_COLUMN = Operand(reads=False, writes=True, column=True, optional=True)
"""Where accumulators are read out to: one value for each partition, or None."""


def registers(of: engine) -> np.ndarray:
    """The accumulators of one engine of the running core, (128,) FP32."""
    core = running("an accumulator")
    key = ("accumulators", of)
    if key not in core.registers:
        core.registers[key] = np.full(LANES, np.nan, np.float32)
    return core.registers[key]


def accumulate(
    of: engine, values: np.ndarray, op: Operator, command: reduce_cmd, *, first: int = 0,
    begin: Any = None,
) -> None:  # fmt: skip
    """Reduce `values` (partitions, elements) FP32 into the accumulators from lane `first` on.

    begin: what load_reduce puts there first, a number or (partitions, 1).
    """
    lanes = registers(of)[first : first + len(values)]
    if command in (reduce_cmd.reset, reduce_cmd.reset_reduce):
        lanes[:] = op.identity
    elif command is reduce_cmd.load_reduce:
        lanes[:] = np.reshape(begin, -1)
    elif command is reduce_cmd.idle:
        if of is engine.vector:
            lanes[:] = np.nan
        return
    if command is not reduce_cmd.reset:
        reduced = op.reduced or fold(op.meaning)
        lanes[:] = op.meaning(lanes, reduced(values))


def read_out(of: engine, into: Tensor | None, *, first: int = 0, negate: bool = False) -> None:
    """Write the accumulators to a column, if there is one."""
    if into is None:
        return
    held = registers(of)[first : first + into.shape[0]]
    if np.isnan(held).all():
        doubt(
            "reduce_res: the accumulators hold no defined value.",
            "no instruction has reset them before this one reads them, or the data was NaN.",
            "begin with reduce_cmd=nisa.reduce_cmd.reset_reduce.",
        )
    into.put(-held if negate else held.copy())
