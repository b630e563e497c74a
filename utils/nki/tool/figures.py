"""Both estimates of a call, and what is kept of them: a record, which comparisons are made of."""

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from utils.nki.simulator import VERSION
from utils.nki.simulator.profile import Profile, profile
from utils.nki.tool.failures import Refused


class Estimates(NamedTuple):
    """The profile of the instructions as they are written, None if they do not fit into SBUF, and
    the one after the model of the compiler, which spills then."""

    written: Profile | None
    compiled: Profile

    @property
    def shown(self) -> Profile:
        """As written, where that fits."""
        return self.written or self.compiled


def estimate(
    kernel: Any, arrays: tuple[Any, ...], arguments: dict[str, Any], target: str | None = None,
    schedule: str = "list",
) -> Estimates:  # fmt: skip
    """Both estimates of a call; the arrays may be shapes."""
    options: dict[str, Any] = {"target": target, "schedule": schedule}
    made = profile(kernel, as_compiled=True, **options)(*arrays, **arguments)
    return Estimates(made.as_written, made)


class Figures(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Estimates of one call of a kernel. Times in seconds, memory in bytes per partition.

    as_written_s: None if the instructions do not fit into SBUF; all below is as compiled then.
    instructions: how many, by "engine name". busy: share of the time, by engine.
    """

    nki_profile: int = 1
    version: str = VERSION
    kernel: str
    target: str
    shapes: list[str]
    arguments: dict[str, str]
    as_written_s: float | None
    as_compiled_s: float
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
    estimates: Estimates, shapes: list[str] | None = None, arguments: dict[str, Any] | None = None
) -> Figures:
    """The record of a call's estimates."""
    profile = estimates.shown
    return Figures(
        kernel=profile.kernel,
        target=profile.target,
        shapes=list(shapes or ()),
        arguments={name: repr(value) for name, value in (arguments or {}).items()},
        as_written_s=estimates.written.seconds if estimates.written else None,
        as_compiled_s=estimates.compiled.seconds,
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


def encode(record: msgspec.Struct | dict[str, Any]) -> str:
    """A record as text that a person can read and a difference shows line by line."""
    return msgspec.json.format(msgspec.json.encode(record), indent=2).decode() + "\n"


def read_figures(path: Path) -> Figures:
    """A record that `nki profile --record` wrote. Raises Refused with what is wrong in it."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Figures)
    except (OSError, msgspec.DecodeError) as error:
        raise Refused(f"{path} is no record of nki profile --record: {error}") from None
