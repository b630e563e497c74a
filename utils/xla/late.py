"""Parts of torch_xla that its import loads and hardly any notebook uses: loaded at their first use.

`import torch_xla` takes the exporter of StableHLO and the tracer of `scan` along, and with them
torch's Inductor: two fifths of the time that a kernel needs to start. And where JAX is installed,
the first `mark_sharding` or `StepTrace` would import it, only to ask whether a tensor is torchax's.
Standard library only.
"""

import functools
import importlib
import importlib.abc
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

FUNCTIONS = {
    "functorch.compile": ("aot_function", "default_partition", "make_boxed_func"),
    "torch_xla.stablehlo": ("save_as_stablehlo", "save_torch_model_as_stablehlo"),
}
"""What torch_xla 2.9 takes from them while it is imported, by module. It calls none of it then."""


ASKS_FOR_JAX = "torch_xla._internal.jax_workarounds"


class Late(ModuleType):
    """Stands for a module: gives functions that load it when they are called, and loads it for any
    other name.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in FUNCTIONS[self.__name__]:
            return functools.partial(_call, self.__name__, name)
        return getattr(_load(self.__name__), name)


def _call(module: str, name: str, *args: Any, **kwargs: Any) -> Any:
    return getattr(_load(module), name)(*args, **kwargs)


def _load(name: str) -> ModuleType:
    if isinstance(sys.modules.get(name), Late):
        del sys.modules[name]
    return importlib.import_module(name)


class _WithoutJax(SourceFileLoader):
    """Loads the module that looks for JAX and torchax, and has it find neither."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        vars(module).update(maybe_get_jax=_nothing, maybe_get_torchax=_nothing)


def _nothing(log: bool = True) -> None:
    return None


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands in once for each of the modules, if it is torch_xla that asks first."""

    def __init__(self) -> None:
        self.left = set(FUNCTIONS)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == ASKS_FOR_JAX and (spec := PathFinder.find_spec(name, path)) and spec.origin:
            spec.loader = _WithoutJax(name, spec.origin)
            return spec
        if name not in self.left:
            return None
        self.left.remove(name)
        return ModuleSpec(name, self) if "torch_xla" in sys.modules else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Late(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing runs before the first use."""


def install() -> None:
    """Let the next import of torch_xla leave them out; a second call does nothing."""
    here = any(isinstance(finder, _Finder) for finder in sys.meta_path)
    if "torch_xla" not in sys.modules and not here:
        sys.meta_path.insert(0, _Finder())
