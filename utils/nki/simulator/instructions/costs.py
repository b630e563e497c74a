"""Cycles of the Vector, Scalar and GpSimd Engines, as SDK 2.26 published them for each instruction.

N counts the elements of a partition. What later generations add is in the guides:
Trainium2, Vector Engine performance mode
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/guides/architecture/trainium2_arch.html
Trainium3, Scalar Engine performance mode, fast exponential
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/guides/architecture/trainium3_arch.html
and, on large strides, Trainium1
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/nki/guides/architecture/trainium_inferentia2_arch.html
"""

from utils.nki.simulator.enums import engine
from utils.nki.simulator.operands import PSUM, SBUF, Cost, Use
from utils.nki.simulator.table import describe_as, for_operands, sentence
from utils.nki.simulator.tensor import Tensor

FEWEST_CYCLES = 64
"""Least distance between two instructions of one engine, in its cycles (SDK 2.26, ISA pages)."""

NEAR_BYTES = 16
"""A larger step between neighbouring elements halves the bandwidth of SBUF and PSUM."""
HALF = frozenset(("bfloat16", "float16"))


def tensors(use: Use) -> list[Tensor]:
    """The tiles that stream through the engine: all operands but the columns."""
    return [
        value
        for name, operand in use.operands.items()
        if isinstance(value := use.args[name], Tensor) and not operand.column
    ]


def inner_stride(tensor: Tensor) -> int:
    """Distance of neighbouring elements in a partition, in elements; 1 for a single one."""
    for size, stride in zip(reversed(tensor.shape[1:]), reversed(tensor.strides[1:]), strict=True):
        if size > 1:
            return abs(stride)
    return 1


def is_contiguous(tensor: Tensor) -> bool:
    """Whether neighbouring elements of the innermost free dimension touch."""
    return inner_stride(tensor) == 1


def charge(use: Use, cycles: float) -> float:
    """`cycles` of streaming, doubled by a large stride, and the least distance of instructions."""
    if any(inner_stride(t) * t.dtype.itemsize > NEAR_BYTES for t in tensors(use)):
        cycles *= 2
    return max(FEWEST_CYCLES, cycles)


@for_operands
def per_element(use: Use, name: str, factor: float = 1.0) -> float:
    """Cycles for each element of {name} in a partition: {factor:g}."""
    return charge(use, factor * use.args[name].elements)


def speed_of_one_input(use: Use, read: Tensor) -> int:
    """How many elements of BF16 or FP16 a copy or tensor_scalar handles in one cycle."""
    sides = (read, use.dst)
    if any(t.dtype not in HALF for t in sides):
        return 1
    in_psum = sum(t.buffer is PSUM for t in sides)
    contiguous = all(is_contiguous(t) for t in sides)
    if use.engine is engine.vector and use.target.generation >= 3:
        if in_psum == 0:
            return 4 if contiguous else 2
        return 2 if in_psum == 1 and contiguous else 1
    if use.engine is engine.scalar and use.target.generation >= 4:
        return 2
    return 1


@for_operands
def one_input(use: Use, name: str) -> float:
    """A cycle for each element of {name} in a partition, less in the performance modes."""
    read = use.args[name]
    return charge(use, read.elements / speed_of_one_input(use, read))


def two_inputs(use: Use) -> float:
    """Two cycles for each element of a partition; one with PSUM or BF16, less in faster modes.

    The Vector Engine reads SBUF once in two cycles for two operands, unless one comes from PSUM or
    all are BF16 in contiguous rows and the operator is a plain one. From Trainium2 on, tiles of
    BF16 or FP16 with both inputs in SBUF go twice as fast again. For GpSimd nothing is published;
    the slow case is assumed.
    """
    inputs, n = (use.data1, use.data2), use.dst.elements
    if use.engine is engine.gpsimd:
        return charge(use, 2 * n)
    every = (*inputs, use.dst)
    in_sbuf = all(t.buffer is SBUF for t in inputs)
    plain = (
        in_sbuf
        and all(t.dtype == "bfloat16" for t in every)
        and use.op.name in ("add", "multiply", "subtract")
        and all(is_contiguous(t) for t in inputs)
    )
    cycles = float(n if plain or not in_sbuf else 2 * n)
    if use.target.generation >= 3 and in_sbuf and all(t.dtype in HALF for t in every):
        cycles /= 2
    return charge(use, cycles)


def by_bytes(use: Use) -> float:
    """By bytes and descriptors, which `timing` charges; DMA engines do not count cycles."""
    return 0.0


def fill(use: Use) -> float:
    """One cycle for each element of a partition, half for a zero in a 16-bit float."""
    zero = use.value == 0 and use.dst.dtype in HALF
    return charge(use, use.dst.elements / (2 if zero else 1))


def scalar_and_tensor(use: Use) -> float:
    """Two cycles for each element of a partition, one for subtract and multiply in BF16."""
    n = use.data.elements
    fast = (
        use.data.dtype == "bfloat16"
        and use.operand1.dtype == "bfloat16"
        and (use.op0.name, use.op1.name) == ("subtract", "multiply")
        and n % 2 == 0
    )
    return charge(use, n if fast else 2 * n)


def reduction(use: Use) -> float:
    """One cycle for each element of data in a partition, half for sums and maxima in BF16."""
    fast = all(t.dtype == "bfloat16" for t in (use.data, use.dst)) and use.op.name in (
        "add",
        "maximum",
    )
    return charge(use, use.data.elements / (2 if fast else 1))


def and_reading_registers(cost: Cost) -> Cost:
    """`cost`, and one more instruction where `reduce_res` takes what the accumulators hold."""

    @describe_as(f"{sentence(cost)[:-1]}; reading reduce_res is one more instruction.")
    def both(use: Use) -> float:
        return cost(use) + (FEWEST_CYCLES if use.reduce_res is not None else 0)

    return both
