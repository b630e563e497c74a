"""nki.isa: the instructions, and the choices they take."""

# ruff: noqa: F401 (what is imported here is what kernels import from here)

from utils.nki.simulator import surface as _surface
from utils.nki.simulator.enums import CHOICES as _CHOICES
from utils.nki.simulator.enums import engine
from utils.nki.simulator.errors import NkiValidationError
from utils.nki.simulator.instructions import nisa as _instructions
from utils.nki.simulator.instructions.control import register_alloc
from utils.nki.simulator.language.limits import get_nc_sub_version, get_nc_version
from utils.nki.simulator.program import Instruction as NkiInstruction
from utils.nki.simulator.registers import NkiScalar, VirtualRegister

globals().update({**_CHOICES, **vars(_instructions)})

tensor_engine, vector_engine, scalar_engine = engine.tensor, engine.vector, engine.scalar
gpsimd_engine, unknown_engine = engine.gpsimd, engine.unknown

_surface.keep_to_version(__name__, globals())
__all__ = sorted(name for name in globals() if not name.startswith("_"))


def __getattr__(name: str) -> object:
    return _surface.outside(__name__, name)
