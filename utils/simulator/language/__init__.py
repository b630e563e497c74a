"""The language `nl`: allocation, loops, program ids, and conveniences made of instructions."""

from typing import Any

from utils.simulator.dtypes import dtype_of
from utils.simulator.enums import MemoryRegion
from utils.simulator.errors import learner_line
from utils.simulator.memory import allocate
from utils.simulator.program import running
from utils.simulator.tensor import Tensor, whole


def ndarray(
    shape: Any,
    dtype: Any,
    buffer: MemoryRegion = MemoryRegion.sbuf,
    name: str = "",
    address: tuple[int, int] | None = None,
) -> Tensor:
    """A new tensor: a tile of SBUF or PSUM, or memory in HBM. Its content is not defined."""
    core = running("nl.ndarray")
    return whole(allocate(core, shape, dtype_of(dtype), buffer, name, address, learner_line()))


def ds(start: Any, size: int) -> slice:
    """`size` elements from `start`."""
    return slice(start, start + size)


def program_id(axis: int = 0) -> int:
    """Which core of the grid this is."""
    return running("nl.program_id").index


def num_programs(axes: Any = 0) -> int:
    """How many cores run the kernel."""
    return running("nl.num_programs").grid


def assign(view: Tensor, value: Any) -> None:
    """What `tile[...] = value` does."""
    from utils.simulator.instructions.vector import tensor_copy

    tensor_copy(dst=view, src=value)
