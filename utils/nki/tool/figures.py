"""What is kept of a profile: a record that is compared, and that baselines consist of."""

from pathlib import Path
from typing import Any

import msgspec

from utils.nki.simulator import VERSION
from utils.nki.simulator.profile import Profile
from utils.nki.tool.failures import Refused


class Figures(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Estimates of one call of a kernel. Times in seconds, memory in bytes per partition.

    as_compiled_s: after the model of the compiler, where there is one. instructions: how many, by
    "engine name". busy: share of the time, by engine.
    """

    nki_profile: int = 1
    version: str = VERSION
    kernel: str
    target: str
    shapes: list[str]
    arguments: dict[str, str]
    estimate_s: float
    as_compiled_s: float | None = None
    uncertainty: float
    busiest: str
    busy: dict[str, float]
    hbm_read_bytes: int
    hbm_written_bytes: int
    flop: float
    sbuf_peak_bytes: int
    psum_peak_bytes: int
    instructions: dict[str, int]


def figures_of(
    profile: Profile, shapes: list[str] | None = None, arguments: dict[str, Any] | None = None
) -> Figures:
    """The record of a profile."""
    compiled = as_compiled(profile)
    return Figures(
        kernel=profile.kernel,
        target=profile.target,
        shapes=list(shapes or ()),
        arguments={name: repr(value) for name, value in (arguments or {}).items()},
        estimate_s=profile.seconds,
        as_compiled_s=None if compiled is None else compiled.seconds,
        uncertainty=profile.uncertainty,
        busiest=profile.busiest,
        busy={name: round(share, 6) for name, share in profile.utilisation.items()},
        hbm_read_bytes=int(profile.hbm_read),
        hbm_written_bytes=int(profile.hbm_written),
        flop=float(profile.flop),
        sbuf_peak_bytes=int(profile.sbuf_peak),
        psum_peak_bytes=int(profile.psum_peak),
        instructions={f"{e} {name}": n for (e, name), n in sorted(profile.counts.items())},
    )


def as_compiled(profile: Profile) -> Any:
    """The profile after the model of the compiler; None where the simulator has no such model."""
    return getattr(profile, "as_compiled", None)


def encoded(record: msgspec.Struct | dict[str, Any]) -> str:
    """A record as text that a person can read and a difference shows line by line."""
    return msgspec.json.format(msgspec.json.encode(record), indent=2).decode() + "\n"


def read_figures(path: Path) -> Figures:
    """A record that `nki profile --record` wrote. Raises Refused with what is wrong in it."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Figures)
    except (OSError, msgspec.DecodeError) as error:
        raise Refused(f"{path} is no record of nki profile --record: {error}") from None
