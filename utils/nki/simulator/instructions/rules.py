"""Rules on the sizes, types and places of operands that several instructions share."""

from utils.nki.simulator.documentation import listed, stated
from utils.nki.simulator.enums import MemoryRegion
from utils.nki.simulator.instruction import Use
from utils.nki.simulator.operands import Rule


def same_size(*names: str) -> Rule:
    """The named tensors have the same partitions and the same elements in each."""

    @stated(f"{listed(names)} have the same partitions and as many elements in each.")
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

    @stated(f"At most one of {first} and {second} lies in PSUM.")
    def rule(use: Use) -> None:
        pair = (use.args[first], use.args[second])
        if all(getattr(each, "buffer", None) is MemoryRegion.psum for each in pair):
            raise use.refuse(
                f"{first} and {second} are both in PSUM; one of 2 may be.",
                "the Vector Engine has one read path to PSUM.",
                f"nisa.tensor_copy {second} to an SBUF tile first.",
            )

    return rule


def same_types(first: str, second: str) -> Rule:
    """Two tensors have one type; one of them may be a number instead."""

    @stated(f"{first} and {second} have the same type.")
    def rule(use: Use) -> None:
        types = [each.dtype for name in (first, second) if hasattr(each := use.args[name], "dtype")]
        if len(set(types)) > 1:
            raise use.refuse(
                f"{first} is {types[0]}, {second} is {types[1]}.",
                "elements are moved bit by bit, without a conversion.",
                "give both the same type; convert with nisa.tensor_copy.",
            )

    return rule


def one_element(name: str) -> Rule:
    """The named tensor has one element."""

    @stated(f"{name} has one element.")
    def rule(use: Use) -> None:
        tensor = use.args[name]
        if tensor.size != 1:
            raise use.refuse(
                f"{name} has {tensor.size} elements {tensor.shape}, it takes one: (1, 1).",
                "the instruction takes one number.",
                f"slice one element: {name}[0:1, 0:1].",
            )

    return rule
