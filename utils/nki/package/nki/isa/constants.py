"""nki.isa.constants: the choices of nki.isa, where published kernels also import them from."""

from utils.nki.simulator.enums import CHOICES as _CHOICES

globals().update(_CHOICES)
__all__ = sorted(_CHOICES)
