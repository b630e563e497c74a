"""Work and memory traffic of single HLO operators.

The operators are defined in https://openxla.org/xla/operation_semantics; what counts as work
follows XLA's own HloCostAnalysis, except where said.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from utils.xla.hlo.text import Array, Instruction

ARITHMETIC = frozenset(
    "abs add ceil clamp divide floor maximum minimum multiply negate remainder"
    " round-nearest-afz round-nearest-even sign subtract".split()
)
"""One FLOP for each element, if it is a floating-point number."""

TRANSCENDENTAL = frozenset(
    "atan2 cbrt cosine erf exponential exponential-minus-one log log-plus-one logistic power rsqrt"
    " sine sqrt tan tanh".split()
)
"""Counted apart: one of them is many FLOPs or one look-up, depending on the machine."""

NO_FLOPS = frozenset(
    "and broadcast clz compare concatenate convert copy dynamic-slice dynamic-update-slice gather"
    " imag iota is-finite not or pad popcnt real reduce-precision reverse select"
    " shift-left shift-right-arithmetic shift-right-logical slice stochastic-convert transpose"
    " xor".split()
)
"""They choose, move or reinterpret values."""

FREE = frozenset(
    "add-dependency after-all bitcast constant get-tuple-element opt-barrier parameter partition-id"
    " replica-id reshape tuple".split()
)
"""They move nothing."""

# Per element of the input. Training: a sum for the mean; subtract, square, sum; scale to unit
# variance, scale, shift. Gradient: the normalised input again (2), sums for shift and scale (3),
# then two subtractions and two products. XLA's analysis leaves them at 0.
BATCH_NORM = {"batch-norm-training": 7, "batch-norm-inference": 4, "batch-norm-grad": 9}


@dataclass(frozen=True)
class OperatorCost:
    """What all operators of one name cost together. bytes: read and written by each on its own."""

    count: int = 0
    flops: float = 0
    transcendentals: float = 0
    bytes: float = 0

    def __add__(self, other: "OperatorCost") -> "OperatorCost":
        return OperatorCost(
            self.count + other.count,
            self.flops + other.flops,
            self.transcendentals + other.transcendentals,
            self.bytes + other.bytes,
        )

    def repeated(self, times: int) -> "OperatorCost":
        """What it costs when it runs that many times."""
        return OperatorCost(
            times * self.count, times * self.flops, times * self.transcendentals, times * self.bytes
        )


Arrays = Sequence[tuple[Array, ...]]
"""Types of the operands: each has one, a tuple several."""

_CALLS = (
    "to_apply calls body condition branch_computations true_computation false_computation select"
    " scatter".split()
)


def calls_of(one: Instruction) -> tuple[str, ...]:
    """Names of the computations that an instruction runs."""
    return tuple(name for attribute in _CALLS for name in one.names(attribute))


def moved_bytes(one: Instruction, operands: Arrays) -> float:
    """Bytes that one instruction on its own reads from memory and writes to it.

    Those that take or replace a part of an array touch only that part, and its indices.
    """
    sizes = [sum(array.bytes for array in operand) for operand in operands]
    match one.opcode:
        case "slice":
            return 2 * one.bytes
        case "gather" | "dynamic-slice":
            return 2 * one.bytes + sum(sizes[1:])
        case "dynamic-update-slice":
            return 2 * sizes[1] + sum(sizes[2:])
        case "scatter":
            targets = (len(sizes) - 1) // 2
            return 3 * sum(sizes[targets + 1 :]) + sizes[targets]
    return sum(sizes) + one.bytes


def work(
    one: Instruction, operands: Arrays, inner: Mapping[str, OperatorCost]
) -> tuple[float, float, str]:
    """FLOPs, transcendentals, and what of it could not be counted ("" if all is).

    inner: the cost of one run of each computation that it calls.
    """
    result = one.results[0] if one.results else Array("token", ())
    opcode = one.opcode

    def runs(times: float, attribute: str = "to_apply") -> tuple[float, float]:
        item = inner[one.names(attribute)[0]]
        return times * item.flops, times * item.transcendentals

    if opcode in ARITHMETIC or opcode in TRANSCENDENTAL or opcode in ("dot", "convolution"):
        if result.dtype.startswith("c"):
            return 0, 0, f"{opcode} of {result.dtype}"
    if opcode in ("dot", "convolution"):
        if not result.floating:
            return 0, 0, f"{opcode} of {result.dtype}"
        return 2 * (_dot if opcode == "dot" else _convolution)(one, operands), 0, ""
    if opcode in ARITHMETIC:
        return (result.elements if result.floating else 0), 0, ""
    if opcode in TRANSCENDENTAL:
        return 0, (result.elements if result.floating else 0), ""
    if opcode in NO_FLOPS:
        return 0, 0, ""
    if opcode in BATCH_NORM:
        elements, features = operands[0][0].elements, operands[1][0].elements
        return BATCH_NORM[opcode] * elements, features, ""
    if opcode == "map":
        return *runs(result.elements), ""
    if opcode == "reduce":
        return *runs(operands[0][0].elements - result.elements), ""
    if opcode == "reduce-window":
        return *runs(_pairs(one, operands[0][0].shape, result.shape) - result.elements), ""
    if opcode == "scatter":
        return *runs(operands[-1][0].elements), ""
    if opcode == "select-and-scatter":
        source = operands[1][0]
        choosing = source.elements * (math.prod(_window(one, len(source.shape))["size"]) - 1)
        chosen, added = runs(choosing, "select"), runs(source.elements, "scatter")
        return chosen[0] + added[0], chosen[1] + added[1], ""
    return 0, 0, opcode


def _dot(one: Instruction, operands: Arrays) -> int:
    """Products of a matrix product: one for each result and each contracted index."""
    left = operands[0][0].shape
    contracted = [left[axis] for axis in one.numbers("lhs_contracting_dims")]
    return one.array.elements * math.prod(contracted)


def _convolution(one: Instruction, operands: Arrays) -> int:
    """Products of a convolution without those with padding or with holes of a dilation.

    dim_labels name the axes, such as bf01_oi01->bf01: batch, feature, space; i is the number of
    input features of one group.
    """
    labels = re.search(r"dim_labels=(\w+)_(\w+)->(\w+)", one.attributes)
    if labels is None:
        raise ValueError(f"{one.name}: no dim_labels in {one.attributes!r}")
    sizes = [
        dict(zip(names, array.shape, strict=True))
        for names, array in zip(
            labels.groups(), (operands[0][0], operands[1][0], one.array), strict=True
        )
    ]
    data, kernel, result = sizes
    space = sorted(name for name in data if name.isdigit())
    pairs = _pairs(one, [data[axis] for axis in space], [result[axis] for axis in space])
    return result["b"] * result["f"] * kernel["i"] * pairs


def _pairs(one: Instruction, data: Sequence[int], result: Sequence[int]) -> int:
    """Pairs of a result and a place of its window on which a value of the data lies."""
    window = _window(one, len(data))
    pairs: list[int] = []
    for axis, (size, results) in enumerate(zip(data, result, strict=True)):
        width, stride, hole, spread = (
            window[name][axis] for name in ("size", "stride", "lhs_dilate", "rhs_dilate")
        )
        low, _ = window["pad"][axis]
        pairs.append(_pairs_on_axis(size, results, width, stride, hole, spread, low))
    return math.prod(pairs)


def _pairs_on_axis(
    size: int, results: int, window: int, stride: int, hole: int, spread: int, low: int
) -> int:
    """size values, hole apart, behind `low` places of padding; results windows, stride apart, of
    `window` places, spread apart.
    """
    pairs = 0
    for first in range(-low, results * stride - low, stride):
        if hole == 1:
            begin, end = max(0, -(first // spread)), min(window - 1, (size - 1 - first) // spread)
            pairs += max(0, end - begin + 1)
        else:
            places = range(first, first + window * spread, spread)
            pairs += sum(0 <= at <= (size - 1) * hole and at % hole == 0 for at in places)
    return pairs


def _window(one: Instruction, axes: int) -> dict:
    """Per axis size, stride, pad (low, high) and dilations of window={size=3x3 pad=1_1x1_1}."""
    result = re.search(r"window=\{([^}]*)\}", one.attributes)
    written = dict(part.split("=") for part in result[1].split()) if result else {}
    window: dict = {
        name: [int(item) for item in written[name].split("x")] if name in written else [1] * axes
        for name in ("size", "stride", "lhs_dilate", "rhs_dilate")
    }
    pads = written.get("pad", "x".join(["0_0"] * axes)).split("x")
    window["pad"] = [tuple(map(int, pad.split("_"))) for pad in pads]
    return window
