"""How instruction bodies read their operands: rows of FP32, columns, and bit patterns."""

from typing import Any

import numpy as np

from utils.nki.simulator.dtypes import bits_of
from utils.nki.simulator.operators import Operator
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


def applied(op: Operator, left: np.ndarray, operand: Any, reverse: bool) -> np.ndarray:
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


def applied_to_bits(op: Operator, left: np.ndarray, operand: Any, reverse: bool) -> np.ndarray:
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
