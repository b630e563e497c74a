"""How long a collective takes: `seconds("all-reduce", 1e9, fabric("trn2.48xlarge"))`.

Sizes, ranks and strides may be numpy arrays, which are broadcast against each other.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from utils.chip.collectives.fabric import Fabric, Tier
from utils.chip.collectives.lines import Line, lines


@dataclass(frozen=True)
class Estimate:
    """Modelled times of a collective; arrays if sizes or ranks were arrays.

    seconds: latency_s + bandwidth_s. algorithm: its name. steps: latencies one after the other.
    bytes_sent_per_rank: of the busiest rank.
    """

    seconds: Any
    latency_s: Any
    bandwidth_s: Any
    algorithm: Any
    bytes_sent_per_rank: Any
    steps: Any


def _chosen(
    kind: str,
    fabric: Fabric | Tier,
    ranks: int | tuple[int, ...] | None,
    stride: int,
    algorithm: str | None,
) -> tuple[Line, ...]:
    known = lines(kind, fabric, ranks, stride)
    if algorithm is None or known[0].algorithm == "none":
        return known
    asked = tuple(line for line in known if line.algorithm == algorithm)
    if not asked:
        names = sorted({line.algorithm for line in known})
        raise ValueError(f"{kind} has no {algorithm!r} here; there are {', '.join(names)}")
    return asked


def seconds(
    kind: str,
    size_bytes: Any,
    fabric: Fabric | Tier,
    ranks: Any = None,
    algorithm: str | None = None,
    stride: Any = 1,
) -> Estimate:
    """How long a collective takes, and by which algorithm.

    Args:
        kind: one of `KINDS`.
        size_bytes: S, of the larger side: what every rank holds of an all-reduce, has in the end of
            an all-gather, had before a reduce-scatter. Number or array.
        ranks: members of each group, by default all of the fabric; number or array. A tuple says
            how many members the group has in each tier, from the inside out.
        algorithm: by default the fastest for each size.
        stride: of the numbers of a group's members: 1 for neighbours, the size of a tensor-parallel
            group for the data-parallel groups across it. All groups are at work at once.

    >>> from utils.chip.collectives import Tier
    >>> seconds("all-reduce", 1e9, Tier("ring", 4, 0.0, 1e9, "ring"), algorithm="ring").seconds
    1.5

    Raises ValueError for a kind, an algorithm or a group that there is not, and a size below 0.
    """
    members = ranks if isinstance(ranks, tuple) else None
    sizes, counts, strides = np.broadcast_arrays(
        np.asarray(size_bytes, float),
        np.asarray(fabric.ranks if ranks is None or members else ranks, int),
        np.asarray(stride, int),
    )
    if sizes.size and not sizes.min() >= 0:
        raise ValueError(f"a message has 0 bytes or more, found {sizes.min():g}")
    found = {name: np.empty(sizes.shape) for name in ("latency", "bandwidth", "sent", "steps")}
    names = np.empty(sizes.shape, object)
    groups, where = np.unique(
        np.stack([counts.ravel(), strides.ravel()]), axis=1, return_inverse=True
    )
    where = where.reshape(sizes.shape)
    for place, (n, step) in enumerate(groups.T):
        some = where == place
        choice = _chosen(kind, fabric, members or int(n), int(step), algorithm)
        size = sizes[some]
        times = [line.latency_s + line.seconds_per_byte * size for line in choice]
        best = np.argmin(times, axis=0)
        column = {
            "latency": np.array([line.latency_s for line in choice])[best],
            "bandwidth": np.array([line.seconds_per_byte for line in choice])[best] * size,
            "sent": np.array([line.sent for line in choice])[best] * size,
            "steps": np.array([line.steps for line in choice])[best],
        }
        for name, values in column.items():
            found[name][some] = values
        names[some] = np.array([line.algorithm for line in choice], object)[best]
    plain = sizes.ndim == 0
    said = {name: array.item() if plain else array for name, array in found.items()}
    return Estimate(
        seconds=said["latency"] + said["bandwidth"],
        latency_s=said["latency"],
        bandwidth_s=said["bandwidth"],
        algorithm=names.item() if plain else names,
        bytes_sent_per_rank=said["sent"],
        steps=int(said["steps"]) if plain else said["steps"].astype(int),
    )


def crossover_bytes(
    kind: str,
    fabric: Fabric | Tier,
    ranks: int | tuple[int, ...] | None = None,
    algorithm: str | None = None,
    stride: int = 1,
) -> float:
    """The size at which latency takes as long as bandwidth: smaller messages wait, larger move.

    Of one algorithm that is latency_s / seconds_per_byte. If the fastest is taken for every size,
    it is where the time is twice that which the bandwidth of very large messages would take; the
    first line to come down to that counts. 0 for a single rank.

    >>> from utils.chip.collectives import Tier
    >>> crossover_bytes("all-reduce", Tier("ring", 4, 1e-6, 1e9, "ring"), algorithm="ring")
    4000.0
    """
    known = _chosen(kind, fabric, ranks, stride, algorithm)
    least = min(line.seconds_per_byte for line in known)
    return min(
        (
            line.latency_s / (2 * least - line.seconds_per_byte)
            for line in known
            if line.seconds_per_byte < 2 * least
        ),
        default=0.0,
    )


def overlapped(compute_s: Any, communicate_s: Any, share: Any) -> Any:
    """Seconds of a step whose collectives may in part run while it computes.

    share: of the communication, what does not have to wait for the end of the computation, 0 to 1:
        the gradients of all layers but the last to be computed, for example. Numbers or arrays. It
        is hidden as long as there is work to hide it behind; the rest comes on top.

    >>> overlapped(1.0, 0.5, 0.8)
    1.1
    """
    part = np.asarray(share, float)
    if part.size and not (part.min() >= 0 and part.max() <= 1):
        raise ValueError(f"a share is from 0 to 1, found {share}")
    hidden = np.minimum(np.asarray(compute_s, float), part * communicate_s)
    total = compute_s + communicate_s - hidden
    return total.item() if np.ndim(total) == 0 else total
