"""Rules and costs that several instructions share."""

from utils.simulator.enums import MemoryRegion
from utils.simulator.instruction import Use
from utils.simulator.operands import Rule

FEWEST_CYCLES = 64
"""Least distance between two instructions of one engine, in its cycles (SDK 2.26, ISA pages)."""


def same_size(*names: str) -> Rule:
    """The named tensors have the same partitions and the same elements in each."""

    def rule(use: Use) -> None:
        first = use.args[names[0]]
        for name in names[1:]:
            other = use.args[name]
            if (first.shape[0], first.elements) != (other.shape[0], other.elements):
                raise use.refuse(
                    f"the shapes of {names[0]} {first.shape} and {name} {other.shape} differ.",
                    "the engine reads and writes its operands element by element; nothing is "
                    "broadcast.",
                    _broadcast_hint(first.shape, other.shape),
                )

    return rule


def _broadcast_hint(a: tuple[int, ...], b: tuple[int, ...]) -> str:
    for one, other in ((a, b), (b, a)):
        if one[0] == other[0] and max(one[1:]) == 1:
            return "a value for each partition, broadcast along the row, is nisa.tensor_scalar."
        if one[0] == 1 and one[1:] == other[1:]:
            return (
                "to spread one row over all partitions use a matmul with ones, "
                "nisa.nc_stream_shuffle, or a DMA with a stride of 0."
            )
    return "slice or allocate them with the same shape."


def not_both_in_psum(first: str, second: str) -> Rule:
    """At most one of two inputs lies in PSUM."""

    def rule(use: Use) -> None:
        pair = (use.args[first], use.args[second])
        if all(getattr(each, "buffer", None) is MemoryRegion.psum for each in pair):
            raise use.refuse(
                f"{first} and {second} are both in PSUM; one of 2 may be.",
                "the Vector Engine has one read path to PSUM.",
                f"nisa.tensor_copy {second} to an SBUF tile first.",
            )

    return rule


def elements(name: str = "dst", factor: float = 1.0) -> "callable":  # type: ignore[valid-type]
    """Cost: one cycle for each element of a partition, times `factor`."""

    def cost(use: Use) -> float:
        return max(FEWEST_CYCLES, factor * use.args[name].elements)

    return cost
