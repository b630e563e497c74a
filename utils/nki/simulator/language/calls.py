"""Every instruction of the table by name, as kernels and the conveniences call them."""

import importlib
import pkgutil
from types import SimpleNamespace

from utils.nki.simulator import instructions

MODULES = tuple(
    importlib.import_module(f"{instructions.__name__}.{each.name}")
    for each in pkgutil.iter_modules(instructions.__path__)
)

nisa = SimpleNamespace(
    **{
        name: value
        for module in MODULES
        for name, value in vars(module).items()
        if hasattr(value, "spec")
    }
)
