"""Reductions along the free axis on the Vector Engine: sums, maxima, mean and variance."""

from types import FunctionType
from typing import Any

import numpy as np

from utils.nki.simulator.enums import engine
from utils.nki.simulator.errors import is_whole, refuse
from utils.nki.simulator.instruction import instruction
from utils.nki.simulator.instructions.costs import charge, per_element, reduction
from utils.nki.simulator.instructions.rules import flag, integers_for_bits, numbers
from utils.nki.simulator.instructions.values import bit_rows, put_bits, rows
from utils.nki.simulator.operands import Use, result, tile
from utils.nki.simulator.operators import OPERATORS, Operator
from utils.nki.simulator.table import for_operands

# ---- tensor_reduce ---------------------------------------------------------------------------


def reducing_operator(use: Use) -> None:
    """op is an operator of two values that can fold a row."""
    op = use.op
    if isinstance(op, Operator) and op.reduces:
        return
    allowed = ", ".join(
        f"nl.{operator.name}" for operator in OPERATORS.values() if operator.reduces
    )
    given = f"the function nl.{op.__name__}" if isinstance(op, FunctionType) else repr(op)
    raise use.refuse(
        f"op is {given}; a reduction takes {allowed}.",
        "the engine folds a row with an operator of two values that has a starting value.",
        "pass nl.add, nl.maximum or another of these.",
    )


def axes_of(axis: Any, dimensions: int) -> tuple[int, ...]:
    """The axes as a sorted tuple of numbers from 0.

    >>> axes_of([-1, 1], 3)
    (1, 2)
    """
    given = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    legal = [tuple(range(first, dimensions)) for first in range(dimensions - 1, 0, -1)]
    shown = ", ".join(str(item[0] if len(item) == 1 else item) for item in legal)
    if (
        not given
        or not all(map(is_whole, given))
        or not all(-dimensions <= n < dimensions for n in given)
    ):
        raise refuse(
            f"tensor_reduce: axis is {axis!r} for data of {dimensions} dimensions; allowed: "
            f"{shown}.",
            "the axis is an int or a tuple of ints, fixed when the kernel is compiled.",
            f"pass axis={dimensions - 1}.",
        )
    axes = tuple(sorted({int(n) % dimensions for n in given}))
    if 0 in axes:
        raise refuse(
            f"tensor_reduce: axis is {axis!r}, axis 0 is the partition axis; allowed: {shown}.",
            "every partition has its own lane, and partitions cannot be reduced by the Vector "
            "Engine.",
            "transpose first with nisa.nc_transpose, or multiply by a column of ones with "
            "nisa.nc_matmul, which sums over partitions.",
        )
    if axes not in legal:
        raise refuse(
            f"tensor_reduce: axis is {axis!r} for data of {dimensions} dimensions; allowed are "
            f"the last free axes: {shown}.",
            "the engine folds neighbouring elements of its access pattern.",
            "put the axis last with data.permute(...), which moves nothing.",
        )
    return axes


def reduced_size(use: Use) -> None:
    """dst has the shape of data without the reduced axes."""
    axes = axes_of(use.axis, use.data.ndim)
    kept = use.data.shape[: axes[0]]
    left = use.data.elements
    for axis in axes:
        left //= use.data.shape[axis]
    if (use.dst.shape[0], use.dst.elements) != (use.data.shape[0], left):
        wanted = kept if len(kept) > 1 else (*kept, 1)
        raise use.refuse(
            f"dst is {use.dst.shape}; data {use.data.shape} without axis {use.axis!r} is {wanted}.",
            "each partition keeps its elements, less the reduced axes.",
            f"allocate dst with shape {wanted}.",
        )
    if use.negate and use.op.is_bitwise:
        raise use.refuse(
            f"negate=True with {use.op!r}.",
            "the sign is changed in FP32, after operators on numbers.",
            "leave negate out.",
        )


@instruction(
    engine.vector, reduction,
    dst=result(), data=tile(),
    rules=(
        reducing_operator, numbers("data", "dst"), flag("negate", "keepdims"), reduced_size,
        integers_for_bits("op", "data", "dst"),
    ),
)  # fmt: skip
def tensor_reduce(dst, op, data, axis, negate=False, keepdims=False):
    """Fold the last free axes with one operator, in FP32; `negate` changes the sign for nothing.

    axis: an int or a tuple, the last axes only, never 0.
    """
    if op.is_bitwise:
        bits = bit_rows(data, data.itemsize).reshape(data.shape[0], dst.elements, -1)
        put_bits(dst, op.reduced(bits))
        return
    made = op.reduced(rows(data).reshape(data.shape[0], dst.elements, -1))
    dst.put(-made if negate else made)


# ---- mean and variance -----------------------------------------------------------------------

MOST_STATISTICS = 512
TRIPLE = 3
"""(count, mean, variance * count)"""


def at_most_512(use: Use) -> None:
    """data has at most 512 elements in each partition."""
    n = use.data.elements
    if n > MOST_STATISTICS:
        raise use.refuse(
            f"data has {n} elements in each partition, the limit is {MOST_STATISTICS} "
            "(nl.tile_size.bn_stats_fmax).",
            "the statistics unit counts that far.",
            f"for i in range({-(-n // MOST_STATISTICS)}): nisa.bn_stats(dst=stats[:, nl.ds(6 * i, "
            f"6)], data=x[:, nl.ds({MOST_STATISTICS} * i, ...)]), then nisa.bn_aggr over stats.",
        )


@for_operands
def _elements(use: Use, name: str, wanted: int, holds: str) -> None:
    """{name} has {wanted} elements in each partition."""
    match_, data = use.args[name], use.data
    if (match_.shape[0], match_.elements) != (data.shape[0], wanted):
        raise use.refuse(
            f"{name} is {match_.shape}, it needs {wanted} elements in each of the "
            f"{data.shape[0]} partitions.",
            f"it holds {holds}.",
            f"allocate it with shape ({data.shape[0]}, {wanted}).",
        )


@instruction(
    engine.vector, per_element("data"),
    dst=result(), data=tile(),
    rules=(
        at_most_512,
        _elements("dst", 2 * TRIPLE, "count, mean and variance * count of even and odd elements"),
    ),
)  # fmt: skip
def bn_stats(dst, data):
    """Count, mean and variance * count of the even, then of the odd elements of each partition.

    At most 512 elements; nisa.bn_aggr joins the results of several calls.
    """
    x = rows(data).astype(np.float64)
    made = np.zeros((len(x), 2 * TRIPLE))
    for parity in (0, 1):
        half = x[:, parity::2]
        if half.shape[1]:
            with np.errstate(all="ignore"):
                mean = half.mean(axis=1)
                about = ((half - mean[:, None]) ** 2).sum(axis=1)
            made[:, TRIPLE * parity : TRIPLE * (parity + 1)] = np.stack(
                [np.full(len(x), half.shape[1]), mean, about], axis=1
            )
    dst.put(made)


def whole_triples(use: Use) -> None:
    """data holds whole triples, as bn_stats writes them."""
    n = use.data.elements
    if n % TRIPLE:
        raise use.refuse(
            f"data has {n} elements in each partition, not a multiple of {TRIPLE}.",
            "it holds triples: count, mean, variance * count.",
            "pass what nisa.bn_stats wrote, 6 elements for each call.",
        )


def cost_bn_aggr(use: Use) -> float:
    """13 cycles for each triple of a partition."""
    return charge(use, 13 * use.data.elements / TRIPLE)


@instruction(
    engine.vector, cost_bn_aggr,
    dst=result(), data=tile(),
    rules=(whole_triples, _elements("dst", 2, "a mean and a variance")),
)  # fmt: skip
def bn_aggr(dst, data):
    """Mean and variance from triples (count, mean, variance * count), as nisa.bn_stats writes."""
    triples = rows(data).astype(np.float64).reshape(data.shape[0], -1, TRIPLE)
    count, mean, about = (triples[..., i] for i in range(TRIPLE))
    with np.errstate(all="ignore"):
        total = count.sum(axis=1)
        joint = (count * mean).sum(axis=1) / total
        spread = (about + count * (mean - joint[:, None]) ** 2).sum(axis=1) / total
    dst.put(np.stack([joint, spread], axis=1))
