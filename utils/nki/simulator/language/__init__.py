"""The language `nl`: allocation, loops, program ids, and conveniences made of instructions.

Nothing here computes: every number comes from an instruction that is checked, recorded and timed.
The names are put together in `package/nki/language.py`.
"""

from typing import Any

from utils.nki.simulator.enums import HBM
from utils.nki.simulator.instructions import nisa
from utils.nki.simulator.language import elementwise  # noqa: F401 (gives operators their functions)
from utils.nki.simulator.tensor import Tensor


def assign(view: Tensor, value: Any) -> None:
    """What `tile[...] = value` does: a copy by an engine, or a DMA where a side is in HBM."""
    if not isinstance(value, Tensor):
        nisa.memset(dst=view, value=value)
    elif view.buffer in HBM or value.buffer in HBM:
        nisa.dma_copy(dst=view, src=value)
    else:
        nisa.tensor_copy(dst=view, src=value)


Tensor.assign = staticmethod(assign)
