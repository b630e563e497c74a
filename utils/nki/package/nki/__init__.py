"""NKI, as the Trainium course simulates it on any CPU: see `utils.simulator` of the course."""

import importlib
import sys
from pathlib import Path

try:
    import utils.simulator
except ImportError:  # the folder of this package is on the path, the course's root is not
    sys.path.append(str(Path(__file__).resolve().parents[4]))
    import utils.simulator

from utils.simulator import surface as _surface
from utils.simulator.arrays import Shape
from utils.simulator.launch import jit, simulate
from utils.simulator.profile import profile

from nki import isa, language  # isort: skip (after the path)

_surface.explain_old_imports()

__version__ = utils.simulator.VERSION
__all__ = ["Shape", "__version__", "isa", "jit", "language", "profile", "simulate"]

_LATER = ("collectives", "compiler", "dtype", "tensor", "typing")


def __getattr__(name: str) -> object:
    if name in _LATER:
        return importlib.import_module(f"{__name__}.{name}")
    return _surface.outside(__name__, name)
