"""nki.language: memory, types, loops and functions of tiles."""

# ruff: noqa: F401 (what is imported here is what kernels import from here)

from types import FunctionType as _FunctionType

from utils.nki.simulator import dtypes as _dtypes
from utils.nki.simulator import surface as _surface
from utils.nki.simulator.enums import MemoryRegion
from utils.nki.simulator.language.allocation import (
    dropout,
    empty_like,
    full,
    is_hbm,
    is_on_chip,
    is_psum,
    is_sbuf,
    ndarray,
    ones,
    rand,
    random_seed,
    shared_constant,
    shared_identity_matrix,
    zeros,
    zeros_like,
)
from utils.nki.simulator.language.elementwise import COMPOSED as _COMPOSED
from utils.nki.simulator.language.grids import (
    NkiBlockGrid,
    NkiGrid,
    NkiTileGrid,
    alloc_blocks,
    alloc_tiles,
    blocks,
    tiles,
)
from utils.nki.simulator.language.limits import tile_size
from utils.nki.simulator.language.loops import (
    NKIObject,
    affine_range,
    ds,
    dynamic_range,
    fori_loop,
    no_reorder,
    num_programs,
    program_id,
    program_ndim,
    sequential_range,
    static_range,
    while_loop,
)
from utils.nki.simulator.language.reductions import (
    all,
    max,
    mean,
    min,
    prod,
    rms_norm,
    softmax,
    sum,
    var,
)
from utils.nki.simulator.language.transfer import (
    broadcast_to,
    device_print,
    expand_dims,
    gather_flattened,
    load,
    load_transpose2d,
    matmul,
    store,
    transpose,
    where,
)
from utils.nki.simulator.operators import OPERATORS as _OPERATORS
from utils.nki.simulator.tensor import Tensor as NkiTensor

sbuf, psum, hbm = MemoryRegion.sbuf, MemoryRegion.psum, MemoryRegion.hbm
private_hbm, shared_hbm = MemoryRegion.private_hbm, MemoryRegion.shared_hbm

# Types, and operators, which are also functions of tiles.
_DTYPES = {("bool_" if name == "bool" else name): item for name, item in _dtypes.ALL.items()}
int64 = _dtypes.int64
globals().update(_DTYPES)
globals().update({**_COMPOSED, **_OPERATORS})
for _name, _each in list(globals().items()):
    if isinstance(_each, _FunctionType):
        globals()[_name] = _surface.explain_keywords(__name__, _name, _each)

_surface.keep_to_version(__name__, globals())
__all__ = sorted(_name for _name in globals() if not _name.startswith("_"))


def __getattr__(name: str) -> object:
    return _surface.outside(__name__, name)
