"""NKI, as the Trainium course simulates it on any CPU: see `utils.nki.simulator` of the course."""

import importlib
import sys
from pathlib import Path

try:
    import utils.nki.simulator
except ImportError:  # the folder of this package is on the path, the course's root is not
    sys.path.append(str(Path(__file__).resolve().parents[4]))
    import utils.nki.simulator

from utils.nki.simulator import surface as _surface
from utils.nki.simulator.arrays import Shape
from utils.nki.simulator.launch import jit, simulate
from utils.nki.simulator.profile import profile

from nki import isa, language  # isort: skip (after the path)

_surface.explain_old_imports()

__version__ = utils.nki.simulator.VERSION
__all__ = ["Shape", "__version__", "isa", "jit", "language", "profile", "simulate"]

_LATER = ("collectives", "compiler", "dtype", "tensor", "typing")


def __getattr__(name: str) -> object:
    if name in _LATER:
        return importlib.import_module(f"{__name__}.{name}")
    return _surface.outside(__name__, name)
