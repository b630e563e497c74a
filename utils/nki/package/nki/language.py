"""nki.language: memory, types, loops and functions of tiles."""

# ruff: noqa: F401 (what is imported here is what kernels import from here)

from types import FunctionType as _FunctionType

from utils.nki.simulator import dtypes as _dtypes
from utils.nki.simulator import surface as _surface
from utils.nki.simulator.enums import MemoryRegion
from utils.nki.simulator.language import allocation as _allocation
from utils.nki.simulator.language import grids as _grids
from utils.nki.simulator.language import limits as _limits
from utils.nki.simulator.language import loops as _loops
from utils.nki.simulator.language import reductions as _reductions
from utils.nki.simulator.language import transfer as _transfer
from utils.nki.simulator.language.elementwise import COMPOSED as _COMPOSED
from utils.nki.simulator.language.loops import dynamic_range
from utils.nki.simulator.operators import OPERATORS as _OPERATORS
from utils.nki.simulator.tensor import Tensor as NkiTensor

sbuf, psum, hbm = MemoryRegion.sbuf, MemoryRegion.psum, MemoryRegion.hbm
private_hbm, shared_hbm = MemoryRegion.private_hbm, MemoryRegion.shared_hbm

for _module in (_allocation, _grids, _limits, _loops, _reductions, _transfer):
    globals().update({n: v for n, v in vars(_module).items() if n in _surface.versions(__name__)})

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
