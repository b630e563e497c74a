"""The language."""

from utils.simulator.dtypes import *  # noqa: F403
from utils.simulator.enums import MemoryRegion
from utils.simulator.language import ds, ndarray, num_programs, program_id
from utils.simulator.operators import OPERATORS

sbuf, psum, hbm = MemoryRegion.sbuf, MemoryRegion.psum, MemoryRegion.hbm
private_hbm, shared_hbm = MemoryRegion.private_hbm, MemoryRegion.shared_hbm
globals().update(OPERATORS)
