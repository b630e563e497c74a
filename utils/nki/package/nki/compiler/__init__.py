"""nki.compiler: what a kernel may tell the compiler; nothing is compiled here.

Settings are taken and have no effect on values or estimates. The members of `AddressRotation` are
on no page that we read, so any value passes.
"""

from dataclasses import dataclass
from typing import Any

from utils.nki.simulator import surface as _surface


@dataclass(frozen=True)
class CompileConfig:
    """Settings of the compiler for one kernel (AWS, nki.compiler.CompileConfig)."""

    address_rotation: Any = None
    non_ssa_legalization: Any = None
    dead_code_elim: Any = None
    barrier_check: Any = None
    prefetch_auto: Any = None
    nki_alloc_fallback: Any = None


@dataclass(frozen=True)
class SpecializationConfig:
    """Settings of the tracing of one kernel (AWS, nki.compiler)."""

    allow_nested_config_override: Any = None


_surface.keep_to_version(__name__, globals())


def __getattr__(name: str) -> object:
    return _surface.outside(__name__, name)
