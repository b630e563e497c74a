"""nki.collectives: what ranks send to each other. `nki.simulate(kernel, ranks=4)` runs four."""

# ruff: noqa: F401 (what is imported here is what kernels import from here)

from utils.nki.simulator import surface as _surface
from utils.nki.simulator.instruction import between_ranks as _between_ranks
from utils.nki.simulator.instructions.collectives import (
    ReplicaGroup,
    collective_permute_implicit_current_processing_rank_id,
    rank_id,
    rg_partition_op,
)

globals().update(vars(_between_ranks))
_surface.keep_to_version(__name__, globals())


def __getattr__(name: str) -> object:
    return _surface.outside(__name__, name)
